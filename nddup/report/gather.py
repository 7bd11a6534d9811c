"""Gather the content of a report from the tables of a finished run, bounded whatever its size, and write its folder.

The folder holds `index.html`, `assets/` (styles, scripts, licences) and `data/`. The report opens from disk without a
network. A page opened from disk may not fetch files but may load scripts, so each chunk of data is a script that hands
over one value. Documents may be hostile: their ids, addresses and texts occur only in string literals of these
scripts, and the page puts them into text nodes.

Counts are over all rows. At most `MOST_CLUSTERS` clusters, `MOST_LISTED` of their documents, `MOST_CELLS` of the pairs
among these, and `MOST_DOCUMENTS` documents are read. The page says what is left out.

The queries are SELECT statements for both DuckDB and Spark. A query names the tables of the run. `wanted` is a small
table from the caller; Spark broadcasts it to every task where the query has the hint.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from isal import isal_zlib

from nddup.engines.engine import Engine, FinishedRun, TextPlace, find_ids, text_places
from nddup.errors import ConfigError, NddupError, OutputError
from nddup.ground.shown import JsonValue, drop_login
from nddup.report.content import (
    CELLS,
    CLUSTERS,
    DOCUMENTS,
    EDGES,
    LENGTHS,
    LISTED,
    LISTED_EACH,
    MATRIX_EACH,
    MEMBERSHIPS,
    NEAREST,
    STANDS,
    TEXTS,
    WEAKEST,
    AboutDocuments,
    Content,
    Family,
    find_families,
    list_cells,
    list_documents,
)
from nddup.report.data import chunks
from nddup.report.for_review import ask_disagreements, draw_borderline, draw_risky, list_ids
from nddup.report.frame import draw_report
from nddup.storage.run_folder import RunFolder
from nddup.tables import NAMES

MOST_CLUSTERS = 100_000
"""Number of the largest clusters that are read; the others are counted in the histograms only."""

MOST_REJECTS = 100
MOST_COMPONENTS = 100

SIZES = "SELECT size, count(*) AS clusters FROM clusters GROUP BY size ORDER BY size"
"""Number of clusters of each size: size int32, clusters int64."""

RESEMBLANCES = """
    SELECT percent, count(*) AS pairs
    FROM (SELECT CASE WHEN resemblance >= 1 THEN 100 ELSE CAST(floor(resemblance * 100 + 1e-9) AS INT) END AS percent
          FROM pairs) AS rounded
    GROUP BY percent ORDER BY percent
"""
"""Pairs by whole percent of resemblance, rounded down: percent int32, pairs int64. Null, for pairs without an estimate,
comes first. 1e-9 is added because 0.29 is stored as a little less."""

LONGER = f"SELECT {', '.join(f'count(CASE WHEN n_tokens >= {low} THEN 1 END) AS from_{low}' for low in LENGTHS)} FROM documents"  # noqa: E501, S608
"""One row: the number of documents with at least so many tokens, for each of `LENGTHS`, int64."""

NEWS = {
    "documents": "sum(documents)",
    "before": "sum(before)",
    "born": "count_if(before = 0 AND documents > 1)",
    "alone": "count_if(before = 0 AND documents = 1)",
    "grown": "count_if(before > 0 AND documents > before)",
    "shrunk": "count_if(documents > 0 AND documents < before)",
    "gone": "count_if(documents = 0 AND before > 0)",
}
"""What is counted of `names`: documents, and families by what became of them."""

MOST_GROWN = """
    SELECT doc_id, name, documents, before FROM names WHERE documents > before AND documents > 1
    ORDER BY documents - before DESC, name LIMIT 5
"""

LOSSES = """
    SELECT count(*) AS removed, count(lost) AS known, count(CASE WHEN lost = 0 THEN 1 END) AS nothing FROM keep
    WHERE NOT kept
"""

WORST = """
    SELECT doc_id, duplicate_of, lost FROM keep WHERE duplicate_of IS NOT NULL AND lost > 0
    ORDER BY lost DESC, doc_id LIMIT 3
"""

NEAR = """
    SELECT /*+ BROADCAST(w), BROADCAST(a), BROADCAST(b) */ w.cell, p.overlap, p.resemblance
    FROM pairs AS p JOIN numbered AS a ON p.doc_a = a.doc_id JOIN numbered AS b ON p.doc_b = b.doc_id
    JOIN wanted AS w ON a.document = w.document_a AND b.document = w.document_b
    ORDER BY w.cell
