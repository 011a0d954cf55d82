"""Bytes of memory in use: the device's, or on the CPU the process's own."""

from __future__ import annotations

import os
import resource

import torch

from .settings import Settings


def own(s: Settings) -> dict[str, int]:
    """The allocated, peak and reserved bytes of this rank."""
    if s.device.type == "cuda":
        d = s.device
        return {
            "allocated": torch.cuda.memory_allocated(d),
            "peak": torch.cuda.max_memory_allocated(d),
            "reserved": torch.cuda.memory_reserved(d),
        }
    with open("/proc/self/statm") as f:
        resident = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"allocated": resident, "peak": max(peak, resident), "reserved": resident}
