"""Rows of SETS, gathered over components: one batch each would cost more than mining a small component."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from nddup.columns import lists_of
from nddup.mining.itemsets import Itemsets
from nddup.tables import SETS

MEMBERS_PER_BATCH = 1_000_000
"""Members of sets that are gathered before a batch is sent: 4 MB."""

VALUES_PER_BATCH = 1 << 26
"""Most values of a list column in one batch; more are cut into several batches."""


class SetRows:
    """The sets of some components."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._ordinals: list[int] = []
        self._found: list[Itemsets] = []
        self.members = 0

    def add(self, ordinal: int, found: Itemsets) -> None:
        """Add the sets of the component of this number; their members are positions in it."""
        self._ordinals.append(ordinal)
        self._found.append(found)
        self.members += len(found.members)

    @property
    def is_full(self) -> bool:
        """Whether the rows should be sent before more are gathered."""
        return self.members >= MEMBERS_PER_BATCH

    def release(self) -> Iterator[pa.RecordBatch]:
        """Yield and clear the gathered rows, if any: in several batches if they have very many members."""
        counts = [len(found.supports) for found in self._found]
        members = [np.empty(0, np.int32), *(found.members.astype(np.int32, copy=False) for found in self._found)]
        sizes = [np.empty(0, np.int64), *(np.diff(found.offsets) for found in self._found)]
        supports = [np.empty(0, np.int32), *(found.supports for found in self._found)]
        coverages = np.repeat(np.array([found.coverage for found in self._found], object), counts)
        ordinals = np.repeat(np.array(self._ordinals, np.int64), counts)
        self._clear()

        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
        lists = lists_of(offsets, pa.array(np.concatenate(members)), VALUES_PER_BATCH)
        columns = [pa.array(ordinals), lists, pa.array(np.concatenate(supports)), pa.array(coverages, pa.string())]
        yield from pa.Table.from_arrays(columns, schema=SETS.arrow).to_batches()
