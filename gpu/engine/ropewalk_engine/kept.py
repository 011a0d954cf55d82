"""Kept forward passes, which await their cotangents."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass
class KeptPack:
    at: torch.Tensor | None  # flat entries, on the CPU; None for a dummy
    outputs: dict[str, torch.Tensor]  # with their graphs


@dataclass
class KeptPass:
    lengths: list[int]
    outputs: tuple[str, ...]
    packs: list[KeptPack]
