"""Damaged and orphaned objects: what a manifest names is read whole or refused by name."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import ropewalk

Reopen = Callable[[], ropewalk.Run]

GENERATIONS: tuple[ropewalk.Generation, ...] = (None, 0, "all")


def flip(path: Path) -> None:
    """Changes a byte in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(bytes(data))


def shard(run: ropewalk.Run) -> ropewalk.Shard:
    """One shard of the rewards of step 2."""
    return run.manifest(2, "reward", shard=1).shards[0]


def test_a_deleted_shard(reopen: Reopen, copy: Path) -> None:
    lost = shard(reopen()).key
    (copy / lost).unlink()
    with pytest.raises(ropewalk.DamagedError, match="is missing though a manifest lists it") as e:
        reopen().table("rewards")
    assert e.value.key == lost and lost in str(e.value)
    assert len(reopen().table("rewards", steps=1)) > 0, "other steps are read as before"


def test_a_flipped_byte(reopen: Reopen, copy: Path) -> None:
    spoilt = shard(reopen())
    flip(copy / spoilt.key)
    with pytest.raises(ropewalk.DamagedError, match=rf"have the digest [0-9a-f]{{64}}, want {spoilt.digest}") as e:
        reopen().table("rewards")
    assert e.value.key == spoilt.key


def test_a_flipped_byte_of_a_batch(reopen: Reopen, copy: Path) -> None:
    spoilt = reopen().manifest(3, "advantage").shards[0].key
    flip(copy / spoilt)
    with pytest.raises(ropewalk.DamagedError) as e:
        reopen().batch(3)
    assert e.value.key == spoilt


def test_a_flipped_byte_of_a_manifest(reopen: Reopen, copy: Path) -> None:
    spoilt = reopen().manifest(2, "reward", shard=1).place.key
    flip(copy / spoilt)
    with pytest.raises(ropewalk.DamagedError) as e:
        reopen().table("rewards")
    assert e.value.key == spoilt


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("version", 2, "is not supported by this package, which reads 1.x; upgrade ropewalk"),
        ("config", "abc", "field config: want a digest"),
        ("gen", -1, "field gen: want a whole number"),
        ("stage", "other", "it is that of run"),
        (
            "shards",
            [{"key": "../../etc/passwd", "table": "documents", "digest": "0" * 64, "bytes": 1, "rows": 1}],
            "is not the key of a shard",
        ),
    ],
)
def test_a_manifest_that_says_something_else(reopen: Reopen, copy: Path, field: str, value: object, words: str) -> None:
    path = copy / reopen().manifest("init", "prepare").place.key
    doc = json.loads(path.read_text())
    doc[field] = value
    path.write_text(json.dumps(doc))
    with pytest.raises(ropewalk.DamagedError, match=words):
        reopen()


def test_a_spoilt_head(reopen: Reopen, copy: Path) -> None:
    head = next((copy / "runs").glob("*/heads/step=3.json"))
    head.write_text(head.read_text()[:-10])
    with pytest.raises(ropewalk.DamagedError, match=r"heads/step=3.json is damaged: is not JSON"):
        reopen()


def test_orphans_are_not_read(reopen: Reopen, copy: Path) -> None:
    before = reopen().table("rewards")
    real = copy / shard(reopen()).key
    orphan = real.with_name("00001-0123456789abcdef.parquet")
    orphan.write_bytes(real.read_bytes())
    again = copy / "runs" / real.relative_to(copy / "runs").parts[0] / "table=rewards" / "step=9" / "gen=0"
    again.mkdir(parents=True)
    (again / real.name).write_bytes(real.read_bytes())
    for gen in GENERATIONS:
        assert reopen().table("rewards", gen=gen).arrow.equals(before.arrow)


def test_a_step_without_a_head_is_not_read(reopen: Reopen, copy: Path) -> None:
    os.unlink(next((copy / "runs").glob("*/heads/step=4.json")))
    with pytest.warns(ropewalk.GapWarning, match="no head of step 4, though"):  # an evaluation followed the step
        run = reopen()
    assert run.steps == [1, 2, 3]
    for gen in GENERATIONS:
        assert set(run.table("rewards", gen=gen)["step"].to_pylist()) == {1, 2, 3}
    with pytest.raises(ropewalk.StepNotFound):
        run.table("rewards", steps=4)


def test_a_spoilt_entry_of_the_catalogue(reopen: Reopen, copy: Path) -> None:
    entry = copy / "catalogue" / f"{reopen().name}.json"
    entry.write_text("{}")
    message = r"catalogue/.*json is damaged: it is not an entry of the catalogue"
    with pytest.raises(ropewalk.DamagedError, match=message):
        ropewalk.runs(copy)


def test_missing_heads_are_warned_of(reopen: Reopen, copy: Path) -> None:
    steps = reopen().steps
    for step in steps[1:3]:
        next((copy / "runs").glob(f"*/heads/step={step}.json")).unlink()
    with pytest.warns(ropewalk.GapWarning, match=rf"no head of step {steps[1]}, {steps[2]}, though"):
        run = reopen()
    assert run.steps == [s for s in steps if s not in steps[1:3]]


def test_a_stated_success_is_not_trusted(reopen: Reopen, copy: Path) -> None:
    name = reopen().name
    before = next(r.success_after for r in ropewalk.runs(copy) if r.run == name)
    assert before is not None and before < 1
    for manifest in (copy / "runs").glob("*/manifests/*/evaluate/gen=0.json"):
        doc = json.loads(manifest.read_text())
        doc["stats"]["success"] = 1.0
        manifest.write_text(json.dumps(doc, sort_keys=True, separators=(",", ":")))
    assert next(r.success_after for r in ropewalk.runs(copy) if r.run == name) == before
