"""Which records become documents, and under which ids; and which documents have equal sketches.

    good      --REPEATS-->    the ids that several records have, each with its first record
    good      --TAKEN-->      the names like `source#record` that are ids of records
    good      --settle-->     settled: each record with its final id, and whether it is rejected for a repeated one
    settled   --HOLDERS-->    the records that lie in another, each with the final id of that one
    settled   --GROUPS-->     grouped: each with the smallest id of the documents with an equal sketch
    captures  --REVISITED-->  the revisits, each with the document it repeats
    records   --COMMON-->     the shingles of too many documents

`good` are the numbered records that are no rejects. Nearly all of them may have the same text, or the same id (an empty
page, `null`). So groups are counted by their key, and joined back by a verb that spreads the rows of one key.
"""

import math
from fractions import Fraction

import numpy as np

from nddup.engines.engine import Engine, EngineTable
from nddup.settings.schema import Config
from nddup.tables import DOCUMENTS, FIRST_SEEN, REPEATED, TAKEN_OUT

MADE_UP = "#[1-9][0-9]*[+]*$"
"""What an id ends with that is like a made-up name."""

SETTLED_BY = ("doc_key", "doc_id", "source", "record", "content_fingerprint", "sketch_fingerprint", "parent")
"""Columns of `good` that the queries read, besides `is_made`."""

REPEATS = """
    SELECT doc_id, count(*) AS n, min(doc_key) AS first_key, min_by(source, doc_key) AS first_source,
           min_by(record, doc_key) AS first_record, min_by(content_fingerprint, doc_key) AS first_content
    FROM good WHERE NOT is_made GROUP BY doc_id HAVING count(*) > 1
"""

TAKEN = f"""
    WITH named AS (
        SELECT DISTINCT doc_id, regexp_replace(doc_id, '[+]+$', '') AS made FROM good
        WHERE NOT is_made AND regexp_like(doc_id, '{MADE_UP}')
    ),
    counted AS (
        SELECT made, length(doc_id) - length(made) AS n,
               row_number() OVER (PARTITION BY made ORDER BY length(doc_id)) - 1 AS place
        FROM named
    )
    SELECT made, count_if(n = place) AS free FROM counted GROUP BY made
"""  # noqa: S608 - the text above
"""`free`: the fewest `+` that make the name new."""

SETTLED = """
    WITH judged AS (
        SELECT m.*, concat_ws('#', source, record) AS made,
               NOT is_made AND coalesce(first_key <> doc_key, false) AS is_later,
               {renames} AND coalesce(first_content <> content_fingerprint, false) AS is_other
        FROM met AS m
    ),
    named AS (
        SELECT j.*, is_later AND NOT is_other AS is_repeated,
               CASE WHEN is_made OR (is_later AND is_other) THEN {name} ELSE doc_id END AS final_id
        FROM judged AS j {taken}
    )
    SELECT n.*, {is_out} AS is_out FROM named AS n {out}
"""

OUT = "LEFT JOIN taken_out AS o ON n.final_id = o.doc_id"

GROUPS = """
    SELECT sketch_fingerprint, count(*) AS n, min(final_id) AS smallest FROM settled
    WHERE NOT is_repeated AND NOT is_out GROUP BY sketch_fingerprint HAVING count(*) > 1
"""

HOLDERS = """
    SELECT r.doc_key AS doc_key, max_by(p.final_id, p.doc_key) AS holder, count(*) AS n
    FROM settled AS r JOIN settled AS p ON p.source = r.source AND coalesce(p.doc_id, p.made) = r.parent
    WHERE r.parent IS NOT NULL AND p.doc_key < r.doc_key GROUP BY r.doc_key
"""
"""A message precedes those inside it: of the records of its file that had this id, it is the last one before them."""

REJECTED = f"""
    SELECT source, record, doc_id, '{REPEATED}' AS reason,
           concat('{FIRST_SEEN[0]}', first_record, '{FIRST_SEEN[1]}', first_source) AS detail, '' AS excerpt
    FROM settled WHERE is_repeated
    UNION ALL
    SELECT source, record, final_id AS doc_id, '{TAKEN_OUT}' AS reason, '' AS detail, '' AS excerpt
    FROM settled WHERE is_out AND NOT is_repeated
"""  # noqa: S608 - the text above

COMMON = """
    SELECT id FROM (SELECT explode(sketch) AS id FROM records WHERE reason IS NULL) AS held
    GROUP BY id HAVING count(*) > {limit}
"""

