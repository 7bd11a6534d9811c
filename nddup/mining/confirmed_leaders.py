"""The kept documents of a family where texts confirm pairs.

As in `leaders`, a document is kept unless it is a near-duplicate of one kept before it. Here two sketches that satisfy
the rule are only candidates, and a function of the caller tells whether the texts confirm one of several candidates.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.mining.leaders import Family, Index, compare, enter

Confirm = Callable[[int, NDArray[np.int64]], bool]
"""Tells whether the text of a document confirms it as a near-duplicate of one of several others."""


def among(confirm: Confirm, members: NDArray[np.int64]) -> Confirm:
    """Return the same function for the documents `members`, which it names by their places in that array."""
    return lambda one, others: confirm(int(members[one]), members[others])


def choose_confirmed(family: Family, by_policy: NDArray[np.int64], confirm: Confirm) -> tuple[NDArray[np.bool_], Index]:
    """
    Keep every document that is not a confirmed near-duplicate of one kept before it.

    Args:
        family: the sketches, and when two of them are candidates.
        by_policy: (n,), the documents in the order the keep policy prefers them.
        confirm: compares texts.

    Returns:
        Whether each document is kept, (n,), and the index of the kept ones, as `leaders.choose_kept` does.

    Cost: that of `choose_kept`, some 0.1 ms more for each document, and the comparisons of texts: at worst one for
        each kept candidate of a document.
    """
    n = by_policy.size
    heads, tails = np.full(family.prefixes.n_ranks, -1, np.int64), np.empty(family.prefixes.n_ranks, np.int64)
    index, count = Index(heads, tails, np.empty(1024, np.int64), np.empty(1024, np.int32)), 0

    kept, met = np.zeros(n, np.bool_), np.full(n, -1, np.int32)
    for document in by_policy.tolist():
        candidates = _meet_kept(family, index, document, met)
        kept[document] = not (len(candidates) and confirm(document, candidates))
        if kept[document]:
            index, count = enter(family.prefixes, index, document, count)
    return kept, index


@compiled
def _meet_kept(family: Family, index: Index, document: int, met: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the kept documents whose sketches are candidates with this one, in the order in which they are met."""
    prefixes = family.prefixes
    found, count = np.empty(16, np.int64), 0
    for at in range(prefixes.offsets[document], prefixes.offsets[document + 1]):
        entry = index.heads[prefixes.ranks[at]]
        while entry >= 0:
            other = index.holders[entry]
            entry = index.following[entry]
            if met[other] == document:
                continue
            met[other] = document
            if compare(family, document, other)[0] < 0:
                continue
            if count == len(found):
                found = np.concatenate((found, np.empty_like(found)))
            found[count] = other
            count += 1
    return found[:count].copy()
