"""The run that the tests read: a real one, described by the JSON file that ROPEWALK_TEST_RUN names.

test/e2e makes it: the state folder of a local stack, the run's name, what `ropewalk` says of it,
and queries with what `ropewalk sql` answers. The AWS_* variables name the stack's S3 server.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import ropewalk


@dataclass(frozen=True)
class Answer:
    """A query and what `ropewalk sql` answers to it."""

    query: str
    columns: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True)
class Facts:
    """What is known of the run without the package."""

    home: Path
    bucket: str
    run: str
    checkpoint: str
    """Digest of the last step's."""
    recipe: dict[str, Any]
    runs: list[dict[str, Any]]
    answers: list[Answer]
    columns: dict[str, list[str]]
    """Of each table."""
    imported: str
    """The name of an import, and what is known of it."""
    imported_answers: list[Answer]

    @property
    def folder(self) -> Path:
        """Holds the bucket's content."""
        return self.home / "s3" / self.bucket

    @property
    def prefix(self) -> str:
        return f"runs/run={self.run}/"


@pytest.fixture(scope="session")
def facts() -> Facts:
    path = os.environ.get("ROPEWALK_TEST_RUN")
    if not path:
        pytest.skip("ROPEWALK_TEST_RUN names no run; `go test ./test/e2e -run Python` makes one")
    doc = json.loads(Path(path).read_text())
    doc["home"] = Path(doc["home"])
    for field in ("answers", "imported_answers"):
        doc[field] = [Answer(**a) for a in doc[field]]
    return Facts(**doc)


@pytest.fixture(scope="session", params=["folder", "s3"])
def run(request: pytest.FixtureRequest, facts: Facts) -> ropewalk.Run:
    """The real run, read as plain files and through the S3 server."""
    url = f"s3://{facts.bucket}" if request.param == "s3" else str(facts.folder)
    return ropewalk.open(f"{url}/{facts.prefix}")


@pytest.fixture
def copy(facts: Facts, tmp_path: Path) -> Path:
    """A folder with a copy of the run's record, less its checkpoints, that a test may spoil."""
    leave = shutil.ignore_patterns("checkpoints")
    shutil.copytree(facts.folder / facts.prefix, tmp_path / facts.prefix, ignore=leave)
    shutil.copytree(facts.folder / "catalogue", tmp_path / "catalogue")
    return tmp_path


@pytest.fixture
def reopen(facts: Facts, copy: Path) -> Callable[[], ropewalk.Run]:
    """Opens the copy again."""
    return lambda: ropewalk.open(copy, facts.run)
