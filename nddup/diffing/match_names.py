"""Names that last: which later family has the name of an earlier one, and the names of those that are new.

Of all pairs of an earlier and a later family that share documents, those that share most come first, and a pair whose
families are both still free is taken. So a family that keeps most of an earlier one keeps its name. Definition: pairs
by shared documents descending, then by the earlier name, then by the larger later family, then by its smallest id.
"""

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def match_names(
    earlier: pa.Array, later: pa.Array, shared: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the rows, of p pairs of families, whose later family has the name of the earlier one, ascending.

    Args:
        earlier: (p,) names.
        later: (p,) the smallest id of each later family.
        shared: (p,) documents that both have.
        sizes: (p,) documents of the later family.

    Returns:
        (m,), none without pairs; each earlier and each later family is in one of these rows at most.

    Cost: a sort of the rows, 100 bytes each.
    """
    if not len(shared):
        return np.empty(0, np.int64)
    names, ids = (_rank(values) for values in (earlier, later))
    order = np.lexsort((ids, -sizes, names, -shared))
    return np.sort(order[_take_free(names[order], ids[order])])


def name_others(ids: Sequence[str], used: Collection[str]) -> list[str]:
    """Return names for k families of which every id is or was a name: the smallest id with `~2`, or `~3`, and so on.

    Args:
        ids: (k,) the smallest id of each.
        used: all names and ids that hold a `~`.

    Returns:
        (k,) names, all different, whatever the order of the families.
    """
    taken, found = set(used), dict[str, str]()
    for one in sorted(ids):
        number = 2
        while f"{one}~{number}" in taken:
            number += 1
        found[one] = f"{one}~{number}"
        taken.add(found[one])
    return [found[one] for one in ids]


def _rank(values: pa.Array) -> NDArray[np.int64]:
    """Return the place of each value among all, as bytes, (p,)."""
    encoded = values.dictionary_encode()
    spelled = [value.encode() for value in encoded.dictionary.to_pylist()]
    ranks = np.empty(len(spelled), np.int64)
    ranks[sorted(range(len(spelled)), key=spelled.__getitem__)] = np.arange(len(spelled))
    found: NDArray[np.int64] = ranks[np.asarray(encoded.indices)]
    return found


def _take_free(names: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows are taken, gone through once in order."""
    is_named, is_called, is_taken = set[int](), set[int](), np.zeros(len(names), np.bool_)
    for row, (name, one) in enumerate(zip(names.tolist(), ids.tolist(), strict=True)):
        if name not in is_named and one not in is_called:
            is_taken[row] = True
            is_named.add(name)
            is_called.add(one)
    return is_taken
