"""Sampling with a cache of keys and values: each distinct prefix runs once, then all rows take one token at a time.

Rows are generated in waves that fit the cache. A row that has ended stays in the batch, and its tokens are ignored.
Once a large share of the rows has ended, their slots are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from . import packs, ranks
from .cache import Cache, CacheShape
from .decode import Decoder
from .errors import bad_request, non_finite
from .graphs import Recorder
from .progress import Progress
from .resident import Resident
from .sampling import Sampler, Truncation
from .settings import Settings

# The part of the cache that a step reads grows in steps of _ROUND tokens. The slots of ended rows are dropped when at
# most the share _SHRINK of the rows still runs. On a GPU each of the two needs a new recording of a step (graphs.py).
_ROUND = {"cpu": 1, "cuda": 256}
_SHRINK = {"cpu": 0.75, "cuda": 0.5}
# On a CPU a step whose largest product has fewer than _ALONE multiplications uses one thread, because waking others
# takes longer than they save. Reading a matrix costs as much as computing _READ more rows.
_ALONE, _READ = 1 << 21, 8
STOP, LENGTH = 0, 1


@dataclass
class Request:
    tokens: torch.Tensor  # flat prefixes
    lengths: list[int]
    streams: torch.Tensor  # [rows] I64
    max_tokens: list[int]
    temperature: float
    truncation: Truncation
    stop: list[int]
    top: int = 0  # likeliest tokens whose log-probabilities are wanted at the first top_tokens of a row
    top_tokens: int = 0


@dataclass
class Generated:
    """The new tokens of all rows in one flat array; row i has lengths[i] of them. top is [rows, top_tokens, top];
    entries behind a row's end have no meaning, and −∞ stands for a token that is not there."""

    tokens: torch.Tensor
    lengths: torch.Tensor
    logprobs: torch.Tensor
    entropies: torch.Tensor
    finish: torch.Tensor
    top: torch.Tensor | None = None


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
    top = torch.zeros(rows, q.top_tokens, q.top) if q.top else None
    waves = _waves(r, q, mine, s)
    progress.total = sum(max(q.max_tokens[i] for i in wave) for wave in waves)
    with ranks.whole_model(r.scorer, s), ranks.each_alone(progress, s):
        decoder = Decoder(r.scorer, _round(max((q.lengths[i] + q.max_tokens[i] for i in mine), default=0), s), progress)
        for wave in waves:
            with _own_threads():
                w = _Wave(r, decoder, q, wave, s, progress)
                w.run()
            at = torch.tensor(wave)
            n = w.tokens.shape[0]
            tokens[at, :n], logprobs[at, :n], entropies[at, :n] = (
                w.tokens.t().cpu().int(),
                w.logprobs.t().cpu(),
                w.entropies.t().cpu(),
            )
            lengths[at], finish[at] = (x.cpu() for x in w.ends())
            if top is not None and w.top is not None:
                top[at, : w.top.shape[0]] = w.top.transpose(0, 1).cpu()
        inside = torch.arange(widest) < lengths[:, None]
        if not torch.isfinite(logprobs[inside]).all():
            raise non_finite("log-probability")
    tokens, logprobs, entropies, lengths, finish = (
        ranks.sum_over(t, s) for t in (tokens, logprobs, entropies, lengths, finish)
    )
    if top is not None:
        top = ranks.sum_over(top, s)
    inside = torch.arange(widest) < lengths[:, None]
    return Generated(tokens[inside], lengths, logprobs[inside], entropies[inside], finish, top)


def _share(q: Request, s: Settings) -> list[int]:
    """This rank's rows, with the longest caches first. Rows are dealt to the ranks in turn."""
    order = sorted(range(len(q.lengths)), key=lambda i: (-(q.lengths[i] + q.max_tokens[i]), i))
    return order[s.rank :: s.ranks]


def _waves(r: Resident, q: Request, rows: list[int], s: Settings) -> list[list[int]]:
    """Cuts the rows, in the given order, into waves whose caches fit."""
    shape = CacheShape.of(r)
    limit = s.cache_bytes
    if not limit:
        free = (
            torch.cuda.mem_get_info(s.device)[0]
            + torch.cuda.memory_reserved(s.device)
            - torch.cuda.memory_allocated(s.device)
        )
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


