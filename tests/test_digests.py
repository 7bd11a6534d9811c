"""Digests of many pieces at once are those of `hashlib`."""

from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.digests import BLOCK, LANES, digest_pieces


def expected(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> list[bytes]:
    pieces = [data[low:high].tobytes() for low, high in zip(starts, ends, strict=True)]
    return [blake2b(piece, digest_size=16).digest() for piece in pieces]


@given(
    sizes=st.lists(st.one_of(st.integers(0, 3), st.integers(0, 5 * BLOCK)), max_size=5 * LANES),
    seed=st.integers(0, 9),
)
def test_digests_are_those_of_hashlib(sizes: list[int], seed: int) -> None:
    """For any number of pieces of any lengths, in any order, whatever pieces are hashed beside them."""
    bounds = np.cumsum([7, *sizes])
    choose = np.random.default_rng(seed)
    data = choose.integers(0, 256, bounds[-1] + 5, np.uint8)
    rows = choose.permutation(len(sizes))
    starts, ends = bounds[rows], bounds[rows + 1]

    assert digest_pieces(data, starts, ends) == expected(data, starts, ends)


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 10 * BLOCK + 1])
def test_pieces_that_fill_their_blocks(size: int) -> None:
    """A block that is just full is the last one."""
    bounds = np.arange(LANES + 2) * size
    data = np.arange(bounds[-1], dtype=np.uint8)

    assert digest_pieces(data, bounds[:-1], bounds[1:]) == expected(data, bounds[:-1], bounds[1:])


def test_one_long_piece_among_short_ones() -> None:
    bounds = np.array([0, *(range(0, 900, 3)), 90_000])
    data = np.arange(bounds[-1], dtype=np.uint8)

    digests = digest_pieces(data, bounds[:-1], bounds[1:])

    assert digests == [blake2b(data[low:high].tobytes(), digest_size=16).digest() for low, high in pairwise(bounds)]
