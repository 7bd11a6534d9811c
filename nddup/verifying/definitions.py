"""Near-duplicates, estimates and the forms of sketches by definition: `nddup check` proves a run with these.

    compare, is_near, judge    two sketches   -> overlap, resemblance as a fraction, sizes; near-duplicates or not
    damaged_sketches           sketches, Form -> those without the form that their kind requires
    estimate_pairs             pairs          -> the estimate of the resemblance beside each
    list_shingles              tokens         -> the set of shingles of a text, to compare two texts by `count_shared`
    gather, sketch_rows                       -> Rows, the sketches of a batch

None of the code by which a run sketches or searches is used. A comparison is one merge of two sketches, then exact
integers.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.ground.arrays import HASH_MULTIPLIER
from nddup.ground.kernels import compiled


class Rows(NamedTuple):
    """Sketches one after another: sketch i is `ids[offsets[i]:offsets[i + 1]]`, ascending as unsigned numbers.

    With `levels`, the ids of sketch i are divisible by 2**levels[i], and two sketches are compared at the higher level.
    """

    offsets: NDArray[np.int64]  # (n + 1,)
    ids: NDArray[np.uint64]  # (offsets[-1],)
    levels: NDArray[np.int64] | None = None  # (n,)

    def row(self, i: int) -> NDArray[np.uint64]:
        """Return sketch i."""
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def at_levels(self, levels: NDArray[np.int64]) -> "Rows":
        """Return the same sketches at these levels, (n,)."""
        return self._replace(levels=levels if levels.any() else None)


class Sample(NamedTuple):
    """How a resemblance is estimated: from the `size` smallest ids of both sketches, or from `size` slots.

    If `size` exceeds any sketch, the resemblance is that of two plain sets.
    """

    size: int
    by_slots: bool = False


class Definition(NamedTuple):
    """The condition for near-duplicates: `numerator / denominator` is the threshold as it was written.

    `is_count`: the overlap must reach `numerator`. `is_resemblance`: the resemblance must reach the fraction. Neither:
    the overlap must reach that share of the larger sketch; with `is_containment`, of the smaller one. `sample` says how
    the resemblance is estimated. With `bands`, two signatures that agree in all `rows` slots of a band are near,
    whatever they share. `exact_numerator / exact_denominator`, if not 0, replaces the threshold of the resemblance for
    two sketches of fewer than `sample.size` ids: they hold all shingles of their texts, so it is no estimate.
    """

    numerator: int
    denominator: int
    is_count: bool
    is_resemblance: bool
    sample: Sample
    is_containment: bool = False
    shows_containment: bool = False
    bands: int = 0
    rows: int = 0
    exact_numerator: int = 0
    exact_denominator: int = 1


USED = ("sketch_a", "sketch_b", "features_a", "features_b")
"""The columns of a batch that an estimate uses: list<int64> twice, int32 twice."""


def gather(sketches: Sequence[NDArray[np.uint64]]) -> Rows:
    """Join sketches into `Rows`; no sketches give no rows."""
    offsets = np.concatenate([[0], np.cumsum([len(sketch) for sketch in sketches])]).astype(np.int64)
    return Rows(offsets, np.concatenate([np.empty(0, np.uint64), *sketches]).astype(np.uint64))


def sketch_rows(column: pa.Array) -> Rows:
    """Return a list<int64> column as sketches of unsigned ids; null gives an empty sketch."""
    lengths = np.diff(column.offsets.to_numpy())
    if column.null_count:
        lengths = np.where(column.is_null().to_numpy(zero_copy_only=False), 0, lengths)
    ids = column.flatten().to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return Rows(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), ids.view(np.uint64))


@compiled
def bound_of(size: int, rule: Definition) -> int:
    """Return alpha of a sketch of this size: the count, or the least integer o >= 1 with o / size >= threshold.

    Example:
        >>> [bound_of(size, Definition(55, 100, False, True, Sample(200))) for size in (1, 100, 200)]
        [1, 55, 110]
    """
    if rule.is_count:
        return rule.numerator
    return max(1, -(-rule.numerator * size // rule.denominator))


@compiled
def compare(
    first: NDArray[np.uint64], second: NDArray[np.uint64], sample: Sample, mask: np.uint64
) -> tuple[int, int, int, int, int]:
    """Merge two sketches; return their overlap, the resemblance as numerator and denominator, |A| and |B|.

    The resemblance is |MIN_s(A | B) & A & B| / |MIN_s(A | B)|; if both have fewer than s ids, they are whole
    documents, and it is |A & B| / |A | B|. Two empty sketches give 0, 0, 0. By slots it is |A & B| / slots.

    Args:
        first: A, ascending, distinct.
        second: B, ascending, distinct.
        sample: s, or the number of slots.
        mask: ids with any of these bits do not count.

    Cost: |A| + |B| steps.

    Source: Broder 1997, On the resemblance and containment of documents, SEQUENCES '97 (MIN_s and its resemblance).
    """
    is_whole = len(first) < sample.size and len(second) < sample.size
    size = len(first) + len(second) if is_whole else sample.size
    i, j, overlap, seen, shared, n_first, n_second = 0, 0, 0, 0, 0, 0, 0
    while i < len(first) and j < len(second):
        # The smallest id left, and which sketches hold it: A | B is traversed in ascending order.
        is_first, is_second = first[i] <= second[j], second[j] <= first[i]
        is_counted = (first[i] if is_first else second[j]) & mask == 0
        i += is_first
        j += is_second

        # The first `size` ids of A | B are MIN_s(A | B); `seen` of them have been met.
        is_inside = is_counted and seen < size
        is_common = is_first and is_second and is_counted
        n_first += is_first and is_counted
        n_second += is_second and is_counted
        seen += is_inside
        overlap += is_common
        shared += is_inside and is_common

    for id_ in first[i:]:
        n_first += id_ & mask == 0
    for id_ in second[j:]:
        n_second += id_ & mask == 0
    seen = min(size, n_first + n_second - overlap)

    if sample.by_slots:  # signatures: equal slots out of all slots
        shared, seen = overlap, sample.size
    return overlap, shared, seen, n_first, n_second


@compiled
def compare_all(
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    rows: NDArray[np.int64],
    other_offsets: NDArray[np.int64],
    other_ids: NDArray[np.uint64],
    other_rows: NDArray[np.int64],
    sample: Sample,
    masks: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """Run `compare` on k pairs of places in two `Rows`.

    Args:
        offsets: of the first rows, (n + 1,).
        ids: of the first rows.
        rows: place of the first sketch of each pair, (k,).
        other_offsets: of the second rows, (m + 1,).
        other_ids: of the second rows.
        other_rows: place of the second sketch of each pair, (k,).
        sample: as in `compare`.
        masks: as in `compare`, one for each pair, (k,).

    Returns:
        The results of `compare`, (k, 5).

    Cost: the ids of all pairs together.
    """
    values = np.zeros((len(rows), 5), np.int64)
    for k in range(len(rows)):
        first = ids[offsets[rows[k]] : offsets[rows[k] + 1]]
        second = other_ids[other_offsets[other_rows[k]] : other_offsets[other_rows[k] + 1]]
        values[k] = compare(first, second, sample, masks[k])
    return values


@compiled
def share_a_band(first: NDArray[np.uint64], second: NDArray[np.uint64], bands: int, rows: int) -> bool:
    """Return whether two signatures agree in all slots of a band. The low 17 bits of an id are its slot.

    Args:
        first: ids of a signature.
        second: those of the other.
        bands: bands per signature.
        rows: slots per band.

    Cost: the product of the sizes. Plain, and enough for the few hundred slots of a signature.
    """
    # Equal ids are equal values in the same slot.
    equal = np.zeros(bands * rows, np.bool_)
    for id_ in first:
        slot = np.int64(id_ & np.uint64(0x1FFFF))
        for other in second:
            if id_ == other and slot < len(equal):
                equal[slot] = True

    for band in range(bands):  # noqa: SIM110 - numba compiles no generator
        if equal[band * rows : (band + 1) * rows].all():
            return True
    return False


@compiled
def is_near(measured: tuple[int, int, int, int, int], rule: Definition) -> bool:
    """Return whether a pair is near-duplicate, by definition, in exact integers. With no overlap it never is.

    Args:
        measured: overlap, resemblance as numerator and denominator, |A|, |B|.
        rule: the definition; only `judge` handles its bands.

    Example:
        >>> pair = (8, 8, 10, 10, 8)  # ten ids, and eight of them
        >>> whole = Sample(200)
        >>> shares = [Definition(least, 100, False, True, whole) for least in (80, 81)]
        >>> others = [Definition(9, 1, True, False, whole), Definition(1, 1, False, False, whole, is_containment=True)]
        >>> [is_near(pair, rule) for rule in [*shares, *others]]
        [True, False, False, True]
    """
    overlap, shared, seen, first, second = measured
    if overlap == 0:
        return False
    if rule.is_count:
        return overlap >= rule.numerator
    if rule.is_resemblance:
        if rule.exact_numerator and max(first, second) < rule.sample.size:
            return shared * rule.exact_denominator >= rule.exact_numerator * seen
        return shared * rule.denominator >= rule.numerator * seen
    size = min(first, second) if rule.is_containment else max(first, second)
    return overlap * rule.denominator >= rule.numerator * size


@compiled
def judge(
    first: NDArray[np.uint64], second: NDArray[np.uint64], mask: np.uint64, rule: Definition
) -> tuple[tuple[int, int, int, int, int], bool]:
    """Measure two sketches, and decide whether they are near-duplicates.

    Args:
        first: A, ascending, distinct.
        second: B, ascending, distinct.
        mask: ids with any of these bits do not count.

    Returns:
        The result of `compare`, and whether the pair is near.
    """
    measured = compare(first, second, rule.sample, mask)
    if rule.bands:
        return measured, share_a_band(first, second, rule.bands, rule.rows)
    return measured, is_near(measured, rule)


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
    presence = np.minimum(n_features, 1)  # an empty document has an empty sketch, whatever its kind
    if form.kind in {"min-perm", "minhash"}:
        most = form.size * presence
        return (most if form.is_tagged else presence), most
    if form.kind == "i-match":
        return np.zeros_like(n_features), form.size * presence
    if form.kind == "whole":
        return 2 * presence, 2 * presence
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


def estimate_pairs(batches: Iterator[pa.RecordBatch], *, sample: Sample, levelled: int) -> Iterator[pa.RecordBatch]:
    """Replace the columns `USED` by a last one, `estimate`, double: the resemblance of both; null if either is null.

    Args:
        batches: pairs with the columns `USED`; other columns stay as they are.
        sample: how a resemblance is estimated.
        levelled: s, if the modulus of a sketch depends on the document's length; else 0.

    Cost: linear in the ids of all pairs; one batch is in memory.
    """
    for batch in batches:
        first, second = (batch.column(name) for name in USED[:2])
        a, b = sketch_rows(first), sketch_rows(second)

        # Sketches with different moduli are compared at the larger one: ids that it does not divide are masked out.
        levels = [_levels(batch.column(name), levelled) for name in USED[2:]]
        masks = (np.uint64(1) << np.maximum(*levels).astype(np.uint64)) - np.uint64(1)
        places = np.arange(len(batch))
        measured = compare_all(a.offsets, a.ids, places, b.offsets, b.ids, places, sample, masks)

        is_unknown = ~(first.is_valid().to_numpy(False) & second.is_valid().to_numpy(False))  # noqa: FBT003
        shares = pa.array(measured[:, 1] / np.maximum(measured[:, 2], 1), mask=is_unknown)
        yield batch.drop_columns(list(USED)).append_column("estimate", shares)


def _levels(n_features: pa.Array, size: int) -> NDArray[np.int64]:
    """Return the least i with n_features / 2**i <= size: the binary digits of (n_features - 1) div size; (n,)."""
    if not size:
        return np.zeros(len(n_features), np.int64)
    above = np.maximum(n_features.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64) - 1, 0) // size
    return np.asarray(np.frexp(above.astype(np.float64))[1], np.int64)


def list_shingles(tokens: Sequence[str], length: int, offset: int) -> NDArray[np.uint64]:
    """Return a number for each distinct shingle of a text, ascending; it differs between processes, as Python's hashes.

    A shingle is a polynomial of Python's hashes of its tokens, modulo 2**64: different shingles of a collection have
    equal numbers about as rarely as random numbers of 64 bits are equal.

    Args:
        tokens: of the text, in order, without blanks.
        length: tokens of a shingle; a text of fewer is one shingle, a text of none has no shingle.
        offset: tokens from the start of a shingle to that of the next.

    Cost: a tenth of a microsecond a shingle.

    Example:
        >>> [len(list_shingles("a rose is a rose is a rose".split(), 3, offset)) for offset in (1, 3)]
        [3, 1]
    """
    hashes = np.fromiter(map(hash, tokens), np.int64, len(tokens)).view(np.uint64)
    ends = hashes.size - min(length, hashes.size) + 1 if hashes.size else 0  # one more than the last start
    numbers = np.zeros(ends, np.uint64)
    for at in range(min(length, hashes.size)):
        numbers = numbers * HASH_MULTIPLIER + hashes[at : at + ends]
    return np.unique(numbers[::offset])


def count_shared(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> tuple[int, int]:
    """Return |A & B| and |A | B| of two ascending sets.

    Example:
        >>> count_shared(np.array([1, 2, 3], np.uint64), np.array([2, 3, 4, 5], np.uint64))
        (2, 5)
    """
    common = np.intersect1d(first, second, assume_unique=True).size
    return int(common), int(first.size + second.size - common)
