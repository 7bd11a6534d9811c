"""Gather the content of a report from the tables of a finished run, bounded whatever the size of the run.

Counts are over all rows. At most `MOST_CLUSTERS` clusters, `MOST_LISTED` of their documents and `MOST_CELLS` of the
pairs among these are read; `ask_documents` bounds the rest. The page says what is left out.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.errors import ConfigError, NddupError
from nddup.opened.finished_run import FinishedRun
from nddup.redaction import drop_login
from nddup.report import questions
from nddup.report.ask_documents import ask_about_documents, ask_edges, ask_weakest
from nddup.report.content import (
    CELLS,
    CLUSTERS,
    LENGTHS,
    LISTED,
    LISTED_EACH,
    MATRIX_EACH,
    TEXTS,
    Content,
    list_cells,
    list_documents,
)

MOST_LISTED = 300_000
"""Most documents listed, over all clusters."""

MOST_CELLS = 600_000
"""Most pairs in matrices, over all clusters."""

EVALUATION, COMPONENTS = "evaluation.json", "false_components"
"""A file and a table that are shown if the run has them."""

Places = Mapping[str, tuple[str, bytes]]
"""Documents to read again: doc_id -> (source, fingerprint of the content)."""

FindTexts = Callable[[Places], pa.Table]
"""Reads documents again from the inputs of the run; returns `shown.TEXTS`, without documents that no longer exist."""


class Asked(NamedTuple):
    """Clusters whose texts are shown even if they were not stored, and the function that reads them again."""

    clusters: Sequence[str]
    find_texts: FindTexts


def gather(run: FinishedRun, asked: Asked | None = None) -> Content:
    """Read the content of the report.

    Args:
        run: the run.
        asked: clusters whose texts are read again from the inputs if they are not stored.

    Raises:
        ConfigError: if there is no such cluster, or an input no longer exists.
        NddupError: if inputs must be read again and have changed since the run.

    Cost: a pass over each of `clusters`, `pairs` and `documents`; the content is in memory, some 100 MB at most.
    """
    sizes = _counted(run.sql(questions.SIZES))
    listed_each, matrix_each = _share_out(sizes)
    clusters = run.sql(questions.largest_clusters(listed_each)).cast(CLUSTERS)
    names = list_documents(clusters)
    texts = run.sql(questions.TEXTS).cast(TEXTS) if run.holds("texts") else TEXTS.empty_table()
    if asked is not None:
        missing = _asked_documents(run, clusters, names, texts, asked.clusters)
        texts = pa.concat_tables([texts, _read_again(run, missing, asked.find_texts)]) if missing else texts
    about = ask_about_documents(run, clusters, names)
    return Content(
        path=drop_login(run.path),
        metrics=run.metrics,
        clusters=clusters,
        listed=run.sql(questions.DESCRIBED, wanted=names).cast(LISTED),
        cells=run.sql(questions.NEAR, wanted=list_cells(names, matrix_each)).cast(CELLS),
        texts=texts,
        sizes=sizes,
        resemblances=_counted(run.sql(questions.RESEMBLANCES)),
        lengths=_lengths(run.sql(questions.LONGER)),
        rejects=run.sql(questions.REJECTS).to_pylist() if run.metrics.rows["rejects"] else [],
        components=run.sql(questions.COMPONENTS).to_pylist() if run.holds(COMPONENTS) else None,
        evaluation=json.loads(run.read_text(EVALUATION)) if run.holds(EVALUATION) else None,
        documents=about.documents,
        nearest=about.nearest,
        memberships=about.memberships,
        weakest=ask_weakest(run, clusters, names, matrix_each),
        edges=ask_edges(run, clusters),
        matrix_each=matrix_each,
        listed_each=listed_each,
    )


def _share_out(sizes: list[tuple[int, int]]) -> tuple[int, int]:
    """Return how many documents to list of each cluster, and how many to put in its matrix, within both bounds."""
    size, count = np.array(sizes or [(0, 0)], np.int64)[::-1].T
    shown = np.clip(questions.MOST_CLUSTERS - (np.cumsum(count) - count), 0, count)

    def listed(each: int) -> int:
        return int((np.minimum(size, each) * shown).sum())

    def paired(each: int) -> int:
        held = np.minimum(size, each)
        return int((held * (held - 1) // 2 * shown).sum())

    listed_each = next((each for each in range(LISTED_EACH, 2, -1) if listed(each) <= MOST_LISTED), 2)
    matrix_each = next((each for each in range(MATRIX_EACH, 2, -1) if paired(each) <= MOST_CELLS), 2)
    return listed_each, min(listed_each, matrix_each)


def _asked_documents(
    run: FinishedRun, clusters: pa.Table, names: pa.Table, texts: pa.Table, asked: Iterable[str]
) -> Places:
    """Return the documents in the matrices of the requested clusters that have no stored text."""
    ranks = {cluster: rank for rank, cluster in enumerate(clusters["cluster_id"].to_pylist())}
    for cluster in asked:
        if cluster not in ranks:
            raise ConfigError(f"--cluster {cluster}: no such cluster in the report of {run.path}")
    chosen = pa.array([ranks[cluster] for cluster in asked], pa.int32())
    few = names.filter(pc.and_(pc.is_in(names["rank"], chosen), pc.less(names["place"], MATRIX_EACH)))
    ids = sorted(set(few["doc_id"].to_pylist()) - set(texts["doc_id"].to_pylist()))
    wanted = pa.table({"doc_id": pa.array(ids, pa.string())})
    rows = run.sql(questions.PLACES, wanted=wanted).to_pylist()
    return {row["doc_id"]: (row["source"], row["content_fingerprint"]) for row in rows}


def _read_again(run: FinishedRun, missing: Places, find_texts: FindTexts) -> pa.Table:
    found = find_texts(missing).sort_by("doc_id").cast(TEXTS)
    if len(found) < len(missing):
        lost = sorted(missing.keys() - set(found["doc_id"].to_pylist()))
        raise NddupError(f"the inputs of {run.path} no longer hold document {lost[0]}; run the job again")
    return found


def _counted(answer: pa.Table) -> list[tuple[Any, int]]:
    """Return the rows of two columns as tuples: a value and its count."""
    values, counts = (column.to_pylist() for column in answer.columns)
    return list(zip(values, counts, strict=True))


def _lengths(answer: pa.Table) -> list[tuple[int, int]]:
    """Return the histogram of lengths: (lower end of `LENGTHS` in tokens, documents)."""
    at_least = [column[0].as_py() for column in answer.columns] + [0]
    return [(low, at_least[place] - at_least[place + 1]) for place, low in enumerate(LENGTHS)]
