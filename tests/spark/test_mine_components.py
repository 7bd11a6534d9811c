"""Clusters of documents, by either miner, against the definition."""

import hashlib
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.matching.threshold import Threshold
from nddup.mining.cluster_modes import Budget
from nddup.run.find_duplicates import find_duplicates
from nddup.spark.clustering.cluster_names import Naming, list_clusters, list_members, list_places, name_sets
from nddup.spark.clustering.graph import Assignment, build_graph
from nddup.spark.clustering.mine_components import (
    ITEM_BITS,
    keep_clusters,
    list_frequent,
    list_transactions,
    mine_by_pivot,
    name_items,
)
from nddup.spark.clustering.problems import SetRows, gather_problems
from nddup.spark.schemas import GRAPH, MATCHES, NODES, SETS, SKETCHES, local_table

SIZE = 20
COUNT = Threshold("overlap", 14, 1, is_count=True, size=SIZE)
SHARE = Threshold("overlap", 7, 10, is_count=False, size=SIZE)
RESEMBLANCE = Threshold("resemblance", 7, 10, is_count=False, size=SIZE)
Sketch = tuple[int, ...]
Cluster = tuple[tuple[str, ...], int, str, str]


# The definition, on documents.


def resemblance(a: Sketch, b: Sketch, size: int) -> Fraction:
    """Estimate by MIN_s of the union; two short sketches are the documents themselves."""
    union = sorted({*a, *b})
    if len(a) == size or len(b) == size:
        union = union[:size]
    return Fraction(len(set(union) & set(a) & set(b)), max(len(union), 1))


def is_near(a: Sketch, b: Sketch, threshold: Threshold) -> bool:
    """Tell by the definition of the measure whether two sketches are near-duplicates."""
    common, least = len(set(a) & set(b)), Fraction(threshold.numerator, threshold.denominator)
    if threshold.is_count:
        return common >= least
    if threshold.measure == "overlap":
        return common > 0 and common >= least * max(len(a), len(b))
    return common > 0 and resemblance(a, b, threshold.size) >= least


def alpha(sketch: Sketch, threshold: Threshold) -> int:
    """Find the least overlap that a near-duplicate of this sketch has."""
    if threshold.is_count:
        return threshold.numerator
    share = Fraction(threshold.numerator, threshold.denominator)
    return next(o for o in range(1, len(sketch) + 1) if Fraction(o, len(sketch)) >= share)


def define(sketches: dict[str, Sketch], threshold: Threshold) -> set[Cluster]:
    """List the maximal sets of documents: members, support, component, coverage.

    Searched as Bron and Kerbosch do, without any cut: both conditions only break as documents are added.
    """
    names = sorted(name for name, sketch in sketches.items() if sketch)
    needs = {name: alpha(sketches[name], threshold) for name in names}
    near = {(a, b) for a, b in combinations(names, 2) if is_near(sketches[a], sketches[b], threshold)}
    found: set[Cluster] = set()

    def joint(chosen: tuple[str, ...]) -> int:
        return len(frozenset.intersection(*(frozenset(sketches[name]) for name in chosen)))

    def can_join(chosen: tuple[str, ...], name: str) -> bool:
        whole = (*chosen, name)
        return all((min(a, name), max(a, name)) in near for a in chosen) and joint(whole) >= max(
            needs[one] for one in whole
        )

    def search(chosen: tuple[str, ...], after: list[str], before: list[str]) -> None:
        after = [name for name in after if can_join(chosen, name)]
        before = [name for name in before if can_join(chosen, name)]
        if not after and not before and len(chosen) > 1:
            found.add((chosen, joint(chosen), smallest[chosen[0]], "all"))
        for at, name in enumerate(after):
            search((*chosen, name), after[at + 1 :], before + after[:at])

    smallest = dict(zip(names, names, strict=True))
    for _ in names:
        for a, b in near:
            smallest[a] = smallest[b] = min(smallest[a], smallest[b])
    for at, name in enumerate(names):
        search((name,), names[at + 1 :], names[:at])
    return found


def draw_families(seed: int) -> dict[str, Sketch]:
    """Draw some 80 documents: families of changed and shortened copies, here and there one with an equal sketch."""
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
    """Name each distinct sketch by the place of its smallest document."""
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
            held[group[name]],
        )
        for key, name in enumerate(names)
    ]
    return spark.createDataFrame(rows, NODES)


