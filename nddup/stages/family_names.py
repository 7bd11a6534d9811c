"""Names of families that last from run to run, on either engine.

    before_names, before_keep   --SELECT-->       the earlier families, each with its name
    keep                        --SELECT-->       the later families
    families that share documents --match_names--> which later family has an earlier's name
    the others                  --SELECT-->       an id of their own that is not and never was a name

A family is a kept document and what it stands for. In a run that takes no earlier names it is called by its oldest
document, the first in the collection.
"""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from nddup.diffing.match_names import match_names, name_others
from nddup.engines.engine import Batches, Engine, FinishedRun
from nddup.errors import OutputError
from nddup.ground.columns import one_chunk
from nddup.stages.label_components import make_seen
from nddup.tables import NAMES, Table, working

if TYPE_CHECKING:  # a diff of finished runs reads no inputs
    from nddup.stages.run_engine import RunEngine

MATCHED = working("matched", "name string, doc_id string", "Later families that have an earlier one's name.")

NO_ROWS = pa.table({
    **{name: pa.array([], pa.string()) for name in ("name", "head", "least")},
    **{name: pa.array([], pa.int64()) for name in ("shared", "size")},
})  # fmt: skip
"""No rows of `CONTESTED`."""

MEMBERS = """
    SELECT doc_id, coalesce(duplicate_of, doc_id) AS head FROM {before}keep WHERE kept OR duplicate_of IS NOT NULL
"""
"""The family of each document: one that is forced out, and like no kept one, has none."""

FIRST_NAMES = """
    SELECT min_by(m.doc_id, m.doc_key) AS name, m.head AS doc_id FROM ({members}) AS m WHERE m.head IS NOT NULL
    GROUP BY m.head
"""

AGED_MEMBERS = """
    SELECT m.doc_id, d.doc_key, m.head FROM before_family_members AS m JOIN before_documents AS d ON m.doc_id = d.doc_id
"""

HEADS = """
    SELECT a.head AS head_before, b.head AS head_after
    FROM before_family_members AS a FULL OUTER JOIN family_members AS b ON a.doc_id = b.doc_id
"""
"""The family of each document in both runs."""

MEETINGS = "SELECT head_before, head_after, count(*) AS n FROM heads GROUP BY head_before, head_after"
"""How many documents each two families share; null: those that are in none."""

CONTENDERS = """
    SELECT n.name, k.head_after AS head, k.n AS shared, count(*) OVER (PARTITION BY n.name) AS laters,
           count(*) OVER (PARTITION BY k.head_after) AS earliers
    FROM meetings AS k JOIN before_names AS n ON k.head_before = n.doc_id WHERE k.head_after IS NOT NULL
"""

CONTESTED = """
    WITH sized AS (SELECT head, min(doc_id) AS least, count(*) AS size FROM family_members GROUP BY head)
    SELECT 0 AS one, o.name, o.head, o.shared, s.least, s.size
    FROM contenders AS o JOIN sized AS s ON o.head = s.head WHERE o.laters > 1 OR o.earliers > 1
"""

KEPT_NAMES = """
    SELECT name, head AS doc_id FROM contenders WHERE laters = 1 AND earliers = 1
    UNION ALL SELECT name, doc_id FROM matched
"""

NEW_NAMES = """
    SELECT m.head AS doc_id, min(m.doc_id) AS least, min(CASE WHEN n.name IS NULL THEN m.doc_id END) AS name
    FROM family_members AS m ANTI JOIN kept_names AS k ON m.head = k.doc_id
    LEFT JOIN before_names AS n ON m.doc_id = n.name
    GROUP BY m.head
"""

SPELLED = """
    SELECT name FROM before_names WHERE name LIKE '%~%' UNION SELECT doc_id AS name FROM keep WHERE doc_id LIKE '%~%'
"""

ALL_NAMES = """
    SELECT name, doc_id FROM kept_names
    UNION ALL SELECT name, doc_id FROM new_names WHERE name IS NOT NULL
    UNION ALL SELECT name, doc_id FROM other_names
"""

