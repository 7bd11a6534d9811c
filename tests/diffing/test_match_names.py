"""Names that last, against their definition."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nddup.stages.families import match_names, name_others

ROWS = st.dictionaries(st.tuples(st.sampled_from("abcdé"), st.sampled_from("uvwxy")), st.integers(1, 3), max_size=12)


def numbers(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)


@given(ROWS, st.permutations(range(12)), st.lists(st.integers(1, 3), min_size=5, max_size=5))
def test_a_pair_is_taken_if_both_are_free(met: dict[tuple[str, str], int], turns: list[int], drawn: list[int]) -> None:
    """In any order of the rows, pairs that share most come first, and no family has two names."""
    sizes = dict(zip("uvwxy", drawn, strict=True))
    pairs = [pair for _, pair in sorted(zip(turns, met, strict=False))]
    expected, taken = set[tuple[str, str]](), set[str]()
    for pair in sorted(met, key=lambda one: (-met[one], one[0].encode(), -sizes[one[1]], one[1])):
        if not taken & set(pair):
            expected.add(pair)
            taken |= set(pair)

    rows = match_names(
        pa.array([name for name, _ in pairs], pa.string()), pa.array([one for _, one in pairs], pa.string()),
        numbers([met[pair] for pair in pairs]), numbers([sizes[one] for _, one in pairs]),
    )  # fmt: skip

    assert {pairs[row] for row in rows} == expected


def test_families_without_a_free_id() -> None:
    """Each has its smallest id with a number that no name and no document has, whatever the order."""
    assert name_others(["b", "a"], ["a~2", "b~3"]) == ["b~2", "a~3"]
    assert name_others(["a", "a~2"], ["a~3"]) == ["a~2", "a~2~2"]
    assert name_others([], []) == []
