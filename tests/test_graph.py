"""What the task that holds the whole pair graph counts, without Spark."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from nddup.stages.graph import _graph_task

EDGES = st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda edge: edge[0] < edge[1]), min_size=1)


@given(EDGES, st.lists(st.integers(1, 50), min_size=10, max_size=10))
def test_documents_and_pairs_of_each_component_are_counted(edges: set[tuple[int, int]], sizes: list[int]) -> None:
    """As if every document stood for itself: all pairs of a node, and the product of both ends of an edge."""
    ends = sorted({end for edge in edges for end in edge})
    described = pa.table(
        {
            "node": pa.array(ends, pa.int64()),
            "group": [f"g{end}" for end in ends],
            "policy": pa.array([0] * len(ends), pa.int64()),
            "best": [f"g{end}" for end in ends],
            "documents": pa.array([sizes[end] for end in ends], pa.int64()),
            "led": [False] * len(ends),
        }
    )
    first, second = (pa.array([edge[side] for edge in sorted(edges)], pa.int64()) for side in (0, 1))
    matches = pa.table({"node_a": first, "node_b": second, "resemblance": [0.9] * len(edges)})
    whole = pa.concat_tables([matches, described], promote_options="default").combine_chunks()

    graph = pa.Table.from_batches(_graph_task(iter(whole.to_batches()), largest=0, max_sets=1, max_members=1))

    for row in graph.to_pylist():
        inside = {end for end, name in zip(graph["node"].to_pylist(), graph["component"].to_pylist(), strict=True)
                  if name == row["component"]}  # fmt: skip
        found = sum(sizes[end] * (sizes[end] - 1) // 2 for end in inside)
        found += sum(sizes[a] * sizes[b] for a, b in edges if a in inside)
        assert row["component_documents"] == sum(sizes[end] for end in inside)
        assert row["component_pairs"] == found
