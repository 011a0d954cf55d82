"""Counts the rows of each table's folder with libraries that know nothing of the record.

Usage: readers.py RUN_FOLDER…; prints a list with an object for each folder: library → table → rows, or the error.
"""

import json
import os
import pathlib
import sys

import chdb
import duckdb
import pandas as pd
import polars as pl


def duck(folder):
    query = f"select count(*), sum(step) from read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
    return duckdb.connect().execute(query).fetchall()[0][0]


def clickhouse(folder):
    """Reads every column: ClickHouse takes the types of step and gen from the keys."""
    query = f"select count(), sum(step), sum(cityHash64(*)) from file('{folder}/**/*.parquet', Parquet)"
    return int(chdb.query(query, "CSV").data().split(",")[0])


def pandas(folder):
    frame = pd.read_parquet(folder)
    return len(frame["step"].astype("int64"))


def polars(folder):
    frame = pl.read_parquet(f"{folder}/**/*.parquet", hive_partitioning=True)
    frame["step"].cast(pl.Int64)
    return frame.height


READERS = {"pandas": pandas, "duckdb": duck, "clickhouse": clickhouse, "polars": polars}
"""Each counts the rows of a table, whose step must be a number."""


def counted(read, folder):
    try:
        return read(folder)
    except Exception as e:
        return f"{type(e).__name__}: {e}"


out = []
for run in map(pathlib.Path, sys.argv[1:]):
    tables = [t for t in sorted(run.glob("table=*")) if any(t.rglob("*.parquet"))]
    out.append({
        name: {t.name.removeprefix("table="): counted(read, t) for t in tables} for name, read in READERS.items()
    })
print(json.dumps(out))
sys.stdout.flush()
os._exit(0)  # libraries that these load may abort while the interpreter ends
