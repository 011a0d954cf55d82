"""Metrics, and their export to trackers. analysis/metrics (Go) holds both packages to the same values, and reads the
exports with the trackers' own programs."""

import sys
from pathlib import Path

import pytest
from conftest import Facts

import ropewalk
from ropewalk.metrics import METRICS, flat, metrics
from ropewalk.trackers import main, to_mlflow, to_wandb


def test_metrics_of_a_run(run: ropewalk.Run, facts: Facts) -> None:
    steps = metrics(run)
    assert [s.step for s in steps] == [0, 1, 2, 3, 4]
    entry = next(r for r in facts.runs if r["run"] == facts.run)
    assert steps[0].values["eval/success"] == pytest.approx(entry["success_before"])
    assert steps[4].values["eval/success"] == pytest.approx(entry["success_after"])
    assert [s.time for s in steps] == sorted(s.time for s in steps)
    for s in steps[1:]:
        rewards = run.table("rewards", steps=s.step).polars()
        assert s.values["train/reward"] == pytest.approx(rewards["reward"].mean())
        assert s.values["train/trajectories"] == len(rewards)
        assert "critic/loss" not in s.values  # the run has no critic
    assert set().union(*(s.values for s in steps)) <= {m.name for m in METRICS}


@pytest.mark.parametrize(("write", "name"), [(to_wandb, "wandb"), (to_mlflow, "mlflow")])
def test_a_missing_tracker_is_named(
    run: ropewalk.Run, write: object, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert callable(write)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ropewalk.LibraryMissing, match=rf"{name} is not installed: .*pip install 'ropewalk\[{name}\]'"):
        write(run, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_mistakes_of_the_command_line(facts: Facts, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wandb", "nosuch", "--record", str(facts.folder), "-o", str(tmp_path)]) == 2
    assert "no such run in the record: nosuch" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["tensorboard", facts.run, "-o", str(tmp_path)])
    assert "invalid choice: 'tensorboard'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_nested_fields_have_names_with_dots() -> None:
    assert flat({"a": {"b": 1, "c": [2, 3]}, "d": {}, "e": None}) == {"a.b": 1, "a.c": [2, 3], "d": {}, "e": None}
