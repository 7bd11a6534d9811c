"""WACZ files: a ZIP archive whose folder `archive` holds WARC files. Each of these is a file of the collection.

    members_of    a WACZ file -> the WARC files in it
    split_member  the path of such a file -> the path of the WACZ file, and the name inside it
    open_member   both -> the stored bytes
    open_stored   the path of any local file -> the stored bytes

Its path, and its name in the tables, is `file.wacz!archive/x.warc.gz`. The index and the list of pages beside them are
not read. Source: https://specs.webrecorder.net/wacz/1.1.1/
"""

import re
import zipfile
from typing import BinaryIO, cast

_MEMBER = re.compile(r"archive/.+\.w?arc(\.gz|\.zst)?", re.IGNORECASE)
_MARK = re.compile(r"\.wacz!", re.IGNORECASE)
_ERRORS = (zipfile.BadZipFile, NotImplementedError, RuntimeError, KeyError, ValueError)
"""What `zipfile` raises besides OSError for a damaged, encrypted or unknown archive."""


def members_of(path: str) -> list[tuple[str, int]]:
    """Return the name and the stored bytes of each WARC file in a WACZ file; none if it cannot be read.

    Example:
        >>> members_of("/no/such.wacz")
        []
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return [(one.filename, one.file_size) for one in archive.infolist() if _MEMBER.fullmatch(one.filename)]
    except (OSError, *_ERRORS):
        return []


def split_member(path: str) -> tuple[str, str] | None:
    """Return the path of a WACZ file and the name inside it; None for any other path.

    Example:
        >>> split_member("/a/b.wacz!archive/c.warc.gz"), split_member("/a/b.wacz")
        (('/a/b.wacz', 'archive/c.warc.gz'), None)
    """
    found = _MARK.search(path)
    return (path[: found.end() - 1], path[found.end() :]) if found else None


def open_stored(path: str) -> BinaryIO:
    """Open a local file, or one in a WACZ file, to read its bytes as stored. Raises OSError."""
    inner = split_member(path)
    return open_member(*inner) if inner else open(path, "rb", buffering=0)  # noqa: PTH123 - the caller closes it


def open_member(path: str, name: str) -> BinaryIO:
    """Open a file in a WACZ file, to read its bytes as stored, whatever its checksum. Raises OSError."""
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.open(name)  # it stays open after the archive is closed
            # Bytes before and after damaged ones are read, as of any WARC file; its own checksums tell what is wrong.
            member._expected_crc = None  # type: ignore[attr-defined]  # noqa: SLF001 - `zipfile` has no other way
            return cast(BinaryIO, member)
    except _ERRORS as error:
        raise OSError(f"{path}: {name}: {error}") from error
