"""Where a repository is stored: the interface of a place, and a folder of this machine. `bucket_place` is another.

`create_exclusively` lets at most one writer create a file in a place that has no operation for that: each writes a
claim of its own, then lists all claims, and goes on only if its claim is the only one and the file is not there. A
later writer sees the earlier claim, or the file; of two at the same time both may lose. This relies on a listing that
shows every file written before it.

In a folder of this machine (`DiskPlace`), on a disk or mounted, a commit is written under another name, flushed to the
disk, and hard-linked to its own name: the link fails if the name is taken. Without hard links (exFAT, many network
drives, buckets mounted as folders) writers claim the version (`create_exclusively`).
"""

import errno
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple, Protocol

from nddup.storage.local_storage import local_path

COMMITS, SEGMENTS = "commits", "segments"


class UnknownOutcome(OSError):  # noqa: N818 - it may be no error
    """The place gave no answer: the commit may have been written, or may still be written later."""


class StoredFolder(NamedTuple):
    """The folder of a segment: when it was written, in seconds by the clock of the place, and its size in bytes."""

    time: float
    size: int


class CommitFiles(Protocol):
    """The files in `commits/`, by name."""

    def commits(self) -> list[str]:
        """List the names, including drafts. Raises FileNotFoundError if there is no such folder."""

    def write_draft(self, name: str, data: bytes) -> None:
        """Write a file durably, replacing any that is there."""

    def time_of(self, name: str) -> float:
        """Return when a file was written, in seconds by the clock of the place. Raises FileNotFoundError."""

    def rename_draft(self, name: str, target: str) -> None:
        """Rename a file."""

    def remove_draft(self, name: str) -> None:
        """Remove a file; do nothing if it is not there."""


class Place(CommitFiles, Protocol):
    """Where a repository is stored; `str` gives its name in messages. All methods raise OSError if they fail.

    Attributes:
        folder: a folder of this machine that holds `segments/`: the repository's own, or copies of its segments.
    """

    folder: Path

    def full_name(self) -> str:
        """Return a name that does not depend on the working folder."""

    def begin(self) -> None:
        """Make the folders of a new repository. Raises FileExistsError if more is there than an unfinished `create`."""

    def read_commit(self, name: str) -> bytes:
        """Read a file of `commits/`."""

    def create_commit(self, name: str, data: bytes) -> None:
        """Create a file of `commits/`, whole and durable; of several writers at most one succeeds.

        Raises:
            FileExistsError: if it exists, or another writer is creating it; nothing was changed.
            UnknownOutcome: if it is unknown whether it was written.
            OSError: if it cannot be written; nothing was changed.
        """

    def fetch(self, name: str, size: int, digest: str) -> Path:
        """Return the path of a segment's file on this machine; copy the file first if it lies elsewhere.

        Args:
            name: `SEGMENT/FILE`, below `segments/`.
            size: bytes, as the commit says.
            digest: SHA-256; a copy that differs is refused.
        """

    def publish(self, segment: str) -> None:
        """Make a new segment, whose files lie in `folder`, durable in the repository; upload it if necessary."""

    def segments(self) -> dict[str, StoredFolder]:
        """Return all segments stored, including those that no commit names."""

    def remove_segment(self, segment: str) -> None:
        """Remove a segment with all its files."""

    def sizes(self, segment: str) -> dict[str, int]:
        """Return the bytes of each file of a segment, by name; empty if there is no such segment."""

    def measure(self, name: str) -> tuple[int, str]:
        """Return size in bytes and SHA-256 of a segment's file, read from the repository itself, not a copy."""


DRAFT = re.compile(r"\.(\d+)-[0-9a-f]{12}\.(?:draft|claim)")
"""The name of a commit's draft or claim, with the version."""


CLAIMED = 600
"""Seconds for which a claim counts; a running writer needs some milliseconds."""

NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""Error numbers of file systems without hard links."""


def require_unmade(place: Place, names: Iterable[str]) -> None:
    """Accept an empty place, or one where `create` ended before its commit: two folders, and drafts at most.

    Args:
        names: what it holds.

    Raises:
        FileExistsError: if it holds anything else.
    """
    present = set(names)
    is_foreign = bool(present - {COMMITS, SEGMENTS})
    if is_foreign or (COMMITS in present and not all(map(DRAFT.fullmatch, place.commits()))):
        raise FileExistsError(str(place))
    if SEGMENTS in present and place.segments():
        raise FileExistsError(str(place))


def create_exclusively(files: CommitFiles, name: str, draft: str) -> None:
    """Rename a draft to its name, unless the name is taken or claimed; a killed writer's claim counts for `CLAIMED` s.

    Raises:
        FileExistsError: if the name is taken or claimed, or the claim of this writer became too old.
        OSError: if a file cannot be written.
    """
    prefix = f".{name.removesuffix('.json')}-"
    claim = f"{prefix}{token_hex(6)}.claim"
    began = time.monotonic()
    try:
        files.write_draft(claim, b"claimed")
        now = files.time_of(claim)  # by the clock of the place, like the times of the other claims
        for other in files.commits():
            if other.startswith(prefix) and other.endswith(".claim") and other != claim:
                with suppress(FileNotFoundError):
                    if now - files.time_of(other) < CLAIMED:
                        raise FileExistsError(other)
        is_late = time.monotonic() - began > CLAIMED / 2  # this process was suspended: others may ignore its claim
        if is_late or name in files.commits():  # looked up after the claims: a winner's claim outlives its rename
            raise FileExistsError(name)
        files.rename_draft(draft, name)
    finally:
        with suppress(OSError):
            files.remove_draft(claim)


class DiskPlace:
    """A folder of this machine. Links and special files below it are refused: they would lead outside, or block."""

    def __init__(self, path: str) -> None:
        self.folder = Path(local_path(path))

    def __str__(self) -> str:
        """The path."""
        return str(self.folder)

    def full_name(self) -> str:
        """As `Place.full_name`: the absolute path, with symbolic links resolved."""
        return str(self.folder.resolve())

    def begin(self) -> None:
        """As `Place.begin`."""
        if self.folder.exists():
            require_unmade(self, os.listdir(self.folder))  # noqa: PTH208 - names are all that is needed
        for name in (COMMITS, SEGMENTS):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def commits(self) -> list[str]:
        """As `CommitFiles.commits`."""
        return os.listdir(self._own(COMMITS))  # noqa: PTH208 - names are all that is needed

    def read_commit(self, name: str) -> bytes:
        """As `Place.read_commit`."""
        return self._own(COMMITS, name).read_bytes()

    def create_commit(self, name: str, data: bytes) -> None:
        """As `Place.create_commit`."""
        folder = self._own(COMMITS)
        draft = f".{name.removesuffix('.json')}-{token_hex(6)}.draft"
        try:
            self.write_draft(draft, data)
            try:
                os.link(folder / draft, folder / name)
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                create_exclusively(self, name, draft)
            flush_folder(folder)
        finally:
            with suppress(OSError):
                self.remove_draft(draft)

    def write_draft(self, name: str, data: bytes) -> None:
        """As `CommitFiles.write_draft`, flushed to the disk."""
        with (self._own(COMMITS) / name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        flush_folder(self.folder / COMMITS)

    def time_of(self, name: str) -> float:
        """As `CommitFiles.time_of`."""
        return (self.folder / COMMITS / name).lstat().st_mtime

    def rename_draft(self, name: str, target: str) -> None:
        """As `CommitFiles.rename_draft`."""
        os.rename(self.folder / COMMITS / name, self.folder / COMMITS / target)  # noqa: PTH104 - as `os.link`

    def remove_draft(self, name: str) -> None:
        """As `CommitFiles.remove_draft`."""
        (self._own(COMMITS) / name).unlink(missing_ok=True)

    def fetch(self, name: str, size: int, digest: str) -> Path:
        """As `Place.fetch`: the path of the file itself, not checked."""
        del size, digest
        return self._own(SEGMENTS, *name.split("/"))

    def publish(self, segment: str) -> None:
        """As `Place.publish`: flushes the names of the files and of the segment to the disk."""
        flush_folder(self.folder / SEGMENTS / segment)
        flush_folder(self.folder / SEGMENTS)

    def segments(self) -> dict[str, StoredFolder]:
        """As `Place.segments`."""
        folders = {}
        for name in os.listdir(self._own(SEGMENTS)):  # noqa: PTH208
            with suppress(OSError):
                folder = self._own(SEGMENTS, name)
                size = sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())
                folders[name] = StoredFolder(folder.stat().st_mtime, size)
        return folders

    def sizes(self, segment: str) -> dict[str, int]:
        """As `Place.sizes`."""
        with suppress(FileNotFoundError):
            return {file.name: file.lstat().st_size for file in self._own(SEGMENTS, segment).iterdir()}
        return {}

    def remove_segment(self, segment: str) -> None:
        """As `Place.remove_segment`. No link is followed, also one that somebody puts there at this moment."""
        with opened_folder(self.folder / SEGMENTS) as segments:
            shutil.rmtree(segment, dir_fd=segments)

    def measure(self, name: str) -> tuple[int, str]:
        """As `Place.measure`."""
        path = self._own(SEGMENTS, *name.split("/"))
        return path.stat().st_size, digest_file(path)

    def _own(self, *names: str) -> Path:
        """Return a path below this folder: folders and at the end a folder or a regular file, without a link.

        Raises:
            FileNotFoundError: if it is not there.
            OSError: if it is a link, or a special file.
        """
        path = self.folder
        for name in names:
            path /= name
            mode = path.lstat().st_mode
            if not (S_ISDIR(mode) or (S_ISREG(mode) and len(names) > 1)):
                raise OSError(errno.ELOOP, "a link or special file, not followed", str(path))
        return path


def remove_mapped_drafts(folder: Path, before: float) -> None:
    """Remove drafts of mapped folders that were written before a time and never renamed. No link is followed."""
    with suppress(OSError), opened_folder(folder / SEGMENTS) as segments:  # a bucket may have no copy here yet
        for name in os.listdir(segments):  # noqa: PTH208 - another process may remove what was listed
            with suppress(OSError), opened_folder(name, segments) as segment:
                _remove_drafts_in(segment, before)


def _remove_drafts_in(segment: int, before: float) -> None:
    for name in os.listdir(segment):
        with suppress(OSError):
            if name.startswith(".mapped-") and os.lstat(name, dir_fd=segment).st_mtime < before:
                shutil.rmtree(name, dir_fd=segment)


@contextmanager
def opened_folder(folder: Path | str, above: int | None = None) -> Iterator[int]:
    """Open a folder, but no link to one: what is done there is not led elsewhere by a link that appears meanwhile."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    try:
        yield number
    finally:
        os.close(number)


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file as hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
