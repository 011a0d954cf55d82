"""Sampling with a cache of keys and values: each distinct prefix runs once, then all rows take one token at a time.

Rows are taken in waves that fit the cache. Rows that have ended stay in the batch, their tokens ignored, until a good
share of it has ended; then the batch is drawn together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from . import draws, head, packs, ranks
from .attention import Decoding
from .errors import bad_request, non_finite
from .graphs import Recorder
from .progress import Progress
from .settings import Settings

if TYPE_CHECKING:
    from .resident import Resident

# The cache is looked at in steps of this many tokens, the batch drawn together when at most this share of it lives: on a
# GPU both have a step recorded anew (graphs.py).
_ROUND = {"cpu": 64, "cuda": 256}
_SHRINK = {"cpu": 0.75, "cuda": 0.5}
STOP, LENGTH = 0, 1


@dataclass
class Request:
    tokens: torch.Tensor  # flat prefixes
    lengths: list[int]
    streams: torch.Tensor  # [rows] I64
    max_tokens: list[int]
    temperature: float
    stop: list[int]


@dataclass
class Generated:
    """Flat like the new tokens of all rows behind each other; row i has lengths[i] of them."""

    tokens: torch.Tensor
    lengths: torch.Tensor
    logprobs: torch.Tensor
    entropies: torch.Tensor
    finish: torch.Tensor


def check(r: Resident, q: Request) -> None:
    if r.scorer.value_head is not None:
        raise bad_request("role", "a critic does not generate")
    for row, n in enumerate(q.max_tokens):
        if n < 1:
            raise bad_request("max_tokens", f"row {row}: a budget of {n} tokens")
    for t in q.stop:
        if not 0 <= t < r.vocab:
            raise bad_request("stop", f"stop token {t}, the vocabulary has {r.vocab}")


@torch.no_grad()
def generate(r: Resident, q: Request, s: Settings, progress: Progress) -> Generated:
    rows, widest = len(q.lengths), max(q.max_tokens, default=0)
    mine = _share(q, s)
    tokens = torch.zeros(rows, widest, dtype=torch.int32)
    logprobs, entropies = torch.zeros(rows, widest), torch.zeros(rows, widest)
    lengths, finish = torch.zeros(rows, dtype=torch.int32), torch.zeros(rows, dtype=torch.uint8)
    waves = _waves(r, q, mine, s)
    progress.total = sum(max(q.max_tokens[i] for i in wave) for wave in waves)
    with ranks.whole_model(r.scorer, s), ranks.each_alone(progress, s):
        for wave in waves:
            w = _Wave(r, q, wave, s, progress)
            w.run()
            at = torch.tensor(wave)
            n = w.tokens.shape[1]
            tokens[at, :n], logprobs[at, :n], entropies[at, :n] = w.tokens.cpu(), w.logprobs.cpu(), w.entropies.cpu()
            lengths[at], finish[at] = w.lengths.cpu(), w.finish.cpu()
        if not torch.isfinite(logprobs).all():
            raise non_finite("log-probability")
    tokens, logprobs, entropies, lengths, finish = (ranks.sum_over(t, s) for t in (tokens, logprobs, entropies, lengths, finish))
    inside = torch.arange(widest) < lengths[:, None]
    return Generated(tokens[inside], lengths, logprobs[inside], entropies[inside], finish)


def _share(q: Request, s: Settings) -> list[int]:
    """This rank's rows, those that need the longest caches first; rows are dealt like cards."""
    order = sorted(range(len(q.lengths)), key=lambda i: (-(q.lengths[i] + q.max_tokens[i]), i))
    return order[s.rank :: s.ranks]


