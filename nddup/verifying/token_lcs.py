"""The longest common subsequence of two texts by bit vectors, for `check`: independent of the library that a run uses.

Source:
    Crochemore, Iliopoulos, Pinzon, Reid 2001, A fast and practical bit-vector algorithm for the longest common
    subsequence problem.
"""

from collections.abc import Hashable, Sequence


def count_common(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """
    Return the length of the longest common subsequence of two sequences.

    The vector is a Python integer. Each bit stands for a token of `first`, and is 0 where the LCS grows at that token.

    Cost: the product of both lengths / 64 steps.

    Example:
        >>> count_common("a rose is a rose".split(), "a rose was a red rose".split())
        4
    """
    places: dict[Hashable, int] = {}
    for place, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << place

    whole = (1 << len(first)) - 1
    vector = whole
    for token in second:
        matched = vector & places.get(token, 0)
        vector = (vector + matched | vector - matched) & whole
    return len(first) - vector.bit_count()
