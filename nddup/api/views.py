"""What a run shows in a notebook or a terminal: a table, one document and why it is kept or not, one cluster.

A table is an Arrow dataset that is read on demand. As HTML, tables and facts have no colours of their own, so that
light and dark themes both work.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nddup.engines.choose import machine_memory
from nddup.engines.engine import FinishedRun
from nddup.errors import CapacityError, ConfigError
from nddup.ground.shown import counted, one_line, shorten, spell_lost, spell_share
from nddup.mining.modes import MEANINGS
from nddup.results.show import NEAR_PAIRS, ONE_CLUSTER, ONE_DOCUMENT, OWN_CLUSTERS, STANDS_FOR

LONGEST = 120
"""Largest number of characters shown of a value."""

CELL = 40
"""The same in a line of a terminal."""

_CELL = "padding:2px 10px 2px 0;vertical-align:top;text-align:"
_CAPTION = "text-align:left;white-space:nowrap;opacity:.75"
_ITEMS = 6
"""Largest number of items shown of a list."""

SHOWN = 10
"""Rows shown in a notebook."""

SHARE = 0.5
"""Largest part of the machine's memory that the columns of one table may take."""

MEMBERS = """
    SELECT m.doc_id, m.representative, d.url, d.source, d.n_tokens, k.kept, k.duplicate_of, k.reason
    FROM members AS m JOIN wanted AS w ON m.cluster_id = w.id
    LEFT JOIN documents AS d ON m.doc_id = d.doc_id LEFT JOIN keep AS k ON m.doc_id = k.doc_id
    ORDER BY m.representative DESC, m.doc_id
"""

PAIRS_INSIDE = """
    SELECT p.doc_a, p.doc_b, p.overlap, p.resemblance, p.star
    FROM pairs AS p
    JOIN (SELECT m.doc_id FROM members AS m JOIN wanted AS w ON m.cluster_id = w.id) AS a ON p.doc_a = a.doc_id
    JOIN (SELECT m.doc_id FROM members AS m JOIN wanted AS w ON m.cluster_id = w.id) AS b ON p.doc_b = b.doc_id
    ORDER BY p.resemblance, p.doc_a, p.doc_b
"""

IN_MATRIX = 24
"""Largest number of members for which the pairs are shown as a matrix."""

REJECTED = "SELECT r.reason, r.detail FROM rejects AS r JOIN wanted AS w ON r.doc_id = w.id"

REMOVED = {
    "exact": "its content is that of {}",
    "equal": "its sketch is that of {}",
    "near": "near-duplicate of {}",
    "forced": "keep.force says so; near-duplicate of {}",
}


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = "") -> str:
    """Return rows under headings. Numbers are right-aligned; every value is escaped."""
    body = [
        "<tr>" + "".join(f'<td style="{_CELL}{_side(value)}">{cell(value)}</td>' for value in row) + "</tr>"
        for row in rows
    ]
    head = "".join(f'<th style="{_CELL}left">{escape(name)}</th>' for name in headings)
    caption_html = f'<caption style="{_CAPTION}">{escape(caption)}</caption>' if caption else ""
    return f"<table>{caption_html}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def lines(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return rows under headings as lines of a terminal; columns beyond its width are named in a last line."""
    shown = [[_cut(one_line(_spell(value))) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *shown, strict=True)]
    most = shutil.get_terminal_size((LONGEST, 0)).columns
    fit = max(1, sum(1 for end in accumulate(width + 2 for width in widths) if end <= most))
    numbers = [bool(rows) and _side(rows[0][place]) == "right" for place in range(fit)]
    drawn = [
        "  ".join(f"{value:>{width}}" if number else f"{value:<{width}}"
                  for value, width, number in zip(row, widths, numbers, strict=False)).rstrip()
        for row in [list(headings), *shown]
    ]  # fmt: skip
    return [*drawn, f"and {', '.join(headings[fit:])}"] if fit < len(headings) else drawn


def _cut(text: str) -> str:
    """Leave out the middle of a long text: ids often begin alike."""
    return text if len(text) <= CELL else f"{text[: CELL // 3]}…{text[-(CELL - CELL // 3 - 1) :]}"


