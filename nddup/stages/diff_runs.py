"""What changed between two runs, on either engine: each step is one SELECT.

    before_documents, documents, both keep   -->  differing   documents that are added, gone, or differ in any column
    differing, components of both runs       -->  changes     with the cause of each verdict that changed
    both pairs                               -->  pair_changes
    both keep, names                         -->  family_changes
    both members                             -->  set_changes
    changes, and the later rows              -->  applied     the tables of the later run, of the earlier one's

The tables of the earlier run have names that begin with `before_`.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from nddup.engines.engine import Engine
from nddup.matching.threshold import Threshold
from nddup.stages.family_names import list_members, match_batches, name_families, name_first
from nddup.stages.label_components import label_documents, make_seen
from nddup.tables import DOCUMENTS, KEEP, working

MATCHED_SETS = working("matched_sets", "name string, doc_id string", "Later sets that are earlier ones.")

ROW = tuple(name for name in DOCUMENTS.names if name not in ("doc_id", "doc_key", "sketch", "signature"))
"""Columns of `documents` that are compared. `doc_key` shifts when other records come in."""

NO_DIGEST = "CAST(NULL AS STRING)"

DIGEST = "md5(concat(CAST(d.sketch AS STRING), coalesce(CAST(d.signature AS STRING), '')))"
"""Compared where settings or versions differ; else sketches follow from the other columns."""

DIFFERING = """
    SELECT coalesce(a.doc_id, b.doc_id) AS doc_id, a.doc_id IS NOT NULL AS was_there, b.doc_id IS NOT NULL AS is_there,
           a.content_fingerprint IS DISTINCT FROM b.content_fingerprint AS has_text,
           {values} AS has_values, {row} AS has_row, {kept} AS has_keep,
           m.kept AS kept_before, n.kept AS kept_after,
           m.duplicate_of AS duplicate_of_before, n.duplicate_of AS duplicate_of_after,
           m.kept IS DISTINCT FROM n.kept OR m.duplicate_of IS DISTINCT FROM n.duplicate_of AS has_verdict
    FROM before_documents AS a FULL OUTER JOIN ({later}) AS b ON a.doc_id = b.doc_id
    LEFT JOIN before_keep AS m ON a.doc_id = m.doc_id LEFT JOIN keep AS n ON b.doc_id = n.doc_id
    WHERE a.doc_id IS NULL OR b.doc_id IS NULL OR {row} OR {kept}
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
    SELECT d.doc_id, d.doc_key, coalesce(l.root, d.doc_key) AS root
    FROM {before}documents AS d LEFT JOIN {labels} AS l ON d.doc_key = l.node
"""

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
    SELECT d.doc_id,
           CASE WHEN NOT d.was_there THEN 'added' WHEN NOT d.is_there THEN 'gone' WHEN d.has_text THEN 'text'
                WHEN d.has_verdict THEN 'verdict' ELSE 'row' END AS change,
           d.kept_before, d.kept_after, d.duplicate_of_before, d.duplicate_of_after,
           CASE WHEN NOT d.has_verdict OR NOT d.was_there OR NOT d.is_there THEN CAST(NULL AS STRING)
                WHEN d.has_text THEN 'text' WHEN d.has_values OR f.doc_id IS NOT NULL THEN 'values'
                ELSE {others} END AS cause
    FROM differing AS d LEFT JOIN reforced AS f ON d.doc_id = f.doc_id {joined}
"""

OTHERS = "CASE WHEN t.doc_id IS NOT NULL THEN 'neighbours' WHEN o.doc_id IS NOT NULL THEN 'order' ELSE {last} END"

JOINED = "LEFT JOIN near_touched AS t ON d.doc_id = t.doc_id LEFT JOIN reordered AS o ON d.doc_id = o.doc_id"

LATER = """
    SELECT r.* FROM {name} AS r SEMI JOIN (SELECT doc_id FROM differing WHERE {has} AND is_there) AS d
        ON r.doc_id = d.doc_id
"""
"""The rows of the later run that the earlier one lacks."""

