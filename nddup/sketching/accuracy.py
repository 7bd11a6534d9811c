"""What a choice of sketch means before anything runs: the S-curve of bands and rows, errors of estimates, overlaps.

Everything here is a probability under truly random permutations. What is computed is exact for that model; the
permutations in use are fixed ones chosen by a seed, so say "nearly" of what they give.

    candidate_probability    resemblance, bands, rows      -> chance to become a candidate: 1 - (1 - r^rows)^bands
    curve_threshold          bands, rows                   -> where the curve is steepest: (1 / bands)^(1 / rows)
    expected_errors          bands, rows, threshold        -> dissimilar pairs that pass and similar ones that do not
    choose_bands             slots, threshold              -> the bands and rows with the least of both
    smallest_variance        min-s                         \
    slots_variance           min-perm, minhash              > variance of the estimate of a resemblance
    sampled_variance         mod-m, also of a containment  /
    pass_probability         min-s                         -> chance that the estimate reaches a threshold
    overlap_probability      min-s                         -> chance that two sketches share so many ids

Sources:
    Broder 1997, On the resemblance and containment of documents, SEQUENCES '97 (the estimators).
    Rajaraman, Ullman 2011, Mining of Massive Datasets, chapter 3; Manaa, Abdulameer 2017, Web documents similarity
    using k-shingle tokens and MinHash technique (bands, rows, the threshold).
"""

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Shares = NDArray[np.float64]

SUMMED: Final = 256
"""Ids of a sketch up to which its mean overlap is summed term by term."""


class Bands(NamedTuple):
    """Bands of a signature: two documents are a candidate if all `rows` slots of one of them are equal."""

    bands: int
    rows: int


class Errors(NamedTuple):
    """What LSH does wrong at a threshold, resemblances spread evenly over [0, 1].

    Attributes:
        false_positives: share of the pairs below the threshold that become candidates.
        false_negatives: share of the pairs at or above it that do not.
    """

    false_positives: float
    false_negatives: float


def candidate_probability(resemblance: Shares | float, *, bands: int, rows: int) -> Shares:
    """The S-curve: the chance that two documents of this resemblance agree in all rows of at least one band.

    Args:
        resemblance: in [0, 1], any shape.
        bands: at least 1.
        rows: slots of a band, at least 1.

    Returns:
        1 - (1 - r^rows)^bands, the shape of `resemblance`; computed without loss where it is near 0 or 1.

    Raises:
        ValueError: if `bands` or `rows` is less than 1, or a resemblance lies outside [0, 1].

    Example:
        >>> candidate_probability(np.array([0.2, 0.5, 0.8]), bands=20, rows=5).round(5).tolist()
        [0.00638, 0.47005, 0.99964]
    """
    _at_least_one(bands=bands, rows=rows)
    shares = _shares(resemblance)
    with np.errstate(divide="ignore"):  # log1p(-1) is -inf, whose curve is 1
        return np.asarray(-np.expm1(bands * np.log1p(-(shares**rows))))


def curve_threshold(*, bands: int, rows: int) -> float:
    """The resemblance near which the S-curve is steepest: (1 / bands)^(1 / rows).

    At it a pair becomes a candidate with probability 1 - (1 - 1 / bands)^bands, about 0.63.

    Raises:
        ValueError: if `bands` or `rows` is less than 1.

    Example:
        >>> round(curve_threshold(bands=20, rows=5), 4)
        0.5493
    """
    _at_least_one(bands=bands, rows=rows)
    return float((1 / bands) ** (1 / rows))


def expected_errors(*, bands: int, rows: int, threshold: float) -> Errors:
    """How many pairs LSH gets wrong, if resemblances were spread evenly over [0, 1].

    Real collections have far more dissimilar pairs than similar ones; for known resemblances add up
    `candidate_probability` instead.

    Args:
        bands: at least 1.
        rows: at least 1.
        threshold: the resemblance from which pairs are wanted, in (0, 1].

    Returns:
        Both shares. With (1 - s^rows)^bands integrated in closed form, by the incomplete beta function.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> wrong = expected_errors(bands=20, rows=5, threshold=0.5)
        >>> round(wrong.false_positives, 4), round(wrong.false_negatives, 4)
        (0.0893, 0.092)
    """
    _at_least_one(bands=bands, rows=rows)
    _in_range(threshold)
    below, above = _missed_areas(np.array([bands]), rows, threshold)
    positives = (threshold - float(below[0])) / threshold
    negatives = float(above[0]) / (1 - threshold) if threshold < 1 else 0.0
    return Errors(max(positives, 0.0), negatives)


