"""What is kept of a component too large for its pairs where `keep.max_lost` or `keep.same` limit what replaces what.

    keep_bounded    Family, policy, Choosing, Confirm -> Bounded: what is kept, and what replaces each other document
    keep_apart      Family, Divided, Confirm          -> pairs by which documents of equal values replace each other
    choose_freely   n -> the Choosing by which nothing is forced and any part may be lost

A leader may then replace few of the documents near it, so leaders do not decide what is kept. In the order of the keep
policy, each document is compared with the kept ones before it, and is kept unless one of them may replace it
(`keep_verdicts.may_replace`).
"""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged, number_keys, take_rows
from nddup.matching.confirm_texts import Compared
from nddup.matching.overlap_join import Prefixes
from nddup.mining.keep_verdicts import FREE, KEPT, REMOVED, Loss, may_replace
from nddup.mining.leaders import Family, Index, begin_index, compare_with, enter

Confirm = Callable[[int, NDArray[np.int64]], Compared]
"""Compares the text of a document with those of several others."""


class Choosing(NamedTuple):
    """What decides about n documents beside their likeness; a document stands for all that have its shingles."""

    classes: NDArray[np.int8]
    """(n,), `keep_verdicts.KEPT`, `FREE` or `REMOVED`."""

    last_classes: NDArray[np.int8]
    """(n,), the class of its last copy."""

    copies: NDArray[np.int64]
    """(n,), the documents that have its shingles, itself too."""

    shingles: NDArray[np.int64]
    """(n,), distinct shingles."""

    most_lost: Fraction | None
    """`keep.max_lost`; None: any part may be lost, and leaders decide what is kept."""

    @property
    def is_forced(self) -> NDArray[np.bool_]:
        """Whether each document is forced to be kept, (n,)."""
        return np.asarray(self.classes == KEPT)

    def take(self, places: NDArray[np.int64]) -> "Choosing":
        """Return what decides about some of the documents."""
        classes, last, copies, shingles, most = self
        return Choosing(classes[places], last[places], copies[places], shingles[places], most)


def choose_freely(n: int) -> Choosing:
    """Return what decides about n documents where nothing is forced and any part may be lost."""
    free, ones = np.full(n, FREE, np.int8), np.ones(n, np.int64)
    return Choosing(free, free, ones, ones, None)


class Bounded(NamedTuple):
    """The choice among n documents."""

    stands: NDArray[np.int32]
    """(n,), the kept document that replaces each; itself where there is none."""

    rows: NDArray[np.int32]
    """(p, 5), the pairs of a removed document with one that replaces it or a copy of it, as of `compare_with`."""

    limited: int
    """Documents that were compared with heads only."""


class _Offers(NamedTuple):
    """The kept documents that are near a document, in the order of preference."""

    rows: NDArray[np.int32]  # (k, 5)
    likeness: NDArray[np.float64]  # (k,)
    fits: NDArray[np.bool_]  # (k,), whether each may replace it


class _Search:
    """The kept documents so far, indexed by their prefixes: all of them, and the heads."""

    def __init__(self, family: Family, choosing: Choosing, ranks: NDArray[np.int64], confirm: Confirm | None) -> None:
        self.family, self.choosing, self.ranks, self.confirm = family, choosing, ranks, confirm
        self.forget()
        self.indexes: list[tuple[Index, int]] = [(begin_index(family.prefixes.n_ranks), 0) for _ in range(2)]

    def forget(self) -> None:
        """Forget which documents were compared: each can be compared again."""
        self.met = [np.full(len(self.ranks), -1, np.int32) for _ in range(2)]

    def enter(self, document: int, *, is_head: bool) -> None:
        """Add a kept document to both lists, or to that of all."""
        for which in range(1 + is_head):
            index, count = self.indexes[which]
            self.indexes[which] = enter(self.family.prefixes, index, document, count)

    def near(self, document: int, *, heads: bool) -> _Offers:
        """Return the kept documents that are near a document: all of them, or the heads."""
        which = int(heads)
        rows = compare_with(self.family, np.array([document]), self.indexes[which][0], self.met[which])
        rows = rows[np.argsort(self.ranks[rows[:, 1]])]
        others = rows[:, 1].astype(np.int64)
        compared = _take_all(rows) if self.confirm is None else self.confirm(document, others)
        near, choosing = np.flatnonzero(compared.is_near), self.choosing
        others = others[near]
        both = np.stack([np.full(len(near), document), others])
        most = Fraction(1) if choosing.most_lost is None else choosing.most_lost
        loss = Loss(compared.common[near].astype(np.int32), choosing.shingles[both], most)
        return _Offers(rows[near], compared.similarity[near], may_replace(choosing.classes[both], loss)[0])


def _take_all(rows: NDArray[np.int32]) -> Compared:
    """Return the results for pairs of near-duplicate sketches, (k, 5), where no text is compared: all are near."""
    common, n = rows[:, 2].astype(np.int64), len(rows)
    return Compared(common, rows[:, 3] / np.maximum(rows[:, 4], 1), np.zeros(n, np.bool_))


