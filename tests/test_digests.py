"""Digests of many pieces at once are those of `hashlib`."""

from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.digests import BLOCK, LANES, digest_rows


@given(
    sizes=st.lists(st.one_of(st.integers(0, 3), st.integers(0, 5 * BLOCK)), max_size=3 * LANES),
    seed=st.integers(0, 9),
)
def test_digests_are_those_of_hashlib(sizes: list[int], seed: int) -> None:
    """For any number of pieces of any lengths, whatever pieces are hashed beside them."""
    bounds = np.cumsum([7, *sizes])
    data = np.random.default_rng(seed).integers(0, 256, bounds[-1] + 5, np.uint8)
    pieces = [data[low:high].tobytes() for low, high in pairwise(bounds)]

    assert digest_rows(data, bounds) == [blake2b(piece, digest_size=16).digest() for piece in pieces]


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 10 * BLOCK + 1])
def test_pieces_that_fill_their_blocks(size: int) -> None:
    """A block that is just full is the last one."""
    data = np.arange(size * (LANES + 1), dtype=np.uint8)

    digests = digest_rows(data, np.arange(LANES + 2) * size)

    assert digests[-1] == blake2b(data[len(data) - size :].tobytes(), digest_size=16).digest()
