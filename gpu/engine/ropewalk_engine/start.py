"""Sets PyTorch up and runs this rank's loop."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from datetime import timedelta
from typing import Any, NoReturn

import torch

from . import build, lifeline, lora, ranks
from .engine import Engine
from .errors import EngineError, internal
from .messages import Request, parse_call
from .progress import Progress
from .server import Server
from .settings import Settings


def run(a: argparse.Namespace, path: str, nonce: str, versions: dict[str, Any]) -> int:
    s = _settings(a)
    progress = Progress()
    if s.sharded:
        lifeline.die_with_parent()
        _join(s)
        ranks.check_versions(versions, s)
    if s.rank:
        lifeline.follow(s, progress)
        return _follow(s, progress)
    server = Server(path, s, progress, lambda id: lifeline.cancel_others(s, id))
    hello = {
        "nonce": nonce, "engine": "torch", "pid": os.getpid(), "ranks": s.ranks, "versions": versions,
        "device": s.device.type,
        "device_name": torch.cuda.get_device_name(s.device) if s.device.type == "cuda" else "cpu",
        **({"lora": s.lora.hello()} if s.lora else {}),
        "dtype": str(s.dtype).removeprefix("torch."), "deterministic": a.deterministic or s.device.type == "cpu",
    }  # fmt: skip
    try:
        if not server.greet(hello):
            _end(s, 1)
        status = server.serve(Engine(s, progress), lambda r: _hand_round(r, s), lambda status: _end(s, status))
    except EOFError:
        status = 0
    _end(s, status)


def _end(s: Settings, status: int) -> NoReturn:
    """Ends all ranks, whatever they are doing."""
    lifeline.end_others(s)
    sys.stderr.flush()
    os._exit(status)


def _settings(a: argparse.Namespace) -> Settings:
    names = (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0), ("GROUP_WORLD_SIZE", 1))
    rank, count, on_host, hosts = (int(os.environ.get(k, d)) for k, d in names)  # torchrun's
    if a.threads:
        torch.set_num_threads(a.threads)
    if a.deterministic:
        torch.use_deterministic_algorithms(True)
        # Otherwise every empty tensor is filled with NaN, to expose code that reads it. No code here does.
        torch.utils.deterministic.fill_uninitialized_memory = False
        # On a GPU these two attention kernels have no deterministic backward pass.
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)
    device = torch.device("cpu")
    if a.device == "cuda":
        if not torch.cuda.is_available():
            raise SystemExit(
                "PyTorch sees no CUDA device: --device cuda needs one (nvidia-smi shows the driver's view)"
            )
        device = torch.device("cuda", on_host)
        torch.cuda.set_device(device)
    gpu = device.type == "cuda"
    return Settings(
        device, getattr(torch, a.dtype), a.deterministic, a.checkpointing, a.offload_optimizer,
        a.pack_tokens or (16384 if gpu else 4096), a.cache_mib << 20 or (0 if gpu else 1 << 30), rank, count, hosts,
        _lora(a),
    )  # fmt: skip


def _lora(a: argparse.Namespace) -> lora.Lora | None:
    try:
        return lora.parse(a.lora_rank, a.lora_alpha, a.lora_targets, a.lora_seed)
    except ValueError as e:
        raise SystemExit(str(e)) from None


def _join(s: Settings) -> None:
    """Joins the other ranks under torchrun."""
    if s.device.type == "cpu" and s.hosts == 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # A rank waits in a collective for the host's next call, possibly for long. The lifeline ends the rank.
    torch.distributed.init_process_group("nccl" if s.device.type == "cuda" else "gloo", timeout=timedelta(days=7))


def _hand_round(r: Request, s: Settings) -> None:
    if s.sharded:
        ranks.broadcast_request({"type": "call", "id": r.id, "call": r.call, **r.fields}, r.body, s)


def _follow(s: Settings, progress: Progress) -> int:
    """The loop of ranks other than 0: the same calls in the same order."""
    engine = Engine(s, progress)
    build.prepare(s.lora is not None)
    while True:
        r = parse_call(*ranks.broadcast_request(None, None, s))
        progress.begin(r.id, r.call)
        if r.call == "shutdown":
            return 0
        try:
            engine.run(r)
        except EngineError:
            pass  # rank 0 has the same error, and answers
        except Exception as e:
            traceback.print_exc()
            lifeline.tell_fault(s, internal(e))
            return 1
        finally:
            progress.end()
