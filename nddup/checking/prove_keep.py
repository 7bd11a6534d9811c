"""Proof of `keep` and `families`: what is kept, what replaces each removed document, which lead, what families count.

recounted, keeping   --weigh-->           offers       the kept near-duplicates of each probe (`prove_pairs`)
offers, keeping      --BEST-->            best         for each removed document the most alike that may replace it
offers, keeping      --too_near, broken--> violations  of the keep promise; ABANDONED: of a frozen repository
keeping, commons     --wrong_losses-->    violations   documents that lose another share than stored, or too much
keeping              --ACROSS, WRONG_REASONS--> violations  other values; rows that contradict themselves
folded, keep, members --wrong_leaders, WRONG_STARS--> violations  documents that lead wrongly, clusters that differ
keep, documents      --IN_FAMILIES-->     in_families  each document of a family, with what its row counts
in_families, families --WRONG_NUMBERS, wrong_values, wrong_extremes--> violations  of families counted again
"""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from nddup.checking.prove_documents import IS_NUMBER
from nddup.checking.prove_pairs import TOLERANCE, Violations, is_before, least_size
from nddup.verifying.definitions import Definition


class Losing(NamedTuple):
    """The promise on what removal loses: a removed document lacks at most `numerator / denominator` of itself."""

    numerator: int
    denominator: int


COMMONS = "SELECT node_a, node_b, common FROM folded WHERE node_a <> node_b AND common IS NOT NULL"
"""The common shingles of two nodes, as in `pairs`; that they fit the resemblance is proved there."""

KEEPING = """
    SELECT d.doc_id, d.node, d.size, d.content, d.weight, d.rank, d.class, k.kept, k.duplicate_of, k.reason,
           k.resemblance, k.lost, k.leader, t.n_features, {guard} AS guard
    FROM docs AS d JOIN keep AS k ON d.doc_id = k.doc_id JOIN documents AS t ON d.doc_id = t.doc_id
"""
"""The documents with their rows of `keep`; `guard` is equal where the values in the columns of `keep.same` are."""

ACROSS = Violations(
    """
    SELECT k.doc_id, k.duplicate_of FROM keeping AS k JOIN keeping AS o ON k.duplicate_of = o.doc_id
    WHERE k.guard <> o.guard
    """,
    "{doc_id}: duplicate_of {duplicate_of}, which has other values",
)
"""Removed documents whose kept one has other values in the columns of `keep.same`."""


LEADERS = "SELECT DISTINCT node FROM keeping WHERE coalesce(leader, kept)"
"""The nodes with a document that leads. An earlier version stored no leaders: there all that led were kept."""

BOTH_WAYS = """
    SELECT node_a AS node, node_b AS other FROM folded WHERE node_a <> node_b
    UNION ALL
    SELECT node_b AS node, node_a AS other FROM folded WHERE node_a <> node_b
"""

LED = f"""
    SELECT DISTINCT f.node FROM ({BOTH_WAYS}) AS f JOIN leader_nodes AS l ON f.other = l.node
    JOIN heads AS h ON f.node = h.node JOIN heads AS o ON f.other = o.node
    WHERE {is_before("o", "h")} AND f.node NOT IN (SELECT node FROM leader_nodes)
"""  # noqa: S608 - the text above
"""The nodes that follow a leader: `pairs` has one with a leader before them."""

LED_AREA = "SELECT node FROM led_nodes UNION SELECT node FROM leader_nodes"

HEADS = """
    SELECT node, min_by(weight, (weight, rank, doc_id)) AS weight, min_by(rank, (weight, rank, doc_id)) AS rank,
           min_by(doc_id, (weight, rank, doc_id)) AS doc_id, min(class) AS class,
           CAST(min(n_features) AS BIGINT) AS n_features
    FROM keeping GROUP BY node
"""
"""The first document of each node by the policy, and what all documents of the node have in common."""

BEST = f"""
    SELECT k.doc_id, min_by(o.doc_id, (-o.likeness, o.weight, o.rank, o.doc_id)) AS likest
    FROM keeping AS k JOIN offers AS o ON k.node = o.node AND k.guard = o.guard
    WHERE NOT k.kept AND (o.fits OR k.class = 1) AND {is_before("o", "k")} GROUP BY k.doc_id
"""  # noqa: S608 - the text above
"""For each removed document, of the kept ones that may replace it the one of highest resemblance, or for containment
the one that contains most of it; ties by policy. A document that is forced out may lose all."""

