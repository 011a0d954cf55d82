"""Shared by the test cases: the engine's modules, one engine process, and one folder of each architecture."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tempfile
from typing import Any

import torch

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import models  # noqa: E402
from driver import Host  # noqa: E402

torch.set_num_threads(1)  # the models are tiny: a second thread would wait for the first


@functools.cache
def scratch() -> str:
    dir = tempfile.mkdtemp(prefix="engine-tests")
    atexit.register(shutil.rmtree, dir, ignore_errors=True)
    return dir


@functools.cache
def host(*flags: str, ranks: int = 1) -> Host:
    """An engine that all cases with these flags share."""
    h = Host(*flags, ranks=ranks)
    atexit.register(h.close)
    return h


@functools.cache
def model(kind: str, **other: Any) -> tuple[str, Any]:
    """(folder, transformers' own model). other holds further fields of its configuration."""
    dir = os.path.join(scratch(), "-".join([*kind.split(), *(f"{k}-{v}" for k, v in other.items())]))
    return dir, models.make(kind, dir, **other)


def plain_outputs(m: Any, rows: list[list[int]], temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities and entropies, flat, by the model's own forward pass of one row at a time; differentiable."""
    logprobs, entropies = [], []
    for r in rows:
        p = (m(torch.tensor([r])).logits[0, :-1].float() / temperature).log_softmax(-1)
        zero = torch.zeros(1)
        logprobs += [zero, p.gather(1, torch.tensor(r[1:], dtype=torch.int64)[:, None])[:, 0]]
        entropies += [zero, -(p.exp() * p).sum(-1)]
    return torch.cat(logprobs), torch.cat(entropies)


def relative(got: torch.Tensor, want: torch.Tensor) -> float:
    """The relative L2 error; 0 if both vanish."""
    d, n = float((got.double() - want.double()).norm()), float(want.double().norm())
    return d / n if n else d


def noise(seed: int, n: int) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))
