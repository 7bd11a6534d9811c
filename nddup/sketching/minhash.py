"""MinHash signatures, the LSH keys by which similar sketches meet, and the S-curve that these keys follow.

    draw_slots             name, n, seed        -> Slots, the n permutations: `mix`, `gf2`, `affine` or `datasketch`
    find_minima            fingerprints, Slots  -> signature, (n,): the smallest id under each permutation, one per slot
    tag_slots              signature            -> a sketch: ids whose low bits hold their slot
    candidate_probability, curve_threshold, expected_errors    bands and rows -> points and errors of the S-curve
    choose_bands           slots, threshold     -> Bands, those with the least weighted error
    Finder.keys            sketches             -> keys: LSH bands of a signature, or super-shingles of any sketch

A slot is equal in two documents with the probability of their resemblance r, so equal slots / n estimates r. Keys bring
similar sketches together without counting common ids: sketches that share a key are compared, other pairs are missed.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.ground.kernels import compiled
from nddup.sketching.accuracy import Shares, check_at_least_one, check_shares
from nddup.sketching.permutations import (
    GOLDEN,
    MERSENNE,
    ONE,
    Tables,
    affine_id,
    affine_keys,
    draw_words,
    gf2_id,
    gf2_tables,
    mix_id,
)

SLOT_BITS: Final = 17
SLOT_SHIFT: Final = np.uint64(SLOT_BITS)
MOST_SLOTS: Final = 1 << SLOT_BITS
DATASKETCH_SEEDS: Final = 1 << 32
GREATEST: Final = np.uint64(2**64 - 1)
SHIFT_33: Final = np.uint64(33)
FMIX_FIRST: Final = np.uint64(0xFF51AFD7ED558CCD)
FMIX_SECOND: Final = np.uint64(0xC4CEB9FE1A85EC53)


class Slots(NamedTuple):
    """n permutations: keys of shape (n,), or tables of shape (n, 8, 256); the arrays not used have no rows."""

    name: str
    multipliers: NDArray[np.uint64]
    increments: NDArray[np.uint64]
    tables: Tables


SLOT_MASK = np.uint64((1 << SLOT_BITS) - 1)


@lru_cache(maxsize=8)
def draw_slots(name: str, n: int, seed: int) -> Slots:
    """Draw the n permutations of a seed. They are cached: do not write to them.

        mix         slot k uses the mixing permutation with the seed's k-th keys
        gf2         slot k uses the seed's k-th random invertible binary matrix
        affine      (a x + b) mod 2**61 - 1, as in Manaa and Abdulameer 2017
        datasketch  the signature of datasketch 2 with `scheme="affine64"`: fmix64, then a x + b modulo 2**64, with a
                    and b from NumPy's generator under the seed; its LeanMinHash and LSH accept these signatures

    Args:
        name: `mix`, `gf2`, `affine` or `datasketch`.
        n: at least 1, at most MOST_SLOTS.
        seed: chooses them; for `datasketch`, at least 0 and below 2**32.

    Raises:
        ValueError: for an unknown name or a number out of range.

    Cost: `gf2` takes 16 KB and some milliseconds per slot.

    Sources:
        Broder, Charikar, Frieze, Mitzenmacher 1998, Min-wise independent permutations.
        Manaa, Abdulameer 2017, Web documents similarity using k-shingle tokens and MinHash technique.
        Zhu et al., datasketch 2.0.0 (its documented scheme).
    """
    if not 1 <= n <= MOST_SLOTS:
        raise ValueError(f"slots must be 1 to {MOST_SLOTS}, got {n}")

    nothing, no_tables = np.empty(0, np.uint64), np.empty((0, 8, 256), np.uint64)
    if name == "mix":
        words = np.array(draw_words(seed, 2 * n, stream=1), np.uint64)
        return Slots(name, words[:n] | np.uint64(1), words[n:], no_tables)
    if name == "affine":
        keys = np.array([affine_keys(seed, slot=slot) for slot in range(n)], np.uint64)
        return Slots(name, keys[:, 0].copy(), keys[:, 1].copy(), no_tables)
    if name == "gf2":
        return Slots(name, nothing, nothing, np.stack([gf2_tables(seed, slot=slot) for slot in range(n)]))
    if name == "datasketch":
        if not 0 <= seed < DATASKETCH_SEEDS:
            raise ValueError(f"a seed of datasketch is below 2**32, got {seed}")
        numbers = np.random.RandomState(seed)
        halves = numbers.randint(0, 1 << 63, n, dtype=np.uint64)
        increments = numbers.randint(0, 1 << 64, n, dtype=np.uint64)
        return Slots(name, halves * np.uint64(2) + np.uint64(1), increments, no_tables)
    raise ValueError(f"no permutations named {name!r}")


def find_minima(fingerprints: NDArray[np.uint64], slots: Slots) -> NDArray[np.uint64]:
    """Return the signature of a document: the smallest permuted fingerprint under each permutation.

    Under random permutations, equal slots / n estimates the resemblance r of two documents with variance r (1 - r) / n
    (Broder 1997, On the resemblance and containment of documents).

    Args:
        fingerprints: (m,), m >= 1; repeated ones make no difference.
        slots: n permutations.

    Returns:
        (n,), uint64, in the order of the slots.

    Cost: m x n permuted values, 1 to 5 ns each.
    """
    if slots.name == "gf2":
        return _minima_by_tables(fingerprints, slots.tables)
    kernel = {"mix": _minima_mixed, "affine": _minima_modulo, "datasketch": _minima_wrapped}[slots.name]
    minima: NDArray[np.uint64] = kernel(fingerprints, slots.multipliers, slots.increments)
    return minima


@compiled
def _minima_mixed(
    fingerprints: NDArray[np.uint64], multipliers: NDArray[np.uint64], increments: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    minima = np.empty(multipliers.size, np.uint64)
    for k in range(multipliers.size):
        least = GREATEST
        for value in fingerprints:
            least = min(least, mix_id(value, multipliers[k], increments[k]))
        minima[k] = least
    return minima


@compiled
def _minima_modulo(
    fingerprints: NDArray[np.uint64], multipliers: NDArray[np.uint64], increments: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    reduced = np.empty(fingerprints.size, np.uint64)
    for i in range(fingerprints.size):
        reduced[i] = fingerprints[i] % MERSENNE

    minima = np.empty(multipliers.size, np.uint64)
    for k in range(multipliers.size):
        least = GREATEST
        for value in reduced:
            least = min(least, affine_id(value, multipliers[k], increments[k]))
        minima[k] = least
    return minima


@compiled
def _minima_wrapped(
    fingerprints: NDArray[np.uint64], multipliers: NDArray[np.uint64], increments: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    mixed = np.empty(fingerprints.size, np.uint64)
    for i in range(fingerprints.size):
        value = fingerprints[i]
        value = (value ^ (value >> SHIFT_33)) * FMIX_FIRST
        value = (value ^ (value >> SHIFT_33)) * FMIX_SECOND
        mixed[i] = value ^ (value >> SHIFT_33)

    minima = np.empty(multipliers.size, np.uint64)
    for k in range(multipliers.size):
        least = GREATEST
        for value in mixed:
            least = min(least, value * multipliers[k] + increments[k])
        minima[k] = least
    return minima


@compiled
def _minima_by_tables(fingerprints: NDArray[np.uint64], tables: Tables) -> NDArray[np.uint64]:
    minima = np.empty(len(tables), np.uint64)
    for k in range(len(tables)):
        least = GREATEST
        for value in fingerprints:
            least = min(least, gf2_id(value, tables[k]))
        minima[k] = least
    return minima


def tag_slots(signature: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a signature as a set of ids, ascending: the 47 low bits of a value, then the number of its slot.

    Two documents share a tagged id only if the same slot is equal, except for a chance of 2**-47. Untagged, the minima
    of all slots are one set, as in the 2005 paper. Its |A & B| / |A | B| is too small, about r / (2 - r) (0.7 for a
    resemblance of 0.818), and a shingle that is the smallest in several slots counts once.

    Example:
        >>> [(int(id_) >> SLOT_BITS, int(id_) % MOST_SLOTS) for id_ in tag_slots(np.array([9, 5, 9], np.uint64))]
        [(5, 1), (9, 0), (9, 2)]
    """
    return np.sort(signature << SLOT_SHIFT | np.arange(signature.size, dtype=np.uint64))


