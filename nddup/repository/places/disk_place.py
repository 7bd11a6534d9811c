"""A repository in a folder of this machine: on a disk, or mounted.

A commit is written under another name, flushed to the disk, and hard-linked to its own name: the link fails if the name
is taken. Without hard links (exFAT, many network drives, buckets mounted as folders) writers claim the version
(`create_exclusively`).
"""

import errno
import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from nddup.repository.places.place import COMMITS, SEGMENTS, StoredFolder, create_exclusively
from nddup.storage.local_storage import local_path

NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""Error numbers of file systems without hard links."""


class DiskPlace:
    """A folder of this machine."""

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
        if self.folder.exists() and any(self.folder.iterdir()):
            raise FileExistsError(self.folder)
        for name in (COMMITS, SEGMENTS):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def commits(self) -> list[str]:
        """As `CommitFiles.commits`."""
        return os.listdir(self.folder / COMMITS)  # noqa: PTH208 - names are all that is needed

    def read_commit(self, name: str) -> bytes:
        """As `Place.read_commit`."""
        return (self.folder / COMMITS / name).read_bytes()

    def create_commit(self, name: str, data: bytes) -> None:
        """As `Place.create_commit`."""
        folder = self.folder / COMMITS
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
        with (self.folder / COMMITS / name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        flush_folder(self.folder / COMMITS)

    def time_of(self, name: str) -> float:
        """As `CommitFiles.time_of`."""
        return (self.folder / COMMITS / name).stat().st_mtime

    def rename_draft(self, name: str, target: str) -> None:
        """As `CommitFiles.rename_draft`."""
        os.rename(self.folder / COMMITS / name, self.folder / COMMITS / target)  # noqa: PTH104 - as `os.link`

    def remove_draft(self, name: str) -> None:
        """As `CommitFiles.remove_draft`."""
        (self.folder / COMMITS / name).unlink(missing_ok=True)

    def fetch(self, name: str, size: int, digest: str) -> Path:
        """As `Place.fetch`: the path of the file itself, not checked."""
        del size, digest
        return self.folder / SEGMENTS / name

    def publish(self, segment: str) -> None:
        """As `Place.publish`: flushes the names of the files and of the segment to the disk."""
        flush_folder(self.folder / SEGMENTS / segment)
        flush_folder(self.folder / SEGMENTS)

    def segments(self) -> dict[str, StoredFolder]:
        """As `Place.segments`."""
        found = {}
        for folder in (self.folder / SEGMENTS).iterdir():
            with suppress(OSError):
                size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
                found[folder.name] = StoredFolder(folder.stat().st_mtime, size)
        return found

    def sizes(self, segment: str) -> dict[str, int]:
        """As `Place.sizes`."""
        with suppress(FileNotFoundError):
            return {file.name: file.stat().st_size for file in (self.folder / SEGMENTS / segment).iterdir()}
        return {}

    def remove_segment(self, segment: str) -> None:
        """As `Place.remove_segment`."""
        shutil.rmtree(self.folder / SEGMENTS / segment)

    def measure(self, name: str) -> tuple[int, str]:
        """As `Place.measure`."""
        path = self.folder / SEGMENTS / name
        return path.stat().st_size, digest_file(path)


def remove_mapped_drafts(folder: Path, before: float) -> None:
    """Remove drafts of mapped folders that were written before a time and never renamed."""
    with suppress(FileNotFoundError):  # a bucket of which nothing was copied here yet
        for segment in os.listdir(folder / SEGMENTS):  # noqa: PTH208 - another process may remove what was listed
            _remove_drafts_in(folder / SEGMENTS / segment, before)


def _remove_drafts_in(segment: Path, before: float) -> None:
    with suppress(OSError):
        for draft in segment.glob(".mapped-*"):
            if draft.stat().st_mtime < before:
                shutil.rmtree(draft)


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
