"""The tables of the record and their columns, as the schema's Go types declare them (tables.json)."""

import json
from importlib.resources import files

import pyarrow as pa

FRONT = pa.schema([("run", pa.string()), ("step", pa.int32()), ("gen", pa.int32())])
"""The columns in front of a table's own: the run, the step (null for rows from before the first
step) and the generation."""

_TYPES = {
    "string": pa.string(),
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "list<int32>": pa.list_(pa.field("element", pa.int32(), nullable=False)),
    "list<float>": pa.list_(pa.field("element", pa.float32(), nullable=False)),
    "list<float?>": pa.list_(pa.field("element", pa.float32())),
}


def _read() -> dict[str, pa.Schema]:
    doc = json.loads(files(__package__).joinpath("tables.json").read_text("utf-8"))
    return {
        t["table"]: pa.schema([pa.field(c["name"], _TYPES[c["type"]], nullable=c["nullable"]) for c in t["columns"]])
        for t in doc
    }


COLUMNS: dict[str, pa.Schema] = _read()
"""Each table's own columns."""

TABLES: tuple[str, ...] = tuple(COLUMNS)
"""The tables, in the order in which a step fills them."""

_INTS, _FLOATS = _TYPES["list<int32>"], _TYPES["list<float>"]

_BATCH = pa.schema(
    [
        pa.field("group_id", pa.string(), nullable=False),
        pa.field("trajectory_id", pa.string(), nullable=False),
        pa.field("count", pa.int32(), nullable=False),
        pa.field("weight", pa.float64(), nullable=False),
        pa.field("token_ids", _INTS, nullable=False),
        pa.field("loss_mask", _INTS, nullable=False),
        pa.field("old_logprobs", _FLOATS),
        pa.field("advantages", _FLOATS, nullable=False),
        pa.field("rollout_logprobs", _FLOATS),
        pa.field("reference_logprobs", _FLOATS),
        pa.field("turn", pa.int32()),
        pa.field("values", _FLOATS),
        pa.field("returns", _FLOATS),
    ]
)

BATCHES: dict[str, pa.Schema] = {"batch": _BATCH, "replay_batch": _BATCH}
"""The tables whose shards are Arrow files, with their columns."""

POLICIES = pa.schema([("run", pa.string()), ("step", pa.int32()), ("policy_version", pa.string())])
"""The columns of the table policies, which no shard holds: the policy after each step, 0 for the first one."""
