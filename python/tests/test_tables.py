"""Every table of the real run, as files and through S3, against `ropewalk sql`."""

from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from conftest import Answer, Facts

import ropewalk
from ropewalk.tables import COLUMNS, POLICIES


def close(value: Any) -> Any:
    """The value; of a float 12 digits, since sums depend on the order of rows."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


UNASKED = {
    *("gradings", "judgements", "function_scores", "imported", "transitions", "tasks", "task_answers", "branches"),
    *("evaluation_transitions", "evaluation_judgements", "evaluation_debates", "behaviour"),
}
"""The tables of a stage that the run's recipe does not ask for, of imports, and of interactive environments."""


@pytest.mark.parametrize("table", ropewalk.TABLES)
def test_columns_are_those_of_sql(run: ropewalk.Run, facts: Facts, table: str) -> None:
    got = run.table(table)
    assert got.column_names == facts.columns[table]
    assert (got.num_rows > 0) == (table not in UNASKED)
    got.arrow.validate(full=True)


def check(run: ropewalk.Run, answers: list[Answer]) -> None:
    """Asks DuckDB over the package's tables what `ropewalk sql` was asked."""
    with duckdb.connect() as connection:
        for table in run.tables:
            run.table(table).duckdb(connection).create_view(table)
        for answer in answers:
            got = connection.sql(answer.query)
            assert got.columns == answer.columns, answer.query
            want = [[close(x) for x in row] for row in answer.rows]
            assert [[close(x) for x in row] for row in got.fetchall()] == want, answer.query


def test_queries_answer_as_sql_does(run: ropewalk.Run, facts: Facts) -> None:
    counted = {row[0] for row in facts.answers[0].rows}
    assert counted == set(ropewalk.TABLES) - UNASKED
    assert all(answer.rows for answer in facts.answers)
    check(run, facts.answers)


def test_an_import_is_read_as_sql_does(facts: Facts) -> None:
    run = ropewalk.open(facts.folder, facts.imported)
    check(run, facts.imported_answers)
    assert len(run.table("prompts")) == 2, "they lie in the shards of the rollout stage"
    assert run.table("turns")["logprobs"].null_count == len(run.table("turns")) > 0
    assert len(run.table("updates")) == 0
    with pytest.raises(ropewalk.ManifestNotFound, match="step 1 stage update generation 0; the step has the stages"):
        run.checkpoint(run.steps[0])


@pytest.mark.parametrize("table", ropewalk.TABLES)
def test_declared_columns_are_the_shards(facts: Facts, table: str) -> None:
    """A shard that this version's program wrote has exactly the declared columns and types."""
    shards = sorted((facts.folder / facts.prefix / f"table={table}").glob("step=*/gen=0/*.parquet"))
    if table in UNASKED:
        assert not shards
        return
    assert shards
    got = pq.read_schema(shards[0])
    assert got.remove_metadata().equals(COLUMNS[table]), got


def test_policies_are_those_of_the_checkpoints(run: ropewalk.Run, facts: Facts) -> None:
    rows = run.table("policies").arrow.to_pylist()
    assert [row["step"] for row in rows] == [0, *run.steps]
    assert rows[-1] == {"run": facts.run, "step": run.steps[-1], "policy_version": facts.checkpoint}
    assert run.table("policies", steps=2, columns=["policy_version"]).column_names == [*POLICIES.names]
    with pytest.raises(ropewalk.StepNotFound, match="no finished step 99"):
        run.table("policies", steps=99)
    with pytest.raises(ropewalk.ColumnNotFound, match="table policies has no column 'digest'"):
        run.table("policies", columns=["digest"])


def test_batches_are_tables(run: ropewalk.Run, facts: Facts) -> None:
    batch = run.table("batch")
    assert batch.column_names == facts.columns["batch"]
    assert batch.num_rows == sum(run.batch(step).num_rows for step in run.steps) > 0
    one = run.table("batch", steps=1, columns=["advantages"])
    assert one.column_names == ["run", "step", "gen", "advantages"]
    assert one["advantages"].to_pylist() == run.batch(1)["advantages"].to_pylist()
    assert run.table("replay_batch").column_names == batch.column_names


def test_steps(run: ropewalk.Run) -> None:
    whole = run.table("rewards")
    first = run.table("rewards", steps=1)
    assert set(first["step"].to_pylist()) == {1}
    rest = run.table("rewards", steps=run.steps[1:])
    assert first.num_rows + rest.num_rows == whole.num_rows
    assert run.table("rewards", steps=[]).num_rows == 0
    with pytest.raises(ropewalk.StepNotFound, match=r"no finished step 99; the 4 finished ones are 1 to 4"):
        run.table("rewards", steps=[1, 99])


def test_columns(run: ropewalk.Run) -> None:
    got = run.table("turns", columns=["turn", "token_ids"])
    assert got.column_names == ["run", "step", "gen", "turn", "token_ids"]
    message = "table turns has no column 'tokens'; it has run, step, gen, group_id"
    with pytest.raises(ropewalk.ColumnNotFound, match=message):
        run.table("turns", columns=["tokens"])


def test_before_the_first_step_the_step_is_null(run: ropewalk.Run) -> None:
    evaluations = run.table("evaluations").arrow
    tags = dict(zip(evaluations["step"].to_pylist(), evaluations["tag"].to_pylist(), strict=True))
    assert tags == {None: "warm_start", 4: "final"}


def test_unknown_table(run: ropewalk.Run) -> None:
    with pytest.raises(ropewalk.TableNotFound, match="no table 'reward' in the record; it has prompts, turns,"):
        run.table("reward")
