"""The distinct sketches of a batch: those that are new, and the stored ones to which these may be near.

Stored sketches are found through the postings of each segment, in that segment's order of features. Which pairs there
are is decided when the touched components are made anew (`close_components`), so none are stored. Where all shingles
decide, the texts of the batch are read again for them.

New texts have numbers from `next_key` of the commit on, which no stored node has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.embedded.confirm import Row, Texts, read_tokens
from nddup.embedded.workers import Workers
from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import lists_of, one_chunk, ragged_of
from nddup.matching.confirm_texts import SetRule
from nddup.matching.lookups import distinct, find_near, leave_out, spread_rows
from nddup.repository.identity import Identity
from nddup.repository.segment_files import SKETCHES
from nddup.repository.snapshot import Snapshot
from nddup.scanning.collection import Collection
from nddup.scanning.sketch_records import fingerprint_sketches, fingerprint_textless
from nddup.settings.plan import record_limits, tokens_of
from nddup.sketching.min_s import Sketches

LEAST, TOGETHER = 16, 1024
"""New sketches that are looked up together: at first few, so that those of one family do not each meet all that is
stored of it; at most so many, for their hits are held."""

WORTH = 50
"""Postings of a segment for each hit up to which stored nodes that were hit are left out of further look-ups."""

Read = Callable[[NDArray[np.int64]], Sequence[Row]]
"""Reads the shingle ids of some texts, given by their places."""


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


@dataclass(frozen=True)
class BatchNodes:
    """The distinct sketches of a batch.

    Attributes:
        nodes: (n,), that of each document of the batch, stored or new.
        sketches: SKETCHES that are new, m rows.
        near: stored nodes that a new one may be near to, ascending.
        rows: where the shingle ids of the m new ones lie; empty where sketches decide.
        is_apart: (m,), whether these are more than the sketch holds, and stored beside it.
    """

    nodes: NDArray[np.int64]
    sketches: pa.Table
    near: NDArray[np.int64]
    rows: Sequence[Row]
    is_apart: NDArray[np.bool_]

    @property
    def new(self) -> NDArray[np.int64]:
        """The new nodes, (m,), ascending."""
        return np.asarray(self.sketches["node"].to_numpy())

    def shingled(self, stored: NDArray[np.int64]) -> list[tuple[int, Row]]:
        """Return the rows of SHINGLES of those new nodes that are stored."""
        chosen = self.is_apart & np.isin(self.new, stored)
        numbered = zip(self.new.tolist(), self.rows, chosen.tolist(), strict=False)
        return [(node, row) for node, row, is_chosen in numbered if is_chosen]


def name_batch(
    snapshot: Snapshot, documents: pa.Table, workers: Workers, source: Collection | pa.Table | None = None
) -> BatchNodes:
    """Name the distinct sketches of a batch, and find the stored ones that they may be near to.

    Args:
        snapshot: the version before.
        documents: DOCUMENTS of a run, numbered by the repository.
        source: what the documents were read from; needed where all shingles decide.

    Raises:
        ValueError: if it is needed and not given.
        NddupError: if a text is no longer found in the source, because it changed meanwhile.

    Cost: look-ups in each segment; where all shingles decide, a second pass over the source. Memory: the hits of
        `TOGETHER` sketches. Of a large family only the first new ones meet all that is stored of it.
    """
    nodes, first_rows = _name_nodes(snapshot, documents)
    by_node = first_rows[np.argsort(nodes[first_rows])]
    new, chosen = nodes[by_node], documents.take(pa.array(by_node))
    sketches, n_features = ragged_of(chosen["sketch"]), chosen["n_features"].to_numpy()
    table = _sketch_table(new, sketches, n_features, fingerprints_of_rows(snapshot, chosen))

    rows: Sequence[Row] = ()
    if snapshot.identity.is_exact and len(new):
        if source is None:
            raise ValueError("pairs.confirm resemblance: the texts are needed")
        rows = read_shingles(snapshot.identity, chosen, source, workers)
    is_apart = np.diff(sketches.offsets) < n_features if snapshot.identity.is_front else n_features > 0
    # Empty sketches are stored, so that equal contents find each other, and are near nothing.
    filled = np.flatnonzero(np.diff(sketches.offsets) > 0)
    near = _find_near(snapshot, new[filled], take_rows(sketches, filled), n_features[filled])
    return BatchNodes(nodes, table, near, rows, is_apart)


def _find_near(
    snapshot: Snapshot, names: NDArray[np.int64], sketches: Ragged, n_features: NDArray[np.int32]
) -> NDArray[np.int64]:
    matching = snapshot.identity.matching_at(snapshot.identity.config.pairs.threshold)
    postings = [segment.postings for segment in snapshot.mapped]
    parts, low, count = [np.empty(0, np.int64)], 0, LEAST
    while low < len(names):
        rows = np.arange(low, min(low + count, len(names)))
        given = spread_rows(names[rows], take_rows(sketches, rows), n_features[rows], matching)
        for number, of_segment in enumerate(postings):
            hits = find_near(of_segment, given, matching).stored
            parts.append(distinct(hits))
            if WORTH * len(hits) > len(of_segment.features):
                postings[number] = leave_out(of_segment, parts[-1], matching)
        low, count = low + count, min(2 * count, TOGETHER)
    return distinct(np.concatenate(parts))


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


def _sketch_table(
    nodes: NDArray[np.int64], sketches: Ragged, n_features: NDArray[np.int32], prints: list[bytes]
) -> pa.Table:
    lists = lists_of(sketches.offsets, pa.array(sketches.values.view(np.int64)))
    columns = [pa.array(nodes), pa.array(n_features), pa.array(prints, pa.binary()), lists]
    return pa.Table.from_arrays(columns, names=SKETCHES.names).cast(SKETCHES.arrow)