"""
"""Overlap and resemblance of the pairs in wanted(cell, document_a, document_b) that are near-duplicates; the numbers of
documents are those of numbered(doc_id, document)."""

ASK_DOCUMENTS = """
    SELECT d.doc_id, d.url, d.source, d.record, d.n_tokens, d.n_features, k.kept, k.duplicate_of, k.reason,
           d.parent, coalesce(d.unread_bytes, 0) AS unread_bytes, coalesce(d.unread_parts, 0) AS unread_parts,
           k.resemblance, k.lost, coalesce(k.leader, false) AS leader,
           CAST(coalesce(s.stands, 0) AS BIGINT) AS stands, s.longest, CAST(coalesce(p.pairs, 0) AS BIGINT) AS pairs
    FROM documents AS d JOIN keep AS k ON d.doc_id = k.doc_id
    LEFT JOIN wanted AS w ON d.doc_id = w.doc_id
    LEFT JOIN (SELECT r.duplicate_of, count(*) AS stands, max(e.n_tokens) AS longest
               FROM keep AS r JOIN documents AS e ON r.doc_id = e.doc_id
               WHERE r.duplicate_of IS NOT NULL GROUP BY r.duplicate_of) AS s ON d.doc_id = s.duplicate_of
    LEFT JOIN (SELECT doc_id, count(*) AS pairs
               FROM (SELECT doc_a AS doc_id FROM pairs UNION ALL SELECT doc_b AS doc_id FROM pairs) AS ends
               GROUP BY doc_id) AS p ON d.doc_id = p.doc_id
    ORDER BY CASE WHEN w.doc_id IS NULL THEN 1 ELSE 0 END, d.doc_key
"""
"""Every document, those in wanted(doc_id) first, then in collection order: rows of `content.DOCUMENTS`. `stands` counts
the documents removed in its favour, `longest` is the length of the longest of these in tokens, `pairs` counts its rows
in `pairs`."""

WITHIN = """
    SELECT /*+ BROADCAST(a), BROADCAST(b) */ a.part, a.place AS first, b.place AS second, p.resemblance
    FROM pairs AS p JOIN wanted AS a ON p.doc_a = a.doc_id JOIN wanted AS b ON p.doc_b = b.doc_id AND a.part = b.part
    ORDER BY part, first, second
"""
"""The near-duplicate pairs within each part of wanted(part, place, doc_id): part, first, second int32, resemblance."""

ASK_MEMBERS = """
    SELECT /*+ BROADCAST(w) */ w.part, m.doc_id FROM members AS m JOIN wanted AS w ON m.cluster_id = w.cluster_id
"""
"""The members of the clusters in wanted(cluster_id, part)."""

ASK_WEAKEST = """
    WITH near AS (
        SELECT a.number AS first, b.number AS second, p.resemblance
        FROM pairs AS p JOIN numbered AS a ON p.doc_a = a.doc_id JOIN numbered AS b ON p.doc_b = b.doc_id
    )
    SELECT a.part AS rank, count(*) AS pairs, count(n.resemblance) AS estimated,
           min(CASE WHEN a.number < b.number THEN n.resemblance END) AS least
    FROM wanted AS a JOIN others AS b ON a.part = b.part AND a.number < b.number
    JOIN near AS n ON n.first = a.number AND n.second = b.number
    GROUP BY a.part
"""
"""The lowest resemblance of each part, over the pairs of wanted(part, number) with a later one of the same part in
others(part, number); numbers are those of numbered(doc_id, number), in the order of the ids: rows of `content.WEAKEST`.
The condition in `least` is true: without it DuckDB would group all pairs of members before it joins them."""

ASK_TEXTS = "SELECT doc_id, text FROM texts ORDER BY doc_id"
"""The texts stored with the run. The table exists only if the run read files."""

REJECTS = f"""
    SELECT source, record, doc_id, reason, detail, excerpt
    FROM rejects ORDER BY source, record LIMIT {MOST_REJECTS}
"""  # noqa: S608
"""The first rejects."""

ASK_COMPONENTS = f"""
    SELECT component, size, pairs, invented, exact
    FROM false_components WHERE invented > 0 ORDER BY invented DESC, component LIMIT {MOST_COMPONENTS}
