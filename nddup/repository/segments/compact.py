"""`nddup index compact`: merge all segments into one, and remove the segments that no reader needs.

A reader may still hold a recent version, so its segments stay: a segment's folder is removed once it has not been part
of the newest version for some days; a folder that no version names, once it is that old itself.
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
    """The version made, None if there was nothing to merge or drop; the number of folders removed, and their bytes."""

    commit: Commit | None
    removed: int
    freed: int


def compact(snapshot: Snapshot, *, days: float = DAYS) -> Compacted:
    """Merge all segments without the removed documents, and remove segments out of use for `days`."""
    is_one = len(snapshot.commit.segments) <= 1 and not any(
        segment.rows.get(name) for segment in snapshot.commit.segments for name in ("gone", "replaced")
    )
    commit = None if is_one else merge_all(snapshot)
    removed, freed = remove_old(snapshot.repo, days=days)
    return Compacted(commit, removed, freed)


def remove_old(repo: Place, *, days: float) -> tuple[int, int]:
    """Remove segments that were not in use in the last `days`, and drafts older than that; return folders and bytes."""
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
