"""The weight files of a frozen model, held open so that later checkpoints can hold the same bytes again.

The host may remove a folder once it is loaded, because an open file stays readable. A file that was written to after it
was loaded would belong to another model, so it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .errors import bad_request, corrupt

_CHUNK = 1 << 24


class Base:
    def __init__(self, folder: str, names: list[str]) -> None:
        self._files: list[tuple[str, Any, tuple[int, int]]] = []
        for name in names:
            try:
                f = open(os.path.join(folder, name), "rb", buffering=0)
            except OSError as why:
                raise bad_request(name, f"open {name}: {why.strerror}") from None
            self._files.append((name, f, _mark(f)))

    def copy(self, create: Callable[[str], Any], tick: Callable[[], None]) -> None:
        """Copies every file, byte for byte, into the file that create opens."""
        for name, f, mark in self._files:
            with create(name) as out:
                f.seek(0)
                while part := f.read(_CHUNK):
                    view = memoryview(part)
                    while view:
                        view = view[out.write(view) :]
                    tick()
            if _mark(f) != mark:
                raise corrupt(name, f"{name} was changed after it had been loaded")


def _mark(f: Any) -> tuple[int, int]:
    stat = os.fstat(f.fileno())
    return stat.st_size, stat.st_mtime_ns
