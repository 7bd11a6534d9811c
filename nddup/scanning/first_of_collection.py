"""`input.limit`: the first records of a collection, for a first trial.

    limit_collection   a collection, a number -> the collection of its first files; the last of them ends early

The records are counted once, before the run, so that every later pass finds the same records, on either engine.
"""

import io
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import BinaryIO, Protocol, cast

from nddup.reading.formats import FileHead
from nddup.reading.streams import PIECE
from nddup.scanning.collection import Collection, Group, ListedFile
from nddup.scanning.found import RecordLimits
from nddup.scanning.whole_files import StoredFile, read_file


class Reader(Protocol):
    """Opens files for an engine (`collection.Files`)."""

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """Return `size` bytes of a file from a place, as stored; fewer at its end. Raises NddupError."""


def limit_collection(reader: Reader, collection: Collection, most: int, limits: RecordLimits) -> Collection:
    """Limit a collection to its first `most` records and rejects; a file without any counts as one.

    Args:
        reader: opens the files.
        collection: all files.
        most: at least 1.
        limits: limits on a record, and on the expansion of a compressed file.

    Returns:
        The files up to the last of these records. The file that holds it is read from its start by one task, up to it.

    Raises:
        NddupError: if a file cannot be read.

    Cost: these records are read once, by this process.
    """
    known = {entry.file.source: (group.head, entry) for group in collection.groups for entry in group.files}
    assets = {file.source for file in collection.assets}
    left, kept, cut = most, [], None
    for file in collection.listing.files:
        if left <= 0:
            break
        kept.append(file)
        if file.source in assets:
            continue
        if file.source not in known:  # it could not be read at all: one reject
            left -= 1
            continue
        head, entry = known[file.source]
        found = sum(1 for _ in islice(_records_of(reader, entry, head, limits), left + 1))
        if found > left:
            cut = entry._replace(records=left)
        left -= max(found, 1)

    sources = {file.source for file in kept}
    first = replace(collection.only(sources), listing=replace(collection.listing, files=tuple(kept)))
    first = replace(first, unread=tuple(told for told in collection.unread if told[0] in sources))
    return first if cut is None else _end_early(first, cut)


def _end_early(collection: Collection, cut: ListedFile) -> Collection:
    """Return the collection with one file read from its start up to `cut.records` records."""
    groups = [
        Group(group.head, group.is_whole, tuple(cut if entry.file == cut.file else entry for entry in group.files))
        for group in collection.read_whole({cut.file.source}).groups
    ]
    return replace(collection, groups=tuple(groups))


def _records_of(reader: Reader, entry: ListedFile, head: FileHead, limits: RecordLimits) -> Iterator[object]:
    opened = partial(_open, reader, entry)
    stored = StoredFile(entry.file.source, entry.compression, limits.most_expanded(entry.file.size), opened)
    return read_file(stored, head, limits.max_record)


def _open(reader: Reader, entry: ListedFile) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(_Parts(reader, entry.file.path, entry.file.size), PIECE))


class _Parts(io.RawIOBase):
    """A file as a seekable stream of bytes, read with `Reader.read_part`."""

    def __init__(self, reader: Reader, path: str, size: int) -> None:
        super().__init__()
        self._reader, self._path, self._size, self._at = reader, path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._reader.read_part(self._path, self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
