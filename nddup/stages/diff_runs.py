"""What changed between two runs, on either engine: each step is one SELECT.

    documents and keep of both   --join_runs-->  joined      every document, with what differs
    joined, names                --see_names-->  the families that may differ, and their names
    these                        -->  family_changes
    joined, components of both   -->  changes, with the cause of each verdict that changed
    both pairs                   -->  pair_changes
    both members                 -->  set_changes

Most families are the same in both runs: only `joined`, one row a document, is as large as the runs.
The tables of the earlier run have names that begin with `before_`.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from nddup.engines.engine import Engine
from nddup.matching.threshold import Threshold
from nddup.stages.families import MEETINGS, match_batches, name_families, name_first
from nddup.stages.label_components import label_documents, make_seen
from nddup.tables import DOCUMENTS, KEEP, working

MATCHED_SETS = working("matched_sets", "name string, doc_id string", "Later sets that are earlier ones.")

ROW = tuple(name for name in DOCUMENTS.names if name not in ("doc_id", "doc_key", "sketch", "signature"))
"""Columns of `documents` that are compared. `doc_key` shifts when other records come in."""

DIGEST = "xxhash64(d.sketch, d.signature)"
"""Of what is compared beside ROW: a lexicon, a bound of frequency or other settings give a text another sketch."""

POLICY = "slice(a.policy, 1, {n}) IS DISTINCT FROM slice(b.policy, 1, {n})"

BOTH = """
    SELECT coalesce(a.doc_id, b.doc_id) AS doc_id, a.doc_id IS NOT NULL AS was_there, b.doc_id IS NOT NULL AS is_there,
           a.doc_key AS key_before, a.content_fingerprint IS DISTINCT FROM b.content_fingerprint AS has_text,
           {values} AS has_values, {row} AS has_row, {kept} AS has_keep, a.kept AS kept_before, b.kept AS kept_after,
           a.duplicate_of AS duplicate_of_before, b.duplicate_of AS duplicate_of_after,
           CASE WHEN a.kept THEN a.doc_id ELSE a.duplicate_of END AS head_before,
           CASE WHEN b.kept THEN b.doc_id ELSE b.duplicate_of END AS head_after
    FROM ({earlier}) AS a FULL OUTER JOIN ({later}) AS b ON a.doc_id = b.doc_id
"""
"""Every document of either run, with the kept document of its family in both."""

DIFFERING = """
    SELECT *, kept_before IS DISTINCT FROM kept_after OR duplicate_of_before IS DISTINCT FROM duplicate_of_after
           AS has_verdict
    FROM joined WHERE NOT was_there OR NOT is_there OR has_row OR has_keep
"""

TOUCHED = """
    SELECT doc_id FROM differing WHERE NOT was_there OR NOT is_there OR has_text OR has_values
    UNION SELECT doc_id FROM reforced
"""
"""What can change the verdicts of others: the documents that came, went, or differ in what decides."""

OPEN = """
    SELECT d.doc_id FROM differing AS d ANTI JOIN reforced AS f ON d.doc_id = f.doc_id
    WHERE d.was_there AND d.is_there AND d.has_verdict AND NOT d.has_text AND NOT d.has_values
"""
"""Documents with another verdict, but the same text and values."""

ROOTED = """
    SELECT d.doc_id, d.doc_key, l.root FROM {before}documents AS d JOIN {labels} AS l ON d.doc_key = l.node
"""
"""The documents that are connected with others, with the first of their component."""

NEAR_TOUCHED = """
    SELECT o.doc_id FROM open_verdicts AS o JOIN {before}rooted AS r ON o.doc_id = r.doc_id
    SEMI JOIN (SELECT q.root FROM {before}rooted AS q SEMI JOIN touched AS t ON q.doc_id = t.doc_id) AS w
        ON r.root = w.root
"""

UNTOUCHED = "SELECT o.doc_id FROM open_verdicts AS o ANTI JOIN near_touched AS t ON o.doc_id = t.doc_id"

TURNS = """
    SELECT r.doc_id, r.root, row_number() OVER (PARTITION BY r.root ORDER BY r.doc_key) AS turn
    FROM {before}rooted AS r
    SEMI JOIN (SELECT q.root FROM {before}rooted AS q SEMI JOIN untouched AS u ON q.doc_id = u.doc_id) AS w
        ON r.root = w.root
