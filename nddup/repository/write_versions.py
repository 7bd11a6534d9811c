"""Commands that write: each makes at most one version, or changes nothing.

The segment is written first, then the commit that names it, once all its segments are found in their places. A crash in
between leaves a folder that no commit names.

`nddup index compact` merges all segments into one, and removes those that no reader needs. A reader may still hold a
recent version: a segment's folder is removed once it has not been part of the newest version for some days; a folder
that no version names, once it is that old itself. Ages are differences of times that the place itself gave to files, so
the clock of this machine does not matter. What a command that writes may read or has made stays (`live_claims`).
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.errors import OutputError
from nddup.local.reading.workers import Workers
from nddup.repository.batches import Batch
from nddup.repository.identity import Identity, require_possible
from nddup.repository.make_change import Change, make_change
from nddup.repository.places.disk_place import remove_mapped_drafts
from nddup.repository.places.live_claims import Claims, LiveClaim
from nddup.repository.places.place import Place
from nddup.repository.segments.commits import (
    Commit,
    LostRaceError,
    Segment,
    UnansweredCommitError,
    read_commit,
    versions_in,
    write_commit,
)
from nddup.repository.segments.layout import CHANGES
from nddup.repository.segments.mapped import map_segment
from nddup.repository.segments.merge_segments import choose_merged, merge, merge_shingles, with_postings
from nddup.repository.segments.segment_files import remove_segment, require_stored, write_segment
from nddup.repository.snapshot import Snapshot
from nddup.repository.table_totals import COLUMNS, Totals
from nddup.tables import DOCUMENTS, REJECTS

_NO_CHANGES, _NO_REJECTS = CHANGES.arrow.empty_table(), REJECTS.arrow.empty_table()


class Written(NamedTuple):
    """The commit of the new version, None if there was nothing to change; the counts, the changes, and the rejects."""

    commit: Commit | None
    counts: Mapping[str, int]
    changes: pa.Table
    rejects: pa.Table


def create(repo: Place, identity: Identity) -> Commit:
    """Make a repository without documents, version 1.

    Raises:
        ConfigError: for settings that are refused.
        OutputError: if the folder holds anything, or cannot be written.
    """
    require_possible(identity)
    try:
        repo.begin()
    except FileExistsError as error:
        raise OutputError(f"{repo}: exists already, and is not empty") from error
    except OSError as error:
        raise OutputError(f"{repo}: cannot be written ({error.strerror or error})") from error
    totals = Totals(dict.fromkeys(COLUMNS, (0, 0)))
    commit = Commit(1, 0, "create", _now(), identity.note(), digests=totals.added_to({}))
    write_commit(repo, commit)
    return commit


def add(
    snapshot: Snapshot, batch: Batch, workers: Workers, before_commit: Callable[[pa.Table], None] | None = None
) -> Written:
    """Add a batch; commit nothing if none of its documents is stored and none is replaced.

    `before_commit` is called with CHANGES when all is known and nothing is committed: if it raises, nothing is.
    """
    tell = before_commit or (lambda changes: None)  # noqa: ARG005
    if not len(batch.documents) and not len(batch.gone):
        tell(_NO_CHANGES)
        return Written(None, batch.counts() | {"added": 0}, _NO_CHANGES, batch.rejects)
    change = make_change(snapshot, batch.documents, batch.gone, workers, batch.source)
    stored = change.tables["documents"]["doc_key"].combine_chunks()
    change.tables["texts"] = batch.texts.filter(pc.is_in(batch.texts["doc_key"], value_set=stored))
    counts = batch.counts() | change.counts
    tell(change.tables["changes"])
    if not len(change.tables["documents"]) and not len(batch.gone):
        return Written(None, counts, change.tables["changes"], batch.rejects)
    return _commit(snapshot, change, "add", counts, batch)


def remove(snapshot: Snapshot, ids: Sequence[str], workers: Workers) -> tuple[Written, list[str]]:
    """Remove documents; also return the ids that are not live, sorted."""
    wanted = pa.array(sorted(set(ids)), pa.string())
    keys = snapshot.find_ids(wanted)
    unknown = wanted.filter(pa.array(keys < 0)).to_pylist()
    gone = np.sort(keys[keys >= 0])
    if not len(gone):
        return Written(None, {"removed": 0, "unknown": len(unknown)}, _NO_CHANGES, _NO_REJECTS), unknown
    change = make_change(snapshot, DOCUMENTS.arrow.empty_table(), gone, workers)
    return _commit(snapshot, change, "remove", change.counts | {"unknown": len(unknown)}, None), unknown


def merge_all(snapshot: Snapshot) -> Commit:
    """Merge all segments into one, leaving out removed documents and rows that no longer count."""
    change = Change({}, np.empty(0, np.int64), 0, Totals(dict.fromkeys(COLUMNS, (0, 0))))
    before = snapshot.commit
    return _write(snapshot, before.segments, change, replace(_next(snapshot, "compact"), digests=before.digests))


def _commit(snapshot: Snapshot, change: Change, what: str, counts: Mapping[str, int], batch: Batch | None) -> Written:
    before = snapshot.commit
    merged = choose_merged(before.segments, change.tables)
    taken = before.segments[len(before.segments) - merged :]
    commit = replace(
        _next(snapshot, what),
        counts={"documents": _documents(before) + len(change.tables["documents"]) - len(change.gone), **counts},
        digests=change.totals.added_to(before.digests),
        next_key=before.next_key + (batch.numbers if batch else 0),
        next_component=before.next_component + change.components,
    )
    written = _write(snapshot, taken, change, commit)
    return Written(written, counts, change.tables["changes"], batch.rejects if batch else _NO_REJECTS)


def _next(snapshot: Snapshot, what: str) -> Commit:
    before = snapshot.commit
    following = replace(before, version=before.version + 1, parent=before.version, what=what, time=_now())
    return replace(following, counts={"documents": _documents(before)}, changes=None)


def _documents(commit: Commit) -> int:
    """Return the number of live documents."""
    return commit.counts.get("documents", 0)


def _write(snapshot: Snapshot, taken: Sequence[Segment], change: Change, commit: Commit) -> Commit:
    """Write a change and the segments merged with it, and a commit that names the new one; undo what surely failed."""
    repo, stays = snapshot.repo, snapshot.commit.segments[: len(snapshot.commit.segments) - len(taken)]
    new: tuple[Segment, ...] = ()
    if tables := merge(snapshot, taken, change):
        whole, shingled = with_postings(tables, snapshot.identity.matching), merge_shingles(snapshot, taken, change)
        new = (write_segment(repo, commit.version, whole, shingled),)
    try:
        for segment in new:
            map_segment(repo, segment, snapshot.identity.matching)
        changes = new[0].name if new and new[0].rows.get("changes") else None
        commit = replace(commit, segments=(*stays, *new), changes=changes)
        require_stored(repo, commit.segments)
        write_commit(repo, commit)
    except (LostRaceError, OutputError) as error:
        if not isinstance(error, UnansweredCommitError):
            for segment in new:
                remove_segment(repo, segment.name)
        raise
    return commit


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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
