"""Several processes: sharding by FSDP2, requests and outputs handed around as plain bytes and numbers.

Collectives run in the same order on every rank, because every rank runs the same calls on the same requests. A rank
that alone meets a fault during a call, such as a full memory, cannot tell the ranks that wait for it in a collective.
That rank ends, and then all ranks end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from . import packs
from .errors import Cancelled, EngineError, is_full_memory, out_of_memory
from .progress import Progress
from .scorer import Scorer, layers_of
from .settings import Settings


def shard(scorer: Scorer, s: Settings) -> None:
    """Shards all layers and the rest of the model over all ranks. Computes in s.dtype, reduces gradients in float32."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(s.device.type, (s.ranks,))
    policy = MixedPrecisionPolicy(param_dtype=s.dtype, reduce_dtype=torch.float32)
    for layer in layers_of(scorer.causal):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(scorer, mesh=mesh, mp_policy=policy)
    # Gradients add up over passes and ranks. The host defines the loss, so nothing is averaged here.
    for module in (*layers_of(scorer.causal), scorer):
        module.set_gradient_divide_factor(1.0)
        module.set_force_sum_reduction_for_comms(True)  # gloo does not scale


def broadcast_bytes(data: bytes | bytearray | None, s: Settings) -> bytearray:
    """Rank 0's bytes, on every rank."""
    n = torch.tensor([0 if data is None else len(data)], dtype=torch.int64, device=s.device)
    dist.broadcast(n, 0)
    if int(n) == 0:
        return bytearray()
    out = torch.empty(int(n), dtype=torch.uint8, device=s.device)
    if data is not None:
        out.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
    dist.broadcast(out, 0)
    return bytearray(out.cpu().numpy().tobytes()) if s.rank else bytearray(data or b"")


def broadcast_request(
    header: dict[str, Any] | None, body: bytearray | None, s: Settings
) -> tuple[dict[str, Any], bytearray]:
    """Rank 0's request, on every rank."""
    raw = broadcast_bytes(None if header is None else json.dumps(header).encode(), s)
    return json.loads(raw), broadcast_bytes(body, s)


def check_versions(own: dict[str, Any], s: Settings) -> None:
    """Ends a rank whose host has other software than rank 0's, because results would depend on both."""
    if s.hosts > 1 and own != (
        first := json.loads(broadcast_bytes(json.dumps(own).encode() if s.rank == 0 else None, s))
    ):
        raise SystemExit(f"this host has {own}, the host of rank 0 {first}: all hosts of one engine need the same")


def sum_over(t: torch.Tensor, s: Settings) -> torch.Tensor:
    """The sum over ranks of a CPU tensor. Each entry was computed by one rank and is zero on the others."""
    if not s.sharded:
        return t
    on_device = t.to(s.device)
    dist.all_reduce(on_device)
    return on_device.cpu()


def most(value: int, s: Settings) -> int:
    """The greatest of the ranks' values."""
    if not s.sharded:
        return value
    t = torch.tensor([value], dtype=torch.int64, device=s.device)
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return int(t)


def agree(error: EngineError | None, s: Settings) -> EngineError | None:
    """Raises the error of the first rank that has one on all ranks: a call fails on all ranks or on none."""
    if not s.sharded:
        return error
    first = -most(-(s.rank if error else s.ranks), s)
    if first == s.ranks:
        return None
    mine = json.dumps([error.kind, error.message, error.name]).encode() if error and s.rank == first else None
    n = torch.tensor([len(mine or b"")], dtype=torch.int64, device=s.device)
    dist.broadcast(n, first)
    raw = torch.zeros(int(n), dtype=torch.uint8, device=s.device)
    if mine:
        raw.copy_(torch.frombuffer(bytearray(mine), dtype=torch.uint8))
    dist.broadcast(raw, first)
    return EngineError(*json.loads(bytes(raw.cpu().tolist())))


def check_cancelled(progress: Progress, s: Settings) -> None:
    """Raises Cancelled if the host has cancelled the call: on all ranks at the same place, or on none."""
    if not s.sharded:
        if progress.cancelled:
            raise Cancelled
    elif most(int(progress.cancelled), s):
        raise Cancelled


@contextmanager
def each_alone(progress: Progress, s: Settings) -> Iterator[None]:
    """Inside, ranks work independently, and each may fail or be cancelled. At the end all ranks fail with one error."""
    error: EngineError | None = None
    together, progress.together = progress.together, False
    try:
        yield
    except EngineError as e:
        error = e
    except (RuntimeError, MemoryError) as e:
        if not is_full_memory(e):
            raise
        error = out_of_memory(e)
    finally:
        progress.together = together
    error = agree(error, s)
    if error:
        raise error


@contextmanager
def whole_model(scorer: Scorer, s: Settings) -> Iterator[None]:
    """Inside, every rank holds the whole model, so that ranks may run it different numbers of times."""
    if not s.sharded:
        yield
        return
    # FSDP2 initialises in the first pass through the root, and generation's passes do not go through the root.
    p = packs.dummy(s.device)
    with torch.no_grad():
        scorer(p.inputs, p.targets, p.positions, p.layout, 1.0, False)
    modules: list[Any] = [*layers_of(scorer.causal), scorer]
    for m in modules:
        m.set_reshard_after_forward(False)
        m.unshard()
    try:
        yield
    finally:
        for m in modules:
            m.set_reshard_after_forward(m is not scorer)
            m.reshard()
