"""Where a run is: the derivation that the commands use too (analysis/status in the Go tree)."""

import fcntl
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from ropewalk.bucket import Bucket
from ropewalk.errors import DamagedError

State = Literal[
    "queued", "running", "paused", "parked", "interrupted", "stopped_early", "cancelled", "failed", "done", "open"
]
"""queued: requested, nothing is committed. running: its workflow is open. paused: waits between two steps. parked:
waits for a decision because a stage has failed. interrupted: its command or its servers have ended. stopped_early:
finished after fewer steps than its recipe asked for. cancelled: a person ended it. failed: its workflow has failed.
done: its last evaluation is committed. open: not finished, and nothing more is known."""


@dataclass(frozen=True)
class Status:
    """A run's state and, where something failed or ended it, what did."""

    state: State
    kind: str = ""
    """The kind of the failure of a parked or failed run."""
    reason: str = ""
    """What failed, or who ended the run."""


def derive(facts: Mapping[str, Any]) -> Status:
    """Derives a run's status from facts, which have the fields of the Go type status.Facts."""
    finished, note = bool(facts.get("finished")), facts.get("note")
    workflow, server = facts.get("workflow"), facts.get("server", "")
    noted = note["state"] if note else ""
    if workflow is not None and not workflow.get("ended"):
        return _of_open(facts, workflow)
    if finished and noted == "parked" and workflow is None:
        return _as_noted(note)
    if finished:
        return _finished(facts)
    if facts.get("queued"):
        return Status("queued")
    if workflow is not None:
        return _of_closed(note, workflow)
    if note is None:
        return Status("interrupted" if server else "open")
    if noted == "running" and server or noted in ("paused", "parked") and server == "asked":
        return Status("interrupted")
    return _as_noted(note)


def _of_open(facts: Mapping[str, Any], workflow: Mapping[str, Any]) -> Status:
    kind, note = workflow.get("kind", ""), facts.get("note")
    if kind:
        if note and note["state"] == "parked" and note.get("kind") == kind:
            return _as_noted(note)
        return Status("parked", kind)
    if facts.get("finished"):
        return _finished(facts)
    return Status("paused" if workflow.get("paused") else "running")


def _of_closed(note: Mapping[str, Any] | None, workflow: Mapping[str, Any]) -> Status:
    noted, ended = note["state"] if note else "", workflow["ended"]
    if ended == "failed":
        return _as_noted(note) if noted == "failed" else Status("failed", workflow.get("kind", ""))
    if noted in ("cancelled", "interrupted"):
        return _as_noted(note)
    if ended == "completed":
        why = "its workflow has completed, and its last evaluation is not in the record"
        return Status("interrupted", reason=why)
    if ended == "cancelled":
        return Status("cancelled")
    return Status("interrupted", reason="its workflow was terminated")


def _finished(facts: Mapping[str, Any]) -> Status:
    return Status("stopped_early" if facts.get("planned", 0) < facts.get("asked", 0) else "done")


def _as_noted(note: Mapping[str, Any] | None) -> Status:
    assert note is not None
    return Status(cast(State, note["state"]), note.get("kind", ""), note.get("reason", ""))


def latest_note(bucket: Bucket, run: str) -> dict[str, Any] | None:
    """Reads the latest note of a run's state; None if there is none."""
    keys = bucket.keys(f"states/{run}/")
    if not keys:
        return None
    try:
        note = json.loads(bucket.get(keys[-1]) or b"")
        return {"state": str(note["state"]), "kind": str(note.get("kind", "")), "reason": str(note.get("reason", ""))}
    except (ValueError, KeyError, TypeError) as e:
        raise DamagedError(keys[-1], f"it is not a note of a run's state: {e!r}") from e


def known_server(bucket: Bucket) -> str:
    """Returns "stopped" if the bucket belongs to a local stack whose Temporal does not run; the package asks no server,
    so that it otherwise knows nothing ("")."""
    if not bucket.local:
        return ""
    lock = Path(bucket.root).parent.parent / "servers" / "temporal.lock"
    try:
        with lock.open("rb") as held:
            fcntl.lockf(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return ""  # its supervisor holds the lock all its life
    except OSError:
        return ""  # a copy of a bucket, which no stack serves
    return "stopped"
