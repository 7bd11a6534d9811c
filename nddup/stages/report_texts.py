"""The documents whose texts a run stores for its report, while its files are there: of some clusters and pairs."""

from collections.abc import Mapping
from typing import Any

from nddup.engines.engine import Engine, text_places
from nddup.report.for_review import SHOWN, decisive_of, find_closest
from nddup.scanning.read_again import EACH, LARGEST, TextChoice, add_pairs, choose_documents
from nddup.settings.plan import stored_texts
from nddup.settings.schema import Config
from nddup.stages.stage import settings_of

SHOWN_DOCUMENTS = """
    WITH largest AS (SELECT cluster_id, size, 0 AS turn FROM clusters ORDER BY size DESC, cluster_id LIMIT {largest}),
    sample AS (SELECT cluster_id, size, 1 AS turn FROM clusters ORDER BY cluster_id LIMIT {sampled}),
    chosen AS (
        SELECT cluster_id, size, min(turn) AS turn
        FROM (SELECT * FROM largest UNION ALL SELECT * FROM sample) AS twice GROUP BY cluster_id, size
    ),
    placed AS (
        SELECT /*+ BROADCAST(c) */ c.turn, c.cluster_id, c.size, m.doc_id,
               row_number() OVER (PARTITION BY m.cluster_id ORDER BY m.representative DESC, m.doc_id) AS place
        FROM members AS m JOIN chosen AS c ON m.cluster_id = c.cluster_id
    )
    SELECT /*+ BROADCAST(p) */ p.turn, p.cluster_id, p.size, p.place, p.doc_id, d.source, d.content_fingerprint,
           d.record_type
    FROM documents AS d JOIN (SELECT * FROM placed WHERE place <= {each}) AS p ON d.doc_id = p.doc_id
"""
"""The hints are Spark's; to DuckDB they are comments."""


def list_shown(engine: Engine, *, sampled: int, each: int = EACH) -> list[dict[str, Any]]:
    """List a few documents of each of the largest clusters (turn 0) and of each in a sample of all clusters (turn 1).

    The sample takes the lowest cluster ids: these are digests, so the choice is unbiased, and the same for every
    partitioning.

    Args:
        engine: with the tables `clusters`, `members` and `documents`.
        sampled: number of clusters in the sample.
        each: most documents per cluster: the representative first, then by id.

    Returns:
        At most (LARGEST + sampled) * each rows: turn, cluster_id, size, place in the cluster, doc_id, and where the
        document is: source, content_fingerprint, record_type.

    Cost: on Spark a shuffle of `members`, narrowed by a broadcast.
    """
    text = SHOWN_DOCUMENTS.format(largest=LARGEST, sampled=sampled, each=each)
    rows: list[dict[str, Any]] = engine.sql(text).to_pylist()
    return rows


def choose_texts(engine: Engine, config: Config, sizes: Mapping[str, int]) -> TextChoice:
    """Choose the documents: of clusters, then of the pairs nearest to the threshold.

    Args:
        engine: with the tables `clusters`, `members`, `documents` and `pairs`.
        config: of the run: `output.texts`, `output.texts_read`, and what is compared with the threshold.
        sizes: stored bytes of each source.
    """
    most, most_bytes = stored_texts(config), int(config.output.texts_read)
    shown, decisive = list_shown(engine, sampled=most // 2), decisive_of(settings_of(config))
    nearest = [] if decisive is None else [one._asdict() for one in find_closest(engine, decisive, SHOWN)]
    revisits = {row["doc_id"] for row in shown if row["record_type"] == "revisit"}
    revisits |= {row[f"doc_{end}"] for row in nearest for end in "ab" if row[f"type_{end}"] == "revisit"}
    places = text_places(engine, revisits) if revisits else {}
    for row in shown:
        row["source"] = places.get(row["doc_id"], (row["source"],))[0]
    for row in nearest:
        row |= {f"source_{end}": places.get(row[f"doc_{end}"], (row[f"source_{end}"],))[0] for end in "ab"}

    choice = choose_documents(shown, sizes, most=most, most_bytes=most_bytes)
    return add_pairs(choice, nearest, sizes, most_bytes=most_bytes)
