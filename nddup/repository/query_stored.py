"""Find the live documents that are like given ones. Nothing is stored."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.embedded.collapse import collapse
from nddup.embedded.confirm import Confirmer, Row
from nddup.embedded.read_records import read_records
from nddup.embedded.workers import Workers
from nddup.errors import ConfigError
from nddup.ground.arrays import Ragged, take_rows
from nddup.ground.columns import ragged_of
from nddup.ground.shown import one_line
from nddup.matching.confirm_texts import SetRule, may_confirm
from nddup.matching.lookups import Near, distinct, join_near, spread_rows
from nddup.matching.measures import MEASURES
from nddup.reading.outcomes import Record, make_record
from nddup.reading.records import without_surrogates
from nddup.repository.batch_nodes import Read, read_shingles
from nddup.repository.identity import Identity, share_of
from nddup.repository.list_matches import FULL, Ask, list_matches, spell_edge
from nddup.repository.snapshot import Snapshot
from nddup.scanning.collection import Collection
from nddup.scanning.found import join_encoded
from nddup.scanning.sketch_records import sketch_whole
from nddup.tables import REPEATED

PRINTED = 10_000
"""Matches that are Python objects at a time."""

SHOWN_REJECTS = 10
"""Maximum number of unreadable records with a line of their own."""


def _read_none(places: NDArray[np.int64]) -> list[Row]:
    raise ValueError(f"pairs.confirm resemblance: the texts of {len(places)} queries are needed")


class Queries(NamedTuple):
    """The n query documents, how many records were rejected, and a line about each of the first of them."""

    ids: list[str]
    sketches: Ragged
    n_features: NDArray[np.int32]
    rejects: int = 0
    unread: tuple[str, ...] = ()
    read: Read = _read_none
    """Reads the shingle ids of some of them: those with candidates, where all shingles decide."""


def require_bands(identity: Identity, ask: Ask, *, name: str) -> None:
    """Refuse bands that the repository cannot answer.

    Raises:
        ConfigError: one line that names the band and the possible ones.
    """
    if not len(ask.bands):
        return
    pairs = identity.config.pairs
    if MEASURES[pairs.measure].is_directed or isinstance(pairs.threshold, int):
        kind = f"a count, {pairs.threshold}" if isinstance(pairs.threshold, int) else pairs.measure
        raise ConfigError(f"--bands: a score is a resemblance, but {name} finds documents by {kind}")
    least = Fraction(repr(identity.lowest)) * FULL
    for band in ask.bands:
        if not math.isfinite(band):
            raise ConfigError(f"--bands {band}: expected {spell_edge(least)} to {FULL}")
    for edge in reversed(ask.edges):
        if not least <= edge <= FULL:
            raise ConfigError(
                f"--bands {spell_edge(edge)}: expected {spell_edge(least)} to {FULL}; {name} was created with --lowest"
                f" {identity.lowest}"
            )


def read_queries(identity: Identity, source: Collection | pa.Table, workers: Workers) -> Queries:
    """Read the documents of files as queries; unreadable records and repeated documents are only counted."""
    read = read_records(source, identity.config, workers)
    collapsed = collapse(read.records, read.silent, renames=True)
    lost = collapsed.rejects.filter(pc.not_equal(collapsed.rejects["reason"], REPEATED))
    unread = tuple(
        f"{row['source']}#{row['record']}: not read: {row['reason']}: {row['detail']}"
        for row in lost.slice(0, SHOWN_REJECTS).to_pylist()
    )
    table = collapsed.documents

    def read_again(places: NDArray[np.int64]) -> Sequence[Row]:
        return read_shingles(identity, table.take(pa.array(places)), source, workers)

    sketches, n_features = ragged_of(table["sketch"]), table["n_features"].to_numpy()
    return Queries(table["doc_id"].to_pylist(), sketches, n_features, len(lost), unread, read_again)


def sketch_texts(identity: Identity, texts: str | Sequence[str] | Mapping[str, str]) -> Queries:
    """Sketch texts in this process as queries, named by id or by their number from 0; a string is one text.

    Raises:
        ConfigError: for anything but strings.
    """
    if hasattr(texts, "columns") or hasattr(texts, "column_names"):  # its names would be the texts
        kind = type(texts).__name__
        raise ConfigError(f"query: expected texts, got {kind}: give {{id: text}}, as of dict(zip(ids, texts))")
    given = [texts] if isinstance(texts, str | bytes) else texts
    named = given if isinstance(given, Mapping) else {str(i): text for i, text in enumerate(given)}
    other = next(((name, text) for name, text in named.items() if not isinstance(text, str)), None)
    if other is not None:
        raise ConfigError(f"query: expected texts as strings, got {type(other[1]).__name__} for {other[0]}")
    rule = identity.sketching
    made = (
        make_record(without_surrogates(str(name)), None, [(without_surrogates(text), None)], is_exact=True)
        for name, text in named.items()
    )
    records = [record for record in made if isinstance(record, Record)]
    sketches, whole = sketch_whole(*join_encoded([rule.text.read_encoded(record).text for record in records]), rule)
    good = np.flatnonzero(sketches.n_tokens >= rule.min_tokens)
    queries = Queries(
        [records[i].doc_id or "" for i in good.tolist()],
        take_rows(Ragged(sketches.offsets, sketches.ids), good),
        sketches.n_features[good],
        len(named) - len(good),
    )
    if whole is None:
        return queries
    ids, ends = whole.values, whole.offsets
    return queries._replace(read=lambda places: [Row(ids, *ends[i : i + 2].tolist()) for i in good[places].tolist()])


def find_matches(snapshot: Snapshot, queries: Queries, ask: Ask, workers: Workers | None = None) -> pa.Table:
    """Return MATCHES of each query, the most alike first; a query without a match has one row, with nulls.

    A query without text, or with none that the sketch sees, says so in `note`.

    Cost: for each query the look-ups and comparisons of `find_near`, and its matches. Where all shingles decide, a
        query with candidates is read again, and so are the shingles of these.

    Raises:
        ConfigError: for bands that the repository cannot answer (`require_bands`).
    """
    identity, edges = snapshot.identity, ask.edges
    require_bands(identity, ask, name=str(snapshot.repo))
    least = edges[-1] / FULL if edges else identity.config.pairs.share
    matching = identity.matching_at(least)
    has_ids = np.diff(queries.sketches.offsets) > 0
    rows = spread_rows(np.arange(len(queries.ids)), queries.sketches, queries.n_features, matching)
    hits = snapshot.find_near(rows, matching) if has_ids.any() else []
    if identity.is_exact:
        hits = [_decide(snapshot, hits, queries, share_of(least), workers)]

    return list_matches(snapshot, queries.ids, has_ids, join_near(hits), ask)


def _decide(snapshot: Snapshot, hits: list[Near], queries: Queries, share: Fraction, workers: Workers | None) -> Near:
    """Return the candidates whose texts have the resemblance, with their shingles in place of the sketches'."""
    near, rule = join_near(hits), SetRule(share.numerator, share.denominator)
    stored, at = np.unique(near.stored, return_inverse=True)
    sizes = np.stack([queries.n_features[near.given], snapshot.n_features_of(stored)[at]], axis=1).astype(np.int64)
    possible = np.flatnonzero(may_confirm(sizes.T, rule))
    asked, needed = distinct(near.given[possible]), distinct(at[possible])
    rows = [*queries.read(asked), *snapshot.shingles_of(stored[needed])]
    ends = np.stack([np.searchsorted(asked, near.given), len(asked) + np.searchsorted(needed, at)], axis=1)
    common = np.zeros(len(at), np.int64)
    if len(possible):
        texts = Confirmer(np.arange(len(rows), dtype=np.int32), rows, rule)
        common[possible] = texts.compare(ends[possible], workers or Workers(1)).common
    decided = near._replace(shared=common, united=sizes.sum(axis=1) - common, sizes=sizes)
    return decided.only(np.flatnonzero(common > 0))