def facts(title: str, values: Mapping[str, Any], *, sentence: str = "") -> str:
    """Return a title, a sentence, and a table of named values."""
    rows = "".join(
        f'<tr><th style="{_CELL}left;font-weight:600">{escape(name)}</th>'
        f'<td style="{_CELL}left">{cell(value)}</td></tr>'
        for name, value in values.items()
    )
    sentence_html = f"<p>{escape(sentence)}</p>" if sentence else ""
    return f"<h4>{escape(title)}</h4>{sentence_html}<table><tbody>{rows}</tbody></table>"


def cell(value: object) -> str:
    """Return a value as escaped text: long values are cut, integers have thousands separators, null is a dash."""
    return escape(_spell(value))


def _spell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)):
        more = f", … {len(value):,} in all" if len(value) > _ITEMS else ""
        return ", ".join(shorten(str(one), LONGEST) for one in value[:_ITEMS]) + more
    return shorten(str(value), LONGEST)


def _side(value: object) -> str:
    return "right" if isinstance(value, (int, float)) and not isinstance(value, bool) else "left"


class RunTable:
    """A table: rows of the declared columns, on disk or in memory.

    Polars, DuckDB and pandas read it through Arrow's stream (`polars.from_arrow(run.pairs)`) or read `dataset` itself.

    Args:
        name: name of the table, for messages.
        dataset: the rows.
        compare: called before rows are read, to compare files with the notes on them.
    """

    def __init__(self, name: str, dataset: ds.Dataset, compare: Callable[[str], None] = lambda name: None) -> None:  # noqa: ARG005
        self.name = name
        self._dataset, self._compare = dataset, compare

    @property
    def dataset(self) -> ds.Dataset:
        """The rows as an Arrow dataset.

        Raises:
            OutputError: if a file of the table is not as it was written.
        """
        self._compare(self.name)
        return self._dataset

    @property
    def schema(self) -> pa.Schema:
        """The columns and their Arrow types."""
        return self._dataset.schema

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.schema.names)

    def __len__(self) -> int:
        """Count the rows; for files, from their footers."""
        return int(self.dataset.count_rows())

    def to_table(self, columns: Sequence[str] | None = None, filter: ds.Expression | None = None) -> pa.Table:  # noqa: A002 - Arrow's word
        """Read the rows into memory, as an Arrow table; rows have no order.

        Args:
            columns: names of the columns to read; None: all.
            filter: an expression of `pyarrow.dataset`, such as `ds.field("resemblance") > 0.9`.

        Raises:
            CapacityError: without a filter, if the columns may take more than half of the machine's memory.

        Cost: reads only these columns and, in files, only the row groups that the filter may match.
        """
        if filter is None:
            self._require_room(columns)
        return self.dataset.to_table(columns=None if columns is None else list(columns), filter=filter)

    def to_pandas(self, columns: Sequence[str] | None = None) -> Any:  # noqa: ANN401 - a DataFrame of pandas
        """Return the rows as a pandas DataFrame; see `to_table`."""
        return self.to_table(columns).to_pandas()

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries; see `to_table`."""
        rows: list[dict[str, Any]] = self.to_table().to_pylist()
        return rows

    def head(self, rows: int = SHOWN) -> pa.Table:
        """Return the first rows, as an Arrow table."""
        return self.dataset.head(rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return Arrow's stream of the rows, which other libraries read a batch at a time."""
        return self.dataset.scanner().to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """Show the first rows, as far as they fit into a terminal's line."""
        caption, rows = self._first()
        return "\n".join([caption, *lines(self.column_names, rows)])

    def _repr_html_(self) -> str:
        caption, rows = self._first()
        return table(self.column_names, rows, caption=caption)

    def _first(self) -> tuple[str, list[tuple[Any, ...]]]:
        first, count = self.head(SHOWN), len(self)
        text = f"{self.name}: {count:,} row{'' if count == 1 else 's'}"
        caption = text + (f", the first {len(first)}" if count > len(first) else "")
        return caption, list(zip(*(column.to_pylist() for column in first.columns), strict=True))

    def _require_room(self, columns: Sequence[str] | None) -> None:
        needed, given = _bytes_of(self.dataset, columns), machine_memory() * SHARE
        if needed > given:
            raise CapacityError(
                f"{self.name}: may take {needed / 1e9:.1f} GB, more than half of the memory, {given / 1e9:.1f} GB;"
                f" choose columns, to_table(columns=[…]), of {', '.join(self.column_names)}; or ask with run.sql"
            )


