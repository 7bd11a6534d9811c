"""How exact the estimates of a sketch are: variances, chances to pass a threshold, expected overlaps.

    smallest_variance, slots_variance, sampled_variance    of `min-s`; of `min-perm`, `minhash`; of `mod-m`
    pass_probability                 chance that the estimate of `min-s` reaches a threshold
    overlap_probability, expected_overlap    of the number of ids that two `min-s` sketches share
    least_equal, chance_missed       ids that nearly all pairs at a threshold have in common, among the s smallest
    check_shares, check_at_least_one     argument checks that several modules of this package share

The formulas are exact for truly random permutations. The permutations in use are fixed by a seed, so results only come
close to these values. The curves of LSH are in `minhash`. Source of the estimators: Broder 1997, On the resemblance and
containment of documents, SEQUENCES '97.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.float64]
"""Numbers from 0 to 1, any shape."""

MISSED: Final = Fraction(1, 1000)
"""A pair whose resemblance is t is no candidate with a probability below this."""

EXACT: Final = 2_000
"""Largest sketch for which `MISSED` is compared in exact integers."""

SUMMED: Final = 256
"""Largest sketch whose mean overlap is summed term by term."""


def check_shares(values: Shares | float) -> Shares:
    """Return the values as an array.

    Raises:
        ValueError: if one lies outside [0, 1].
    """
    shares = np.asarray(values, np.float64)
    if not np.all((shares >= 0) & (shares <= 1)):
        raise ValueError(f"a share must lie in [0, 1], got {values}")
    return shares


def check_at_least_one(**values: int) -> None:
    """Refuse numbers below 1.

    Raises:
        ValueError: naming the first such argument.
    """
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def smallest_variance(resemblance: float, *, size: int, united: int | None = None) -> float:
    """Return the variance of the min-s estimate of a resemblance r: r (1 - r) / s x (N - s) / (N - 1).

    Args:
        resemblance: r, in [0, 1].
        size: s, at least 1.
        united: N, the number of distinct shingles of both documents together, at least 1; None for a large N.

    Returns:
        0 when N <= s: the sketches then hold both documents completely.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> round(smallest_variance(0.8, size=200) ** 0.5, 4), smallest_variance(0.8, size=200, united=150)
        (0.0283, 0.0)
    """
    shares = float(check_shares(resemblance))
    check_at_least_one(size=size, united=1 if united is None else united)
    if united is None:
        return shares * (1 - shares) / size
    return shares * (1 - shares) / size * (united - size) / (united - 1) if united > size else 0.0


def slots_variance(resemblance: float, *, slots: int) -> float:
    """Return the variance of equal slots / slots, the estimate of `min-perm` and `minhash`: r (1 - r) / n.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> round(slots_variance(0.5, slots=100), 6)
        0.0025
    """
    check_at_least_one(slots=slots)
    return smallest_variance(resemblance, size=slots)  # both are means of n draws with probability r


def sampled_variance(share: float, *, modulus: int, among: int) -> float:
    """Return the variance of an estimate from the ids divisible by `modulus`, given that there are any.

    A resemblance is the common share of A ∪ B; a containment is the share of A that lies in B. Either is estimated by
    the same share of the M ids kept out of N. Given M, the estimate is hypergeometric; M is binomial(N, 1 / modulus).

    Args:
        share: the true resemblance or containment, in [0, 1].
        modulus: about one id in this many is kept; at least 1.
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
    shares = float(check_shares(share))
    check_at_least_one(modulus=modulus, among=among)
    if modulus == 1 or among == 1:
        return 0.0

    kept = np.arange(1, among + 1)
    odds = _binomial(kept, among, 1 / modulus)
    mean = float((odds * (among - kept) / kept).sum() / odds.sum())
    return shares * (1 - shares) * mean / (among - 1)


