"""Claims of the commands that write: while one works, what it may read or make is not removed.

    commits/.BASE-PLACE-PROCESS-BORN-TOKEN.live    BASE: the newest version when the command began

A command claims before it reads the newest version, and gives the claim back after its commit. It reads segments of
version BASE or later, and makes a folder for a later version. So a segment is out of everybody's use once no version
from the oldest BASE on names it, and a folder that no version names once no claim is there. No clock decides that.

All that is known of the owner is in the name, so a claim is never half written. On the owner's machine it lives as long
as the process; seen from elsewhere, for `LIVES` by the clock of the place.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import NamedTuple

from nddup.errors import OutputError
from nddup.repository.places.place import Place
from nddup.repository.segments.commits import UnansweredCommitError, versions_in
from nddup.storage.claim import is_running, this_process

LIVES = 86_400.0
"""Seconds for which a claim of another machine counts. Past them, a command that still works may find its input gone;
its commit looks for all its segments, so nothing is lost."""

NAME = re.compile(r"\.(\d+)-(\w+)-(\d+)-(\d+)-[0-9a-f]+\.live")
ELSEWHERE = "elsewhere"
"""The place of a claim that outlives its process: of a commit without an answer, which may still be written. It counts
until the version that it waits for exists."""


class Claims(NamedTuple):
    """The other claims at one moment: the base of each living one, and the names of the dead ones."""

    living: tuple[int, ...]
    dead: tuple[str, ...]

    def hold(self, version: int) -> bool:
        """Return whether a command may use what this version, or a later one, is made of."""
        return any(base <= version for base in self.living)


class LiveClaim:
    """The claim of one command on a repository."""

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
            found = NAME.fullmatch(name)
            if found is None or name == self._name:
                continue
            with suppress(FileNotFoundError):  # given back meanwhile
                if found[2] == ELSEWHERE:
                    is_living = f"{int(found[1]) + 1}.json" not in names  # then it is decided
                elif found[2] == place:
                    is_living = is_running(int(found[3]), int(found[4]))
                else:
                    is_living = now - self._repo.time_of(name) < LIVES
                if is_living:
                    living.append(int(found[1]))
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
    """Return a short name of a machine's boot; of one that does not tell, one that no other process has."""
    return hashlib.blake2b(place.encode() or os.urandom(8), digest_size=6).hexdigest()