ABANDONED = Violations(
    """
    SELECT * FROM (
        SELECT k.doc_id, k.duplicate_of,
               CASE WHEN a.node IS NULL THEN 'alone' WHEN o.doc_id IS NULL THEN 'strange' END AS what
        FROM keeping AS k SEMI JOIN probes AS p ON k.node = p.node
        LEFT JOIN (SELECT DISTINCT node, guard FROM offers) AS a ON k.node = a.node AND k.guard = a.guard
        LEFT JOIN (SELECT DISTINCT node, guard, doc_id FROM offers) AS o
        ON k.node = o.node AND k.guard = o.guard AND k.duplicate_of = o.doc_id
        WHERE NOT k.kept
    ) AS removed WHERE what IS NOT NULL
    """,
    {
        "alone": "{doc_id}: removed, no near-duplicate of it is kept",
        "strange": "{doc_id}: duplicate_of {duplicate_of}, which is no kept near-duplicate of it",
    },
)
"""Removed documents of a frozen repository without a kept near-duplicate, or whose duplicate_of is none.

There a kept document stays kept, and `duplicate_of` names it, when one arrives that is preferred or more alike."""

WRONG_REASONS = Violations(
    """
    SELECT * FROM (
        SELECT doc_id, duplicate_of, reason, due,
               CASE WHEN kept IS NULL THEN 'silent'
                    WHEN class = CASE WHEN kept THEN 1 ELSE -1 END THEN 'force'
                    WHEN kept THEN CASE WHEN duplicate_of IS NOT NULL OR reason IS NOT NULL THEN 'kept' END
                    WHEN duplicate_of IS NULL AND class = 0 THEN 'removed'
                    WHEN duplicate_of IS NOT NULL AND other_kept IS NOT TRUE THEN 'lost'
                    WHEN reason IS DISTINCT FROM due THEN 'reason' END AS what
        FROM (
            SELECT k.*, o.kept AS other_kept,
                   CASE WHEN k.class = 1 THEN 'forced' WHEN k.content = o.content THEN 'exact'
                        WHEN k.node = o.node THEN 'equal' ELSE 'near' END AS due
            FROM keeping AS k LEFT JOIN keeping AS o ON k.duplicate_of = o.doc_id
        ) AS met
    ) AS judged WHERE what IS NOT NULL
    """,
    {
        "silent": "{doc_id}: neither kept nor removed",
        "force": "{doc_id}: kept is {kept}, keep.force says otherwise",
        "kept": "{doc_id}: kept, with a duplicate_of or a reason",
        "removed": "{doc_id}: removed without duplicate_of",
        "lost": "{doc_id}: its duplicate_of {duplicate_of} is not kept",
        "reason": "{doc_id}: reason {reason}, should be {due}",
    },
)
"""Rows of `keep` whose kept, duplicate_of and reason contradict each other, among all documents."""

WRONG_LIKENESS = Violations(
    f"""
    SELECT * FROM (
        SELECT k.doc_id, k.duplicate_of, k.resemblance,
               CASE WHEN k.node = o.node THEN CAST(1 AS DOUBLE) ELSE f.most END AS due
        FROM keeping AS k LEFT JOIN keeping AS o ON k.duplicate_of = o.doc_id
        LEFT JOIN folded AS f
        ON k.node <> o.node AND least(k.node, o.node) = f.node_a AND greatest(k.node, o.node) = f.node_b
    ) AS met WHERE coalesce(abs(resemblance - due) > {TOLERANCE}, resemblance IS DISTINCT FROM due)
    """,  # noqa: S608 - the text above
    "{doc_id}: resemblance {resemblance} to {duplicate_of}, of their pair {due}",
)
"""Rows of `keep` whose resemblance is not that of the pair of both documents, which `pairs` must have."""

