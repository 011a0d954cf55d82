"""Frames over a stream socket: magic, lengths, a JSON header, a body."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from .errors import ProtocolError

MAGIC = b"RWEP"
MAX_HEADER = 1 << 20
MAX_BODY = 4 << 30  # this engine's own bound; the format's is 16 GiB
_PREFIX = struct.Struct("<4sIQ")

Header = dict[str, Any]


def _read(sock: socket.socket, n: int) -> bytearray:
    """Reads exactly n bytes. EOFError if the stream ends before the first byte, ProtocolError if it ends later."""
    out = bytearray(n)
    view, at = memoryview(out), 0
    while at < n:
        got = sock.recv_into(view[at:], min(n - at, 1 << 24))
        if got == 0:
            raise EOFError if at == 0 else ProtocolError(f"the stream ends after {at} of {n} bytes")
        at += got
    return out


def _unique(pairs: list[tuple[str, Any]]) -> Header:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key occurs twice")
    return out


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


def parse_header(raw: bytes | bytearray) -> Header:
    """One JSON object in UTF-8, no duplicate keys, no NaN."""
    try:
        h = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as e:
        raise ProtocolError(f"the header is no JSON object: {e}") from None
    if not isinstance(h, dict):
        raise ProtocolError("the header is no JSON object")
    return h


def read_frame(sock: socket.socket) -> tuple[Header, bytearray]:
    """Reads the next frame. Raises EOFError if the stream ends between frames."""
    magic, h, b = _PREFIX.unpack(_read(sock, _PREFIX.size))
    if magic != MAGIC:
        raise ProtocolError(f"a frame begins with {magic!r}, not {MAGIC!r}")
    if not 2 <= h <= MAX_HEADER:
        raise ProtocolError(f"a header of {h} bytes")
    if b != 0 and not 8 <= b <= MAX_BODY:
        raise ProtocolError(f"a body of {b} bytes")
    try:
        header = parse_header(_read(sock, h))
        return header, _read(sock, b) if b else bytearray()
    except EOFError:
        raise ProtocolError("the stream ends within a frame") from None


def write_frame(sock: socket.socket, header: Header, body: list[bytes | memoryview] | None = None) -> None:
    raw = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    parts = body or []
    sock.sendall(_PREFIX.pack(MAGIC, len(raw), sum(len(p) for p in parts)) + raw)
    for p in parts:
        sock.sendall(p)
