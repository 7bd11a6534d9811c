"""Random rows to pack into blocks and unpack."""

import numpy as np
from hypothesis import strategies as st

from nddup.arrays import Ragged

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
