"""Rows as Arrow, and as frames of other libraries."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ropewalk.errors import LibraryMissing

if TYPE_CHECKING:
    import duckdb as db
    import pandas as pd
    import polars as pl


class Table:
    """Rows of the record in memory. Libraries that accept Arrow (the PyCapsule interface) accept it
    directly; `arrow` is the pyarrow.Table."""

    def __init__(self, arrow: pa.Table) -> None:
        self.arrow = arrow

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""
        return self.arrow.schema

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.arrow.column_names)

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self.arrow.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        """The column with this name; KeyError if there is none."""
        return self.arrow.column(column)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface."""
        return self.arrow.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"Table({self.num_rows} rows: {', '.join(self.column_names)})"

    def polars(self) -> pl.DataFrame:
        """The rows as a Polars frame; needs ropewalk[polars]."""
        frame: pl.DataFrame = library("polars").from_arrow(self.arrow)
        return frame

    def pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame; needs ropewalk[pandas]."""
        library("pandas")
        return self.arrow.to_pandas()

    def duckdb(self, connection: db.DuckDBPyConnection | None = None) -> db.DuckDBPyRelation:
        """The rows as a DuckDB relation of a connection (the default one unless given); needs
        ropewalk[duckdb]."""
        duck = library("duckdb")
        relation: db.DuckDBPyRelation = (connection or duck.default_connection()).from_arrow(self.arrow)
        return relation


def library(name: str, extra: str | None = None) -> Any:
    """Imports a library that the package does not require; the error names the extra that installs it."""
    try:
        return import_module(name)
    except ImportError as e:
        extra = extra or name
        raise LibraryMissing(f"{name} is not installed: python -m pip install 'ropewalk[{extra}]' ({e})") from e
