"""Objects under keys: an S3 bucket, or a folder that holds the objects of a bucket as plain files."""

from dataclasses import dataclass

from pyarrow import fs

from ropewalk.errors import StoreError


@dataclass(frozen=True)
class Bucket:
    """The objects below one folder of a file system. Safe for concurrent use."""

    filesystem: fs.FileSystem
    root: str
    """The path in the file system that the keys are relative to; without a slash at its end."""
    url: str
    """The name of the bucket in messages."""

    def path(self, key: str) -> str:
        """The path of a key in the file system."""
        return f"{self.root}/{key}"

    @property
    def local(self) -> bool:
        """Whether the objects are files on this machine."""
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def get(self, key: str) -> bytes | None:
        """Returns an object's bytes, or None if there is no such object."""
        try:
            with self.filesystem.open_input_stream(self.path(key)) as stream:
                data: bytes = stream.read()
                return data
        except FileNotFoundError:
            return None
        except OSError as e:
            raise StoreError(f"read {key} in {self.url}: {e}") from e

    def keys(self, prefix: str) -> list[str]:
        """Returns the keys below a prefix that ends in a slash, sorted."""
        below = self.path(prefix).rstrip("/")
        selector = fs.FileSelector(below, recursive=True, allow_not_found=True)
        try:
            found = self.filesystem.get_file_info(selector)
        except OSError as e:
            raise StoreError(f"list {prefix} in {self.url}: {e}") from e
        skip = len(self.root) + 1
        return sorted(i.path[skip:] for i in found if i.type == fs.FileType.File)
