"""Generations: a replay commits its stages next to the first ones and moves no head."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ropewalk

Reopen = Callable[[], ropewalk.Run]


@pytest.fixture
def replayed(reopen: Reopen, copy: Path) -> ropewalk.Run:
    """The run with the selection of step 2 made again in generation 1, where nothing is kept."""
    first = reopen().manifest(2, "resample")
    rows = pq.read_table(pa.BufferReader((copy / first.shards[0].key).read_bytes()))
    at = rows.schema.get_field_index("kept")
    rows = rows.set_column(at, rows.schema.field(at), pa.array([False] * len(rows)))
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    data = sink.getvalue().to_pybytes()
    place = ropewalk.Place(first.place.run, "2", "resample", gen=1)
    digest = hashlib.sha256(data).hexdigest()
    doc = json.loads((copy / first.place.key).read_text())
    doc["gen"] = 1
    doc["shards"] = [
        {
            "key": place.data_key("selection", digest),
            "table": "selection",
            "digest": digest,
            "bytes": len(data),
            "rows": len(rows),
        }
    ]
    for key, text in ((doc["shards"][0]["key"], data), (place.key, json.dumps(doc).encode())):
        (copy / key).parent.mkdir(parents=True, exist_ok=True)
        (copy / key).write_bytes(text)
    return reopen()


def kept(table: ropewalk.Table) -> dict[tuple[int, int], int]:
    """How many rows are kept, by step and generation."""
    counts = table.duckdb().aggregate("step, gen, count(*) filter (kept)").fetchall()
    return {(step, gen): n for step, gen, n in counts}


def test_heads_alone_by_default(replayed: ropewalk.Run) -> None:
    got = kept(replayed.table("selection"))
    assert set(got) == {(1, 0), (2, 0), (3, 0), (4, 0)}
    assert got[2, 0] > 0


def test_all(replayed: ropewalk.Run) -> None:
    first, both = kept(replayed.table("selection")), kept(replayed.table("selection", gen="all"))
    assert both == {**first, (2, 1): 0}
    assert kept(replayed.table("selection", gen="all", steps=2)).keys() == {(2, 0), (2, 1)}
    assert set(replayed.table("rewards", gen="all")["gen"].to_pylist()) == {0}


def test_one(replayed: ropewalk.Run) -> None:
    first = kept(replayed.table("selection"))
    want = {(step, 0): n for (step, _), n in first.items() if step != 2} | {(2, 1): 0}
    assert kept(replayed.table("selection", gen=1)) == want, "other steps as their heads name them"
    assert kept(replayed.table("selection", gen=0)) == first
    for table in ("rewards", "evaluations", "timings"):
        assert replayed.table(table, gen=1).arrow.equals(replayed.table(table).arrow), "nothing of it was made again"
    assert replayed.manifest(2, "resample", gen=1).place.gen == 1
    assert replayed.manifest(2, "resample").place.gen == 0


def test_unknown(replayed: ropewalk.Run) -> None:
    with pytest.raises(ropewalk.GenerationNotFound, match=r"has no generation 7; it has 0, 1"):
        replayed.table("selection", gen=7)
    with pytest.raises(ValueError, match="gen: want a number of at least 0"):
        replayed.table("selection", gen="1")  # type: ignore[arg-type]


def test_a_table_without_rows_has_its_columns(replayed: ropewalk.Run) -> None:
    for table in ropewalk.TABLES:
        assert replayed.table(table, steps=[]).schema.equals(replayed.table(table).schema), table


def test_columns_of_a_later_version(reopen: Reopen, copy: Path, replayed: ropewalk.Run) -> None:
    """A shard with a further column: where shards lack it, it is null."""
    m = replayed.manifest(2, "resample", gen=1)
    rows = pq.read_table(pa.BufferReader((copy / m.shards[0].key).read_bytes()))
    rows = rows.append_column(pa.field("since_then", pa.int64()), pa.array(range(len(rows)), pa.int64()))
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    data = sink.getvalue().to_pybytes()
    doc = json.loads((copy / m.place.key).read_text())
    digest = hashlib.sha256(data).hexdigest()
    doc["shards"][0] |= {"key": m.place.data_key("selection", digest), "digest": digest, "bytes": len(data)}
    (copy / doc["shards"][0]["key"]).write_bytes(data)
    (copy / m.place.key).write_text(json.dumps(doc))
    whole = reopen().table("selection", gen="all").polars()
    assert whole.filter(whole["gen"] == 1)["since_then"].null_count() == 0
    assert whole.filter(whole["gen"] == 0)["since_then"].is_null().all()
