"""Probes: sketches on their way to every partition that owns a feature of their prefix, or one of their keys.

There they meet each other in `match.match_probes`. A sketch is copied once for each of these partitions. All copies of
a task may be many times what its memory holds, so they are made and sent in pieces.
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
    "heavy": np.int32,
    "ids": np.uint64,
    "bound": np.int32,
    "posted": np.int32,
    "prefix_size": np.int32,
    "prefix": np.uint64,
    "prefix_holders": np.uint64,
}
"""A row a copy of a sketch; `heavy` is 1 for a heavy sketch, else 0. The others are columns of `overlap_join.Probes`:
`size` and `prefix_size` are the lengths of the rows `ids`, and `prefix` and `prefix_holders`."""


def post_probes(
    columns: Columns, sketches: Ragged, prefix: Ragged, holders: Ragged, *, partitions: int
) -> Iterator[pa.RecordBatch]:
    """Send each sketch to every partition that owns a feature of its prefix.

    Args:
        columns: `node`, `heavy`, `bound` and `posted`, (n,) each.
        sketches: the original sketches, n rows of ids.
        prefix: the features, or the keys, that decide where a sketch goes, n rows.
        holders: how many sketches hold each of these features, n rows.
        partitions: how many partitions there are.

    Yields:
        Blocks of PROBE_LAYOUT, at most `BATCH_BYTES` of the longer rows in a batch. Cost: linear in the copies.
    """
    copies, targets = copies_of(prefix, partitions)
    sizes, lengths = (np.diff(rows.offsets).astype(np.int32) for rows in (sketches, prefix))

    whole = {**columns, "size": sizes, "prefix_size": lengths}
    ragged = {"ids": sketches, "prefix": prefix, "prefix_holders": holders}
    for rows in pieces(8 * np.maximum(sizes, lengths)[copies].astype(np.int64)):
        chosen = copies[rows]
        yield pack(
            PROBE_LAYOUT,
            targets[rows],
            {name: column[chosen] for name, column in whole.items()},
            {name: take_rows(column, chosen) for name, column in ragged.items()},
            partitions=partitions,
        )


def copies_of(prefix: Ragged, partitions: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Tell which sketch goes where.

    Args:
        prefix: the features or keys of each sketch.
        partitions: how many partitions there are.

    Returns:
        The distinct pairs of a sketch and an owner of one of its features: rows of `prefix`, and partitions.
    """
    sketch = np.repeat(np.arange(len(prefix.offsets) - 1), np.diff(prefix.offsets))
    routes = np.unique(sketch * partitions + partition_of(prefix.values, partitions))
    return routes // partitions, (routes % partitions).astype(np.int32)
