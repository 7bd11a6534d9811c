"""A verdict for each item: which of its shingles count, which document has most of them, and how many occur anywhere.

Sets are of distinct shingles. S is the set of an item and D that of a document of A, both without suppressed shingles.

    --of item        |S and D| / |S|
    --of document    |S and D| / |D|
    --of any         the greater of the two
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import compiled

Of = Literal["item", "document", "any"]

CLEAN, PART, FOUND, SHORT, COMMON, UNREAD = range(6)
"""Codes of verdicts; the last three are the reasons of `not testable`."""

_OF: Final = {"item": (1, 0), "document": (0, 1), "any": (1, 1)}


@dataclass(frozen=True)
class Rules:
    """When an item is found.

    Attributes:
        of: whose containment counts.
        threshold: least containment, exact as written.
        max_document_frequency: a shingle in more documents of A is suppressed.
        min_shingles: an item with fewer is not testable.
    """

    of: Of = "item"
    threshold: Fraction = Fraction(4, 5)
    max_document_frequency: int = 1_000
    min_shingles: int = 5


class Numbered(NamedTuple):
    """The m items as numbers of shingles; there are d numbers.

    Attributes:
        firsts: (m + 1,), where each item begins in `numbers`.
        numbers: (t,) int32, the number of the shingle that begins at each token; -1 where none does.
        repeated: (d,), whether an earlier number belongs to the same shingle, as where B is in parts.
    """

    firsts: NDArray[np.int64]
    numbers: NDArray[np.int32]
    repeated: NDArray[np.bool_]


class Holders(NamedTuple):
    """The n documents of A that have a shingle of B.

    Attributes:
        offsets: (n + 1,), where the hits of each document begin in `numbers`.
        numbers: the numbers of their shingles; a document may have one several times.
        contents: (n, 2) uint64, the fingerprint of each document's content.
        sizes: (n,), distinct shingles of each; used by --of document and any.
        ranks: (n,), the place of each in the order of ids: the lowest wins ties.
        groups: (n,), the file or folder of each, numbered from 0.
    """

    offsets: NDArray[np.int64]
    numbers: NDArray[np.int32]
    contents: NDArray[np.uint64]
    sizes: NDArray[np.int32]
    ranks: NDArray[np.int64]
    groups: NDArray[np.int64]


class Judged(NamedTuple):
    """The verdicts on m items with d numbered shingles.

    Attributes:
        sizes: (m,), distinct shingles of each item.
        suppressed: (m,), how many of them are suppressed.
        verdicts: (m,) int8, codes.
        best: (m,), the document with the highest containment; -1 for none.
        containment: (m,), that containment; 0 for none.
        covered: (m,), share of the unsuppressed shingles that occur anywhere in A; 0 if all are suppressed.
        frequencies: (d,), documents of A that have each shingle, those with the same content counted once.
        is_suppressed: (d,), whether each shingle is in too many documents.
        cells: (c, 3) int64: an item, a group of A, and the verdict against it, PART or FOUND; other cells are clean.
        holds: (n,), whether each document of A has an item that is found in it.
    """

    sizes: NDArray[np.int64]
    suppressed: NDArray[np.int64]
    verdicts: NDArray[np.int8]
    best: NDArray[np.int64]
    containment: NDArray[np.float64]
    covered: NDArray[np.float64]
    frequencies: NDArray[np.int64]
    is_suppressed: NDArray[np.bool_]
    cells: NDArray[np.int64]
    holds: NDArray[np.bool_]


class _Sets(NamedTuple):
    """Rows of distinct numbers: `values[offsets[i]:offsets[i + 1]]`, in the order in which they first appear."""

    offsets: NDArray[np.int64]
    values: NDArray[np.int64]

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of each value."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def judge(items: Numbered, holders: Holders, rules: Rules, *, is_all_read: bool = True) -> Judged:
    """Judge every item.

    Args:
        holders: the documents of A that have any of these shingles.
        rules: when an item is found.
        is_all_read: whether all of A was read; if not, no item is clean.

    Returns:
        The verdicts. Without documents every item is clean or not testable.

    Cost: linear in the hits, plus one step per common shingle of a document and an item. Memory: some 50 bytes per hit.
    """
    n_known = len(items.repeated)
    of_items = _sets(items.firsts, items.numbers, n_known)
    of_documents = _sets(holders.offsets, holders.numbers, n_known)

    frequencies = _count_documents(of_documents, holders.contents, n_known)
    is_suppressed = frequencies > rules.max_document_frequency
    sizes = np.diff(of_items.offsets)
    suppressed = _sum_rows(of_items, is_suppressed)
    left = sizes - suppressed
    is_testable = (sizes >= rules.min_shingles) & (left >= rules.min_shingles)

    scored = _Scored(*_score(
        _in_groups(of_documents, holders, is_suppressed & ~items.repeated),
        _postings(of_items, is_suppressed, is_testable, n_known),
        is_suppressed, left, np.array(_OF[rules.of], np.int64),
        np.array([rules.threshold.numerator, rules.threshold.denominator], np.int64),
    ))  # fmt: skip

    nothing = CLEAN if is_all_read else UNREAD
    verdicts = np.where(scored.is_found, FOUND, np.where(scored.best >= 0, PART, nothing)).astype(np.int8)
    verdicts[left < rules.min_shingles] = COMMON
    verdicts[sizes < rules.min_shingles] = SHORT
    anywhere = _sum_rows(of_items, (frequencies > 0) & ~is_suppressed)
    covered = np.divide(anywhere, left, out=np.zeros(len(left)), where=left > 0)
    return Judged(
        sizes, suppressed, verdicts, scored.best, scored.value, covered, frequencies, is_suppressed, scored.cells,
        scored.holds,
    )  # fmt: skip


class _Scored(NamedTuple):
    best: NDArray[np.int64]
    value: NDArray[np.float64]
    is_found: NDArray[np.bool_]
    cells: NDArray[np.int64]
    holds: NDArray[np.bool_]


class _Postings(NamedTuple):
    """The testable items that have each unsuppressed shingle."""

    offsets: NDArray[np.int64]
    items: NDArray[np.int64]


class _Ordered(NamedTuple):
    """The documents, ordered by group through `order`; sizes exclude suppressed shingles."""

    order: NDArray[np.int64]
    offsets: NDArray[np.int64]
    values: NDArray[np.int64]
    sizes: NDArray[np.int64]
    ranks: NDArray[np.int64]
    groups: NDArray[np.int64]


def _sets(offsets: NDArray[np.int64], numbers: NDArray[np.int32], n_known: int) -> _Sets:
    return _Sets(*_distinct_in_rows(offsets, numbers, n_known))


@compiled
def _distinct_in_rows(
    offsets: NDArray[np.int64], numbers: NDArray[np.int32], n_known: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    last = np.full(n_known, -1, np.int64)  # the last row that has each number
    ends, values = np.zeros(len(offsets), np.int64), np.empty(len(numbers), np.int64)
    count = 0
    for row in range(len(offsets) - 1):
        for i in range(offsets[row], offsets[row + 1]):
            number = numbers[i]
            if number >= 0 and last[number] != row:
                last[number] = row
                values[count] = number
                count += 1
        ends[row + 1] = count
    return ends, values[:count].copy()


def _sum_rows(sets: _Sets, is_counted: NDArray[np.bool_]) -> NDArray[np.int64]:
    counts = np.bincount(sets.rows, weights=is_counted[sets.values], minlength=len(sets.offsets) - 1)
    return counts.astype(np.int64)


def _count_documents(sets: _Sets, contents: NDArray[np.uint64], n_known: int) -> NDArray[np.int64]:
    """Return how many documents have each shingle; those with the same content count once."""
    is_first = np.zeros(len(contents), np.bool_)
    is_first[np.unique(contents, axis=0, return_index=True)[1]] = True
    return np.bincount(sets.values[is_first[sets.rows]], minlength=n_known)


def _postings(
    of_items: _Sets, is_suppressed: NDArray[np.bool_], is_testable: NDArray[np.bool_], n_known: int
) -> _Postings:
    rows = of_items.rows
    is_taken = is_testable[rows] & ~is_suppressed[of_items.values]
    values, items = of_items.values[is_taken], rows[is_taken]
    order = np.argsort(values, kind="stable")
    return _Postings(np.searchsorted(values[order], np.arange(n_known + 1)), items[order])


def _in_groups(sets: _Sets, holders: Holders, is_passed_over: NDArray[np.bool_]) -> _Ordered:
    sizes = holders.sizes - _sum_rows(sets, is_passed_over)
    order = np.argsort(holders.groups, kind="stable")
    return _Ordered(order, sets.offsets, sets.values, sizes, holders.ranks, holders.groups)


@compiled
def _score(  # noqa: C901 - one pass over the documents; each phase has its comment
    documents: _Ordered,
    postings: _Postings,
    is_suppressed: NDArray[np.bool_],
    left: NDArray[np.int64],
    of: NDArray[np.int64],
    threshold: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64], NDArray[np.bool_]]:
    """Compare each document with the items that share a shingle with it.

    Returns `best` and `containment` of each item, whether any document reaches the threshold, and `cells` and `holds`
    of `Judged`.
    """
    n_items = len(left)
    best, value = np.full(n_items, -1, np.int64), np.zeros(n_items, np.float64)
    is_found, holds = np.zeros(n_items, np.bool_), np.zeros(len(documents.order), np.bool_)
    shared, touched = np.zeros(n_items, np.int64), np.empty(n_items, np.int64)
    cell_of = np.full(n_items, -1, np.int64)  # the last cell of each item: documents come group by group
    cells, n_cells = np.empty((1024, 3), np.int64), 0

    # Local names: a field of a tuple would have its references counted at every use.
    offsets, values, ranks, groups = documents.offsets, documents.values, documents.ranks, documents.groups
    post_offsets, post_items = postings.offsets, postings.items

    for document in documents.order:
        # How many shingles each item has in common with this document.
        n_touched = 0
        for i in range(offsets[document], offsets[document + 1]):
            number = values[i]
            if is_suppressed[number]:
                continue
            for j in range(post_offsets[number], post_offsets[number + 1]):
                item = post_items[j]
                if shared[item] == 0:
                    touched[n_touched] = item
                    n_touched += 1
                shared[item] += 1

        for t in range(n_touched):
            item = touched[t]
            count, shared[item] = shared[item], 0
            is_reached, share = False, 0.0
            for side in range(2):
                if of[side]:
                    size = left[item] if side == 0 else documents.sizes[document]
                    is_reached |= count * threshold[1] >= threshold[0] * size
                    share = max(share, count / size)
            is_found[item] |= is_reached
            holds[document] |= is_reached

            # Two different fractions of counts below 2**26 are different floats, and equal ones are the same float.
            if share > value[item] or (share == value[item] and ranks[document] < ranks[best[item]]):
                best[item], value[item] = document, share

            cell = cell_of[item]
            if cell < 0 or cells[cell, 1] != groups[document]:
                if n_cells == len(cells):
                    cells = np.concatenate((cells, np.empty_like(cells)))
                cell = n_cells
                cell_of[item] = cell
                cells[cell, 0], cells[cell, 1], cells[cell, 2] = item, groups[document], PART
                n_cells += 1
            if is_reached:
                cells[cell, 2] = FOUND
    return best, value, is_found, cells[:n_cells].copy(), holds
