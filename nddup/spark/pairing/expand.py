"""From pairs of distinct sketches to pairs of documents: equal sketches come back.

Two groups of equal sketches that match give the product of their documents; a product of more rows than
`pairs.expand_limit` becomes a star of the groups' first documents, so that no group makes the table quadratic. A star
needs no join, and a document of a group beyond the limit enters none: one group may hold most documents.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.matching.threshold import Threshold
from nddup.spark.schemas import MATCHES, NODES, PAIRS, require

SHARES = ("containment_a", "containment_b")
"""Of MATCHES: how much of the left one the right one contains, and the other way; null where the kind shows none."""


def expand(matches: DataFrame, nodes: DataFrame, *, threshold: Threshold, expand_limit: int) -> DataFrame:
    """From pairs of distinct sketches to pairs of documents, equal sketches included.

    A product of two groups (or of one with itself) that would give more than `expand_limit` rows becomes a star: each
    member is paired with its own `group` document, the two `group` documents with each other.

    Schema in:   MATCHES, NODES
    Schema out:  PAIRS, one row a pair
    Shuffles:  the nodes once, and the matches for each side of the joins on node.
    Actions:   none.
    """
    require(matches, MATCHES, stage="pairs")
    require(nodes, NODES, stage="pairs")
    full, starred = _split_products(matches, nodes.where("doc_id = group"), expand_limit)
    between = _product(full, nodes.where(F.col("n") <= expand_limit))
    bridges = starred.select(
        F.col("hub_a").alias("left"),
        F.col("hub_b").alias("right"),
        "overlap",
        "resemblance",
        *SHARES,
        F.lit(True).alias("star"),
    )
    hubs = starred.select(F.explode(F.array("node_a", "node_b")).alias("node")).distinct()
    own = nodes.where(F.col("n") > 1).where(F.col("size") >= threshold.least_size)
    own = own.withColumns({name: F.lit(1.0 if threshold.shows_containment else None).cast("double") for name in SHARES})
    return _as_pairs(between.unionByName(bridges).unionByName(_within_groups(own, hubs, expand_limit)))


def _split_products(matches: DataFrame, hubs: DataFrame, limit: int) -> tuple[DataFrame, DataFrame]:
    """The matches whose product of groups is written in full, and those that become stars."""
    sized = matches.join(
        hubs.select(*_renamed("node", "n", suffix="_a"), F.col("group").alias("hub_a")), "node_a"
    ).join(hubs.select(*_renamed("node", "n", suffix="_b"), F.col("group").alias("hub_b")), "node_b")
    rows = F.col("n_a") * F.col("n_b")
    return sized.where(rows <= limit), sized.where(rows > limit)


def _renamed(*names: str, suffix: str) -> list[Column]:
    return [F.col(name).alias(name + suffix) for name in names]


def _product(full: DataFrame, members: DataFrame) -> DataFrame:
    left = members.select(F.col("node").alias("node_a"), F.col("doc_id").alias("left"))
    right = members.select(F.col("node").alias("node_b"), F.col("doc_id").alias("right"))
    return (
        full.join(left, "node_a")
        .join(right, "node_b")
        .select("left", "right", "overlap", "resemblance", *SHARES, F.lit(False).alias("star"))
    )


def _within_groups(own: DataFrame, hubs: DataFrame, limit: int) -> DataFrame:
    """Pairs of equal sketches: all of a group, or a star around its `group` document.

    The `group` document is the smallest id, so `doc_id < right` keeps all its rows. In a group that is written in
    full but is one of `hubs`, the hub of a star with another group, those rows are marked as the star's.
    """
    rows = F.col("n") * (F.col("n") - 1) / 2
    about: list[Column | str] = [F.col("size").alias("overlap"), F.lit(1.0).alias("resemblance"), *SHARES]
    stars = own.where((rows > limit) & (F.col("doc_id") != F.col("group"))).select(
        F.col("group").alias("left"), F.col("doc_id").alias("right"), *about, F.lit(True).alias("star")
    )

    few = own.where(rows <= limit)
    marks = hubs.withColumn("is_hub", F.lit(True))
    is_star = (F.col("doc_id") == F.col("group")) & F.coalesce("is_hub", F.lit(False))
    whole = (
        few.join(few.select("node", F.col("doc_id").alias("right")), "node")
        .where("doc_id < right")
        .join(marks, "node", "left")
        .select(F.col("doc_id").alias("left"), "right", *about, is_star.alias("star"))
    )
    return whole.unionByName(stars)


def _as_pairs(rows: DataFrame) -> DataFrame:
    """Order the two ids as bytes, and the containments with them."""
    is_turned = F.col("left") > F.col("right")
    of_left, of_right = SHARES
    return rows.select(
        F.least("left", "right").alias("doc_a"),
        F.greatest("left", "right").alias("doc_b"),
        "overlap",
        "resemblance",
        F.when(is_turned, F.col(of_right)).otherwise(F.col(of_left)).alias("containment_a"),
        F.when(is_turned, F.col(of_left)).otherwise(F.col(of_right)).alias("containment_b"),
        "star",
    ).select(*PAIRS.fieldNames())
