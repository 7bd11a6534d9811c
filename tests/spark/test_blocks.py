"""Blocks: packed rows unpack unchanged, in the partition they were sent to."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from nddup.spark import blocks as exchange_module
from nddup.spark.blocks import (
    Columns,
    Layout,
    block_schema,
    exchange,
    pack,
    pack_pieces,
    pieces,
    target_of,
    unpack,
    with_rows,
)
from nddup.spark.schemas import table
from tests.spark.packed_rows import PARTITIONS, as_ragged, one_block, rows

LAYOUT: Layout = {"key": np.int64, "size": np.int32, "ids": np.uint64, "score": np.float64}
Row = tuple[int, int, list[int], float]


def pack_rows(chosen: list[Row]) -> pa.RecordBatch:
    columns: Columns = {
        "key": np.array([row[1] for row in chosen], np.int64),
        "size": np.array([len(row[2]) for row in chosen], np.int32),
        "score": np.array([row[3] for row in chosen], np.float64),
    }
    targets = np.array([row[0] for row in chosen], np.int32)
    ragged = {"ids": as_ragged([row[2] for row in chosen])}
    return pack(LAYOUT, targets, columns, ragged, partitions=PARTITIONS)


def unpack_rows(batches: list[pa.RecordBatch]) -> list[tuple[int, list[int], float]]:
    """Unpack the blocks of one task into rows, by the lengths that were packed with them."""
    columns = unpack(batches, LAYOUT)
    ends = np.cumsum(columns["size"])[:-1]
    lists = [part.tolist() for part in np.split(columns["ids"], ends)] if len(columns["size"]) else []
    return list(zip(columns["key"].tolist(), lists, columns["score"].tolist(), strict=True))


def sent_to(batch: pa.RecordBatch, target: int) -> pa.RecordBatch:
    return batch.filter(pa.array(np.asarray(batch.column("target")) == target))


@given(rows)
def test_each_target_gets_its_rows_in_order(chosen: list[Row]) -> None:
    """Rows of different lengths arrive whole at their target, in their order, and nowhere else."""
    batch = pack_rows(chosen)

    for target in range(PARTITIONS):
        expected = [row[1:] for row in chosen if row[0] == target]
        assert unpack_rows([sent_to(batch, target)]) == expected


@given(rows)
def test_there_is_one_block_for_each_target_that_occurs(chosen: list[Row]) -> None:
    """No block is without rows, and the rows of a target are in one block."""
    batch = pack_rows(chosen)

    assert batch.column("target").to_pylist() == sorted({row[0] for row in chosen})


@given(st.lists(rows, max_size=4))
def test_batches_are_joined_end_to_end(batches: list[list[Row]]) -> None:
    """Several batches, some of them empty, give all their rows; no batch gives empty columns of the right types."""
    packed = [pack_rows(chosen) for chosen in batches]
    expected = [row[1:] for chosen in batches for target in range(PARTITIONS) for row in chosen if row[0] == target]

    columns = unpack(packed, LAYOUT)

    assert unpack_rows(packed) == expected
    assert {name: values.dtype.type for name, values in columns.items()} == LAYOUT


@given(st.lists(rows, max_size=4), st.permutations(range(4)))
def test_rows_stay_whole_in_any_order_of_blocks(batches: list[list[Row]], order: list[int]) -> None:
    """If blocks arrive in another order, rows keep their values and only their order changes."""
    packed = [pack_rows(chosen) for chosen in batches]
    shuffled = [packed[i] for i in order if i < len(packed)]

    assert sorted(unpack_rows(shuffled)) == sorted(unpack_rows(packed))


def test_columns_stand_in_the_order_of_the_layout() -> None:
    """Columns follow the order of the layout, not of the arguments, because Spark reads them by position."""
    layout: Layout = {"b": np.int32, "ids": np.uint64, "a": np.int64}
    targets = np.array([1, 0], np.int32)

    batch = pack(
        layout, targets, {"a": np.array([1, 2]), "b": np.array([3, 4])}, {"ids": as_ragged([[5], [6, 7]])}, partitions=2
    )

    assert batch.schema.names == block_schema(layout).fieldNames() == ["target", "b", "ids", "a"]
    assert unpack([batch], {"a": np.int64})["a"].tolist() == [2, 1]


def test_values_take_the_type_of_the_layout() -> None:
    """A count given as int64 is stored in the four bytes that its column has."""
    batch = pack({"n": np.int32}, np.zeros(3, np.int32), {"n": np.array([1, 2, 2**31 - 1])}, partitions=1)

    assert unpack([batch], {"n": np.int32})["n"].tolist() == [1, 2, 2**31 - 1]


def test_the_target_is_told_by_the_blocks() -> None:
    """A task learns its partition from its blocks; without blocks it takes 0. Batches without rows are ignored."""
    block = one_block({"a": np.int64}, 4, {"a": np.array([1])})

    assert target_of(with_rows([block.slice(1), block])) == 4
    assert target_of(with_rows([block.slice(1)])) == 0


@given(st.lists(st.integers(0, 9)), st.integers(1, 20))
def test_pieces_are_all_rows_in_order(sizes: list[int], most: int) -> None:
    """Each piece is as long as the limit allows; a row larger than the limit is a piece of its own."""
    cut = [range(rows.start, rows.stop) for rows in pieces(np.array(sizes, np.int64), most)]

    assert [row for rows in cut for row in rows] == list(range(len(sizes)))
    assert all(sum(sizes[row] for row in rows) <= most or len(rows) == 1 for rows in cut)
    assert all(sum(sizes[row] for row in (*rows, rows.stop)) > most for rows in cut[:-1])


@given(rows)
def test_what_a_task_holds_is_sent_in_pieces(chosen: list[Row]) -> None:
    """Rows in several small batches are the same as in one batch."""
    columns: Columns = {"key": np.array([row[1] for row in chosen], np.int64)}
    layout, targets = {"key": np.int64}, np.array([row[0] for row in chosen], np.int32)
    (whole,) = pack_pieces(layout, targets, columns, partitions=PARTITIONS)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange_module, "BATCH_BYTES", 16)
        moved = list(pack_pieces(layout, targets, columns, partitions=PARTITIONS))

    assert len(moved) == max(1, -(-len(chosen) // 2))
    for target in range(PARTITIONS):
        parts = [sent_to(batch, target) for batch in moved]
        assert unpack(parts, layout)["key"].tolist() == unpack([sent_to(whole, target)], layout)["key"].tolist()


def test_blocks_survive_the_shuffle(spark: SparkSession) -> None:
    """Blocks arrive in their target partitions with all their rows, whatever tasks and batches they come from."""
    layout = {"value": np.int64}
    numbers = spark.range(1_000, numPartitions=3)

    def post(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = np.asarray(batch.column(0))
            yield pack(layout, (values % PARTITIONS).astype(np.int32), {"value": values}, partitions=PARTITIONS)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = with_rows(batches)
        values = np.sort(unpack(held, layout)["value"])
        target = np.full(len(values), target_of(held))
        yield pa.RecordBatch.from_arrays([pa.array(target), pa.array(values)], names=["target", "value"])

    blocks = exchange(numbers.mapInArrow(post, block_schema(layout)), partitions=PARTITIONS)
    arrived = blocks.mapInArrow(read, table("target long, value long"))

    assert blocks.rdd.getNumPartitions() == PARTITIONS
    assert sorted((row.target, row.value) for row in arrived.collect()) == sorted((n % 5, n) for n in range(1_000))