PAIRS = """
    SELECT b.doc_a, b.doc_b, 'won' AS change, b.overlap, b.resemblance
    FROM pairs AS b ANTI JOIN before_pairs AS a ON a.doc_a = b.doc_a AND a.doc_b = b.doc_b
    UNION ALL
    SELECT a.doc_a, a.doc_b, 'lost' AS change, a.overlap, a.resemblance
    FROM before_pairs AS a ANTI JOIN pairs AS b ON a.doc_a = b.doc_a AND a.doc_b = b.doc_b
"""

NAMED_MEMBERS = """
    SELECT m.doc_id, n.name FROM {before}family_members AS m JOIN {names} AS n ON m.head = n.doc_id
"""

MOVED = """
    SELECT DISTINCT name FROM (
        SELECT coalesce(a.name, b.name) AS name, b.name AS other
        FROM before_grouped AS a FULL OUTER JOIN grouped AS b ON a.doc_id = b.doc_id AND a.name = b.name
        WHERE a.name IS NULL OR b.name IS NULL
    ) AS apart
"""
"""The names whose documents differ."""

OTHER_HEADS = """
    SELECT a.name FROM before_names AS a JOIN live_names AS b ON a.name = b.name WHERE a.doc_id <> b.doc_id
"""
"""Families with another kept document."""

GROUPS = """
    WITH lefts AS (
        SELECT g.doc_id, g.name FROM before_{sets}grouped AS g SEMI JOIN {sets}moved AS m ON g.name = m.name
    ),
    rights AS (SELECT g.doc_id, g.name FROM {sets}grouped AS g SEMI JOIN {sets}moved AS m ON g.name = m.name),
    earlier_sizes AS (SELECT name, count(*) AS n FROM lefts GROUP BY name),
    later_sizes AS (SELECT name, count(*) AS n FROM rights GROUP BY name),
    met AS (
        SELECT l.name, r.name AS later, count(*) AS n FROM lefts AS l JOIN rights AS r ON l.doc_id = r.doc_id
        GROUP BY l.name, r.name
    ),
    stays AS (SELECT name, n FROM met WHERE name = later),
    gives AS (SELECT name, count(*) AS n FROM met GROUP BY name),
    takes AS (SELECT later, count(*) AS n FROM met GROUP BY later),
    counted AS (
        SELECT m.name, coalesce(a.n, 0) AS before, coalesce(b.n, 0) AS after, coalesce(s.n, 0) AS stay,
               coalesce(t.n, 0) AS takes_from, coalesce(g.n, 0) AS gives_to
        FROM {sets}moved AS m LEFT JOIN earlier_sizes AS a ON m.name = a.name
        LEFT JOIN later_sizes AS b ON m.name = b.name
        LEFT JOIN stays AS s ON m.name = s.name LEFT JOIN gives AS g ON m.name = g.name
        LEFT JOIN takes AS t ON m.name = t.later
    )
    SELECT c.name,
           CASE WHEN c.before = 0 THEN 'born' WHEN c.after = 0 THEN 'gone' WHEN c.gives_to > 1 THEN 'split'
                WHEN c.takes_from > 1 THEN 'merged' WHEN c.after > c.before THEN 'grown'
                WHEN c.after < c.before THEN 'shrunk' ELSE 'changed' END AS change,
           c.before, c.after, c.after - c.stay AS came, c.before - c.stay AS went, c.takes_from, c.gives_to,
           n.doc_id AS {last}
    FROM counted AS c LEFT JOIN {names} AS n ON c.name = n.name
"""
"""The rows of FAMILY_CHANGES, or of SET_CHANGES. A document that stays is in `moved` groups alone if its group differs,
so `takes_from` and `gives_to` count all that differ, and the group itself."""

SETS = """
    SELECT m.cluster_id, m.doc_id FROM {before}members AS m
    ANTI JOIN (SELECT DISTINCT cluster_id FROM {other}members) AS o ON m.cluster_id = o.cluster_id
"""
"""The members of the clusters that only one run has."""

SET_OVERLAPS = """
    WITH sized AS (SELECT cluster_id, count(*) AS n FROM own_sets GROUP BY cluster_id)
    SELECT 0 AS one, a.cluster_id AS name, b.cluster_id AS head, b.cluster_id AS least, count(*) AS shared,
           max(s.n) AS size
    FROM before_own_sets AS a JOIN own_sets AS b ON a.doc_id = b.doc_id JOIN sized AS s ON b.cluster_id = s.cluster_id
    GROUP BY a.cluster_id, b.cluster_id
"""