def mine(
    spark: SparkSession, sketches: dict[str, Sketch], threshold: Threshold, *, miner: str, max_sets: int = 1_000
) -> DataFrame:
    """Run the stage on the distinct sketches and their near-duplicate pairs, as the pipeline does."""
    names = sorted(sketches)
    nodes = make_nodes(spark, sketches).persist()
    distinct = {sketches[name]: names.index(name) for name in reversed(names) if sketches[name]}
    near = [
        (min(a, b), max(a, b), len(set(left) & set(right)), float(resemblance(left, right, SIZE)), None, None)
        for (left, a), (right, b) in combinations(distinct.items(), 2)
        if is_near(left, right, threshold)
    ]
    matches = spark.createDataFrame(near, MATCHES)
    given = spark.createDataFrame([(node, list(sketch)) for sketch, node in distinct.items()], SKETCHES)
    graph = build_graph(matches, nodes, Assignment(miner, 8, max_sets, 100_000)).persist()
    problems = gather_problems(graph, given, matches, partitions=3).persist()
    sets = mine_by_pivot(problems, threshold=threshold, budget=Budget(max_sets, 100_000))
    transactions = list_transactions(problems, threshold=threshold, min_support=0).persist()
    fits = transactions.groupBy("fit").agg(F.count("*"), F.min("least")).sort("fit").collect()
    for fit, count, least in fits:
        frequent = list_frequent(transactions.where(f"fit = {fit}"), least=least, count=count)
        sets = sets.unionByName(keep_clusters(frequent, problems, threshold=threshold, min_support=0, partitions=3))
    least = threshold.numerator if threshold.is_count else 1
    return list_clusters(name_sets(sets, graph, nodes, Naming(least, max_listed=10_000)))


def listed(clusters: DataFrame) -> list[Cluster]:
    rows = clusters.collect()
    assert all(row.size == len(row.members) for row in rows)
    assert all(row.cluster_id == name_of(row.members) for row in rows)
    return sorted((tuple(row.members), row.support, row.component, row.coverage) for row in rows)


def name_of(members: list[str]) -> str:
    """Name a cluster: 16 hex digits of SHA-256 over the sorted ids, each followed by a zero byte."""
    return hashlib.sha256(b"".join(member.encode() + b"\0" for member in sorted(members))).hexdigest()[:16]


@pytest.mark.parametrize(
    ("threshold", "miner"),
    [
        (COUNT, "pivot"), (COUNT, "fpgrowth"),
        (SHARE, "pivot"), (SHARE, "fpgrowth"),
        (RESEMBLANCE, "pivot"), (RESEMBLANCE, "fpgrowth"), (RESEMBLANCE, "auto"),
    ],
    ids=lambda value: value if isinstance(value, str) else "count" if value.is_count else value.measure,
)  # fmt: skip
def test_either_miner_gives_the_sets_of_the_definition(spark: SparkSession, threshold: Threshold, miner: str) -> None:
    """Every maximal set of documents once, with its support, component and id; equal sketches, and groups alone too."""
    sketches = draw_families(3)
    expected = define(sketches, threshold)

    clusters = listed(mine(spark, sketches, threshold, miner=miner))

    assert len(expected) > 20
    assert clusters == sorted(expected)


@pytest.mark.parametrize("miner", ["pivot", "fpgrowth"])
def test_two_near_duplicates_of_one_need_not_be_near_each_other(spark: SparkSession, miner: str) -> None:
    """Of a, b, c the joint support is high enough, but b and c are no near-duplicates: {a,b}, {a,c}, not all three."""
    sketches: dict[str, Sketch] = {
        "a": (0, 1, 2, 3, 6, 7, 8, 9),
        "b": (0, 2, 3, 6, 7, 8, 9, 10),
        "c": (0, 1, 2, 3, 5, 6, 7, 9),
    }
    threshold = replace(RESEMBLANCE, size=8)

    clusters = listed(mine(spark, sketches, threshold, miner=miner))

    assert clusters == sorted(define(sketches, threshold)) == [(("a", "b"), 7, "a", "all"), (("a", "c"), 7, "a", "all")]


def test_past_the_budget_every_pair_is_still_covered(spark: SparkSession) -> None:
    """
    Twelve documents lack one feature of twelve each: any six share six features, so there are C(12, 6) = 924 sets.

    A budget of 1 + 4 * 12 sets does not hold them: some of those sets are given, and they hold every pair.
    """
    sketches = {f"d{i:02}": tuple(j for j in range(12) if j != i) for i in range(12)}
    six = Threshold("overlap", 6, 1, is_count=True, size=SIZE)

    covered = listed(mine(spark, sketches, six, miner="auto", max_sets=1))

    assert {(len(members), support, component, coverage) for members, support, component, coverage in covered} == {
        (6, 6, "d00", "pairs")
    }
    assert len(covered) <= 1 + 4 * 12
    assert {pair for members, *_ in covered for pair in combinations(members, 2)} == set(combinations(sketches, 2))


