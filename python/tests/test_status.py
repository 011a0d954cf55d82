"""The status of runs, derived as the commands derive it."""

import fcntl
import json
import struct
from pathlib import Path
from typing import Any

import pytest

import ropewalk
from ropewalk.status import Status, derive

CASES = Path(__file__).parents[2] / "analysis" / "status" / "testdata" / "cases.json"


@pytest.mark.parametrize("case", json.loads(CASES.read_text()), ids=lambda c: c["name"])
def test_the_commands_cases(case: dict[str, Any]) -> None:
    assert derive(case["facts"]) == Status(case["state"], case.get("kind", ""), case.get("reason", ""))


def put(root: Path, key: str, doc: dict[str, Any]) -> None:
    path = root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(doc))


def test_notes_and_the_stack(tmp_path: Path) -> None:
    bucket = tmp_path / "s3" / "ropewalk"
    entry = {"recipe": "q", "seed": 1, "steps": 4, "created": "2026-01-02T03:04:05Z"}
    put(bucket, "catalogue/a.json", {"run": "a", **entry})
    put(bucket, "requests/b.json", {"run": "b", **entry, "created": "2026-01-01T03:04:05Z"})

    def listed() -> list[tuple[str, str, str]]:
        return [(r.run, r.status, r.failure_kind) for r in ropewalk.runs(tmp_path)]

    assert listed() == [("a", "open", ""), ("b", "queued", "")]
    put(bucket, "states/a/20260102T030405.000000Z-parked.json", {"state": "parked", "kind": "no_space"})
    assert listed()[0] == ("a", "parked", "no_space")
    put(bucket, "states/a/20260102T030406.000000Z-running.json", {"state": "running"})
    assert listed()[0] == ("a", "running", "")
    (tmp_path / "servers").mkdir()
    with (tmp_path / "servers" / "temporal.lock").open("w") as lock:
        assert listed()[0] == ("a", "interrupted", ""), "the stack has run here and does not now"
        whole = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
        fcntl.fcntl(lock, fcntl.F_OFD_SETLK, whole)
        assert listed()[0] == ("a", "running", "")


def test_a_damaged_note(tmp_path: Path) -> None:
    entry = {"run": "a", "recipe": "q", "seed": 1, "steps": 4, "created": "2026-01-02T03:04:05Z"}
    put(tmp_path, "catalogue/a.json", entry)
    put(tmp_path, "states/a/20260102T030405.000000Z-parked.json", {"kind": "no_space"})
    with pytest.raises(ropewalk.DamagedError, match="it is not a note of a run's state"):
        ropewalk.runs(tmp_path)
