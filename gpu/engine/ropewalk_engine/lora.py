"""LoRA: a low-rank adapter for chosen projections of a model whose own weights do not change (Hu et al. 2021), by peft.

y = W·x + (alpha/rank)·B·(A·x), where A [rank, in] and B [out, rank] have gradients, masters and moments instead of W. A
begins random and B at zero, so that a new adapter changes no output. Names in files are peft's.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from . import draws
from .errors import EngineError, bad_request, corrupt, unsupported

ADAPTER_CONFIG, ADAPTER = "adapter_config.json", "adapter_model.safetensors"
# The projections of a layer, which all architectures here have.
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_PREFIX = "base_model.model."
# Other features of peft's adapters, with the values that switch them off.
_PLAIN: dict[str, Any] = {
    "bias": "none", "use_dora": False, "use_rslora": False, "lora_bias": False, "fan_in_fan_out": False,
    "lora_dropout": 0, "rank_pattern": {}, "alpha_pattern": {}, "modules_to_save": None, "layers_to_transform": None,
    "layer_replication": None, "target_parameters": None, "exclude_modules": None, "trainable_token_indices": None,
}  # fmt: skip


@dataclass(frozen=True)
class Lora:
    rank: int
    alpha: float
    targets: tuple[str, ...]  # of TARGETS, in that order
    seed: int

    def hello(self) -> dict[str, Any]:
        return {"rank": self.rank, "alpha": self.alpha, "targets": list(self.targets)}


def parse(rank: int, alpha: float, targets: str, seed: int) -> Lora | None:
    """The settings of the command line, or None if there are none. Raises ValueError."""
    if not rank:
        if alpha or targets or seed:
            raise ValueError("--lora-alpha, --lora-targets and --lora-seed need --lora-rank")
        return None
    named = targets.split(",")
    if rank < 0:
        raise ValueError(f"--lora-rank is {rank}")
    if not (math.isfinite(alpha) and alpha > 0):
        raise ValueError(f"--lora-alpha is {alpha}")
    if len(set(named)) != len(named) or not set(named) <= set(TARGETS):
        raise ValueError(f"--lora-targets are {targets!r}; there are {', '.join(TARGETS)}, each once")
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"--lora-seed is {seed}")
    return Lora(rank, alpha, tuple(t for t in TARGETS if t in named), seed)


def inject(causal: Any, lora: Lora) -> None:
    """Adds an adapter to every target of the model. Its weights are not set yet."""
    from peft import LoraConfig, inject_adapter_in_model

    c = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]
        target_modules=list(lora.targets),
        lora_dropout=0.0,
        bias="none",
        init_lora_weights=False,
    )
    inject_adapter_in_model(c, causal)


def file_name(parameter: str) -> str:
    """The name in files of a parameter of a model with an adapter: the base's own name, or peft's."""
    if ".lora_" in parameter:
        return _PREFIX + parameter.replace(".default.", ".")
    return parameter.replace(".base_layer.", ".")


def is_adapter(name: str) -> bool:
    """Whether a name in files is an adapter's."""
    return name.startswith(_PREFIX)


def first(name: str, shape: tuple[int, ...], role: str, seed: int) -> torch.Tensor:
    """A new adapter's tensor: B is zero; A is uniform in ±1/√in, as in peft, and depends on seed, role and name."""
    if ".lora_B." in name:
        return torch.zeros(shape)
    digest = hashlib.sha256(f"lora {seed} {role} {name}".encode()).digest()
    streams = torch.arange(math.prod(shape)) * draws.signed(draws.GOLDEN) + int.from_bytes(
        digest[:8], "little", signed=True
    )
    return ((2 * draws.uniform(streams, 0) - 1) / math.sqrt(shape[-1])).float().reshape(shape)


def config(lora: Lora) -> bytes:
    """adapter_config.json for peft, without the base's name or path: the base is in the same folder."""
    out = {
        "base_model_name_or_path": None, "bias": "none", "inference_mode": True,
        "lora_alpha": int(lora.alpha) if lora.alpha == int(lora.alpha) else lora.alpha,
        "lora_dropout": 0.0, "peft_type": "LORA", "r": lora.rank, "target_modules": sorted(lora.targets),
        "task_type": "CAUSAL_LM",
    }  # fmt: skip
    return (json.dumps(out, indent=2, sort_keys=True) + "\n").encode()


def check(found: Mapping[str, Any] | None, lora: Lora | None, where: str) -> None:
    """Compares a folder's adapter_config.json, if there is one, with the adapter that this engine trains."""
    if found is None:
        return
    if lora is None:
        raise bad_request(ADAPTER_CONFIG, f"{where} holds an adapter ({ADAPTER_CONFIG}), and engine.lora is not set")
    if found.get("peft_type") != "LORA":
        raise unsupported(ADAPTER_CONFIG, f"{ADAPTER_CONFIG}: peft_type is {found.get('peft_type')!r}; LORA is served")
    for key, plain in _PLAIN.items():
        if found.get(key) and found[key] != plain:
            raise unsupported(ADAPTER_CONFIG, f"{ADAPTER_CONFIG}: {key} is {found[key]!r}, which is not served")
    targets = found.get("target_modules")
    if not isinstance(targets, list) or not all(isinstance(t, str) for t in targets):
        raise unsupported(
            ADAPTER_CONFIG,
            f"{ADAPTER_CONFIG}: target_modules are {targets!r}; a list of {', '.join(TARGETS)} is served",
        )
    for key, got, field, want in (
        ("r", found.get("r"), "rank", lora.rank),
        ("lora_alpha", found.get("lora_alpha"), "alpha", lora.alpha),
        ("target_modules", sorted(targets), "targets", sorted(lora.targets)),
    ):
        if got != want:
            raise bad_request(ADAPTER_CONFIG, f"{ADAPTER_CONFIG}: {key} is {got!r}, engine.lora.{field} is {want!r}")


def missing(name: str, other: str) -> EngineError:
    """The error for one of an adapter's two files without the other."""
    return corrupt(name, f"there is an {other} without {name}")
