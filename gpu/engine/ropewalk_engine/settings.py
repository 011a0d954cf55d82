"""The settings that the command line fixes for the life of the engine."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .lora import Lora


@dataclass(frozen=True)
class Settings:
    device: torch.device
    dtype: torch.dtype  # of the models' arithmetic
    deterministic: bool
    checkpointing: str  # auto, on or off
    offload_optimizer: bool
    pack_tokens: int  # of one pass through a model
    cache_bytes: int  # of keys and values at once; 0 takes a share of the free memory
    rank: int = 0
    ranks: int = 1
    hosts: int = 1  # on which the ranks run
    lora: Lora | None = None  # None: the whole model trains

    @property
    def sharded(self) -> bool:
        return self.ranks > 1

    def synchronize(self) -> None:
        """Waits until the device has finished its work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
