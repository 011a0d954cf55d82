"""A run's steps, recipe, manifests, batches and checkpoints, and the listing of runs."""

import hashlib
from datetime import timezone
from pathlib import Path

import pytest
from conftest import Facts

import ropewalk


def test_what_a_run_says_of_itself(run: ropewalk.Run, facts: Facts) -> None:
    assert run.name == facts.run
    assert run.steps == [1, 2, 3, 4]
    assert run.recipe == facts.recipe
    assert repr(run) == f"Run('{facts.run}', 4 steps)"


def test_runs(facts: Facts) -> None:
    for url in (facts.home, facts.folder, f"s3://{facts.bucket}"):
        # Other runs may begin and go on in the meantime. Those that are finished stay as they are.
        finished = {r["run"]: r for r in facts.runs if r["status"] in ("done", "stopped_early")}
        got = [r for r in ropewalk.runs(url) if r.run in finished]
        assert [r.run for r in got] == list(finished) and facts.run in finished
        for r in got:
            entry = finished[r.run]
            assert r.created.tzinfo is timezone.utc
            assert r.created.strftime("%Y-%m-%dT%H:%M:%SZ") == entry["created"]
            for field in ("recipe", "seed", "steps", "steps_planned", "steps_done", "status", "success_before"):
                assert getattr(r, field) == entry[field], (r.run, field)
            assert r.success_after == entry["success_after"], r.run


def test_manifests(run: ropewalk.Run) -> None:
    stage = run.manifest(2, "reward")
    assert stage.place == ropewalk.Place(run.name, "2", "reward")
    assert [run.manifest(2, "reward", shard=i).place.key for i in range(2)] == [p.key for p in stage.parts]
    assert run.manifest(1, "rollout", turn=0).place.turn == 0
    assert run.manifest(ropewalk.INIT, "prepare").place.step_number is None
    shards = [s for i in range(2) for s in run.manifest(2, "reward", shard=i).shards]
    assert sum(s.rows for s in shards) == len(run.table("rewards", steps=2))


@pytest.mark.parametrize(
    ("step", "stage", "options", "error", "words"),
    [
        (9, "reward", {}, ropewalk.StepNotFound, "committed nothing at step 9; the 4 finished ones are 1 to 4"),
        (1, "rewards", {}, ropewalk.ManifestNotFound, "the step has the stages advantage, assemble,"),
        (1, "rollout", {}, ropewalk.ManifestNotFound, "there are: .* stage rollout turn 0 generation 0"),
        (1, "reward", {"shard": 7}, ropewalk.ManifestNotFound, "shard 7 generation 0; there are: "),
        (1, "reward", {"gen": 3}, ropewalk.ManifestNotFound, "generation 3; there are: "),
    ],
)
def test_unknown_manifests(
    run: ropewalk.Run, step: int, stage: str, options: dict[str, int], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        run.manifest(step, stage, **options)


def test_batch(run: ropewalk.Run) -> None:
    batch = run.batch(1)
    kept = run.table("selection", steps=1).polars().filter("kept")
    assert sorted(batch["trajectory_id"].to_pylist()) == sorted(kept["trajectory_id"].to_list())
    for row in batch.arrow.to_pylist():
        assert len(row["token_ids"]) == len(row["loss_mask"]) == len(row["advantages"]) == len(row["old_logprobs"])
        assert all(a == 0 for a, m in zip(row["advantages"], row["loss_mask"], strict=True) if m == 0)
    with pytest.raises(ropewalk.StepNotFound):
        run.batch(9)


def test_checkpoint(run: ropewalk.Run, facts: Facts, tmp_path: Path) -> None:
    last = run.checkpoint(4)
    assert last.digest == facts.checkpoint
    assert not last.pruned
    folder = last.download(tmp_path / "policy")
    assert sorted(p.name for p in folder.iterdir()) == [f.name for f in last.files]
    for f in last.files:
        data = (folder / f.name).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (f.digest, f.bytes)
        assert last.read(f.name) == data
    with pytest.raises(ropewalk.RecordError, match=r"has no file model.bin; it has config.json,"):
        last.read("model.bin")


def test_what_the_world_offers_is_read_from_the_record(run: ropewalk.Run) -> None:
    offered = run.before_training()
    rewards = run.table("rewards", steps=1)
    assert offered["trajectories"] == rewards.num_rows
    assert offered["success"] == sum(rewards["success"].to_pylist()) / rewards.num_rows
    assert offered["groups"] == len(set(rewards["group_id"].to_pylist()))
    assert offered["turns"] == run.table("turns", steps=1).num_rows


def test_a_spoilt_download_is_mended(run: ropewalk.Run, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{")
    run.checkpoint(4).download(tmp_path)
    assert config.read_bytes() == run.checkpoint(4).read("config.json")


def test_the_warm_start_is_a_checkpoint(run: ropewalk.Run) -> None:
    first = run.checkpoint(ropewalk.INIT)
    assert first.info.prefix.startswith("warmstarts/")
    assert set(run.table("turns", steps=1)["policy_version"].to_pylist()) == {first.digest}


def test_pruned_checkpoints_say_so(run: ropewalk.Run, tmp_path: Path) -> None:
    old = run.checkpoint(1)  # the recipe keeps the last two
    assert old.pruned
    with pytest.raises(ropewalk.CheckpointPruned, match="holds only the note pruned.json"):
        old.download(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_path_of_a_checkpoint(facts: Facts) -> None:
    local = ropewalk.open(facts.folder, facts.run).checkpoint(4)
    assert (local.path / "model.safetensors").is_file()
    remote = ropewalk.open(f"s3://{facts.bucket}", facts.run).checkpoint(4)
    with pytest.raises(ropewalk.RecordError, match=r"download\(folder\) copies it"):
        _ = remote.path
