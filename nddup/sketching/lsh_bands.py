"""The S-curve of LSH: how bands and rows decide which pairs become candidates.

    candidate_probability    chance that a pair of a given resemblance becomes a candidate: 1 - (1 - r^rows)^bands
    curve_threshold          the resemblance where the curve is steepest: (1 / bands)^(1 / rows)
    expected_errors          shares of false candidates and of missed pairs at a threshold
    choose_bands             the bands and rows with the smallest weighted sum of both errors

The formulas are exact for truly random permutations. The permutations in use are fixed by a seed, so results only come
close to these values. `lsh_keys` makes the keys of the bands.

Sources:
    Rajaraman, Ullman 2011, Mining of Massive Datasets, chapter 3.
    Manaa, Abdulameer 2017, Web documents similarity using k-shingle tokens and MinHash technique.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.sketching.ranges import Shares, check_at_least_one, check_shares


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

    below, above = _missed_areas(np.array([bands]), rows, threshold)
    positives = (threshold - float(below[0])) / threshold
    negatives = float(above[0]) / (1 - threshold) if threshold < 1 else 0.0
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

    Cost: slots x log(slots) evaluations of a special function: a few milliseconds for 1,000 slots.

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


def _missed_areas(bands: NDArray[np.int64], rows: int, threshold: float) -> tuple[Shares, Shares]:
    """Return the integrals of (1 - s^rows)^bands from 0 to `threshold` and from `threshold` to 1."""
    from scipy import special  # noqa: PLC0415 - half a second to load, which only LSH needs

    a, b = 1 / rows, bands + 1.0
    whole = special.beta(a, b) / rows
    share = threshold**rows
    return whole * special.betainc(a, b, share), whole * special.betaincc(a, b, share)


def _check_threshold(threshold: float) -> None:
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must lie in (0, 1], got {threshold}")
