"""The package's exceptions. Each one is a RecordError and says what is at fault."""


class RecordError(Exception):
    """Part of the record cannot be read."""


class URLError(RecordError, ValueError):
    """The URL, or the environment's settings of the S3 server, do not name a record."""


class StoreError(RecordError, OSError):
    """The folder or the S3 server did not answer correctly."""


class RunNotFound(RecordError, LookupError):
    """The record has no run with that name."""


class StepNotFound(RecordError, LookupError):
    """The run has no head for that step."""


class TableNotFound(RecordError, LookupError):
    """The record has no table with that name."""


class ColumnNotFound(RecordError, LookupError):
    """The table has no column with that name."""


class GenerationNotFound(RecordError, LookupError):
    """The run has nothing in that generation."""


class ManifestNotFound(RecordError, LookupError):
    """Nothing is committed at that place."""


class CheckpointPruned(RecordError, LookupError):
    """The checkpoint's files were deleted on purpose; its manifest remains."""


class DamagedError(RecordError):
    """An object that a manifest or head names is missing, or its bytes do not match."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key} is damaged: {why}")
        self.key = key
        """The object at fault."""


class LibraryMissing(RecordError, ImportError):
    """A library that the package does not require is not installed."""


class GapWarning(UserWarning):
    """Heads of finished steps are missing: the rows of those steps are not read. `warnings.simplefilter("error",
    ropewalk.GapWarning)` turns it into an error."""
