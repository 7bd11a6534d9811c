"""Random rows to pack into blocks and unpack."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.spark.blocks import Layout

PARTITIONS = 5
ids = st.one_of(st.integers(0, 5), st.integers(2**63 - 2, 2**64 - 1))
rows = st.lists(
    st.tuples(
        st.integers(0, PARTITIONS - 1), st.integers(-(2**63), 2**63 - 1), st.lists(ids, max_size=4), st.floats(0, 1)
    ),
    max_size=20,
)


def as_ragged(lists: list[list[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Ragged(offsets, np.array([value for row in lists for value in row], np.uint64))


def one_block(layout: Layout, target: int, columns: Mapping[str, NDArray[Any]]) -> pa.RecordBatch:
    """Return the rows of one target as a block."""
    cells = {name: pa.array([columns[name].astype(kind).tobytes()], pa.binary()) for name, kind in layout.items()}
    return pa.RecordBatch.from_pydict({"target": pa.array([target], pa.int32()), **cells})
