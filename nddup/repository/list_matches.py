"""From near sketches to rows of MATCHES: the documents that have them, the most alike of each query first.

    Ask              which matches are wanted: bands, how many, of which versions and sources
    find_documents   stored sketches          -> StoredDocuments: the live documents that have them and are asked for
    list_matches     queries, near sketches   -> MATCHES; a query without any has one row with nulls

Documents with equal sketches may be many, and so may be queries: their rows are counted before any is made.
"""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.errors import ConfigError
from nddup.ground.columns import nulls, one_chunk, pieces_of
from nddup.matching.lookups import Near, distinct
from nddup.repository.segment_files import MATCHES, table_of
from nddup.repository.snapshot import Snapshot

FULL = 100
"""The score of two equal sketches: scores are 100 × resemblance."""

EMPTY = "nothing to compare"
"""The note on a query without a feature: no text, or none in a script that has words."""

MOST_MATCHES = 10_000_000
"""Maximum number of matches of all queries together: some 150 bytes each, thrice that where they are printed."""

TOGETHER = 1 << 20
"""Matches that are put in order together, those that `Ask.top` leaves out too, unless one query has more."""

Bands = Sequence[int | float]
"""Lower bounds of score bands, in any order."""

_NOTE = MATCHES.names.index("note")

_NOTHING = (None,) * len(MATCHES.names)


@dataclass(frozen=True)
class Ask:
    """Which matches a query asks for.

    Attributes:
        bands: lower bounds of score bands; empty: near-duplicates at `pairs.threshold`.
        top: most matches per query, the most alike first; None: all.
        sources: glob; only documents whose `source` matches it.
        versions: first and last version, inclusive; only documents added by these.
        others: leave out the stored document that has the query's own id.
    """

    bands: Bands = ()
    top: int | None = None
    sources: str | None = None
    versions: tuple[int, int] | None = None
    others: bool = False

    @property
    def edges(self) -> list[Fraction]:
        """The distinct lower bounds of the bands, highest first, exact as written."""
        return sorted({Fraction(repr(float(band))) for band in self.bands}, reverse=True)


