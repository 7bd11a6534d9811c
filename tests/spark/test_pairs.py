"""Keep, post, match: the pairs of sketches against a comparison of all."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from nddup.errors import SchemaError
from nddup.matching.elements import divide
from nddup.matching.overlap_join import LongLists
from nddup.matching.preference import read_order
from nddup.matching.threshold import Threshold
from nddup.spark.pairing.candidates import keep_sketches, match, post
from nddup.spark.pairing.collapse import name_nodes
from nddup.spark.pairing.prefix_exchange import Pairing
from nddup.spark.schemas import schema_of
from nddup.tables import DOCUMENTS, SKETCHES
from tests.samples_by_night import first

SIZE = 20
ALL = LongLists(10_000, 0)
COUNT = Threshold("overlap", 14, 1, is_count=True, size=SIZE)
SHARE = Threshold("overlap", 7, 10, is_count=False, size=SIZE)
RESEMBLANCE = Threshold("resemblance", 7, 10, is_count=False, size=SIZE)
Sketch = tuple[int, ...]
Match = tuple[int, int, int, float]


def resemblance(a: Sketch, b: Sketch) -> Fraction:
    """Estimate from MIN_s of the union; two sketches below the size limit are the whole documents."""
    union = sorted({*a, *b})
    if len(a) == SIZE or len(b) == SIZE:
        union = union[:SIZE]
    return Fraction(len(set(union) & set(a) & set(b)), len(union))


def is_near(a: Sketch, b: Sketch, threshold: Threshold) -> bool:
    """Return whether two sketches are near-duplicates, by the definition of the measure."""
    common, least = len(set(a) & set(b)), Fraction(threshold.numerator, threshold.denominator)
    if threshold.is_count:
        return common >= least
    if threshold.measure == "overlap":
        return common > 0 and common >= least * max(len(a), len(b))
    return common > 0 and resemblance(a, b) >= least


def draw_families(seed: int) -> list[Sketch]:
    """Draw some 300 distinct sketches: families of changed and cut copies, with ids on both sides of the sign bit."""
    random = np.random.default_rng(seed)
    places = random.integers(0, 2**64, 4_000, dtype=np.uint64)
    sketches = set()
    for _ in range(30):
        base = random.choice(len(places), random.integers(4, 2 * SIZE), replace=False)
        for _ in range(11):
            changed = np.where(random.random(len(base)) < 0.07, random.integers(0, len(places), len(base)), base)
            cut = changed[: random.integers(len(base) * 3 // 4, len(base) + 1)]
            sketches.add(tuple(sorted({int(places[i]) for i in cut})[:SIZE]))
    return sorted(sketches)


def as_long(feature: int) -> int:
    return feature - 2**64 if feature >= 2**63 else feature


def sketch_table(spark: SparkSession, sketches: list[Sketch]) -> DataFrame:
    rows = [(node, [as_long(feature) for feature in sketch], len(sketch)) for node, sketch in enumerate(sketches)]
    return spark.createDataFrame(rows, schema_of(SKETCHES))


def start(sketches: DataFrame, pairing: Pairing) -> tuple[DataFrame, DataFrame]:
    """Make and persist the homes of the sketches, and the postings that the owners of their elements get."""
    kept = keep_sketches(sketches, pairing).persist()
    return kept, post(kept, pairing).persist()


def find(
    sketches: DataFrame, threshold: Threshold, *, partitions: int, long_lists: LongLists = ALL
) -> tuple[list[Match], list[int]]:
    """Run the stage; return its matches, and its counters summed over the tasks."""
    pairing = Pairing(threshold, divide(6_000, partitions), long_lists)
    kept, postings = start(sketches, pairing)
    rows = match(kept, postings, pairing).collect()
    found = [(row.node_a, row.node_b, row.overlap, row.resemblance) for row in rows if row.what == "pair"]
    counts = [[row.candidates, row.stopped] for row in rows if row.what == "count"]
    kept.unpersist()
    postings.unpersist()
    return sorted(found), np.array(counts).sum(axis=0).tolist()


@pytest.mark.parametrize("threshold", first(1, [COUNT, RESEMBLANCE, SHARE]), ids=["count", "resemblance", "share"])
def test_matches_are_those_of_comparing_all(spark: SparkSession, threshold: Threshold) -> None:
    """Each near-duplicate pair is found once, with overlap and resemblance, by 1, 2 and 7 partitions alike."""
    sketches = draw_families(1)
    given = sketch_table(spark, sketches).persist()
    expected = [
        (a, b, len(set(sketches[a]) & set(sketches[b])), float(resemblance(sketches[a], sketches[b])))
        for a, b in combinations(range(len(sketches)), 2)
        if is_near(sketches[a], sketches[b], threshold)
    ]

    found, counts = find(given, threshold, partitions=2)

    assert len(expected) > 300
    assert found == expected
    assert counts[0] >= len(expected)
    assert counts[1] == 0
    for partitions in (1, 7):
        assert find(given, threshold, partitions=partitions)[0] == expected
    given.unpersist()


def test_long_lists_are_compared_in_full_or_not_at_all(spark: SparkSession) -> None:
    """Lists over `max_postings` lose no pair, or are refused if they cost too much, for any number of partitions."""
    given = sketch_table(spark, draw_families(2)).persist()

    whole, _ = find(given, COUNT, partitions=2)

    assert find(given, COUNT, partitions=7, long_lists=LongLists(3, 10**6))[0] == whole
    for partitions in (2, 7):
        found, (_, stopped) = find(given, COUNT, partitions=partitions, long_lists=LongLists(3, 1))
        assert set(found) < set(whole)
        assert stopped > 3
    given.unpersist()


def test_nothing_that_is_kept_is_moved_again(spark: SparkSession) -> None:
    """Each exchange moves blocks that a task has just made, never a persisted table or the rows of another exchange."""
    pairing = Pairing(COUNT, divide(6_000, 3), ALL)
    kept, postings = start(sketch_table(spark, draw_families(1)), pairing)

    plan = match(kept, postings, pairing)._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001
    steps = [line.lstrip(" :-+").partition(" ")[0].lstrip("*(0123456789) ") for line in plan.splitlines()]

    exchanges = [at for at, step in enumerate(steps) if step == "Exchange"]
    assert len(exchanges) >= 7
    assert {steps[at + 1] for at in exchanges} == {"MapInArrow", "FlatMapCoGroupsInArrow"}
    kept.unpersist()
    postings.unpersist()


def test_no_sketches_give_no_matches(spark: SparkSession) -> None:
    """An empty collection has no pairs, nor has one whose sketches share nothing."""
    assert find(sketch_table(spark, []), RESEMBLANCE, partitions=2)[0] == []
    assert find(sketch_table(spark, [(1, 2), (3, 4)]), RESEMBLANCE, partitions=2)[0] == []


def test_a_missing_column_is_named_at_once(spark: SparkSession) -> None:
    """The stage checks the columns of its table before anything runs."""
    with pytest.raises(SchemaError, match="sketch"):
        keep_sketches(spark.range(1).toDF("node"), Pairing(COUNT, divide(9, 2), ALL))


# From sketches to documents.


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("longest", "caebdr"),
        ("first-id", "abcder"),
        ("first", "dbacer"),
        ("shortest-url", "bcdaer"),
        ("newest", "beacdr"),
        ("oldest", "aebcdr"),
        (["-score"], "caebdr"),
    ],
)
def test_the_policy_orders_the_documents(spark: SparkSession, policy: str | list[str], order: str) -> None:
    """By most tokens, smallest id, place in the collection, shortest URL or date (none is last), or by a column.

    Of equals the older capture comes first, then the smaller id; a revisit is always last.
    """
    rows = [
        # key, id, url, record, tokens, score, date, type
        (3, "a", None, 4, 10, "5", "2020-01-01T00:00:00Z", "response"),
        (2, "b", "u/1", 3, 10, "5", "2021-01-01T00:00:00Z", "response"),
        (5, "c", "u/2", 6, 12, "7", None, None),
        (1, "d", "u/long", 2, 9, "1", None, None),
        (6, "e", None, 7, 10, "5", "2020-01-01T00:00:01Z", "response"),
        (0, "r", "u", 1, 99, "9", "2024-01-01T00:00:00Z", "revisit"),
    ]
    names = ("doc_key", "doc_id", "url", "record", "n_tokens", "score", "date", "record_type")
    told = [dict(zip(names, row, strict=True)) for row in rows]
    fixed = {"source": "f", "n_features": 9, "content_fingerprint": bytearray(b""), "sketch": [1]}
    made = [row | fixed | {"group": row["doc_id"], "policy": [row["score"]]} for row in told]
    values = [tuple(row.get(name) for name in DOCUMENTS.names) for row in made]

    nodes = name_nodes(spark.createDataFrame(values, schema_of(DOCUMENTS)), order=read_order(policy, None)).collect()

    assert "".join(row.doc_id for row in sorted(nodes, key=lambda row: (row.policy, row.doc_id))) == order
