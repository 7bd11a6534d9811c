"""The interface of a place where a repository can be stored; `disk_place` and `bucket_place` implement it."""

from pathlib import Path
from typing import NamedTuple, Protocol

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
        """Make the folders of a new repository. Raises FileExistsError if anything is there."""

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
