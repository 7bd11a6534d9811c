"""Rows of clusters: their members and representatives, and the narrow rows they are made from."""

import numpy as np
import pytest
from pyspark.sql import SparkSession

from nddup import find_duplicates
from nddup.matching.threshold import Threshold
from nddup.spark.clustering.cluster_names import Naming, list_members, list_places, name_sets
from nddup.spark.clustering.mine_components import (
    ITEM_BITS,
    name_items,
)
from nddup.spark.clustering.problems import SetRows
from nddup.spark.schemas import GRAPH, NODES, SETS, local_table
from tests.spark.mined_families import SIZE, define, listed, name_of


def test_the_representative_is_first_by_policy(spark: SparkSession) -> None:
    """One member of each cluster is marked: the one with the smallest `policy`, among equals the smallest id."""
    rows = [("a", "a", 2), ("b", "a", 1), ("c", "a", 1), ("d", "d", 3), ("e", "d", 3)]
    nodes = spark.createDataFrame(
        [
            (key, name, group, "ad".index(group), 9, 9, policy, bytearray(b""), 9, 2 + (group == "a"))
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


def test_no_row_that_is_sorted_by_its_set_is_padded(spark: SparkSession) -> None:
    """Headers and members have the same columns, so their union adds no column of nulls."""
    sets, graph, nodes = (local_table(spark, schema) for schema in (SETS, GRAPH, NODES))

    plan = name_sets(sets, graph, nodes, Naming(9, max_listed=2))._jdf.queryExecution().analyzed().toString()  # noqa: SLF001

    assert "Union" in plan
    assert "null AS" not in plan


def test_clusters_of_texts_are_those_of_their_sketches(spark: SparkSession) -> None:
    """The clusters of a run over texts are those that the definition gives for its sketches."""
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
    """No row holds the positions of its set: with them, a set of 100,000 nodes would take 40 GB."""
    sets = local_table(spark, SETS, [(0, [0, 2, 5], 14, "all"), (0, [0, 25], 14, "all"), (1, [0, 25], 14, "all")])

    rows = list_places(sets)

    assert "array" not in rows.schema.simpleString()
    assert rows.select("set_id").distinct().count() == 3
    assert sorted((row["ordinal"], row["position"]) for row in rows.collect()) == [
        (0, 0), (0, 0), (0, 2), (0, 5), (0, 25), (1, 0), (1, 25)
    ]  # fmt: skip


def test_an_item_has_room_for_what_it_names() -> None:
    """The largest component and the largest position fit into an item; one more is refused, not wrapped."""
    last, places = (1 << 63 - ITEM_BITS) - 1, (1 << ITEM_BITS) - 1

    assert name_items(np.array([0, last]), np.array([places, 0])).tolist() == [places, last << ITEM_BITS]
    for ordinal, position in ((last + 1, 0), (0, places + 1)):
        with pytest.raises(ValueError, match="bits for a position"):
            name_items(np.array([ordinal]), np.array([position]))


def test_very_many_sets_of_a_component_come_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sets of a component are cut into batches, because Arrow counts the values of a list column with 31 bits."""
    monkeypatch.setattr("nddup.spark.clustering.problems.VALUES_PER_BATCH", 4)
    sets = SetRows()
    sets.add(np.int64(7), np.array([2, 2, 3]), np.arange(7), np.array([9, 8, 7], np.int32), "all")

    batches = list(sets.release())

    assert [batch.num_rows for batch in batches] == [2, 1]
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert rows == [(7, [0, 1], 9, "all"), (7, [2, 3], 8, "all"), (7, [4, 5, 6], 7, "all")]
    assert [batch.num_rows for batch in sets.release()] == [0]
