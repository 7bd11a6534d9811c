"""Commands that write: each makes at most one version, or changes nothing.

    create       Identity              -> Commit, version 1, without documents
    read_batch   inputs                -> Batch: the documents read, which of them are new, and what they replace, by id
    add, remove  Batch; ids            -> Written: the commit, its counts, changes and rejects
    write_delta  Batch, changes        -> its files with only the documents that are new and kept
    compact      snapshot, LiveClaim   -> Compacted: all segments merged (`merge_all`), unused ones removed

The segment is written first, then the commit that names it, once all its segments are found in their places. A crash in
between leaves a folder that no commit names.
"""

import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded import steps as engine
from nddup.embedded.confirm import Row
from nddup.embedded.rewrite import Rewriter, verdicts_of, write_apart
from nddup.embedded.workers import Workers
from nddup.engines.duck import DuckEngine
from nddup.errors import ConfigError, OutputError, OutputExistsError
from nddup.ground.columns import fingerprints_of, one_chunk, ragged_of
from nddup.ground.shown import counted
from nddup.matching.lookups import Matching, build_postings, is_among, spread_rows
from nddup.repository.close_components import COLUMNS, Totals
from nddup.repository.commits import (
    SEGMENT_NAME,
    Claims,
    Commit,
    LiveClaim,
    LostRaceError,
    Segment,
    UnansweredCommitError,
    read_commit,
    versions_in,
    write_commit,
)
from nddup.repository.identity import Identity, require_possible
from nddup.repository.live_tables import read_texts
from nddup.repository.make_change import Change, make_change
from nddup.repository.mapped import map_segment
from nddup.repository.places import DRAFT, Place, remove_mapped_drafts
from nddup.repository.segment_files import (
    CHANGES,
    COMMON,
    POSTINGS,
    RESULTS,
    SEGMENT,
    TEXTS,
    read_all,
    read_table,
    remove_segment,
    require_stored,
    write_segment,
)
from nddup.repository.snapshot import Snapshot
from nddup.scanning.collection import Collection
from nddup.stages.losses import require_few_losses
from nddup.tables import DOCUMENTS, REJECTS, REPEATED


@dataclass(frozen=True)
class Batch:
    """The documents of a batch that are added, and what happens to the rest.

    Attributes:
        documents: DOCUMENTS of a run, numbered by the repository.
        gone: numbers of the live documents they replace, ascending.
        rejects: REJECTS, including repeated ids.
        unchanged: number of documents that are already live with the same content.
        numbers: how many document numbers the batch uses up.
        records: `doc_id`, `source` and `record` of all documents that were read, unchanged ones too.
        unread: REJECTS of reading alone.
        texts: TEXTS of the documents.
        source: what they were read from, which is read again where all shingles decide.
    """

    documents: pa.Table
    gone: NDArray[np.int64]
    rejects: pa.Table
    unchanged: int
    numbers: int
    texts: pa.Table = field(default_factory=TEXTS.arrow.empty_table)
    records: pa.Table = field(default_factory=DOCUMENTS.arrow.empty_table)
    unread: pa.Table = field(default_factory=REJECTS.arrow.empty_table)
    source: Collection | pa.Table | None = None

    def counts(self) -> dict[str, int]:
        """Return the counts that a commit records of the batch, with rejects by reason."""
        reasons = Counter(self.rejects["reason"].to_pylist())
        return {"unchanged": self.unchanged, "rejects": len(self.rejects)} | {
            f"rejects {reason}": count for reason, count in sorted(reasons.items())
        }


BY_COMPONENT = ("state", "digests", *RESULTS)

DAYS = 7

SECONDS = 86_400

_NO_CHANGES, _NO_REJECTS = CHANGES.arrow.empty_table(), REJECTS.arrow.empty_table()