def pass_probability(resemblance: float, *, size: int, need: int, united: int | None = None) -> float:
    """Return the chance that the min-s estimate of a resemblance r is at least `need` / s.

    Args:
        resemblance: r, in [0, 1].
        size: s, at least 1.
        need: common ids needed among the s smallest of the union, 0 to s.
        united: N > s, the number of distinct shingles of both documents together; None for a large N. (With N <= s
            the estimate is r itself.)

    Returns:
        The upper tail of the binomial distribution (s, r), or of the hypergeometric one if N is given.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> [round(pass_probability(r, size=200, need=160), 3) for r in (0.7, 0.75, 0.8, 0.85)]
        [0.001, 0.058, 0.542, 0.978]
    """
    shares = float(check_shares(resemblance))
    check_at_least_one(size=size)
    if not 0 <= need <= size:
        raise ValueError(f"need must lie in 0 .. {size}, got {need}")

    if united is None:
        return float(min(_binomial(np.arange(need, size + 1), size, shares).sum(), 1.0))
    if united <= size:
        raise ValueError(f"united must be more than size {size}, got {united}")
    return float(min(_hypergeometric(need, size, round(shares * united), united), 1.0))


def overlap_probability(resemblance: float, *, size: int, support: int) -> float:
    """Return the chance that two full min-s sketches have at least `support` ids in common.

    Go through the ids of the union in the order of the permutation. Each is common with probability r; otherwise it
    belongs to either document alone, with equal chances (the documents are of about equal length). A common id is in
    both sketches as long as neither document has shown more than s ids. So the k-th common id is in both sketches iff
    at most s - k of the m non-common ids before it belong to one document. Here m is negative binomial, and the number
    that belongs to one document is binomial (m, 1/2).

    Args:
        resemblance: r, in [0, 1].
        size: s, at least 1.
        support: k, at least 0.

    Returns:
        In [0, 1]; 1 for support 0, 0 for a support above s. Valid for documents with many more shingles than s.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> [round(overlap_probability(r, size=100, support=85), 3) for r in (0.65, 0.7, 0.75, 0.8, 0.9)]
        [0.011, 0.107, 0.439, 0.839, 1.0]
    """
    shares = float(check_shares(resemblance))
    check_at_least_one(size=size)
    if support <= 0:
        return 1.0
    if support > size or shares == 0:
        return 0.0
    if shares == 1:
        return 1.0

    most = size - support
    others = np.arange(2 * most + 1)
    logs = _log_factorials(size + most)
    ways = logs[others + support - 1] - logs[others] - logs[support - 1]
    before = np.exp(ways + support * math.log(shares) + others * math.log1p(-shares))

    # P(m - most <= X <= most) is 2 P(X <= most) - 1, and P(X <= most) falls by P(X = most) / 2 from m to m + 1.
    steps = np.where(others >= most, _binomial(most, others, 0.5) / 2, 0.0)
    within = 1 - 2 * np.append(0.0, np.cumsum(steps)[:-1])
    return float(min((before * within).sum(), 1.0))


def expected_overlap(resemblance: float, *, size: int) -> float:
    """Return the mean of |A ∩ B| of two full min-s sketches; for large s near s x 2r / (1 + r).

    Up to `SUMMED` ids, the chances of all overlaps are summed, at a cost of s². For larger sketches an approximation
    is used, which is off by less than a tenth of an id. Go through the union in the order of the permutation until one
    document has shown s ids and the other one s - D. A share r of these ids is common, so the mean is
    r (2s - E D) / (1 + r). D is the distance of a random walk of about 2s (1 - r) / (1 + r) steps from its start; its
    mean is taken from the normal limit.

    Example:
        >>> round(expected_overlap(0.8, size=200), 1), round(200 * 1.6 / 1.8, 1)
        (175.4, 177.8)
    """
    if size > SUMMED:
        shares = float(check_shares(resemblance))
        behind = math.sqrt(4 * size * (1 - shares) / (1 + shares) / math.pi)
        return shares * (2 * size - behind) / (1 + shares)
    return sum(overlap_probability(resemblance, size=size, support=k) for k in range(1, size + 1))