def table_of(name: str, rows: pa.Table) -> RunTable:
    """Wrap an Arrow table in memory as a `RunTable`."""
    return RunTable(name, ds.dataset(rows))


def _bytes_of(dataset: ds.Dataset, columns: Sequence[str] | None) -> int:
    """Sum the uncompressed bytes of columns from the footers of the files; 0 for a table that is already in memory."""
    if not isinstance(dataset, ds.FileSystemDataset):
        return 0
    total = 0
    for path in dataset.files:
        footer = pq.read_metadata(path)
        for group in (footer.row_group(place) for place in range(footer.num_row_groups)):
            parts = (group.column(place) for place in range(group.num_columns))
            total += sum(
                part.total_uncompressed_size
                for part in parts
                if columns is None or part.path_in_schema.partition(".")[0] in columns
            )
    return total


@dataclass(frozen=True)
class Cluster:
    """A cluster.

    Attributes:
        cluster_id: its id.
        size: number of members.
        support: number of features that all members have in common.
        component: smallest document id in the connected component of the cluster.
        coverage: as in the table `clusters`.
        members: a row per member, the representative first: doc_id, representative, url, source, n_tokens, kept,
            duplicate_of, reason.
        pairs: the rows of `pairs` among the members, weakest first: doc_a, doc_b, overlap, resemblance, star.
    """

    cluster_id: str
    size: int
    support: int
    component: str
    coverage: str
    members: RunTable
    pairs: RunTable

    def __repr__(self) -> str:
        """Return the id, size and number of common features."""
        return f"<cluster {self.cluster_id}: {self.size:,} documents, {counted(self.support, 'feature')} common to all>"

    def _repr_html_(self) -> str:
        values = {"documents": self.size, "features common to all": self.support, "component": self.component}
        title = facts(f"cluster {self.cluster_id}", values, sentence=MEANINGS.get(self.coverage, self.coverage))
        return title + self.members._repr_html_() + (self._matrix() if self.size <= IN_MATRIX else "")

    def _matrix(self) -> str:
        names = [row["doc_id"] for row in self.members.to_pylist()]
        pairs = self.pairs.to_pylist()
        if any(row["star"] for row in pairs):
            return self.pairs._repr_html_()  # a star stands for pairs without a row of their own
        near = {frozenset((row["doc_a"], row["doc_b"])): row["resemblance"] for row in pairs}
        rows = [
            [name, *(_per_cent(near.get(frozenset((name, other)))) for other in names[:place])]
            for place, name in enumerate(names)
        ]
        text = "resemblance in per cent, rounded down; – where two are no pair of the table"
        return table(["", *names[:-1]], rows[1:], caption=text)


def _per_cent(resemblance: float | None) -> int | None:
    """Return a resemblance in per cent, rounded down; 1e-9 is added because 0.29 is stored as a little less."""
    return None if resemblance is None else int(resemblance * 100 + 1e-9)


def find_cluster(run: FinishedRun, cluster_id: str) -> Cluster:
    """Return one cluster of a run.

    Raises:
        ConfigError: if the run has no cluster of this id.

    Cost: a pass over the ids of `clusters`, `members`, `documents`, `keep` and `pairs`.
    """
    wanted = pa.table({"id": pa.array([cluster_id], pa.string())})
    clusters = run.sql(ONE_CLUSTER, wanted=wanted).to_pylist()
    if not clusters:
        raise ConfigError(f"cluster {cluster_id!r}: there is none in {run.path}")
    return Cluster(
        **clusters[0],
        members=table_of("members", run.sql(MEMBERS, wanted=wanted)),
        pairs=table_of("pairs", run.sql(PAIRS_INSIDE, wanted=wanted)),
    )


