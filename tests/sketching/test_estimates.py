"""The estimates of sketches against the papers, and which sketches meet: bands, runs and levels."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged
from nddup.sketching.minhash import SLOT_BITS, Finder, candidate_probability, draw_slots, find_minima
from nddup.sketching.permutations import mix
from nddup.sketching.recipe import spread_levels
from tests.samples_by_night import first


def overlapping(seed: int, shared: int, own: int) -> tuple[list[int], list[int]]:
    """Return two sets of random ids with `shared` in common and `own` more in each."""
    ids = mix(np.arange(shared + 2 * own, dtype=np.uint64), seed=seed + 10**6).tolist()
    return ids[: shared + own], ids[:shared] + ids[shared + own :]


def estimates(kind: str, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return resemblance and containment estimated from `runs` seeds, (runs,) each; the true ones are 0.6 and 0.75."""
    a, b = overlapping(3, 300, 100)
    found = []
    for seed in range(runs):
        if kind in {"mix", "gf2", "affine", "datasketch"}:
            slots = draw_slots(kind, 50, seed)
            left, right = (find_minima(np.array(ids, np.uint64), slots) for ids in (a, b))
            found.append((np.mean(left == right), 0.75))
            continue
        one, two = (set(mix(np.array(ids, np.uint64), seed=seed).tolist()) for ids in (a, b))
        if kind == "min-s":
            one, two = (set(sorted(ids)[:50]) for ids in (one, two))
            sample = set(sorted(one | two)[:50])
            found.append((len(sample & one & two) / 50, 0.75))
        else:
            one, two = ({id_ for id_ in ids if id_ % 10 == 0} for ids in (one, two))
            found.append((len(one & two) / len(one | two), len(one & two) / len(one)))
    resemblance, containment = np.array(found).T
    return resemblance, containment


@pytest.mark.thorough
@pytest.mark.parametrize("kind", first(5, ["min-s", "mix", "affine", "datasketch", "mod-m", "gf2"]))
def test_estimates_are_those_of_the_papers(kind: str) -> None:
    """
    The mean over the seeds is within 5 standard errors of the truth, and the variance is that of the formula.

    It is r(1-r)/s (N-s)/(N-1) for min-s, r(1-r)/n for slots, and nearly r(1-r)/(N/m) for mod-m. The standard error of a
    variance is 8 % over 300 seeds, 18 % over the 60 of gf2; a factor of 1.6 is allowed. The seeds are fixed.
    """
    runs, r, n = (60, 0.6, 500) if kind == "gf2" else (300, 0.6, 500)
    variance = {"min-s": r * (1 - r) / 50 * (n - 50) / (n - 1)}.get(kind, r * (1 - r) / 50)

    resemblance, containment = estimates(kind, runs)

    assert abs(resemblance.mean() - r) < 5 * np.sqrt(variance / runs)
    assert 1 / 1.6 < resemblance.var() / variance < 1.6
    assert abs(containment.mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 40 / runs)


def test_untagged_minima_are_biased() -> None:
    """
    The papers' untagged set of minima estimates r / (2 - r), 0.69 for r = 0.818: a slot that differs counts twice.

    Over 100 seeds the mean has a standard error of 0.005.
    """
    a, b = overlapping(5, 900, 100)
    found = []
    for seed in range(100):
        slots = draw_slots("mix", 100, seed)
        left, right = (set(find_minima(np.array(ids, np.uint64), slots).tolist()) for ids in (a, b))
        found.append(len(left & right) / len(left | right))

    assert abs(np.mean(found) - 0.818 / (2 - 0.818)) < 0.02


def ragged(rows: Sequence[Sequence[int]]) -> Ragged:
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Ragged(ends, np.array([value for row in rows for value in row], np.uint64))


def keys_of(rows: Sequence[Sequence[int]], finder: Finder) -> list[set[int]]:
    keys = finder.keys(ragged(rows))
    return [set(part.tolist()) for part in np.split(keys.values, keys.offsets[1:-1])]


