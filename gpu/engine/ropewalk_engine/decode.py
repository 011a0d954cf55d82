"""One new token of every row through a model's layers, over a cache of keys and values.

The weights belong to transformers' modules (Qwen2, Qwen3, Llama, Mistral), and the arithmetic is that of the modules.
There are fewer operators, because a step of a small model costs little more than starting them. Matrices that take the
same input become one product, queries and keys are normed and rotated together, and angles are looked up. Layers that
are not plain linear layers are called unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import embedding, rms_norm, silu

from . import head
from .cache import Cache
from .products import Add, Map, adding, joined, product
from .progress import Progress
from .scorer import Scorer, layers_of

# Weights are copied, joined or packed if all weights of the model take at most this many bytes. In larger models the
# products themselves take so long that copies gain nothing.
_COPY_BYTES = 1 << 30


@dataclass(frozen=True)
class _Layer:
    norm: Map
    project: Map  # to queries, keys and values, one after another
    head_norm: Map | None  # of queries and keys [n, heads, d]; None where they are not normed
    add_attention: Add  # (residual, heads' outputs) → residual
    feed_norm: Map
    gate: Map  # to the gates and their inputs, one after another
    activation: Map
    add_feed: Add
    window: int | None
    scale: float


class Decoder:
    """Steps of one model over one cache. It holds copies of weights, so each call makes a new one."""

    def __init__(self, scorer: Scorer, positions: int, progress: Progress) -> None:
        self._model = scorer.causal.base_model
        self._progress = progress
        c = scorer.causal.config.get_text_config()
        self._queries, self._keys = c.num_attention_heads, c.num_key_value_heads
        copy = sum(p.nbytes for p in scorer.causal.parameters()) <= _COPY_BYTES
        self._layers = [_layer(x, self._queries, self._keys, copy) for x in layers_of(scorer.causal)]
        self.logits = _logits(scorer.output_head, copy)
        self.widest = max(
            p.numel() for p in layers_of(scorer.causal)[0].parameters()
        )  # numbers of a layer's largest matrix
        self._norm = _norm(self._model.norm)
        self._embedding = self._model.embed_tokens.weight
        self._rotation = _rotation(self._model.rotary_emb, positions, self._embedding)

    def step(self, cache: Cache, token: torch.Tensor, at: torch.Tensor, length: int) -> torch.Tensor:
        """Returns the hidden states [n, H] after the final norm for tokens [n] at positions [n], all below `length`.
        Puts their keys and values into the cache."""
        x = embedding(token, self._embedding)
        cos, sin = self._rotation(at)
        view = cache.view(at, length)
        for i, layer in enumerate(self._layers):
            self._progress.tick()
            h = layer.project(layer.norm(x)).unflatten(1, (self._queries + 2 * self._keys, -1))
            turned = self._turn(h[:, : self._queries + self._keys], layer, cos, sin)
            view.append(i, turned[:, self._queries :], h[:, self._queries + self._keys :])
            x = layer.add_attention(x, view.attend(i, turned[:, : self._queries], layer.scale, layer.window))
            gate, up = layer.gate(layer.feed_norm(x)).chunk(2, 1)
            x = layer.add_feed(x, layer.activation(gate) * up)
        return self._norm(x)

    def _turn(self, x: torch.Tensor, layer: _Layer, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Queries and keys [n, heads, d], normed where the model norms them and rotated by their positions."""
        if layer.head_norm is not None:
            x = layer.head_norm(x)
        a, b = x.chunk(2, 2)
        return torch.addcmul(x * cos, torch.cat((b, a), 2), sin)


def _layer(layer: Any, queries: int, keys: int, copy: bool) -> _Layer:
    a, m = layer.self_attn, layer.mlp
    head_norm = None
    if hasattr(a, "q_norm"):
        head_norm = _scaled(
            torch.cat((a.q_norm.weight.expand(queries, -1), a.k_norm.weight.expand(keys, -1))),
            a.q_norm.variance_epsilon,
        )
    return _Layer(
        norm=_norm(layer.input_layernorm), project=joined((a.q_proj, a.k_proj, a.v_proj), copy), head_norm=head_norm,
        add_attention=adding(a.o_proj, copy), feed_norm=_norm(layer.post_attention_layernorm),
        gate=joined((m.gate_proj, m.up_proj), copy),
        activation=silu if isinstance(m.act_fn, nn.SiLU) else m.act_fn, add_feed=adding(m.down_proj, copy),
        # Of the four architectures only Mistral's layers leave the window to the configuration.
        window=getattr(a, "sliding_window", getattr(a.config, "sliding_window", None)), scale=a.scaling,
    )  # fmt: skip


def _logits(m: Any, copy: bool) -> Map:
    """Maps states [n, H] to logits [n, V] in float32."""
    if m.weight.dtype != torch.float32:
        return lambda x: head.logits(x, m.weight, m.bias, 1.0)
    return product(m.weight, m.bias, copy)


def _norm(m: Any) -> Map:
    return _scaled(m.weight, m.variance_epsilon)


def _scaled(weight: torch.Tensor, epsilon: float) -> Map:
    """RMS norm over the last axis, times the weight."""
    if weight.is_cuda or weight.dtype != torch.float32:
        return lambda x: rms_norm(x, weight.shape[-1:], None, epsilon) * weight
    # On a CPU PyTorch has no kernel of its own for this norm.
    eps, mean = torch.tensor(epsilon), 1 / weight.shape[-1]

    def norm(x: torch.Tensor) -> torch.Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x * torch.addcmul(eps, length, length, value=mean).rsqrt_() * weight

    return norm


def _rotation(
    rotary: Any, positions: int, like: torch.Tensor
) -> Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """Maps positions [n] to cosines and sines [n, 1, d]. Half of the sines are negative, because _turn adds."""

    def angles(at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        cos, sin = rotary(like, at[None])
        half = sin.shape[2] // 2
        return cos[0][:, None], torch.cat((-sin[0, :, :half], sin[0, :, half:]), 1)[:, None]

    if "dynamic" in rotary.rope_type or rotary.rope_type == "longrope":
        return angles  # angles that depend on the longest row of the batch
    cos, sin = angles(torch.arange(positions, device=like.device))
    return lambda at: (cos[at], sin[at])