def keep_bounded(
    family: Family, by_policy: NDArray[np.int64], choosing: Choosing, confirm: Confirm | None, max_near: int
) -> Bounded:
    """
    Choose what is kept of a component, and what replaces each other document.

    A family that keeps nearly all of its documents would take all of its pairs: once more than `max_near` pairs of a
    document with a kept one before it are near, later documents are compared with heads only, if losses are limited. A
    head is a document that
    is forced to be kept, or that is kept and had no near-duplicate among those that it was compared with. More may then
    be kept than if all were compared, but each removed document still has a kept one before it that may replace it.

    Copies of a removed document, those with equal shingles, may come later in the order than kept documents that it
    precedes: these are compared with it too. A copy that is forced out may lose all, so it is compared with all.

    Args:
        by_policy: (n,), the documents in the order of the keep policy: forced to be kept first, forced out last.
        confirm: compares texts; None: the sketches decide.
        max_near: near pairs after which documents are compared with heads only.

    Cost: for each document some 0.1 ms, one comparison of sketches for each kept document that it is compared with, and
        one of texts for each candidate among these; again for removed documents that have copies.
    """
    ranks = np.empty(by_policy.size, np.int64)
    ranks[by_policy] = np.arange(by_policy.size)
    search, stands = _Search(family, choosing, ranks, confirm), np.arange(by_policy.size, dtype=np.int32)
    likeness, rows = np.ones(by_policy.size), [np.empty((0, 5), np.int32)]
    limited = n_near = 0
    for document in by_policy.tolist():
        heads = n_near > max_near and choosing.most_lost is not None
        offers = search.near(document, heads=heads)
        n_near += len(offers.rows)
        limited += heads
        if offers.fits.any():
            best = int(np.argmax(np.where(offers.fits, offers.likeness, -1.0)))
            stands[document], likeness[document] = offers.rows[best, 1], offers.likeness[best]
            rows.append(offers.rows[[best]])
        elif choosing.classes[document] != REMOVED:
            is_head = choosing.classes[document] == KEPT or not len(offers.rows)
            search.enter(document, is_head=is_head)

    search.forget()
    for document in np.flatnonzero((stands != np.arange(len(stands))) & (choosing.copies > 1)).tolist():
        offers = search.near(document, heads=limited > 0)
        is_later = offers.fits & (ranks[offers.rows[:, 1]] > ranks[document])
        rows.append(offers.rows[_rising(np.where(is_later, offers.likeness, -1.0), likeness[document])])
        if choosing.last_classes[document] == REMOVED and len(offers.rows):
            rows.append(offers.rows[[int(np.argmax(offers.likeness))]])
    return Bounded(stands, np.concatenate(rows), limited)


def _rising(values: NDArray[np.float64], least: float) -> NDArray[np.int64]:
    before = np.maximum.accumulate(np.concatenate([[least], values]))[:-1]
    return np.flatnonzero(values > before)


class Divided(NamedTuple):
    """Documents of a family divided by their values in the columns of `keep.same`, s of them in order of the policy."""

    places: NDArray[np.int64]
    """(s,), the document of the family that has the same shingles."""

    guards: NDArray[np.int64]
    """(s,), the number of the values."""

    choosing: Choosing
    """Of the s documents."""

    def take(self, members: NDArray[np.int64]) -> "Divided":
        """Return those of some documents of the family, ascending; these are then named by their places there."""
        chosen = np.flatnonzero(np.isin(self.places, members))
        places = np.searchsorted(members, self.places[chosen])
        return Divided(places, self.guards[chosen], self.choosing.take(chosen))


def keep_apart(family: Family, divided: Divided, confirm: Confirm | None, max_near: int) -> Bounded:
    """
    Choose what is kept where a document may only be replaced by one of equal values: `keep_bounded`, value by value.

    Args:
        divided: the same by values.
        confirm: compares texts of documents of the family; None: the sketches decide.
        max_near: as of `keep_bounded`.

    Returns:
        `stands` (s,), by the places in `divided`; `rows` by those in the family.

    Cost: that of `keep_bounded` for each value; documents of different values are not compared. The sketches and their
        prefixes are copied for each value of a document.
    """
    places, prefixes = divided.places, family.prefixes
    sketches = take_rows(family.sketches, places)
    offsets, ranks = take_rows(Ragged(prefixes.offsets, prefixes.ranks.astype(np.uint64)), places)

    # A feature of another value is another feature: so only documents of equal values meet.
    numbers = np.unique(divided.guards, return_inverse=True)[1].astype(np.uint64)
    keys = np.repeat(numbers, np.diff(offsets)) * np.uint64(prefixes.n_ranks) + ranks
    numbered = Prefixes(offsets, *number_keys(keys))
    apart = Family(sketches, numbered, family.totals[places], family.bounds[places], family.rule)
    of_places = confirm and (lambda one, others: confirm(int(places[one]), places[others]))
    kept = keep_bounded(apart, np.arange(len(places)), divided.choosing, of_places, max_near)
    rows = kept.rows.copy()
    rows[:, :2] = places[rows[:, :2]]
    return kept._replace(rows=rows)