class StoredDocuments(NamedTuple):
    """The d live documents that are asked for and have one of n distinct sketches."""

    nodes: NDArray[np.int64]  # (n,), ascending
    offsets: NDArray[np.int64]  # (n + 1,), where the documents of each begin
    rows: pa.Table  # d rows: doc_id, version, source, kept
    ranks: NDArray[np.int64]  # (d,), the place of each in the order of their ids

    def spans(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the documents of some of the sketches begin, and how many they are."""
        at = np.searchsorted(self.nodes, nodes)
        return self.offsets[at], np.diff(self.offsets)[at]


def find_documents(snapshot: Snapshot, nodes: NDArray[np.int64], ask: Ask) -> StoredDocuments:
    """Return the documents of some stored sketches, in any order, of the versions and sources that are asked for."""
    nodes = distinct(nodes)
    which, keys = snapshot.find_documents(nodes)
    order = np.argsort(keys)
    which, keys = which[order], keys[order]
    rows = snapshot.documents_of(keys, ["doc_key", "doc_id", "version", "source"]).drop_columns("doc_key")
    rows = rows.append_column("kept", snapshot.state_of(keys)["kept"])

    is_asked = np.ones(len(keys), np.bool_)
    if ask.versions is not None:
        versions = rows["version"].to_numpy()
        is_asked &= (ask.versions[0] <= versions) & (versions <= ask.versions[1])
    if ask.sources is not None:
        sources = [one for one in pc.unique(rows["source"]).to_pylist() if fnmatch.fnmatchcase(one, ask.sources)]
        is_asked &= np.asarray(pc.is_in(rows["source"], value_set=pa.array(sources, pa.string())))

    by_node = np.argsort(which, kind="stable")
    by_node = by_node[is_asked[by_node]]
    rows = rows.take(pa.array(by_node))
    ranks = np.empty(len(rows), np.int64)
    ranks[pc.sort_indices(rows["doc_id"]).to_numpy()] = np.arange(len(rows))  # by their bytes
    return StoredDocuments(nodes, np.searchsorted(which[by_node], np.arange(len(nodes) + 1)), rows, ranks)


def list_matches(snapshot: Snapshot, ids: Sequence[str], has_ids: NDArray[np.bool_], near: Near, ask: Ask) -> pa.Table:
    """Return MATCHES of n queries, in their order.

    Args:
        ids: those of the queries, (n,).
        has_ids: (n,), whether the sketch of each has any.
        near: the pairs of a query, by its place, and a stored sketch.

    Raises:
        ConfigError: if there are more than `MOST_MATCHES`.

    Memory: the matches, and `TOGETHER` more.
    """
    if not len(near.given):  # most queries are like nothing that is stored
        return _list_unmatched(ids, has_ids, np.arange(len(ids)))
    near, bands = _in_bands(near.only(np.argsort(near.given, kind="stable")), ask.edges)
    stored = find_documents(snapshot, near.stored, ask)
    firsts, counts = stored.spans(near.stored)
    sizes = np.bincount(near.given, weights=counts, minlength=len(ids)).astype(np.int64)
    total = int(np.minimum(sizes, sizes.max(initial=0) if ask.top is None else ask.top).sum())
    if total > MOST_MATCHES:
        raise ConfigError(
            f"these {len(ids):,} queries have {total:,} matches, over {MOST_MATCHES:,}: ask for fewer of each"
            " (--top), or ask fewer queries at a time"
        )
    own_rows = _own_rows(ids, stored) if ask.others else None

    parts = []
    for piece in pieces_of(sizes, TOGETHER):
        low, high = np.searchsorted(near.given, [piece.start, piece.stop])
        pair = np.repeat(np.arange(low, high), counts[low:high])
        before = np.cumsum(counts[low:high]) - counts[low:high]
        row = firsts[pair] + np.arange(len(pair)) - before[pair - low]
        if own_rows is not None:
            is_other = own_rows[near.given[pair]] != row
            pair, row = pair[is_other], row[is_other]

        order = np.lexsort((stored.ranks[row], -near.resemblance[pair], near.given[pair]))
        given = near.given[pair[order]]
        if ask.top is not None:
            order = order[np.arange(len(given)) - np.searchsorted(given, given) < ask.top]
        pair, documents = pair[order], stored.rows.take(pa.array(row[order]))
        matches = _fill(snapshot, ids, near.only(pair), documents, bands.take(pa.array(pair)))
        parts.append(_with_unmatched(matches, near.given[pair], ids, has_ids, piece))
    return pa.concat_tables([MATCHES.arrow.empty_table(), *parts])


def _own_rows(query_ids: Sequence[str], stored: StoredDocuments) -> NDArray[np.int64]:
    """Return the row of the stored document that has the id of each query; -1 where there is none."""
    ids = one_chunk(stored.rows["doc_id"])
    return np.asarray(pc.index_in(pa.array(query_ids, pa.string()), value_set=ids).fill_null(-1), np.int64)


def _in_bands(near: Near, edges: Sequence[Fraction]) -> tuple[Near, pa.Array]:
    """Return the pairs in a band, all of them if none is asked for, and the band of each."""
    if not edges:
        return near, pa.nulls(len(near.given), pa.string())
    bands = [band_of(a, b, edges) for a, b in zip(near.shared.tolist(), near.united.tolist(), strict=True)]
    chosen = np.flatnonzero([band is not None for band in bands])
    return near.only(chosen), pa.array([bands[i] for i in chosen.tolist()], pa.string())


def _fill(snapshot: Snapshot, ids: Sequence[str], near: Near, documents: pa.Table, bands: pa.Array) -> pa.Table:
    """Return MATCHES of pairs and the document of each."""
    resemblance, rows = near.resemblance, len(near.given)
    columns = {
        "query_id": pa.array(ids, pa.string()).take(pa.array(near.given)),
        **{name: documents[name] for name in documents.column_names},
        "overlap": pa.array(near.overlap),
        "resemblance": pa.array(resemblance),
        "score": pa.array(FULL * resemblance),
        "band": bands,
        "repository": pa.repeat(str(snapshot.repo), rows),
    }
    if snapshot.identity.is_exact:
        columns |= {"common": pa.array(near.shared)}
        columns |= {f"shingles_{end}": pa.array(near.sizes[:, at]) for at, end in enumerate("ab")}
    laid = [columns.get(field.name, nulls(rows, field.type)) for field in MATCHES.arrow]
    return pa.table(laid, names=MATCHES.names).cast(MATCHES.arrow)


def _with_unmatched(
    matches: pa.Table, given: NDArray[np.int64], ids: Sequence[str], has_ids: NDArray[np.bool_], piece: slice
) -> pa.Table:
    """Return the matches of some consecutive queries with a row for each that has none, in the order of queries."""
    others = np.setdiff1d(np.arange(piece.start, piece.stop), given)
    if not len(others):
        return matches
    order = np.argsort(np.concatenate([given, others]), kind="stable")
    return pa.concat_tables([matches, _list_unmatched(ids, has_ids, others)]).take(pa.array(order))


def _list_unmatched(ids: Sequence[str], has_ids: NDArray[np.bool_], places: NDArray[np.int64]) -> pa.Table:
    rows = [
        (ids[place], *_NOTHING[1:_NOTE], None if has_ids[place] else EMPTY, *_NOTHING[_NOTE + 1 :])
        for place in places.tolist()
    ]
    return table_of(MATCHES, rows)


def band_of(shared: int, united: int, edges: Sequence[Fraction]) -> str | None:
    """Return the band that holds the score 100 shared / united, compared exactly; None if it is below all bands."""
    above = None
    for edge in edges:
        if FULL * shared >= edge * max(united, 1):
            return f">={spell_edge(edge)}" if above is None else f"{spell_edge(edge)}-{spell_edge(above)}"
        above = edge
    return None


def spell_edge(edge: Fraction) -> str:
    """Return the lower bound of a band as it was written."""
    return str(edge.numerator) if edge.denominator == 1 else repr(float(edge))
