"""What a place must do so that a repository can lie there, whatever it is: `disk_place`, `bucket_place`."""

from pathlib import Path
from typing import NamedTuple, Protocol

COMMITS, SEGMENTS = "commits", "segments"


class UnknownOutcome(OSError):  # noqa: N818 - it may be no error
    """The place gave no answer: the commit may have been written, or may still be."""


class StoredFolder(NamedTuple):
    """The folder of a segment: when it was written, in seconds by the clock of the place, and its bytes."""

    time: float
    size: int


class CommitFiles(Protocol):
    """The files in `commits/`, by name."""

    def commits(self) -> list[str]:
        """Their names, drafts among them. Raises FileNotFoundError where there is no such folder."""

    def write_draft(self, name: str, data: bytes) -> None:
        """Write a file that lasts, in the place of one that is there."""

    def time_of(self, name: str) -> float:
        """When a file was written, in seconds by the clock of the place. Raises FileNotFoundError."""

    def rename_draft(self, name: str, target: str) -> None:
        """Give a file another name."""

    def remove_draft(self, name: str) -> None:
        """Remove a file; nothing if it is not there."""


class Place(CommitFiles, Protocol):
    """Where a repository lies; `str` of it is its name in messages. All methods raise OSError where they fail.

    Attributes:
        folder: a folder of this machine with `segments/`: that of the repository, or copies of what lies elsewhere.
    """

    folder: Path

    def full_name(self) -> str:
        """The name that leads there from anywhere."""

    def begin(self) -> None:
        """Make the folders of a new repository. Raises FileExistsError where anything is there."""

    def read_commit(self, name: str) -> bytes:
        """A file of `commits/`."""

    def create_commit(self, name: str, data: bytes) -> None:
        """Write a file of `commits/` that is not there: whole, lasting, and of several writers only one does.

        Raises:
            FileExistsError: if it is there, or another writer is at it; nothing was changed.
            UnknownOutcome: if it is not known whether it was written.
            OSError: if it cannot be written; nothing was changed.
        """

    def fetch(self, name: str, size: int, digest: str) -> Path:
        """A file of a segment, `SEGMENT/FILE`, on this machine; copied first where it lies elsewhere.

        Args:
            name: below `segments/`.
            size: bytes, as the commit says.
            digest: SHA-256; a copy that differs is refused.
        """

    def publish(self, segment: str) -> None:
        """Bring the files of a new segment, which lie in `folder`, to where the repository lies."""

    def segments(self) -> dict[str, StoredFolder]:
        """What lies there, also segments that no commit names."""

    def remove_segment(self, segment: str) -> None:
        """Remove a segment with all its files."""

    def remove_drafts(self, before: float) -> None:
        """Remove what killed writers left, if it was written before a time."""

    def measure(self, name: str) -> tuple[int, str]:
        """Bytes and SHA-256 of a file of a segment, read where the repository lies."""