SET_NAMES = """
    SELECT coalesce(m.name, s.cluster_id) AS name, s.cluster_id AS doc_id
    FROM (SELECT DISTINCT cluster_id FROM own_sets) AS s LEFT JOIN matched_sets AS m ON s.cluster_id = m.doc_id
"""

SET_GROUPED = "SELECT s.doc_id, n.name FROM own_sets AS s JOIN set_names AS n ON s.cluster_id = n.doc_id"

APPLIED = {
    "documents": """
        SELECT {row} FROM before_documents AS d ANTI JOIN (
            SELECT doc_id FROM changes WHERE change = 'gone' UNION SELECT doc_id FROM later_rows
        ) AS c ON d.doc_id = c.doc_id
        UNION ALL SELECT {row} FROM later_rows AS d
    """,
    "keep": """
        SELECT {keep} FROM before_keep AS d ANTI JOIN (
            SELECT doc_id FROM changes WHERE change = 'gone' UNION SELECT doc_id FROM later_keep
        ) AS c ON d.doc_id = c.doc_id
        UNION ALL SELECT {keep} FROM later_keep AS d
    """,
    "families": """
        SELECT d.name, d.doc_id, d.documents FROM before_families AS d ANTI JOIN family_changes AS c ON d.name = c.name
        UNION ALL SELECT c.name, c.doc_id, c.after AS documents FROM family_changes AS c WHERE c.after > 0
    """,
}
"""What the tables of the earlier run become when a diff is applied to them."""

FAMILIES = """
    SELECT n.name, n.doc_id, m.documents
    FROM {names} AS n JOIN (SELECT head, count(*) AS documents FROM {before}family_members GROUP BY head) AS m
        ON n.doc_id = m.head
"""
"""The families of a run: name, kept document, number of documents."""


class DiffRule(NamedTuple):
    """What is known of two runs before their tables are compared."""

    before: Threshold
    after: Threshold
    """When two sketches of each run are near-duplicates, or candidates."""

    same_settings: bool
    """Whether all settings that decide verdicts are the same."""

    same_versions: bool

    same_columns: bool
    """Whether keep.policy and keep.same read the same columns, so that their values can be compared."""

    by_source: bool
    """Whether keep.prefer or keep.same looks at the source."""

    @property
    def has_digests(self) -> bool:
        """Whether sketches may differ where nothing else does."""
        return not (self.same_settings and self.same_versions)

    def rows(self, *, sketch: bool = False) -> str:
        """Return the query for the documents of one run, as `before_documents` has them.

        Args:
            sketch: whether with the sketches, which `label_documents` reads of components given by leaders.
        """
        columns = ["doc_id", "doc_key", *ROW, *(["sketch"] if sketch else [])]
        digest = DIGEST if self.has_digests else NO_DIGEST
        return f"SELECT {_listed(columns)}, {digest} AS digest FROM documents AS d"  # noqa: S608 - our names


def see_names(engine: Engine, *, before: bool, after: bool) -> None:
    """Name the families of both runs.

    Args:
        engine: with both `keep`, and `before_documents`. It gets `before_names` and `live_names`.
        before: whether it has `before_names` already, as the earlier run stored them.
        after: whether the later run has `names`.
    """
    for prefix in ("before_", ""):
        list_members(engine, before=prefix)
    if not before:
        name_first(engine, "before_names", before="before_")
    if after:
        engine.keep("live_names", "SELECT name, doc_id FROM names WHERE doc_id IS NOT NULL")
    else:
        name_families(engine)


