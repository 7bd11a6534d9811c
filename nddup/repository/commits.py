"""The versions of a repository, one file each, created only if it is not there; and the claims of commands that write.

    REPO/commits/N.json      Commit: parent, segments with their files' sizes and digests, recipe, counts, digests of
                             the tables and of the commit itself
    REPO/segments/NAME/      immutable tables as Parquet (`segment_files`), one file each; and mapped arrays (`mapped`)
    REPO/commits/.BASE-PLACE-PROCESS-BORN-TOKEN.live    LiveClaim; BASE: the newest version when the command began

    versions_in, read_commit, write_commit    the versions; `claimed` claims what the newest one is made of

A version exists as soon as its file does. `places` creates that file whole, and for at most one of several writers. A
crash leaves files that no commit names.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from secrets import token_hex
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter

from nddup.errors import NddupError, NotARunError, OutputError
from nddup.repository.places import COMMITS, Place, UnknownOutcome
from nddup.storage.claim import is_running, this_process
from nddup.storage.run_folder import digest

SEGMENT_NAME = r"v(\d{6,12})-[0-9a-f]{12}"
"""The name of a segment's folder, with the version it was made for: no other folder is ours."""

Count = Annotated[int, Field(ge=0, lt=1 << 62)]


@dataclass(frozen=True)
class Segment:
    """A segment as a commit names it: the rows of each table, and the size and SHA-256 of each file.

    Names are those of folders and files, so a commit of somebody else could lead outside by them: they are plain.
    """

    name: Annotated[str, Field(pattern=f"^{SEGMENT_NAME}$")]
    rows: Mapping[str, Count]
    files: Mapping[Annotated[str, Field(pattern=r"^[a-z_]+\.(?:parquet|arrow)$")], tuple[Count, str]]

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(size for size, _ in self.files.values())


VERSION = re.compile(r"([1-9][0-9]{0,11})\.json")
"""The name of a version's file."""

LIVES = 86_400.0
"""Seconds for which a claim of another machine counts. Past them, a command that still works may find its input gone;
its commit looks for all its segments, so nothing is lost."""

NAME = re.compile(r"\.(\d+)-(\w+)-(\d+)-(\d+)-[0-9a-f]+\.live")

ELSEWHERE = "elsewhere"
"""The place of a claim that outlives its process: of a commit without an answer, which may still be written. It counts
until the version that it waits for exists."""