def _waves(r: Resident, q: Request, rows: list[int], s: Settings) -> list[list[int]]:
    """Rows in the given order, cut so that each wave's cache fits."""
    shape = _CacheShape.of(r)
    limit = s.cache_bytes
    if not limit:
        free = torch.cuda.mem_get_info(s.device)[0] + torch.cuda.memory_reserved(s.device) - torch.cuda.memory_allocated(s.device)
        limit = int(0.6 * free)
    out: list[list[int]] = []
    budget = 0
    for i in rows:
        if not out or len(out[-1]) >= budget:
            out.append([])
            capacity = _round(q.lengths[i] + q.max_tokens[i], s)
            budget = max(1, limit // (capacity * shape.token_bytes(s.dtype)))
        out[-1].append(i)
    return out


def _round(n: int, s: Settings) -> int:
    step = _ROUND[s.device.type]
    return -(-n // step) * step


@dataclass(frozen=True)
class _CacheShape:
    layers: int
    heads: int
    width: int

    @staticmethod
    def of(r: Resident) -> _CacheShape:
        c = r.scorer.causal.config.get_text_config()
        width = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        return _CacheShape(c.num_hidden_layers, c.num_key_value_heads, width)

    def token_bytes(self, dtype: torch.dtype) -> int:
        return 2 * self.layers * self.heads * self.width * dtype.itemsize


class _Wave:
    """Rows that are generated together. Everything per row lies on the device; slots are rows that still may live."""

    def __init__(self, r: Resident, q: Request, rows: list[int], s: Settings, progress: Progress) -> None:
        self.r, self.q, self.s, self.progress = r, q, s, progress
        d = s.device
        n, widest = len(rows), max(q.max_tokens[i] for i in rows)
        self.tokens = torch.zeros(n, widest, dtype=torch.int32, device=d)
        self.logprobs, self.entropies = (torch.zeros(n, widest, device=d) for _ in range(2))
        self.lengths = torch.zeros(n, dtype=torch.int32, device=d)
        self.finish = torch.full((n,), LENGTH, dtype=torch.uint8, device=d)
        self.stops = torch.tensor(sorted(set(q.stop)), dtype=torch.int64, device=d)
        # By slot:
        self.row = torch.arange(n, device=d)
        self.stream = q.streams[rows].to(d)
        self.budget = torch.tensor([q.max_tokens[i] for i in rows], device=d)
        self.position = torch.tensor([q.lengths[i] for i in rows], device=d)  # where the next token will lie
        self.alive = torch.ones(n, dtype=torch.bool, device=d)
        self.longest = max(q.lengths[i] for i in rows)
        c = _CacheShape.of(r)
        capacity = _round(max(q.lengths[i] + q.max_tokens[i] for i in rows), s)
        self.capacity = capacity
        dims = (n, c.heads, capacity, c.width)
        # Zeros, since what lies behind a row's end is multiplied by a probability of zero.
        self.keys, self.values = ([torch.zeros(dims, dtype=s.dtype, device=d) for _ in range(c.layers)] for _ in range(2))
        self.recorder = Recorder(self._next_states, s.device.type == "cuda" and not s.deterministic)
        self.state = self._prefill(rows)

    def run(self) -> None:
        t = 0
        while True:
            chosen = self._sample(t)
            t += 1
            # Whether rows live is asked of the device, which waits for it; on a fast one not after each token.
            if t % (1 if self.s.device.type == "cpu" else 8) == 0 or t == self.tokens.shape[1]:
                live = int(self.alive.sum())
                if live == 0:
                    return
                if live <= _SHRINK[self.s.device.type] * self.alive.numel():
                    chosen = self._draw_together(chosen)
            self._step(chosen)

    def _prefill(self, rows: list[int]) -> torch.Tensor:
        """Runs each distinct prefix once; returns every slot's last hidden state [slots, H]."""
        q, d = self.q, self.s.device
        lengths = torch.tensor(q.lengths)
        start = lengths.cumsum(0) - lengths
        leaders: dict[bytes, list[int]] = {}
        for slot, i in enumerate(rows):
            prefix = q.tokens[int(start[i]) : int(start[i]) + q.lengths[i]]
            leaders.setdefault(prefix.numpy().tobytes(), []).append(slot)
        groups = sorted(leaders.values(), key=lambda g: (-q.lengths[rows[g[0]]], g[0]))
        state: torch.Tensor | None = None
        # packs.cut counts a row's predicting tokens, one less than those that run here.
        plan = packs.cut(list(range(len(groups))), [q.lengths[rows[g[0]]] + 1 for g in groups], self.s.pack_tokens)
        for part in plan:
            mine = [groups[i] for i in part]
            n = torch.tensor([q.lengths[rows[g[0]]] for g in mine])
            position, source = packs.spread(start[[rows[g[0]] for g in mine]], n)
            layout = packs.pack(n.tolist(), d)
            slots = torch.tensor([slot for g in mine for slot in g])
            of = torch.tensor([i for i, g in enumerate(mine) for _ in g])
            layout.store = self._store(slots, of, n)
            hidden = self.r.scorer.hidden(q.tokens.long()[source].to(d)[None], position.to(d)[None], layout)[0]
            last = hidden[(n.cumsum(0) - 1)[of].to(d)]
            if state is None:
                state = last.new_empty(len(rows), last.shape[1])
            state[slots.to(d)] = last
        assert state is not None
        return state

    def _store(self, slots: torch.Tensor, of: torch.Tensor, n: torch.Tensor):  # type: ignore[no-untyped-def]
        """Writes each prefix's keys and values to all slots that have it."""
        d = self.s.device
        count = n[of]
        begin = (n.cumsum(0) - n)[of]
        position, source = packs.spread(begin, count)
        slot = torch.repeat_interleave(slots, count).to(d)
        position, source = position.to(d), source.to(d)

        def store(layer: int, k: torch.Tensor, v: torch.Tensor) -> None:
            for cache, new in ((self.keys[layer], k), (self.values[layer], v)):
                cache[slot, :, position] = new[:, source].transpose(0, 1)

        return store

    def _sample(self, t: int) -> torch.Tensor:
        """Draws token t of every slot from its last state, and records it for those that live."""
        h = self.r.scorer.output_head
        step = max(1, head.CHUNK_BYTES.get(self.s.device.type, 1 << 23) // (4 * h.weight.shape[0]))
        temperature = self.q.temperature or 1.0
        u = draws.uniform(self.stream, t)
        parts = [self._choose(head.logits(self.state[i : i + step], h.weight, h.bias, temperature), u[i : i + step]) for i in range(0, len(u), step)]
        token, logprob, entropy = (torch.cat(x) for x in zip(*parts))
        row, live = self.row, self.alive
        # Slots that have ended write what is there already.
        for into, new in ((self.tokens, token.int()), (self.logprobs, logprob), (self.entropies, entropy)):
            into[row, t] = torch.where(live, new, into[row, t])
        stopped = live & torch.isin(token, self.stops)
        self.lengths[row] = torch.where(live, t + 1, self.lengths[row])
        self.finish[row] = torch.where(stopped, STOP, self.finish[row])
        self.alive = live & ~stopped & (t + 1 < self.budget)
        self.progress.done += 1
        self.progress.tick()
        return token

    def _choose(self, z: torch.Tensor, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(token, log-probability, entropy) of rows of tempered logits; overwrites them."""
        token = z.argmax(1) if self.q.temperature == 0 else None
        z -= torch.logsumexp(z, 1, keepdim=True)
        p = z.exp()
        if token is None:
            token = draws.invert(p, u)
        return token, z.gather(1, token[:, None])[:, 0], -(p * z).sum(1)

    def _step(self, token: torch.Tensor) -> None:
        """Feeds the chosen tokens and takes the next states."""
        self.longest = min(self.longest + 1, self.capacity)
        at = self.position.clamp(max=self.capacity - 1)
        self.state = self.recorder.run(token, at, _round(self.longest, self.s))
        self.position = self.position + 1

    def _next_states(self, token: torch.Tensor, at: torch.Tensor, length: int) -> torch.Tensor:
        return self.r.scorer.hidden(token[:, None], at[:, None], Decoding(self.keys, self.values, at, length))[:, 0]

    def _draw_together(self, chosen: torch.Tensor) -> torch.Tensor:
        """Lets go of the slots that have ended."""
        keep = self.alive.nonzero()[:, 0]
        self.row, self.stream, self.budget, self.position, self.alive = (x[keep] for x in (self.row, self.stream, self.budget, self.position, self.alive))
        for caches in (self.keys, self.values):
            for layer in range(len(caches)):
                caches[layer] = caches[layer][keep]
        self.recorder.forget()
        return chosen[keep]
