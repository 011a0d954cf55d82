"""The documents that commit the record: manifests and heads. Fields that a later minor version of the format has added
are ignored."""

import json
import re
from dataclasses import dataclass
from typing import Any

from ropewalk.place import ABSENT, Place, parse_manifest_key

MAJOR = 1
"""The major version of the format that this package reads."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_LASTING = re.compile(r"(runs/run=[a-z0-9][a-z0-9._-]*|warmstarts/[0-9a-f]{64})/checkpoints/0+-[0-9a-f]+/[^/]+")
_CHECKPOINT = re.compile(r"(runs/run=[a-z0-9][a-z0-9._-]*|warmstarts/[0-9a-f]{64})/checkpoints/[A-Za-z0-9_-]+/")


@dataclass(frozen=True)
class Ref:
    """Names an object: its key and the SHA-256 of its bytes."""

    key: str
    digest: str


@dataclass(frozen=True)
class Shard:
    """One data shard."""

    key: str
    table: str
    digest: str
    bytes: int
    rows: int


@dataclass(frozen=True)
class CheckpointFile:
    """One file of a checkpoint."""

    name: str
    digest: str
    bytes: int
    at: str | None = None
    """The key of another checkpoint's file that holds the bytes; None if they are under the prefix."""


@dataclass(frozen=True)
class CheckpointInfo:
    """A checkpoint's files under one prefix."""

    prefix: str
    """Ends in a slash."""
    digest: str
    """SHA-256 over the sorted lines "name sha256" of the files that make the policy."""
    files: tuple[CheckpointFile, ...]
    weights: str | None = None
    """The weights digest: over the tensors only, independent of file names; None in records of earlier versions."""


@dataclass(frozen=True)
class Manifest:
    """Commits what was made at a place."""

    place: Place
    schema_version: int
    code: str
    """Digest of the program that made it."""
    config: str
    """Digest of the resolved recipe."""
    inputs: tuple[Ref, ...]
    """The manifests that the stage read."""
    shards: tuple[Shard, ...]
    parts: tuple[Ref, ...]
    """The shard manifests that a stage manifest commits, in the order of their shards."""
    checkpoint: CheckpointInfo | None
    stats: dict[str, float]
    note: dict[str, str]


@dataclass(frozen=True)
class Head:
    """The stage manifests that a step's update consumed."""

    run: str
    step: str
    stages: dict[str, tuple[Ref, ...]]
    owner: str
    """The run that has made the step: of a step that a fork shares, another one."""

    def generation(self, stage: str) -> int:
        """The generation of a stage that the update consumed; 0 for a stage that it did not consume."""
        places = (parse_manifest_key(ref.key) for ref in self.stages.get(stage, ()))
        return next((p.gen for p in places if p is not None), 0)


def decode_manifest(data: bytes) -> Manifest:
    """Reads a manifest; a ValueError names the field at fault."""
    doc = _document(data)
    place = Place(
        run=_text(doc, "run"),
        step=_text(doc, "step"),
        stage=_text(doc, "stage"),
        draw=_number(doc, "try", ABSENT),
        turn=_number(doc, "turn", ABSENT),
        shard=_number(doc, "shard", ABSENT),
        gen=_number(doc, "gen"),
        warm=_text(doc, "warm"),
    )
    return Manifest(
        place=place,
        schema_version=_number(doc, "schema_version", 1),
        code=_digest(doc, "code"),
        config=_digest(doc, "config"),
        inputs=_refs(doc, "inputs"),
        shards=tuple(_shard(place, d) for d in _objects(doc, "shards")),
        parts=_refs(doc, "parts"),
        checkpoint=_checkpoint(doc),
        stats={str(k): float(v) for k, v in _object(doc, "stats").items()},
        note={str(k): str(v) for k, v in _object(doc, "note").items()},
    )