WRONG_STARS = Violations(
    """
    SELECT * FROM (
        SELECT star, h.cluster_id, h.other, h.strange, h.n, d.due,
               CASE WHEN h.cluster_id IS NULL THEN 'missing' ELSE 'no star' END AS what
        FROM (
            SELECT m.cluster_id, min(s.star) AS star, max(s.star) AS other, count(*) AS n,
                   count_if(s.star IS NULL) AS strange
            FROM members AS m LEFT JOIN stars AS s ON m.doc_id = s.doc_id GROUP BY m.cluster_id
        ) AS h
        FULL JOIN (SELECT star, count(*) AS due FROM stars GROUP BY star HAVING count(*) > 1) AS d USING (star)
    ) AS met WHERE (cluster_id IS NOT NULL AND star = other AND strange = 0 AND n = due) IS NOT TRUE
    """,
    {
        "missing": "{star}: no cluster of this document and its duplicates",
        "no star": "{cluster_id}: not a kept document with all its duplicates",
    },
)
"""Differences between a partition and the keep-list: each kept document and its duplicates are one cluster, a star."""

STARS = "SELECT doc_id, coalesce(duplicate_of, doc_id) AS star FROM keeping WHERE size > 0"
"""Each document with the kept one of its star; those of equal contents without a feature are in no cluster."""


MOST = 100
"""Values of a column that a family lists."""

IS_DATE = "regexp_like({0}, '^[0-9]{{4}}-[0-9]{{2}}(-[0-9]{{2}})?([T ].*)?$')"

KEY = "CASE WHEN {0} IS NULL THEN '' ELSE concat('=', {0}) END"

IN_FAMILIES = """
    SELECT o.doc_id AS stands, k.lost, k.resemblance, d.group = o.group AS is_equal, d.source, d.policy
    FROM keep AS k JOIN documents AS d ON k.doc_id = d.doc_id
    JOIN documents AS o ON o.doc_id = CASE WHEN k.kept THEN k.doc_id ELSE k.duplicate_of END
"""

WRONG_NUMBERS = Violations(
    """
    SELECT * FROM (
        SELECT coalesce(f.doc_id, r.stands) AS doc_id, f.documents, r.documents AS due,
               CASE WHEN r.stands IS NULL THEN 'strange' WHEN f.doc_id IS NULL THEN 'missing'
                    WHEN f.documents IS DISTINCT FROM r.documents THEN 'documents'
                    WHEN f.equal IS DISTINCT FROM r.equal OR f.lost_most IS DISTINCT FROM r.lost_most
                         OR f.resemblance_least IS DISTINCT FROM r.resemblance_least THEN 'numbers' END AS what
        FROM families AS f FULL JOIN (
            SELECT stands, count(*) AS documents, count_if(is_equal) AS equal, max(lost) AS lost_most,
                   min(resemblance) AS resemblance_least FROM in_families GROUP BY stands
        ) AS r ON f.doc_id = r.stands
    ) AS compared WHERE what IS NOT NULL
    """,
    {
        "strange": "{doc_id}: a family, but no document stands for itself there",
        "missing": "{doc_id}: kept, without a family",
        "documents": "{doc_id}: {documents} documents, counted {due}",
        "numbers": "{doc_id}: equal, lost_most or resemblance_least is another",
    },
)


def list_keeping(same: Sequence[int | None]) -> str:
    """Return the SELECT of `KEEPING`; `same`: the columns of `keep.same`, places in `policy`, None for the source."""
    values = ["t.source" if place is None else f"element_at(t.policy, {place + 1})" for place in same]
    marks = [
        f"CASE WHEN {value} IS NULL THEN '' ELSE concat('=', replace(replace({value}, '!', '!!'), '|', '!-')) END"
        for value in values
    ]
    return KEEPING.format(guard=f"concat_ws('|', {', '.join(marks)})" if marks else "''")


def weigh(rule: Definition, losing: Losing | None = None, *, table: str = "recounted") -> str:
    """Return the SELECT of the kept near-duplicates of each probe, which may replace its documents.

    A kept document may also replace documents of its own node, which have the same sketch.

    Returns:
        A SELECT from that, keeping, probes and, with `losing`, commons and heads: node, doc_id, weight, rank, class,
        likeness, fits, guard. `fits`: whether the probe loses little enough for it.
    """
    fits, also = "true", ""
    if losing is not None:
        # Exact for pairs that are not listed too: their resemblance is the quotient of the same whole numbers.
        shared = "CAST(round(t.likeness * (h.n_features + k.n_features) / (1 + t.likeness)) AS BIGINT)"
        fits = (
            f"(h.n_features - coalesce(c.common, {shared})) * {losing.denominator:d}"
            f" <= h.n_features * CAST({losing.numerator:d} AS BIGINT)"
        )
        also = """
            JOIN heads AS h ON t.probe = h.node
            LEFT JOIN commons AS c ON least(t.probe, t.other) = c.node_a AND greatest(t.probe, t.other) = c.node_b
        """
    return f"""
        SELECT t.probe AS node, k.doc_id, k.weight, k.rank, k.class, t.likeness, coalesce({fits}, false) AS fits,
               k.guard
        FROM {table} AS t JOIN keeping AS k ON t.other = k.node {also} WHERE t.covers AND k.kept
        UNION ALL
        SELECT node, doc_id, weight, rank, class, CAST(1 AS DOUBLE) AS likeness, true AS fits, guard
        FROM keeping SEMI JOIN probes USING (node) WHERE kept AND size >= {least_size(rule):d}
    """  # noqa: S608 - a number