def _require_identity(note: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse an identity that lacks what is printed and compared; `identity` reads it."""
    numbers = [note.get("texts"), note.get("lowest")]
    is_text = all(isinstance(note.get(name), str) for name in ("mode", "store", "recipe", "sketch_format", "proof"))
    is_number = all(isinstance(one, int | float) and 0 <= one < 1 << 53 for one in numbers)
    if not (is_text and is_number and isinstance(note.get("settings"), dict)):
        raise ValueError("no identity of a repository")
    return note


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

    version: Count
    parent: Count
    what: Annotated[str, Field(pattern=r"^[a-z]{1,20}$")]
    time: Annotated[str, Field(pattern=r"^[0-9TZ:.+-]{1,40}$")]
    repository: Annotated[Mapping[str, Any], AfterValidator(_require_identity)]
    segments: tuple[Segment, ...] = ()
    changes: str | None = None
    counts: Mapping[str, Count] = field(default_factory=dict)
    digests: Mapping[str, tuple[Count, Annotated[str, Field(pattern="^[0-9a-f]{32}$")]]] = field(default_factory=dict)
    next_key: Count = 0
    next_component: Count = 0

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")


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
        raise NotARunError(f"{repo}: is not a repository of nddup (it has no {COMMITS}/)") from error
    except OSError as error:
        raise OutputError(f"{repo}: cannot be read ({error.strerror or error})") from error
    versions = sorted(int(number[1]) for name in names if (number := VERSION.fullmatch(name)))
    if not versions:
        raise NotARunError(f"{repo}: is not a repository of nddup (it has no version)")
    return versions


def read_commit(repo: Place, version: int | None = None) -> Commit:
    """Read a version, by default the newest.

    Raises:
        OutputError: if it does not exist, or its file cannot be read or is damaged.
    """
    versions = versions_in(repo)
    chosen = versions[-1] if version is None else version
    if chosen not in versions:
        raise OutputError(f"{repo}: has no version {chosen}; there are {versions[0]} to {versions[-1]}")
    try:
        value = json.loads(repo.read_commit(f"{chosen}.json"))
        stored = value.pop("digest", None)  # an earlier version wrote none
        if stored is not None and stored != digest(value):
            raise ValueError("its digest differs")  # noqa: TRY301 - as a file that is no JSON
        commit = _form().validate_python(value)
    except OSError as error:
        raise OutputError(f"{repo}: {COMMITS}/{chosen}.json cannot be read ({error.strerror or error})") from error
    except (ValueError, AttributeError, RecursionError) as error:
        raise OutputError(f"{repo}: {COMMITS}/{chosen}.json is damaged ({type(error).__name__})") from error
    if commit.version != chosen or len({segment.name for segment in commit.segments}) < len(commit.segments):
        raise OutputError(f"{repo}: {COMMITS}/{chosen}.json is damaged (it is another version's)")
    return commit


@cache
def _form() -> TypeAdapter[Commit]:
    return TypeAdapter(Commit)


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


class Claims(NamedTuple):
    """The other claims at one moment: the base of each living one, and the names of the dead ones."""

    living: tuple[int, ...]
    dead: tuple[str, ...]

    def hold(self, version: int) -> bool:
        """Return whether a command may use what this version, or a later one, is made of."""
        return any(base <= version for base in self.living)


class LiveClaim:
    """The claim of one command on a repository.

    It keeps what the command may read or make from being removed. A command claims before it reads the newest version,
    and gives the claim back after its commit. It reads segments of version BASE or later, and makes a folder for a
    later version. So a segment is out of everybody's use once no version from the oldest BASE on names it, and a folder
    that no version names once no claim is there. No clock decides that.

    All that is known of the owner is in the name, so a claim is never half written. On the owner's machine it lives as
    long as the process; seen from elsewhere, for `LIVES` by the clock of the place.
    """

    def __init__(self, repo: Place, base: int) -> None:
        owner = this_process()
        self._repo, self._base = repo, base
        self._owner = f"{_digest(owner['place'])}-{owner['process']}-{owner['born'] or 0}"
        self._name = f".{base}-{self._owner}-{token_hex(6)}.live"

    def write(self) -> float:
        """Write the claim, or write it again; return the time by the clock of the place.

        Raises:
            OutputError: if it cannot be written.
        """
        try:
            self._repo.write_draft(self._name, b"")
            return self._repo.time_of(self._name)
        except OSError as error:
            self.release()
            reason = error.strerror or error
            raise OutputError(f"{self._repo}: cannot be written ({reason}); nothing was changed") from error

    def release(self, *, is_answered: bool = True) -> None:
        """Give the claim back; without an answer to the commit, one that waits for the version takes its place."""
        with suppress(OSError):
            if not is_answered:
                self._repo.write_draft(f".{self._base}-{ELSEWHERE}-0-0-{token_hex(6)}.live", b"")
            self._repo.remove_draft(self._name)

    def others(self) -> Claims:
        """Return the claims of other commands. Cost: a listing, and the time of each claim of another machine."""
        now = self.write()
        place = self._owner.partition("-")[0]
        living, dead = [], []
        names = set(self._repo.commits())
        for name in sorted(names):
            match = NAME.fullmatch(name)
            if match is None or name == self._name:
                continue
            with suppress(FileNotFoundError):  # given back meanwhile
                if match[2] == ELSEWHERE:
                    is_living = f"{int(match[1]) + 1}.json" not in names  # then it is decided
                elif match[2] == place:
                    is_living = is_running(int(match[3]), int(match[4]))
                else:
                    is_living = now - self._repo.time_of(name) < LIVES
                if is_living:
                    living.append(int(match[1]))
                else:
                    dead.append(name)
        return Claims(tuple(living), tuple(dead))


@contextmanager
def claimed(repo: Place) -> Iterator[LiveClaim]:
    """Claim what the newest version is made of, for the duration; the version is to be read within.

    Raises:
        OutputError: if there is no repository, or the claim cannot be written.
    """
    claim = LiveClaim(repo, versions_in(repo)[-1])
    claim.write()
    is_answered = True
    try:
        yield claim
    except UnansweredCommitError:
        is_answered = False
        raise
    finally:
        claim.release(is_answered=is_answered)


def _digest(place: str) -> str:
    """Return a short name of a machine's boot; where the machine has none, one that no other process has."""
    return hashlib.blake2b(place.encode() or os.urandom(8), digest_size=6).hexdigest()
