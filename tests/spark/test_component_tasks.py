"""The task of each component: joined as rows, or looked up in chunks; rows of other nodes are left out."""

import numpy as np
import pytest
from pyspark.sql import SparkSession

from nddup.spark.clustering.problems import CHUNKED_DOCUMENTS, CHUNKED_NODES, Scale, list_targets, send

ROWS, CHUNKED = Scale(1, 1), Scale(CHUNKED_NODES, CHUNKED_DOCUMENTS)


@pytest.mark.parametrize("scale", [ROWS, CHUNKED], ids=["rows", "chunks"])
def test_every_row_of_a_node_follows_its_component(spark: SparkSession, scale: Scale) -> None:
    """Rows follow nodes in several chunks, at both ends of a chunk, and in a distant one; other rows are left out."""
    random = np.random.default_rng(5)
    drawn = random.choice(20_000, 3_000, replace=False).tolist()
    nodes = sorted({0, 4_095, 4_096, 8_191, 10**12, *drawn})
    ordinal = {node: int(random.integers(2**40)) for node in nodes}
    graph = spark.createDataFrame(list(ordinal.items()), "node long, ordinal long")
    asked = [*range(20_000), 10**12, 10**12 + 1, 10**12 + 5_000] * 2

    targets = list_targets(graph, scale, partitions=7)
    sent = send(spark.createDataFrame([(node, -node) for node in asked], "of long, value long"), targets, "of")

    assert sent.columns == ["of", "value", "target"]
    expected = [(node, -node, ordinal[node] % 7) for node in asked if node in ordinal]
    assert sorted(map(tuple, sent.collect())) == sorted(expected)


def test_no_row_is_shuffled_to_look_up_a_chunk(spark: SparkSession) -> None:
    """Only the narrow rows that make up the chunks are shuffled, on the broadcast side."""
    graph, rows = spark.range(9).toDF("node").selectExpr("node", "node as ordinal"), spark.range(99).toDF("of")

    plan = send(rows, list_targets(graph, CHUNKED, partitions=7), "of")._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001

    assert "BroadcastHashJoin" in plan
    assert plan.count("Exchange hashpartitioning") == 1


@pytest.mark.parametrize(
    ("scale", "partitions"),
    [(Scale(CHUNKED_NODES - 1, CHUNKED_NODES), 7), (Scale(CHUNKED_NODES, CHUNKED_DOCUMENTS + 1), 7), (CHUNKED, 2**15)],
    ids=["few nodes", "very many documents", "very many partitions"],
)
def test_chunks_have_limits(scale: Scale, partitions: int) -> None:
    """Targets are joined as rows for few nodes, for too many documents, and for partitions of more than 15 bits."""
    assert not scale.is_chunked(partitions)
    assert CHUNKED.is_chunked(2**15 - 1)