"""
"""The places, in the order of the collection, of the documents of components."""

REORDERED = """
    SELECT u.doc_id FROM untouched AS u JOIN rooted AS r ON u.doc_id = r.doc_id
    SEMI JOIN (
        SELECT b.root FROM turns AS b JOIN before_turns AS a ON a.doc_id = b.doc_id WHERE a.turn <> b.turn
    ) AS w ON r.root = w.root
"""

CHANGED = """
    SELECT {row}, CAST(NULL AS STRING) AS cause FROM differing AS d
    WHERE NOT d.was_there OR NOT d.is_there OR NOT d.has_verdict
    UNION ALL
    SELECT {row}, CASE WHEN d.has_text THEN 'text' WHEN d.has_values OR f.doc_id IS NOT NULL THEN 'values'
                       ELSE {others} END AS cause
    FROM differing AS d LEFT JOIN reforced AS f ON d.doc_id = f.doc_id {joined}
    WHERE d.was_there AND d.is_there AND d.has_verdict
"""
"""Only verdicts that changed have a cause; only these rows move."""

CHANGED_ROW = """
    d.doc_id, CASE WHEN NOT d.was_there THEN 'added' WHEN NOT d.is_there THEN 'gone' WHEN d.has_text THEN 'text'
                   WHEN d.has_verdict THEN 'verdict' ELSE 'row' END AS change,
    d.kept_before, d.kept_after, d.duplicate_of_before, d.duplicate_of_after
"""

OTHERS = "CASE WHEN t.doc_id IS NOT NULL THEN 'neighbours' WHEN o.doc_id IS NOT NULL THEN 'order' ELSE {last} END"

JOINED = "LEFT JOIN near_touched AS t ON d.doc_id = t.doc_id LEFT JOIN reordered AS o ON d.doc_id = o.doc_id"

LATER = """
    SELECT {row} FROM {name} AS d SEMI JOIN (SELECT doc_id FROM differing WHERE {has} AND is_there) AS c
        ON d.doc_id = c.doc_id
"""
"""The rows of the later run that the earlier one lacks."""

PAIRS = """
    SELECT coalesce(a.doc_a, b.doc_a) AS doc_a, coalesce(a.doc_b, b.doc_b) AS doc_b,
           CASE WHEN a.doc_a IS NULL THEN 'won' ELSE 'lost' END AS change,
           coalesce(a.overlap, b.overlap) AS overlap, coalesce(a.resemblance, b.resemblance) AS resemblance
    FROM before_pairs AS a FULL OUTER JOIN pairs AS b ON a.doc_a = b.doc_a AND a.doc_b = b.doc_b
    WHERE a.doc_a IS NULL OR b.doc_a IS NULL
"""

MOVED = "SELECT doc_id, key_before, head_before, head_after FROM joined WHERE head_before IS DISTINCT FROM head_after"
"""The documents that went from one family to another."""

UNSETTLED = f"SELECT head_before AS head FROM ({MOVED}) AS a UNION SELECT head_after AS head FROM ({MOVED}) AS b"  # noqa: S608
"""The kept documents of families that may differ. All others have the same documents, and so the same name."""

RENAMED = """
    UNION SELECT l.doc_id AS head FROM live_names AS l JOIN before_names AS b ON l.doc_id = b.doc_id
    WHERE l.name <> b.name
"""
"""Also those whose names differ, where the later run stored its own: it may have them from another one."""

HEADS = f"""
    {MOVED}
    UNION ALL
    SELECT d.doc_id, d.key_before, d.head_before, d.head_after
    FROM joined AS d SEMI JOIN unsettled AS u ON d.head_before = u.head WHERE d.head_before = d.head_after
"""  # noqa: S608 - our query
"""The documents of these families, each with its family in both runs."""

NAMED_MEETINGS = """
    SELECT b.name, l.name AS later, k.head_before, k.head_after, k.n
    FROM meetings AS k LEFT JOIN before_names AS b ON k.head_before = b.doc_id
    LEFT JOIN live_names AS l ON k.head_after = l.doc_id
