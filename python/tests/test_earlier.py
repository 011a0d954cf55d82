"""Records of earlier versions, which named stages otherwise."""

import json

import pyarrow as pa

from ropewalk.manifest import decode_head, decode_manifest
from ropewalk.place import Place, canonical_stage, parse_manifest_key
from ropewalk.rows import named_today

KEY = "runs/run=r/manifests/step=2/forward/gen=0.json"
DIGEST = "0" * 64


def test_keys_have_todays_names() -> None:
    assert canonical_stage("forward") == "logprobs"
    place = parse_manifest_key(KEY)
    assert place is not None
    assert (place.stage, place.key) == ("logprobs", KEY)
    today = Place("r", "2", "logprobs")
    assert today.by_earlier_name() == place
    assert place.by_earlier_name() is None
    assert Place("r", "2", "update").by_earlier_name() is None


def test_documents_have_todays_names() -> None:
    ref = {"key": KEY, "digest": DIGEST}
    head = {"version": 1, "run": "r", "step": "2", "generations": {"forward": 0}, "stages": {"forward": [ref]}}
    read = decode_head(json.dumps(head).encode())
    assert list(read.stages) == ["logprobs"]
    assert read.generation("logprobs") == 0
    manifest = {
        "version": 1, "schema_version": 3, "run": "r", "step": "2", "stage": "forward", "try": -1, "turn": -1,
        "shard": -1, "gen": 0, "warm": "", "code": DIGEST, "config": DIGEST, "inputs": [], "shards": [],
        "parts": [], "checkpoint": None, "stats": {}, "note": {},
    }  # fmt: skip
    assert decode_manifest(json.dumps(manifest).encode()).place == parse_manifest_key(KEY)


def test_measured_times_have_todays_names() -> None:
    times = pa.table({"stage": ["reward", "forward", "forward"], "shard": [0, 0, 1]})
    read = named_today(times)
    assert read["stage"].to_pylist() == ["reward", "logprobs", "logprobs"]
    assert read.schema == times.schema
    assert named_today(read) is read
