"""Reads the record of Ropewalk's runs as Arrow tables.

    import ropewalk

    run = ropewalk.open(".ropewalk", run="quickstart-s1")
    run.table("rewards").polars().select("step", "reward").group_by("step").mean()

The package reads the record through its heads and manifests. It never reads objects that no manifest
names (orphans of lost attempts), and it checks every object against its digest.

Glossary. A *run* is one training of one policy. A *step* is one pass from prompts to a new policy. A
*shard* is one immutable file of a stage's output. A *manifest* is the JSON that commits a stage. A
*head* names the manifests that a step's update consumed. A *generation* is 0 for what the run itself
made, and greater for replays.
"""

from ropewalk.catalogue import RunInfo, runs
from ropewalk.checkpoint import Checkpoint
from ropewalk.errors import (
    CheckpointPruned,
    ColumnNotFound,
    DamagedError,
    GapWarning,
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
    "GapWarning",
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