def choose_bands(slots: int, threshold: float, *, weight_of_missed: float = 0.5) -> Bands:
    """Choose bands and rows for a threshold: the least weighted area of wrong pairs under and over the S-curve.

    Args:
        slots: of the signature; bands x rows is at most that.
        threshold: the resemblance from which pairs are wanted, in (0, 1].
        weight_of_missed: in [0, 1], the weight of pairs that are missed; 1 less it is that of pairs that come in vain.
            Where candidates are verified the latter cost only time: give more to the former.

    Returns:
        The best of all bands and rows; of equals, the one with fewest bands.

    Raises:
        ValueError: if an argument is out of its range.

    Cost: slots x log(slots) evaluations of a special function: a few milliseconds for 1,000 slots.

    Example:
        >>> choose_bands(128, 0.8)
        Bands(bands=9, rows=13)
        >>> choose_bands(128, 0.8, weight_of_missed=0.9)
        Bands(bands=14, rows=9)
    """
    _at_least_one(slots=slots)
    _in_range(threshold)
    if not 0 <= weight_of_missed <= 1:
        raise ValueError(f"weight_of_missed must lie in [0, 1], got {weight_of_missed}")
    best: tuple[float, int, int] | None = None
    for rows in range(1, slots + 1):
        bands = np.arange(1, slots // rows + 1)
        below, above = _missed_areas(bands, rows, threshold)
        wrong = (1 - weight_of_missed) * (threshold - below) + weight_of_missed * above
        at = int(np.argmin(wrong))
        found = (float(wrong[at]), at + 1, rows)
        best = found if best is None else min(best, found)
    assert best is not None  # noqa: S101 - there is at least one slot
    return Bands(best[1], best[2])


def smallest_variance(resemblance: float, *, size: int, united: int | None = None) -> float:
    """Variance of the min-s estimate of a resemblance r: r (1 - r) / s x (N - s) / (N - 1).

    Args:
        resemblance: r, in [0, 1].
        size: s, at least 1.
        united: N, the shingles of both documents together, at least 1; None for many.

    Returns:
        0 when N <= s: both documents are then known whole.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> round(smallest_variance(0.8, size=200) ** 0.5, 4), smallest_variance(0.8, size=200, united=150)
        (0.0283, 0.0)
    """
    shares = float(_shares(resemblance))
    _at_least_one(size=size, united=1 if united is None else united)
    if united is None:
        return shares * (1 - shares) / size
    return shares * (1 - shares) / size * (united - size) / (united - 1) if united > size else 0.0


def slots_variance(resemblance: float, *, slots: int) -> float:
    """Variance of equal slots / slots, the estimate of `min-perm` and `minhash`: r (1 - r) / n.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> round(slots_variance(0.5, slots=100), 6)
        0.0025
    """
    shares = float(_shares(resemblance))
    _at_least_one(slots=slots)
    return shares * (1 - shares) / slots


def sampled_variance(share: float, *, modulus: int, among: int) -> float:
    """Variance of an estimate from the ids that `modulus` divides, given that there are any.

    The share of A ∪ B that is common (a resemblance) or of A that lies in B (a containment) is estimated by the same
    share of the M ids kept of N: hypergeometric given M, and M is binomial(N, 1 / modulus).

    Args:
        share: the true resemblance or containment, in [0, 1].
        modulus: about one id in so many is kept, at least 1.
        among: N: shingles of both documents together for a resemblance, of the contained one for a containment.

    Returns:
        share (1 - share) E[(N - M) / (M (N - 1)) | M > 0]; for large N near share (1 - share) modulus / N. 0 for
        modulus 1.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> round(sampled_variance(0.5, modulus=25, among=5000), 6), round(0.25 * 25 / 5000, 6)
        (0.001206, 0.00125)
    """
    shares = float(_shares(share))
    _at_least_one(modulus=modulus, among=among)
    if modulus == 1 or among == 1:
        return 0.0
    kept = np.arange(1, among + 1)
    odds = stats.binom.pmf(kept, among, 1 / modulus)
    mean = float((odds * (among - kept) / kept).sum() / odds.sum())
    return shares * (1 - shares) * mean / (among - 1)


def pass_probability(resemblance: float, *, size: int, need: int, united: int | None = None) -> float:
    """The chance that the min-s estimate of a resemblance r is at least `need` / s.

    Args:
        resemblance: r, in [0, 1].
        size: s, at least 1.
        need: common ids among the s smallest of the union; 0 to s.
        united: N > s, shingles of both documents together; None for many. With fewer the estimate is r itself.

    Returns:
        The upper tail of the binomial (s, r), or of the hypergeometric where N is given.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> [round(pass_probability(r, size=200, need=160), 3) for r in (0.7, 0.75, 0.8, 0.85)]
        [0.001, 0.058, 0.542, 0.978]
    """
    shares = float(_shares(resemblance))
    _at_least_one(size=size)
    if not 0 <= need <= size:
        raise ValueError(f"need must lie in 0 .. {size}, got {need}")
    if united is None:
        return float(stats.binom.sf(need - 1, size, shares))
    if united <= size:
        raise ValueError(f"united must be more than size {size}, got {united}")
    return float(stats.hypergeom.sf(need - 1, united, round(shares * united), size))


def overlap_probability(resemblance: float, *, size: int, support: int) -> float:
    """The chance that two full min-s sketches have at least `support` ids in common.

    Taken in the order of the permutation, each id of the union is common with probability r, else of either document
    alone, equally often (two documents of about one length). A common id is in both sketches while neither document
    has shown more than s ids. So the k-th common one is in both iff, of the m others before it, at most s - k are of
    one document: m is negative binomial, and those of one document are binomial (m, 1/2).

    Args:
        resemblance: r, in [0, 1].
        size: s, at least 1.
        support: k, at least 0.

    Returns:
        In [0, 1]; 1 for support 0, 0 above s. For documents of many shingles.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> [round(overlap_probability(r, size=100, support=85), 3) for r in (0.65, 0.7, 0.75, 0.8, 0.9)]
        [0.011, 0.107, 0.439, 0.839, 1.0]
    """
    shares = float(_shares(resemblance))
    _at_least_one(size=size)
    if support <= 0:
        return 1.0
    if support > size or shares == 0:
        return 0.0
    others = np.arange(2 * (size - support) + 1)
    before = stats.nbinom.pmf(others, support, shares)
    most = size - support
    within = stats.binom.cdf(most, others, 0.5) - stats.binom.cdf(others - most - 1, others, 0.5)
    return float(min((before * within).sum(), 1.0))


def expected_overlap(resemblance: float, *, size: int) -> float:
    """The mean of |A ∩ B| of two full min-s sketches; for large s near s x 2r / (1 + r).

    Up to `SUMMED` ids the chances of each overlap are summed, at a cost of s². Above, the mean is off by less than a
    tenth of an id: in the order of the permutation the union is gone through until one document has shown s ids, the
    other D fewer. Of all on the way r are common, so the mean is r (2s - E D) / (1 + r); D is how far a random walk
    of about 2s (1 - r) / (1 + r) steps has come, and its mean is taken as that of the normal limit.

    Example:
        >>> round(expected_overlap(0.8, size=200), 1), round(200 * 1.6 / 1.8, 1)
        (175.4, 177.8)
    """
    if size > SUMMED:
        shares = float(_shares(resemblance))
        behind = math.sqrt(4 * size * (1 - shares) / (1 + shares) / math.pi)
        return shares * (2 * size - behind) / (1 + shares)
    return sum(overlap_probability(resemblance, size=size, support=k) for k in range(1, size + 1))


def _missed_areas(bands: NDArray[np.int64], rows: int, threshold: float) -> tuple[Shares, Shares]:
    """The integrals of (1 - s^rows)^bands from 0 to `threshold` and from there to 1."""
    a, b = 1 / rows, bands + 1.0
    whole = special.beta(a, b) / rows
    share = threshold**rows
    return whole * special.betainc(a, b, share), whole * special.betaincc(a, b, share)


def _shares(values: Shares | float) -> Shares:
    shares = np.asarray(values, np.float64)
    if not np.all((shares >= 0) & (shares <= 1)):
        raise ValueError(f"a share must lie in [0, 1], got {values}")
    return shares


def _in_range(threshold: float) -> None:
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie in (0, 1], got {threshold}")


def _at_least_one(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
