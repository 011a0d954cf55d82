"""What may be read of a run: by default what its heads name, as `ropewalk sql` does."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Literal, TypeAlias

from ropewalk.errors import DamagedError, GenerationNotFound, RunNotFound
from ropewalk.manifest import Head, Manifest, Ref
from ropewalk.place import ABSENT, INIT, Place, parse_manifest_key, valid_run_id
from ropewalk.reader import Reader, each

Generation: TypeAlias = int | Literal["all"] | None
"""Which generations are read: None for those that the heads name; "all" for these and what was made
again; a number for each stage of a step in that generation where it has one, and otherwise as the
head names it."""

# The stage of a head that makes each table. An import's rollout holds the imported trajectories as
# well; assemble's replace them.
_MADE_BY = {
    "prompts": "prompts",
    "turns": "rollout",
    "tool_calls": "sandbox",
    "trajectories": "assemble",
    "gradings": "grade",
    "rewards": "reward",
    "selection": "resample",
    "token_outputs": "forward",
    "replay": "buffer",
    "baselines": "buffer",
    "batch": "advantage",
    "updates": "update",
}

_TIMINGS = "timings_"  # starts the stages of measured times


class Visible:
    """What one run has committed, as it was when this was made."""

    def __init__(self, reader: Reader, run: str) -> None:
        self.reader = reader
        self.run = run
        prepare = reader.lookup(Place(run, INIT, "prepare")) if valid_run_id(run) else None
        if prepare is None:
            raise RunNotFound(f"no such run in the record: {run} has committed nothing in {reader.bucket.url}")
        self.prepare = prepare
        self.heads: dict[int, Head] = {int(h.step): h for h in reader.heads(run)}

    @cached_property
    def places(self) -> list[Place]:
        """Where manifests stand, in the order of their steps and generations."""
        keys = self.reader.bucket.keys(f"runs/run={self.run}/manifests/")
        found = [p for p in map(parse_manifest_key, keys) if p is not None]
        return sorted(found, key=lambda p: (_step(p), p.gen, p.stage, p.draw, p.turn, p.shard))

    def manifests(self, table: str, gen: Generation) -> list[Manifest]:
        """The manifests that may hold shards of a table, in the order of their steps."""
        if gen is not None and gen != "all":
            self._check(gen)
        if table not in _MADE_BY:
            return each(self._at, self._beside(table, gen))
        stages: list[Place] = []
        for head in self.heads.values():
            found = self._chosen(head, _MADE_BY[table], gen)
            if not found and table == "prompts":
                found = self._chosen(head, "rollout", gen)  # an import's, which holds the prompts too
            stages += found
        return self.reader.with_parts(each(self._at, stages))

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
        """Where a finished step's stage manifests of the generations that are read stand."""
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

    def _beside(self, table: str, gen: Generation) -> list[Place]:
        """Where the manifests of a table that count without a head stand: of generation 0, or the
        one asked for where there is one."""
        if table == "timings":  # those of calls are shards without a stage manifest
            found = [p for p in self.places if p.stage.startswith(_TIMINGS)]
        else:
            found = [p for p in self.places if p.stage == "evaluate" and p.shard == ABSENT]
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


def _step(place: Place) -> int:
    number = place.step_number
    return -1 if number is None else number
