"""The blocks of a task as mining problems: nodes and sketches must match, or nothing is mined."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

from nddup.matching.threshold import Threshold
from nddup.spark.blocks import Layout
from nddup.spark.clustering.problems import EDGE_LAYOUT, NODE_LAYOUT, PROBLEM_LAYOUT, SKETCH_LAYOUT, read_problems
from tests.spark.packed_rows import one_block

THRESHOLD = Threshold("resemblance", 1, 2, is_count=False, size=3)


def blocks(layout: Layout, columns: Mapping[str, Sequence[int]]) -> list[pa.RecordBatch]:
    """Return blocks of some columns, the others null, as in the union of the three layouts."""
    filled = {
        name: np.array(columns.get(name, [0] * len(columns[next(iter(layout))])), layout[name]) for name in layout
    }
    part = one_block(layout, 0, filled)
    columns = {name: part.column(name) if name in layout else pa.nulls(1, pa.binary()) for name in PROBLEM_LAYOUT}
    return [pa.RecordBatch.from_pydict(columns)]


def held(*, sketched: Sequence[int]) -> list[pa.RecordBatch]:
    """Return blocks of nodes 7 and 9, a pair in one component, and of the sketches of the nodes `sketched`."""
    nodes = blocks(NODE_LAYOUT, {"node": [9, 7], "position": [1, 0]})
    edges = blocks(EDGE_LAYOUT, {"node_a": [7], "node_b": [9]})
    ids = {7: [1, 2, 3], 9: [1, 2, 4], 8: [5, 6, 7]}
    sizes = blocks({"sketch_node": np.int64, "size": np.int32}, {"sketch_node": sketched, "size": [3] * len(sketched)})
    values = blocks({"ids": np.uint64}, {"ids": [value for node in sketched for value in ids[node]]})
    assert set(SKETCH_LAYOUT) == {"sketch_node", "size", "ids"}
    return [*nodes, *sizes, *values, *edges]


@pytest.mark.parametrize("sketched", [[7, 9], [9, 7]])
def test_each_node_has_its_sketch_in_whatever_order_they_came(sketched: list[int]) -> None:
    """Sketches are ordered by the position of their node in the component, whatever order they arrived in."""
    problems, _ = read_problems(held(sketched=sketched), THRESHOLD)

    assert problems.component(0).sketches.values.tolist() == [1, 2, 3, 1, 2, 4]
    assert problems.component(0).edges.tolist() == [[0, 1]]


@pytest.mark.parametrize("sketched", [[7], [7, 8], [7, 9, 8], [7, 7]], ids=["missing", "other", "more", "twice"])
def test_sketches_that_are_not_those_of_the_nodes_are_refused(sketched: list[int]) -> None:
    """Sketches that are not one per node are refused: a wrong one would silently give wrong clusters."""
    with pytest.raises(ValueError, match=r"2 nodes and \d sketches, which are not one per node"):
        read_problems(held(sketched=sketched), THRESHOLD)
