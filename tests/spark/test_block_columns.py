"""Columns of blocks as arrays: nulls, slices, wide cells, and types that are refused."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.errors import SchemaError
from nddup.ground.arrays import take_rows
from nddup.ground.columns import list_column
from nddup.spark.blocks import (
    pack,
    unpack,
)
from tests.spark.packed_rows import as_ragged, ids, one_block


def test_a_null_block_is_an_empty_one() -> None:
    """A null block, as a union of tables with different columns has, unpacks to no values."""
    full = one_block({"a": np.int64}, 2, {"a": np.array([7, 8])})
    both = pa.RecordBatch.from_arrays(
        [
            pa.array([2, 2, 2], pa.int32()),
            pa.array([None, full.column("a")[0].as_py(), None], pa.binary()),
            pa.array([None, None, None], pa.binary()),
        ],
        names=["target", "a", "b"],
    )

    columns = unpack([both], {"a": np.int64, "b": np.int32})

    assert columns["a"].tolist() == [7, 8]
    assert columns["b"].tolist() == []


def test_a_slice_of_a_batch_is_read_from_its_start() -> None:
    """Of a batch that is a slice of a larger one, only its own blocks are read."""
    batch = pack({"a": np.int64}, np.array([0, 1, 2], np.int32), {"a": np.array([10, 11, 12])}, partitions=3)

    assert unpack([batch.slice(1, 1)], {"a": np.int64})["a"].tolist() == [11]
    assert unpack([batch.slice(3)], {"a": np.int64})["a"].tolist() == []


@given(st.lists(st.lists(ids, max_size=5), min_size=1, max_size=8), st.data())
def test_rows_are_taken_left_out_and_repeated(lists: list[list[int]], data: st.DataObject) -> None:
    """Any list of row numbers gives those rows in that order."""
    order = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=12))

    taken = take_rows(as_ragged(lists), np.array(order, np.int64))

    assert taken.offsets.tolist() == np.cumsum([0, *(len(lists[i]) for i in order)]).tolist()
    assert taken.values.tolist() == [value for i in order for value in lists[i]]


@pytest.mark.parametrize("start", [0, 2])
def test_a_list_column_is_read_as_unsigned(start: int) -> None:
    """A negative long is read as a large id, a null row as an empty one, a slice from its own start."""
    whole = [[5], [], [-1, 3], None, [-(2**63)]]
    expected = [[value % 2**64 for value in row or []] for row in whole][start:]

    rows = list_column(pa.array(whole, pa.list_(pa.int64())).slice(start))

    assert np.diff(rows.offsets).tolist() == [len(row) for row in expected]
    assert rows.offsets[0] == 0
    assert rows.values.tolist() == [value for row in expected for value in row]


def test_a_list_column_without_nulls_begins_at_zero() -> None:
    """The offsets of a slice begin at 0."""
    rows = list_column(pa.array([[1], [2, 3], [4]], pa.list_(pa.int64())).slice(1))

    assert (rows.offsets.tolist(), rows.values.tolist()) == ([0, 2, 3], [2, 3, 4])


@pytest.mark.parametrize("start", [0, 1])
def test_wide_cells_are_read_as_well_as_narrow_ones(start: int) -> None:
    """Cells with 64-bit offsets, which Spark sends if `useLargeVarTypes` is set, give the same values."""
    batch = pack({"a": np.int64}, np.array([0, 1, 1], np.int32), {"a": np.array([10, 11, 12])}, partitions=2)
    wide = batch.set_column(1, "a", batch.column("a").cast(pa.large_binary()))

    assert unpack([wide.slice(start)], {"a": np.int64})["a"].tolist() == [10, 11, 12][start:]

    lists = [[1], [2, 3], [], [4]]
    rows = list_column(pa.array(lists, pa.large_list(pa.int64())).slice(start))
    assert rows.values.tolist() == [value for row in lists[start:] for value in row]


@pytest.mark.parametrize("kind", [pa.binary_view(), pa.string(), pa.binary(8), pa.int64()])
def test_blocks_of_another_type_are_refused(kind: pa.DataType) -> None:
    """A type whose buffers are not known is refused, not guessed at."""
    batch = pa.RecordBatch.from_arrays([pa.nulls(2, kind)], names=["a"])

    with pytest.raises(
        SchemaError, match=f"^blocks: column 'a' should be binary or large_binary, got {re.escape(str(kind))}$"
    ):
        unpack([batch], {"a": np.int64})


def test_a_block_of_half_a_value_is_refused() -> None:
    """Bytes that are not a whole number of values are refused, not truncated."""
    batch = pa.RecordBatch.from_arrays([pa.array([b"1234567"], pa.binary())], names=["a"])

    with pytest.raises(SchemaError, match=r"^blocks: column 'a' holds 7 bytes, not a whole number of int64$"):
        unpack([batch], {"a": np.int64})


@pytest.mark.parametrize(
    "kind", [pa.list_view(pa.int64()), pa.large_list_view(pa.int64()), pa.list_(pa.int32()), pa.list_(pa.int64(), 2)]
)
def test_lists_of_another_type_are_refused(kind: pa.DataType) -> None:
    """Views, whose offsets are not ends, and numbers of four bytes, which would be misread as eight, are refused."""
    with pytest.raises(SchemaError, match=r"^a column of numbers should be list<int64> or large_list<int64>, got .*$"):
        list_column(pa.array([[1, 2], [3, 4]], kind))


def test_a_null_among_the_numbers_is_refused() -> None:
    """A null in a list is refused: it would be read as an arbitrary number."""
    with pytest.raises(SchemaError, match=r"^a list of numbers holds a null$"):
        list_column(pa.array([[1, None]], pa.list_(pa.int64())))
