"""Proof of `pairs`: near-duplicates recounted by comparing probes with every distinct sketch.

    sketches           --recount-->      truth       the near-duplicates of each probe
    pairs              --fold-->         folded      the rows of `pairs` by pair of nodes
    truth              --expect_rows-->  expected    the rows and stars that each pair of nodes must have
    expected, folded   --wrong_pairs-->  problems    what is missing, invented or has wrong numbers

A node is a distinct sketch, named by the smallest id of its documents (`prove_documents.regroup`). Nodes are compared,
not documents, so 10,000 equal documents cost one comparison. The probes are all nodes or a sample of them; they are
sent to every task, and the other sketches are streamed.
"""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.spark.checking.prove_documents import any_of, problem, sketch_rows, text
from nddup.verifying.definitions import Rule
from nddup.verifying.near_pairs import Near, Probes, find_near

Batches = Iterator[pa.RecordBatch]
TRUTH = (
    "probe string, other string, overlap long, resemblance double, within double, around double, likeness double,"
    " covers boolean"
)
"""`within` is the containment of the probe in the other, `around` the other's in the probe, null where sketches show
none; `likeness` what decides between several, `covers`: a kept `other` removes a later probe."""

BATCH_ROWS = 4_000
"""Rows whose ids are in one batch: of the longest ids there are, 1 GB."""

SPREAD = {"least": F.min, "most": F.max}
"""What is kept of a number that all rows of a pair of nodes should share."""

TOLERANCE = 1e-12
"""By which a resemblance in `pairs` may differ from the recounted quotient."""


def is_near_itself(rule: Rule) -> Column:
    """Whether equal sketches of this size are near-duplicates: resemblance and shares are 1, a count is the size."""
    return F.col("size") >= (rule.numerator if rule.is_count else 1)


def recount(sketches: DataFrame, names: list[str], probes: Probes, rule: Rule) -> DataFrame:
    """Compare every distinct sketch with every probe.

    Args:
        sketches: the distinct, non-empty sketches.
        names: the node of each probe.
        probes: their sketches.
        rule: what a near-duplicate is.

    Schema in:   node string, sketch array<long>, level long
    Schema out:  TRUTH, both directions where both are probes; a node is not its own neighbour
    Shuffles:  none.    Actions:  none.

    Cost: that of `near_pairs.find_near` for each sketch.
    """
    return sketches.select("node", "sketch", "level").mapInArrow(
        partial(_compare, names=names, probes=probes, rule=rule), TRUTH
    )


def _compare(batches: Batches, *, names: list[str], probes: Probes, rule: Rule) -> Batches:
    named = pa.array(names, pa.string())
    for batch in batches:
        rows = sketch_rows(batch.column("sketch")).at_levels(batch.column("level").to_numpy())
        near = find_near(rows, probes, rule)

        # Few rows a table: a batch of similar sketches may have millions of matches.
        for low in range(0, len(near.rows), BATCH_ROWS):
            found = _name_found(near.cut(low, low + BATCH_ROWS), named, batch.column("node"), rule)
            yield from found.filter(pc.not_equal(found["probe"], found["other"])).to_batches()


def _name_found(near: Near, probes: pa.Array, others: pa.Array, rule: Rule) -> pa.Table:
    """TRUTH of these matches, including those of a node with itself."""
    likeness = near.around if rule.is_containment else near.resemblance
    shows = rule.shows_containment
    return pa.table(
        {
            "probe": probes.take(pa.array(near.probes)),
            "other": others.take(pa.array(near.rows)),
            "overlap": near.overlap,
            "resemblance": near.resemblance,
            "within": pa.array(near.around) if shows else pa.nulls(len(near.rows), pa.float64()),
            "around": pa.array(near.within) if shows else pa.nulls(len(near.rows), pa.float64()),
            "likeness": likeness,
            "covers": likeness >= (rule.numerator / rule.denominator if rule.is_containment else 0.0),
        }
    )


def disordered_pairs(pairs: DataFrame) -> DataFrame:
    """Rows of `pairs` whose ids are not ascending as bytes, or that occur twice.

    Schema in:   PAIRS
    Schema out:  problem string
    Shuffles:  the pairs on both ids.    Actions:  none.
    """
    repeated = pairs.groupBy("doc_a", "doc_b").count().where("count > 1")
    is_wrong = any_of(F.col("doc_a") >= F.col("doc_b"))
    return (
        pairs.where(is_wrong)
        .select(problem("doc_a", text(" / "), "doc_b", text(": not in ascending order")))
        .unionAll(repeated.select(problem("doc_a", text(" / "), "doc_b", text(": "), "count", text(" rows"))))
    )