def spell_matches(matches: pa.Table, *, bands: bool, several: bool) -> str:
    """Return a line for each query: the documents it is like, by band, or each with its resemblance.

    Args:
        bands: whether bands were asked for.
        several: whether the matches come from several repositories.
    """
    lines: dict[str, dict[str, list[str]]] = {}
    noted: dict[str, str] = {}
    for row in chain.from_iterable(batch.to_pylist() for batch in matches.to_batches(max_chunksize=PRINTED)):
        parts = lines.setdefault(row["query_id"], {})
        if row["doc_id"] is None:
            noted[row["query_id"]] = row["note"] or "no match"
            continue
        name = f"{row['doc_id']}@{row['repository']}" if several else row["doc_id"]
        if not bands:
            name = f"{name} {row['resemblance']:.3f}"
        parts.setdefault(row["band"] or "", []).append(name)
    texts = []
    for query_id, parts in lines.items():
        shown = [f"{band}: {' '.join(names)}" if bands else ", ".join(names) for band, names in parts.items()]
        texts.append("   ".join([query_id, *(shown or [noted[query_id]])]))
    return "".join(one_line(line) + "\n" for line in texts)


def is_found(matches: pa.Table) -> bool:
    """Return whether any query has a match."""
    missing: int = matches["doc_id"].null_count
    return missing != len(matches)
