"""The mathematics of sketches against the published table, another library, and simulations with fixed seeds.

Simulated means are compared within five standard errors of the simulation: a correct formula fails for about one seed
in two million, and the seeds are fixed.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nddup.sketching.accuracy import (
    SUMMED,
    expected_overlap,
    overlap_probability,
    pass_probability,
    sampled_variance,
    slots_variance,
    smallest_variance,
)
from nddup.sketching.minhash import candidate_probability, choose_bands, curve_threshold, expected_errors

PUBLISHED = {
    0.2: "0.006380581", 0.3: "0.047494259", 0.4: "0.186049552", 0.5: "0.470050715", 0.6: "0.801902454",
    0.7: "0.974780544", 0.8: "0.999643942", 0.9: "0.999999982",
}  # fmt: skip
"""Table 8 of Manaa and Abdulameer 2017: 20 bands of 5 rows."""

DRAWS = 4000
FIVE = 5.0

whole = st.integers(1, 40)
shares = st.floats(0, 1)


def permuted(union: int, common: int, *, draws: int = DRAWS, seed: int = 1) -> NDArray[np.bool_]:
    """Return random orders of a union, (draws, union): whether each element is one of the `common` in both."""
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(union) for _ in range(draws)]) < common


def agree(sample: NDArray[np.float64] | NDArray[np.int64] | NDArray[np.bool_], expected: float) -> bool:
    """Return whether a mean lies within five standard errors of the expected one."""
    values = sample.astype(np.float64)
    deviation = math.sqrt(expected * (1 - expected)) if sample.dtype == np.bool_ else float(values.std())
    return bool(abs(values.mean() - expected) <= FIVE * deviation / math.sqrt(len(values)) + 1e-12)


def variances_agree(estimates: NDArray[np.float64], expected: float) -> bool:
    """Return whether the variance of the estimates lies within five standard errors of the expected one."""
    return agree((estimates - estimates.mean()) ** 2, expected)


@pytest.mark.parametrize(("resemblance", "printed"), PUBLISHED.items())
def test_the_published_curve_to_the_printed_digits(resemblance: float, printed: str) -> None:
    """20 bands of 5 rows give the nine decimals of the table of 2017."""
    assert f"{candidate_probability(resemblance, bands=20, rows=5):.9f}" == printed


@given(resemblance=shares, bands=whole, rows=whole)
def test_the_curve_is_that_of_the_formula_and_rises(resemblance: float, bands: int, rows: int) -> None:
    """It is 1 - (1 - s^r)^b, from 0 at 0 to 1 at 1; it rises with resemblance and bands, and falls with rows."""
    at = float(candidate_probability(resemblance, bands=bands, rows=rows))

    assert at == pytest.approx(1 - (1 - resemblance**rows) ** bands, abs=1e-12)
    assert candidate_probability(np.array([0.0, 1.0]), bands=bands, rows=rows).tolist() == [0, 1]
    assert at <= candidate_probability(min(1.0, resemblance + 0.1), bands=bands, rows=rows)
    assert at <= candidate_probability(resemblance, bands=bands + 1, rows=rows)
    assert at >= candidate_probability(resemblance, bands=bands, rows=rows + 1)


def test_the_curve_is_exact_where_it_is_almost_flat() -> None:
    """Near 0 the curve is bands x s^rows, which 1 - (1 - x) would round away."""
    assert candidate_probability(0.001, bands=20, rows=6) == pytest.approx(20e-18, rel=1e-9)


def test_bands_of_equal_slots_become_candidates_as_often_as_the_curve_says() -> None:
    """If slots are equal with probability r, independently, the curve gives the chance that one of 6 bands is equal."""
    rng = np.random.default_rng(2)
    for resemblance in (0.3, 0.6, 0.85):
        equal = rng.random((20_000, 6, 3)) < resemblance
        agreeing = np.count_nonzero(np.count_nonzero(equal, axis=2) == 3, axis=1)

        assert agree(agreeing > 0, float(candidate_probability(resemblance, bands=6, rows=3)))


@given(bands=whole, rows=whole)
def test_at_its_threshold_the_curve_has_one_band_in_the_mean(bands: int, rows: int) -> None:
    """The threshold is (1 / b)^(1 / r), where b x s^r = 1."""
    assert bands * curve_threshold(bands=bands, rows=rows) ** rows == pytest.approx(1)


@given(bands=whole, rows=whole, threshold=st.floats(0.05, 1))
def test_expected_errors_are_the_areas_of_the_curve(bands: int, rows: int, threshold: float) -> None:
    """The closed form agrees with numerical integration of the formula."""
    found = expected_errors(bands=bands, rows=rows, threshold=threshold)
    from scipy import integrate  # noqa: PLC0415 - half a second to load

    below, _ = integrate.quad(lambda s: 1 - (1 - s**rows) ** bands, 0, threshold, limit=200)
    above, _ = integrate.quad(lambda s: (1 - s**rows) ** bands, threshold, 1, limit=200)

    assert found.false_positives * threshold == pytest.approx(below, abs=1e-7)
    assert found.false_negatives * (1 - threshold) == pytest.approx(above, abs=1e-7)


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.8, 0.9])
@pytest.mark.parametrize(("slots", "missed"), [(20, 0.5), (128, 0.5), (64, 0.9)])
def test_bands_are_those_another_library_chooses(slots: int, missed: float, threshold: float) -> None:
    """The bands have no more wrong area than those of datasketch, and are others only where its sums are inexact."""
    bands, rows = choose_bands(slots, threshold, weight_of_missed=missed)
    import datasketch.lsh  # noqa: PLC0415 - a second to load

    theirs = datasketch.lsh._optimal_param(threshold, slots, 1 - missed, missed)  # noqa: SLF001 - the oracle

    def wrong(b: int, r: int) -> float:
        errors = expected_errors(bands=b, rows=r, threshold=threshold)
        return (1 - missed) * errors.false_positives * threshold + missed * errors.false_negatives * (1 - threshold)

    assert bands * rows <= slots
    assert wrong(bands, rows) <= wrong(*theirs)
    assert (bands, rows) == theirs or wrong(*theirs) - wrong(bands, rows) < 1e-3


def test_more_weight_on_what_is_missed_misses_less() -> None:
    """The curve moves to the left as the weight of missed pairs grows."""
    missed = [
        expected_errors(bands=b, rows=r, threshold=0.8).false_negatives
        for b, r in (choose_bands(200, 0.8, weight_of_missed=weight) for weight in (0.1, 0.5, 0.9, 0.99))
    ]

    assert missed == sorted(missed, reverse=True)
    assert missed[-1] < missed[0]


@pytest.mark.parametrize(("union", "common", "size"), [(60, 42, 20), (300, 90, 100), (40, 20, 40)])
def test_variance_of_the_smallest_in_one_permutation(union: int, common: int, size: int) -> None:
    """The common share of the first s in a random order has mean r and the variance corrected for N."""
    estimates = permuted(union, common)[:, :size].mean(axis=1)
    resemblance = common / union

    assert agree(estimates, resemblance)
    assert variances_agree(estimates, smallest_variance(resemblance, size=size, united=union))


def test_variance_of_equal_slots() -> None:
    """In each of n independent permutations the first of the union is common with probability r."""
    first = permuted(30, 18, draws=50 * DRAWS)[:, 0].reshape(DRAWS, 50)
    estimates = first.mean(axis=1)

    assert agree(estimates, 0.6)
    assert variances_agree(estimates, slots_variance(0.6, slots=50))


@pytest.mark.parametrize(("among", "modulus"), [(200, 4), (60, 10)])
def test_variance_of_a_sample_by_modulus(among: int, modulus: int) -> None:
    """Each id is kept with probability 1 / m; if none is kept, there is no estimate."""
    rng = np.random.default_rng(3)
    common = among * 7 // 10
    kept = rng.random((4 * DRAWS, among)) < 1 / modulus
    totals = kept.sum(axis=1)
    estimates = kept[totals > 0, :common].sum(axis=1) / totals[totals > 0]

    assert agree(estimates, common / among)
    assert variances_agree(estimates, sampled_variance(common / among, modulus=modulus, among=among))


@pytest.mark.parametrize("need", [10, 14, 18])
def test_the_chance_to_pass_a_threshold(need: int) -> None:
    """The estimate from a random order reaches need / s with the computed chance."""
    shared = permuted(60, 42)[:, :20].sum(axis=1)

    assert agree(shared >= need, pass_probability(0.7, size=20, need=need, united=60))


def test_the_chance_to_pass_among_many_shingles() -> None:
    """Without N each id is common independently of the others, as in a very long document."""
    rng = np.random.default_rng(5)
    shared = (rng.random((DRAWS, 20)) < 0.7).sum(axis=1)

    assert agree(shared >= 14, pass_probability(0.7, size=20, need=14))


def sketched_overlaps(resemblance: float, size: int) -> NDArray[np.int64]:
    """Return |MIN_s(A) ∩ MIN_s(B)| of random pairs of documents of 2,000 shingles each."""
    common = round(2000 * 2 * resemblance / (1 + resemblance))
    rng = np.random.default_rng(7)
    overlaps = []
    for _ in range(DRAWS // 4):
        order = rng.permutation(4000 - common)
        a, b = order[:2000], order[2000 - common :]
        overlaps.append(len(np.intersect1d(np.sort(a)[:size], np.sort(b)[:size])))
    return np.array(overlaps)


@pytest.mark.parametrize("resemblance", [0.5, 0.8])
def test_the_overlap_of_sketches(resemblance: float) -> None:
    """The number of common ids of two sketches of 20 has the computed mean and tail."""
    overlaps = sketched_overlaps(resemblance, 20)

    assert agree(overlaps, expected_overlap(resemblance, size=20))
    for support in (12, 15, 18):
        assert agree(overlaps >= support, overlap_probability(resemblance, size=20, support=support))


@pytest.mark.parametrize("resemblance", [0.0, 0.1, 0.5, 0.8, 0.95, 0.99, 0.999, 1.0])
def test_the_mean_overlap_of_large_sketches_is_that_of_the_sum(resemblance: float) -> None:
    """Where the approximation replaces the sum, it is off by less than a tenth of an id; it also holds for 100,000."""
    size = SUMMED + 1
    summed = sum(overlap_probability(resemblance, size=size, support=k) for k in range(1, size + 1))

    assert expected_overlap(resemblance, size=size) == pytest.approx(summed, abs=0.1)
    most = expected_overlap(resemblance, size=100_000)
    assert 0.99 * 2e5 * resemblance / (1 + resemblance) <= most <= 2e5 * resemblance / (1 + resemblance)


def test_the_ends_of_the_overlap() -> None:
    """Equal documents share all ids, unrelated ones none, and no overlap exceeds the size."""
    assert overlap_probability(1, size=10, support=10) == 1
    assert overlap_probability(0, size=10, support=1) == 0
    assert overlap_probability(0.5, size=10, support=0) == 1
    assert overlap_probability(1, size=10, support=11) == 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: candidate_probability(1.5, bands=1, rows=1), r"\[0, 1\]"),
        (lambda: candidate_probability(0.5, bands=0, rows=1), "bands"),
        (lambda: curve_threshold(bands=1, rows=0), "rows"),
        (lambda: choose_bands(0, 0.5), "slots"),
        (lambda: choose_bands(10, 0.0), "threshold"),
        (lambda: choose_bands(10, 0.5, weight_of_missed=2), "weight_of_missed"),
        (lambda: smallest_variance(0.5, size=0), "size"),
        (lambda: pass_probability(0.5, size=5, need=6), "need"),
        (lambda: pass_probability(0.5, size=5, need=2, united=5), "united"),
    ],
)  # fmt: skip
def test_arguments_out_of_range_are_named(call: object, said: str) -> None:
    """Each argument out of range raises a ValueError that names it."""
    with pytest.raises(ValueError, match=said):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("resemblance", [0.0, 0.001, 0.3, 0.8, 0.99, 1.0])
@pytest.mark.parametrize("size", [1, 5, 100, 256])
def test_chances_are_those_of_another_library(resemblance: float, size: int) -> None:
    """The binomial, hypergeometric and negative binomial chances are those of SciPy."""
    from scipy import stats  # noqa: PLC0415 - a second to load

    for need in sorted({0, 1, size // 2, size}):
        plain = stats.binom.sf(need - 1, size, resemblance)
        assert pass_probability(resemblance, size=size, need=need) == pytest.approx(plain, abs=1e-10)
        for united in (size + 1, 5000):
            drawn = stats.hypergeom.sf(need - 1, united, round(resemblance * united), size)
            assert pass_probability(resemblance, size=size, need=need, united=united) == pytest.approx(drawn, abs=1e-9)
        if need and resemblance:
            others = np.arange(2 * (size - need) + 1)
            within = stats.binom.cdf(size - need, others, 0.5) - stats.binom.cdf(others - size + need - 1, others, 0.5)
            common = (stats.nbinom.pmf(others, need, resemblance) * within).sum()
            assert overlap_probability(resemblance, size=size, support=need) == pytest.approx(min(common, 1), abs=1e-10)
