"""Files elsewhere, listed and read whatever their scheme: tried again, within bounds of time, and never half.

    list_remote    an address                -> the files at and below it
    read_remote    a file that was listed    -> its bytes, or some of them, exactly as many as were asked for

A read ends with an error unless every byte came, and the file is the one that was listed: a web server says so in each
answer, a bucket is asked again after the last byte.
"""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from nddup.errors import ConfigError, UnreachableError, first_line
from nddup.remote.addresses import WEB, RemoteFile, scheme_of, spell_bare
from nddup.remote.buckets import list_bucket, look_at, stream_bucket
from nddup.remote.web import FileChangedError, look_at_web, stream_web

ATTEMPTS = 5
"""How often in a row a server may fail without sending a byte."""

FIRST_WAIT = 0.5
"""Seconds before the second attempt; before each later one twice as many."""

LEAST_RATE = 16 << 10
"""Bytes a second that a file must come with, beside `GRACE` seconds."""

GRACE = 600.0

R = TypeVar("R")


def list_remote(url: str) -> dict[str, RemoteFile]:
    """Return the files at and below an address, by their paths below it; that of the address itself is ``''``.

    Raises:
        ConfigError: if there is none, or a client is missing.
        UnreachableError: if it cannot be listed.
    """
    name = spell_bare(url)
    try:
        if scheme_of(url) in WEB:
            return {"": _try(url, lambda: look_at_web(url))}
        listed = _try(url, lambda: list_bucket(url))
    except FileNotFoundError:
        listed = {}
    if not listed:
        raise ConfigError(f"INPUT {name}: no such file or folder")
    return listed


def read_remote(file: RemoteFile, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` to `end`, or to its end; all of them, or an error.

    Raises:
        FileChangedError: if it is not the file that was listed.
        UnreachableError: if it cannot be read.
    """
    end = file.size if end is None else min(end, file.size)
    at, failed, limit = start, 0, time.monotonic() + GRACE + (end - start) / LEAST_RATE
    why: BaseException = OSError("the connection ended early")
    while at < end:
        before = at
        try:
            for piece in _stream(file, at, end, limit - time.monotonic()):
                at += len(piece)
                yield piece
                if time.monotonic() > limit:
                    break
        except (FileNotFoundError, PermissionError) as error:
            raise UnreachableError(f"{spell_bare(file.url)}: cannot be read any more ({first_line(error)})") from error
        except OSError as error:
            why = error
        if at < end and time.monotonic() > limit:
            raise UnreachableError(f"{spell_bare(file.url)}: comes slower than {LEAST_RATE >> 10} KB a second")
        if at < end:
            failed = 1 if at > before else failed + 1
            _wait(file.url, failed, why)
    if scheme_of(file.url) not in WEB:
        now = _try(file.url, lambda: look_at(file.url))
        if now != file:
            raise FileChangedError(f"{spell_bare(file.url)}: changed since it was listed; run the command again")


def _stream(file: RemoteFile, start: int, end: int, seconds: float) -> Iterator[bytes]:
    if scheme_of(file.url) in WEB:
        return stream_web(file, start, end)
    return stream_bucket(file.url, start, end, seconds)


def _try(url: str, ask: Callable[[], R]) -> R:
    """Return what a server answers, asked again where it fails. Raises UnreachableError, FileNotFoundError."""
    failed = 0
    while True:
        try:
            return ask()
        except FileNotFoundError:
            raise
        except PermissionError as error:
            raise UnreachableError(f"{spell_bare(url)}: cannot be opened ({first_line(error)})") from error
        except OSError as error:
            failed += 1
            _wait(url, failed, error)


def _wait(url: str, failed: int, error: BaseException) -> None:
    if failed >= ATTEMPTS:
        raise UnreachableError(
            f"{spell_bare(url)}: cannot be read after {ATTEMPTS} attempts ({first_line(error)}); try again later"
        ) from error
    time.sleep(FIRST_WAIT * 2 ** (failed - 1))
