"""Proof of `keep`: that no two kept documents are near-duplicates, and what every removed one was removed for.

    truth, keep     --weigh-->                      offers     the kept near-duplicates of each probe
    offers, keep    --crowded, broken_promises-->   problems   what breaks the keep promise
    keep            --wrong_reasons-->              problems   rows that contradict themselves
    keep, members   --wrong_stars-->                problems   clusters of a partition that differ from it

`truth` and the probes are those of `nddup.spark.checking.prove_pairs`.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.spark.checking.prove_documents import problem, text
from nddup.spark.checking.prove_pairs import is_near_itself
from nddup.verifying.definitions import Rule


def weigh(truth: DataFrame, keeping: DataFrame, probes: DataFrame, *, rule: Rule) -> DataFrame:
    """The kept near-duplicates of the documents of each probe.

    Schema in:   TRUTH; docs with kept, duplicate_of, reason; node
    Schema out:  node, id, preference, likeness; the ids that may remove a document of the node
    Shuffles:  the truth and the kept documents on node.    Actions:  none.
    """
    kept = keeping.where("kept")
    offered = kept.select(F.col("node").alias("other"), F.col("doc_id").alias("id"), "preference")
    covering = truth.where("covers")
    near = covering.join(offered, "other").select(F.col("probe").alias("node"), "id", "preference", "likeness")

    # A kept document may also remove documents of its own node: those with the same sketch.
    own = kept.where(is_near_itself(rule)).join(F.broadcast(probes), "node")
    return near.unionAll(own.select("node", F.col("doc_id").alias("id"), "preference", F.lit(1.0)))


def crowded(offers: DataFrame, keeping: DataFrame, rule: Rule) -> DataFrame:
    """Kept documents that are near-duplicates of each other; for containment, those that an earlier kept one contains.

    Schema in:   as `weigh` gives; docs with kept
    Schema out:  problem string
    Shuffles:  the kept documents on node, and on the pair.    Actions:  none.
    """
    kept = keeping.where("kept").select("node", "doc_id", F.col("preference").alias("own"))
    both = kept.join(offers, "node").where(F.col("doc_id") != F.col("id"))
    if rule.is_containment:
        both = both.where(F.col("preference") < F.col("own"))
    pair = problem(F.least("doc_id", "id"), text(" / "), F.greatest("doc_id", "id"), text(": both kept"))
    return both.select(pair).distinct()


def broken_promises(offers: DataFrame, keeping: DataFrame, probes: DataFrame) -> DataFrame:
    """Removed documents that no kept near-duplicate is preferred to, or whose duplicate_of is not the best of them.

    The best is the kept near-duplicate of highest resemblance, or containment of the removed one in it; ties by policy.

    Schema in:   as `weigh` gives; docs with kept, duplicate_of; node
    Schema out:  problem string
    Shuffles:  the offers and the removed documents on node.    Actions:  none.
    """
    order = F.struct(-F.col("likeness"), F.col("preference"))
    best = offers.groupBy("node").agg(
        F.min("preference").alias("first"), F.min(order)["preference"]["id"].alias("best")
    )

    removed = keeping.where("not kept").join(F.broadcast(probes), "node").join(best, "node", "left")
    why = (
        F.when(F.col("first").isNull(), problem("doc_id", text(": removed, no near-duplicate of it is kept")))
        .when(
            ~(F.col("first") < F.col("preference")),
            problem("doc_id", text(": preferred to all its kept near-duplicates")),
        )
        .when(
            ~F.col("duplicate_of").eqNullSafe(F.col("best")),
            problem("doc_id", text(": duplicate_of "), "duplicate_of", text(", the best is "), "best"),
        )
    )
    return removed.select(why.alias("problem")).where(F.col("problem").isNotNull())


def wrong_reasons(keeping: DataFrame) -> DataFrame:
    """Rows of `keep` whose kept, duplicate_of and reason do not fit each other. All documents are looked at.

    Schema in:   docs with kept, duplicate_of, reason
    Schema out:  problem string
    Shuffles:  the documents on duplicate_of.    Actions:  none.
    """
    other = keeping.select(
        F.col("doc_id").alias("duplicate_of"),
        F.col("kept").alias("is_other_kept"),
        F.col("node").alias("other_node"),
        F.col("content_fingerprint").alias("other_content"),
    )
    met = keeping.join(other, "duplicate_of", "left")

    right = (
        F.when(F.col("content_fingerprint") == F.col("other_content"), F.lit("exact"))
        .when(F.col("node") == F.col("other_node"), F.lit("equal"))
        .otherwise(F.lit("near"))
    )
    is_kept_right = F.col("duplicate_of").isNull() & F.col("reason").isNull()
    why = (
        F.when(F.col("kept").isNull(), text(": neither kept nor removed"))
        .when(F.col("kept"), F.when(~is_kept_right, text(": kept, with a duplicate_of or a reason")))
        .when(F.col("duplicate_of").isNull(), text(": removed without duplicate_of"))
        .when(~F.coalesce("is_other_kept", F.lit(False)), problem(text(": not kept is its "), "duplicate_of"))
        .when(~F.col("reason").eqNullSafe(right), problem(text(": reason "), "reason", text(", should be "), right))
    )
    return met.withColumn("why", why).where("why is not null").select(problem("doc_id", "why"))


def wrong_stars(members: DataFrame, keep: DataFrame) -> DataFrame:
    """Where a partition is not that of the keep-list: each kept document with those whose `duplicate_of` it is.

    Schema in:   MEMBERS; KEEP
    Shuffles:  the members on doc_id and on their cluster, the keep-list on its stars.    Actions:  none.
    """
    stars = keep.select("doc_id", F.coalesce("duplicate_of", "doc_id").alias("star"))
    due = stars.groupBy("star").agg(F.count("*").alias("due")).where("due > 1")
    had = (
        members.join(stars, "doc_id", "left")
        .groupBy("cluster_id")
        .agg(F.min("star").alias("star"), F.count("*").alias("n"), F.count_if(F.col("star").isNull()).alias("strange"),
             F.max("star").alias("other"))
    )  # fmt: skip
    met = had.join(due, "star", "full")
    is_star = (F.col("star") == F.col("other")) & (F.col("strange") == 0) & (F.col("n") == F.col("due"))
    why = F.when(F.col("cluster_id").isNull(), text("missing")).otherwise(text("no star"))
    named = problem("star", text(", …: "), why)
    return met.where(~F.coalesce(is_star, F.lit(False))).select(named)