def decode_head(data: bytes) -> Head:
    """Reads a head; a ValueError names the field at fault."""
    doc = _document(data)
    run, step = _text(doc, "run"), _text(doc, "step")
    owner = _text(doc, "from") if "from" in doc else run
    stages = {name: _refs(_object(doc, "stages"), name) for name in _object(doc, "stages")}
    for stage, refs in stages.items():
        for ref in refs:
            p = parse_manifest_key(ref.key)
            if p is None or (p.run, p.step, p.stage, p.shard) != (owner, step, stage, ABSENT):
                raise ValueError(f"stage {stage}: {ref.key} is not a stage manifest of this step")
    return Head(run, step, stages, owner)


def _document(data: bytes) -> dict[str, Any]:
    try:
        doc = json.loads(data)
    except ValueError as e:
        raise ValueError(f"is not JSON: {e}") from e
    if not isinstance(doc, dict):
        raise ValueError("is not a JSON object")
    check_major(doc.get("version"), doc.get("schema_version", 0))
    return doc


def check_major(major: object, minor: object) -> None:
    """Refuses a later major version of the format."""
    if major != MAJOR:
        raise ValueError(
            f"format version {major}.{minor} is not supported by this package, which reads {MAJOR}.x; upgrade ropewalk"
        )


def _shard(place: Place, doc: dict[str, Any]) -> Shard:
    key, table, digest = _text(doc, "key"), _text(doc, "table"), _digest(doc, "digest")
    shard = Shard(key, table, digest, _number(doc, "bytes"), _number(doc, "rows"))
    if shard.key != place.data_key(shard.table, shard.digest):
        raise ValueError(f"field shards: {shard.key} is not the key of a shard of this place")
    return shard


def _checkpoint(doc: dict[str, Any]) -> CheckpointInfo | None:
    if doc.get("checkpoint") is None:
        return None
    inner = _object(doc, "checkpoint")
    prefix = _text(inner, "prefix")
    if not _CHECKPOINT.fullmatch(prefix):
        raise ValueError(f"field checkpoint: {prefix!r} is not the prefix of a checkpoint")
    files = tuple(
        CheckpointFile(
            _text(f, "name"), _digest(f, "digest"), _number(f, "bytes"), _text(f, "at") if "at" in f else None
        )
        for f in _objects(inner, "files")
    )
    for f in files:
        if f.at is not None and not (_LASTING.fullmatch(f.at) and f.at.endswith("/" + f.name)):
            raise ValueError(f"field checkpoint: {f.at!r} is not the key of a file that pruning never deletes")
        if not _FILE_NAME.fullmatch(f.name):
            raise ValueError(f"field checkpoint: {f.name!r} is not the name of a plain file")
    weights = _digest(inner, "weights") if "weights" in inner else None
    return CheckpointInfo(prefix, _digest(inner, "digest"), files, weights)


def _refs(doc: dict[str, Any], field: str) -> tuple[Ref, ...]:
    return tuple(Ref(_text(d, "key"), _digest(d, "digest")) for d in _objects(doc, field))


def _objects(doc: dict[str, Any], field: str) -> list[dict[str, Any]]:
    value = doc.get(field)
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise ValueError(f"field {field}: want a list of objects")
    return value


def _object(doc: dict[str, Any], field: str) -> dict[str, Any]:
    value = doc.get(field)
    if not isinstance(value, dict):
        raise ValueError(f"field {field}: want an object")
    return value


def _text(doc: dict[str, Any], field: str) -> str:
    value = doc.get(field)
    if not isinstance(value, str):
        raise ValueError(f"field {field}: want text")
    return value


def _digest(doc: dict[str, Any], field: str) -> str:
    value = _text(doc, field)
    if not _DIGEST.fullmatch(value):
        raise ValueError(f"field {field}: want a digest, got {value!r}")
    return value


def _number(doc: dict[str, Any], field: str, least: int = 0) -> int:
    value = doc.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"field {field}: want a whole number of at least {least}, got {value!r}")
    return value