def diff_runs(engine: Engine, rule: DiffRule) -> None:
    """Make the tables of a diff.

    Args:
        engine: with `documents`, `pairs`, `keep` and `members` of the later run; `before_documents` (`DiffRule.rows`),
            `before_pairs`, `before_keep` and `before_members` of the earlier one; the names of both (`see_names`); and
            `reforced` (doc_id), the documents that keep.force names in one run alone, or otherwise. It gets `changes`,
            `pair_changes`, `family_changes`, `set_changes`, and `later_rows` and `later_keep`, the rows of the later
            `documents` and `keep` that the earlier run lacks.
        rule: what is known of the runs.

    Cost: joins of narrow rows, on Spark sort-merged: two shuffles of `documents` and `pairs`, one of `keep`. Where the
        settings are the same and verdicts differ, the components of both runs as well (`label_documents`).
    """
    decide = ["url", "date", *(["policy"] if rule.same_columns else []), *(["source"] if rule.by_source else [])]
    compared = (*ROW, "digest") if rule.has_digests else ROW
    row, kept = _differ(compared, "a", "b"), _differ(KEEP.names[1:], "m", "n")
    engine.keep("differing", DIFFERING.format(values=_differ(decide, "a", "b"), row=row, kept=kept, later=rule.rows()))
    engine.keep("touched", TOUCHED)
    _find_causes(engine, rule)
    engine.keep("later_rows", LATER.format(name="documents", has="has_row"))
    engine.keep("later_keep", LATER.format(name="keep", has="has_keep"))
    engine.keep("pair_changes", PAIRS)
    _find_groups(engine)


def apply_diff(engine: Engine, name: str) -> str:
    """Return the query for a table of the later run, made of the earlier run's and the diff.

    Args:
        engine: as `diff_runs` leaves it.
        name: `documents`, without `doc_key`, `sketch` and `signature`; `keep`; or `families`: name, kept document,
            number of documents.
    """
    if name == "families":
        engine.keep("before_families", FAMILIES.format(names="before_names", before="before_"))
    return APPLIED[name].format(row=_listed(["doc_id", *ROW]), keep=_listed(KEEP.names))


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(f"d.{name}" for name in columns)


def _differ(columns: Sequence[str], one: str, other: str) -> str:
    """Return the condition that a column differs, null being equal to null."""
    return "(" + " OR ".join(f"{one}.{name} IS DISTINCT FROM {other}.{name}" for name in columns) + ")"


def _find_causes(engine: Engine, rule: DiffRule) -> None:
    """Make `changes`. Only verdicts that no cause of their own explains need the components."""
    engine.keep("open_verdicts", OPEN)
    if not rule.same_settings or not engine.count("open_verdicts", {"n": "count(*)"})["n"]:
        engine.keep("changes", CHANGED.format(others="'settings'", joined=""))
        return
    for before, threshold in (("before_", rule.before), ("", rule.after)):
        labels = label_documents(engine, threshold, before=before)
        engine.keep(f"{before}rooted", ROOTED.format(before=before, labels=labels))
    engine.keep("near_touched", " UNION ".join(NEAR_TOUCHED.format(before=before) for before in ("before_", "")))
    engine.keep(
        "untouched", "SELECT o.doc_id FROM open_verdicts AS o ANTI JOIN near_touched AS t ON o.doc_id = t.doc_id"
    )
    for before in ("before_", ""):
        engine.keep(f"{before}turns", TURNS.format(before=before))
    engine.keep("reordered", REORDERED)
    last = "'other'" if rule.same_versions else "'version'"
    engine.keep("changes", CHANGED.format(others=OTHERS.format(last=last), joined=JOINED))


def _find_groups(engine: Engine) -> None:
    """Make `family_changes` and `set_changes`, by the same query over the members of what differs."""
    for before, names in (("before_", "before_names"), ("", "live_names")):
        engine.keep(f"{before}grouped", NAMED_MEMBERS.format(before=before, names=names))
    engine.keep("moved", f"{MOVED} UNION {OTHER_HEADS}")
    engine.keep("family_changes", _groups("", "live_names", "doc_id"))

    engine.keep("before_own_sets", SETS.format(before="before_", other=""))
    engine.keep("own_sets", SETS.format(before="", other="before_"))
    make_seen(engine, MATCHED_SETS, SET_OVERLAPS, partial(match_batches, table=MATCHED_SETS), by=("one",))
    engine.keep("set_names", SET_NAMES)
    engine.keep("before_set_grouped", "SELECT doc_id, cluster_id AS name FROM before_own_sets")
    engine.keep(
        "set_grouped", "SELECT s.doc_id, n.name FROM own_sets AS s JOIN set_names AS n ON s.cluster_id = n.doc_id"
    )
    engine.keep("set_moved", "SELECT name FROM before_set_grouped UNION SELECT name FROM set_grouped")
    engine.keep("set_changes", _groups("set_", "set_names", "cluster_id"))


def _groups(sets: str, names: str, last: str) -> str:
    return GROUPS.format(sets=sets, names=names, last=last)
