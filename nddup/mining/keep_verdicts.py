"""The keep-list of documents: which edges may remove a document, and what becomes of each.

    classes_of     weights of documents            ->  the class of each: forced to be kept, forced out, or free
    may_replace    forced documents, what is lost  ->  which end of an edge the other may replace
    direct_edges   that, and likeness              ->  the likeness by which one replaces the other
    decide         documents with their heads      ->  kept, duplicate_of, reason

The choice itself is made on distinct sketches (`pair_graph`). It is exact for documents: equal sketches have the same
near-duplicates, so a kept sketch keeps its first document, and a removed one keeps none.
"""

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

KEPT, FREE, REMOVED = -1, 0, 1
"""Classes of documents, in the order of preference: forced to be kept, free, forced to be removed."""

FORCED_WEIGHT: Final = 1 << 60
"""Added to the weight of a document forced to be kept, and taken from that of one forced out: beyond every weight."""

NEVER: Final = -1.0
"""Likeness of an end that the other end does not remove: below every threshold."""

REASONS = ("exact", "equal", "near", "forced")

FORCED_NOTE = "force.json"
"""The file in the folder of a run that names its forced documents, for readers of the run."""

ALONE, OWN, NEAR = 0, 1, 2
"""For which document another is removed: none, the head of its own sketch, the head of the sketch nearest to it."""


class Forced(NamedTuple):
    """Ids of documents that are kept whatever the policy says, and of those that are removed; ascending."""

    kept: tuple[str, ...]
    removed: tuple[str, ...]

    @classmethod
    def of(cls, words: Mapping[str, str]) -> "Forced":
        """Return the lists of the ids whose word is `kept`, and of those whose word is `removed`."""
        return cls(*(tuple(sorted(one for one, word in words.items() if word == wanted)) for wanted in cls._fields))

    def classes(self, ids: pa.ChunkedArray) -> NDArray[np.int8]:
        """Return the class of each id: `KEPT`, `REMOVED` or `FREE`, (n,)."""
        values = np.full(len(ids), FREE, np.int8)
        for names, place in ((self.kept, KEPT), (self.removed, REMOVED)):
            is_named = pc.is_in(ids, value_set=pa.array(names, pa.string()))
            values[np.asarray(is_named)] = place
        return values

    @property
    def digest(self) -> str:
        """Hexadecimal digits of the digest that identifies these lists."""
        return hashlib.sha256(self.dump().encode()).hexdigest()[:32]

    def dump(self) -> str:
        """Return the text of `FORCED_NOTE`."""
        return json.dumps(self._asdict(), ensure_ascii=False, indent=0) + "\n"


class Loss(NamedTuple):
    """What each end of e edges loses where only the other end stays, and how much it may lose."""

    common: NDArray[np.int32]  # (e,) distinct shingles of both ends
    sizes: NDArray[np.int64]  # (2, e) distinct shingles of each end
    most: Fraction


