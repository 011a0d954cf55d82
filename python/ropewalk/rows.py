"""Shards as Arrow tables."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from ropewalk.errors import ColumnNotFound, DamagedError
from ropewalk.manifest import Manifest, Shard, check_major
from ropewalk.reader import Reader, each
from ropewalk.tables import BATCHES, COLUMNS, FRONT


def read_rows(
    reader: Reader, table: str, manifests: Iterable[Manifest], columns: Sequence[str] | None, run: str
) -> pa.Table:
    """Returns the rows of a table's shards with the columns run, step and gen in front. A column
    of the table with one of these names (step in updates) is left out. A column that shards of an
    earlier schema version lack is null."""
    shards = [(m, s) for m in manifests for s in m.shards if s.table == table]
    pieces = each(lambda at: _piece(reader, at[0], at[1], run), shards)
    schema = _schema(table, pieces)
    if columns is not None:
        _check(table, columns, schema)
        schema = pa.schema([f for f in schema if f.name in columns or f.name in FRONT.names])
    whole = [schema.empty_table()]
    whole += [_conform(piece, schema, s) for piece, (_, s) in zip(pieces, shards, strict=True)]
    return pa.concat_tables(whole)


def read_batch(reader: Reader, manifests: Iterable[Manifest]) -> pa.Table:
    """Returns a training batch, with the columns of its Arrow file."""
    shards = [s for m in manifests for s in m.shards if s.table == "batch"]
    return pa.concat_tables([_batch(reader, s) for s in shards])


def _batch(reader: Reader, shard: Shard) -> pa.Table:
    return _read(reader, shard).replace_schema_metadata(None)


def _read(reader: Reader, shard: Shard) -> pa.Table:
    data = pa.BufferReader(reader.shard(shard))
    try:
        if shard.table in BATCHES:
            with pa.ipc.open_file(data) as file:
                rows = file.read_all()
        else:
            rows = pq.ParquetFile(data).read()
        check_version(rows.schema)
    except (pa.ArrowException, OSError, ValueError) as e:
        raise DamagedError(shard.key, str(e)) from e
    return _counted(rows, shard)


def _piece(reader: Reader, m: Manifest, shard: Shard, run: str) -> pa.Table:
    rows = _read(reader, shard)
    n, step = rows.num_rows, m.place.step_number
    front = [
        pa.repeat(pa.scalar(run, pa.string()), n),
        pa.repeat(pa.scalar(step, pa.int32()), n),
        pa.repeat(pa.scalar(m.place.gen, pa.int32()), n),
    ]
    own = [name for name in rows.column_names if name not in FRONT.names]
    fields = [*FRONT, *(rows.schema.field(name) for name in own)]
    return pa.table([*front, *(rows[name] for name in own)], schema=pa.schema(fields))


def check_version(schema: pa.Schema) -> None:
    """Refuses a shard of a later major version of the format. A number alone is a minor version of major version 1."""
    version = (schema.metadata or {}).get(b"ropewalk.schema_version", b"").decode("utf-8", "replace")
    major, point, minor = version.partition(".")
    if point:
        check_major(int(major) if major.isdigit() else major, minor)


def _counted(rows: pa.Table, shard: Shard) -> pa.Table:
    if rows.num_rows != shard.rows:
        raise DamagedError(shard.key, f"its manifest says {shard.rows} rows, but it has {rows.num_rows}")
    return rows


def _schema(table: str, pieces: Sequence[pa.Table]) -> pa.Schema:
    """Returns the columns that this package knows, then further columns of shards of a later schema version."""
    own = [f for f in (COLUMNS | BATCHES)[table] if f.name not in FRONT.names]
    fields = {f.name: f for f in [*FRONT, *own]}
    for piece in pieces:
        for f in piece.schema:
            fields.setdefault(f.name, f.with_nullable(True))
    present = [set(p.column_names) for p in pieces]
    return pa.schema(
        [f if all(f.name in names for names in present) else f.with_nullable(True) for f in fields.values()]
    )


def _conform(piece: pa.Table, schema: pa.Schema, shard: Shard) -> pa.Table:
    columns = []
    for f in schema:
        if f.name not in piece.column_names:
            columns.append(pa.nulls(piece.num_rows, f.type))
        elif piece.schema.field(f.name).type != f.type:
            raise DamagedError(shard.key, f"column {f.name} is {piece.schema.field(f.name).type}, want {f.type}")
        else:
            columns.append(piece[f.name])
    return pa.table(columns, schema=schema)


def _check(table: str, columns: Sequence[str], schema: pa.Schema) -> None:
    for name in columns:
        if name not in schema.names:
            raise ColumnNotFound(f"table {table} has no column {name!r}; it has {', '.join(schema.names)}")
