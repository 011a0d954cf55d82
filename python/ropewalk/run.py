"""One run of the record."""

import json
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from ropewalk.checkpoint import Checkpoint
from ropewalk.errors import ColumnNotFound, DamagedError, ManifestNotFound, StepNotFound, TableNotFound, URLError
from ropewalk.location import locate
from ropewalk.manifest import Manifest
from ropewalk.place import ABSENT, INIT, Place
from ropewalk.reader import Reader
from ropewalk.rows import read_batch, read_rows
from ropewalk.table import Table
from ropewalk.tables import BATCHES, POLICIES, TABLES
from ropewalk.visible import Generation, Visible


_BEFORE = "before_"
"""Begins the names of these statistics in the manifest."""


class Run:
    """What a run had committed when it was opened. Open it again to see later steps."""

    def __init__(self, visible: Visible) -> None:
        self._visible = visible
        self._reader = visible.reader

    @property
    def name(self) -> str:
        """The run's name."""
        return self._visible.run

    @property
    def steps(self) -> list[int]:
        """The finished steps: those with a head."""
        return list(self._visible.heads)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names that `table` accepts."""
        return (*TABLES, *BATCHES, "policies")

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {len(self.steps)} steps)"

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """The resolved recipe: every field of the method with the value that was used."""
        prepare = self._visible.prepare
        for shard in prepare.shards:
            if shard.table == "documents" and shard.digest == prepare.config:
                doc = json.loads(self._reader.shard(shard))
                if isinstance(doc, dict):
                    return doc
        raise DamagedError(prepare.place.key, "it names no resolved recipe")

    def table(
        self,
        name: str,
        *,
        steps: int | Iterable[int] | None = None,
        columns: Sequence[str] | None = None,
        gen: Generation = None,
    ) -> Table:
        """Returns the rows of a table, with the columns run, step and gen in front.

        By default these are the rows that the run used: those that its heads name and, in generation 0,
        the evaluations and timings, which heads do not name. `gen="all"` adds what replays made. A number
        selects that generation of each stage of a step, or the one that the head names if the stage has
        none with that number. `steps` keeps the rows of these steps. `columns` keeps these columns, in
        addition to the first three.

        `policies`, which no shard holds, has the checkpoint digest of the policy after each step, and of the
        first one at step 0. It has no generations.
        """
        if name not in self.tables:
            raise TableNotFound(f"no table {name!r} in the record; it has {', '.join(self.tables)}")
        if name == "policies":
            return Table(self._policies(steps, columns))
        manifests = self._visible.manifests(name, _checked(gen))
        if steps is not None:
            manifests = self._of_steps(manifests, steps)
        return Table(read_rows(self._reader, name, manifests, columns, self.name))

    def batch(self, step: int, *, gen: int | None = None) -> Table:
        """Returns a step's training batch: one row per kept trajectory, with its token ids, loss
        mask, behaviour log-probabilities and advantages (multiplied by the row's weight)."""
        m = self.manifest(step, "advantage", gen=gen)
        if not any(s.table == "batch" for s in m.shards):
            raise DamagedError(m.place.key, "it names no batch")
        return Table(read_batch(self._reader, [m]))

    def checkpoint(self, step: int | str) -> Checkpoint:
        """Returns the checkpoint that a step's update made; for INIT, that of the warm start."""
        m = self.manifest(step, "warm_start" if step == INIT else "update")
        if m.checkpoint is None:
            raise DamagedError(m.place.key, "it names no checkpoint")
        return Checkpoint(self._reader, m.checkpoint)

    def before_training(self) -> dict[str, float]:
        """Returns what the run's world offers to the methods before training, as step 1 has committed it: shares and
        counts by name, such as zero_variance and calls_per_trajectory. A share that the record has no data for is
        missing. Imports and the records of versions before 1.8 of the format have none."""
        stats = self.manifest(1, "resample").stats
        return {name.removeprefix(_BEFORE): value for name, value in stats.items() if name.startswith(_BEFORE)}

    def manifest(
        self, step: int | str, stage: str, *, turn: int | None = None, shard: int | None = None, gen: int | None = None
    ) -> Manifest:
        """Returns the manifest of a stage at a step (a number or INIT), or that of one of its turns or
        shards. Without `gen` it is the generation that the step's head names, or 0."""
        if gen is None:
            gen = self._generation(step, stage)
        place = Place(
            self.name,
            str(step),
            stage,
            turn=ABSENT if turn is None else turn,
            shard=ABSENT if shard is None else shard,
            gen=gen,
        )
        place = self._visible.owned(place)
        ref = self._visible.named(place)
        m = self._reader.manifest(ref) if ref else self._reader.lookup(place)
        if m is None:
            raise self._not_found(place)
        return m

    def read_object(self, key: str) -> bytes | None:
        """Returns the bytes of any object of the record, unchecked, or None if there is no such object."""
        return self._reader.bucket.get(key)

    def _policies(self, steps: int | Iterable[int] | None, columns: Sequence[str] | None) -> pa.Table:
        made: dict[int, Manifest | None] = {}
        if steps is None:
            made[0], steps = self._reader.lookup(Place(self.name, INIT, "warm_start")), self.steps
        for step in sorted(self._finished(steps)):
            if "update" in self._visible.heads[step].stages:
                made[step] = self.manifest(step, "update")
        found = [(step, m.checkpoint.digest) for step, m in made.items() if m and m.checkpoint]
        rows = [{"run": self.name, "step": step, "policy_version": digest} for step, digest in found]
        table = pa.Table.from_pylist(rows, POLICIES)
        if columns is None:
            return table
        if missing := [c for c in columns if c not in POLICIES.names]:
            raise ColumnNotFound(f"table policies has no column {missing[0]!r}; it has {', '.join(POLICIES.names)}")
        return table.select([c for c in POLICIES.names if c in {*columns, "run", "step"}])

    def _generation(self, step: int | str, stage: str) -> int:
        head = self._visible.heads.get(step) if isinstance(step, int) else None
        return head.generation(stage) if head else 0

    def _not_found(self, place: Place) -> Exception:
        there = [p for p in self._visible.places if p.step == place.step]
        if not there:
            return StepNotFound(f"run {self.name} has committed nothing at step {place.step}; {self._known_steps()}")
        of_stage = [str(p) for p in there if p.stage == place.stage]
        if of_stage:
            return ManifestNotFound(f"nothing is committed at {place}; there are: {'; '.join(of_stage)}")
        stages = sorted({p.stage for p in there})
        return ManifestNotFound(f"nothing is committed at {place}; the step has the stages {', '.join(stages)}")

    def _of_steps(self, manifests: list[Manifest], steps: int | Iterable[int]) -> list[Manifest]:
        wanted = self._finished(steps)
        return [m for m in manifests if m.place.step_number in wanted]

    def _finished(self, steps: int | Iterable[int]) -> set[int]:
        wanted = {steps} if isinstance(steps, int) else set(steps)
        for step in sorted(wanted - set(self.steps)):
            raise StepNotFound(f"run {self.name} has no finished step {step}; {self._known_steps()}")
        return wanted

    def _known_steps(self) -> str:
        if not self.steps:
            return "no step is finished"
        return f"the {len(self.steps)} finished ones are {self.steps[0]} to {self.steps[-1]}"


def _checked(gen: Generation) -> Generation:
    if gen is None or gen == "all" or (isinstance(gen, int) and not isinstance(gen, bool) and gen >= 0):
        return gen
    raise ValueError(f'gen: want a number of at least 0, "all" or None, got {gen!r}')


def open(url: str | os.PathLike[str], run: str | None = None) -> Run:
    """Opens a run of the record.

    The URL is a folder (the local stack's state folder .ropewalk, or one that holds a bucket's
    content), file:///path, or s3://bucket[/prefix], with the run as second argument; or one of these
    followed by /runs/run=ID without it. The S3 server and credentials are those of the standard AWS_*
    variables (AWS_ENDPOINT_URL_S3, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION …).
    """
    bucket, named = locate(url)
    if run is not None and named is not None and run != named:
        raise URLError(f"{url}: names the run {named}, and run is {run}")
    name = run if run is not None else named
    if name is None:
        raise URLError(f"{url}: names no run; call open(url, run=…); runs(url) lists the runs")
    return Run(Visible(Reader(bucket), name))
