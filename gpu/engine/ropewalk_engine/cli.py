"""The command line: sets the process up, connects rank 0 with the host, and serves."""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import sys

from . import PROTOCOL


def parse(argv: list[str]) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="ropewalk_engine", description=__doc__, allow_abbrev=False)
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    p.add_argument(
        "--dtype",
        choices=("float32", "bfloat16"),
        default="float32",
        help="type of the models' arithmetic; weights and optimiser are float32",
    )
    p.add_argument(
        "--deterministic", action="store_true", help="the same inputs give the same bits (on the CPU they do anyway)"
    )
    p.add_argument(
        "--checkpointing",
        choices=("auto", "on", "off"),
        default="auto",
        help="recompute layers in the backward pass; auto: on a GPU if its memory is too small otherwise",
    )
    p.add_argument("--offload-optimizer", action="store_true", help="keep the optimiser's states in the host's memory")
    p.add_argument("--threads", type=int, default=0, help="threads on the CPU; 0 leaves the number to PyTorch")
    p.add_argument(
        "--pack-tokens", type=int, default=0, help="tokens of one pass through a model; 0: 4096, on a GPU 16384"
    )
    p.add_argument(
        "--cache-mib", type=int, default=0, help="MiB for keys and values; 0: 1024, on a GPU 0.6 of the free memory"
    )
    p.add_argument(
        "--lora-rank",
        type=int,
        default=0,
        help="train an adapter of this rank instead of the model; 0: train the whole model",
    )
    p.add_argument(
        "--lora-alpha", type=float, default=0.0, help="the adapter's product is multiplied by this over the rank"
    )
    p.add_argument("--lora-targets", default="", help="the projections that have an adapter, separated by commas")
    p.add_argument("--lora-seed", type=int, default=0, help="seed of a new adapter's random numbers")
    p.add_argument("--version", action="version", version=f"protocol {PROTOCOL}")
    a = p.parse_args(argv)
    for name in ("threads", "pack_tokens", "cache_mib"):
        if getattr(a, name) < 0:
            p.error(f"--{name.replace('_', '-')} is {getattr(a, name)}")
    return a


def main(argv: list[str]) -> int:
    # Output of libraries goes to the log, and so do the stacks of a hanging rank.
    faulthandler.enable(sys.stderr)
    faulthandler.register(signal.SIGUSR1, sys.stderr, all_threads=True)
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    a = parse(argv)
    from . import server

    # Only rank 0 speaks with the host, so ranks on other hosts need neither its address nor its nonce.
    path_and_nonce = server.environment() if os.environ.get("RANK", "0") == "0" else ("", "")
    versions = server.versions(a.lora_rank > 0)
    from . import start

    return start.run(a, *path_and_nonce, versions)
