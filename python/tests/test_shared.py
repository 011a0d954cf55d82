"""Checkpoints of an adapter: their base lies where the warm start has put it."""

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ropewalk
from ropewalk.manifest import _checkpoint

BASE = "warmstarts/" + "a" * 64 + "/checkpoints/000000-0123456789abcdef/model.safetensors"
PREFIX = "runs/run=r/checkpoints/000001-fedcba9876543210/"
OBJECTS = {BASE: b"base", PREFIX + "adapter_model.safetensors": b"adapter"}


def document(at: str) -> dict[str, Any]:
    def file(name: str, key: str) -> dict[str, Any]:
        return {"name": name, "digest": hashlib.sha256(OBJECTS[key]).hexdigest(), "bytes": len(OBJECTS[key])}

    files = [
        file("adapter_model.safetensors", PREFIX + "adapter_model.safetensors"),
        {**file("model.safetensors", BASE), "at": at},
    ]
    return {"checkpoint": {"prefix": PREFIX, "digest": "b" * 64, "files": files}}


def test_a_shared_file_is_read_where_it_lies(tmp_path: Path) -> None:
    info = _checkpoint(document(BASE))
    assert info is not None
    bucket = SimpleNamespace(get=OBJECTS.get, local=True)
    reader = SimpleNamespace(bucket=bucket, blob=lambda key, digest: OBJECTS[key])
    c = ropewalk.checkpoint.Checkpoint(reader, info)  # type: ignore[arg-type]
    folder = c.download(tmp_path / "policy")
    copied = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert copied == {"adapter_model.safetensors": b"adapter", "model.safetensors": b"base"}
    with pytest.raises(ropewalk.RecordError, match=r"shares model.safetensors with another: download\(folder\)"):
        _ = c.path


@pytest.mark.parametrize("at", [PREFIX + "model.safetensors", BASE.replace("model", "other"), "../model.safetensors"])
def test_what_pruning_may_take_is_not_shared(at: str) -> None:
    with pytest.raises(ValueError, match="is not the key of a file that pruning never deletes"):
        _checkpoint(document(at))