class Bands(NamedTuple):
    """Bands of a signature. Two documents are a candidate pair if all `rows` slots of at least one band are equal."""

    bands: int
    rows: int


class Errors(NamedTuple):
    """The errors of LSH at a threshold, for pairs spread evenly over all resemblances.

    Attributes:
        false_positives: share of the pairs below the threshold that become candidates.
        false_negatives: share of the pairs at or above the threshold that do not.
    """

    false_positives: float
    false_negatives: float


def candidate_probability(resemblance: Shares | float, *, bands: int, rows: int) -> Shares:
    """Return the S-curve: the chance that two documents of this resemblance agree in all rows of some band.

    Exact for truly random permutations. Those in use are fixed by a seed, so results only come close to these values.

    Args:
        resemblance: in [0, 1], any shape.
        bands: at least 1.
        rows: slots per band, at least 1.

    Returns:
        1 - (1 - r^rows)^bands in the shape of `resemblance`, without loss of precision near 0 and 1.

    Raises:
        ValueError: if `bands` or `rows` is less than 1, or a resemblance lies outside [0, 1].

    Example:
        >>> candidate_probability(np.array([0.2, 0.5, 0.8]), bands=20, rows=5).round(5).tolist()
        [0.00638, 0.47005, 0.99964]

    Sources:
        Indyk, Motwani 1998; Rajaraman, Ullman 2011, Mining of Massive Datasets, chapter 3 (bands).
    """
    check_at_least_one(bands=bands, rows=rows)
    shares = check_shares(resemblance)
    with np.errstate(divide="ignore"):  # log1p(-1) is -inf, for which the curve is 1
        return np.asarray(-np.expm1(bands * np.log1p(-(shares**rows))))


