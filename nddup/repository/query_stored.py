"""Find the live documents that are like given ones. Nothing is stored."""

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.arrays import Ragged
from nddup.errors import ConfigError
from nddup.local.columns import ragged_of
from nddup.local.pairing.collapse import collapse
from nddup.local.reading.read_records import read_records
from nddup.local.reading.scan import scan_texts
from nddup.local.reading.workers import Workers
from nddup.matching.measures import MEASURES
from nddup.repository.identity import Identity
from nddup.repository.lookup.keyed import distinct
from nddup.repository.lookup.meetings import Near, spread_rows
from nddup.repository.segments.layout import MATCHES, table_of
from nddup.repository.snapshot import Snapshot
from nddup.scanning.collection import Collection
from nddup.scanning.sketch_records import SketchRecords
from nddup.shown import one_line
from nddup.stages.losses import REPEATED
from nddup.tables import TEXTS

FULL = 100
"""The score of two equal sketches: scores are 100 × resemblance."""

EMPTY = "nothing to compare"
"""The note on a query without a feature: no text, or none in a script that has words."""

SHOWN_REJECTS = 10
"""Most records that could not be read of which a line tells."""

Bands = Sequence[int | float]
"""Lower bounds of score bands, in any order."""


class Queries(NamedTuple):
    """The n query documents, how many records were rejected, and a line about each of the first of them."""

    ids: list[str]
    sketches: Ragged
    n_features: NDArray[np.int32]
    rejects: int = 0
    unread: tuple[str, ...] = ()


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
        return sorted({Fraction(repr(band)) for band in self.bands}, reverse=True)


def require_bands(identity: Identity, ask: Ask, *, name: str) -> None:
    """Refuse bands that the repository cannot answer.

    Raises:
        ConfigError: one line that names the band and the possible ones.
    """
    if not ask.bands:
        return
    pairs = identity.config.pairs
    if MEASURES[pairs.measure].is_directed or isinstance(pairs.threshold, int):
        kind = f"a count, {pairs.threshold}" if isinstance(pairs.threshold, int) else pairs.measure
        raise ConfigError(f"--bands: a score is a resemblance, but {name} finds documents by {kind}")
    least = Fraction(repr(identity.lowest)) * FULL
    for edge in reversed(ask.edges):
        if not least <= edge <= FULL:
            raise ConfigError(
                f"--bands {_spell(edge)}: expected {_spell(least)} to {FULL}; {name} was created with --lowest"
                f" {identity.lowest}"
            )


def read_queries(identity: Identity, source: Collection | pa.Table, workers: Workers) -> Queries:
    """Read the documents of files as queries; unreadable records and repeated documents are only counted."""
    read = read_records(source, identity.config, workers)
    found = collapse(read.records, read.silent, renames=True)
    lost = found.rejects.filter(pc.not_equal(found.rejects["reason"], REPEATED))
    told = tuple(
        f"{row['source']}#{row['record']}: not read: {row['reason']}: {row['detail']}"
        for row in lost.slice(0, SHOWN_REJECTS).to_pylist()
    )
    return _as_queries(found.documents, len(lost), told)


def sketch_texts(identity: Identity, texts: str | Sequence[str] | Mapping[str, str]) -> Queries:
    """Sketch texts in this process as queries, named by id or by their number from 0; a string is one text.

    Raises:
        ConfigError: for anything but strings.
    """
    given = [texts] if isinstance(texts, str | bytes) else texts
    named = given if isinstance(given, Mapping) else {str(i): text for i, text in enumerate(given)}
    other = next(((name, text) for name, text in named.items() if not isinstance(text, str)), None)
    if other is not None:
        raise ConfigError(f"query: expected texts as strings, got {type(other[1]).__name__} for {other[0]}")
    n = len(named)
    columns = [
        pa.array(named.keys(), pa.string()), pa.nulls(n, pa.string()), pa.array(named.values(), pa.string()),
        pa.array(["query"] * n, pa.string()), pa.array([0] * n, pa.int64()), pa.array(range(n), pa.int64()),
    ]  # fmt: skip
    consumer = SketchRecords(identity.sketching)
    table = pa.Table.from_arrays(columns, schema=TEXTS.arrow)
    records = pa.Table.from_batches(scan_texts(table, consumer), consumer.table.arrow)
    good = records.filter(pc.is_null(records["reason"]))
    return _as_queries(good, len(records) - len(good))


def _as_queries(table: pa.Table, rejects: int, unread: tuple[str, ...] = ()) -> Queries:
    sketches, n_features = ragged_of(table["sketch"]), table["n_features"].to_numpy()
    return Queries(table["doc_id"].to_pylist(), sketches, n_features, rejects, unread)


