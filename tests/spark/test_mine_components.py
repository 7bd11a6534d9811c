"""Clusters of documents, from either miner, against the definition."""

from collections import Counter
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.matching.threshold import Threshold
from nddup.mining.cluster_modes import Budget
from nddup.spark.clustering import problems
from nddup.spark.clustering.graph import (
    Assignment,
    Solving,
    assemble,
    describe_nodes,
    number_edges,
    number_few,
    solve,
)
from nddup.spark.clustering.mine_components import (
    keep_clusters,
    list_frequent,
    list_transactions,
    mine_by_pivot,
)
from nddup.spark.clustering.problems import Scale, gather_problems
from nddup.spark.engine import SparkEngine, session_beside
from nddup.spark.schemas import schema_of
from nddup.stages.names import CLUSTERS, Naming, name_sets
from nddup.tables import GRAPH, MATCHES, NODES, SKETCHES
from tests.spark.mined_families import SIZE, Sketch, define, is_near, listed, resemblance

COUNT = Threshold("overlap", 14, 1, is_count=True, size=SIZE)
SHARE = Threshold("overlap", 7, 10, is_count=False, size=SIZE)
RESEMBLANCE = Threshold("resemblance", 7, 10, is_count=False, size=SIZE)

CORNER: dict[str, Sketch] = {
    "a": (7_000, 7_001, 7_002, 7_003, 7_006, 7_007, 7_008, 7_009),
    "b": (7_000, 7_002, 7_003, 7_006, 7_007, 7_008, 7_009, 7_010),
    "c": (7_000, 7_001, 7_002, 7_003, 7_005, 7_006, 7_007, 7_009),
}
"""A near-duplicate of each of two documents that are not near each other."""


