"""Records one decoding step as a CUDA graph and replays it. A step of a small model has hundreds of kernels, and
launching them one by one takes longer than running them.

A recording is valid for one batch and one length of the cache that is read. So a new one is made every 256 tokens and
when slots are dropped; this takes the time of about three steps. A replay runs the kernels that were chosen for the
recording, so it is deterministic if they are. Which steps are replayed depends only on the call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch

from .errors import is_full_memory

Step = Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]


class Recorder:
    """Runs steps (tokens [n], positions [n], length) → states [n, H]. Records them if device and model allow it."""

    def __init__(self, step: Step, on: bool) -> None:
        self._step, self._on = step, on
        self._key: tuple[int, int] | None = None
        self._graph: torch.cuda.CUDAGraph | None = None

    def forget(self) -> None:
        """Forgets the recording, because the caches have changed."""
        self._key = self._graph = None

    def run(self, token: torch.Tensor, at: torch.Tensor, length: int) -> torch.Tensor:
        """Returns states in memory that the next run overwrites."""
        if not self._on:
            return self._step(token, at, length)
        if self._key != (token.shape[0], length):
            self.forget()
            try:
                # A first run outside of the recording sets libraries up. Its results are used; the recorded step
                # writes the same keys and values again.
                out = self._warm(token, at, length)
                self._record(token, at, length)
                self._key = (token.shape[0], length)
                return out
            except RuntimeError as e:
                if is_full_memory(e):
                    raise
                print(f"steps of generation are not recorded: {str(e).splitlines()[0]}", file=sys.stderr)
                self._on = False
                torch.cuda.synchronize()
                return self._step(token, at, length)
        assert self._graph is not None
        self._token.copy_(token)
        self._at.copy_(at)
        self._graph.replay()
        return self._out

    def _warm(self, token: torch.Tensor, at: torch.Tensor, length: int) -> torch.Tensor:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            out = self._step(token, at, length)
        torch.cuda.current_stream().wait_stream(side)
        return out

    def _record(self, token: torch.Tensor, at: torch.Tensor, length: int) -> None:
        self._token, self._at = token.clone(), at.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._out = self._step(self._token, self._at, length)
        self._graph = graph