@contextmanager
def _own_threads() -> Iterator[None]:
    """Restores the number of threads at the end, so that it may change within."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _round(n: int, s: Settings) -> int:
    step = _ROUND[s.device.type]
    return -(-n // step) * step


class _Wave:
    """Rows that are generated together. All per-row state is on the device. A slot holds a row that may still run."""

    def __init__(
        self, r: Resident, decoder: Decoder, q: Request, rows: list[int], s: Settings, progress: Progress
    ) -> None:
        self.r, self.decoder, self.q, self.s, self.progress = r, decoder, q, s, progress
        d = s.device
        n, widest = len(rows), max(q.max_tokens[i] for i in rows)
        # By step, then by row. Entries behind a row's end have no meaning.
        self.tokens = torch.zeros(widest, n, dtype=torch.int64, device=d)
        self.logprobs, self.entropies = (torch.zeros(widest, n, device=d) for _ in range(2))
        self.top = torch.zeros(min(q.top_tokens, widest), n, q.top, device=d) if q.top else None
        self.sampler = Sampler(decoder.logits, r.vocab, q.temperature, q.truncation, q.stop, d)
        self.budgets = torch.tensor([q.max_tokens[i] for i in rows], device=d)
        # By slot:
        self.row: torch.Tensor | None = None  # None: slot i has row i
        self.stream = q.streams[rows].to(d)
        self.sampler.follow(self.stream, 0)
        self.budget = self.budgets
        self.position = torch.tensor([q.lengths[i] for i in rows], device=d)  # the next token's place
        self.alive = torch.ones(n, dtype=torch.bool, device=d)
        self.longest = max(q.lengths[i] for i in rows)
        self.capacity = _round(max(q.lengths[i] + q.max_tokens[i] for i in rows), s)
        self.cache = Cache(CacheShape.of(r), n, self.capacity, s.dtype, d)
        self.recorder = Recorder(self._next_states, s.device.type == "cuda")
        self.threads = torch.get_num_threads()
        self.state = self._prefill(rows)

    def run(self) -> None:
        t, widest = 0, self.tokens.shape[0]
        self._share_out()
        while True:
            chosen = self._sample(t)
            t += 1
            # Asking the device whether rows still run makes the host wait, so a GPU is not asked after each token.
            if t == widest:
                return
            if self.s.device.type == "cpu" or t % 8 == 0:
                live = int(self.alive.sum())
                if live == 0:
                    return
                if live <= _SHRINK[self.s.device.type] * self.alive.numel():
                    chosen = self._draw_together(chosen, t)
            self._step(chosen)

    def _prefill(self, rows: list[int]) -> torch.Tensor:
        """Runs each distinct prefix once and returns every slot's last hidden state [slots, H]."""
        q, d = self.q, self.s.device
        lengths = torch.tensor(q.lengths)
        start = lengths.cumsum(0) - lengths
        leaders: dict[bytes, list[int]] = {}
        for slot, i in enumerate(rows):
            prefix = q.tokens[int(start[i]) : int(start[i]) + q.lengths[i]]
            leaders.setdefault(prefix.numpy().tobytes(), []).append(slot)
        groups = sorted(leaders.values(), key=lambda g: (-q.lengths[rows[g[0]]], g[0]))
        state: torch.Tensor | None = None
        # packs.cut counts the tokens of a row that predict another, one fewer than run here.
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
        return lambda layer, k, v: self.cache.fill(layer, slot, position, k[:, source], v[:, source])

    def _sample(self, t: int) -> torch.Tensor:
        """Draws token t of every slot from its last state and records it."""
        named = self.top is not None and t < self.top.shape[0]
        token, logprob, entropy, *top = self.sampler.draw(self.state, t, self.q.top if named else 0)
        records = [(self.tokens, token), (self.logprobs, logprob), (self.entropies, entropy)]
        if self.top is not None and top:
            records.append((self.top, top[0]))
        for into, new in records:
            if self.row is None:
                into[t] = new
            else:
                into[t].index_copy_(0, self.row, new)
        self.alive &= self.sampler.goes_on(token)
        self.alive &= self.budget > t + 1
        self.progress.done += 1
        self.progress.tick()
        return token

    def ends(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(length, finish) of every row, which ends at its first stop token or at its budget."""
        stops = ~self.sampler.goes_on(self.tokens)
        first = torch.where(stops.any(0), stops.to(torch.uint8).argmax(0) + 1, self.tokens.shape[0] + 1)
        return torch.minimum(first, self.budgets).int(), torch.where(first <= self.budgets, STOP, LENGTH).to(
            torch.uint8
        )

    def _step(self, token: torch.Tensor) -> None:
        """Feeds the chosen tokens and returns the next states."""
        self.longest = min(self.longest + 1, self.capacity)
        at = self.position.clamp(max=self.capacity - 1)
        self.state = self.recorder.run(token, at, _round(self.longest, self.s))
        self.position = self.position + 1

    def _next_states(self, token: torch.Tensor, at: torch.Tensor, length: int) -> torch.Tensor:
        return self.decoder.step(self.cache, token, at, length)

    def _share_out(self) -> None:
        """Sets the number of threads for steps of this many slots."""
        if self.s.device.type == "cpu":
            torch.set_num_threads(1 if (self.alive.numel() + _READ) * self.decoder.widest < _ALONE else self.threads)

    def _draw_together(self, chosen: torch.Tensor, t: int) -> torch.Tensor:
        """Drops the slots of rows that have ended after t tokens."""
        keep = self.alive.nonzero()[:, 0]
        self.row = keep if self.row is None else self.row[keep]
        self.stream, self.budget, self.position, self.alive = (
            x[keep] for x in (self.stream, self.budget, self.position, self.alive)
        )
        self.cache.keep(keep)
        self.sampler.follow(self.stream, t)
        self.recorder.forget()
        self._share_out()
        return chosen[keep]
