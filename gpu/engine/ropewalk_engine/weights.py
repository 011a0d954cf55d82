"""The trainable weights of a model: float32 masters, whatever type the model computes in.

If one process computes in float32, the model's own parameters are the masters. If it computes in bfloat16, the model
holds a rounded copy, and each parameter's gradient is added to a float32 sum as soon as it is computed. With several
processes, FSDP2 shards the masters and hands out rounded copies layer by layer (ranks.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributed.tensor import DTensor

from .errors import non_finite


@dataclass
class Weight:
    name: str
    parameter: nn.Parameter  # the model's
    master: torch.Tensor  # float32: this rank's share, or the whole
    shape: tuple[int, ...]  # of the whole
    frozen: bool
    summed: torch.Tensor | None = None  # the float32 gradient, if it is not the parameter's own

    @property
    def decays(self) -> bool:
        """Weight decay moves matrices, not norms and biases."""
        return len(self.shape) > 1

    @property
    def grad(self) -> torch.Tensor | None:
        if self.summed is not None:
            return self.summed
        g = self.parameter.grad
        if g is None or self.is_copy:
            return None
        return local(g)

    @property
    def is_copy(self) -> bool:
        return self.parameter.dtype != torch.float32

    def drop_grad(self) -> None:
        self.parameter.grad = self.summed = None

    def publish(self) -> None:
        """Rounds the master into the model. FSDP2 does so itself. A frozen weight is its own master."""
        if self.is_copy and not isinstance(self.parameter, DTensor):
            with torch.no_grad():
                self.parameter.copy_(self.master)

    def whole(self, t: torch.Tensor) -> torch.Tensor:
        """A share of this weight, or of its moments, gathered to a contiguous CPU tensor on every rank."""
        p = self.parameter
        if isinstance(p, DTensor):
            t = DTensor.from_local(
                t.to(p.device), p.device_mesh, p.placements, shape=p.shape, stride=p.stride()
            ).full_tensor()
        return t.detach().to("cpu").contiguous()

    def share(self, t: torch.Tensor) -> torch.Tensor:
        """This rank's share of a whole tensor, in float32 on the master's device."""
        p = self.parameter
        if isinstance(p, DTensor):
            dim, rows = p.placements[0].dim, p.to_local().shape[p.placements[0].dim]
            mesh = p.device_mesh
            chunk = -(-p.shape[dim] // mesh.size())
            t = t.narrow(dim, min(chunk * mesh.get_local_rank(), p.shape[dim]), rows)
        # Widened after the transfer: PyTorch would widen first and transfer twice the bytes.
        return t.to(self.master.device).to(torch.float32)


def local(t: torch.Tensor) -> torch.Tensor:
    return t.to_local() if isinstance(t, DTensor) else t


def sum_in_float32(w: Weight) -> None:
    """Moves each gradient of a rounded copy into a float32 sum as soon as it is accumulated."""

    def hook(p: torch.Tensor) -> None:
        g, p.grad = p.grad, None
        assert g is not None
        if w.summed is None:
            w.summed = g.float()
        else:
            w.summed += g

    w.parameter.register_post_accumulate_grad_hook(hook)


def global_norm(weights: Iterable[Weight], reduce: bool) -> float:
    """The L2 norm of all gradients. Squares are summed in float32 within a tensor and in float64 over tensors.
    Refuses a NaN or Inf by the name of the first parameter that has one."""
    names, grads = [], []
    for w in weights:
        if (g := w.grad) is not None:
            names.append(w.name)
            grads.append(g)
    if not grads:
        return 0.0
    squares = torch.stack([n.double() for n in torch._foreach_norm(grads)]).square()
    if reduce:
        torch.distributed.all_reduce(squares)
    values = squares.tolist()
    total = sum(values)
    if total - total != 0:
        raise non_finite(next((n for n, s in zip(names, values, strict=True) if s - s != 0), "the gradient's norm"))
    return float(total**0.5)
