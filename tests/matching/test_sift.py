"""Sketches that hold too few ids of others are passed over, and no other."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged
from nddup.matching import sift
from tests.matching.prepared_sketches import ragged

IDS = 0x9E3779B97F4A7C15
"""Multiples of it are spread over all slots."""


def held_again(rows: list[list[int]], looked_at: list[int]) -> list[int]:
    """Return how many ids of each of some rows another one of them has."""
    counts = Counter(value for at in looked_at for value in rows[at])
    return [sum(counts[value] > 1 for value in rows[at]) for at in looked_at]


def ask(sketches: Ragged, rows: list[int], bounds: list[int], threads: int = 1) -> list[bool]:
    """Sift by threads."""
    with ThreadPoolExecutor(threads) as pool:
        asked = np.array(rows, np.int64), np.array(bounds, np.int32)
        return list(map(bool, sift.sift(sketches, *asked, pool.map, threads)))


@given(st.data(), st.integers(1, 5))
def test_no_sketch_that_may_be_in_a_pair_is_lost(data: Any, threads: int) -> None:  # noqa: ANN401
    """Of any rows, and whatever ids others have, those with enough ids in common stay."""
    sizes, ids = st.integers(0, 9), st.integers(0, 30).map(lambda n: n * IDS % 2**64)
    rows = data.draw(st.lists(sizes.flatmap(lambda n: st.lists(ids, max_size=n, unique=True)), max_size=12))
    looked_at = sorted(data.draw(st.sets(st.integers(0, max(len(rows) - 1, 0)), max_size=len(rows))))
    bounds = data.draw(st.lists(st.integers(0, 6), min_size=len(looked_at), max_size=len(looked_at)))

    stay = ask(ragged(rows), looked_at, bounds, threads)

    for again, bound, stays in zip(held_again(rows, looked_at), bounds, stay, strict=True):
        assert stays or again < bound


def test_nearly_all_others_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 3,000 sketches of 100 ids, those with 60 of another stay, and none of the rest."""
    random = np.random.default_rng(5)
    values = random.integers(0, 1 << 63, (3_000, 100)).astype(np.uint64)
    values[1_000:1_100, :60] = values[:100, :60]
    sketches = Ragged(np.arange(3_001) * 100, np.sort(values, axis=1).ravel())
    monkeypatch.setattr(sift, "PARTS", 7)

    stay = ask(sketches, list(range(3_000)), [60] * 3_000, threads=2)

    assert np.flatnonzero(stay).tolist() == [*range(100), *range(1_000, 1_100)]
    assert sift.sifted_bytes(300_000) == 2**21 * 2 // 8
