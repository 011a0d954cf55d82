"""Places of the record and their keys, which are relative to the bucket."""

import re
from dataclasses import dataclass

INIT = "init"
"""The step of the stages that run before the first training step."""

_DATA_INIT = "0"
"""The step before the first in the keys of data shards, so that it is a number in every table's folder."""

ABSENT = -1
"""Marks a try, turn or shard that a place does not have."""

COMPACT = "compact"
"""The stage that commits merged copies of a step's shards."""

_RUN_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
_MANIFEST_KEY = re.compile(
    r"runs/run=([^/]+)/manifests/step=(init|0|[1-9][0-9]*)/([a-z][a-z0-9_]*)"
    r"(?:/try=([0-9]+))?(?:/turn=([0-9]+))?(?:/shard=([0-9]+))?/gen=([0-9]+)\.json"
)
_HEAD_KEY = re.compile(r"runs/run=[^/]+/heads/step=(init|0|[1-9][0-9]*)\.json")
_EXTENSIONS = {"batch": "arrow", "replay_batch": "arrow", "documents": "json"}


def valid_run_id(run: str) -> bool:
    """Whether this is a valid name of a run."""
    return _RUN_ID.fullmatch(run) is not None


@dataclass(frozen=True)
class Place:
    """Where in a run a manifest belongs."""

    run: str
    step: str
    """A number without leading zeros, or INIT."""
    stage: str
    draw: int = ABSENT
    """The number of a further draw of dynamic sampling ("try" in keys and documents)."""
    turn: int = ABSENT
    shard: int = ABSENT
    """ABSENT for a stage manifest."""
    gen: int = 0
    warm: str = ""
    """The digest of a warm start's inputs; such a place belongs to no run."""

    @property
    def step_number(self) -> int | None:
        """The training step; None before the first one."""
        return int(self.step) if self.step.isdigit() else None

    @property
    def _prefix(self) -> str:
        return f"warmstarts/{self.warm}/" if self.warm else f"runs/run={self.run}/"

    @property
    def key(self) -> str:
        """The key of the place's manifest."""
        if self.warm:
            return self._prefix + "manifest.json"
        parts = [f"{self._prefix}manifests/step={self.step}/{self.stage}"]
        for name, value in (("try", self.draw), ("turn", self.turn), ("shard", self.shard)):
            if value != ABSENT:
                parts.append(f"{name}={value}")
        return "/".join([*parts, f"gen={self.gen}.json"])

    def data_key(self, table: str, digest: str) -> str:
        """The key of a shard that is made at this place."""
        name = "all" if self.shard == ABSENT else f"{self.shard:05d}"
        name += f"-{digest[:16]}.{_EXTENSIONS.get(table, 'parquet')}"
        if self.warm:
            return f"{self._prefix}table={table}/{name}"
        folder = self._prefix + ("compact/" if self.stage == COMPACT else "")
        step = _DATA_INIT if self.step == INIT else self.step
        return f"{folder}table={table}/step={step}/gen={self.gen}/{name}"

    def __str__(self) -> str:
        if self.warm:
            return f"warm start {self.warm}"
        named = (("draw", self.draw), ("turn", self.turn), ("shard", self.shard))
        inner = "".join(f" {n} {v}" for n, v in named if v != ABSENT)
        return f"run {self.run} step {self.step} stage {self.stage}{inner} generation {self.gen}"


def parse_manifest_key(key: str) -> Place | None:
    """Returns the place of a manifest's key, for places of runs; None for any other key."""
    m = _MANIFEST_KEY.fullmatch(key)
    if m is None:
        return None
    draw, turn, shard = (ABSENT if g is None else int(g) for g in m.group(4, 5, 6))
    place = Place(m[1], m[2], m[3], draw, turn, shard, int(m[7]))
    return place if place.key == key else None


def parse_head_key(key: str) -> str | None:
    """Returns the step in a head's key; None for any other key."""
    m = _HEAD_KEY.fullmatch(key)
    return m[1] if m else None
