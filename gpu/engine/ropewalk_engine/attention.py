"""Attention over packed rows, installed into transformers' models by name.

In training and prefill the rows of a pack are stored one after another, and no row may see another. Neighbouring rows
of similar length form a *bucket*, which is one causal attention over [rows, longest]. The padding follows each row,
where no causal query of that row looks, so no mask is needed. On CUDA in half precision PyTorch's variable-length
kernel takes the whole pack instead. cache.py has the attention over a cache.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

NAME = "ropewalk"  # attn_implementation of every model here
_LOOSE = 0.75  # a bucket takes rows down to this share of its longest
_SHORT = 32  # rows up to this length share a bucket whatever their lengths


@dataclass(frozen=True)
class Bucket:
    begin: int  # of its tokens in the pack
    rows: int
    longest: int
    tokens: int
    pad: torch.Tensor | None  # [rows·longest] index of each slot's token; None where no row is shorter
    unpad: torch.Tensor | None  # [tokens] index of each token's slot


@dataclass
class Packing:
    """The layout of one pack's rows. `store` receives each layer's keys and values [heads, n, d]."""

    lengths: list[int]  # longest first
    cumulative: torch.Tensor  # [rows + 1] I32 on the device
    buckets: list[Bucket]
    store: Callable[[int, torch.Tensor, torch.Tensor], None] | None = None


def pack(lengths: list[int], device: torch.device) -> Packing:
    """Plans rows of the given lengths, which must not increase."""
    buckets, first, begin = [], 0, 0
    while first < len(lengths):
        longest, last = lengths[first], first
        while last < len(lengths) and (lengths[last] >= _LOOSE * longest or longest <= _SHORT):
            last += 1
        buckets.append(_bucket(begin, lengths[first:last], device))
        begin, first = begin + buckets[-1].tokens, last
    cumulative = torch.tensor([0, *lengths], dtype=torch.int64).cumsum(0).to(torch.int32).to(device)
    return Packing(lengths, cumulative, buckets)


def _bucket(begin: int, lengths: list[int], device: torch.device) -> Bucket:
    longest, tokens = lengths[0], sum(lengths)
    if lengths[-1] == longest:
        return Bucket(begin, len(lengths), longest, tokens, None, None)
    n = torch.tensor(lengths)
    start = n.cumsum(0) - n
    slot = torch.arange(longest)
    inside = slot < n[:, None]
    # An empty slot repeats the row's first token. Nothing reads its output.
    pad = torch.where(inside, start[:, None] + slot, start[:, None]).reshape(-1)
    unpad = inside.reshape(-1).nonzero().reshape(-1)
    return Bucket(begin, len(lengths), longest, tokens, pad.to(device), unpad.to(device))


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None, window: int | None) -> torch.Tensor:
    """[rows, heads, n, d]; key and value heads may be fewer."""
    if q.device.type == "cuda" and q.dtype == torch.float32 and k.shape[1] != q.shape[1]:
        # On CUDA the kernels for float32 do not support grouped heads.
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    grouped = k.shape[1] != q.shape[1]
    n = q.shape[2]
    if window is None or n <= window:
        return scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=grouped)
    at = torch.arange(n, device=q.device)
    mask = (at <= at[:, None]) & (at > at[:, None] - window)
    return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=grouped)


def _of_bucket(
    b: Bucket, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None, window: int | None
) -> torch.Tensor:
    def rows(x: torch.Tensor) -> torch.Tensor:
        part = x[0, :, b.begin : b.begin + b.tokens]
        if b.pad is not None:
            part = part.index_select(1, b.pad)
        return part.unflatten(1, (b.rows, b.longest)).transpose(0, 1)

    out = _causal(rows(q), rows(k), rows(v), scale, window).transpose(1, 2).flatten(0, 1)
    return out if b.unpad is None else out.index_select(0, b.unpad)


def _packed(
    p: Packing, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None, window: int | None
) -> torch.Tensor:
    """q, k, v [1, heads, n, d]; returns [1, n, heads, d]."""
    if len(p.buckets) > 1 and q.is_cuda and q.dtype != torch.float32 and (attention := varlen()) is not None:
        by_token = [x[0].transpose(0, 1) for x in (q, k, v)]
        return attention(*by_token, p.cumulative, p.lengths[0], scale, window)[None]
    parts = [_of_bucket(b, q, k, v, scale, window) for b in p.buckets]
    return (parts[0] if len(parts) == 1 else torch.cat(parts))[None]


@functools.cache
def varlen() -> Callable[..., torch.Tensor] | None:
    """PyTorch's variable-length attention if this version and device have it and it agrees with the plain kernel."""
    if torch.are_deterministic_algorithms_enabled():
        return None
    try:
        from torch.nn.attention.varlen import varlen_attn

        knows_groups = "enable_gqa" in inspect.signature(varlen_attn).parameters  # PyTorch 2.11 does not

        def call(
            q: torch.Tensor,
            k: torch.Tensor,
            v: torch.Tensor,
            cumulative: torch.Tensor,
            longest: int,
            scale: float | None,
            window: int | None,
        ) -> torch.Tensor:
            left = -1 if window is None else window - 1
            grouped: dict[str, Any] = {"enable_gqa": k.shape[1] != q.shape[1]}
            if not knows_groups:
                grouped, (k, v) = {}, (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
            return varlen_attn(
                q, k, v, cumulative, cumulative, longest, longest, scale=scale, window_size=(left, 0), **grouped
            )

        q = torch.linspace(-1, 1, 24 * 4 * 64, device="cuda").sin().view(24, 4, 64).bfloat16()
        got = call(q, q[:, :2], q[:, 2:], torch.tensor([0, 16, 24], dtype=torch.int32, device="cuda"), 16, None, None)
        want = torch.cat(
            [
                _causal(*(x[None].transpose(1, 2) for x in (q[s], q[s, :2], q[s, 2:])), None, None)[0].transpose(0, 1)
                for s in (slice(0, 16), slice(16, 24))
            ]
        )
        return call if torch.allclose(got, want, atol=2e-2, rtol=2e-2) else None
    except (ImportError, TypeError, ValueError, AssertionError, RuntimeError):
        return None


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    layout: Packing | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """transformers calls this in each attention layer. `layout` comes through the model's keyword arguments."""
    if layout is None:
        raise RuntimeError("the model does not hand its keyword arguments to its attention layers")
    if layout.store is not None:
        layout.store(module.layer_idx, key[0], value[0])
    return _packed(layout, query, key, value, scaling, sliding_window), None


@functools.cache
def install() -> None:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(NAME, attend)
