"""Documents that are alone are told by bits of the nodes of the graph; few bits let some of them move, and no other."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from nddup.mining.keep_verdicts import FORCED_WEIGHT
from nddup.spark.clustering import alone
from nddup.tables import KEEP

ROW = st.tuples(st.booleans(), st.integers(1, 3), st.sampled_from([9, 9 + FORCED_WEIGHT, 9 - FORCED_WEIGHT]))


def nodes_of(rows: list[tuple[bool, int, int]]) -> pa.RecordBatch:
    """NODES whose keys are some apart; of each row what the bits are asked with."""
    keys = [7 * at for at in range(len(rows))]
    columns = {
        "doc_id": pa.array([f"d{key}" for key in keys], pa.string()),
        "node": pa.array(keys, pa.int64()),
        "weight": pa.array([weight for _, _, weight in rows], pa.int64()),
        "n": pa.array([n for _, n, _ in rows], pa.int64()),
    }
    return pa.record_batch(columns)


@given(st.lists(ROW, max_size=300), st.sampled_from([1, 2, 8, 64]))
def test_what_is_alone_stays_and_all_else_moves(rows: list[tuple[bool, int, int]], words: int) -> None:
    batch = nodes_of(rows)
    graph = batch.filter(pa.array([is_paired for is_paired, _, _ in rows], pa.bool_()))
    marks = pa.Table.from_batches(alone._mark(iter([graph.slice(0, 9), graph.slice(9)]), words=words))  # noqa: SLF001
    bits = alone.put_together(marks, words)

    kept = pa.Table.from_batches(alone._keep(iter([batch]), words=bits), KEEP.arrow).to_pylist()  # noqa: SLF001
    moved = pa.Table.from_batches(alone._take_joined(iter([batch]), words=bits), batch.schema)  # noqa: SLF001
    due = {f"d{7 * at}" for at, (is_paired, n, weight) in enumerate(rows) if not is_paired and n == 1 and weight == 9}
    stays = {row["doc_id"] for row in kept}

    assert sorted([*stays, *moved["doc_id"].to_pylist()]) == sorted(batch["doc_id"].to_pylist())
    assert stays == due if 64 * words > 7 * len(rows) else stays <= due
    empty = dict.fromkeys(KEEP.names)
    assert all(row == {**empty, "doc_id": row["doc_id"], "kept": True, "leader": False} for row in kept)


def test_each_of_half_a_billion_documents_has_a_bit() -> None:
    for documents in (0, 1, 63, 64, 65, 10**6, 2**29 - 1):
        assert documents < 64 * alone.words_for(documents) <= max(64, 2 * documents)
    assert alone.words_for(10**10) == alone.MOST_WORDS == 2**29 // 64
