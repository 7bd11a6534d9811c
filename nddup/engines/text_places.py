"""Where the text of a document stands: in its own file, or, of a revisit in an archive, in that of what it repeats."""

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from nddup.engines.engine import Engine

PLACES = """
    SELECT /*+ BROADCAST(w) */ d.doc_id, d.source, d.record, d.content_fingerprint, d.record_type
    FROM documents AS d JOIN wanted AS w ON d.doc_id = w.doc_id
"""

ORIGINALS = """
    SELECT /*+ BROADCAST(w) */ d.content_fingerprint, min(d.source) AS source
    FROM documents AS d JOIN wanted AS w ON d.content_fingerprint = w.content_fingerprint
    WHERE d.record_type <> 'revisit' GROUP BY d.content_fingerprint
"""


class TextPlace(NamedTuple):
    """The source of a text, the 16 bytes of its content's fingerprint, and the ordinal of its document's record."""

    source: str
    content: bytes
    record: int


def text_places(engine: Engine, ids: Iterable[str]) -> dict[str, TextPlace]:
    """Return where the texts of documents stand, by id; a revisit's in the source of what it repeats.

    Args:
        engine: with the table `documents`.
        ids: of documents; unknown ids have no place.

    Returns:
        The place of each document; empty for no ids.

    Raises:
        NddupError: if the table cannot be read.

    Cost: a pass over five columns of `documents`, and another if a revisit is among them; on Spark the ids are
        broadcast, and only the second pass shuffles, one row for each content. The answer is in memory.
    """
    wanted = pa.table({"doc_id": pa.array(sorted(set(ids)), pa.string())})
    rows = engine.sql(PLACES, wanted=wanted).to_pylist()
    contents = {row["content_fingerprint"] for row in rows if row["record_type"] == "revisit"}
    originals: dict[bytes, str] = {}
    if contents:
        repeated = pa.table({"content_fingerprint": pa.array(sorted(contents), pa.binary())})
        found = engine.sql(ORIGINALS, wanted=repeated).to_pylist()
        originals = {row["content_fingerprint"]: row["source"] for row in found}

    places: dict[str, TextPlace] = {}
    for row in rows:
        content = row["content_fingerprint"]
        elsewhere = originals.get(content) if row["record_type"] == "revisit" else None
        places[row["doc_id"]] = TextPlace(elsewhere or row["source"], content, row["record"])
    return places
