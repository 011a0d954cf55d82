"""Linear layers for the few rows of a decoding step. A layer that is not a plain linear layer is called unchanged."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear

Map = Callable[[torch.Tensor], torch.Tensor]
Add = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

# A matrix of at least this many numbers is packed on a CPU. With 8 rows its products then take 0.6 to 0.7 of the time.
# Packing takes as long as five products.
_PACKED = 1 << 17
_ROWS = 32  # the number of rows that oneDNN packs for; another number changes the packed order little


def product(weight: torch.Tensor, bias: torch.Tensor | None, copy: bool) -> Map:
    """x·Wᵀ + b; with `copy` the weight may be copied into another order."""
    if not copy or not _gains(weight):
        return lambda x: linear(x, weight, bias)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)
    return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")


def joined(modules: tuple[Any, ...], copy: bool) -> Map:
    """The modules' outputs [n, …] for one input, concatenated; with `copy` as one product."""
    if not copy or not all(_plain(m) for m in modules) or len({m.bias is None for m in modules}) > 1:
        return lambda x: torch.cat([m(x) for m in modules], 1)
    bias = None if modules[0].bias is None else torch.cat([m.bias for m in modules])
    return product(torch.cat([m.weight for m in modules]), bias, copy)


def adding(m: Any, copy: bool) -> Add:
    """(residual, x) → residual + m(x)."""
    if not _plain(m):
        return lambda residual, x: residual + m(x)
    if m.bias is not None or copy and _gains(m.weight):
        of = product(m.weight, m.bias, copy)
        return lambda residual, x: of(x).add_(residual)
    weight = m.weight.t()
    return lambda residual, x: torch.addmm(residual, x, weight)


def _plain(m: nn.Module) -> bool:
    """Whether the module multiplies by its weight, adds its bias, and does nothing else."""
    return type(m) is nn.Linear and "forward" not in vars(m) and not m._forward_hooks and not m._forward_pre_hooks


def _gains(weight: torch.Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.numel() >= _PACKED and _packs()


@functools.cache
def _packs() -> bool:
    """Whether this PyTorch has oneDNN's products with packed weights, and they agree with the plain one."""
    try:
        w, x = (torch.linspace(-1, 1, n * 96).sin().view(n, 96) for n in (64, 3))
        got = torch.ops.mkldnn._linear_pointwise(
            x, torch.ops.mkldnn._reorder_linear_weight(w, _ROWS), None, "none", [], ""
        )
        return torch.allclose(got, linear(x, w), atol=1e-5)
    except (AttributeError, RuntimeError, TypeError):
        return False
