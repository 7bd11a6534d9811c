"""`nddup index compact`: merge all segments into one, and remove the segments that no reader needs.

A reader may still hold a recent version, so its segments stay: a segment's folder is removed once it has not been part
of the newest version for some days; a folder that no version names, once it is that old itself. Ages are differences of
times that the place itself gave to files, so the clock of this machine does not matter. What a command that writes may
read or has made stays, whatever its age (`live_claims`).
"""

import re
import time
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from nddup.errors import OutputError
from nddup.repository.places.disk_place import remove_mapped_drafts
from nddup.repository.places.live_claims import Claims, LiveClaim
from nddup.repository.places.place import Place
from nddup.repository.segments.commits import Commit, read_commit, versions_in
from nddup.repository.snapshot import Snapshot
from nddup.repository.write_versions import merge_all

DAYS = 7
SECONDS = 86_400

FOLDER = re.compile(r"v(\d{6,})-[0-9a-f]{12}")
"""The name of a segment's folder, with the version it was made for; any other folder is not ours to remove."""

DRAFT = re.compile(r"\.(\d+)-[0-9a-f]{12}\.(?:draft|claim)")
"""The name of a commit's draft or claim, with the version."""


class Compacted(NamedTuple):
    """The version made, None if there was nothing to merge or drop; the number of folders removed, and their bytes."""

    commit: Commit | None
    removed: int
    freed: int


def compact(snapshot: Snapshot, claim: LiveClaim, *, days: float = DAYS) -> Compacted:
    """Merge all segments without the removed documents, and remove segments out of use for `days`.

    Args:
        snapshot: the newest version, read under the claim.
        claim: the claim of this command.
        days: days for which a segment out of use stays.
    """
    is_one = len(snapshot.commit.segments) <= 1 and not any(
        segment.rows.get(name) for segment in snapshot.commit.segments for name in ("gone", "replaced")
    )
    commit = None if is_one else merge_all(snapshot)
    removed, freed = remove_old(snapshot.repo, claim, days=days)
    return Compacted(commit, removed, freed)


def remove_old(repo: Place, claim: LiveClaim, *, days: float) -> tuple[int, int]:
    """Remove segments that were not in use in the last `days`, and drafts older than that; return folders and bytes.

    Raises:
        OutputError: if the newest version cannot be read: nothing is removed then.
    """
    stored = repo.segments()  # before the claims, and these before the versions: a folder is claimed, made, then named
    claims, now = claim.others(), claim.write()
    before = now - days * SECONDS
    newest = read_commit(repo)
    older = [
        commit for version in versions_in(repo) if version < newest.version and (commit := _try_read(repo, version))
    ]
    named = {segment.name for segment in newest.segments}
    last, until = dict[str, int](), dict[str, float]()  # the last version of a segment, and when another followed it
    for commit, following in pairwise([*older, newest]):
        ended = repo.time_of(f"{following.version}.json")
        last |= {segment.name: commit.version for segment in commit.segments}
        until |= {segment.name: ended for segment in commit.segments}

    count = freed = 0
    for name, folder in sorted(stored.items()):
        made = FOLDER.fullmatch(name)
        if made is None or name in named or claims.hold(last.get(name, int(made[1]))):
            continue
        if days <= 0 or until.get(name, folder.time) <= before:
            with suppress(OSError):
                repo.remove_segment(name)
                count, freed = count + 1, freed + folder.size
    _remove_drafts(repo, claims, before=before if days > 0 else None)
    remove_mapped_drafts(repo.folder, time.time() - max(days, 1) * SECONDS)
    return count, freed


def _remove_drafts(repo: Place, claims: Claims, *, before: float | None) -> None:
    """Remove claims of dead commands, and drafts of commits that no living command can be making."""
    drafts = [name for name in repo.commits() if (made := DRAFT.fullmatch(name)) and not claims.hold(int(made[1]) - 1)]
    for name in [*claims.dead, *drafts]:
        with suppress(OSError):
            if before is None or name in claims.dead or repo.time_of(name) <= before:
                repo.remove_draft(name)


def _try_read(repo: Place, version: int) -> Commit | None:
    with suppress(OutputError):
        return read_commit(repo, version)
    return None