def test_the_representative_is_first_by_policy(spark: SparkSession) -> None:
    """One member of each cluster is marked: the smallest `policy`, among equals the smallest id."""
    rows = [("a", "a", 2), ("b", "a", 1), ("c", "a", 1), ("d", "d", 3), ("e", "d", 3)]
    nodes = spark.createDataFrame(
        [
            (key, name, group, "ad".index(group), 9, 9, policy, bytearray(b""), 2 + (group == "a"))
            for key, (name, group, policy) in enumerate(rows)
        ],
        NODES,
    )
    sets, graph = (local_table(spark, schema) for schema in (SETS, GRAPH))

    members = list_members(name_sets(sets, graph, nodes, Naming(9, max_listed=2))).collect()

    assert len(members) == 5
    assert {(row.cluster_id, row.doc_id) for row in members if row.representative} == {
        (name_of(["a", "b", "c"]), "b"),
        (name_of(["d", "e"]), "d"),
    }


def test_clusters_of_texts_are_those_of_their_sketches(spark: SparkSession) -> None:
    """From texts to clusters, the sets are those that the definition gives for the sketches that were made."""
    random = np.random.default_rng(8)
    texts = []
    for family in range(6):
        base = random.integers(0, 400, 60)
        for _ in range(2 + family):
            words = np.where(random.random(len(base)) < 0.03, random.integers(0, 400, len(base)), base)
            texts.append(" ".join(f"w{word}" for word in words[: random.integers(50, 61)]))
    texts += [texts[0], "too short", "too short", ""]
    frame = spark.createDataFrame([(f"t{i}", text) for i, text in enumerate(texts)], "id string, text string")

    tables = find_duplicates(frame, shingle={"length": 2}, sketch={"size": SIZE}, pairs={"threshold": 0.6})

    rows = tables.documents.collect()
    sketches = {row.doc_id: tuple(sorted(feature % 2**64 for feature in row.sketch)) for row in rows}
    expected = define(sketches, Threshold("resemblance", 3, 5, is_count=False, size=SIZE))
    assert len(sketches) == len(texts)
    assert len(expected) > 6
    assert listed(tables.clusters) == sorted(expected)


def test_a_row_on_its_way_to_a_cluster_is_short(spark: SparkSession) -> None:
    """A set of 100,000 would be 40 GB were its positions in each row, whatever part of a name they are."""
    sets = local_table(spark, SETS, [(0, [0, 2, 5], 14, "all"), (0, [0, 25], 14, "all"), (1, [0, 25], 14, "all")])

    rows = list_places(sets)

    assert "array" not in rows.schema.simpleString()
    assert rows.select("set_id").distinct().count() == 3
    assert sorted((row["ordinal"], row["position"]) for row in rows.collect()) == [
        (0, 0), (0, 0), (0, 2), (0, 5), (0, 25), (1, 0), (1, 25)
    ]  # fmt: skip


def test_an_item_has_room_for_what_it_names() -> None:
    """The last component and the last position that fit; one more is refused, not wrapped."""
    last, places = (1 << 63 - ITEM_BITS) - 1, (1 << ITEM_BITS) - 1

    assert name_items(np.array([0, last]), np.array([places, 0])).tolist() == [places, last << ITEM_BITS]
    for ordinal, position in ((last + 1, 0), (0, places + 1)):
        with pytest.raises(ValueError, match="bits for a position"):
            name_items(np.array([ordinal]), np.array([position]))


def test_very_many_sets_of_a_component_come_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow counts the values of a list column with 31 bits."""
    monkeypatch.setattr("nddup.spark.clustering.problems.VALUES_PER_BATCH", 4)
    sets = SetRows()
    sets.add(np.int64(7), np.array([2, 2, 3]), np.arange(7), np.array([9, 8, 7], np.int32), "all")

    batches = list(sets.release())

    assert [batch.num_rows for batch in batches] == [2, 1]
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert rows == [(7, [0, 1], 9, "all"), (7, [2, 3], 8, "all"), (7, [4, 5, 6], 7, "all")]
    assert [batch.num_rows for batch in sets.release()] == [0]