signatures = st.lists(st.integers(0, 2), min_size=6, max_size=6)


@given(first=signatures, second=signatures, bands=st.sampled_from([1, 2, 3, 6]))
def test_a_band_in_common_is_a_key_in_common(first: list[int], second: list[int], bands: int) -> None:
    rows = 6 // bands
    common = sum(first[i * rows : (i + 1) * rows] == second[i * rows : (i + 1) * rows] for i in range(bands))
    tagged = [sorted(value << SLOT_BITS | slot for slot, value in enumerate(row)) for row in (first, second)]

    a, b = keys_of(tagged, Finder(bands, rows))

    assert (len(a), len(b), len(a & b)) == (bands, bands, common)


@given(first=st.sets(st.integers(0, 9)), second=st.sets(st.integers(0, 9)), rows=st.integers(1, 4))
def test_a_run_in_common_is_a_key_in_common(first: set[int], second: set[int], rows: int) -> None:
    """A key is a run of ids of the sorted sketch, a super-shingle; a shorter sketch has one key, of all its ids."""

    def runs(ids: list[int]) -> set[tuple[int, ...]]:
        return {tuple(ids[i : i + rows]) for i in range(max(len(ids) - rows, 0) + 1)} if ids else set()

    a, b = sorted(first), sorted(second)

    one, two = keys_of([a, b], Finder(0, rows))

    assert (len(one), len(two), len(one & two)) == (len(runs(a)), len(runs(b)), len(runs(a) & runs(b)))


def test_candidates_come_as_the_curve_says() -> None:
    """With 20 bands of 5 rows, 0.802 of 400 pairs of resemblance 0.6 become candidates; the standard error is 0.02."""
    a, b = (np.array(ids, np.uint64) for ids in overlapping(9, 300, 100))
    hits = 0
    for seed in range(400):
        slots = draw_slots("mix", 100, seed)
        left, right = ((find_minima(ids, slots) % 2**47).tolist() for ids in (a, b))
        rows = [sorted((value << SLOT_BITS | slot) for slot, value in enumerate(row)) for row in (left, right)]
        one, two = keys_of(rows, Finder(20, 5))
        hits += bool(one & two)

    assert abs(hits / 400 - candidate_probability(0.6, bands=20, rows=5)) < 0.09


@given(
    sketches=st.lists(st.tuples(st.sets(st.integers(0, 63), max_size=12), st.integers(0, 3)), max_size=5),
    more=st.integers(0, 2),
)
def test_sketches_are_spread_over_the_levels_they_may_meet_at(sketches: list[tuple[set[int], int]], more: int) -> None:
    """A sketch has a row for each level from its own to the coarsest: the ids that 2**level divides, if any."""
    own = [(sorted(id_ for id_ in ids if id_ % 2**level == 0), level) for ids, level in sketches]
    most = max((level for _, level in own), default=0) + more
    expected = {
        (node, level, at): sum(id_ % 2**at == 0 for id_ in ids)
        for node, (ids, level) in enumerate(own)
        for at in range(level, most + 1)
    }

    names, rows = spread_levels(
        np.arange(len(own)), np.array([level for _, level in own], np.int64), ragged([ids for ids, _ in own]), most
    )

    keys = [(name >> 12, name >> 6 & 63, name & 63) for name in names.tolist()]
    parts = [part.tolist() for part in np.split(rows.values, rows.offsets[1:-1])] if keys else []
    assert dict(zip(keys, map(len, parts), strict=True)) == {key: size for key, size in expected.items() if size}
    assert all(part == sorted(set(part)) for part in parts)
    for (one, _, at), left in zip(keys, parts, strict=True):
        for (two, _, other), right in zip(keys, parts, strict=True):
            both = {id_ for id_ in set(own[one][0]) & set(own[two][0]) if id_ % 2**at == 0}
            assert len(set(left) & set(right)) == (len(both) if at == other else 0)
