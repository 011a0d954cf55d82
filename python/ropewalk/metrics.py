"""A run's metrics: one number for each metric and step, computed from the record.

metrics.json declares them once, for this package and for `ropewalk export --format tensorboard`: a name, what the
metric means, and the SQL by which it follows from a table of the record. Needs ropewalk[duckdb].
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any

from ropewalk.errors import DamagedError, RecordError
from ropewalk.run import Run
from ropewalk.table import library
from ropewalk.tables import COLUMNS, TABLES

_DECLARED = json.loads(files(__package__).joinpath("metrics.json").read_text("utf-8"))
_SOURCES: dict[str, str] = _DECLARED["sources"]
_CLOCK: str = _DECLARED["clock"]


@dataclass(frozen=True)
class Metric:
    """Declares one metric."""

    name: str
    doc: str
    source: str
    """A table, or the name of a query of one."""
    value: str
    """An aggregate over the source's rows of a step."""

    @property
    def query(self) -> str:
        """Asks for the value at each step that has one; step 0 is before the first step."""
        source = _SOURCES.get(self.source, f"select * from {self.source}")
        return (
            f"select coalesce(step, 0) as step, cast({self.value} as double) as value from ({source}) as rows "
            "group by 1 having value is not null order by 1"
        )


METRICS: tuple[Metric, ...] = tuple(Metric(**m) for m in _DECLARED["metrics"])
"""The declared metrics."""


@dataclass(frozen=True)
class StepMetrics:
    """The metrics of one step. A metric without data at the step is not there."""

    step: int
    time: float
    """When the step's last measured activity ended, in seconds since 1970."""
    values: dict[str, float]


def metrics(run: Run) -> list[StepMetrics]:
    """Computes a run's metrics as its heads name them, in the order of the steps."""
    connection = library("duckdb").connect()
    queries = [_CLOCK, *(m.query for m in METRICS)]
    for table, columns in _reads(queries).items():
        connection.register(table, run.table(table, columns=columns).arrow)
    values: dict[int, dict[str, float]] = {}
    for metric in METRICS:
        for step, value in connection.execute(metric.query).fetchall():
            values.setdefault(step, {})[metric.name] = value
    if not values:
        raise RecordError(f"run {run.name} has no finished step and no evaluation yet")
    clock = dict(connection.execute(_CLOCK).fetchall())
    connection.close()
    return _timed(values, clock, _created(run))


def _reads(queries: Iterable[str]) -> dict[str, list[str]]:
    """Returns the tables that the queries read, and the columns whose names occur in them."""
    words = [(set(re.findall(r"\w+", q)), re.findall(r"\bfrom (\w+)", q)) for q in queries]
    out: dict[str, list[str]] = {}
    for table in TABLES:
        named = set().union(*(w for w, tables in words if table in tables))
        if named:
            out[table] = [c for c in COLUMNS[table].names if c in named]
    return out


def _created(run: Run) -> float:
    key = f"catalogue/{run.name}.json"
    data = run.read_object(key)
    try:
        created = datetime.fromisoformat(str(json.loads(data or b"")["created"]).replace("Z", "+00:00"))
    except (ValueError, KeyError, TypeError) as e:
        raise DamagedError(key, f"it is not an entry of the catalogue: {e!r}") from e
    return created.timestamp()


def _timed(values: dict[int, dict[str, float]], clock: dict[int, float], at: float) -> list[StepMetrics]:
    """Gives each step its time by the clock, at least that of the step before it."""
    out = []
    for step in sorted(values):
        at = max(at, clock.get(step, at))
        out.append(StepMetrics(step, at, values[step]))
    return out


def flat(config: Any, prefix: str = "") -> dict[str, Any]:
    """Returns the leaves of nested objects under names with dots; a list is a leaf."""
    if not isinstance(config, dict) or not config:
        return {prefix: config}
    out: dict[str, Any] = {}
    for name, value in config.items():
        out.update(flat(value, f"{prefix}.{name}" if prefix else str(name)))
    return out
