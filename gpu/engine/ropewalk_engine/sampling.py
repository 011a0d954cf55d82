"""The choice of the next token from the last hidden state, with its log-probability and the distribution's entropy."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from . import draws, head
from .products import Map

_AHEAD = 32  # draws


@dataclass(frozen=True)
class Truncation:
    """The limits of policy.Truncation: top-k first, then top-p among what it has left, then min-p. 0 is no limit."""

    top_k: int = 0
    top_p: float = 0.0
    min_p: float = 0.0

    def active(self) -> bool:
        return self.top_k > 0 or 0 < self.top_p < 1 or self.min_p > 0

    def apply(self, z: torch.Tensor) -> torch.Tensor:
        """The logits [n, V] with −∞ in the places of the tokens that are left out."""
        # Equal logits stay in the order of their ids, so that every engine leaves the same tokens.
        ordered, ids = z.sort(dim=1, descending=True, stable=True)
        weight = (ordered - ordered[:, :1]).exp().double()
        if 0 < self.top_k < z.shape[1]:
            weight[:, self.top_k :] = 0
        keep = weight > 0
        if 0 < self.top_p < 1:
            before = draws.running(weight) - weight
            keep &= before < self.top_p * weight.sum(1, keepdim=True)
        if self.min_p > 0:
            keep &= weight >= self.min_p
        return z.masked_fill(~torch.zeros_like(keep).scatter(1, ids, keep), -torch.inf)


class Sampler:
    """The sampling of one call: its logits, its temperature (0 takes the first greatest logit) and its stop tokens."""

    def __init__(
        self,
        logits: Map,
        vocab: int,
        temperature: float,
        truncation: Truncation,
        stop: list[int],
        device: torch.device,
    ) -> None:
        self._logits, self._temperature = logits, temperature
        self._truncation = truncation if temperature and truncation.active() else None
        self._rows = head.chunk_tokens(vocab, device)
        self._goes_on = torch.ones(vocab, dtype=torch.bool, device=device)
        self._goes_on[stop] = False

    def goes_on(self, token: torch.Tensor) -> torch.Tensor:
        """For each token of a tensor of any shape, whether it is not a stop token."""
        return self._goes_on[token]

    def follow(self, streams: torch.Tensor, t: int) -> None:
        """From draw t on, the rows use these streams [n]."""
        self._streams, self._u, self._first = streams, None, t

    def _uniform(self, t: int) -> torch.Tensor:
        """Draw t of every row. Many draws are computed at once, because one costs as much."""
        if self._u is None or t - self._first == _AHEAD:
            self._u, self._first = draws.uniforms(self._streams, t, _AHEAD), t
        return self._u[t - self._first]

    def draw(self, state: torch.Tensor, t: int, top: int = 0) -> tuple[torch.Tensor, ...]:
        """Token t of every row from its last state [n, H], its log-probability and entropy, and with top the
        log-probabilities [n, top] of the likeliest tokens. t counts from follow."""
        u = self._uniform(t) if self._temperature else None
        parts = [
            self._of_chunk(state[i : i + self._rows], None if u is None else u[i : i + self._rows], top)
            for i in range(0, len(state), self._rows)
        ]
        return parts[0] if len(parts) == 1 else tuple(torch.cat(x) for x in zip(*parts))

    def _of_chunk(self, state: torch.Tensor, u: torch.Tensor | None, top: int) -> tuple[torch.Tensor, ...]:
        z = self._logits(state)
        if self._temperature not in (0, 1):
            z *= 1.0 / self._temperature
        if self._truncation:
            z = self._truncation.apply(z)
        logp = torch.log_softmax(z, 1)
        p = logp.exp()
        token = z.argmax(1) if u is None else draws.invert(p, u)
        named = _likeliest(logp, top)
        if self._truncation:
            logp = logp.masked_fill(p == 0, 0.0)  # 0 · log 0 is 0 in the entropy
        return token, logp.gather(1, token[:, None])[:, 0], p.mul_(logp).sum(1).neg_(), *named


def _likeliest(logp: torch.Tensor, top: int) -> tuple[torch.Tensor, ...]:
    """The top greatest values of each row, the greatest first; −∞ in the places of tokens that there are not."""
    if not top:
        return ()
    values = logp.topk(min(top, logp.shape[1]), 1).values
    return (torch.nn.functional.pad(values, (0, top - values.shape[1]), value=-torch.inf),)
