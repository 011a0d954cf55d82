"""The listing of a record's runs."""

import json
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

from ropewalk.errors import DamagedError, URLError
from ropewalk.location import locate
from ropewalk.place import INIT, Place, parse_head_key
from ropewalk.reader import Reader, each

_PREFIX = "catalogue/"


@dataclass(frozen=True)
class RunInfo:
    """One run of the catalogue and how far it has come."""

    run: str
    recipe: str
    seed: int
    steps: int
    """What the recipe plans; 0 where nothing is trained."""
    created: datetime
    steps_done: int
    """Steps with a head."""
    status: Literal["done", "open"]
    """done when the last evaluation is committed (for an import: its head); an open run goes on,
    waits for a worker or has failed."""
    success_before: float | None
    """Sampled success on held-out problems at the warm start."""
    success_after: float | None
    """The same at the end."""


def runs(url: str | os.PathLike[str] = ".ropewalk") -> list[RunInfo]:
    """Lists the runs of a record, newest first. The URL is one that open takes beside a run."""
    bucket, named = locate(url)
    if named is not None:
        raise URLError(f"{url}: names one run; runs lists those of a bucket")
    reader = Reader(bucket)
    found = each(lambda key: _entry(reader, key), bucket.keys(_PREFIX))
    by_name = sorted(found, key=lambda r: r.run)
    return sorted(by_name, key=lambda r: r.created, reverse=True)


def _entry(reader: Reader, key: str) -> RunInfo:
    data = reader.bucket.get(key)
    try:
        doc = json.loads(data or b"")
        run, steps = str(doc["run"]), int(doc["steps"])
        created = datetime.fromisoformat(str(doc["created"]).replace("Z", "+00:00")).astimezone(timezone.utc)
        recipe, seed = str(doc["recipe"]), int(doc["seed"])
    except (ValueError, KeyError, TypeError) as e:
        raise DamagedError(key, f"it is no entry of the catalogue: {e!r}") from e
    heads = [s for s in map(parse_head_key, reader.bucket.keys(f"runs/run={run}/heads/")) if s not in (None, INIT)]
    before = after = None
    if steps > 0:
        before = _success(reader, Place(run, INIT, "evaluate"))
        after = _success(reader, Place(run, str(steps), "evaluate"))
    done = after is not None or (steps == 0 and len(heads) > 0)
    return RunInfo(run, recipe, seed, steps, created, len(heads), "done" if done else "open", before, after)


def _success(reader: Reader, place: Place) -> float | None:
    m = reader.lookup(place)
    return None if m is None else m.stats.get("success", 0.0)
