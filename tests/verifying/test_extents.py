"""The extent of a cluster, against sets of shingles in plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nddup.verifying.extents import find_extent

Texts = list[list[str]]


def shingles_of(text: list[str], length: int, offset: int) -> dict[int, tuple[str, ...]]:
    """Return the shingles of a text by their first token."""
    last = max(len(text) - length, 0)
    return {at: tuple(text[at : at + length]) for at in range(0, last + 1, offset)} if text else {}


def holds_only(own: dict[int, tuple[str, ...]], low: int, high: int, common: set[tuple[str, ...]]) -> bool:
    """Return whether a range holds a shingle and all the shingles in it are common, by the definition."""
    inside = [one for at, one in own.items() if low <= at and at + len(one) <= high]
    return bool(inside) and set(inside) <= common


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=9), max_size=4), st.integers(1, 4), st.integers(1, 3))
def test_the_extent_is_the_intersection_of_all_shingles(texts: Texts, length: int, offset: int) -> None:
    """Common shingles, those of each member, and all maximal ranges of the first are those of the definition."""
    sets = [set(shingles_of(text, length, offset).values()) for text in texts]
    common = set.intersection(*sets) if sets else set()
    found = find_extent(texts, length, offset)

    assert found.common == len(common)
    assert found.shingles == [len(one) for one in sets]
    smallest = min(map(len, sets), default=0)
    assert found.share == (len(common) / smallest if smallest else 0)
    first = texts[0] if texts else []
    starts = shingles_of(first, length, offset)
    ends = {at + len(one) for at, one in starts.items()}
    good = {(low, high) for low in starts for high in ends if holds_only(starts, low, high, common)}
    maximal = {
        one for one in good if not any(other != one and other[0] <= one[0] and one[1] <= other[1] for other in good)
    }
    assert {tuple(span) for span in found.spans.tolist()} == maximal


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=9), min_size=1, max_size=4), st.integers(1, 4))
def test_what_lies_beside_is_in_no_common_shingle(texts: Texts, length: int) -> None:
    """The tokens beside the extent of each member are exactly those that no common shingle holds."""
    sets = [set(shingles_of(text, length, 1).values()) for text in texts]
    common = set.intersection(*sets)

    for text, ranges in zip(texts, find_extent(texts, length).beside, strict=True):
        covered = {
            at + place for at, one in shingles_of(text, length, 1).items() if one in common for place in range(len(one))
        }
        beside = {place for low, high in ranges.tolist() for place in range(low, high)}
        assert beside == set(range(len(text))) - covered
        assert np.all(ranges[1:, 0] > ranges[:-1, 1])
