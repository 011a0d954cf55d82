"""A causal language model as the engine reads it: outputs for tokens, or the state that predicts the next token."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .attention import Packing
from .head import token_logprobs
from .progress import Progress


class Scorer(nn.Module):
    """The model of one role. A critic has a value head; its output head does not train."""

    def __init__(self, causal: Any, critic: bool, progress: Progress) -> None:
        super().__init__()
        self.causal = causal
        self.body = _Hidden(causal.base_model)
        hidden = causal.config.get_text_config().hidden_size
        self.value_head = nn.Linear(hidden, 1, device=next(causal.parameters()).device) if critic else None
        self.checkpointing = False
        for layer in layers_of(causal):
            _watch(layer, self, progress)

    @property
    def output_head(self) -> nn.Linear:
        return self.causal.get_output_embeddings()

    def hidden(self, tokens: torch.Tensor, positions: torch.Tensor, layout: Packing) -> torch.Tensor:
        """Hidden states [rows, n, H] after the final norm, for tokens [rows, n]."""
        return self.body.of(input_ids=tokens, position_ids=positions, use_cache=False, layout=layout).last_hidden_state

    def forward(
        self,
        tokens: torch.Tensor,
        targets: torch.Tensor,
        positions: torch.Tensor,
        layout: Packing,
        temperature: float,
        with_entropy: bool,
    ) -> tuple[torch.Tensor, ...]:
        """(log-probabilities, entropies) of the targets of a pack, or (values,) of a critic; each [n] float32."""
        hidden = self.hidden(tokens[None], positions[None], layout)[0]
        if self.value_head is not None:
            return (
                nn.functional.linear(hidden.float(), self.value_head.weight.float(), self.value_head.bias.float())[
                    :, 0
                ],
            )
        head = self.output_head
        return token_logprobs(hidden, head.weight, head.bias, targets, temperature, with_entropy)


class _Hidden:
    """Holds a module that belongs to another module, so that its parameters are not listed twice."""

    def __init__(self, module: nn.Module) -> None:
        self.of = module


def layers_of(causal: Any) -> nn.ModuleList:
    return causal.base_model.layers


def _watch(layer: nn.Module, scorer: Scorer, progress: Progress) -> None:
    """Counts a layer as done each time it runs, stops there if the call is cancelled, and recomputes the layer in the
    backward pass if the scorer's checkpointing is on."""
    inner = layer.forward

    def counted(*args: Any, **kwargs: Any) -> Any:
        progress.tick()
        return inner(*args, **kwargs)

    def forward(*args: Any, **kwargs: Any) -> Any:
        if scorer.checkpointing and torch.is_grad_enabled():
            out = torch.utils.checkpoint.checkpoint(
                counted, *args, use_reentrant=False, preserve_rng_state=False, **kwargs
            )
        else:
            out = counted(*args, **kwargs)
        first = out[0] if isinstance(out, tuple) else out
        if first.requires_grad:
            first.register_hook(lambda _: progress.tick())
        return out

    layer.forward = forward  # type: ignore[method-assign]