WITH_RETIRED = """
    WITH heads_before AS (SELECT head_before AS head, CAST(sum(n) AS BIGINT) AS n FROM meetings GROUP BY head_before),
    heads_after AS (SELECT head_after AS head, CAST(sum(n) AS BIGINT) AS n FROM meetings GROUP BY head_after)
    SELECT coalesce(l.name, b.name) AS name, l.doc_id, coalesce(m.n, 0) AS documents, coalesce(s.n, 0) AS before
    FROM live_names AS l FULL OUTER JOIN before_names AS b ON l.name = b.name
    LEFT JOIN heads_after AS m ON l.doc_id = m.head LEFT JOIN heads_before AS s ON b.doc_id = s.head
"""

STORED_NAMES = "SELECT name, doc_id FROM names"


def require_other(engine: "RunEngine", path: str) -> None:
    """Refuse an earlier run that is none, or that this run replaces.

    Raises:
        OutputError: naming it.
    """
    if engine.earlier is not None:
        return
    engine.open_other(path)
    if engine.files.full_path(path) == engine.files.full_path(engine.folder.path):
        raise OutputError(f"output.names_from: {path} is the run that is to be made; give another --output")


def names_after(earlier: FinishedRun, engine: Engine) -> str:
    """Return the query for NAMES of a run that follows another.

    Args:
        earlier: the other run, of the same engine.
        engine: with `documents` and `keep` of the run.

    Cost: as `name_families`.
    """
    engine.see("before_keep", earlier.answer("SELECT doc_id, kept, duplicate_of FROM keep"))
    list_meetings(engine)
    if earlier.holds(NAMES.name):
        engine.see("before_names", earlier.answer(STORED_NAMES))
    else:
        engine.see("before_documents", earlier.answer("SELECT doc_id, doc_key FROM documents"))
        name_first(engine, AGED_MEMBERS)
    return name_families(engine)


def list_meetings(engine: Engine) -> None:
    """Keep the families of both runs and how many documents each two share.

    Args:
        engine: with `keep` and `before_keep`. It gets `family_members` and `before_family_members` (doc_id, head, the
            kept document that stands for it), `heads` and `meetings`.
    """
    for before in ("before_", ""):
        engine.keep(f"{before}family_members", MEMBERS.format(before=before))
    engine.keep("heads", HEADS)
    engine.keep("meetings", MEETINGS)


def name_first(engine: Engine, members: str) -> None:
    """Keep `before_names` (name, doc_id) of the families of a run that takes no names from another.

    Args:
        engine: with the tables that the query names.
        members: a query for doc_id, doc_key and head of each document; one without a head is in no family.
    """
    engine.keep("before_names", FIRST_NAMES.format(members=members))


def name_families(engine: Engine) -> str:
    """Name the families of a run that follows another.

    Args:
        engine: with `keep` and `family_members` of the run, `meetings` of its families with those of the earlier run,
            and `before_names` of these, as NAMES. It gets `live_names` (name, doc_id), of its families.

    Returns:
        The query for NAMES of the run: these, and the names that no longer are.

    Cost: joins of narrow rows: on Spark one shuffle each; of families that share documents with several, and only of
        these, the rows are in one task.
    """
    engine.keep("contenders", CONTENDERS)
    make_seen(engine, MATCHED, CONTESTED, partial(match_batches, table=MATCHED), by=("one",))
    engine.keep("kept_names", KEPT_NAMES)
    engine.keep("new_names", NEW_NAMES)
    rest = engine.sql("SELECT doc_id, least FROM new_names WHERE name IS NULL ORDER BY least")
    used = engine.sql(SPELLED)["name"].to_pylist() if len(rest) else []
    others = pa.array(name_others(rest["least"].to_pylist(), used), pa.string())
    engine.put("other_names", pa.table({"name": others, "doc_id": rest["doc_id"].cast(pa.string())}))
    engine.keep("live_names", ALL_NAMES)
    return WITH_RETIRED


def match_batches(batches: Batches, *, table: Table) -> Batches:
    """Yield MATCHED, or a table like it, from rows of `CONTESTED`, in any order."""
    given = [batch for batch in batches if len(batch)]
    rows = pa.Table.from_batches(given) if given else NO_ROWS
    name, least = (one_chunk(rows[column].cast(pa.string())) for column in ("name", "least"))
    shared, sizes = (rows[column].to_numpy().astype(np.int64) for column in ("shared", "size"))
    taken = pa.array(match_names(name, least, shared, sizes))
    yield table.batch([name.take(taken), one_chunk(rows["head"].cast(pa.string())).take(taken)])
