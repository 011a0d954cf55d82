"""The choice of the next token from the last hidden state, with its log-probability and the distribution's entropy."""

from __future__ import annotations

import torch

from . import draws, head
from .products import Map

_AHEAD = 32  # draws


class Sampler:
    """Of one call: its logits, its temperature, 0 for the first greatest logit, and its stop tokens."""

    def __init__(self, logits: Map, vocab: int, temperature: float, stop: list[int], device: torch.device) -> None:
        self._logits, self._temperature = logits, temperature
        self._rows = head.chunk_tokens(vocab, device)
        self._goes_on = torch.ones(vocab, dtype=torch.bool, device=device)
        self._goes_on[stop] = False

    def goes_on(self, token: torch.Tensor) -> torch.Tensor:
        """Whether tokens of any shape are no stop tokens."""
        return self._goes_on[token]

    def follow(self, streams: torch.Tensor, t: int) -> None:
        """The rows are those of these streams [n] from draw t on."""
        self._streams, self._u, self._first = streams, None, t

    def _uniform(self, t: int) -> torch.Tensor:
        """Draw t of every row; many at once, as one costs no less."""
        if self._u is None or t - self._first == _AHEAD:
            self._u, self._first = draws.uniforms(self._streams, t, _AHEAD), t
        return self._u[t - self._first]

    def draw(self, state: torch.Tensor, t: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Token t of every row from its last state [n, H], its log-probability and the entropy; t counts up from follow's."""
        u = self._uniform(t) if self._temperature else None
        parts = [self._of_chunk(state[i : i + self._rows], None if u is None else u[i : i + self._rows]) for i in range(0, len(state), self._rows)]
        return parts[0] if len(parts) == 1 else tuple(torch.cat(x) for x in zip(*parts))  # type: ignore[return-value]

    def _of_chunk(self, state: torch.Tensor, u: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        z = self._logits(state)
        if self._temperature not in (0, 1):
            z *= 1.0 / self._temperature
        logp = torch.log_softmax(z, 1)
        p = logp.exp()
        token = z.argmax(1) if u is None else draws.invert(p, u)
        return token, logp.gather(1, token[:, None])[:, 0], p.mul_(logp).sum(1).neg_()
