"""The package's exceptions. Every one is a RecordError and says what is at fault."""


class RecordError(Exception):
    """Something of the record cannot be read."""


class URLError(RecordError, ValueError):
    """The URL, or what the environment says of the S3 server, names no place of a record."""


class StoreError(RecordError, OSError):
    """The folder or the S3 server did not answer as it should."""


class RunNotFound(RecordError, LookupError):
    """The record holds nothing of a run of that name."""


class StepNotFound(RecordError, LookupError):
    """The run has no head for that step."""


class TableNotFound(RecordError, LookupError):
    """The record has no table of that name."""


class ColumnNotFound(RecordError, LookupError):
    """The table has no column of that name."""


class GenerationNotFound(RecordError, LookupError):
    """Nothing of the run was made in that generation."""


class ManifestNotFound(RecordError, LookupError):
    """Nothing is committed at that place."""


class CheckpointPruned(RecordError, LookupError):
    """The checkpoint's files were deleted on purpose; its manifest stays."""


class DamagedError(RecordError):
    """An object that a manifest or head names is missing, or its bytes are not those it names."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key} is damaged: {why}")
        self.key = key
        """The object at fault."""


class LibraryMissing(RecordError, ImportError):
    """A library that the package does not require is not installed."""
