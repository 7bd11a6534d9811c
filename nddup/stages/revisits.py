"""The revisits of an archive of the web: fetches whose payload was the same as that of an earlier one, and not stored.

A revisit of a document is a document too, a copy of what it repeats, under its own id, address and date. In every order
of preference it comes last (`nddup.matching.preference`), because the text is not in it. A revisit of what is not in
the collection stays a reject.
"""

from typing import Any

from nddup.engines.engine import Engine

COPIED = (
    "n_tokens", "n_features", "content_fingerprint", "token_fingerprint", "sketch_fingerprint", "sketch", "signature",
)  # fmt: skip
"""The columns of RECORDS that a revisit takes from what it repeats."""

READ = ("doc_key", "doc_id", "reason", "date", "target_uri", "payload_digest", "record_type", "refers_to")
"""The columns of the numbered records that are asked."""

REVISITED = """
    WITH offered AS (
        SELECT concat('id ', doc_id) AS name, doc_key FROM captures
        WHERE reason IS NULL AND record_type IS NOT NULL AND doc_id IS NOT NULL
        UNION ALL
        SELECT concat('digest ', payload_digest) AS name, doc_key FROM captures
        WHERE reason IS NULL AND payload_digest IS NOT NULL
        UNION ALL
        SELECT concat('uri ', target_uri, ' ', date) AS name, doc_key FROM captures
        WHERE reason IS NULL AND target_uri IS NOT NULL AND date IS NOT NULL
    ),
    firsts AS (SELECT name, min(doc_key) AS doc_key FROM offered GROUP BY name),
    asked AS (SELECT doc_key AS revisit, explode(refers_to) AS name FROM captures WHERE reason = 'revisit')
    SELECT a.revisit AS revisit,
           min_by(f.doc_key, CASE WHEN a.name LIKE 'id %' THEN 1 WHEN a.name LIKE 'digest %' THEN 2 ELSE 3 END)
               AS original
    FROM asked AS a JOIN firsts AS f ON a.name = f.name
    GROUP BY a.revisit
"""


def find_revisited(engine: Engine) -> Any:  # noqa: ANN401 - a table of either engine
    """Return the records of revisits, each with that of the document it repeats, by their `doc_key`.

    Args:
        engine: with the table `captures`, the columns `READ` of all records.

    Returns:
        revisit long, original long; no row for a revisit of what is not in the collection. Of several documents of one
        name the first in the collection.

    Cost: on Spark two shuffles of narrow rows.
    """
    return engine.answer(REVISITED)