def _binomial(hits: NDArray[np.int64] | int, draws: NDArray[np.int64] | int, share: float) -> NDArray[np.float64]:
    """Return P(X = hits) of a binomial distribution; 0 where there are more hits than draws."""
    hits, draws = np.broadcast_arrays(np.asarray(hits), np.asarray(draws))
    if share in (0.0, 1.0):
        return np.where(hits == draws * int(share), 1.0, 0.0)
    logs = _log_factorials(int(draws.max(initial=0)))
    rest = np.maximum(draws - hits, 0)
    odds = logs[draws] - logs[np.minimum(hits, draws)] - logs[rest] + hits * math.log(share) + rest * math.log1p(-share)
    return np.where(hits <= draws, np.exp(odds), 0.0)


def _hypergeometric(need: int, size: int, good: int, united: int) -> float:
    """Return P(X >= need), X being the good ones among `size` drawn from `united`, of which `good` are good."""
    hits = np.arange(max(need, size - (united - good), 0), min(size, good) + 1)
    logs = _log_factorials(united)
    bad = united - good
    odds = logs[good] - logs[hits] - logs[good - hits] + logs[bad] - logs[size - hits] - logs[bad - size + hits]
    return float(np.exp(odds - (logs[united] - logs[size] - logs[united - size])).sum())


def _log_factorials(most: int) -> NDArray[np.float64]:
    """Return log 0!, log 1!, … up to log most! at least. (Loading SciPy for them would take a second.)"""
    return _table(most.bit_length())


@lru_cache(maxsize=4)
def _table(bits: int) -> NDArray[np.float64]:
    return np.array([math.lgamma(n + 1) for n in range(1 << bits)])


def least_equal(size: int, share: Fraction) -> int:
    """Return the largest c with P(Bin(size, share) < c) < `MISSED`: all but so few pairs at `share` have c equal ids.

    Args:
        size: s, the ids of a sketch.
        share: t, in (0, 1].

    Returns:
        c, from 0 (no bound is promised) to s (for t = 1, or very near to it).

    Cost: at most s terms, in exact integers; above `EXACT` ids in floating point.

    Example:
        >>> [200 * share - least_equal(200, share) for share in map(Fraction, ("0.5", "0.7", "0.8", "0.9", "1"))]
        [Fraction(22, 1), Fraction(21, 1), Fraction(18, 1), Fraction(14, 1), Fraction(0, 1)]
    """
    return _tail(size, share)[0]


def chance_missed(size: int, share: Fraction) -> float:
    """Return P(Bin(size, share) < c), the chance that a pair at `share` is no candidate; pairs above it are likelier.

    Example:
        >>> round(1 / chance_missed(200, Fraction(7, 10)))
        1641
    """
    return _tail(size, share)[1]


def say_missed(size: int, share: Fraction) -> str:
    """Say how many pairs are expected to be no candidates.

    Example:
        >>> say_missed(200, Fraction(7, 10)), say_missed(200, Fraction(1))
        ('at most 1 in 1,640', 'none')
    """
    chance = chance_missed(size, share)
    return f"at most 1 in {int(1 / chance):,}" if chance else "none" if share == 1 else "no bound"


@lru_cache
def _tail(size: int, share: Fraction) -> tuple[int, float]:
    """Return the largest c with P(Bin(size, share) < c) < `MISSED`, and that probability."""
    p, q = share.numerator, share.denominator
    if p == q:
        return size, 0.0
    if size > EXACT:
        return _float_tail(size, float(share))

    # P(X = x) is comb(s, x) p^x (q - p)^(s - x) / q^s. The numerators are exact integers, each made of the one before.
    whole, term, below = q**size, (q - p) ** size, 0
    for count in range(size + 1):
        if (below + term) * MISSED.denominator >= whole * MISSED.numerator:
            return count, float(Fraction(below, whole))
        below += term
        term = term * (size - count) * p // ((count + 1) * (q - p))
    raise AssertionError("the terms add up to 1")


def _float_tail(size: int, share: float) -> tuple[int, float]:
    below = 0.0
    for count in range(size + 1):
        ways = math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)
        term = math.exp(ways + count * math.log(share) + (size - count) * math.log1p(-share))
        if below + term >= MISSED:
            return count, below
        below += term
    return size, below
