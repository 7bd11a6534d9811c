"""Proof of `keep`: no two kept documents are near-duplicates, and every removed one is a duplicate of a kept one.

    truth, keeping     --weigh-->           offers       the kept near-duplicates of each probe
    offers             --BEST-->            best         the first of them by policy, and the most alike
    offers, keeping    --too_near, BROKEN--> violations   documents that break the keep promise
    offers, keeping    --ABANDONED-->        violations   the same for a frozen repository
    keeping            --WRONG_REASONS-->   violations   rows that contradict themselves
    keep, members      --WRONG_STARS-->     violations   clusters of a partition that differ from the keep-list

`truth` and the probes are those of `prove_pairs`.
"""

from nddup.checking.prove_pairs import Violations, is_before, least_size
from nddup.verifying.definitions import Rule

KEEPING = """
    SELECT d.doc_id, d.node, d.size, d.content, d.weight, d.rank, k.kept, k.duplicate_of, k.reason
    FROM docs AS d JOIN keep AS k ON d.doc_id = k.doc_id
"""
"""The documents with their rows of `keep`."""


def weigh(rule: Rule) -> str:
    """Return the SELECT of the kept near-duplicates of each probe, which may remove its documents.

    A kept document may also remove documents of its own node, which have the same sketch.

    Returns:
        A SELECT from truth, keeping and probes: node, doc_id, weight, rank, likeness.
    """
    return f"""
        SELECT t.probe AS node, k.doc_id, k.weight, k.rank, t.likeness
        FROM truth AS t JOIN keeping AS k ON t.other = k.node WHERE t.covers AND k.kept
        UNION ALL
        SELECT node, doc_id, weight, rank, CAST(1 AS DOUBLE) AS likeness
        FROM keeping SEMI JOIN probes USING (node) WHERE kept AND size >= {least_size(rule):d}
    """  # noqa: S608 - a number


BEST = """
    SELECT node, min_by(weight, (weight, rank, doc_id)) AS weight, min_by(rank, (weight, rank, doc_id)) AS rank,
           min_by(doc_id, (weight, rank, doc_id)) AS doc_id, min_by(doc_id, (-likeness, weight, rank, doc_id)) AS likest
    FROM offers GROUP BY node
"""
"""For each node, the first of its offers by policy (weight, rank, doc_id), and the one of highest resemblance, or for
containment the one that contains most of the removed document; ties by policy."""


def too_near(rule: Rule) -> Violations:
    """Return the kept documents that are near-duplicates; for containment, those that an earlier kept one contains."""
    earlier = f"AND {is_before('o', 'k')}" if rule.is_containment else ""
    text = f"""
        SELECT DISTINCT least(k.doc_id, o.doc_id) AS doc_a, greatest(k.doc_id, o.doc_id) AS doc_b
        FROM keeping AS k JOIN offers AS o ON k.node = o.node WHERE k.kept AND k.doc_id <> o.doc_id {earlier}
    """  # noqa: S608 - the text above
    return Violations(text, "{doc_a} / {doc_b}: both kept")


BROKEN = Violations(
    f"""
    SELECT * FROM (
        SELECT k.doc_id, k.duplicate_of, b.likest,
               CASE WHEN b.node IS NULL THEN 'alone' WHEN NOT {is_before("b", "k")} THEN 'first'
                    WHEN k.duplicate_of IS DISTINCT FROM b.likest THEN 'other' END AS what
        FROM keeping AS k SEMI JOIN probes AS p ON k.node = p.node LEFT JOIN best AS b ON k.node = b.node
        WHERE NOT k.kept
    ) AS removed WHERE what IS NOT NULL
    """,  # noqa: S608 - the text above
    {
        "alone": "{doc_id}: removed, no near-duplicate of it is kept",
        "first": "{doc_id}: removed, but preferred to all its kept near-duplicates",
        "other": "{doc_id}: duplicate_of {duplicate_of}, the best is {likest}",
    },
)
"""Removed documents to which no kept near-duplicate is preferred, or whose duplicate_of is not the most alike."""

ABANDONED = Violations(
    """
    SELECT * FROM (
        SELECT k.doc_id, k.duplicate_of,
               CASE WHEN b.node IS NULL THEN 'alone' WHEN o.doc_id IS NULL THEN 'strange' END AS what
        FROM keeping AS k SEMI JOIN probes AS p ON k.node = p.node LEFT JOIN best AS b ON k.node = b.node
        LEFT JOIN (SELECT DISTINCT node, doc_id FROM offers) AS o ON k.node = o.node AND k.duplicate_of = o.doc_id
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
                    WHEN kept THEN CASE WHEN duplicate_of IS NOT NULL OR reason IS NOT NULL THEN 'kept' END
                    WHEN duplicate_of IS NULL THEN 'removed'
                    WHEN other_kept IS NOT TRUE THEN 'lost'
                    WHEN reason IS DISTINCT FROM due THEN 'reason' END AS what
        FROM (
            SELECT k.*, o.kept AS other_kept,
                   CASE WHEN k.content = o.content THEN 'exact' WHEN k.node = o.node THEN 'equal' ELSE 'near' END AS due
            FROM keeping AS k LEFT JOIN keeping AS o ON k.duplicate_of = o.doc_id
        ) AS met
    ) AS judged WHERE what IS NOT NULL
    """,
    {
        "silent": "{doc_id}: neither kept nor removed",
        "kept": "{doc_id}: kept, with a duplicate_of or a reason",
        "removed": "{doc_id}: removed without duplicate_of",
        "lost": "{doc_id}: its duplicate_of {duplicate_of} is not kept",
        "reason": "{doc_id}: reason {reason}, should be {due}",
    },
)
"""Rows of `keep` whose kept, duplicate_of and reason contradict each other, among all documents."""

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

STARS = "SELECT doc_id, coalesce(duplicate_of, doc_id) AS star FROM keep"
"""Each document with the kept one of its star."""
