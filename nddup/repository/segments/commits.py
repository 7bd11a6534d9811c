"""The versions of a repository: one file each, created only if it is not there.

    REPO/commits/N.json      parent, segments with their files' sizes and digests, recipe, counts, digests of the tables
                             and of the commit itself
    REPO/segments/NAME/      immutable tables as Parquet (`layout`), one file each; and mapped arrays (`mapped`)

A version exists as soon as its file does. `places` creates that file whole, and for at most one of several writers. A
crash leaves files that no commit names.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from nddup.errors import NddupError, OutputError
from nddup.repository.places.place import COMMITS, Place, UnknownOutcome
from nddup.storage.versions import digest


@dataclass(frozen=True)
class Segment:
    """A segment as a commit names it: the rows of each table, and the size and SHA-256 of each file."""

    name: str
    rows: Mapping[str, int]
    files: Mapping[str, tuple[int, str]]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(size for size, _ in self.files.values())


@dataclass(frozen=True)
class Commit:
    """One version.

    Attributes:
        version: its number; the first, without documents, is 1.
        parent: the version before; 0 for the first.
        what: the command that made it.
        time: when it was made, in UTC.
        repository: the identity, which never changes: layout, settings, mode, recipe and its proof (`identity`).
        segments: the segments, in the order in which they were written.
        changes: name of the segment that holds the changes of this version; None if there are none.
        counts: the number of live documents, and the counts of the command.
        digests: for each table, the number of rows and their order-free digest, 32 hex digits.
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


class UnansweredCommitError(OutputError):
    """The place gave no answer to a commit: the version may exist, so the files it names must stay."""


def versions_in(repo: Place) -> list[int]:
    """List the versions that exist, ascending.

    Raises:
        OutputError: if there is no repository, or it cannot be read.
    """
    try:
        names = repo.commits()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise OutputError(f"{repo}: is not a repository of nddup (it has no {COMMITS}/)") from error
    except OSError as error:
        raise OutputError(f"{repo}: cannot be read ({error.strerror or error})") from error
    found = sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit())
    if not found:
        raise OutputError(f"{repo}: is not a repository of nddup (it has no version)")
    return found


def read_commit(repo: Place, version: int | None = None) -> Commit:
    """Read a version, by default the newest.

    Raises:
        OutputError: if it does not exist, or its file is damaged.
    """
    found = versions_in(repo)
    chosen = found[-1] if version is None else version
    if chosen not in found:
        raise OutputError(f"{repo}: has no version {chosen}; there are {found[0]} to {found[-1]}")
    try:
        value = json.loads(repo.read_commit(f"{chosen}.json"))
        said = value.pop("digest", None)  # an earlier version wrote none
        if said is not None and said != digest(value):
            raise ValueError("its digest differs")  # noqa: TRY301 - as a file that is no JSON
        segments = tuple(
            Segment(one["name"], one["rows"], {name: (size, digest) for name, (size, digest) in one["files"].items()})
            for one in value.pop("segments")
        )
        digests = {name: (rows, digest) for name, (rows, digest) in value.pop("digests").items()}
        return Commit(**value, segments=segments, digests=digests)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{repo}: {COMMITS}/{chosen}.json is damaged ({type(error).__name__})") from error


def write_commit(repo: Place, commit: Commit) -> None:
    """Create a version, unless another writer has created it meanwhile.

    Raises:
        LostRaceError: if another writer has.
        UnansweredCommitError: if it is unknown whether the version exists.
        OutputError: if it cannot be written.
    """
    plain = json.loads(json.dumps(asdict(commit)))
    data = (json.dumps({**plain, "digest": digest(plain)}, indent=1, ensure_ascii=False) + "\n").encode()
    try:
        repo.create_commit(f"{commit.version}.json", data)
    except FileExistsError:
        raise LostRaceError(
            f"{repo}: version {commit.version} was committed meanwhile; nothing was changed, run it again"
        ) from None
    except UnknownOutcome as error:
        raise UnansweredCommitError(
            f"{repo}: no answer to the commit of version {commit.version} ({error.strerror or error}); it may exist:"
            " look with `nddup index list`, then run it again"
        ) from error
    except OSError as error:
        raise OutputError(f"{repo}: cannot be written ({error.strerror or error}); nothing was changed") from error
