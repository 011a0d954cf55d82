"""What other libraries make of a table."""

import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ropewalk


def test_all_three_agree(run: ropewalk.Run) -> None:
    rewards = run.table("rewards")
    by_polars = dict(rewards.polars().group_by("step").agg(pl.col("reward").mean()).iter_rows())
    by_pandas = rewards.pandas().groupby("step")["reward"].mean().to_dict()
    by_duckdb = dict(rewards.duckdb().aggregate("step, avg(reward)").fetchall())
    assert sorted(by_polars) == run.steps
    assert by_polars == pytest.approx(by_pandas)
    assert by_polars == pytest.approx(by_duckdb)


def test_lists_and_nulls_come_through(run: ropewalk.Run) -> None:
    turns = run.table("turns", steps=1)
    want = turns["token_ids"].to_pylist()
    assert turns.polars()["token_ids"].to_list() == want
    assert [list(x) for x in turns.pandas()["token_ids"]] == want
    assert [x for (x,) in turns.duckdb().project("token_ids").fetchall()] == want
    assert run.table("rewards").polars()["reference"].null_count() == len(run.table("rewards"))


def test_duckdb_relations_meet_on_the_default_connection(run: ropewalk.Run) -> None:
    rewards, selection = run.table("rewards").duckdb(), run.table("selection").duckdb()
    joined = duckdb.execute("select count(*) from rewards join selection using (trajectory_id)").fetchall()
    assert joined == [(len(run.table("rewards")),)]
    assert rewards.columns[:3] == selection.columns[:3] == ["run", "step", "gen"]


def test_a_table_is_arrow(run: ropewalk.Run) -> None:
    rewards = run.table("rewards")
    assert pa.table(rewards).equals(rewards.arrow)
    assert pl.DataFrame(rewards).height == len(rewards)
    assert pd.Series(rewards["reward"].to_pylist()).count() == rewards.num_rows
    assert "rows: run, step, gen, group_id" in repr(rewards)


@pytest.mark.parametrize("name", ["polars", "pandas", "duckdb"])
def test_a_missing_library_is_named(run: ropewalk.Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ropewalk.LibraryMissing, match=rf"{name} is not installed: .*pip install 'ropewalk\[{name}\]'"):
        getattr(run.table("updates"), name)()
