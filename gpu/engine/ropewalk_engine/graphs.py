"""One decoding step recorded as a CUDA graph and replayed: a small model's step is hundreds of kernels, and to launch
them one by one takes longer than to run them.

A recording holds for one batch and one length of the cache that is looked at, so it is made anew every 256 tokens and
when the batch is drawn together; to make one takes about three steps' time. It replays the very kernels that were chosen
when it was made, so that where those are deterministic it is so too; which steps are replayed depends on the call alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch

from .errors import is_full_memory

Step = Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]


class Recorder:
    """Runs steps (tokens [n], positions [n], length) → states [n, H]; recorded where the device and the model allow it."""

    def __init__(self, step: Step, on: bool) -> None:
        self._step, self._on = step, on
        self._key: tuple[int, int] | None = None
        self._graph: torch.cuda.CUDAGraph | None = None

    def forget(self) -> None:
        """The caches are others now."""
        self._key = self._graph = None

    def run(self, token: torch.Tensor, at: torch.Tensor, length: int) -> torch.Tensor:
        """The states lie in memory that the next run writes over."""
        if not self._on:
            return self._step(token, at, length)
        if self._key != (token.shape[0], length):
            self.forget()
            try:
                # A first run outside of the recording sets libraries up, and it alone counts: its keys and values
                # are those that the recorded step writes again.
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
