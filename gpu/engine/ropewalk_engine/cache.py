"""Keys and values of the rows that are being generated, and attention of one new token per row over them."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.nn.functional import scaled_dot_product_attention

from .resident import Resident


@dataclass(frozen=True)
class CacheShape:
    layers: int
    heads: int
    width: int

    @staticmethod
    def of(r: Resident) -> CacheShape:
        c = r.scorer.causal.config.get_text_config()
        width = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        return CacheShape(c.num_hidden_layers, c.num_key_value_heads, width)

    def token_bytes(self, dtype: torch.dtype) -> int:
        return 2 * self.layers * self.heads * self.width * dtype.itemsize


class Cache:
    """Keys and values [slots, heads, capacity, d] of each layer."""

    def __init__(self, shape: CacheShape, slots: int, capacity: int, dtype: torch.dtype, device: torch.device) -> None:
        dims = (slots, shape.heads, capacity, shape.width)
        # Zeros, since entries behind a row's end are multiplied by a probability of zero.
        self.keys, self.values = (
            [torch.zeros(dims, dtype=dtype, device=device) for _ in range(shape.layers)] for _ in range(2)
        )
        self.capacity, self._shape = capacity, shape
        self._number(slots, device)

    def _number(self, slots: int, device: torch.device) -> None:
        # The index of the first token of each slot and head, over the tokens of all slots and heads.
        self._first = torch.arange(slots * self._shape.heads, device=device) * self.capacity
        self._tokens = torch.arange(self.capacity, device=device)

    def fill(self, layer: int, slot: torch.Tensor, position: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
        """Writes keys and values [heads, n, d] of n tokens to their slots and positions."""
        for cache, new in ((self.keys[layer], k), (self.values[layer], v)):
            cache[slot, :, position] = new.transpose(0, 1)

    def keep(self, slots: torch.Tensor) -> None:
        """Drops all other slots."""
        for caches in (self.keys, self.values):
            for layer in range(len(caches)):
                caches[layer] = caches[layer][slots]
        self._number(slots.shape[0], slots.device)

    def view(self, at: torch.Tensor, length: int) -> View:
        """The cache during a step at positions [slots]. No row has more than `length` tokens."""
        place = (self._first.view(-1, self._shape.heads) + at[:, None]).view(-1)
        return View(self, at, place, length, self._tokens[:length])


@dataclass
class View:
    cache: Cache
    at: torch.Tensor
    place: torch.Tensor  # [slots · heads] of the new tokens
    length: int
    tokens: torch.Tensor  # 0 … length − 1
    _masks: dict[int | None, torch.Tensor] = field(default_factory=dict)

    def append(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> None:
        """Writes the new tokens' keys and values [slots, heads, d]."""
        for cache, new in ((self.cache.keys[layer], k), (self.cache.values[layer], v)):
            cache.view(-1, cache.shape[3]).index_copy_(0, self.place, new.reshape(-1, cache.shape[3]))

    def attend(self, layer: int, q: torch.Tensor, scale: float, window: int | None) -> torch.Tensor:
        """Returns the outputs of attention [slots, heads · d] for queries [slots, heads, d]. The heads of a group share
        their keys."""
        keys, values = (x[layer][:, :, : self.length] for x in (self.cache.keys, self.cache.values))
        slots, heads = keys.shape[:2]
        if q.is_cuda or q.dtype != torch.float32:
            out = scaled_dot_product_attention(
                q.unflatten(1, (heads, -1)), keys, values, attn_mask=self._seen(window)[:, None, None], scale=scale
            )
            return out.reshape(slots, -1)
        # For few queries on a CPU, PyTorch's attention kernel takes twice the time of its parts.
        grouped = q.reshape(slots * heads, -1, q.shape[2])
        scores = torch.baddbmm(self._bias(window), grouped, keys.flatten(0, 1).transpose(1, 2), alpha=scale)
        return torch.bmm(scores.softmax(2), values.flatten(0, 1)).view(slots, -1)

    def _seen(self, window: int | None) -> torch.Tensor:
        """[slots, length]: the positions that each row's token sees."""
        if window not in self._masks:
            seen = self.tokens <= self.at[:, None]
            if window is not None:
                seen &= self.tokens > self.at[:, None] - window
            self._masks[window] = seen
        return self._masks[window]

    def _bias(self, window: int | None) -> torch.Tensor:
        """[slots · heads, 1, length]: 0 for the positions that are seen, −∞ for the rest."""
        if window not in self._masks:
            at = self.at.repeat_interleave(self.cache._shape.heads)[:, None]
            unseen = self.tokens > at
            if window is not None:
                unseen |= self.tokens <= at - window
            self._masks[window] = torch.zeros(unseen.shape).masked_fill_(unseen, -torch.inf)[:, None]
        return self._masks[window]
