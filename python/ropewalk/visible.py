"""What may be read of a run: by default what its heads name, as `ropewalk sql` does."""

import json
import math
import re
import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from importlib.resources import files
from itertools import groupby
from typing import Any, Literal, TypeAlias

from ropewalk.errors import DamagedError, GapWarning, GenerationNotFound, RunNotFound
from ropewalk.manifest import Head, Manifest, Ref
from ropewalk.place import ABSENT, COMPACT, INIT, Place, parse_manifest_key, valid_run_id
from ropewalk.reader import Reader, each

Generation: TypeAlias = int | Literal["all"] | None
"""Which generations are read. None: those that the heads name. "all": these and what replays made. A number: each
stage of a step in that generation if it exists, otherwise the one that the head names."""

# Where each table is read. Go's reader has the same file (schema/stages/visible.json). in_heads lists the stages whose
# manifests can hold the table; the first one that the head names is read. without_head lists the stages that are
# visible as soon as they have committed.
_VISIBLE = json.loads(files(__package__).joinpath("visible.json").read_text("utf-8"))
_IN_HEADS: dict[str, list[str]] = _VISIBLE["in_heads"]
_WITHOUT_HEAD: dict[str, dict[str, Any]] = _VISIBLE["without_head"]

Lineage: TypeAlias = list[tuple[str, float]]
"""A run and the runs that it shares steps with, the nearest first: each with the last step that it has of it."""

_STEP = re.compile(r"/step=([0-9]+)/")


class Visible:
    """What one run has committed, as it was when this was made."""

    def __init__(self, reader: Reader, run: str) -> None:
        self.reader = reader
        self.run = run
        prepare = reader.lookup(Place(run, INIT, "prepare")) if valid_run_id(run) else None
        if prepare is None:
            raise RunNotFound(f"no such run in the record: {run} has committed nothing in {reader.bucket.url}")
        self.prepare = prepare
        self.lineage = lineage(reader, prepare)
        self.heads: dict[int, Head] = {int(h.step): h for h in reader.heads(run)}
        if missing := self.gaps():
            steps = ", ".join(map(str, missing[:8])) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
            warnings.warn(
                f"run {run} has a gap: no head of step {steps}, though a later step is done or an evaluation followed; "
                "their rows are not read. Restore the heads from a copy of the bucket; "
                f"`ropewalk verify {run}` checks the rest",
                GapWarning,
                stacklevel=3,
            )

    def gaps(self) -> list[int]:
        """Steps without a head before the last one that is known to be done: by its head, or by the evaluation that
        follows it."""
        last = max(self.heads, default=0)
        if self.reader.lookup(Place(self.run, str(last + 1), "evaluate")) is not None:
            last += 1
        return [step for step in range(1, last + 1) if step not in self.heads]

    @cached_property
    def places(self) -> list[Place]:
        """The places of all manifests, ordered by step and generation."""
        found = []
        for run, _ in self.lineage:
            keys = self.reader.bucket.keys(f"runs/run={run}/manifests/")
            places = [p for p in map(parse_manifest_key, keys) if p is not None]
            found += [p for p in places if run == self.run or self.owned(replace(p, run=self.run)) == p]
        return sorted(found, key=lambda p: (_step(p), p.gen, p.stage, p.draw, p.turn, p.shard))

    def owned(self, place: Place) -> Place:
        """A place of the run at the run that has made what is there: another one if this run is a fork that shares
        it."""
        return owned(self.lineage, place)

    def manifests(self, table: str, gen: Generation) -> list[Manifest]:
        """The manifests that may hold shards of a table, in the order of their steps. A compaction takes the place of
        the manifests whose shards it copies."""
        if gen is not None and gen != "all":
            self._check(gen)
        steps: list[list[Place]] = []
        if table not in _IN_HEADS:
            for _, group in groupby(self._without_head(table, gen), key=_step):
                steps.append(list(group))
        else:
            for head in self.heads.values():
                chosen = (self._chosen(head, stage, gen) for stage in _IN_HEADS[table])
                steps.append(next(filter(None, chosen), []))
        return [m for found in each(lambda places: self._held(table, places), steps) for m in found]

    def _held(self, table: str, places: list[Place]) -> list[Manifest]:
        """The compaction that copies a table of exactly these places, which are all of one step; else their
        manifests."""
        copy = self._copy(table, places)
        if copy is not None:
            return [copy]
        return self.reader.with_parts([self._at(place) for place in places])

    def _copy(self, table: str, places: list[Place]) -> Manifest | None:
        m = self._compactions.get(places[0].step) if places else None
        if m is None or not any(s.table == table for s in m.shards):
            return None
        if _holding(table, m) != {place.key for place in places}:
            return None
        return replace(m, place=replace(m.place, gen=places[0].gen))

    @cached_property
    def _compactions(self) -> dict[str, Manifest]:
        """The compactions of the steps that have merged copies, by step."""
        keys = [key for run, _ in self.lineage for key in self.reader.bucket.keys(f"runs/run={run}/compact/")]
        steps = sorted({m[1] for key in keys if (m := _STEP.search(key))})
        found = each(lambda step: self.reader.lookup(self.owned(Place(self.run, step, COMPACT))), steps)
        return {m.place.step: m for m in found if m is not None}

    def named(self, place: Place) -> Ref | None:
        """The ref by which the step's head names a place; None where it does not."""
        head = self.heads.get(_step(place))
        refs = head.stages.get(place.stage, ()) if head else ()
        return next((r for r in refs if r.key == place.key), None)

    def _check(self, gen: int) -> None:
        there = sorted({p.gen for p in self.places})
        if gen not in there:
            raise GenerationNotFound(f"run {self.run} has no generation {gen}; it has {', '.join(map(str, there))}")

    def _chosen(self, head: Head, stage: str, gen: Generation) -> list[Place]:
        """The places of a finished step's stage manifests, in the generations that are read."""
        named = [p for ref in head.stages.get(stage, ()) if (p := parse_manifest_key(ref.key))]
        if gen is None:
            return named
        own = {p.gen for p in named}
        others = [p for p in self._at_step(head.step) if p.stage == stage and p.shard == ABSENT and p.gen not in own]
        if gen == "all":
            return named + others
        return [p for p in others if p.gen == gen] or named

    def _at_step(self, step: str) -> Iterable[Place]:
        return (p for p in self.places if p.step == step)

    def _without_head(self, table: str, gen: Generation) -> list[Place]:
        """The places of a table's manifests that are visible without a head: those of generation 0, or of the
        requested generation if it has any."""
        rule = _WITHOUT_HEAD.get(table)
        if rule is None:
            return []  # no manifest holds the table policies
        found = [p for p in self.places if _includes(rule, p)]
        if gen == "all":
            return found
        there = {p for p in found if p.gen == (gen or 0)}
        return [p for p in found if p in there or (p.gen == 0 and replace(p, gen=gen or 0) not in there)]

    def _at(self, place: Place) -> Manifest:
        ref = self.named(place)
        m = self.reader.manifest(ref) if ref else self.reader.lookup(place)
        if m is None:
            raise DamagedError(place.key, "it went away while it was read")
        return m


