"""Which rows are computed together: rows of two tokens or more, dealt to ranks, packed by tokens.

Entry t of a row is read after its tokens 0…t−1. So the last token of a row is only a target, and a row of one token
needs no computation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .attention import Packing, pack


@dataclass
class Pack:
    inputs: torch.Tensor  # [n] I64
    targets: torch.Tensor  # [n] I64
    positions: torch.Tensor  # [n] I64, from 0 in each row
    layout: Packing
    at: torch.Tensor | None  # [n] I64 on the CPU: the flat entries that the outputs belong to; None for a dummy


def deal(lengths: list[int], ranks: int) -> list[list[int]]:
    """Rows for each rank, longest first, each to the rank with the fewest tokens so far."""
    shares: list[list[int]] = [[] for _ in range(ranks)]
    load = [0] * ranks
    for row in sorted((i for i, n in enumerate(lengths) if n > 1), key=lambda i: (-lengths[i], i)):
        rank = min(range(ranks), key=lambda r: (load[r], r))
        shares[rank].append(row)
        load[rank] += lengths[row] - 1
    return shares


def cut(rows: list[int], lengths: list[int], limit: int) -> list[list[int]]:
    """Packs of at most limit tokens. A longer row has a pack of its own."""
    out: list[list[int]] = []
    tokens = limit + 1
    for r in rows:
        n = lengths[r] - 1
        if tokens + n > limit:
            out.append([])
            tokens = 0
        out[-1].append(r)
        tokens += n
    return out


def gather(tokens: torch.Tensor, lengths: list[int], rows: list[int], device: torch.device) -> Pack:
    """The pack of the given rows of the flat tokens, longest first."""
    all_lengths = torch.tensor(lengths)
    start = (all_lengths.cumsum(0) - all_lengths)[rows]
    n = all_lengths[rows] - 1
    position, source = spread(start, n)
    flat = tokens.long()
    return Pack(
        flat[source].to(device), flat[source + 1].to(device), position.to(device),
        pack(n.tolist(), device), source + 1,
    )  # fmt: skip


def spread(start: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """For rows of n entries that begin at start: each entry's index in its row, and its index in the flat array."""
    total = int(n.sum())
    position = torch.arange(total) - torch.repeat_interleave(n.cumsum(0) - n, n)
    return position, torch.repeat_interleave(start, n) + position


def dummy(device: torch.device) -> Pack:
    """One extra token, with which a rank without rows takes part in the other ranks' collectives."""
    zero = torch.zeros(1, dtype=torch.int64, device=device)
    return Pack(zero, zero, zero, pack([1], device), None)