def wrong_claims(pairs: DataFrame, *, rule: Rule) -> DataFrame:
    """Rows of `pairs` with a containment that their sketches do not show, or without one that they do.

    Schema in:   PAIRS
    Schema out:  problem string
    Shuffles:  none.    Actions:  none.
    """
    is_said = F.col("containment_a").isNotNull() & F.col("containment_b").isNotNull()
    is_silent = F.col("containment_a").isNull() & F.col("containment_b").isNull()
    wrong = ~(is_said if rule.shows_containment else is_silent)
    what = ": no containment" if rule.shows_containment else ": a containment that the kind does not show"
    return pairs.where(wrong).select(problem("doc_a", text(" / "), "doc_b", text(what)))


def fold(pairs: DataFrame, docs: DataFrame) -> DataFrame:
    """The rows of `pairs` by pair of nodes.

    Schema in:   PAIRS; doc_id, node
    Schema out:  node_a, node_b (node_a <= node_b; null for a doc_id that is no document), rows, stars, hubs (rows of
        the smallest ids: of both nodes, or within a node of it and another), low and high of overlap and resemblance,
        and one of the pairs as `sample`
    Shuffles:  two, the pairs on either id; one on the nodes.    Actions:  none.
    """
    names = docs.select("doc_id", "node")
    known = pairs.join(names.toDF("doc_a", "first"), "doc_a", "left").join(
        names.toDF("doc_b", "second"), "doc_b", "left"
    )

    # A hub row is one that a star would have: between the first documents of both nodes, or of a node's first with
    # another of its own.
    is_hub = F.when(F.col("first") == F.col("second"), F.col("doc_a") == F.col("first")).otherwise(
        (F.col("doc_a") == F.col("first")) & (F.col("doc_b") == F.col("second"))
    )

    # The ids of a row ascend, but the names of their nodes may descend; then the containments change ends.
    is_known = F.col("first").isNotNull() & F.col("second").isNotNull()
    is_turned = F.col("first") > F.col("second")
    of_first, of_second = F.col("containment_a"), F.col("containment_b")

    return (
        known.withColumn("of_a", F.when(is_turned, of_second).otherwise(of_first))
        .withColumn("of_b", F.when(is_turned, of_first).otherwise(of_second))
        .withColumn("node_a", F.when(is_known, F.least("first", "second")))
        .withColumn("node_b", F.when(is_known, F.greatest("first", "second")))
        .groupBy("node_a", "node_b")
        .agg(
            F.count("*").alias("rows"),
            F.count_if("star").alias("stars"),
            F.count_if(is_hub).alias("hubs"),
            F.count("resemblance").alias("estimates"),
            F.min("overlap").alias("low"),
            F.max("overlap").alias("high"),
            F.min("resemblance").alias("least"),
            F.max("resemblance").alias("most"),
            *(agg(name).alias(f"{said}_{name}") for name in ("of_a", "of_b") for said, agg in SPREAD.items()),
            F.min(problem("doc_a", text(" / "), "doc_b")).alias("sample"),
        )
    )


def expect_rows(truth: DataFrame, sizes: DataFrame, probes: DataFrame, *, rule: Rule, limit: int) -> DataFrame:
    """What `pairs` must hold of each pair of nodes with a probe.

    Where the documents of two nodes, or of one with itself, would give more than `limit` rows, there are stars: each
    document of either node is paired with its node's first document, and both first documents with each other.

    Args:
        truth: the near-duplicates of the probes.
        sizes: documents and features of each node.
        probes: the nodes that were probes.
        rule: what a near-duplicate is.
        limit: `pairs.expand_limit` of the run.

    Schema in:   TRUTH; node, n, size; node
    Schema out:  node_a, node_b, due (rows), due_stars, due_hubs, overlap, resemblance, of_a, of_b (the containment of
        each in the other)
    Shuffles:  the truth on either node, and once on both; the sizes on node.    Actions:  none.
    """
    # Rows between two nodes: all products, or one star row between their first documents.
    left = sizes.select(F.col("node").alias("probe"), F.col("n").alias("n_a"))
    right = sizes.select(F.col("node").alias("other"), F.col("n").alias("n_b"))
    between = truth.join(left, "probe").join(right, "other").withColumn("product", F.col("n_a") * F.col("n_b"))
    is_star = F.col("product") > limit
    across = between.select(
        F.least("probe", "other").alias("node_a"),
        F.greatest("probe", "other").alias("node_b"),
        F.when(is_star, F.lit(1)).otherwise(F.col("product")).alias("due"),
        F.when(is_star, F.lit(1)).otherwise(F.lit(0)).alias("due_stars"),
        F.lit(1).alias("due_hubs"),
        "overlap",
        "resemblance",
        F.when(F.col("probe") < F.col("other"), F.col("within")).otherwise(F.col("around")).alias("of_a"),
        F.when(F.col("probe") < F.col("other"), F.col("around")).otherwise(F.col("within")).alias("of_b"),
    ).distinct()

    # Rows within a node: all pairs of its documents; with a star to another node, each with the first one at least.
    hubs = between.where(is_star).select(F.col("probe").alias("node")).distinct().withColumn("is_hub", F.lit(True))
    inner = F.col("n") * (F.col("n") - 1) / 2
    alone = sizes.join(F.broadcast(probes), "node").where(is_near_itself(rule) & (F.col("n") > 1))
    within = alone.join(hubs, "node", "left").select(
        F.col("node").alias("node_a"),
        F.col("node").alias("node_b"),
        F.when(inner > limit, F.col("n") - 1).otherwise(inner).cast("long").alias("due"),
        F.when((inner > limit) | F.col("is_hub"), F.col("n") - 1).otherwise(F.lit(0)).alias("due_stars"),
        (F.col("n") - 1).alias("due_hubs"),
        F.col("size").cast("long").alias("overlap"),
        F.lit(1.0).alias("resemblance"),
        *(F.lit(1.0 if rule.shows_containment else None).cast("double").alias(name) for name in ("of_a", "of_b")),
    )
    return across.unionAll(within)