"""  # noqa: S608
"""The components with most pairs that are not near-duplicates. Runs of early versions have no such table."""

MOST_DOCUMENTS = 300_000
"""Maximum number of documents that have a page and can be searched; those listed in clusters come first."""

MOST_PAIRS = 5_000_000
"""Maximum number of pairs of a run for which the nearest documents are found: the query sorts both ends of all pairs.
"""

STANDS_EACH = 200
"""Maximum number of removed documents listed on the page of the kept one; all of them together are at most the
documents."""

CLUSTERS_EACH = 20
"""Maximum number of clusters named on the page of a document."""

MOST_WEAKEST = 20_000_000
"""Maximum number of pairs of members, over all clusters too large for a matrix, that are searched for the weakest pair.
"""

PAIRS_AT_ONCE = 2_000_000
"""Pairs of members of which the weakest are searched at a time: 140 MB."""

MOST_LISTED = 300_000
"""Maximum number of documents listed, over all clusters."""

MOST_CELLS = 600_000
"""Maximum number of pairs in matrices, over all clusters."""

Places = Mapping[str, TextPlace]
"""Documents to read again, by doc_id."""

FindTexts = Callable[[Places], pa.Table]
"""Reads documents again from the inputs of the run; returns `content.TEXTS`, without documents that no longer exist."""

SCRIPTS = (
    "data", "dom", "route", "charts", "csv", "list", "find", "overview", "browser", "documents", "differ", "compare",
    "cluster", "document", "judge", "graph", "family", "quality", "details", "main",
)  # fmt: skip

ASSETS = (
    "report.css", "theme.js", "chart.umd.min.js", *(f"{name}.js" for name in SCRIPTS), "LICENSE-chartjs.txt",
)  # fmt: skip

_UNSAFE = re.compile("[<>&\u007f-\u009f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
"""Characters with a meaning in HTML or scripts, and those that UTF-8 cannot encode."""

Put = Callable[[str, str], None]
"""Writes a text file, given its path in the folder and its text."""

PAGE = "report/index.html"

MOST_NEAR, NEAREST_EACH = 1_000_000, 8
"""Maximum numbers of nearest documents, of all documents together and of each."""

EVALUATION, CHECK, COMPONENTS = "evaluation.json", "check.json", "false_components"
"""Files and a table that are shown if the run has them."""

PACKED, LEVEL = 4_000, 3
"""Characters from which a chunk is compressed, and how well: zlib takes four times as long for a tenth less."""


def largest_clusters(listed_each: int) -> str:
    """Return the query for the largest clusters, with up to `listed_each` members: `content.CLUSTERS`, in order."""
    return f"""
        SELECT c.cluster_id, c.support, c.size, c.component, c.coverage, r.doc_id AS representative,
               slice(c.members, 1, {listed_each:d}) AS members
        FROM (SELECT * FROM clusters ORDER BY size DESC, cluster_id LIMIT {MOST_CLUSTERS}) AS c
        LEFT JOIN (SELECT cluster_id, min(doc_id) AS doc_id FROM members WHERE representative GROUP BY cluster_id) AS r
        ON c.cluster_id = r.cluster_id
        ORDER BY c.size DESC, c.cluster_id
    """  # noqa: S608 - a number


def ask_nearest(each: int) -> str:
    """Return the query for up to `each` nearest documents of wanted(document, doc_id): `content.NEAREST`, in order."""
    return f"""
        SELECT document, other, overlap, resemblance
        FROM (SELECT w.document, n.other, n.overlap, n.resemblance,
                     row_number() OVER (PARTITION BY w.document
                                        ORDER BY coalesce(n.resemblance, -1) DESC, n.overlap DESC, n.other) AS place
              FROM (SELECT doc_a AS doc_id, doc_b AS other, overlap, resemblance FROM pairs
                    UNION ALL SELECT doc_b AS doc_id, doc_a AS other, overlap, resemblance FROM pairs) AS n
              JOIN wanted AS w ON n.doc_id = w.doc_id) AS placed
        WHERE place <= {each:d} ORDER BY document, place
    """  # noqa: S608 - a number


def ask_stands(each: int) -> str:
    """Return the query for up to `each` documents removed for wanted(document, doc_id): `content.STANDS`, in order."""
    return f"""
        SELECT document, other, reason, resemblance, lost
        FROM (SELECT w.document, k.doc_id AS other, k.reason, k.resemblance, k.lost,
                     row_number() OVER (PARTITION BY w.document ORDER BY k.doc_id) AS place
              FROM keep AS k JOIN wanted AS w ON k.duplicate_of = w.doc_id) AS placed
        WHERE place <= {each:d} ORDER BY document, place
    """  # noqa: S608 - a number


def ask_memberships(each: int) -> str:
    """Return the query for the clusters in ranked(cluster_id, rank) of the documents in wanted(document, doc_id).

    Its rows are `content.MEMBERSHIPS`: for each document, the first `each` clusters by rank; `clusters` counts all.
    """
    return f"""
        SELECT document, rank, clusters
        FROM (SELECT w.document, r.rank, count(*) OVER (PARTITION BY w.document) AS clusters,
                     row_number() OVER (PARTITION BY w.document ORDER BY r.rank) AS place
              FROM members AS m JOIN ranked AS r ON m.cluster_id = r.cluster_id
              JOIN wanted AS w ON m.doc_id = w.doc_id) AS placed
        WHERE place <= {each:d} ORDER BY document, rank
    """  # noqa: S608 - a number


def ask_documents(run: FinishedRun, names: pa.Table) -> pa.Table:
    """Read facts and outcome of each document.

    Args:
        names: the documents listed of clusters: doc_id.

    Returns:
        `content.DOCUMENTS`, by id: the listed ones, then others in collection order, `MOST_DOCUMENTS` in all.

    Cost: a pass over each of `documents`, `keep` and `pairs`.
    """
    listed = pa.table({"doc_id": pc.unique(names["doc_id"])})
    text = f"{ASK_DOCUMENTS} LIMIT {max(MOST_DOCUMENTS, len(listed))}"
    return run.sql(text, wanted=listed).cast(DOCUMENTS).sort_by("doc_id")


def ask_about_documents(run: FinishedRun, documents: pa.Table, clusters: pa.Table) -> AboutDocuments:
    """Read the nearest documents and the clusters of each document, and those that were removed for it.

    Args:
        documents: `content.DOCUMENTS`.
        clusters: `content.CLUSTERS`; a cluster's rank is its row.

    Cost: a pass over each of `keep`, `pairs` and `members`; both ends of the pairs are sorted.
    """
    wanted = number_documents(documents)
    nearest = None
    if run.metrics.rows["pairs"] <= MOST_PAIRS:
        each = max(1, min(NEAREST_EACH, MOST_NEAR // max(1, len(documents))))
        nearest = run.sql(ask_nearest(each), wanted=wanted).cast(NEAREST)

    ranked = pa.table({"cluster_id": clusters["cluster_id"], "rank": pa.array(np.arange(len(clusters)), pa.int32())})
    memberships = run.sql(ask_memberships(CLUSTERS_EACH), wanted=wanted, ranked=ranked).cast(MEMBERSHIPS)
    stands = run.sql(ask_stands(STANDS_EACH), wanted=wanted).cast(STANDS)
    families = run.sql("SELECT count(DISTINCT duplicate_of) AS n FROM keep WHERE NOT kept")["n"][0].as_py()
    return AboutDocuments(nearest, memberships, stands, families)


def number_documents(documents: pa.Table) -> pa.Table:
    """Return doc_id, document: the ids with their rows."""
    numbers = pa.array(np.arange(len(documents), dtype=np.int32))
    return documents.select(["doc_id"]).append_column("document", numbers)


def ask_cells(run: FinishedRun, documents: pa.Table, listed: pa.Table, matrix_each: int) -> pa.Table:
    """Return `content.CELLS`: the near-duplicate pairs among the first `matrix_each` documents of each cluster."""
    cells = list_cells(listed, matrix_each)
    places = pa.array(np.arange(len(cells), dtype=np.int32))
    wanted = cells.select(["document_a", "document_b"]).append_column("cell", places)
    near = run.sql(NEAR, wanted=wanted, numbered=number_documents(documents))
    cells = cells.take(near["cell"])
    return pa.table(
        [*(cells[name] for name in ("rank", "first", "second")), near["overlap"], near["resemblance"]], CELLS
    )


def ask_weakest(run: FinishedRun, clusters: pa.Table, matrix_each: int) -> pa.Table:
    """Find the lowest resemblance in each cluster that is too large for a matrix, listed in full or not.

    Returns:
        `content.WEAKEST`. Clusters are taken smallest first, up to `MOST_WEAKEST` pairs of members in all.
    """
    size = clusters["size"].to_numpy().astype(np.int64)
    large = np.flatnonzero(size > matrix_each)[::-1]
    chosen = large[np.cumsum(size[large] * (size[large] - 1) // 2) <= MOST_WEAKEST]
    if not len(chosen):
        return WEAKEST.empty_table()
    ids = clusters["cluster_id"].take(pa.array(chosen))
    ranked = pa.table({"cluster_id": ids, "part": pa.array(chosen.astype(np.int32))})
    return find_weakest(run, run.sql(ASK_MEMBERS, wanted=ranked))


def find_weakest(engine: Engine, members: pa.Table) -> pa.Table:
    """Return `content.WEAKEST` of parts, a `rank` each; those of which no pair is in `pairs` have no row.

    Args:
        members: part, doc_id, each once.

    Cost: a join of all pairs of members with `pairs`, `PAIRS_AT_ONCE` of them at a time.
    """
    others, numbered = number_members(members)
    parts = others["part"].to_numpy()
    later = np.searchsorted(parts, parts, side="right") - np.arange(1, len(parts) + 1)
    starts = np.append(np.unique(np.cumsum(later) // PAIRS_AT_ONCE, return_index=True)[1], len(parts)).tolist()
    tables = [
        engine.sql(ASK_WEAKEST, wanted=others.slice(low, high - low), others=others, numbered=numbered).cast(WEAKEST)
        for low, high in pairwise(starts)
    ]
    counted = [("pairs", "sum"), ("estimated", "sum"), ("least", "min")]
    whole = pa.concat_tables([WEAKEST.empty_table(), *tables]).group_by("rank").aggregate(counted)
    return whole.rename_columns(WEAKEST.names).sort_by("rank")


def number_members(members: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return part and number of members, sorted by both; doc_id and number of documents, in the order of their ids."""
    names = pc.unique(members["doc_id"])
    names = names.take(pc.sort_indices(names))
    numbers = pc.index_in(members["doc_id"], value_set=names)
    placed = pa.table({"part": members["part"], "number": numbers})
    numbered = pa.table({"doc_id": names, "number": pa.array(np.arange(len(names), dtype=np.int32))})
    return placed.sort_by([("part", "ascending"), ("number", "ascending")]), numbered