class Excused(NamedTuple):
    """Whether documents in components given by leaders were compared with few kept ones: more may be kept there."""

    is_limited: bool

    def at(self, row: str) -> str:
        """Return the SQL condition that a row may differ from what a comparison with all kept ones gives."""
        return f"{row}.node IN (SELECT node FROM led_area)" if self.is_limited else "false"  # noqa: S608 - an alias


def too_near(rule: Definition, excused: Excused, *, is_frozen: bool = False) -> Violations:
    """Return the kept documents that a kept one before them may replace; for a frozen order, that are near-duplicates.

    Documents that `keep.force` keeps may be near each other.
    """
    earlier = "" if is_frozen and not rule.is_containment else f"AND {is_before('o', 'k')}"
    text = f"""
        SELECT DISTINCT least(k.doc_id, o.doc_id) AS doc_a, greatest(k.doc_id, o.doc_id) AS doc_b
        FROM keeping AS k JOIN offers AS o ON k.node = o.node AND k.guard = o.guard
        WHERE k.kept AND k.doc_id <> o.doc_id AND k.class >= 0 AND o.fits {earlier} AND NOT {excused.at("k")}
    """  # noqa: S608 - the text above
    return Violations(text, "{doc_a} / {doc_b}: both kept")


def broken(excused: Excused) -> Violations:
    """Return the removed documents that nothing before them may replace, or whose `duplicate_of` is not the best.

    Where few were compared, it need not be the best, but one that may replace the document.
    """
    text = f"""
        SELECT * FROM (
            SELECT k.doc_id, k.duplicate_of, b.likest,
                   CASE WHEN k.class <> 1 AND b.doc_id IS NULL
                             THEN CASE WHEN a.node IS NULL THEN 'alone' ELSE 'first' END
                        WHEN {excused.at("k")} THEN
                             CASE WHEN o.doc_id IS NULL AND k.duplicate_of IS NOT NULL THEN 'strange' END
                        WHEN k.duplicate_of IS DISTINCT FROM b.likest THEN 'other' END AS what
            FROM keeping AS k SEMI JOIN probes AS p ON k.node = p.node LEFT JOIN best AS b ON k.doc_id = b.doc_id
            LEFT JOIN (SELECT DISTINCT node, guard FROM offers) AS a ON k.node = a.node AND k.guard = a.guard
            LEFT JOIN offers AS o ON k.node = o.node AND k.guard = o.guard AND k.duplicate_of = o.doc_id
                 AND (o.fits OR k.class = 1) AND {is_before("o", "k")}
            WHERE NOT k.kept
        ) AS removed WHERE what IS NOT NULL
    """  # noqa: S608 - the text above
    return Violations(
        text,
        {
            "alone": "{doc_id}: removed, no near-duplicate of it is kept",
            "first": "{doc_id}: removed, but no kept near-duplicate before it may replace it",
            "strange": "{doc_id}: duplicate_of {duplicate_of}, which must not replace it",
            "other": "{doc_id}: duplicate_of {duplicate_of}, the best is {likest}",
        },
    )


