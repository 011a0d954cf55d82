"""The progress of the working thread, and whether it must stop. Shared with the threads that read and send beats."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import Cancelled


class Progress:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled: set[int] = set()
        self.at, self.phase, self.ticks, self.done, self.total = 0, "idle", 0, 0, 0
        self.torch_seconds = 0.0
        self.together = False  # ranks wait for each other, so they stop where they agree to (ranks.py), not at a tick

    def begin(self, id: int, call: str) -> None:
        with self._lock:
            self.at, self.phase, self.done, self.total, self.torch_seconds = id, call, 0, 0, 0.0

    def end(self) -> None:
        with self._lock:
            self._cancelled = {i for i in self._cancelled if i > self.at}
            self.at, self.phase, self.done, self.total = 0, "idle", 0, 0

    def cancel(self, id: int) -> None:
        with self._lock:
            self._cancelled.add(id)

    @property
    def cancelled(self) -> bool:
        return self.at in self._cancelled

    def tick(self) -> None:
        """Counts one unit of work. Raises Cancelled if the host has cancelled the call."""
        self.ticks += 1
        if self._cancelled and not self.together and self.cancelled:
            raise Cancelled

    @contextmanager
    def in_torch(self) -> Iterator[None]:
        """Counts the time inside as the models' own work."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.torch_seconds += time.perf_counter() - began
