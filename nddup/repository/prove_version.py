"""`nddup index check`: check a version's files, its digests, and its tables against a fresh run over live documents."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from fractions import Fraction
from hashlib import blake2b
from math import sqrt
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded import steps as engine
from nddup.embedded.collapse import Nodes
from nddup.embedded.confirm import ENDS, Confirmer
from nddup.embedded.match import Matches
from nddup.embedded.workers import Workers
from nddup.errors import OutputError
from nddup.ground.columns import one_chunk
from nddup.matching.lookups import build_postings, distinct, find_rows, is_among
from nddup.repository.close_components import COLUMNS, row_digests, stored_confirmer, tables_totals, totals_by
from nddup.repository.live_tables import live_tables
from nddup.repository.mapped import FOLDER, MappedSegment, as_segment, make_parts
from nddup.repository.places import Place
from nddup.repository.segment_files import DIGESTS, RESULTS, read_all
from nddup.repository.snapshot import Snapshot
from nddup.scanning.sketch_records import fingerprint_sketches
from nddup.settings.plan import kind_of
from nddup.sketching.accuracy import chance_missed
from nddup.sketching.min_s import Sketches
from nddup.storage.sound_tables import FINGERPRINT
from nddup.verifying.definitions import count_shared

MOST_PAIRS = 100_000
"""Maximum number of candidates whose shingles are counted again."""

PROBES = 100
"""Texts whose pairs with all others are counted."""

COMPONENTS = "the rows of each component are its documents'"
"""A promise."""

TOGETHER = 4_096
"""Texts, or pairs, whose shingles are looked at together."""


class Proof(NamedTuple):
    """A promise of the repository, whether it holds, and what was compared."""

    promise: str
    holds: bool
    detail: str

    def text(self) -> str:
        """Return the proof as one line."""
        return f"{'ok    ' if self.holds else 'BROKEN'} {self.promise}: {self.detail}\n"


DOCUMENT_OF = {
    "documents": "doc_id", "keep": "doc_id", "pairs": "doc_a", "clusters": "component", "members": "doc_id",
    "false_components": "component",
}  # fmt: skip
"""The column of each table that names a document of the row's component."""


def prove(snapshot: Snapshot, workers: Workers) -> Iterator[Proof]:
    """Check the promises of a version, one after another; those of the files alone where damaged ones cannot be read.

    Raises:
        OutputError: if the version cannot be read, though its files are those that were written.

    Cost: reads all segments; pairs and clusters all live documents afresh, in memory.
    """
    files = _prove_files(snapshot)
    yield files
    try:
        yield from _prove_tables(snapshot, workers)
    except OutputError:
        if files.holds:
            raise


def _prove_tables(snapshot: Snapshot, workers: Workers) -> Iterator[Proof]:
    mapped = _prove_mapped(snapshot)
    yield mapped
    if not mapped.holds:
        return
    tables = live_tables(snapshot)
    stored, committed = tables_totals(tables), dict(snapshot.commit.digests)
    yield _compare("what is stored is what was committed", stored, committed)
    if snapshot.identity.is_exact:
        yield from _prove_shingles(snapshot, tables)
    yield _prove_components(snapshot, tables)
    fresh = _run_fresh(snapshot, tables["documents"], workers)
    if snapshot.identity.mode == "rebuild":
        yield _compare("the tables are those of a fresh run", stored, tables_totals(fresh))
        return
    pairs = {name: (stored[name], tables_totals(fresh)[name]) for name in ("documents", "pairs")}
    yield _compare("the pairs are those of a fresh run", *({k: v[i] for k, v in pairs.items()} for i in (0, 1)))
    yield _prove_frozen(tables)


def _prove_files(snapshot: Snapshot) -> Proof:
    """Prove that every file has the size and the SHA-256 that were committed."""
    wrong, count = [], 0
    for segment in snapshot.commit.segments:
        for name, written in segment.files.items():
            count += 1
            if _measure(snapshot.repo, f"{segment.name}/{name}") != written:
                wrong.append(f"{segment.name}/{name}")
    detail = f"{count} files" if not wrong else f"{', '.join(wrong)} of {count} files differ"
    return Proof("the files are those that were written", not wrong, detail)


def _prove_mapped(snapshot: Snapshot) -> Proof:
    """Prove that what is looked up is what the tables say, and that the postings and fingerprints are the sketches'."""
    wrong, matching = list[str](), snapshot.identity.matching
    for segment, mapped in zip(snapshot.commit.segments, snapshot.mapped, strict=True):
        parts = make_parts(snapshot.repo, segment, matching)
        made = as_segment(parts, matching)
        built = build_postings(made.postings.rows, matching)
        wrong += [f"{segment.name}/{FOLDER}"] if not _are_equal(mapped, made) else []
        wrong += [f"the postings of {segment.name}"] if not _are_equal(built, made.postings) else []
        wrong += [f"the fingerprints of {segment.name}"] if not _have_own_prints(snapshot, made) else []
    detail = ", ".join(wrong) or f"{len(snapshot.commit.segments)} segments"
    return Proof("what is looked up is what is stored", not wrong, detail)


