"""Probes: sketches on their way to every partition that owns a feature of their prefix, or one of their keys.

There they meet each other in `match.match_probes`. A sketch has as many copies as its features have owners, so together
they may be many times what a task holds: they are made and sent in pieces.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.arrays import Ragged, take_rows
from nddup.matching.prefix_filter import partition_of
from nddup.spark.blocks import Columns, Layout, pack, pieces

PROBE_LAYOUT: Layout = {
    "node": np.int64,
    "size": np.int32,
    "crowd": np.int32,
    "ids": np.uint64,
    "bound": np.int32,
    "posted": np.int32,
    "prefix_size": np.int32,
    "prefix": np.uint64,
    "prefix_holders": np.uint64,
}


def post_probes(
    columns: Columns, sketches: Ragged, prefix: Ragged, holders: Ragged, *, partitions: int
) -> Iterator[pa.RecordBatch]:
    """Each sketch to every partition that owns one of its prefix, in batches: together the copies may be large.

    Args:
        columns: `node`, `crowd`, `bound`, `posted`, a row a sketch.
        sketches: their ids.
        prefix: the features, or the keys, that decide where they go.
        holders: of each feature.
        partitions: how many there are.
    """
    copies, targets = copies_of(prefix, partitions)
    sizes, lengths = (np.diff(rows.offsets).astype(np.int32) for rows in (sketches, prefix))
    whole = {**columns, "size": sizes, "prefix_size": lengths}
    for rows in pieces(8 * np.maximum(sizes, lengths)[copies].astype(np.int64)):
        chosen = copies[rows]
        ragged = {"ids": sketches, "prefix": prefix, "prefix_holders": holders}
        yield pack(
            PROBE_LAYOUT,
            targets[rows],
            {name: column[chosen] for name, column in whole.items()},
            {name: take_rows(column, chosen) for name, column in ragged.items()},
            partitions=partitions,
        )


def copies_of(prefix: Ragged, partitions: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Which sketch goes where: the distinct (sketch, owner of one of its prefix features, or of its keys)."""
    sketch = np.repeat(np.arange(len(prefix.offsets) - 1), np.diff(prefix.offsets))
    routes = np.unique(sketch * partitions + partition_of(prefix.values, partitions))
    return routes // partitions, (routes % partitions).astype(np.int32)