def curve_threshold(*, bands: int, rows: int) -> float:
    """Return the resemblance near which the S-curve is steepest: (1 / bands)^(1 / rows).

    A pair of this resemblance becomes a candidate with probability 1 - (1 - 1 / bands)^bands, about 0.63.

    Raises:
        ValueError: if `bands` or `rows` is less than 1.

    Example:
        >>> round(curve_threshold(bands=20, rows=5), 4)
        0.5493
    """
    check_at_least_one(bands=bands, rows=rows)
    return float((1 / bands) ** (1 / rows))


def expected_errors(*, bands: int, rows: int, threshold: float) -> Errors:
    """Return the shares of pairs that LSH gets wrong if resemblances are spread evenly over [0, 1].

    Real collections have far more dissimilar pairs than similar ones. For known resemblances, add up
    `candidate_probability` instead.

    Args:
        bands: at least 1.
        rows: at least 1.
        threshold: the lowest resemblance of a wanted pair, in (0, 1].

    Returns:
        Both shares. (1 - s^rows)^bands is integrated in closed form, by the incomplete beta function.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> wrong = expected_errors(bands=20, rows=5, threshold=0.5)
        >>> round(wrong.false_positives, 4), round(wrong.false_negatives, 4)
        (0.0893, 0.092)
    """
    check_at_least_one(bands=bands, rows=rows)
    _check_threshold(threshold)

    *_, (below, above) = _missed_areas(bands, rows, threshold)
    positives = (threshold - below) / threshold
    negatives = above / (1 - threshold) if threshold < 1 else 0.0
    return Errors(max(positives, 0.0), negatives)


