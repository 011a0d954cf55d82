"""Reads the record of Ropewalk's runs as Arrow tables.

    import ropewalk

    run = ropewalk.open(".ropewalk", run="quickstart-s1")
    run.table("rewards").polars().select("step", "reward").group_by("step").mean()

The record is opened through its heads and manifests, so what no manifest names (orphans of lost
attempts) is never read, and every byte is checked against its digest as it is read.

Glossary. A *run* is one training of one policy; a *step* one pass from prompts to a new policy; a
*shard* one immutable file of a stage's output; a *manifest* the JSON that commits a stage; a
*head* names the manifests that a step's update consumed; a *generation* is 0 for what the run
made and greater for what was made again.
"""

from ropewalk.catalogue import RunInfo, runs
from ropewalk.checkpoint import Checkpoint
from ropewalk.errors import (
    CheckpointPruned,
    ColumnNotFound,
    DamagedError,
    GenerationNotFound,
    LibraryMissing,
    ManifestNotFound,
    RecordError,
    RunNotFound,
    StepNotFound,
    StoreError,
    TableNotFound,
    URLError,
)
from ropewalk.manifest import CheckpointFile, Manifest, Ref, Shard
from ropewalk.place import INIT, Place
from ropewalk.run import Run, open
from ropewalk.table import Table
from ropewalk.tables import TABLES
from ropewalk.visible import Generation

__all__ = [
    "INIT",
    "TABLES",
    "Checkpoint",
    "CheckpointFile",
    "CheckpointPruned",
    "ColumnNotFound",
    "DamagedError",
    "Generation",
    "GenerationNotFound",
    "LibraryMissing",
    "Manifest",
    "ManifestNotFound",
    "Place",
    "RecordError",
    "Ref",
    "Run",
    "RunInfo",
    "RunNotFound",
    "Shard",
    "StepNotFound",
    "StoreError",
    "Table",
    "TableNotFound",
    "URLError",
    "open",
    "runs",
]
