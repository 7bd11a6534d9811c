"""V_i(D): sketches of ids divisible by 2**i, reduced to coarser moduli.

The ids divisible by 2**(i+1) are the next coarser sketch of a document. Two documents are compared at the coarser of
their two moduli, at which both are sampled at one rate.

Source:
    Broder, Glassman, Manasse, Zweig 1997, Syntactic clustering of the Web; Broder 1997 (V_i and its comparison).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import Ragged, compiled
from nddup.sketching.permutations import GOLDEN, mix_id

LEVEL_BITS: Final = 6
"""Bits of a level, which is below 64. A name packs the node, the level of its sketch, and the level compared at."""

ONE: Final = np.uint64(1)


def spread_levels(
    nodes: NDArray[np.int64], levels: NDArray[np.int64], sketches: Ragged, most: int
) -> tuple[NDArray[np.int64], Ragged]:
    """Reduce each sketch to its own level and to each coarser one, up to `most`; leave out empty results.

    Args:
        nodes: (n,), numbers below 2**51.
        levels: (n,), the exponent i of each sketch.
        sketches: n rows of ascending ids divisible by 2**i.
        most: the coarsest level, below 64.

    Returns:
        Names, (m,), `node << 12 | own << 6 | level`, where `own` is the level of the sketch; and the ids of each row,
        ascending, permuted by the level, so that rows of different levels have no ids in common.

    Cost: linear in the ids times the levels of their sketch, and a sort of each row.

    Example:
        >>> names, rows = spread_levels(np.array([5]), np.array([1]), Ragged(np.array([0, 3]), np.array([2, 4, 8])), 3)
        >>> [(name >> 12, name >> 6 & 63, name & 63) for name in names.tolist()], rows.offsets.tolist()
        ([(5, 1, 1), (5, 1, 2), (5, 1, 3)], [0, 3, 5, 6])
    """
    names, offsets, values = _spread(nodes, levels, sketches.offsets, sketches.values.astype(np.uint64), most)
    return names, Ragged(offsets, values)


@compiled
def _spread(
    nodes: NDArray[np.int64],
    levels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    # Count rows and ids first, so that the arrays are allocated once.
    rows = np.int64(0)
    total = np.int64(0)
    for i in range(nodes.size):
        rows += max(most - levels[i], 0) + 1
        for at in range(offsets[i], offsets[i + 1]):
            level = levels[i]
            while level <= most and ids[at] & ((ONE << np.uint64(level)) - ONE) == 0:
                total += 1
                level += 1
    names, starts, values = np.empty(rows, np.int64), np.zeros(rows + 1, np.int64), np.empty(total, np.uint64)

    row = end = 0
    for i in range(nodes.size):
        for level in range(levels[i], most + 1):
            mask = (ONE << np.uint64(level)) - ONE
            for at in range(offsets[i], offsets[i + 1]):
                if ids[at] & mask == 0:
                    values[end] = mix_id(ids[at], ONE, GOLDEN * np.uint64(level + 1))
                    end += 1

            # An empty row leaves its place to the next one.
            if end > starts[row]:
                values[starts[row] : end] = np.sort(values[starts[row] : end])
                names[row] = nodes[i] << 2 * LEVEL_BITS | levels[i] << LEVEL_BITS | level
                row += 1
                starts[row] = end
    return names[:row].copy(), starts[: row + 1].copy(), values[:end].copy()