"""

FAMILIES_MET = {
    "met": "SELECT name, later, n FROM named WHERE name IS NOT NULL AND later IS NOT NULL",
    "earlier": "SELECT name, head_before AS head, n FROM named WHERE name IS NOT NULL",
    "later": "SELECT later AS name, head_after AS head, n FROM named WHERE later IS NOT NULL",
}
"""How many documents families share, and how many are in them: summed over the families in which the others are."""

GROUPS = """
    WITH met AS ({met}),
    earlier AS (SELECT name, head, CAST(sum(n) AS BIGINT) AS n FROM ({earlier}) AS e GROUP BY name, head),
    later AS (SELECT name, head, CAST(sum(n) AS BIGINT) AS n FROM ({later}) AS l GROUP BY name, head),
    gives AS (
        SELECT name, count(*) AS n, CAST(sum(CASE WHEN name = later THEN n ELSE 0 END) AS BIGINT) AS stay
        FROM met GROUP BY name
    ),
    takes AS (SELECT later, count(*) AS n FROM met GROUP BY later),
    counted AS (
        SELECT coalesce(a.name, b.name) AS name, coalesce(a.n, 0) AS before, coalesce(b.n, 0) AS after,
               coalesce(a.stay, 0) AS stay, coalesce(b.takes_from, 0) AS takes_from,
               coalesce(a.gives_to, 0) AS gives_to, a.head AS head_before, b.head AS head_after
        FROM (
            SELECT s.name, s.head, s.n, g.stay, g.n AS gives_to
            FROM earlier AS s LEFT JOIN gives AS g ON s.name = g.name
        ) AS a FULL OUTER JOIN (
            SELECT s.name, s.head, s.n, t.n AS takes_from FROM later AS s LEFT JOIN takes AS t ON s.name = t.later
        ) AS b ON a.name = b.name
    )
    SELECT name,
           CASE WHEN before = 0 THEN 'born' WHEN after = 0 THEN 'gone' WHEN gives_to > 1 THEN 'split'
                WHEN takes_from > 1 THEN 'merged' WHEN after > before THEN 'grown'
                WHEN after < before THEN 'shrunk' ELSE 'changed' END AS change,
           before, after, after - stay AS came, before - stay AS went, takes_from, gives_to, head_after AS {last}
    FROM counted WHERE before <> stay OR after <> stay OR head_before IS DISTINCT FROM head_after
"""
"""The rows of FAMILY_CHANGES, or of SET_CHANGES: groups whose documents, or whose kept document or id, differ."""

SETS = """
    SELECT m.cluster_id, m.doc_id FROM {before}members AS m
    ANTI JOIN (SELECT DISTINCT cluster_id FROM {other}members) AS o ON m.cluster_id = o.cluster_id
"""
"""The members of the clusters that only one run has."""

MOST_MEETINGS = 1_000
"""Maximum number of pairs of an earlier and a later set that one document makes meet."""

CROWDED_SETS = """
    WITH crowd AS (
        SELECT a.doc_id FROM (SELECT doc_id, count(*) AS n FROM before_own_sets GROUP BY doc_id) AS a
        JOIN (SELECT doc_id, count(*) AS n FROM own_sets GROUP BY doc_id) AS b ON a.doc_id = b.doc_id
        WHERE a.n * b.n > {most}
    )
    SELECT m.cluster_id FROM before_own_sets AS m SEMI JOIN crowd AS c ON m.doc_id = c.doc_id
    UNION SELECT m.cluster_id FROM own_sets AS m SEMI JOIN crowd AS c ON m.doc_id = c.doc_id
"""
"""The sets with a document that is in too many. What so many overlapping sets share would be the square of them."""

SET_MEETINGS = """
    SELECT a.cluster_id AS name, b.cluster_id AS head, count(*) AS n
    FROM (SELECT * FROM before_own_sets AS m ANTI JOIN crowded_sets AS c ON m.cluster_id = c.cluster_id) AS a
    JOIN (SELECT * FROM own_sets AS m ANTI JOIN crowded_sets AS c ON m.cluster_id = c.cluster_id) AS b
        ON a.doc_id = b.doc_id
    GROUP BY a.cluster_id, b.cluster_id
