"""Where a record is: the URLs that the package accepts.

    .ropewalk                         the local stack's state folder; its bucket is ROPEWALK_S3_BUCKET (ropewalk)
    .ropewalk/s3/ropewalk             a folder with a bucket's content; also as file:///…
    s3://bucket, s3://bucket/prefix   an S3 bucket

The run is given separately, or the URL is followed by /runs/run=ID.
"""

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from ropewalk.bucket import Bucket
from ropewalk.errors import StoreError, URLError

_RUN = "run="


def locate(url: str | os.PathLike[str]) -> tuple[Bucket, str | None]:
    """Returns the bucket that a URL names, and the run if it names one."""
    text = os.fspath(url)
    if text.startswith("s3://"):
        return _in_s3(text)
    if text.startswith("file://"):
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise URLError(f"{text}: want file:///path, a folder on this machine")
        return _in_folder(text, unquote(parts.path))
    if "://" in text:
        raise URLError(f"{text}: want a folder, file:///path or s3://bucket")
    return _in_folder(text, text)


def _split(path: str) -> tuple[str, str | None]:
    """Splits a trailing runs/run=ID off a path."""
    path = path.rstrip("/")
    above, _, last = path.rpartition("/")
    if last.startswith(_RUN) and above.rpartition("/")[2] == "runs":
        return above.rpartition("/")[0], last[len(_RUN) :]
    return path, None


def _in_folder(url: str, path: str) -> tuple[Bucket, str | None]:
    root, run = _split(os.path.abspath(os.path.expanduser(path)))
    if not os.path.isdir(root):
        raise URLError(f"{url}: there is no such folder")
    if not os.path.isdir(f"{root}/runs") and os.path.isdir(f"{root}/s3"):
        root = f"{root}/s3/{os.environ.get('ROPEWALK_S3_BUCKET') or 'ropewalk'}"
    if not os.path.isdir(root):
        raise URLError(f"{url}: there is no bucket {os.path.basename(root)} in it; ROPEWALK_S3_BUCKET names another")
    return Bucket(fs.LocalFileSystem(), root, url), run


def _in_s3(url: str) -> tuple[Bucket, str | None]:
    root, run = _split(url[len("s3://") :])
    if not root or root.startswith("/"):
        raise URLError(f"{url}: names no bucket; want s3://bucket or s3://bucket/runs/run=ID")
    return Bucket(_s3(os.environ), root, url), run


def _first(environ: Mapping[str, str], *names: str) -> str | None:
    return next((environ[n] for n in names if environ.get(n)), None)


def _s3(environ: Mapping[str, str]) -> fs.S3FileSystem:
    """A client of the server that the standard AWS_* variables name; without them, of the one that AWS's
    configuration files name."""
    region = _first(environ, "AWS_REGION", "AWS_DEFAULT_REGION")
    access, secret = environ.get("AWS_ACCESS_KEY_ID") or None, environ.get("AWS_SECRET_ACCESS_KEY") or None
    if (access is None) != (secret is None):
        raise URLError("set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither")
    token = environ.get("AWS_SESSION_TOKEN") or None if access else None
    endpoint = _first(environ, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    scheme = host = None
    if endpoint:
        parts = urlsplit(endpoint)
        scheme, host = parts.scheme, parts.netloc
        if scheme not in ("http", "https") or not host or parts.path.strip("/"):
            raise URLError(f"the S3 endpoint {endpoint!r}: want http://host:port or https://host")
        region = region or "us-east-1"
    try:
        return fs.S3FileSystem(
            access_key=access,
            secret_key=secret,
            session_token=token,
            region=region,
            scheme=scheme or "https",
            endpoint_override=host,
        )
    except OSError as e:
        raise StoreError(f"make an S3 client: {e}") from e
