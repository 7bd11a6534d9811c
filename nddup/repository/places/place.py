"""The interface of a place where a repository can be stored; `disk_place` and `bucket_place` implement it.

Let at most one writer create a file, in places that have no operation for that.

Each writer writes a claim of its own, then lists all claims, and goes on only if its claim is the only one and the file
is not there. A later writer sees the earlier claim, or the file; of two at the same time both may lose. This relies on
a listing that shows every file written before it.
"""

import time
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
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


CLAIMED = 600
"""Seconds for which a claim counts; a running writer needs some milliseconds."""


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