def read_batch(
    snapshot: Snapshot,
    source: Collection | pa.Table,
    workers: Workers,
    *,
    replace: bool = False,
    id_prefix: str | None = None,
) -> Batch:
    """Read and sketch a batch, and find which of its documents are new.

    Args:
        snapshot: the version before.
        replace: whether a live id with other content replaces the stored document; else it is a reject `repeated id`.
        id_prefix: prefix of ids made up from file and record.

    Raises:
        ConfigError: for made-up ids without a prefix, or if a prefixed one equals another id of the batch.
        NddupError: if more files cannot be read, or more records are rejected, than the settings allow.
    """
    config = snapshot.identity.config
    sketched = engine.sketch(source, config, workers)
    ask = partial(DuckEngine.over, "this batch", documents=sketched.documents, rejects=sketched.rejects)
    require_few_losses(ask, len(sketched.documents), sketched.reasons, config.input, source)

    documents = _with_ids(sketched.documents, id_prefix)
    stored = snapshot.find_ids(one_chunk(documents["doc_id"]))
    live = np.flatnonzero(stored >= 0)
    keys = stored[live]
    is_same = _same_contents(snapshot, documents.take(pa.array(live)), keys)
    changed, same = live[~is_same], live[is_same]

    chosen = np.ones(len(documents), np.bool_)
    chosen[same] = False
    rejects, gone = sketched.rejects, np.sort(keys[~is_same])
    if not replace:
        chosen[changed] = False
        rejects, gone = pa.concat_tables([rejects, _repeated(documents.take(pa.array(changed)))]), np.empty(0, np.int64)
    numbers = int(pc.max(documents["doc_key"]).as_py() or 0) + 1 if len(documents) else 0
    added = _numbered(documents, snapshot.commit.next_key).filter(pa.array(chosen))
    texts = read_texts(snapshot, source, added, workers)
    records = documents.select(["doc_id", "source", "record"])
    return Batch(added, gone, rejects, len(same), numbers, texts, records, sketched.rejects, source)


def write_delta(batch: Batch, changes: pa.Table, rewriter: Rewriter, output: str, workers: Workers) -> None:
    """Write the files of a batch again with only the documents that were not live before and are kept now.

    Args:
        changes: CHANGES of the version that it makes.
        rewriter: of its files; it gets the verdicts here.
        output: the new folder. It gets its name when it is complete.

    Raises:
        OutputError: if it exists or cannot be written.
        NddupError: if a file cannot be written again.
    """
    is_new = pc.and_(pc.is_in(changes["was"], pa.array(["absent"])), pc.equal(changes["is"], "kept"))
    is_new = pc.or_(is_new, pc.and_(pc.equal(changes["cause"], "replaced"), pc.equal(changes["is"], "kept")))
    stays = pc.is_in(batch.records["doc_id"], value_set=one_chunk(changes["doc_id"].filter(is_new)))
    verdicts = verdicts_of(batch.records.append_column("stays", stays), batch.unread)
    write_apart(rewriter._replace(verdicts=verdicts), output, workers)


class Delta:
    """The files of a batch with only the documents that were new and are kept, written before their version."""

    def __init__(self, batch: Batch, rewriter: Rewriter, output: str, workers: Workers) -> None:
        """As `write_delta`."""
        self._write = partial(write_delta, batch, rewriter=rewriter, output=output, workers=workers)
        self._output = output
        self._is_written = False

    def write(self, changes: pa.Table) -> None:
        """As `write_delta`."""
        self._write(changes)
        self._is_written = True

    def withdraw(self, before: Commit, repo: Place, error: BaseException) -> None:
        """Remove the folder if it was written and an error surely kept its version from being made.

        Otherwise a command that is run again, as it should be after a lost race, would find its output there.

        Args:
            before: the version before.
        """
        if self._is_written and not isinstance(error, UnansweredCommitError):
            with suppress(OSError):
                if isinstance(error, LostRaceError) or versions_in(repo)[-1] == before.version:
                    shutil.rmtree(self._output)


def _with_ids(documents: pa.Table, prefix: str | None) -> pa.Table:
    record = documents["record"].cast(pa.string())
    made = pc.binary_join_element_wise(documents["source"], record, "#")
    is_made = pc.equal(documents["doc_id"], made)
    count = pc.sum(is_made).as_py() or 0
    if not count:
        return documents
    if prefix is None:
        raise ConfigError(
            f"{counted(count, 'record', 'have')} no id, and ids made up from file and record may repeat in another"
            " batch; name the field with input.id at `index create`, or give --id-prefix"
        )
    for name in ("doc_id", "group"):  # a group is named by a document's id
        at = documents.schema.get_field_index(name)
        is_of_made = is_made if name == "doc_id" else pc.is_in(documents["group"], value_set=one_chunk(made).filter(
            one_chunk(is_made)))  # fmt: skip
        renamed = pc.if_else(is_of_made, pc.binary_join_element_wise(prefix, documents[name], ""), documents[name])
        documents = documents.set_column(at, name, renamed)
    if len(pc.unique(documents["doc_id"])) < len(documents):
        raise ConfigError(f"--id-prefix {prefix}: a made-up id with it equals another id of the batch")
    return documents


