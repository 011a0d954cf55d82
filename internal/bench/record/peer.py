"""Reads and writes files of turns with pyarrow on one thread, one measurement for each line of standard input."""

import json
import os
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq

folder = sys.argv[1]
pa.set_cpu_count(1)
pa.set_io_thread_count(1)

TABLES = {}
DICTIONARY = ["group_id", "token_ids.list.element", "loss_mask.list.element", "finish", "anchor_hash", "policy_version"]
SPLIT = ["logprobs.list.element", "entropies.list.element"]
SAME = {
    "use_dictionary": DICTIONARY,
    "column_encoding": {name: "BYTE_STREAM_SPLIT" for name in SPLIT},
    "data_page_version": "1.0",
    "write_page_index": True,
}


def path(name):
    return os.path.join(folder, name)


def read(name):
    return pq.read_table(path(name), use_threads=False)


def write(name, **options):
    out = pa.BufferOutputStream()
    pq.write_table(TABLES[name], out, compression="zstd", **options)
    return out.getvalue().size


DOES = {
    "table": lambda name: len(read(name)) * 0,
    "rows": lambda name: len(read(name).to_pylist()) * 0,
    "default": write,
    "same": lambda name: write(name, **SAME),
}

for line in sys.stdin:
    job = json.loads(line)
    for name in job["files"]:
        if name not in TABLES:
            TABLES[name] = read(name)
    began = time.process_time()
    size = sum(DOES[job["does"]](name) for name in job["files"])
    print(json.dumps({"seconds": time.process_time() - began, "bytes": size}), flush=True)