def wrong_leaders(*, is_led: bool) -> Violations:
    """Return the documents that lead beside a leader before them, or that should lead.

    Args:
        is_led: whether any component is given by leaders; else none may lead.
    """
    text = f"""
        WITH near AS (
            SELECT f.node, l.doc_id, l.weight, l.rank
            FROM ({BOTH_WAYS}) AS f JOIN keeping AS l ON f.other = l.node WHERE l.leader
            UNION ALL
            SELECT l.node, l.doc_id, l.weight, l.rank FROM keeping AS l WHERE l.leader AND l.size > 0
        ),
        met AS (
            SELECT k.doc_id, count(*) AS n, count_if({is_before("l", "k")}) AS earlier
            FROM keeping AS k JOIN near AS l ON k.node = l.node WHERE k.doc_id <> l.doc_id GROUP BY k.doc_id
        ),
        paired AS (SELECT node_a AS node FROM folded UNION SELECT node_b AS node FROM folded)
        SELECT * FROM (
            SELECT k.doc_id,
                   CASE WHEN k.leader IS NULL THEN 'silent'
                        WHEN k.leader AND {"false" if is_led else "true"} THEN 'unled'
                        WHEN k.leader AND p.node IS NULL THEN 'alone'
                        WHEN k.leader AND k.class >= 0 AND m.earlier > 0 THEN 'second'
                        WHEN NOT k.leader AND m.n > 0 AND (m.earlier = 0 OR k.class < 0) THEN 'due' END AS what
            FROM keeping AS k LEFT JOIN met AS m ON k.doc_id = m.doc_id LEFT JOIN paired AS p ON k.node = p.node
            WHERE k.size > 0
        ) AS judged WHERE what IS NOT NULL
    """  # noqa: S608 - the text above
    return Violations(
        text,
        {
            "silent": "{doc_id}: neither a leader nor none",
            "unled": "{doc_id}: leads, but no component has more pairs than pairs.max_edges",
            "alone": "{doc_id}: leads, but is in no pair",
            "second": "{doc_id}: leads, though a leader before it is near",
            "due": "{doc_id}: does not lead, though no leader before it is near, or keep.force keeps it",
        },
    )


def textless(*, is_frozen: bool) -> Violations:
    """Return the documents of an empty sketch that are not decided by their contents: of equal ones the first is kept.

    Args:
        is_frozen: whether any one of them may be the kept one.

    Where a user forced one of them, nothing is reported.
    """
    first = "max(CASE WHEN kept THEN doc_id END)" if is_frozen else "min_by(doc_id, (weight, rank, doc_id))"
    text = f"""
        SELECT k.doc_id, f.first FROM keeping AS k
        JOIN (SELECT node, guard, {first} AS first FROM keeping WHERE size = 0
              GROUP BY node, guard HAVING count_if(class <> 0) = 0) AS f ON k.node = f.node AND k.guard = f.guard
        WHERE k.size = 0 AND (k.kept AND k.doc_id = f.first OR NOT k.kept AND k.duplicate_of = f.first) IS NOT TRUE
    """  # noqa: S608 - the text above
    return Violations(text, "{doc_id}: of equal contents without a feature, {first} is due to be kept")


def wrong_losses(losing: Losing | None, *, by_sets: bool) -> Violations:
    """Return the rows of `keep` whose `lost` is not the share that the texts show, or is above the promised one.

    Args:
        losing: the promise on documents that are not forced out; None: no promise.
        by_sets: whether the shingles of texts were counted, so that documents of one node lose nothing.
    """
    of_equal = "CAST(0 AS DOUBLE)" if by_sets else "CASE WHEN k.content = o.content THEN CAST(0 AS DOUBLE) END"
    much = f"class = 0 AND lost > {losing.numerator:d} / CAST({losing.denominator:d} AS DOUBLE)" if losing else "false"
    text = f"""
        SELECT * FROM (
            SELECT doc_id, duplicate_of, lost, due,
                   CASE WHEN coalesce(abs(lost - due) > {TOLERANCE}, lost IS DISTINCT FROM due) THEN 'other'
                        WHEN {much} THEN 'much' END AS what
            FROM (
                SELECT k.doc_id, k.duplicate_of, k.lost, k.class,
                       CASE WHEN k.node = o.node THEN {of_equal}
                            ELSE (k.n_features - c.common) / CAST(k.n_features AS DOUBLE) END AS due
                FROM keeping AS k LEFT JOIN keeping AS o ON k.duplicate_of = o.doc_id
                LEFT JOIN commons AS c ON least(k.node, o.node) = c.node_a AND greatest(k.node, o.node) = c.node_b
            ) AS told
        ) AS judged WHERE what IS NOT NULL
    """  # noqa: S608 - numbers, and the text above
    says = {
        "other": "{doc_id}: lost {lost} for {duplicate_of}, recounted {due}",
        "much": "{doc_id}: loses {lost} for {duplicate_of}, more than keep.max_lost",
    }
    return Violations(text, says)


