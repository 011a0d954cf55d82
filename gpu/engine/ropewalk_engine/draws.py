"""Random numbers of rows and the choice of tokens by inversion; vectorised over rows.

Draw t of a row is a function of the row's stream and t alone (SplitMix64, Steele, Lea & Flood 2014), so a row does
not depend on the batch in which it is generated.
"""

from __future__ import annotations

import torch

GOLDEN = 0x9E3779B97F4A7C15
_BLOCK = 256  # entries of a distribution that are added up at once
_SHORT = 1 << 13  # on a CPU shorter distributions are added up entry by entry


def signed(v: int) -> int:
    """The int64 with the same bits."""
    v &= (1 << 64) - 1
    return v - (1 << 64) if v >> 63 else v


def _shift(x: torch.Tensor, n: int) -> torch.Tensor:
    """Logical right shift of the 64 bits of an int64."""
    return (x >> n) & ((1 << (64 - n)) - 1)


def uniform(streams: torch.Tensor, t: int) -> torch.Tensor:
    """Draw t of each stream (an int64 with the stream's bits), in [0, 1) as float64 with 53 bits."""
    x = streams + signed((t + 1) * GOLDEN)
    x = (x ^ _shift(x, 30)) * signed(0xBF58476D1CE4E5B9)
    x = (x ^ _shift(x, 27)) * signed(0x94D049BB133111EB)
    x = x ^ _shift(x, 31)
    return _shift(x, 11).double() * 2.0**-53


def uniforms(streams: torch.Tensor, t: int, count: int) -> torch.Tensor:
    """[count, streams]: draws t, t + 1, … of each stream. A stream advanced by i steps begins with its draw i."""
    steps = torch.arange(count, device=streams.device) * (GOLDEN - (1 << 64))
    return uniform(streams + steps[:, None], t)


def running(x: torch.Tensor) -> torch.Tensor:
    """Running sums along rows. On a GPU PyTorch's scan is never deterministic; a product with ones is."""
    if x.is_cuda and torch.are_deterministic_algorithms_enabled():
        return x @ torch.ones(x.shape[1], x.shape[1], dtype=x.dtype, device=x.device).triu()
    return x.cumsum(1)


def invert(weights: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """The first id whose cumulative share of the weights [rows, V] (≥ 0) exceeds u [rows]. Sums are in float64."""
    if weights.is_cuda or weights.shape[1] > _SHORT:
        return _invert_by_blocks(weights, u)
    cumulative = weights.cumsum(1, dtype=torch.float64)
    # If the weights are NaN, the result is not one of the ids.
    return torch.searchsorted(cumulative, _threshold(u, cumulative[:, -1:]), right=True)[:, 0].clamp_(
        max=weights.shape[1] - 1
    )


def _threshold(u: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """[rows, 1]; below the total even if u·total rounds up to it, so that an id with a positive weight is found."""
    return torch.minimum(u[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))


def _invert_by_blocks(weights: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Adds up blocks first, then the entries of the block that holds the threshold."""
    rows, v = weights.shape
    blocks = -(-v // _BLOCK)
    padded = torch.nn.functional.pad(weights, (0, blocks * _BLOCK - v)) if v % _BLOCK else weights
    by_block = padded.view(rows, blocks, _BLOCK)
    before = running(by_block.sum(2, dtype=torch.float64))
    threshold = _threshold(u, before[:, -1:])
    block = torch.searchsorted(before, threshold, right=True).clamp_(max=blocks - 1)
    inside = by_block.gather(1, block[:, :, None].expand(-1, -1, _BLOCK))[:, 0].double()
    base = before.gather(1, block) - inside.sum(1, keepdim=True)
    cumulative = running(inside) + base
    # The block's own sum and its cumulative sum may round differently. Then its last id with a weight is taken.
    last = (_BLOCK - 1 - (inside > 0).flip(1).to(torch.uint8).argmax(1, keepdim=True)).clamp_(min=0)
    offset = torch.searchsorted(cumulative, threshold, right=True)
    return (block * _BLOCK + torch.minimum(offset, last))[:, 0]
