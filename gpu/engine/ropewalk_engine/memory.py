"""Bytes of memory in use: the device's, or on the CPU the process's own."""

from __future__ import annotations

import os
import resource

import torch

from .settings import Settings


def own(s: Settings) -> dict[str, int]:
    """allocated, peak and reserved of this rank."""
    if s.device.type == "cuda":
        d = s.device
        return {"allocated": torch.cuda.memory_allocated(d), "peak": torch.cuda.max_memory_allocated(d), "reserved": torch.cuda.memory_reserved(d)}
    with open("/proc/self/statm") as f:
        resident = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"allocated": resident, "peak": max(peak, resident), "reserved": resident}


def largest(s: Settings) -> dict[str, int]:
    """own, or where several ranks publish theirs (lifeline.py) the greatest of each."""
    from . import lifeline

    all_of = [own(s), *lifeline.others_memory(s)]
    return {k: max(m[k] for m in all_of) for k in ("allocated", "peak", "reserved")}
