"""Reads every shard in a folder with one library and compares it with what was written.

Usage: readers.py pyarrow|duckdb|polars FOLDER

FOLDER holds NAME.parquet or NAME.arrow and NAME.json, the rows as a list of objects. A table with a
trajectory_id is also asked for one trajectory, so that statistics and bloom filters are used.
"""

import json
import pathlib
import sys


def with_pyarrow(path):
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    import pyarrow.ipc
    import pyarrow.parquet as pq

    if path.suffix == ".arrow":
        with pyarrow.ipc.open_file(path) as f:
            table = f.read_all()
        table.validate(full=True)
        return table.to_pylist(), None
    table = pq.read_table(path)
    table.validate(full=True)
    data = ds.dataset(path)
    return table.to_pylist(), lambda t: data.to_table(filter=pc.field("trajectory_id") == t).num_rows


def with_duckdb(path):
    import duckdb

    if path.suffix == ".arrow":
        return None, None
    c = duckdb.connect()
    found = c.execute("select * from read_parquet(?)", [str(path)])
    names = [d[0] for d in found.description]
    rows = [dict(zip(names, r)) for r in found.fetchall()]
    query = "select count(*) from read_parquet(?) where trajectory_id = ?"
    return rows, lambda t: c.execute(query, [str(path), t]).fetchone()[0]


def with_polars(path):
    import polars as pl

    if path.suffix == ".arrow":
        return pl.read_ipc(path.read_bytes()).to_dicts(), None
    scan = pl.scan_parquet(path)
    count = lambda t: scan.filter(pl.col("trajectory_id") == t).collect().height
    return pl.read_parquet(path).to_dicts(), count


def check(read, path):
    want = json.loads(path.with_suffix(".json").read_text())
    got, count = read(path)
    if got is None:
        return
    if len(got) != len(want):
        sys.exit(f"{path.name}: {len(got)} rows, want {len(want)}")
    for i, (g, w) in enumerate(zip(got, want)):
        if list(g) != list(w):
            sys.exit(f"{path.name}: columns {list(g)}, want {list(w)}")
        for name in w:
            if g[name] != w[name] or type(g[name]) is not type(w[name]):
                sys.exit(f"{path.name} row {i} {name}: {g[name]!r}, want {w[name]!r}")
    if count and want and "trajectory_id" in want[0]:
        for t in (want[len(want) // 2]["trajectory_id"], "99999/9999/999"):
            n = sum(w["trajectory_id"] == t for w in want)
            if count(t) != n:
                sys.exit(f"{path.name}: {count(t)} rows of trajectory {t}, want {n}")
    print(f"{path.name}: {len(want)} rows agree")


def main():
    read = {"pyarrow": with_pyarrow, "duckdb": with_duckdb, "polars": with_polars}[sys.argv[1]]
    shards = sorted(p for p in pathlib.Path(sys.argv[2]).iterdir() if p.suffix in (".parquet", ".arrow"))
    for path in shards:
        check(read, path)


main()