def classes_of(weights: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the class of n documents by their weights, to which `FORCED_WEIGHT` was added or of which it was taken.

    Documents that `keep.force` names have a class: `KEPT` ones come first in the order of preference and are never
    removed, `REMOVED` ones come last and remove nothing. A sketch has the class of its first document.
    """
    half = FORCED_WEIGHT // 2
    return np.where(weights >= half, KEPT, np.where(weights <= -half, REMOVED, FREE)).astype(np.int8)


def may_replace(classes: NDArray[np.int8], loss: Loss | None = None) -> NDArray[np.bool_]:
    """Return for both ends of e edges whether the other end may replace it, (2, e), if that precedes it in the order.

    With `keep.max_lost`, an edge removes its later end only where the earlier one has enough of its shingles. What is
    kept is then the kernel of an acyclic relation: unique, whatever the order of the work.

    Args:
        classes: (2, e), of the ends.
        loss: what each end would lose; None: any part may be lost. Documents forced out may lose all.
    """
    may = (classes != KEPT) & (classes[::-1] != REMOVED)
    if loss is not None:
        missing = loss.sizes - loss.common
        may &= (classes == REMOVED) | (missing * loss.most.denominator <= loss.sizes * loss.most.numerator)
    return np.asarray(may)


def direct_edges(
    likeness: NDArray[np.float64],
    classes: NDArray[np.int8],
    loss: Loss | None = None,
    is_named: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Return the likeness of each end of each edge to the other, or `NEVER` where the other must not replace it.

    Args:
        likeness: (e,) or (2, e), as `pair_graph.keep_first` takes it; NaN, of kinds that show none, counts as 0.
        classes: (2, e), of the ends.
        loss: as of `may_replace`.
        is_named: (2, e), whether it is known of an end that nothing but the other end replaces it, or nothing is known
            of it; None: nothing is known of any.

    Returns:
        (2, e), for `keep_first` with the least likeness of the run, or 0.

    Example:
        >>> chain, classes = np.array([[0, 1], [1, 2]]), np.array([FREE, REMOVED, FREE], np.int8)
        >>> direct_edges(np.array([.9, .8]), classes[chain.T]).tolist()
        [[-1.0, 0.8], [0.9, -1.0]]
    """
    known = np.nan_to_num(np.atleast_2d(likeness), nan=0.0)
    may = may_replace(classes, loss)
    if is_named is not None:
        may &= is_named
    return np.where(may, np.broadcast_to(known, (2, known.shape[1])), NEVER)


def direct_leading(classes: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return what `keep_first` chooses leaders by, (2, e): all but documents forced to be kept follow a leader."""
    return np.where(classes == KEPT, NEVER, 1.0)


class Placed(NamedTuple):
    """What decides on n documents. The head of a sketch is its first document by preference."""

    is_head: NDArray[np.bool_]
    is_alike: NDArray[np.bool_]  # whether documents of its sketch are near-duplicates of each other
    classes: NDArray[np.int8]
    head_classes: NDArray[np.int8]
    is_near: NDArray[np.bool_]  # whether its sketch is removed for another
    is_exact: NDArray[np.bool_]  # whether it has the content of the document for which it would be removed
    resemblance: NDArray[np.float64]  # of its sketch to that for which it is removed; NaN if unknown
    common: NDArray[np.int64]  # distinct shingles of both, -1 if they were not counted
    sizes: NDArray[np.int64]  # its distinct shingles


class Verdicts(NamedTuple):
    """The decisions on n documents."""

    kept: NDArray[np.bool_]
    removed_for: NDArray[np.int8]  # ALONE, OWN or NEAR
    reasons: NDArray[np.int8]  # places in REASONS; only for documents that are not kept
    resemblance: NDArray[np.float64]  # to the document for which it is removed; NaN if none, or unknown
    lost: NDArray[np.float64]  # share of its distinct shingles that that document lacks, likewise


def decide(placed: Placed, *, by_sets: bool) -> Verdicts:
    """Decide for each document whether it is kept, and if not, for which document it is removed.

    Args:
        by_sets: whether equal sketches stand for equal sets of shingles, so that a copy loses nothing.

    Example:
        >>> yes, no, free = np.array([True]), np.array([False]), np.array([FREE], np.int8)
        >>> copy = Placed(no, yes, free, free, no, yes, np.array([np.nan]), np.array([-1]), np.array([9]))
        >>> [column.tolist() for column in decide(copy, by_sets=False)]
        [[False], [1], [0], [1.0], [0.0]]
    """
    is_out, is_bound = placed.classes == REMOVED, placed.classes == KEPT
    is_near = placed.is_near & ~is_bound
    is_own = ~is_near & placed.is_alike & ~placed.is_head & ~is_bound & (placed.head_classes != REMOVED)
    removed_for = np.where(is_near, NEAR, np.where(is_own, OWN, ALONE)).astype(np.int8)
    kept = ~is_near & ~is_own & ~is_out

    reasons = np.where(is_out, 3, np.where(placed.is_exact, 0, np.where(is_own, 1, 2))).astype(np.int8)
    is_counted = is_near & (placed.common >= 0)
    lost = np.where(is_counted, (placed.sizes - placed.common) / np.maximum(placed.sizes, 1), np.nan)
    lost[is_own & (placed.is_exact | by_sets)] = 0.0
    resemblance = np.where(is_near, placed.resemblance, np.where(is_own, 1.0, np.nan))
    return Verdicts(kept, removed_for, reasons, resemblance, lost)