def list_values(places: Sequence[int | None]) -> str:
    """Return the SELECT of `counted_values`; the columns of `keep.ledger`: places in `policy`, None for the source."""
    values = ["source" if place is None else f"element_at(policy, {place + 1})" for place in places]
    counted = (
        f"SELECT stands, {at} AS place, {value} AS value, count(*) AS n FROM in_families GROUP BY stands, {value}"  # noqa: S608
        for at, value in enumerate(values)
    )
    return " UNION ALL ".join(counted)


def wrong_values(columns: Sequence[str]) -> Violations:
    """Return the values that `families.ledger` should not list, or should list otherwise."""
    return Violations(
        f"""
        SELECT * FROM (
            SELECT coalesce(a.doc_id, r.stands) AS doc_id, coalesce(a.value, r.value) AS value, a.n, r.n AS due,
                   CASE WHEN r.stands IS NULL OR (r.turn > {MOST} AND a.doc_id IS NOT NULL) THEN 'strange'
                        WHEN a.doc_id IS NULL AND r.turn <= {MOST} THEN 'missing'
                        WHEN a.n <> r.n THEN 'count'
                        WHEN NOT a.is_named OR a.many <> r.many THEN 'column' END AS what
            FROM (
                SELECT doc_id, place, is_named, many, v.value AS value, v.documents AS n
                FROM (SELECT doc_id, place, is_named, l.distinct AS many, explode(l.values) AS v
                      FROM ({_entries(columns)}) AS entries) AS exploded
            ) AS a FULL JOIN (
                SELECT stands, place, value, n, count(*) OVER (PARTITION BY stands, place) AS many,
                       row_number() OVER (PARTITION BY stands, place ORDER BY n DESC, value) AS turn
                FROM counted_values
            ) AS r ON a.doc_id = r.stands AND a.place = r.place
                   AND {KEY.format("a.value")} = {KEY.format("r.value")}
        ) AS compared WHERE what IS NOT NULL
        """,  # noqa: S608 - our names
        {
            "strange": "{doc_id}: lists {value}, which is no value of it, or none of the most frequent",
            "missing": "{doc_id}: does not list {value}, which {due} of its documents have",
            "count": "{doc_id}: {value} in {n} documents, counted {due}",
            "column": "{doc_id}: another name of a column, or number of its different values",
        },
    )


def wrong_extremes(columns: Sequence[str]) -> Violations:
    """Return the families whose least or greatest value in a column is another."""
    number = f"CASE WHEN {IS_NUMBER.format('trim(value)')} THEN try_cast(trim(value) AS DOUBLE) END"
    bounds = (("least", "min"), ("greatest", "max"))
    is_other = " OR ".join(f"try_cast(trim(l.{name}) AS DOUBLE) IS DISTINCT FROM r.{of}_number" for name, of in bounds)
    is_late = " OR ".join(f"l.{name} IS DISTINCT FROM r.{of}_text" for name, of in bounds)
    return Violations(
        f"""
        SELECT doc_id, l.least AS least, l.greatest AS greatest FROM ({_entries(columns)}) AS e JOIN (
            SELECT stands, place, count(value) AS valid, count({number}) AS numbers,
                   count_if({IS_DATE.format("value")}) AS dates, min({number}) AS min_number,
                   max({number}) AS max_number, min(value) AS min_text, max(value) AS max_text
            FROM counted_values GROUP BY stands, place
        ) AS r ON e.doc_id = r.stands AND e.place = r.place
        WHERE CASE WHEN valid > 0 AND numbers = valid THEN {is_other} WHEN valid > 0 AND dates = valid THEN {is_late}
                   ELSE l.least IS NOT NULL OR l.greatest IS NOT NULL END
        """,  # noqa: S608 - our names
        "{doc_id}: least {least}, greatest {greatest} of a column, which its documents do not have",
    )


def _entries(columns: Sequence[str]) -> str:
    """Return the SELECT of each column's entry in `ledger`; its name is compared by its digest, as it may be any."""
    return " UNION ALL ".join(
        f"SELECT doc_id, {at} AS place, element_at(ledger, {at + 1}) AS l,"  # noqa: S608 - numbers
        f" sha2(element_at(ledger, {at + 1}).name, 256) = '{hashlib.sha256(name.encode()).hexdigest()}' AS is_named"
        f" FROM families WHERE array_size(ledger) = {len(columns)}"
        for at, name in enumerate(columns)
    )
