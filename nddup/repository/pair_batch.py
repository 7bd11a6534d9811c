"""The near-duplicate pairs of a batch: its new distinct sketches with the stored ones, and with each other.

Stored sketches are found through the postings of each segment, in that segment's order of features; the sketches of the
batch are paired with each other as in a run (`nddup.embedded.match`).

Where texts confirm pairs, all shingles of both texts decide: those of stored nodes, and those of new texts, read again.

    candidates --count_common--> the shingles that both texts of each have, 0 where too few

New texts have numbers from `next_key` of the commit on, which no stored node has.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.embedded.confirm import Confirmer, Row, Texts, read_tokens
from nddup.embedded.match import Matches, PairingOptions, match
from nddup.embedded.workers import Workers
from nddup.errors import CapacityError
from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import lists_of, one_chunk, ragged_of
from nddup.matching.confirm_texts import SetRule, may_confirm
from nddup.matching.lookups import Near, distinct, spread_rows
from nddup.repository.identity import Identity
from nddup.repository.segment_files import EDGES, SKETCHES
from nddup.repository.snapshot import Snapshot
from nddup.scanning.collection import Collection
from nddup.scanning.sketch_records import fingerprint_sketches, fingerprint_textless
from nddup.settings.plan import record_limits, tokens_of
from nddup.sketching.min_s import Sketches
from nddup.tables import likeness_of

Read = Callable[[NDArray[np.int64]], Sequence[Row]]
"""Reads the shingle ids of some texts, given by their places."""


class NewTexts(NamedTuple):
    """The n texts of a batch, or queries."""

    names: NDArray[np.int64]
    """(n,), their numbers, ascending."""

    n_features: NDArray[np.int32]
    """(n,), the number of distinct shingles of each."""

    read: Read


def texts_of(identity: Identity, source: Collection | pa.Table) -> Texts:
    """Return how the shingle ids of texts are read from their source."""
    config = identity.config
    rule = SetRule(config.pairs.share.numerator, config.pairs.share.denominator)
    return Texts(source, tokens_of(config), record_limits(config), rule, identity.is_front)


def read_shingles(
    identity: Identity, documents: pa.Table, source: Collection | pa.Table, workers: Workers
) -> Sequence[Row]:
    """Return where the shingle ids of some DOCUMENTS lie: in sketches that hold all, else read from the source again.

    Raises:
        NddupError: if a text is no longer found, because the input changed meanwhile.

    Cost: a pass over the source, unless all sketches are whole; 8 bytes a shingle, in mapped files where it is large.
    """
    sketches, sizes = ragged_of(documents["sketch"]), documents["n_features"].to_numpy()
    ends = sketches.offsets
    is_whole = (np.diff(ends) == sizes) & identity.is_front
    again = np.flatnonzero(~is_whole).astype(np.int32)
    read = iter(read_tokens(documents, again, texts_of(identity, source), workers))
    return [
        Row(sketches.values, int(ends[i]), int(ends[i + 1])) if whole else next(read)
        for i, whole in enumerate(is_whole.tolist())
    ]


class Counted(NamedTuple):
    """The shingles of both texts of k candidates."""

    common: NDArray[np.int64]  # (k,), 0 where they are too few for the rule
    sizes: NDArray[np.int64]  # (k, 2)

    @property
    def united(self) -> NDArray[np.int64]:
        """The shingles of both texts together, (k,)."""
        return np.asarray(self.sizes.sum(axis=1) - self.common)


def count_common(
    snapshot: Snapshot, ends: NDArray[np.int64], given: NewTexts, rule: SetRule, workers: Workers
) -> Counted:
    """Count the shingles common to both texts of each candidate.

    Args:
        snapshot: the version that holds the stored nodes.
        ends: (k, 2), stored nodes, or names of new texts.
        rule: the least resemblance.

    Cost: the texts of candidates whose sizes allow the resemblance are read, and merged pair by pair; a thread holds a
        portion of them in memory.
    """
    names = distinct(ends.ravel())
    is_new = names >= snapshot.commit.next_key
    at = np.searchsorted(given.names, names[is_new])
    sizes = np.empty(len(names), np.int64)
    sizes[~is_new], sizes[is_new] = snapshot.n_features_of(names[~is_new]), given.n_features[at]

    places = np.searchsorted(names, ends)
    of_ends = sizes[places]
    possible = np.flatnonzero(may_confirm(of_ends.T, rule))
    needed = distinct(places[possible].ravel())
    stored, new = needed[~is_new[needed]], needed[is_new[needed]]  # the names of new texts come after all stored ones
    rows = [*snapshot.shingles_of(names[stored]), *given.read(np.searchsorted(given.names, names[new]))]
    common = np.zeros(len(ends), np.int64)
    if len(possible):
        compared = Confirmer(needed.astype(np.int32), rows, rule).compare(places[possible], workers)
        common[possible] = compared.common
    return Counted(common, of_ends)


@dataclass(frozen=True)
class BatchPairs:
    """The sketches and pairs that a batch adds.

    Attributes:
        nodes: (n,), the distinct sketch of each document of the batch, stored or new.
        sketches: SKETCHES that are new.
        edges: EDGES with at least one new end.
        candidates: number of pairs of sketches that were compared.
        shingled: the new nodes whose sketches do not hold all shingles, ascending, each with these; none where sketches
            decide.
    """

    nodes: NDArray[np.int64]
    sketches: pa.Table
    edges: pa.Table
    candidates: int
    shingled: Sequence[tuple[int, Row]] = ()


def pair_batch(
    snapshot: Snapshot, documents: pa.Table, workers: Workers, source: Collection | pa.Table | None = None
) -> BatchPairs:
    """Name the distinct sketches of a batch and find their near-duplicates.

    Args:
        snapshot: the version before.
        documents: DOCUMENTS of a run, numbered by the repository.
        source: what the documents were read from; needed where all shingles decide.

    Raises:
        ValueError: if it is needed and not given.
        NddupError: if a text is no longer found in the source, because it changed meanwhile.
        CapacityError: if more than `pairs.max_postings` sketches of the batch have one prefix feature.

    Cost: look-ups in each segment, and the pairing of the batch with itself. Where all shingles decide, a second pass
        over the source, and those of the stored texts in candidates.
    """
    nodes, first_rows = _name_nodes(snapshot, documents)
    new = np.sort(nodes[first_rows])
    by_node = first_rows[np.argsort(nodes[first_rows])]
    sketches = take_rows(ragged_of(documents["sketch"]), by_node)
    n_features = documents["n_features"].to_numpy()[by_node]
    prints = fingerprints_of_rows(snapshot, documents.take(pa.array(by_node)))
    table = _sketch_table(new, sketches, n_features, prints)

    rows: Sequence[Row] = ()
    if snapshot.identity.is_exact and len(new):
        if source is None:
            raise ValueError("pairs.confirm resemblance: the texts are needed")
        rows = read_shingles(snapshot.identity, documents.take(pa.array(by_node)), source, workers)
    is_apart = np.diff(sketches.offsets) < n_features if snapshot.identity.is_front else n_features > 0
    shingled = [(node, row) for node, row, apart in zip(new.tolist(), rows, is_apart.tolist(), strict=False) if apart]

    # Empty sketches are stored, so that equal contents find each other, and are near nothing.
    filled = np.flatnonzero(np.diff(sketches.offsets) > 0)
    texts = NewTexts(new, n_features, lambda places: [rows[place] for place in places.tolist()])
    new, sketches, n_features = new[filled], take_rows(sketches, filled), n_features[filled]
    identity = snapshot.identity
    at_threshold = identity.matching_at(identity.config.pairs.threshold)
    near = snapshot.find_near(spread_rows(new, sketches, n_features, at_threshold), at_threshold)
    edges = [_stored_edges(of_segment, shows=at_threshold.threshold.shows_containment) for of_segment in near]
    among = match_batch(snapshot, sketches, n_features, workers)
    edges.append(edges_among(among, new))
    candidates = sum(of_segment.candidates for of_segment in near) + among.candidates
    joined = pa.concat_tables([EDGES.arrow.empty_table(), *edges])
    if snapshot.identity.is_exact:
        joined = _decide(snapshot, joined, texts, workers)
    return BatchPairs(nodes, table, joined, candidates, shingled)


def _decide(snapshot: Snapshot, edges: pa.Table, texts: NewTexts, workers: Workers) -> pa.Table:
    """Return candidates with the shingles that both texts have, and the resemblance of these where they are enough."""
    ends = np.stack([edges["node_a"].to_numpy(), edges["node_b"].to_numpy()], axis=1)
    share = snapshot.identity.config.pairs.share
    counted = count_common(snapshot, ends, texts, SetRule(share.numerator, share.denominator), workers)
    exact = counted.common / np.maximum(counted.united, 1)
    resemblance = np.where(counted.common > 0, exact, edges["resemblance"].to_numpy())
    columns = {"resemblance": pa.array(resemblance), "common": pa.array(counted.common.astype(np.int32))}
    for name, column in columns.items():
        edges = edges.set_column(edges.schema.get_field_index(name), name, column)
    return edges


def _name_nodes(snapshot: Snapshot, documents: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the node of each document, and the first row of each new node."""
    keys = documents["doc_key"].to_numpy()
    # The document that names a group may be missing here: it is already live and unchanged, or was rejected.
    codes = one_chunk(documents["group"]).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    groups = first[which]
    firsts = np.flatnonzero(groups == np.arange(len(groups)))
    stored = snapshot.find_nodes(fingerprints_of_rows(snapshot, documents.take(pa.array(firsts))))
    nodes = keys.copy()
    nodes[firsts[stored >= 0]] = stored[stored >= 0]
    return nodes[groups], firsts[stored < 0]