def choose_bands(slots: int, threshold: float, *, weight_of_missed: float = 0.5) -> Bands:
    """Choose the bands and rows with the smallest weighted area of wrong pairs under and over the S-curve.

    Args:
        slots: of the signature; bands x rows does not exceed them.
        threshold: the lowest resemblance of a wanted pair, in (0, 1].
        weight_of_missed: weight of missed pairs, in [0, 1]; false candidates have the rest. If candidates are
            verified, false ones cost only time, so a large weight is right.

    Returns:
        The best of all bands and rows; among equals, the one with the fewest bands.

    Raises:
        ValueError: if an argument is out of its range.

    Cost: slots x log(slots) steps: a few milliseconds for 1,000 slots.

    Example:
        >>> choose_bands(128, 0.8)
        Bands(bands=9, rows=13)
        >>> choose_bands(128, 0.8, weight_of_missed=0.9)
        Bands(bands=14, rows=9)
    """
    check_at_least_one(slots=slots)
    _check_threshold(threshold)
    if not 0 <= weight_of_missed <= 1:
        raise ValueError(f"weight_of_missed must lie in [0, 1], got {weight_of_missed}")

    choices = (
        ((1 - weight_of_missed) * (threshold - below) + weight_of_missed * above, bands, rows)
        for rows in range(1, slots + 1)
        for bands, (below, above) in enumerate(_missed_areas(slots // rows, rows, threshold), 1)
    )
    _, bands, rows = min(choices)
    return Bands(bands, rows)


def _missed_areas(bands: int, rows: int, threshold: float) -> Iterator[tuple[float, float]]:
    """Yield the areas of (1 - s^rows)^b from 0 to `threshold` and from there to 1, for b from 1 to `bands`.

    Integration by parts gives each from the one before: A(b) (1 + b rows) = t (1 - t^rows)^b + b rows A(b - 1) is the
    area from 0 to t. The second area is a difference, so it is exact to 1e-15 only in absolute terms.
    """
    below, whole, unlike, power = threshold, 1.0, 1 - threshold**rows, 1.0
    for b in range(1, bands + 1):
        power *= unlike
        below = (threshold * power + b * rows * below) / (1 + b * rows)
        whole *= b * rows / (1 + b * rows)
        yield below, max(whole - below, 0.0)


def _check_threshold(threshold: float) -> None:
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie in (0, 1], got {threshold}")


class Finder(NamedTuple):
    """How keys are made of sketches: `bands` bands of `rows` slots; if `bands` is 0, runs of `rows` ids.

        bands   the slots of a signature in groups of `rows`; a key combines the values of a group and its number.
                Documents of resemblance r share a key with probability 1 - (1 - r**rows)**bands (`Bands`).
        runs    `rows` consecutive ids of the sorted sketch are a key: a super-shingle, a shingle of shingles. Two
                sketches of s ids share about s r**rows of them.

    Short documents, and documents contained in longer ones, share hardly any super-shingle.

    Source: Broder, Glassman, Manasse, Zweig 1997, Syntactic clustering of the Web.
    """

    bands: int
    rows: int

    def keys(self, sketches: Ragged) -> Ragged:
        """Return the keys of each sketch, ascending and distinct, uint64.

        A sketch of fewer than `rows` ids is one run of all of them. An empty sketch has no key.

        Cost: linear, and a sort of the keys.
        """
        if self.bands:
            return _sort_rows(*_band_keys(sketches.offsets, sketches.values, self.bands, self.rows))
        return _sort_rows(*_run_keys(sketches.offsets, sketches.values, self.rows))


@compiled
def _band_keys(
    offsets: NDArray[np.int64], ids: NDArray[np.uint64], bands: int, rows: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Make a key for each band of each sketch. An id's low bits are its slot; slots beyond the bands are not used."""
    starts = np.zeros(offsets.size, np.int64)
    keys = np.empty((offsets.size - 1) * bands, np.uint64)
    slots = np.zeros(bands * rows, np.uint64)
    at = 0
    for i in range(offsets.size - 1):
        # A sketch is sorted by value: bring its ids back into the order of the slots.
        for j in range(offsets[i], offsets[i + 1]):
            slot = np.int64(ids[j] & SLOT_MASK)
            if slot < slots.size:
                slots[slot] = ids[j]

        if offsets[i] < offsets[i + 1]:
            for band in range(bands):
                key = mix_id(np.uint64(band), ONE, GOLDEN)
                for row in range(rows):
                    key = mix_id(key ^ slots[band * rows + row], ONE, GOLDEN)
                keys[at] = key
                at += 1
        starts[i + 1] = at
    return starts, keys[:at].copy()


@compiled
def _run_keys(
    offsets: NDArray[np.int64], ids: NDArray[np.uint64], rows: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    starts = np.zeros(offsets.size, np.int64)
    keys = np.empty(ids.size, np.uint64)
    at = 0
    for i in range(offsets.size - 1):
        size = offsets[i + 1] - offsets[i]
        length = min(rows, size)

        for first in range(offsets[i], offsets[i + 1] - length + 1 if size else offsets[i]):
            key = mix_id(np.uint64(length), ONE, GOLDEN)
            for j in range(first, first + length):
                key = mix_id(key ^ ids[j], ONE, GOLDEN)
            keys[at] = key
            at += 1
        starts[i + 1] = at
    return starts, keys[:at].copy()


def _sort_rows(offsets: NDArray[np.int64], keys: NDArray[np.uint64]) -> Ragged:
    """Sort the keys of each row and leave out repeated ones."""
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((keys, owners))
    keys, owners = keys[order], owners[order]

    is_new = np.ones(len(keys), np.bool_)
    is_new[1:] = (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1])
    counts = np.bincount(owners[is_new], minlength=len(offsets) - 1)
    return Ragged(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), keys[is_new])