def _are_equal(ours: object, theirs: object) -> bool:
    """Return whether two values are equal: arrays, tables, and classes and tuples of them."""
    if isinstance(ours, np.ndarray):
        return np.array_equal(ours, np.asarray(theirs))
    if isinstance(ours, pa.Table):
        return bool(ours.equals(theirs))
    values = [list(vars(one).values()) if is_dataclass(one) else one for one in (ours, theirs)]
    return all(_are_equal(*pair) for pair in zip(*values, strict=True))


def _have_own_prints(snapshot: Snapshot, segment: MappedSegment) -> bool:
    """Return whether sketches that decide have their own fingerprints; those of all shingles are proved with these."""
    rows = segment.sketches
    if snapshot.identity.is_exact:
        return True
    made = Sketches(segment.n_features, segment.n_features, rows.offsets, rows.values)
    prints = np.frombuffer(b"".join(fingerprint_sketches(made, snapshot.identity.sketching.recipe)), np.uint64)
    words, is_filled = prints.reshape(-1, 2), np.diff(rows.offsets) > 0
    order = np.argsort(segment.prints.rows, kind="stable")
    is_own = (words[:, 1] == segment.print_ends) & (words[:, 0] == segment.prints.keys[order])
    return bool(is_own[is_filled].all())


def _prove_components(snapshot: Snapshot, tables: dict[str, pa.Table]) -> Proof:
    """Prove that rows are stored with the component of their documents, and the digest of each component is its rows'.

    A later version takes the rows of the components that it touches away by both.
    """
    state, ids = snapshot.state_of(snapshot.live_keys), one_chunk(tables["documents"]["doc_id"])
    of_documents, wrong = state["component_key"].to_numpy(), 0
    live, sizes = np.unique(of_documents, return_counts=True)
    due = dict[tuple[int, str], tuple[int, bytes]]()
    several = set(live[sizes > 1].tolist())
    for name, column in DOCUMENT_OF.items():
        at = pc.index_in(one_chunk(tables[name][column]), value_set=ids)
        if at.null_count:
            return Proof(COMPONENTS, holds=False, detail=f"{at.null_count:,} rows of {name} name no live document")
        components = of_documents[np.asarray(at)]
        if name in RESULTS:
            stored = read_all(snapshot.repo, snapshot.commit.segments, name, ["component_key"])[
                "component_key"
            ].to_numpy()
            wrong += int(np.count_nonzero(stored[is_among(stored, live)] != components))
        for component, (count, digest) in totals_by(row_digests(tables[name], name), components).items():
            if component in several:
                due[component, name] = (count, digest.to_bytes(FINGERPRINT, "little"))
    digests = snapshot.digests_of(live)
    rows = zip(*(digests[name].to_pylist() for name in DIGESTS.names), strict=True)
    noted = {(component, name): (count, digest) for component, name, count, digest in rows if component in several}
    differing = sum(noted.get(key) != due.get(key) for key in noted.keys() | due.keys()) + len(digests) - len(noted)
    detail = f"{len(live):,} components, {wrong:,} rows with another, {differing:,} other digests"
    return Proof(COMPONENTS, not wrong and not differing, detail)


def _measure(repo: Place, name: str) -> tuple[int, str] | None:
    try:
        return repo.measure(name)
    except OSError:  # missing, or a link
        return None


def _compare(promise: str, ours: dict[str, tuple[int, str]], theirs: dict[str, tuple[int, str]]) -> Proof:
    differing = [name for name in theirs.keys() | ours.keys() if ours.get(name) != theirs.get(name)]
    rows = sum(count for count, _ in ours.values())
    if not differing:
        return Proof(promise, holds=True, detail=f"{rows:,} rows in {len(theirs)} tables")
    none = (0, "")
    text = ", ".join(
        f"{name} ({ours.get(name, none)[0]:,} rows, expected {theirs.get(name, none)[0]:,})"
        for name in sorted(differing)
    )
    return Proof(promise, holds=False, detail=text)


