"""Forks: runs that share the first steps of another run by heads that name its manifests."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import ropewalk

Reopen = Callable[[], ropewalk.Run]


@pytest.fixture
def fork(reopen: Reopen, copy: Path) -> ropewalk.Run:
    """A fork of the run after step 1, which has taken no step of its own yet."""
    of = reopen().name
    there, here = copy / f"runs/run={of}", copy / "runs/run=fork"
    doc = json.loads((there / "manifests/step=init/prepare/gen=0.json").read_text())
    doc["run"], doc["note"]["fork"] = "fork", f"{of}@1"
    for shard in doc["shards"]:
        own = shard["key"].replace(f"run={of}/", "run=fork/")
        (copy / own).parent.mkdir(parents=True)
        shutil.copy(copy / shard["key"], copy / own)
        shard["key"] = own
    head = json.loads((there / "heads/step=1.json").read_text())
    head["run"], head["from"] = "fork", of
    for name, text in (("manifests/step=init/prepare/gen=0.json", doc), ("heads/step=1.json", head)):
        (here / name).parent.mkdir(parents=True)
        (here / name).write_text(json.dumps(text))
    return ropewalk.open(copy, "fork")


def test_shared_steps_are_the_forks(fork: ropewalk.Run, reopen: Reopen) -> None:
    run = reopen()
    assert fork.steps == [1]
    for table in ("turns", "rewards", "batch", "timings"):
        rows, other = fork.table(table).pandas(), run.table(table).pandas()
        assert set(rows["run"]) == {"fork"}
        assert set(rows["step"]) == {1}
        assert len(rows) == (other["step"] == 1).sum()
    first = fork.table("evaluations").pandas()
    assert set(first["step"].dropna()) <= {1}
    assert first["step"].isna().any(), "the evaluation before the first step is shared"
    assert fork.manifest(1, "update").place.run == run.name
    assert fork.checkpoint(1).digest == run.checkpoint(1).digest


def test_a_fork_of_nothing_is_damaged(fork: ropewalk.Run, reopen: Reopen, copy: Path) -> None:
    (copy / f"runs/run={reopen().name}/manifests/step=init/prepare/gen=0.json").unlink()
    with pytest.raises(ropewalk.DamagedError, match="is a fork of"):
        ropewalk.open(copy, "fork")
