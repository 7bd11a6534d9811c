"""The form that a sketch of each kind must have by definition: `nddup check` tests the stored sketches against it.

None of the sketching code is used.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.verifying.definitions import Rows


class Form(NamedTuple):
    """The kind of a sketch, and the numbers of its recipe that decide its form."""

    kind: str
    size: int
    """Number of shingles, of permutations or, for `i-match`, of signatures."""

    modulus: int = 1
    growth: str = "fixed"
    is_tagged: bool = True


def due_sizes(n_features: NDArray[np.int64], form: Form) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and the most ids that sketches of documents with `n_features` features may have; each (n,).

    Example:
        >>> due_sizes(np.array([0, 7, 300]), Form("min-perm", 100))[0].tolist()
        [0, 100, 100]
    """
    some = np.minimum(n_features, 1)  # an empty document has an empty sketch, whatever its kind
    if form.kind in {"min-perm", "minhash"}:
        most = form.size * some
        return (most if form.is_tagged else some), most
    if form.kind == "i-match":
        return np.zeros_like(n_features), form.size * some
    if form.kind == "whole":
        return 2 * some, 2 * some
    if form.kind not in {"min-s", "super"}:
        return np.zeros_like(n_features), n_features

    # MIN_s holds the s smallest ids, or all if there are fewer; s may grow with the number of features.
    size = np.full(len(n_features), form.size, np.int64)
    if form.growth == "linear":
        size = np.array([(n + form.modulus - 1) // form.modulus for n in n_features.tolist()], np.int64)
    elif form.growth == "logarithmic":
        sizes = [math.ceil(form.size * math.log2(1 + n / form.size)) for n in n_features.tolist()]
        size = np.array(sizes, np.int64)
    due = np.minimum(n_features, size)
    return due, due


def level_due(n_features: int, size: int) -> int:
    """Return the least i with n_features / 2**i <= size, by trial."""
    return next(i for i in range(64) if n_features <= size << i)


def damaged_sketches(batch: Rows, n_features: NDArray[np.int64], form: Form) -> NDArray[np.bool_]:
    """Return a mask, (n,), of sketches that are not ascending sets of unsigned ids, or not those their kind requires.

    `min-s` has as many ids as its size allows. Kinds with slots have one id for each slot. Kinds with a modulus have
    only ids that it divides. `i-match` has at most one id for each signature.

    Args:
        batch: n sketches.
        n_features: of the documents, (n,).
        form: the form required.

    Example:
        >>> rows = Rows(np.array([0, 2, 4]), np.array([1, 2, 2, 1], np.uint64))
        >>> damaged_sketches(rows, np.array([2, 2]), Form("min-s", 200)).tolist()
        [False, True]
        >>> damaged_sketches(rows, np.array([2, 2]), Form("mod-m", 200, modulus=2)).tolist()
        [True, True]
    """
    lengths = np.diff(batch.offsets)
    least, most = due_sizes(n_features, form)
    is_damaged = (lengths < least) | (lengths > most)

    # An id that does not exceed the one before it in the same sketch.
    owner = np.repeat(np.arange(len(lengths)), lengths)
    falls = (batch.ids[1:] <= batch.ids[:-1]) & (owner[1:] == owner[:-1])
    is_damaged[owner[1:][falls]] = True

    is_wrong = np.zeros(len(batch.ids), np.bool_)
    if form.kind == "mod-m":
        is_wrong = batch.ids % np.uint64(form.modulus) != 0
    elif form.kind == "mod-pow2":
        moduli = np.array([1 << level_due(n, form.size) for n in n_features.tolist()], np.uint64)
        is_wrong = batch.ids % moduli[owner] != 0
    elif form.kind in {"min-perm", "minhash"} and form.is_tagged:
        # The low 17 bits of an id are its slot: sorted, the slots of a sketch are 0, 1, 2, …
        slots = (batch.ids % np.uint64(1 << 17)).astype(np.int64)
        order = np.lexsort((slots, owner))
        places = np.arange(len(slots)) - np.repeat(batch.offsets[:-1], lengths)
        is_wrong = slots[order] != places
    is_damaged[owner[is_wrong]] = True
    return np.asarray(is_damaged, np.bool_)