def wrong_pairs(expected: DataFrame, folded: DataFrame, probes: DataFrame) -> DataFrame:
    """Where `pairs` is not what was recounted: missing, invented, wrong numbers, wrong stars.

    Schema in:   as `expect_rows` gives; as `fold` gives; node
    Schema out:  problem string
    Shuffles:  one on (node_a, node_b).    Actions:  none.
    """
    # Of the rows that were found, those with a probe at either end: of the others nothing was recounted.
    probe = F.broadcast(probes)
    ends = [folded.join(probe, folded[end] == probe["node"]).select(folded["*"]) for end in ("node_a", "node_b")]
    unknown = folded.where(F.col("node_a").isNull())
    concerned = ends[0].unionAll(ends[1]).unionAll(unknown).distinct()
    met = expected.join(concerned, ["node_a", "node_b"], "full")

    off = any_of(
        F.col("low") != F.col("overlap"),
        F.col("high") != F.col("overlap"),
        F.col("estimates") != F.col("rows"),
        F.abs(F.col("least") - F.col("resemblance")) > TOLERANCE,
        F.abs(F.col("most") - F.col("resemblance")) > TOLERANCE,
        *(
            F.col(name).isNotNull() & any_of(F.abs(F.col(f"{end}_{name}") - F.col(name)) > TOLERANCE)
            for name in ("of_a", "of_b")
            for end in SPREAD
        ),
    )
    shape = any_of(*[F.col(a) != F.col(b) for a, b in (("rows", "due"), ("stars", "due_stars"), ("hubs", "due_hubs"))])

    said: list[Column | str] = ["low", text(" to "), "high", text(" and "), "least", text(" to "), "most"]
    due: list[Column | str] = ["rows", text(" rows, "), "stars", text(" stars, due "), "due", text("/"), "due_stars"]
    pair = problem("node_a", text(" / "), "node_b")
    why = (
        F.when(F.col("node_a").isNull(), problem("sample", text(": ids that are no documents")))
        .when(
            F.col("rows").isNull(), problem(pair, text(": missing, overlap "), "overlap", text(" and "), "resemblance")
        )
        .when(F.col("due").isNull(), problem("sample", text(": no near-duplicates")))
        .when(off, problem("sample", text(": "), *said, text("; recounted "), "overlap", text(" and "), "resemblance"))
        .when(shape, problem(pair, text(": "), *due))
    )
    return met.select(why.alias("problem")).where(F.col("problem").isNotNull())


def between_removed(lost: DataFrame, led: DataFrame, kept: DataFrame) -> DataFrame:
    """The missing pairs that the run need not list: both ends are in led families, and neither is kept.

    Schema in:   TRUTH; node; node
    Schema out:  TRUTH
    """
    for end in ("probe", "other"):
        lost = lost.join(led.select(F.col("node").alias(end)), end, "left_semi")
        lost = lost.join(kept.select(F.col("node").alias(end)), end, "left_anti")
    return lost


def split_found(truth: DataFrame, folded: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The recounted pairs of nodes of which `pairs` has a row, and those of which it has none.

    Schema in:   TRUTH; as `fold` gives
    Schema out:  TRUTH, twice
    Shuffles:  both on the pair of nodes, for each result.    Actions:  none.
    """
    has = folded.select("node_a", "node_b").where("node_a is not null")
    named = truth.withColumns({"node_a": F.least("probe", "other"), "node_b": F.greatest("probe", "other")})
    found, lost = (named.join(has, ["node_a", "node_b"], how) for how in ("left_semi", "left_anti"))
    return found.drop("node_a", "node_b"), lost.drop("node_a", "node_b")