COPIED = (*DOCUMENTS.named("of_content"), "sketch_fingerprint")
"""The columns of RECORDS that a revisit takes from what it repeats."""

READ = ("doc_key", "doc_id", "reason", "date", "target_uri", "payload_digest", "record_type", "refers_to")
"""Columns of the numbered records that the query reads."""

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


def settle(engine: Engine, *, renames: bool, many: int, like: int = 1, without: bool = False) -> None:
    """Decide what becomes of each good record whose id is missing, or that an earlier one has.

    The first record in the collection keeps an id. A later one is repeated, a reject, if its content is the same; if it
    is another, it becomes a document called `source#record` where records are renamed, and is repeated where they are
    not. A record without an id has that name too. A name that is an id already gets as many `+` as make it new.

    Args:
        engine: with the tables `good`: doc_key, doc_id, source, record, content_fingerprint, is_made (the record has no
            id) and any others; `repeats` (REPEATS); `taken` (TAKEN), unless `like` is 0. It gets `settled`.
        renames: whether a later record of other content becomes a document.
        like: the number of ids that are like made-up names; 0: none.
        without: whether the documents named in the table `taken_out` (doc_id, each once) leave the collection once all
            have their names.

    Cost: on Spark a shuffle of the ids, if too many are repeated to broadcast them.
    """
    engine.join("met", "good", "SELECT * FROM repeats", key="doc_id", by="doc_key", many=many)
    name = "concat(j.made, repeat('+', CAST(coalesce(t.free, 0) AS INT)))" if like else "j.made"
    taken = "LEFT JOIN taken AS t ON j.made = t.made" if like else ""
    is_out, out = ("o.doc_id IS NOT NULL", OUT) if without else ("false", "")
    text = SETTLED.format(renames=str(renames).lower(), name=name, taken=taken, is_out=is_out, out=out)
    engine.see("settled", engine.answer(text))


def list_documents(engine: Engine, *, many: int, nested: int = 0) -> EngineTable:
    """Return the settled records that are documents, with `first_id`: the smallest id among equal sketches.

    Empty sketches count as equal if their contents are: their fingerprint is made of these. Where records are `nested`,
    `final_parent` is the id of the record that holds each, which may be renamed.

    Args:
        engine: with `settled`, in which `sketch_fingerprint`, and `parent` where records are nested.
        nested: the number of records with a `parent`.

    Cost: on Spark a shuffle of narrow rows, by fingerprints. From `heavy_keys.WORTH` documents to `HEAVY` the documents
        do not move; with fewer they are shuffled for the join, and with more by the parts of heavy keys.
    """
    engine.join("grouped", "settled", GROUPS, key="sketch_fingerprint", by="doc_key", many=many)
    listed, rows = "*, coalesce(smallest, final_id) AS first_id", "grouped"
    if nested:
        engine.join("placed", "grouped", HOLDERS, key="doc_key", by="doc_key", many=many)
        listed, rows = f"{listed}, coalesce(holder, parent) AS final_parent", "placed"
    return engine.answer(f"SELECT {listed} FROM {rows} WHERE NOT is_repeated AND NOT is_out")  # noqa: S608 - as above


def find_common(engine: Engine, config: Config) -> bytes:
    """Return the shingles in the sketches of more `records` than `pairs.max_document_frequency`; none if not set.

    As bytes of ascending uint64. They are looked for once: the ids that take their place in the sketches stay.
    """
    limit = config.pairs.max_document_frequency
    if limit is None:
        return b""
    if isinstance(limit, float):
        limit = math.floor(Fraction(repr(limit)) * engine.count("records", {"n": "count_if(reason IS NULL)"})["n"])
    ids = engine.sql(COMMON.format(limit=limit))["id"].to_numpy()
    return np.sort(ids.view(np.uint64)).tobytes()


def find_revisited(engine: Engine) -> EngineTable:
    """Return the records of revisits, each with that of the document it repeats, by their `doc_key`.

    A revisit is a fetch of a page whose payload was the same as that of an earlier one, and not stored. A revisit of a
    document is a document too, a copy of what it repeats, under its own id, address and date. In every order of
    preference it comes last (`nddup.matching.preference`), because the text is not in it. A revisit of what is not in
    the collection stays a reject.

    Args:
        engine: with the table `captures`, the columns `READ` of all records.

    Returns:
        revisit long, original long; no row for a revisit of what is not in the collection. Of several documents of one
        name the first in the collection.

    Cost: on Spark two shuffles of narrow rows.
    """
    return engine.answer(REVISITED)
