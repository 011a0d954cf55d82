"""Checkpoints: the Hugging Face folders that a run's updates made."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ropewalk.errors import CheckpointPruned, DamagedError, RecordError
from ropewalk.manifest import CheckpointFile, CheckpointInfo
from ropewalk.reader import Reader


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint of a run."""

    reader: Reader
    info: CheckpointInfo

    @property
    def digest(self) -> str:
        """The identity of the policy; rows have it as policy_version."""
        return self.info.digest

    @property
    def weights(self) -> str | None:
        """The identity of the weights, independent of file names; None in records of earlier versions."""
        return self.info.weights

    @property
    def files(self) -> tuple[CheckpointFile, ...]:
        """The files, sorted by name."""
        return self.info.files

    @property
    def pruned(self) -> bool:
        """Whether the files were deleted on purpose, to save space."""
        return self.reader.bucket.get(self.info.prefix + "pruned.json") is not None

    @property
    def path(self) -> Path:
        """The folder of the files, if the record is on this machine and the folder holds all of them. This property
        does not check their bytes."""
        self._check()
        shared = [f.name for f in self.files if f.at]
        if shared:
            raise RecordError(
                f"checkpoint {self.digest} shares {', '.join(shared)} with another: download(folder) copies all of it"
            )
        if not self.reader.bucket.local:
            raise RecordError(f"checkpoint {self.digest} is in {self.reader.bucket.url}: download(folder) copies it")
        return Path(self.reader.bucket.path(self.info.prefix))

    def read(self, name: str) -> bytes:
        """Returns one file's bytes, checked against its digest."""
        self._check()
        for f in self.files:
            if f.name == name:
                return self.reader.blob(f.at or self.info.prefix + name, f.digest)
        names = ", ".join(f.name for f in self.files)
        raise RecordError(f"checkpoint {self.digest} has no file {name}; it has {names}")

    def download(self, folder: str | os.PathLike[str]) -> Path:
        """Copies the files into a folder that `from_pretrained` accepts. Each file is checked against its
        digest and gets its name once it is complete. Existing files with the right digest are kept."""
        into = Path(folder)
        into.mkdir(parents=True, exist_ok=True)
        for f in self.files:
            target = into / f.name
            if not target.is_file() or hashlib.sha256(target.read_bytes()).hexdigest() != f.digest:
                _write(target, self.read(f.name))
        return into

    def _check(self) -> None:
        if self.pruned:
            raise CheckpointPruned(
                f"checkpoint {self.digest} was pruned: {self.info.prefix} holds only the note pruned.json"
            )


def _write(target: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