def _numbered(documents: pa.Table, first: int) -> pa.Table:
    """Return the documents numbered from `first`, without their dates: stored ones have none to be compared with."""
    at, date = (documents.schema.get_field_index(name) for name in ("doc_key", "date"))
    dateless = documents.set_column(date, "date", pa.nulls(len(documents), pa.string()))
    return dateless.set_column(at, "doc_key", pc.add(documents["doc_key"], first))


def _same_contents(snapshot: Snapshot, documents: pa.Table, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each document has content and read columns of the stored one with its number in `keys`, (n,)."""
    stored = snapshot.documents_of(np.sort(keys), ["doc_key", "content_fingerprint", "policy"])
    at = np.searchsorted(stored["doc_key"].to_numpy(), keys)
    theirs = fingerprints_of(stored["content_fingerprint"])[at]
    is_same = (fingerprints_of(documents["content_fingerprint"]) == theirs).all(axis=1)
    for place in range(len(snapshot.identity.config.keep.read)):
        ours = pc.list_element(documents["policy"], place)
        old = pc.list_element(stored["policy"], place).take(pa.array(at))
        both_lack = pc.and_(pc.is_null(ours), pc.is_null(old))
        is_same &= np.asarray(pc.or_kleene(pc.equal(ours, old), both_lack).fill_null(False))  # noqa: FBT003
    return np.asarray(is_same)


def _repeated(documents: pa.Table) -> pa.Table:
    """Return REJECTS for documents whose id is live with other content."""
    n = len(documents)
    columns = {
        "source": documents["source"],
        "record": documents["record"],
        "doc_id": documents["doc_id"],
        "reason": pa.array([REPEATED] * n, pa.string()),
        "detail": pa.array(
            ["lives in the repository with other content; --replace takes the new one"] * n, pa.string()
        ),
        "excerpt": pa.array([""] * n, pa.string()),
    }
    return pa.table(columns).cast(REJECTS.arrow)


def size_of(rows: Mapping[str, int]) -> int:
    """Return the size that decides merges: documents or rows of `state`, whichever are more, at least 1."""
    return max(rows.get("documents", 0), rows.get("state", 0), 1)


def choose_merged(segments: Sequence[Segment], tables: Mapping[str, pa.Table]) -> int:
    """Return how many segments a new one takes in: the last one, as long as the merged size is over half of its.

    So segments are few, and a document is rewritten about as often as its segment doubles.
    """
    size, count = size_of({name: len(table) for name, table in tables.items()}), 0
    while count < len(segments) and 2 * size > size_of(segments[-1 - count].rows):
        size += size_of(segments[-1 - count].rows)
        count += 1
    return count


def merge(snapshot: Snapshot, segments: Sequence[Segment], change: Change) -> dict[str, pa.Table]:
    """Return the tables of one segment that replaces some and adds a change to them; without postings.

    It drops what is not live; `with_postings` rebuilds the postings in one order of features.

    Args:
        snapshot: the version before.
        segments: the last segments of the snapshot, in order, that are merged; may be empty.
        change: the new rows, and the documents removed.

    Cost: reads the segments and holds them in memory.
    """
    if not segments:
        return dict(change.tables)
    whole = {
        name: pa.concat_tables(
            [
                *(read_table(snapshot.repo, segment, name) for segment in segments),
                *([change.tables[name]] if name in change.tables else []),
            ]
        )
        for name in SEGMENT
        if name not in ("postings", "common", "changes", "shingles")
    }
    documents, state = whole["documents"], whole["state"]
    replaced = whole["replaced"]["component_key"].to_numpy()
    after = _Afterwards(snapshot, change)
    stays = {
        "documents": after.live(documents["doc_key"]),
        "texts": after.live(whole["texts"]["doc_key"]),
        "sketches": after.live_nodes(whole["sketches"]["node"]),
        "gone": ~np.isin(whole["gone"]["doc_key"].to_numpy(), documents["doc_key"].to_numpy()),
        "replaced": ~np.isin(whole["replaced"]["component_key"].to_numpy(), state["component_key"].to_numpy()),
    }
    for name in BY_COMPONENT:
        stays[name] = ~np.isin(whole[name]["component_key"].to_numpy(), replaced)
    merged = {name: table.filter(pa.array(stays[name])) for name, table in whole.items()}
    return merged | {"changes": change.tables["changes"]} if "changes" in change.tables else merged


def merge_shingles(snapshot: Snapshot, segments: Sequence[Segment], change: Change) -> Iterator[tuple[int, Row]]:
    """Yield the rows of SHINGLES of live nodes: those of some last segments of the snapshot, then those of a change.

    Raises:
        OutputError: if a row that is read is not that of its node.

    Cost: reads the rows one after another; no segment is held in memory.
    """
    after, first = _Afterwards(snapshot, change), len(snapshot.commit.segments) - len(segments)
    for number in range(first, len(snapshot.commit.segments)):
        stored = snapshot.shingles[number]
        for node, row in stored.only(after.live_nodes(pa.chunked_array([pa.array(stored.nodes)]))):
            snapshot.require_own(number, node, row)
            yield node, row
    yield from change.shingled


class _Afterwards(NamedTuple):
    """The documents and sketches that are live after a change."""

    snapshot: Snapshot
    change: Change

    def live(self, keys: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return whether each document is live, (n,)."""
        numbers = keys.to_numpy()
        return ~self.snapshot.are_gone(numbers) & ~is_among(numbers, self.change.gone)

    def live_nodes(self, nodes: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return whether each distinct sketch has a live document, (n,)."""
        numbers = nodes.to_numpy()
        new = self.change.tables.get("documents")
        is_live = np.zeros(len(numbers), np.bool_) if new is None else np.isin(numbers, new["node"].to_numpy())
        which, keys = self.snapshot.find_documents(numbers)
        is_live[which[~is_among(keys, self.change.gone)]] = True
        return is_live


def with_postings(tables: Mapping[str, pa.Table], matching: Matching) -> dict[str, pa.Table]:
    """Return the tables sorted by their keys, with the postings and common features of the sketches."""
    keys = {"documents": "doc_key", "texts": "doc_key", "sketches": "node", "state": "component_key"}
    keys |= dict.fromkeys(("digests", *RESULTS), "component_key")
    sorted_tables = {name: table.sort_by(keys[name]) if name in keys else table for name, table in tables.items()}
    sketches = sorted_tables["sketches"]
    ids = ragged_of(sketches["sketch"])
    rows = spread_rows(sketches["node"].to_numpy(), ids, sketches["n_features"].to_numpy(), matching)
    made = build_postings(rows, matching)
    posted = [pa.array(column.astype(np.int64)) for column in (made.features, made.holders, made.places)]
    common = [pa.array(made.common.astype(np.int64)), pa.array(made.common_holders)]
    return {
        **sorted_tables,
        "postings": pa.Table.from_arrays(posted, names=POSTINGS.names).cast(POSTINGS.arrow),
        "common": pa.Table.from_arrays(common, names=COMMON.names).cast(COMMON.arrow),
    }


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
        raise OutputExistsError(f"{repo}: exists already, and is not empty") from error
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


def removed_ids(repo: Place) -> Iterator[set[str]]:
    """Yield the ids that each stored version removed, the newest first; those whose files are gone are left out."""
    for version in reversed(versions_in(repo)):
        commit = _try_read(repo, version)
        named = [] if commit is None else [one for one in commit.segments if one.name == commit.changes]
        with suppress(OSError, OutputError, pa.ArrowException):
            changes = read_all(repo, named, "changes")
            yield set(changes.filter(pc.equal(changes["is"], "absent"))["doc_id"].to_pylist())


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


class Compacted(NamedTuple):
    """The version made, None if there was nothing to merge or drop; the number of folders removed, and their bytes."""

    commit: Commit | None
    removed: int
    freed: int


def compact(snapshot: Snapshot, claim: LiveClaim, *, days: float = DAYS) -> Compacted:
    """Merge all segments without the removed documents, and remove segments out of use for `days`.

    Args:
        snapshot: the newest version, read under the claim.
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

    A reader may still hold a recent version: a segment's folder is removed once it has not been part of the newest
    version for some days; a folder that no version names, once it is that old itself. Ages are differences of times
    that the place itself gave to files, so the clock of this machine does not matter. What a command that writes may
    read or has made stays (`commits.claimed`).

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
        made = re.fullmatch(SEGMENT_NAME, name)
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