def fingerprints_of_rows(snapshot: Snapshot, documents: pa.Table) -> list[bytes]:
    """Return the fingerprint of each document's sketch, or of all its shingles; of an empty one, what stands for it."""
    rows = ragged_of(documents["sketch"])
    n_features = documents["n_features"].to_numpy()
    made = Sketches(n_features, n_features, rows.offsets, rows.values)
    prints: list[bytes] = (
        documents["token_fingerprint"].to_pylist()
        if snapshot.identity.is_exact
        else fingerprint_sketches(made, snapshot.identity.sketching.recipe)
    )
    for i in np.flatnonzero(np.diff(rows.offsets) == 0).tolist():
        content, tokens = (documents[name][i].as_py() for name in ("content_fingerprint", "n_tokens"))
        prints[i] = fingerprint_textless(content, tokens)
    return prints


def _stored_edges(near: Near, *, shows: bool) -> pa.Table:
    likeness = likeness_of(near.overlap, near.resemblance, near.sizes.T, shows_containment=shows)
    return _edge_table(near.given, near.stored, likeness)


def match_batch(snapshot: Snapshot, sketches: Ragged, n_features: NDArray[np.int32], workers: Workers) -> Matches:
    """Return all pairs within the batch; posting lists longer than `pairs.max_postings` are refused, not compared."""
    rule = replace(PairingOptions.of(snapshot.identity.config), limits=None, max_comparisons=0)
    try:
        return match(np.arange(len(n_features), dtype=np.int32), sketches, n_features, rule, workers)
    except CapacityError as error:
        raise CapacityError(
            f"a feature is held by more than pairs.max_postings {rule.max_postings} sketches of the batch; nothing was"
            " changed: add it in smaller batches"
        ) from error


def edges_among(matches: Matches, names: NDArray[np.int64]) -> pa.Table:
    """Return EDGES of pairs of sketches, which have these names."""
    return _edge_table(names[matches.first], names[matches.second], matches.measures)


def _edge_table(
    first: NDArray[np.int64], second: NDArray[np.int64], likeness: Mapping[str, NDArray[np.generic]]
) -> pa.Table:
    columns = {"node_a": first, "node_b": second, **likeness}
    values = [
        pa.array(np.ascontiguousarray(columns[field.name]))
        if field.name in columns
        else pa.nulls(len(first), field.type)
        for field in EDGES.arrow
    ]
    return pa.Table.from_arrays(values, names=EDGES.names).cast(EDGES.arrow)


def _sketch_table(
    nodes: NDArray[np.int64], sketches: Ragged, n_features: NDArray[np.int32], prints: list[bytes]
) -> pa.Table:
    lists = lists_of(sketches.offsets, pa.array(sketches.values.view(np.int64)))
    columns = [pa.array(nodes), pa.array(n_features), pa.array(prints, pa.binary()), lists]
    return pa.Table.from_arrays(columns, names=SKETCHES.names).cast(SKETCHES.arrow)