def draw_families(seed: int) -> dict[str, Sketch]:
    """Draw some 80 documents: families of changed and shortened copies, some with equal sketches."""
    random = np.random.default_rng(seed)
    texts: list[Sketch] = [(), ()]
    for family in range(14):
        base = random.choice(3_000, random.integers(6, 2 * SIZE), replace=False)
        for _ in range(3 + family % 7):
            changed = np.where(random.random(len(base)) < 0.07, random.integers(0, 3_000, len(base)), base)
            cut = changed[: random.integers(len(base) * 4 // 5, len(base) + 1)]
            texts.append(tuple(sorted(set(cut.tolist()))[:SIZE]))
        if family % 2:
            texts.append(texts[-1])
    texts += [tuple(range(5_000, 5_016))] * 2 + [tuple(range(6_000, 6_005))] * 2
    names = [f"{chr(0x41 + i % 26)}é{i}" for i in range(len(texts))]
    return dict(zip(random.permutation(names).tolist(), texts, strict=True))


# The stage.


def make_nodes(spark: SparkSession, sketches: dict[str, Sketch]) -> DataFrame:
    """Return NODES, where the node of a distinct sketch is the place of its smallest id."""
    names = sorted(sketches)
    group = {
        name: name if not sketches[name] else min(n for n in names if sketches[n] == sketches[name]) for name in names
    }
    held = Counter(group.values())
    rows = [
        (
            key,
            name,
            group[name],
            names.index(group[name]),
            len(sketches[name]),
            0,
            -key,
            bytearray(b""),
            len(sketches[name]),
            held[group[name]],
            0,
        )
        for key, name in enumerate(names)
    ]
    return spark.createDataFrame(rows, schema_of(NODES))


def mine(
    spark: SparkSession, sketches: dict[str, Sketch], threshold: Threshold, *, miner: str, max_sets: int = 1_000
) -> DataFrame:
    """Run the clusters stage on the distinct sketches and their near-duplicate pairs, as the pipeline does."""
    names = sorted(sketches)
    nodes = make_nodes(spark, sketches).persist()
    distinct = {sketches[name]: names.index(name) for name in reversed(names) if sketches[name]}
    near = [
        (min(a, b), max(a, b), len(set(left) & set(right)), float(resemblance(left, right, SIZE)), None, None)
        for (left, a), (right, b) in combinations(distinct.items(), 2)
        if is_near(left, right, threshold)
    ]
    matches = spark.createDataFrame(near, schema_of(MATCHES))
    rows = [(node, list(sketch), len(sketch)) for sketch, node in distinct.items()]
    given = spark.createDataFrame(rows, schema_of(SKETCHES))
    numbered = number_few(describe_nodes(matches, nodes, None), by_weight=False)
    edges = number_edges(matches, numbered, is_contained=False).persist()
    solving = Solving(2 * len(near), Assignment(miner, 8, max_sets, 100_000), None)
    graph = assemble(numbered, edges, solve(edges, solving), solving, is_large=False).persist()
    problems = gather_problems(graph, given, matches, scale=Scale(len(names), len(names)), partitions=3).persist()
    sets = mine_by_pivot(problems, threshold=threshold, budget=Budget(max_sets, 100_000))
    transactions = list_transactions(problems, threshold=threshold, min_support=0).persist()
    fits = transactions.groupBy("fit").agg(F.count("*"), F.min("least")).sort("fit").collect()
    found = [list_frequent(transactions.where(f"fit = {fit}"), least=least, count=count) for fit, count, least in fits]
    if found:
        frequent = reduce(DataFrame.unionByName, found)
        sets = sets.unionByName(keep_clusters(frequent, problems, threshold=threshold, min_support=0, partitions=3))
    least = threshold.numerator if threshold.is_count else 1
    engine = SparkEngine(session_beside(spark))
    for name, table in (("sets", sets), ("graph", graph), ("nodes", nodes)):
        engine.see(name, table)
    engine.see("named", name_sets(engine, Naming(least, max_listed=10_000)))
    return engine.answer(CLUSTERS)


@pytest.mark.nightly  # by day `run/test_resume.py` has both miners, and chunks, against the embedded engine
@pytest.mark.parametrize(
    ("threshold", "miner"),
    [(RESEMBLANCE, "auto"), (COUNT, "fpgrowth")],
    ids=lambda value: value if isinstance(value, str) else "count" if value.is_count else value.measure,
)  # fmt: skip
def test_either_miner_gives_the_sets_of_the_definition(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, threshold: Threshold, miner: str
) -> None:
    """Every maximal set of documents is found once, with support, component and id; also groups of equal sketches.

    With `auto` both miners find sets, and the tasks of components are looked up in chunks, as with many nodes, instead
    of joined with the sketches. There a, b and c have enough joint support, but b and c are not near-duplicates: the
    clusters are {a, b} and {a, c}. A cell of `embedded/test_matrix.py` has sets by a share of the overlap.
    """
    if miner == "auto":
        monkeypatch.setattr(problems, "CHUNKED_NODES", 1)
    sketches = draw_families(3) | CORNER
    expected = define(sketches, threshold)

    clusters = listed(mine(spark, sketches, threshold, miner=miner))

    assert len(expected) > 20
    assert clusters == sorted(expected)
    if threshold is RESEMBLANCE:
        assert [members for members, *_ in clusters if members[0] in CORNER] == [("a", "b"), ("a", "c")]


def test_a_fit_takes_few_items_and_few_sets() -> None:
    """A component weighs as its possible sets, or ten for each item, which the driver holds; 0 for the pivot miner."""
    assignment = Assignment("auto", 8, 1_000, 100_000)

    assert assignment.listed_sets(np.array([1, 2, 3, 8, 9], np.int32)).tolist() == [0, 20, 30, 255, 0]


def test_problems_stay_where_they_are(spark: SparkSession) -> None:
    """Frequent sets are sent to the tasks of their components; the persisted problems are not shuffled again."""
    graph, sketches, matches = (spark.createDataFrame([], schema_of(one)) for one in (GRAPH, SKETCHES, MATCHES))
    problems = gather_problems(graph, sketches, matches, scale=Scale(1, 1), partitions=3).persist()
    frequent = spark.createDataFrame([(0, 3, 5)], "ordinal long, mask long, support long")

    kept = keep_clusters(frequent, problems, threshold=SHARE, min_support=0, partitions=3)
    plan = kept._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001
    steps = [line.lstrip(" :-+").partition(" ")[0].lstrip("*(0123456789) ") for line in plan.splitlines()]

    assert "InMemoryTableScan" in plan
    assert next(steps[at + 1] for at, step in enumerate(steps) if step == "Exchange") == "MapInArrow"
    assert steps[: steps.index("InMemoryTableScan")].count("Exchange") == 1
    problems.unpersist()


@pytest.mark.nightly  # by day `test_large_graph` has shares past their budget
def test_past_the_budget_every_pair_is_still_covered(spark: SparkSession) -> None:
    """
    Each of twelve documents lacks another of twelve features: any six share six, so there are C(12, 6) = 924 sets.

    They exceed a budget of 1 + 4 * 12 sets: the clusters are some of them, and hold every pair.
    """
    sketches = {f"d{i:02}": tuple(j for j in range(12) if j != i) for i in range(12)}
    six = Threshold("overlap", 6, 1, is_count=True, size=SIZE)

    covered = listed(mine(spark, sketches, six, miner="auto", max_sets=1))

    assert {(len(members), support, component, coverage) for members, support, component, coverage in covered} == {
        (6, 6, "d00", "pairs")
    }
    assert len(covered) <= 1 + 4 * 12
    assert {pair for members, *_ in covered for pair in combinations(members, 2)} == set(combinations(sketches, 2))