@dataclass(frozen=True)
class Document:
    """A document.

    Attributes:
        doc_id: its id.
        url: its address, or None.
        source: the file that it was read from.
        record: its ordinal in that file, from 1.
        n_tokens: number of tokens of its text.
        n_features: number of its distinct shingles or words.
        group: smallest id among the documents with the same sketch.
        sketch: the ids of its sketch, (n,) uint64, ascending.
        kept: whether it is kept.
        duplicate_of: the kept document in favour of which it is removed; None if it is kept, or forced out alone.
        reason: `exact`, `equal`, `near` or `forced`; None if it is kept.
        lost: share of its distinct shingles that `duplicate_of` lacks; None if it is kept, or if nobody counted.
        why: whether it is kept or removed and why, in a sentence.
        pairs: its near-duplicates, nearest first: other, overlap, resemblance, star.
        clusters: the clusters that contain it, largest first: cluster_id, size, support, coverage, representative.
    """

    doc_id: str
    url: str | None
    source: str
    record: int
    n_tokens: int
    n_features: int
    group: str
    sketch: NDArray[np.uint64]
    kept: bool
    duplicate_of: str | None
    reason: str | None
    lost: float | None
    why: str
    pairs: RunTable
    clusters: RunTable

    def __repr__(self) -> str:
        """Return the id and the outcome."""
        return f"<document {self.doc_id}: {self.why}>"

    def _repr_html_(self) -> str:
        values = {
            "url": self.url, "file": f"{self.source}#{self.record}", "tokens": self.n_tokens,
            "features": self.n_features, "ids in the sketch": len(self.sketch),
        }  # fmt: skip
        tables = [table._repr_html_() for table in (self.pairs, self.clusters) if len(table)]
        return facts(f"document {self.doc_id}", values, sentence=self.why) + "".join(tables)


def find_document(run: FinishedRun, doc_id: str, *, policy: str) -> Document:
    """Return one document of a run.

    Args:
        run: the run.
        doc_id: the document's id.
        policy: the run's `keep.policy`, for the sentence `why`.

    Raises:
        ConfigError: if the run has no such document; the message says whether a record of this id was rejected.

    Cost: a pass over the ids of `documents`, `pairs`, `members`, `clusters` and `keep`.
    """
    wanted = pa.table({"id": pa.array([doc_id], pa.string())})
    rows = run.sql(ONE_DOCUMENT, wanted=wanted).to_pylist()
    if not rows:
        rejects = run.sql(REJECTED, wanted=wanted).to_pylist()
        reason = (
            f"; a record of this id was rejected: {rejects[0]['reason']} ({rejects[0]['detail']})" if rejects else ""
        )
        raise ConfigError(f"document {doc_id!r}: there is none in {run.path}{reason}")

    row = rows[0]
    pairs = run.sql(NEAR_PAIRS, wanted=wanted)
    removed = int(run.sql(STANDS_FOR, wanted=wanted)["n"][0].as_py())
    sketch = np.array(row.pop("sketch") or [], np.int64).view(np.uint64)
    row["record"], row["kept"] = int(row["record"]), bool(row["kept"])
    return Document(
        **row,
        sketch=sketch,
        why=_tell(row, pairs, removed=removed, policy=policy),
        pairs=table_of("near-duplicates", pairs),
        clusters=table_of("clusters", run.sql(OWN_CLUSTERS, wanted=wanted)),
    )


def _tell(row: Mapping[str, Any], pairs: pa.Table, *, removed: int, policy: str) -> str:
    kept_one, reason = row["duplicate_of"], row["reason"]
    if kept_one is None and not row["kept"]:
        return "removed: keep.force says so; no document that is kept is a near-duplicate of it"
    if kept_one is not None:
        nearest = dict(zip(pairs["other"].to_pylist(), pairs["resemblance"].to_pylist(), strict=True))
        resemblance = nearest.get(kept_one)
        near = f", resemblance {spell_share(resemblance)}" if reason == "near" and resemblance is not None else ""
        lost = f"; {spell_lost(row['lost'])} of its shingles are not there" if row["lost"] else ""
        return f"removed: {REMOVED[reason or 'near'].format(kept_one)}, which is kept{near}{lost}"
    if not len(pairs):
        return "kept: it has no near-duplicate"
    stands = f"; {removed:,} removed in favour of it" if removed else ""
    return f"kept: no near-duplicate that policy `{policy}` prefers to it is kept{stands}"