def ask_edges(run: FinishedRun, documents: pa.Table, families: Sequence[Family]) -> pa.Table:
    """Return the near-duplicate pairs among the documents in the graph of each family: `content.EDGES`."""
    drawn = [family.drawn for family in families]
    wanted = pa.table(
        {
            "part": pa.array([part for part, rows in enumerate(drawn) for _ in rows], pa.int32()),
            "place": pa.array([place for rows in drawn for place in range(len(rows))], pa.int32()),
            "doc_id": documents["doc_id"].take(pa.array([row for rows in drawn for row in rows], pa.int32())),
        }
    )
    return run.sql(WITHIN, wanted=wanted).cast(EDGES) if len(wanted) else EDGES.empty_table()


class Asked(NamedTuple):
    """Clusters and documents whose texts are shown even if they were not stored; the function that reads them again.

    `risky` removals are drawn to be judged, by the seed.
    """

    clusters: Sequence[str]
    find_texts: FindTexts
    documents: Sequence[str] = ()
    risky: int = 0
    seed: int = 0


def gather(run: FinishedRun, asked: Asked | None = None) -> Content:
    """Read the content of the report.

    Args:
        asked: clusters and documents whose texts are read again from the inputs if they are not stored.

    Raises:
        ConfigError: if there is no such cluster or document, or an input no longer exists.
        NddupError: if inputs must be read again and have changed since the run.

    Cost: a pass over each of `clusters`, `pairs` and `documents`; the content is in memory, some 100 MB at most.
    """
    sizes = _counted(run.sql(SIZES))
    listed_each, matrix_each = _share_out(sizes)
    clusters = run.sql(largest_clusters(listed_each)).cast(CLUSTERS)
    names = list_documents(clusters)
    documents = ask_documents(run, names)
    places = pc.index_in(names["doc_id"], value_set=documents["doc_id"])
    listed = pa.table([names["rank"], names["place"], places], LISTED)
    about = run.meanwhile(ask_about_documents, documents, clusters)
    texts = run.sql(ASK_TEXTS).cast(TEXTS) if run.holds("texts") else TEXTS.empty_table()
    risky = draw_risky(run, asked.risky, asked.seed) if asked is not None and asked.risky else []
    if asked is not None:
        known = find_ids(run, asked.documents)
        asked = asked._replace(documents=[*(known.get(one, one) for one in asked.documents), *list_ids(risky)])
        missing = _asked_documents(run, clusters, names, texts, asked)
        texts = pa.concat_tables([texts, _read_again(run, missing, asked.find_texts)]) if missing else texts
    families = find_families(clusters, listed)
    losses = {**run.sql(LOSSES).to_pylist()[0], "worst": [list(row.values()) for row in run.sql(WORST).to_pylist()]}
    return Content(
        path=drop_login(run.path),
        metrics=run.metrics,
        clusters=clusters,
        documents=documents,
        listed=listed,
        families=families,
        cells=ask_cells(run, documents, listed, matrix_each),
        texts=texts,
        sizes=sizes,
        resemblances=_counted(run.sql(RESEMBLANCES)),
        lengths=_lengths(run.sql(LONGER)),
        rejects=run.sql(REJECTS).to_pylist() if run.metrics.rows["rejects"] else [],
        components=run.sql(ASK_COMPONENTS).to_pylist() if run.holds(COMPONENTS) else None,
        news=ask_news(run),
        disagreements=ask_disagreements(run),
        evaluation=run.read_json(EVALUATION) if run.holds(EVALUATION) else None,
        check=run.read_json(CHECK) if run.holds(CHECK) else None,
        losses=losses,
        risky=risky,
        about=about,
        weakest=ask_weakest(run, clusters, matrix_each),
        edges=ask_edges(run, documents, families),
        matrix_each=matrix_each,
        listed_each=listed_each,
    )


