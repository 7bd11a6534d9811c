"""From pairs of distinct sketches to pairs of documents, with equal sketches expanded again.

Two groups of equal sketches that match stand for the product of their documents. A product of more rows than
`pairs.expand_limit` becomes a star around the groups' `group` documents, so that no group makes the table quadratic. A
star needs no join, and no document of a group beyond the limit is joined: one group may have most documents.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup import tables
from nddup.matching.threshold import Threshold
from nddup.spark.schemas import require, schema_of
from nddup.tables import MATCHES, NODES, PAIRS

CONTAINMENTS, SHINGLES = tables.DIRECTED.items()
LIKENESS = tuple(column.name for column in (*tables.LIKENESS, *tables.OF_TEXTS))
"""All that is told of two documents: the columns of PAIRS besides their ids and `star`."""


def expand(
    matches: DataFrame, nodes: DataFrame, *, threshold: Threshold, expand_limit: int, confirm: str = "none"
) -> DataFrame:
    """Expand pairs of distinct sketches to pairs of documents, including those of equal sketches.

    A product of two groups (or of one with itself) that would give more than `expand_limit` rows becomes a star: each
    member is paired with its own `group` document, and the two `group` documents with each other.

    Args:
        matches: the pairs of distinct sketches; where texts confirm pairs, the rows of CONFIRMED that are pairs.
        nodes: the documents of each distinct sketch.
        threshold: the rule of the sketches.
        expand_limit: `pairs.expand_limit`.
        confirm: `pairs.confirm`.

    Schema in:   MATCHES or CONFIRMED, NODES
    Schema out:  PAIRS, one row per pair
    Shuffles:  the nodes once, and the matches for each side of the joins on node.
    Actions:   none.
    """
    require(matches, MATCHES, stage="pairs")
    require(nodes, NODES, stage="pairs")
    matches = with_unknown(matches)
    small, large = _split_products(matches, nodes.where("doc_id = group"), expand_limit)

    products = _list_products(small, nodes.where(F.col("n") <= expand_limit))
    bridges = large.select(
        F.col("group_a").alias("left"), F.col("group_b").alias("right"), *LIKENESS, F.lit(True).alias("star")
    )

    # Equal sketches are near-duplicates if they have enough features; each contains the other entirely.
    groups = nodes.where(F.col("n") > 1).where(F.col("size") >= threshold.least_size)
    contained = F.lit(1.0 if threshold.shows_containment else None).cast("double")
    edit = F.lit(1.0 if confirm == "edit" else None).cast("double")
    common = F.col("n_features") if confirm == "resemblance" else F.lit(None).cast("int")
    equal = dict.fromkeys(CONTAINMENTS, contained) | {"edit": edit} | dict.fromkeys(("common", *SHINGLES), common)
    groups = groups.withColumns(equal)
    centres = large.select(F.explode(F.array("node_a", "node_b")).alias("node")).distinct()
    within = _pair_within(groups, centres, expand_limit)

    return _as_pairs(products.unionByName(bridges).unionByName(within))


def with_unknown(matches: DataFrame) -> DataFrame:
    """Return MATCHES with all that is told of two documents: null where it is not known."""
    unknown = {
        name: F.lit(None).cast(schema_of(PAIRS)[name].dataType) for name in LIKENESS if name not in matches.columns
    }
    return matches.withColumns(unknown) if unknown else matches


def _split_products(matches: DataFrame, firsts: DataFrame, limit: int) -> tuple[DataFrame, DataFrame]:
    """Return the matches whose product of groups is written in full, and those that become stars.

    Schema in:   MATCHES; NODES, the `group` document of each node
    Schema out:  MATCHES, and for each end n long and group string (`n_a`, `group_a`, `n_b`, `group_b`)
    """
    for end in "ab":
        described = {f"node_{end}": "node", f"n_{end}": "n", f"group_{end}": "group"}
        of_end = firsts.select(*(F.col(name).alias(alias) for alias, name in described.items()))
        matches = matches.join(of_end, f"node_{end}")

    rows = F.col("n_a") * F.col("n_b")
    return matches.where(rows <= limit), matches.where(rows > limit)


def _list_products(small: DataFrame, members: DataFrame) -> DataFrame:
    """Pair each document of one group with each document of the other."""
    left = members.select(F.col("node").alias("node_a"), F.col("doc_id").alias("left"))
    right = members.select(F.col("node").alias("node_b"), F.col("doc_id").alias("right"))
    both = small.join(left, "node_a").join(right, "node_b")
    return both.select("left", "right", *LIKENESS, F.lit(False).alias("star"))


def _pair_within(groups: DataFrame, centres: DataFrame, limit: int) -> DataFrame:
    """Return the pairs of equal sketches: all pairs of a group, or a star around its `group` document.

    The `group` document is the smallest id, so `doc_id < right` keeps all its rows. A group that is written in full may
    also be in `centres`, part of a star with another group; the rows of its `group` document then belong to that star.
    """
    rows = F.col("n") * (F.col("n") - 1) / 2
    likeness: list[Column | str] = [F.col("size").alias("overlap"), F.lit(1.0).alias("resemblance"), *LIKENESS[2:]]

    large = groups.where((rows > limit) & (F.col("doc_id") != F.col("group")))
    stars = large.select(
        F.col("group").alias("left"), F.col("doc_id").alias("right"), *likeness, F.lit(True).alias("star")
    )

    small = groups.where(rows <= limit)
    marks = centres.withColumn("is_centre", F.lit(True))
    is_star = (F.col("doc_id") == F.col("group")) & F.coalesce("is_centre", F.lit(False))
    whole = (
        small.join(small.select("node", F.col("doc_id").alias("right")), "node")
        .where("doc_id < right")
        .join(marks, "node", "left")
        .select(F.col("doc_id").alias("left"), "right", *likeness, is_star.alias("star"))
    )
    return whole.unionByName(stars)


def _as_pairs(rows: DataFrame) -> DataFrame:
    """Order the two ids of each row as bytes, and with them what is told of each end."""
    is_turned = F.col("left") > F.col("right")
    ordered = {"doc_a": F.least("left", "right"), "doc_b": F.greatest("left", "right")}
    for of_left, of_right in tables.DIRECTED.items():
        ordered[of_left] = F.when(is_turned, F.col(of_right)).otherwise(F.col(of_left))
        ordered[of_right] = F.when(is_turned, F.col(of_left)).otherwise(F.col(of_right))
    return rows.select(*(ordered.get(name, F.col(name)).alias(name) for name in PAIRS.names))
