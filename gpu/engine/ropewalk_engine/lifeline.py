"""Messages between ranks outside of collectives, over torchrun's key-value store: that all ranks must end, that a call
is cancelled, and how much memory each rank uses. A thread polls the store, so that a rank notices a message in the
middle of a call or of a collective that never ends."""

from __future__ import annotations

import json
import os
import threading
import time

from . import memory
from .errors import EngineError
from .progress import Progress
from .settings import Settings

POLL_SECONDS = 0.25


def _store():  # type: ignore[no-untyped-def]
    from torch.distributed import distributed_c10d

    return distributed_c10d._get_default_store()


def end_others(s: Settings) -> None:
    """Makes the other ranks exit with 0 and gives them time to notice."""
    if s.sharded:
        try:
            _store().set("ropewalk/end", "1")
            time.sleep(3 * POLL_SECONDS)
        except RuntimeError:
            pass  # the store is gone, and they with it


def cancel_others(s: Settings, id: int) -> None:
    if s.sharded:
        _store().set("ropewalk/cancel", str(id))


def tell_fault(s: Settings, e: EngineError) -> None:
    """Reports why this rank, which is not rank 0, cannot continue, and gives rank 0 time to notice."""
    _store().set("ropewalk/fault", json.dumps([e.kind, f"rank {s.rank}: {e.message}", e.name]))
    time.sleep(2.5)


def fault(s: Settings) -> EngineError | None:
    """Why another rank ends, if one does."""
    try:
        if s.sharded and _store().check(["ropewalk/fault"]):
            return EngineError(*json.loads(_store().get("ropewalk/fault")))
    except RuntimeError:
        pass  # the store is gone, and they with it
    return None


def largest_memory(s: Settings) -> dict[str, int]:
    """The figures of memory.own, each the greatest of all ranks that have published theirs."""
    all_of = [memory.own(s), *_others_memory(s)]
    return {k: max(m[k] for m in all_of) for k in ("allocated", "peak", "reserved")}


def _others_memory(s: Settings) -> list[dict[str, int]]:
    if not s.sharded:
        return []
    store, out = _store(), []
    for rank in range(1, s.ranks):
        key = f"ropewalk/memory/{rank}"
        if store.check([key]):
            out.append(json.loads(store.get(key)))
    return out


def follow(s: Settings, progress: Progress) -> None:
    """On ranks other than 0: polls for ends and cancellations, and publishes memory."""

    def poll() -> None:
        store, heard = _store(), -1
        while True:
            time.sleep(POLL_SECONDS)
            try:
                if store.check(["ropewalk/end"]):
                    os._exit(0)
                if store.check(["ropewalk/cancel"]):
                    id = int(store.get("ropewalk/cancel"))
                    if id != heard:
                        heard = id
                        progress.cancel(id)
                store.set(f"ropewalk/memory/{s.rank}", json.dumps(memory.own(s)))
            except RuntimeError:
                os._exit(1)  # the store is gone, and the others with it

    threading.Thread(target=poll, name="lifeline", daemon=True).start()


def die_with_parent() -> None:
    """Under torchrun each rank leads its own session. If torchrun is killed, the kernel kills the rank."""
    import ctypes
    import signal

    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:
        os._exit(1)  # it died before
