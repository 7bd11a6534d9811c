"""The versions of a repository: one file each, created only if it is not there.

    REPO/commits/N.json      parent, segments with their files' sizes and digests, recipe, counts, digests of the tables
    REPO/segments/NAME/      immutable tables as Parquet (`layout`), one file each; and mapped arrays (`mapped`)

A version exists when its file does. The file is written under another name, flushed to the disk and linked to its own:
the link fails where the name is taken, so of two writers one loses. A crash leaves files that no commit names.

Some file systems have no links: exFAT, many network drives, buckets mounted as folders. There a writer claims the
version with a file of its own, then looks at all claims, and commits only if its claim is the only one and the version
is not there. Whoever claims later sees the earlier claim, or the version; of two at once both may lose. It relies on
a listing that shows every file written before it.
"""

import errno
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from nddup.errors import NddupError, OutputError

COMMITS, SEGMENTS = "commits", "segments"

NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""What a file system without hard links answers."""

CLAIMED = 600
"""Seconds that a claim counts; a living writer needs some milliseconds."""


@dataclass(frozen=True)
class Segment:
    """A segment as a commit names it: rows of each table, and size and SHA-256 of each file."""

    name: str
    rows: Mapping[str, int]
    files: Mapping[str, tuple[int, str]]

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(size for size, _ in self.files.values())


@dataclass(frozen=True)
class Commit:
    """One version.

    Attributes:
        version: its number; the first, without documents, is 1.
        parent: the version before; 0 before the first.
        what: the command that made it.
        time: when, in UTC.
        repository: what never changes: layout, settings, mode, recipe and its proof (`identity`).
        segments: in the order in which they were written.
        changes: the segment that holds the changes of this version; None where there are none.
        counts: of documents, and of what the command did.
        digests: of each table its rows and the order-free digest of them, 32 hex digits.
        next_key: the number of the next document.
        next_component: the number of the next component.
    """

    version: int
    parent: int
    what: str
    time: str
    repository: Mapping[str, Any]
    segments: tuple[Segment, ...] = ()
    changes: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    digests: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    next_key: int = 0
    next_component: int = 0


class LostRaceError(NddupError):
    """Another writer committed the same version first; nothing was changed."""


def versions_in(repo: Path) -> list[int]:
    """The versions that exist, ascending.

    Raises:
        OutputError: if the folder is no repository.
    """
    try:
        names = os.listdir(repo / COMMITS)  # noqa: PTH208 - names are all that is needed
    except OSError as error:
        raise OutputError(f"{repo}: is not a repository of nddup (it has no {COMMITS}/)") from error
    found = sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit())
    if not found:
        raise OutputError(f"{repo}: is not a repository of nddup (it has no version)")
    return found


def read_commit(repo: Path, version: int | None = None) -> Commit:
    """A version, or the newest.

    Raises:
        OutputError: if it is not there, or its file is no whole commit.
    """
    found = versions_in(repo)
    chosen = found[-1] if version is None else version
    if chosen not in found:
        raise OutputError(f"{repo}: has no version {chosen}; there are {found[0]} to {found[-1]}")
    try:
        value = json.loads((repo / COMMITS / f"{chosen}.json").read_bytes())
        segments = tuple(
            Segment(one["name"], one["rows"], {name: (size, digest) for name, (size, digest) in one["files"].items()})
            for one in value.pop("segments")
        )
        digests = {name: (rows, digest) for name, (rows, digest) in value.pop("digests").items()}
        return Commit(**value, segments=segments, digests=digests)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{repo}: {COMMITS}/{chosen}.json is damaged ({type(error).__name__})") from error


def write_commit(repo: Path, commit: Commit) -> None:
    """Make a version exist, if no other writer did meanwhile.

    Raises:
        LostRaceError: if one did.
        OutputError: if it cannot be written.
    """
    folder = repo / COMMITS
    draft = folder / f".{commit.version}-{token_hex(6)}.draft"
    try:
        write_whole(draft, (json.dumps(asdict(commit), indent=1, ensure_ascii=False) + "\n").encode())
        _create(draft, folder / f"{commit.version}.json")
        flush_folder(folder)
    except FileExistsError:
        raise LostRaceError(
            f"{repo}: version {commit.version} was committed meanwhile; nothing was changed, run it again"
        ) from None
    except OSError as error:
        raise OutputError(f"{repo}: cannot be written ({error.strerror or error}); nothing was changed") from error
    finally:
        with suppress(OSError):
            draft.unlink()


def _create(draft: Path, final: Path) -> None:
    """Give a draft its name.

    Raises:
        FileExistsError: if the name is taken, or claimed.
        OSError: if it cannot be written.
    """
    try:
        os.link(draft, final)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        claim = draft.with_suffix(".claim")
        try:
            _create_alone(draft, final, claim)
        finally:
            with suppress(OSError):
                claim.unlink()


def _create_alone(draft: Path, final: Path, claim: Path) -> None:
    """The same where there are no links; a claim that a killed writer left counts for `CLAIMED` seconds."""
    began = time.monotonic()
    write_whole(claim, b"")
    flush_folder(claim.parent)
    now = claim.stat().st_mtime  # by the clock of the file system, as those of the others
    for other in claim.parent.glob(f".{final.stem}-*.claim"):
        with suppress(FileNotFoundError):
            if other != claim and now - other.stat().st_mtime < CLAIMED:
                raise FileExistsError(other)
    is_late = time.monotonic() - began > CLAIMED / 2  # of a process that was suspended: others may pass over its claim
    if is_late or final.exists():  # after the look at the claims: a claim goes only when its version is there
        raise FileExistsError(final)
    os.rename(draft, final)  # noqa: PTH104 - as `os.link`


def write_whole(path: Path, data: bytes) -> None:
    """Write a file and flush it to the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
