"""RMS norms by PyTorch's own operator instead of transformers' chain of operators: one kernel on a GPU, which keeps
its input and one number per token for the backward pass instead of three copies of the input in two types."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

# These modules multiply the normed input by their weight and do nothing else.
_PLAIN = ("Qwen2RMSNorm", "Qwen3RMSNorm", "LlamaRMSNorm", "MistralRMSNorm")


def simplify(model: nn.Module) -> None:
    for module in model.modules():
        if type(module).__name__ in _PLAIN:
            module.forward = _plain(module)  # type: ignore[method-assign]


def _plain(module: Any) -> Any:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.rms_norm(x, module.weight.shape, module.weight, module.variance_epsilon)

    return forward
