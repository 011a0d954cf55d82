"""The safetensors format: header length (uint64, little-endian), JSON header, data that the tensors tile.

The reader is strict: it checks every size before it slices anything. Bodies and files both use it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

MAX_HEADER = 100_000_000

DTYPES: dict[str, torch.dtype] = {
    "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I32": torch.int32, "U64": torch.int64, "U8": torch.uint8,  # U64 as the same bits in int64
}  # fmt: skip
FLOATS = ("F32", "F16", "BF16")


class FormatError(ValueError):
    """The bytes are not a safetensors file."""


@dataclass(frozen=True)
class Entry:
    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int  # from the start of the data, in bytes
    end: int


@dataclass(frozen=True)
class Layout:
    entries: list[Entry]  # in the order of their data
    metadata: dict[str, str]
    data_at: int  # where the data begin, in bytes


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise FormatError("a name occurs twice in the header")
    return out


def _natural(v: Any) -> bool:
    return type(v) is int and 0 <= v < 1 << 62


def _entry(name: str, e: Any) -> Entry:
    if not isinstance(e, dict) or set(e) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"entry {name!r} is not dtype, shape and data_offsets")
    dtype, shape, at = e["dtype"], e["shape"], e["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise FormatError(f"tensor {name!r} has dtype {dtype!r}; {', '.join(DTYPES)} are read")
    if not isinstance(shape, list) or not all(_natural(d) for d in shape) or len(shape) > 8:
        raise FormatError(f"tensor {name!r} has shape {shape!r}")
    if not isinstance(at, list) or len(at) != 2 or not all(_natural(x) for x in at):
        raise FormatError(f"tensor {name!r} has data_offsets {at!r}")
    return Entry(name, dtype, tuple(shape), at[0], at[1])


def parse(buffer: Any, size: int) -> Layout:
    """Reads the header of a file of size bytes. The tensors must tile the data without gap or overlap."""
    if size < 8:
        raise FormatError(f"{size} bytes are too short for a header")
    (n,) = struct.unpack_from("<Q", buffer)
    if n > MAX_HEADER or n > size - 8:
        raise FormatError(f"a header of {n} bytes in a file of {size}")
    try:
        raw = json.loads(bytes(buffer[8 : 8 + n]).decode("utf-8"), object_pairs_hook=_unique)
    except FormatError:
        raise
    except (ValueError, RecursionError) as e:
        raise FormatError(f"the header is no JSON object: {e}") from None
    if not isinstance(raw, dict):
        raise FormatError("the header is no JSON object")
    metadata = raw.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FormatError("__metadata__ does not map strings to strings")
    entries = sorted((_entry(k, v) for k, v in raw.items()), key=lambda e: (e.begin, e.end, e.name))
    _tile(entries, size - 8 - n)
    return Layout(entries, metadata, 8 + n)


def _tile(entries: list[Entry], size: int) -> None:
    at = 0
    for e in entries:
        want = DTYPES[e.dtype].itemsize
        for d in e.shape:
            want *= d
        if e.begin != at or e.end > size or e.end - e.begin != want:
            raise FormatError(
                f"tensor {e.name!r} of {want} bytes lies at [{e.begin}, {e.end}), "
                f"expected to begin at {at} in {size} bytes of data"
            )
        at = e.end
    if at != size:
        raise FormatError(f"tensors cover {at} of {size} bytes of data")


def view(buffer: Any, layout: Layout, e: Entry) -> torch.Tensor:
    """The tensor in the buffer, without a copy if it is aligned."""
    dtype = DTYPES[e.dtype]
    if e.begin == e.end:
        return torch.empty(e.shape, dtype=dtype)
    begin = layout.data_at + e.begin
    if begin % dtype.itemsize:
        buffer, begin = bytearray(buffer[begin : layout.data_at + e.end]), 0
    count = (e.end - e.begin) // dtype.itemsize
    return torch.frombuffer(buffer, dtype=dtype, count=count, offset=begin).reshape(e.shape)


def header(tensors: Iterable[tuple[str, str, tuple[int, ...]]], metadata: Mapping[str, str] | None = None) -> bytes:
    """The length and the header of a file of (name, dtype, shape), padded with spaces to 8 bytes."""
    out: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    for name, dtype, shape in tensors:
        size = DTYPES[dtype].itemsize
        for d in shape:
            size *= d
        out[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    raw = json.dumps(out, separators=(",", ":"), ensure_ascii=False).encode()
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw


def raw_bytes(t: torch.Tensor) -> memoryview:
    """The bytes of a contiguous CPU tensor, without a copy."""
    return memoryview(t.detach().reshape(-1).view(torch.uint8).numpy())
