"""The filter, compared with the set of its keys."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.against.shingle_table import add_keys, filter_shift, make_filter, may_have

keys = st.lists(st.integers(0, 2**64 - 1), max_size=30)


@settings(max_examples=100, deadline=None)
@given(first=keys, further=keys)
def test_no_key_is_held_back(first: list[int], further: list[int]) -> None:
    """The filter passes every key that was added to it."""
    words = make_filter(np.array(first, np.uint64))
    add_keys(np.array(further, np.uint64), words)

    shift = filter_shift(words)
    assert all(may_have(np.uint64(key), words, shift) for key in first + further)


def test_few_foreign_keys_pass_and_the_size_is_bounded() -> None:
    """Few foreign keys pass; a filter of bounded size passes more of them, and still all of its own keys."""
    drawn = np.random.default_rng(1).integers(0, 2**64, 110_000, np.uint64)
    mine, foreign = drawn[:10_000], drawn[10_000:]
    words, small = make_filter(mine), make_filter(mine, most_bytes=1 << 10)

    assert (words.nbytes, small.nbytes) == (1 << 15, 1 << 10)
    passed = [sum(may_have(key, one, filter_shift(one)) for key in foreign) for one in (words, small)]
    assert passed[0] < 0.006 * len(foreign) < passed[1]
    assert all(may_have(key, small, filter_shift(small)) for key in mine)
