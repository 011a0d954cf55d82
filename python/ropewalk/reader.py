"""Reads the objects that refs name and checks them against their digests."""

import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from ropewalk.bucket import Bucket
from ropewalk.errors import DamagedError
from ropewalk.manifest import Head, Manifest, Ref, Shard, decode_head, decode_manifest
from ropewalk.place import Place, parse_head_key

_FETCHES = 16  # how many objects are requested concurrently: each takes a round trip to the store

T = TypeVar("T")
R = TypeVar("R")


def each(f: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Calls f for every item, several at a time, and returns the results in the order of the items."""
    with ThreadPoolExecutor(_FETCHES) as pool:
        return list(pool.map(f, items))


@dataclass(frozen=True)
class Reader:
    """Reads one bucket's record. Safe for concurrent use."""

    bucket: Bucket

    def blob(self, key: str, digest: str) -> bytes:
        """Returns the bytes that a manifest or head names."""
        data = self.bucket.get(key)
        if data is None:
            raise DamagedError(key, "it is missing though a manifest lists it")
        got = hashlib.sha256(data).hexdigest()
        if got != digest:
            raise DamagedError(key, f"its {len(data)} bytes have the digest {got}, want {digest}")
        return data

    def shard(self, shard: Shard) -> bytes:
        """Returns a shard's bytes."""
        data = self.blob(shard.key, shard.digest)
        if len(data) != shard.bytes:
            raise DamagedError(shard.key, f"its manifest says {shard.bytes} bytes, but it has {len(data)}")
        return data

    def manifest(self, ref: Ref) -> Manifest:
        """Returns the manifest that a ref names."""
        return _manifest(ref.key, self.blob(ref.key, ref.digest))

    def with_parts(self, stages: list[Manifest]) -> list[Manifest]:
        """Returns stage manifests, each followed by its parts."""
        parts = iter(each(self.manifest, [ref for m in stages for ref in m.parts]))
        out: list[Manifest] = []
        for m in stages:
            out.append(m)
            out.extend(next(parts) for _ in m.parts)
        return out

    def lookup(self, place: Place) -> Manifest | None:
        """Returns the manifest of a place; None if nothing is committed there."""
        data = self.bucket.get(place.key)
        return None if data is None else _manifest(place.key, data)

    def heads(self, run: str) -> list[Head]:
        """Returns the heads of a run's numbered steps, in order."""
        keys = self.bucket.keys(f"runs/run={run}/heads/")
        numbered = [k for k in keys if (parse_head_key(k) or "").isdigit()]
        return sorted(each(self._head, numbered), key=lambda h: int(h.step))

    def _head(self, key: str) -> Head:
        data = self.bucket.get(key)
        if data is None:
            raise DamagedError(key, "it disappeared while it was read")
        try:
            head = decode_head(data)
        except ValueError as e:
            raise DamagedError(key, str(e)) from e
        if key != f"runs/run={head.run}/heads/step={head.step}.json":
            raise DamagedError(key, f"it is that of run {head.run} step {head.step}")
        return head


def _manifest(key: str, data: bytes) -> Manifest:
    try:
        m = decode_manifest(data)
    except ValueError as e:
        raise DamagedError(key, str(e)) from e
    if m.place.key != key:
        raise DamagedError(key, f"it is that of {m.place}")
    return m
