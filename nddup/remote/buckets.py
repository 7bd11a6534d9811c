"""Buckets and the Hub through `fsspec` and the client of each scheme: how they are opened, listed and read.

open_bucket    an address -> the client, and the path for it
as_os_error    any error of a client as an OSError with its first line
list_bucket    an address -> the files at and below it
stream_bucket  a file     -> its bytes from a place on
"""

import errno
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from nddup.errors import ConfigError, first_line
from nddup.ground.shown import drop_login
from nddup.remote.addresses import EXTRAS, RemoteFile, scheme_of

PIECE = 8 << 20
"""Bytes that are asked for at a time."""

VERSIONS = ("ETag", "etag", "blob_id", "generation", "md5Hash", "checksum")
"""Names under which clients give what changes with the content, in the order of preference."""

TIMES = ("LastModified", "last_modified", "mtime", "updated", "created")

_clients: dict[tuple[int, str], Any] = {}


def open_bucket(url: str) -> tuple[Any, str]:
    """Return the client of an address, and the path of the address as this client takes it.

    Raises:
        ConfigError: if the client is not installed, or refuses the address; for a chain of file systems.
    """
    name, scheme = drop_login(url.rstrip("/")), scheme_of(url)
    if "::" in url:  # the last of them may be this machine's
        raise ConfigError(f"{name}: a chain of file systems; expected one, such as s3://bucket/pages")
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra
        from fsspec.implementations.local import LocalFileSystem  # noqa: PLC0415

        files, root = url_to_fs(url.rstrip("/"), use_listings_cache=False)
    except ImportError as error:
        extra = EXTRAS.get("s3" if scheme == "s3a" else scheme)
        needed = f"pip install 'nddup[{extra}]'" if extra else "fsspec and its client of this scheme"
        raise ConfigError(f"{name}: opening it needs {needed} ({error})") from error
    except Exception as error:
        raise ConfigError(f"{name}: cannot be opened ({first_line(error)})") from error
    if isinstance(files, LocalFileSystem):  # it follows links, which nddup does not
        raise ConfigError(f"{name}: lies on this machine; give its path")
    return files, str(root)


@contextmanager
def as_os_error() -> Iterator[None]:
    """Turn any error of a client that is not an OSError into one with its first line."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(errno.EIO, first_line(error)) from error


def written_at(info: Mapping[str, Any]) -> float | None:
    """Return when a file was written, in seconds, from a client's info; None if that does not say."""
    for name in TIMES:
        value = info.get(name)
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
    return None


def file_of(url: str, info: Mapping[str, Any]) -> RemoteFile:
    """Return a file as a client's info describes it."""
    version = next((str(info[name]).strip('"') for name in VERSIONS if info.get(name)), "")
    return RemoteFile(url, int(info.get("size") or 0), int((written_at(info) or 0) * 1000), version)


def list_bucket(url: str) -> dict[str, RemoteFile]:
    """Return the files at and below an address, by their paths, the address itself being the path ``''``.

    Raises:
        ConfigError: as `open_bucket`.
        OSError: if they cannot be listed.
    """
    files, root = client_of(url)
    with as_os_error():
        files.invalidate_cache()
        try:
            infos = files.find(root, detail=True)
        except FileNotFoundError:
            infos = {}
    base, top = url.rstrip("/"), root.rstrip("/")
    listed = {}
    for path, info in infos.items():
        name = str(path)
        if info.get("type") == "directory" or name.endswith("/") or not (name == top or name.startswith(f"{top}/")):
            continue  # an object that stands for a folder, or one whose name only begins alike
        below = name[len(top) :].lstrip("/")
        listed[below] = file_of(f"{base}/{below}" if below else base, info)
    return listed


def look_at(url: str) -> RemoteFile:
    """Return one file as it is now. Raises OSError."""
    files, root = client_of(url)
    with as_os_error():
        return file_of(url, files.info(root, refresh=True))


def stream_bucket(url: str, start: int, end: int, seconds: float) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` to `end`, in pieces. Raises OSError, also after some seconds.

    A client that is not asynchronous, as that of the Hub, is only asked for no piece after them.
    """
    from fsspec.asyn import AsyncFileSystem  # noqa: PLC0415 - an extra

    files, root = client_of(url)
    until = time.monotonic() + seconds
    for low in range(start, end, PIECE):
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("it comes too slowly")
        limit = {"timeout": left} if isinstance(files, AsyncFileSystem) else {}
        with as_os_error():
            piece = bytes(files.cat_file(root, start=low, end=min(low + PIECE, end), **limit))
        yield piece
        if len(piece) < min(low + PIECE, end) - low:
            return


def time_in(info: Mapping[str, Any]) -> float:
    """Return when a file was written; the present time if that is missing: nothing seems old."""
    written = written_at(info)
    return time.time() if written is None else written


def client_of(url: str) -> tuple[Any, str]:
    """Return the client of an address, opened once for a bucket, and the path for it; a forked process has its own."""
    key = (os.getpid(), "/".join(url.split("/")[:3]))
    if key not in _clients:
        _clients[key] = open_bucket(url)[0]
    return _clients[key], str(_clients[key]._strip_protocol(url)).rstrip("/")  # noqa: SLF001 - as `url_to_fs`
