"""Lists that are null go to a task as empty ones, and are null again in it."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from nddup.spark.schemas import LACKS, fill_lists, map_lists, put_nulls, table

NAMES = "key long, first array<long>, second array<string>, text string"
SCHEMA = pa.schema(
    {"key": pa.int64(), "first": pa.list_(pa.int64()), "second": pa.list_(pa.string()), "text": pa.string()}
)
ROWS = [
    (1, None, None, None), (2, [], None, "a"), (3, None, [], ""), (4, [7, None], ["x", None], "b"),
    (5, None, None, None), (6, [], [], "c"), (7, [-1], None, None),
]  # fmt: skip


@pytest.mark.spark
def test_a_task_gets_the_rows_that_are_there(spark: SparkSession) -> None:
    """None is sent with a null list, and each arrives as it was: null, empty, or with nulls in it."""
    rows, kinds = spark.createDataFrame(ROWS, table(NAMES)).coalesce(1), SCHEMA

    def echo(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([batch[one.name].cast(one.type) for one in kinds], kinds.names)

    sent, arrived = fill_lists(rows, SCHEMA), map_lists(rows, echo, SCHEMA, table(NAMES))

    assert sent.where("first IS NULL OR second IS NULL").count() == 0
    assert sorted(map(tuple, arrived.collect())) == ROWS


lists = st.lists(st.none() | st.lists(st.integers(0, 9), max_size=2))


@given(lists, lists)
def test_nulls_are_put_where_they_were(first: list[list[int] | None], second: list[list[int] | None]) -> None:
    """Of any rows, by the sum of `LACKS`."""
    kind, whole = pa.list_(pa.int64()), list(zip(first, second, strict=False))
    lacks = [sum(1 << at for at, one in enumerate(row) if one is None) for row in whole]
    columns = [pa.array([row[at] or [] for row in whole], kind) for at in range(2)]
    batch = pa.record_batch([*columns, pa.array(lacks, pa.int32())], names=["a", "b", LACKS])

    back = put_nulls(batch, lists=["a", "b"])

    assert back.schema.names == ["a", "b"]
    assert [tuple(row.values()) for row in back.to_pylist()] == whole
