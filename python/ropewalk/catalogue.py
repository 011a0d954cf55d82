"""Lists the runs of a record."""

import json
import math
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ropewalk.errors import DamagedError, URLError
from ropewalk.location import locate
from ropewalk.place import INIT, Place, parse_head_key, parse_manifest_key
from ropewalk.reader import Reader, each
from ropewalk.rows import read_rows
from ropewalk.status import State, derive, known_server, latest_note
from ropewalk.visible import lineage, owned

_PREFIX = "catalogue/"
_REQUESTS = "requests/"


@dataclass(frozen=True)
class RunInfo:
    """One run of the catalogue, with its progress."""

    run: str
    recipe: str
    seed: int
    steps: int
    """The number of steps that the recipe asked for at first; 0 if nothing is trained."""
    created: datetime
    steps_done: int
    """Steps with a head."""
    status: State
    """The run's state; `ropewalk.status.State` says which there are. The package asks no Temporal server: it goes by
    the record, by the latest note in it, and by whether the local stack runs."""
    success_before: float | None
    """Sampled success on held-out problems at the warm start, computed from the evaluation's rows."""
    success_after: float | None
    """The same after the last step."""
    steps_planned: int
    """The number of steps after the latest change by `ropewalk stop` or `set`."""
    failure_kind: str
    """The kind of the failure of a parked or failed run."""
    reason: str
    """What failed, or who ended the run."""


def runs(url: str | os.PathLike[str] = ".ropewalk") -> list[RunInfo]:
    """Lists the runs of a record, newest first. `open` describes the URLs; this one must not name a run."""
    bucket, named = locate(url)
    if named is not None:
        raise URLError(f"{url}: names one run; runs() takes the URL of a bucket")
    reader = Reader(bucket)
    listed = bucket.keys(_PREFIX)
    asked = [k for k in bucket.keys(_REQUESTS) if _PREFIX + k.removeprefix(_REQUESTS) not in listed]
    server = known_server(bucket)
    found = each(lambda key: _entry(reader, key, server), listed + asked)
    by_name = sorted(found, key=lambda r: r.run)
    return sorted(by_name, key=lambda r: r.created, reverse=True)


def _entry(reader: Reader, key: str, server: str) -> RunInfo:
    data = reader.bucket.get(key)
    try:
        doc = json.loads(data or b"")
        run, steps = str(doc["run"]), int(doc["steps"])
        created = datetime.fromisoformat(str(doc["created"]).replace("Z", "+00:00")).astimezone(timezone.utc)
        recipe, seed = str(doc["recipe"]), int(doc["seed"])
    except (ValueError, KeyError, TypeError) as e:
        raise DamagedError(key, f"it is not an entry of the catalogue: {e!r}") from e
    facts: dict[str, Any] = {"asked": steps, "planned": steps, "server": server}
    done, before, after = 0, None, None
    if key.startswith(_REQUESTS):
        facts["queued"] = True
    else:
        heads = (parse_head_key(k) for k in reader.bucket.keys(f"runs/run={run}/heads/"))
        done = sum(s not in (None, INIT) for s in heads)
        facts["planned"], facts["finished"] = _planned(reader, run, steps), done > 0
        facts["note"] = latest_note(reader.bucket, run)
        if steps > 0:
            before, measured = _success(reader, Place(run, INIT, "evaluate"))
            prepare = None if measured else reader.lookup(Place(run, INIT, "prepare"))
            if prepare is not None and "fork" in prepare.note:
                before, _ = _success(reader, owned(lineage(reader, prepare), Place(run, INIT, "evaluate")))
            after, facts["finished"] = _success(reader, Place(run, str(facts["planned"]), "evaluate"))
    status = derive(facts)
    return RunInfo(
        run, recipe, seed, steps, created, done, status.state, before, after, facts["planned"], status.kind,
        status.reason,
    )  # fmt: skip


def _planned(reader: Reader, run: str, steps: int) -> int:
    """Returns the number of steps after the latest change of the recipe."""
    if steps == 0:
        return 0
    places = [parse_manifest_key(k) for k in reader.bucket.keys(f"runs/run={run}/manifests/step={INIT}/amend/")]
    for place in sorted((p for p in places if p is not None), key=lambda p: p.draw, reverse=True):
        change = reader.lookup(place)
        if change is None or change.note.get("void"):
            continue  # it uses up its number and changes nothing
        for shard in change.shards:
            if shard.table == "documents":
                try:
                    return int(json.loads(reader.shard(shard))["steps"])
                except (ValueError, KeyError, TypeError) as e:
                    raise DamagedError(shard.key, f"it is not a recipe: {e!r}") from e
        raise DamagedError(place.key, "it names no resolved recipe")
    return steps


def _success(reader: Reader, place: Place) -> tuple[float | None, bool]:
    """Returns the mean over problems of the mean of their samples, None if there are none, and whether the evaluation
    is committed. The figure is computed from the rows, because the one in the manifest is not trusted."""
    m = reader.lookup(place)
    if m is None:
        return None, False
    rows = read_rows(reader, "evaluations", [m], ["problem_id", "greedy", "success"], place.run)
    tallies: dict[str, list[int]] = {}
    columns = (rows[name].to_pylist() for name in ("problem_id", "greedy", "success"))
    for problem, greedy, success in zip(*columns, strict=True):
        if not greedy:
            tally = tallies.setdefault(problem, [0, 0])
            tally[0] += success
            tally[1] += 1
    means = [solved / n for solved, n in tallies.values()]
    return math.fsum(means) / len(means) if means else None, True
