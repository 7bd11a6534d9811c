"""`nddup index compact`: one segment in place of all, and what no version needs removed.

A reader holds one version, so files of versions that were the newest until lately stay: a folder goes when the first
version that does not name it is older than so many days; one that no version names, when it is itself.
"""

import time
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from nddup.errors import OutputError
from nddup.repository.places.place import Place
from nddup.repository.segments.commits import Commit, read_commit, versions_in
from nddup.repository.snapshot import Snapshot
from nddup.repository.write_versions import merge_all

DAYS = 7
SECONDS = 86_400


class Compacted(NamedTuple):
    """The version that was made, None where one segment lay there already; folders removed, and their bytes."""

    commit: Commit | None
    removed: int
    freed: int


def compact(snapshot: Snapshot, *, days: float = DAYS) -> Compacted:
    """Merge all segments, forget documents that were removed, and remove what no reader can need."""
    is_one = len(snapshot.commit.segments) <= 1 and not any(
        segment.rows.get(name) for segment in snapshot.commit.segments for name in ("gone", "replaced")
    )
    commit = None if is_one else merge_all(snapshot)
    removed, freed = remove_old(snapshot.repo, days=days)
    return Compacted(commit, removed, freed)


def remove_old(repo: Place, *, days: float) -> tuple[int, int]:
    """Remove the folders of segments that no version of the last days names, and drafts as old."""
    before = time.time() - days * SECONDS
    commits = [commit for version in versions_in(repo) if (commit := _try_read(repo, version)) is not None]
    named = {segment.name for segment in commits[-1].segments} if commits else set()
    until: dict[str, float] = {}  # when a segment was last part of the newest version
    for commit, following in pairwise(commits):
        ended = datetime.fromisoformat(following.time).timestamp()
        until |= {segment.name: ended for segment in commit.segments}

    count = freed = 0
    for name, stored in sorted(repo.segments().items()):
        with suppress(OSError):
            if name not in named and until.get(name, stored.time) < before:
                repo.remove_segment(name)
                count, freed = count + 1, freed + stored.size
    repo.remove_drafts(before)
    return count, freed


def _try_read(repo: Place, version: int) -> Commit | None:
    with suppress(OutputError):
        return read_commit(repo, version)
    return None