def _run_fresh(snapshot: Snapshot, documents: pa.Table, workers: Workers) -> dict[str, pa.Table]:
    config = snapshot.identity.config
    owners = _nodes_of(snapshot)

    def read(matches: Matches, nodes: Nodes) -> Confirmer | None:
        return stored_confirmer(snapshot.identity, matches, nodes, lambda at: snapshot.shingles_of(owners[at]))

    paired = engine.pair(documents, config, workers, read=read)
    clustered = engine.cluster(paired, config, workers)
    kept = engine.keep(paired, clustered, config)
    tables = {"documents": documents, "pairs": paired.pairs, "keep": kept.keep}
    return tables | {name: getattr(clustered, name) for name in COLUMNS if name not in tables}


def _nodes_of(snapshot: Snapshot) -> NDArray[np.int64]:
    return np.asarray(snapshot.documents_of(snapshot.live_keys, ["doc_key", "node"])["node"].to_numpy())


def _prove_shingles(snapshot: Snapshot, tables: dict[str, pa.Table]) -> Iterator[Proof]:
    """Prove the exact resemblances from the stored shingles, without the code that counted them.

    Of more pairs than `MOST_PAIRS` an even sample is counted again. Of an even sample of `PROBES` texts, all pairs are
    counted, but for those around leaders, of which not all are listed.
    """
    owners, share = _nodes_of(snapshot), snapshot.identity.config.pairs.share
    nodes = distinct(owners)
    sizes, wrong, shingles = snapshot.n_features_of(nodes), 0, 0
    probes, sets = nodes[:: -(-len(nodes) // PROBES) or 1], _sets_of(snapshot, nodes)
    wanted = dict(zip(probes.tolist(), _sets_of(snapshot, probes), strict=True))
    ends, led = _ends_of(tables, owners), set(owners[_are_led(snapshot)].tolist())
    listed = set(map(tuple, np.sort(ends[:, np.isin(ends, probes).any(axis=0)], axis=0).T.tolist()))
    named = read_all(snapshot.repo, snapshot.commit.segments, "sketches", ["node", "sketch_fingerprint"])
    prints = dict(zip(*(column.to_pylist() for column in named.columns), strict=True))
    probed, missed, n_near, sketches = _Probed(wanted), 0, 0, snapshot.sketches_of(nodes)
    for place, (node, size, ids) in enumerate(zip(nodes.tolist(), sizes.tolist(), sets, strict=True)):
        shingles += len(ids)
        sketch = sketches.values[slice(*sketches.offsets[place : place + 2])]
        wrong += snapshot.identity.is_front and not np.array_equal(ids[: len(sketch)], sketch)
        wrong += len(ids) != size or bool((ids[1:] <= ids[:-1]).any())
        wrong += bool(len(ids)) and prints[node] != blake2b(ids.tobytes(), digest_size=16).digest()
        for other, shared in probed.count(ids) if node not in led else ():
            if other == node or (node in wanted and other > node):
                continue
            if Fraction(shared, len(ids) + len(wanted[other]) - shared) >= share:
                n_near += 1
                missed += (min(node, other), max(node, other)) not in listed
    keys = snapshot.live_keys  # a sketch bears the number of the first document with it
    has_own = is_among(keys, np.unique(named["node"].to_numpy()))
    counts = tables["documents"]["n_features"].to_numpy()
    is_other = (has_own & (owners != keys)) | (counts != snapshot.n_features_of(owners))
    wrong += int(np.count_nonzero(is_other))
    detail = f"{shingles:,} shingles of {len(nodes):,} texts, {wrong:,} texts with others"
    yield Proof("the shingles are those of the texts, by their digests and numbers", not wrong, detail)

    chosen = np.arange(0, len(tables["pairs"]), -(-len(tables["pairs"]) // MOST_PAIRS) or 1)
    wrong_rows = _count_wrong(snapshot, tables["pairs"].take(pa.array(chosen)), ends[:, chosen])
    detail = f"{len(chosen):,} of {len(tables['pairs']):,} pairs counted again, {wrong_rows:,} with other numbers"
    yield Proof("a pair is one whose shingles reach the threshold, all counted", not wrong_rows, detail)

    expected = chance_missed(snapshot.identity.config.sketch.size, share) * n_near
    holds = missed <= expected + 4 * sqrt(expected) + 1 or not kind_of(snapshot.identity.config.sketch).is_exact
    detail = f"{len(probes):,} texts with all others: {missed:,} of {n_near:,} pairs, at most {expected:.2g} expected"
    yield Proof("no more pairs are missed by the sketches than expected", holds, detail)


def _ends_of(tables: dict[str, pa.Table], owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the nodes of both documents of each pair, (2, k); -1 for one that is not live."""
    ids, nodes = one_chunk(tables["documents"]["doc_id"]), np.append(owners, -1)
    at = [pc.fill_null(pc.index_in(one_chunk(tables["pairs"][name]), ids), len(owners)) for name in ENDS]
    return np.stack([nodes[np.asarray(one)] for one in at])


def _are_led(snapshot: Snapshot) -> NDArray[np.bool_]:
    """Return whether each live document is in a component that is given by leaders."""
    state = snapshot.state_of(snapshot.live_keys)
    components = state["component_key"].to_numpy()
    return np.isin(components, components[np.asarray(state["leader"])])


def _sets_of(snapshot: Snapshot, nodes: NDArray[np.int64]) -> Iterator[NDArray[np.uint64]]:
    """Yield the shingle ids of some nodes, in their order; raises OutputError for one that differs from its digest."""
    for low in range(0, len(nodes), TOGETHER):
        for row in snapshot.shingles_of(nodes[low : low + TOGETHER]):
            yield row.values[row.low : row.high]


class _Probed:
    """The shingles of a few texts, by which the other texts that have them are found."""

    def __init__(self, sets: dict[int, NDArray[np.uint64]]) -> None:
        self._names = np.array(list(sets), np.int64)
        ids = np.concatenate([np.empty(0, np.uint64), *sets.values()])
        owners = np.repeat(np.arange(len(sets)), [len(one) for one in sets.values()])
        order = np.argsort(ids, kind="stable")
        self._ids, self._owners = ids[order], owners[order]

    def count(self, ids: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
        """Yield each probe that has one of some shingles, with the number of those that it has."""
        rows = find_rows(self._ids, ids).rows
        shared = np.bincount(self._owners[rows], minlength=len(self._names))
        for probe in np.flatnonzero(shared).tolist():
            yield int(self._names[probe]), int(shared[probe])


def _count_wrong(snapshot: Snapshot, pairs: pa.Table, ends: NDArray[np.int64]) -> int:
    """Return how many rows of `pairs` have other numbers of shingles than their texts, or too few in common.

    Args:
        ends: (2, k), the nodes of both documents of each.
    """
    share, wrong = snapshot.identity.config.pairs.share, 0
    names = ["common", "shingles_a", "shingles_b", "resemblance"]
    for low in range(0, len(pairs), TOGETHER):
        part = ends[:, low : low + TOGETHER]
        nodes = distinct(part[part >= 0])
        sets = dict(zip(nodes.tolist(), _sets_of(snapshot, nodes), strict=True))
        rows = zip(*(pairs[name][low : low + TOGETHER].to_pylist() for name in names), strict=True)
        for (node_a, node_b), row in zip(part.T.tolist(), rows, strict=True):
            if min(node_a, node_b) < 0:
                wrong += 1
                continue
            shared, united = count_shared(sets[node_a], sets[node_b])
            is_near = united > 0 and Fraction(shared, united) >= share
            due = (shared, len(sets[node_a]), len(sets[node_b]), shared / max(united, 1))
            wrong += row != due or not is_near
    return wrong


def _prove_frozen(tables: dict[str, pa.Table]) -> Proof:
    """Prove that no two kept documents are near-duplicates, and each removed one is a near-duplicate of a kept one.

    A star stands for all pairs of two groups. If there are stars, `duplicate_of` need only name a kept document. Of
    documents without a feature no pair is listed; equal contents make them duplicates.
    """
    keep, pairs = tables["keep"], tables["pairs"].select(["doc_a", "doc_b", "star"])
    kept = one_chunk(keep.filter(keep["kept"])["doc_id"])
    both = pc.and_(pc.is_in(pairs["doc_a"], value_set=kept), pc.is_in(pairs["doc_b"], value_set=kept))
    removed = keep.filter(pc.invert(keep["kept"]))
    lost = int(np.count_nonzero(~np.asarray(pc.is_in(removed["duplicate_of"], value_set=kept))))
    if not pc.any(pairs["star"]).as_py():
        known = {frozenset(ends) for ends in zip(pairs["doc_a"].to_pylist(), pairs["doc_b"].to_pylist(), strict=True)}
        named = zip(removed["doc_id"].to_pylist(), removed["duplicate_of"].to_pylist(), strict=True)
        empty = tables["documents"].filter(pc.equal(tables["documents"]["n_features"], 0))
        contents = dict(zip(empty["doc_id"].to_pylist(), empty["content_fingerprint"].to_pylist(), strict=True))
        lost += sum(
            frozenset(ends) not in known and len({contents.get(end, end) for end in ends}) > 1 for ends in named
        )
    double = pc.sum(both).as_py() or 0
    detail = f"{len(kept):,} kept, {len(removed):,} removed; {double} pairs of kept ones, {lost} without a kept one"
    return Proof(
        "every removed document has a kept near-duplicate, and no kept one has", not double and not lost, detail
    )