def ask_news(run: FinishedRun) -> dict[str, Any] | None:
    """Return what became of the families of the run that names are taken from; None where they are not.

    Returns:
        `since`: its folder; `NEWS` by name; `largest`: kept document, name, documents and documents before of the
        families that grew most.
    """
    since = run.metrics.settings["output"].get("names_from")
    if since is None or not run.holds(NAMES.name):
        return None
    largest = [list(row.values()) for row in run.sql(MOST_GROWN).to_pylist()]
    return {"since": drop_login(since), **run.count(NAMES.name, NEWS), "largest": largest}


def _share_out(sizes: list[tuple[int, int]]) -> tuple[int, int]:
    """Return how many documents to list of each cluster, and how many to put in its matrix, within both bounds."""
    size, count = np.array(sizes or [(0, 0)], np.int64)[::-1].T
    shown = np.clip(MOST_CLUSTERS - (np.cumsum(count) - count), 0, count)

    def listed(each: int) -> int:
        return int((np.minimum(size, each) * shown).sum())

    def paired(each: int) -> int:
        drawn = np.minimum(size, each)
        return int((drawn * (drawn - 1) // 2 * shown).sum())

    listed_each = next((each for each in range(LISTED_EACH, 2, -1) if listed(each) <= MOST_LISTED), 2)
    matrix_each = next((each for each in range(MATRIX_EACH, 2, -1) if paired(each) <= MOST_CELLS), 2)
    return listed_each, min(listed_each, matrix_each)


def _asked_documents(run: FinishedRun, clusters: pa.Table, names: pa.Table, texts: pa.Table, asked: Asked) -> Places:
    """Return the requested documents, and those in the matrices of the requested clusters, that have no stored text."""
    ranks = {cluster: rank for rank, cluster in enumerate(clusters["cluster_id"].to_pylist())}
    for cluster in asked.clusters:
        if cluster not in ranks:
            raise ConfigError(f"--cluster {cluster}: no such cluster in the report of {run.path}")
    chosen = pa.array([ranks[cluster] for cluster in asked.clusters], pa.int32())
    few = names.filter(pc.and_(pc.is_in(names["rank"], chosen), pc.less(names["place"], MATRIX_EACH)))
    ids = sorted((set(few["doc_id"].to_pylist()) | set(asked.documents)) - set(texts["doc_id"].to_pylist()))
    places = text_places(run, ids)
    if unknown := sorted(set(asked.documents).intersection(ids) - places.keys()):
        raise ConfigError(f"--doc {unknown[0]}: no such document in {run.path}")
    return places


def _read_again(run: FinishedRun, missing: Places, find_texts: FindTexts) -> pa.Table:
    texts = find_texts(missing).sort_by("doc_id").cast(TEXTS)
    if len(texts) < len(missing):
        lost = sorted(missing.keys() - set(texts["doc_id"].to_pylist()))
        raise NddupError(f"the inputs of {run.path} no longer hold document {lost[0]}; run the job again")
    return texts


def _counted(answer: pa.Table) -> list[tuple[Any, int]]:
    """Return the rows of two columns as tuples: a value and its count."""
    values, counts = (column.to_pylist() for column in answer.columns)
    return list(zip(values, counts, strict=True))


def _lengths(answer: pa.Table) -> list[tuple[int, int]]:
    """Return the histogram of lengths: (lower end of `LENGTHS` in tokens, documents)."""
    at_least = [column[0].as_py() for column in answer.columns] + [0]
    return [(low, at_least[place] - at_least[place + 1]) for place, low in enumerate(LENGTHS)]


def write_report(
    put: Put, chunks: Iterable[tuple[str, Any]], borderline: Callable[[], str | None] = lambda: None
) -> int:
    """Write a report: data first, page last, so that the page exists only once everything that it loads does.

    Args:
        chunks: (name, value) as `data.chunks` yields them.
        borderline: returns the page of the pairs nearest to the threshold, if there is one.

    Returns:
        The number of characters written.
    """
    written = 0
    for name, value in chunks:
        text = packed_script_of(name, value)
        put(f"data/{name}.js", text)
        written += len(text)
    page = borderline()
    if page is not None:
        put("borderline.html", page)
        written += len(page)
    folder = files("nddup.report").joinpath("assets")
    files_of = {f"assets/{name}": folder.joinpath(name).read_text(encoding="utf-8") for name in ASSETS}
    for name, text in (files_of | {"index.html": draw_report(name for name in ASSETS if name.endswith(".js"))}).items():
        put(name, text)
        written += len(text)
    return written


def script_of(name: str, value: JsonValue) -> str:
    r"""Return a chunk as a script.

    Example:
        >>> script_of("a-0", {"text": "</script>\u2028"})
        'nddup.put("a-0",{"text":"\\u003c/script\\u003e\\u2028"});\n'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark in "<>&":  # faster than a pattern, which then finds nothing in most texts of ASCII
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    if text.isascii() and "\x7f" not in text:
        return f'nddup.put("{name}",{text});\n'
    safe = _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return f'nddup.put("{name}",{safe});\n'


def packed_script_of(name: str, value: JsonValue) -> str:
    """Return a chunk as a script; a large one compressed, to a fifth of its size."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if name == "summary" or len(text) < PACKED:
        return script_of(name, value)
    try:
        data = text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        data = json.dumps(value, separators=(",", ":")).encode()
    return f'nddup.unpack("{name}","{b64encode(isal_zlib.compress(data, LEVEL)).decode()}");\n'


def report_run(run: FinishedRun, folder: RunFolder, asked: Asked | None = None) -> str:
    """Write `report/` into the folder of a finished run, replacing an earlier report.

    `borderline.html` beside the report's page shows the pairs closest to the threshold.

    Args:
        folder: the folder of the same run.
        asked: clusters and documents whose texts are read again from the inputs if they are not stored.

    Returns:
        The path of the report's page.

    Raises:
        OutputError: if the folder cannot be written.
        ConfigError: if there is no such cluster, or an input no longer exists.
        NddupError: if inputs must be read again and have changed since the run.
    """
    shown = gather(run, asked)
    page = run.meanwhile(draw_borderline)
    folder.remove("report")
    write_report(lambda name, text: folder.write_text(f"report/{name}", text), chunks(shown), page)
    return f"{drop_login(folder.path)}/{PAGE}"


def is_reported(folder: RunFolder) -> bool:
    """Return whether the report of a run was written to its end: its page is written last."""
    return folder.holds(PAGE)


def note_check(folder: RunFolder, verdict: Mapping[str, Any]) -> None:
    """Write a verdict; a folder that may not be written stays as it is."""
    noted = {"format": 1, "when": datetime.now(UTC).isoformat(timespec="seconds"), **verdict}
    with suppress(OutputError):
        folder.write_text(CHECK, json.dumps(noted, indent=2) + "\n")
        if is_reported(folder):
            folder.write_text("report/data/check.js", script_of("check", noted))