def find_matches(snapshot: Snapshot, queries: Queries, ask: Ask) -> pa.Table:
    """Return MATCHES of each query, the most alike first; a query without a match has one row, with nulls.

    A query without text, or with none that the sketch sees, says so in `note`.

    Cost: for each query the look-ups and comparisons of `find_near`, and its matches.

    Raises:
        ConfigError: for bands that the repository cannot answer (`require_bands`).
    """
    identity, edges = snapshot.identity, ask.edges
    require_bands(identity, ask, name=str(snapshot.repo))
    least = edges[-1] / FULL if edges else identity.config.pairs.share
    matching = identity.matching_at(least)
    has_ids = np.diff(queries.sketches.offsets) > 0
    rows = spread_rows(np.arange(len(queries.ids)), queries.sketches, queries.n_features, matching)
    found = snapshot.find_near(rows, matching) if has_ids.any() else []

    by_query: dict[int, list[tuple[Any, ...]]] = {}
    for near in found:
        for query, row in _rows_of(snapshot, near, ask, edges):
            if ask.others and row[0] == queries.ids[query]:
                continue
            by_query.setdefault(query, []).append(row)
    listed = []
    for number, query_id in enumerate(queries.ids):
        rows_of_query = sorted(by_query.get(number, ()), key=lambda row: (-row[4], str(row[0]).encode()))
        listed += [(query_id, *row) for row in rows_of_query[: ask.top]] or [
            (query_id, *_NOTHING, None if has_ids[number] else EMPTY)
        ]
    return table_of(MATCHES, listed)


_Found = tuple[int, tuple[Any, ...]]

_NOTHING = (None,) * (len(MATCHES.names) - 2)


def _rows_of(snapshot: Snapshot, near: Near, ask: Ask, edges: Sequence[Fraction]) -> list[_Found]:
    """Return the live documents of each near sketch as (number of the query, row of MATCHES without `query_id`)."""
    found = list[_Found]()
    pairs, keys = snapshot.find_documents(near.stored)
    if not len(keys):
        return found
    chosen = distinct(keys)
    stored = snapshot.documents_of(chosen, ["doc_key", "doc_id", "version", "source"]).drop_columns("doc_key")
    about = list(zip(*stored.to_pydict().values(), snapshot.state_of(chosen)["kept"].to_pylist(), strict=True))

    resemblance = near.resemblance
    bands = [_band_of(int(near.shared[i]), int(near.united[i]), edges) for i in range(len(near.stored))]
    for i, at in zip(pairs.tolist(), np.searchsorted(chosen, keys).tolist(), strict=True):
        doc_id, version, source, kept = about[at]
        if edges and bands[i] is None:
            continue
        if ask.versions is not None and not ask.versions[0] <= version <= ask.versions[1]:
            continue
        if ask.sources is not None and not fnmatch.fnmatchcase(source, ask.sources):
            continue
        share = float(resemblance[i])
        row = (
            doc_id,
            version,
            source,
            int(near.overlap[i]),
            share,
            FULL * share,
            bands[i],
            kept,
            str(snapshot.repo),
            None,
        )
        found.append((int(near.given[i]), row))
    return found


def _band_of(shared: int, united: int, edges: Sequence[Fraction]) -> str | None:
    """Return the band that holds the score 100 shared / united, compared exactly; None if it is below all bands."""
    above = None
    for edge in edges:
        if FULL * shared >= edge * max(united, 1):
            return f">={_spell(edge)}" if above is None else f"{_spell(edge)}-{_spell(above)}"
        above = edge
    return None


def _spell(edge: Fraction) -> str:
    return str(edge.numerator) if edge.denominator == 1 else repr(float(edge))


def spell_matches(matches: pa.Table, *, bands: bool, several: bool) -> str:
    """Return a line for each query: the documents it is like, by band, or each with its resemblance.

    Args:
        matches: MATCHES.
        bands: whether bands were asked for.
        several: whether the matches come from several repositories.
    """
    lines: dict[str, dict[str, list[str]]] = {}
    noted: dict[str, str] = {}
    for row in matches.to_pylist():
        parts = lines.setdefault(row["query_id"], {})
        if row["doc_id"] is None:
            noted[row["query_id"]] = row["note"] or "no match"
            continue
        name = f"{row['doc_id']}@{row['repository']}" if several else row["doc_id"]
        if not bands:
            name = f"{name} {row['resemblance']:.3f}"
        parts.setdefault(row["band"] or "", []).append(name)
    said = []
    for query_id, parts in lines.items():
        shown = [f"{band}: {' '.join(names)}" if bands else ", ".join(names) for band, names in parts.items()]
        said.append("   ".join([query_id, *(shown or [noted[query_id]])]))
    return "".join(one_line(line) + "\n" for line in said)


def is_found(matches: pa.Table) -> bool:
    """Return whether any query has a match."""
    missing: int = matches["doc_id"].null_count
    return missing != len(matches)