"""

SET_OVERLAPS = """
    WITH sized AS (SELECT cluster_id, count(*) AS n FROM own_sets GROUP BY cluster_id)
    SELECT 0 AS one, m.name, m.head, m.head AS least, m.n AS shared, s.n AS size
    FROM set_meetings AS m JOIN sized AS s ON m.head = s.cluster_id
"""

SET_NAMES = """
    SELECT coalesce(m.name, s.cluster_id) AS name, s.cluster_id AS doc_id
    FROM (SELECT DISTINCT cluster_id FROM own_sets) AS s LEFT JOIN matched_sets AS m ON s.cluster_id = m.doc_id
"""

SETS_MET = {
    "met": "SELECT m.name, n.name AS later, m.n FROM set_meetings AS m JOIN set_names AS n ON m.head = n.doc_id",
    "earlier": "SELECT cluster_id AS name, cluster_id AS head, 1 AS n FROM before_own_sets",
    "later": "SELECT n.name, s.cluster_id AS head, 1 AS n"
    " FROM own_sets AS s JOIN set_names AS n ON s.cluster_id = n.doc_id",
}
"""Likewise of sets."""

HAS = {"documents": "has_row", "keep": "has_keep"}
"""The column of `joined` that says whether the rows of a table differ."""

ROWS = {"documents": tuple(name for name in DOCUMENTS.names if name != "doc_key"), "keep": KEEP.names}
"""Their columns that a diff has."""


class DiffRule(NamedTuple):
    """What is known of two runs before their tables are compared."""

    before: Threshold
    after: Threshold
    """When two sketches of each run are near-duplicates, or candidates."""

    same_settings: bool
    """Whether all settings that decide verdicts are the same."""

    same_versions: bool

    columns: int
    """How many of the first values of `policy` decide; 0 where keep.policy and keep.same read others than before."""

    by_source: bool
    """Whether keep.prefer or keep.same looks at the source."""

    def rows(self, *, sketch: bool = False) -> str:
        """Return the query for the documents of one run, as `before_documents` has them.

        Args:
            sketch: whether with the sketches, which `label_documents` reads of components given by leaders.
        """
        columns = ["doc_id", "doc_key", *ROW, *(["sketch"] if sketch else [])]
        return f"SELECT {_listed(columns)}, {DIGEST} AS digest FROM documents AS d"  # noqa: S608 - our names


def join_runs(engine: Engine, rule: DiffRule) -> None:
    """Materialise `joined`, every document of either run with what differs.

    Args:
        engine: with `documents` and `keep` of the later run, `before_documents` (`DiffRule.rows`) and `before_keep` of
            the earlier one.

    Cost: one full outer join of narrow rows, on Spark sort-merged: a shuffle of each of the four tables. Reads the
        sketches of the later run, to hash them.
    """
    decide = ["url", "date", *(["source"] if rule.by_source else [])]
    text = BOTH.format(
        values=f"({_differ(decide)} OR {POLICY.format(n=rule.columns)})" if rule.columns else _differ(decide),
        row=_differ((*ROW, "digest")),
        kept=_differ(KEEP.names[1:]),
        earlier=_with_keep("before_documents", "before_keep"),
        later=_with_keep(f"({rule.rows()})", "keep"),
    )
    engine.materialise("joined", text)


def see_names(engine: Engine, *, before: bool, after: bool) -> None:
    """Name the families of both runs.

    Args:
        engine: with `joined`. It gets `meetings`, `before_names` and `live_names`.
        before: whether it has `before_names` already, as the earlier run stored them.
        after: whether the later run has `names`.
    """
    if after:
        engine.materialise("live_names", "SELECT name, doc_id FROM names WHERE doc_id IS NOT NULL")
    if after and not before:
        name_first(engine, "SELECT doc_id, key_before AS doc_key, head_before AS head FROM joined")
    engine.materialise("unsettled", UNSETTLED + (RENAMED if after else ""))
    engine.materialise("heads", HEADS)
    engine.materialise("meetings", MEETINGS)
    if not after and not before:
        name_first(engine, "SELECT doc_id, key_before AS doc_key, head_before AS head FROM heads")
    if not after:
        engine.materialise(
            "family_members", "SELECT doc_id, head_after AS head FROM heads WHERE head_after IS NOT NULL"
        )
        name_families(engine)


def diff_runs(engine: Engine, rule: DiffRule) -> None:
    """Make the tables of a diff.

    Args:
        engine: as `join_runs` and `see_names` leave it; with `pairs` and `members` of the later run, `before_pairs` and
            `before_members` of the earlier one; and `reforced` (doc_id), the documents that keep.force names in one run
            alone, or otherwise. It gets `changes`, `pair_changes`, `family_changes`, `set_changes`; and
            `crowded_sets`, those that are born or gone only because they were not compared.

    Cost: a full outer join of `pairs`; of the documents only rows that differ, and a count of each two families, or
        sets, that share some: at most `MOST_MEETINGS` of sets for each document. Where the settings are the same and
        verdicts differ, the components of both runs as well (`label_documents`).
    """
    engine.materialise("differing", DIFFERING)
    engine.materialise("touched", TOUCHED)
    _find_causes(engine, rule)
    engine.materialise("pair_changes", PAIRS)
    _find_families(engine)
    _find_sets(engine)


def list_later(name: str) -> str:
    """Return the query for the rows of `documents`, without `doc_key`, or of `keep` that the earlier run lacks."""
    return LATER.format(name=name, row=_listed(ROWS[name]), has=HAS[name])


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(f"d.{name}" for name in columns)


def _differ(columns: Sequence[str]) -> str:
    """Return the condition that a column differs, null being equal to null."""
    return "(" + " OR ".join(f"a.{name} IS DISTINCT FROM b.{name}" for name in columns) + ")"


def _with_keep(documents: str, keep: str) -> str:
    kept = ", ".join(f"k.{name}" for name in KEEP.names[1:])
    return f"SELECT d.*, {kept} FROM {documents} AS d JOIN {keep} AS k ON d.doc_id = k.doc_id"  # noqa: S608 - our names


def _find_causes(engine: Engine, rule: DiffRule) -> None:
    """Make `changes`. Only verdicts that no cause of their own explains need the components."""
    engine.materialise("open_verdicts", OPEN)
    if not rule.same_settings or not engine.count("open_verdicts", {"n": "count(*)"})["n"]:
        engine.materialise("changes", CHANGED.format(row=CHANGED_ROW, others="'settings'", joined=""))
        return
    for before, threshold in (("before_", rule.before), ("", rule.after)):
        labels = label_documents(engine, threshold, before=before)
        engine.materialise(f"{before}rooted", ROOTED.format(before=before, labels=labels))
    engine.materialise("near_touched", " UNION ".join(NEAR_TOUCHED.format(before=before) for before in ("before_", "")))
    engine.materialise("untouched", UNTOUCHED)
    for before in ("before_", ""):
        engine.materialise(f"{before}turns", TURNS.format(before=before))
    engine.materialise("reordered", REORDERED)
    last = "'other'" if rule.same_versions else "'version'"
    others = OTHERS.format(last=last)
    engine.materialise("changes", CHANGED.format(row=CHANGED_ROW, others=others, joined=JOINED))


def _find_families(engine: Engine) -> None:
    """Make `family_changes` of how many documents each two families share."""
    engine.materialise("named", NAMED_MEETINGS)
    engine.materialise("family_changes", GROUPS.format(last="doc_id", **FAMILIES_MET))


def _find_sets(engine: Engine) -> None:
    """Make `set_changes`, likewise of the sets that only one run has; crowded ones are compared with none."""
    engine.materialise("before_own_sets", SETS.format(before="before_", other=""))
    engine.materialise("own_sets", SETS.format(before="", other="before_"))
    engine.materialise("crowded_sets", CROWDED_SETS.format(most=MOST_MEETINGS))
    engine.materialise("set_meetings", SET_MEETINGS)
    make_seen(engine, MATCHED_SETS, SET_OVERLAPS, partial(match_batches, table=MATCHED_SETS), by=("one",))
    engine.materialise("set_names", SET_NAMES)
    engine.materialise("set_changes", GROUPS.format(last="cluster_id", **SETS_MET))