def owned(lineage: Lineage, place: Place) -> Place:
    """A place of a run at the run that has made what is there."""
    for run, last in lineage[1:]:
        number = place.step_number
        shared = place.stage in ("evaluate", "initial") if number is None else number <= last
        if shared:
            place = replace(place, run=run)
    return place


def lineage(reader: Reader, prepare: Manifest) -> Lineage:
    """The run and the runs that it shares steps with, the nearest first: each with the last step that it has of it."""
    found: Lineage = [(prepare.place.run, math.inf)]
    while (fork := prepare.note.get("fork")) is not None:
        run, _, step = fork.partition("@")
        at = Place(run, INIT, "prepare")
        other = reader.lookup(at) if valid_run_id(run) and step.isdigit() else None
        if other is None:
            raise DamagedError(at.key, f"it is missing, and run {prepare.place.run} is a fork of {fork}")
        found.append((run, min(int(step), found[-1][1])))
        prepare = other
    return found


def _holding(table: str, compaction: Manifest) -> set[str]:
    """The keys of the manifests whose shards of a table a compaction copies."""
    places = [p for ref in compaction.inputs if (p := parse_manifest_key(ref.key))]
    for stage in _IN_HEADS.get(table, ()):
        found = {p.key for p in places if p.stage == stage}
        if found:
            return found
    rule = _WITHOUT_HEAD.get(table)
    return {p.key for p in places if rule is not None and _includes(rule, p)}


def _includes(rule: dict[str, Any], place: Place) -> bool:
    """Whether a manifest is of the stages that a rule of without_head selects."""
    if place.shard != ABSENT and not rule.get("shards"):
        return False
    prefix = rule.get("stage_prefix")
    return place.stage == rule.get("stage") or (prefix is not None and place.stage.startswith(prefix))


def _step(place: Place) -> int:
    number = place.step_number
    return -1 if number is None else number
