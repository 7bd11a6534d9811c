"""The edges of MIN_s: settings, batches, sizes and ids at their limits."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.sketching.min_s import scratch_needed, select_smallest, sketch_texts, sort_distinct
from tests.sketching.defined_min_s import defined_sketch, sketch, sketch_one, split, texts
from tests.sketching.defined_tokens import MASK


@given(text=texts, small=st.integers(1, 9), more=st.integers(0, 9))
def test_a_smaller_sketch_is_the_front_of_a_larger(text: str, small: int, more: int) -> None:
    assert sketch_one(text, length=2, size=small) == sketch_one(text, length=2, size=small + more)[:small]


@settings(deadline=None)  # the first example may compile the kernel
@given(documents=st.lists(texts, min_size=1, max_size=5), first=st.integers(0, 4))
def test_a_sketch_does_not_depend_on_its_batch(documents: list[str], first: int) -> None:
    """The sketch is the same alone, in a batch, and in a slice whose offsets begin later, of 32 or 64 bits."""
    alone = [sketch_one(document) for document in documents]

    assert split(sketch(documents)) == alone
    for kind, width in ((pa.string(), "int32"), (pa.large_string(), "int64")):
        _, ends, values = pa.array(documents, kind).buffers()
        data = np.frombuffer(values or b"", dtype=np.uint8)
        bounds = np.frombuffer(ends, dtype=width)[first : len(documents) + 1]
        if bounds.size > 1:
            assert split(sketch_texts(data, bounds)) == alone[first:]


def test_a_large_text_after_small_ones() -> None:
    """Scratch arrays grow and keep nothing of the previous text."""
    words = [f"w{i * i % 9973}" for i in range(20_000)]
    documents = ["one two", " ".join(words), "", "one two", " ".join(words[:500])]

    sketches = sketch(documents, length=3, size=50)

    assert split(sketches) == [defined_sketch(document, 3, 1, 50, 1)[2] for document in documents]


def test_huge_settings_mean_all_and_one() -> None:
    """Numbers near or beyond 64 bits do not wrap around."""
    sketches = sketch(["a b c d e f"] * 2, length=2, offset=2**70, size=2**63 - 1)

    assert sketches.n_features.tolist() == [1, 1]
    assert sketch_one("a b c", length=2**70) == sketch_one("a b c", length=3)


@pytest.mark.parametrize("bounds", [[], [0], [5]])
def test_no_texts(bounds: list[int]) -> None:
    sketches = sketch_texts(np.zeros(5, dtype=np.uint8), np.array(bounds, dtype=np.int32))

    assert [part.tolist() for part in sketches[:4]] == [[], [], [0], []]
    assert [part.dtype.name for part in sketches[:4]] == ["int32", "int32", "int64", "uint64"]


@pytest.mark.parametrize("setting", ["length", "offset", "size"])
def test_refuses_a_setting_below_one(setting: str) -> None:
    with pytest.raises(ValueError, match=f"{setting} must be at least 1, got 0"):
        sketch(["a"], **{setting: 0})


@pytest.mark.parametrize("bounds", [[0, 6], [-1, 2], [0, 3, 2]])
def test_refuses_offsets_outside_the_data(bounds: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets must rise from 0 at least to 5 at most"):
        sketch_texts(np.zeros(5, dtype=np.uint8), np.array(bounds))


@given(
    values=st.lists(st.one_of(st.integers(0, 7), st.integers(0, MASK)), max_size=60),
    start=st.sampled_from(["any order", "ascending", "descending"]),
)
def test_distinct_values_come_to_the_front_in_order(values: list[int], start: str) -> None:
    """However far from their places they begin, as the ids of a bucket do that someone has filled."""
    if start != "any order":
        values = sorted(values, reverse=start == "descending")
    array = np.array(values, np.uint64)

    count = sort_distinct(array)

    assert array[:count].tolist() == sorted(set(values))


@given(
    values=st.lists(st.integers(0, 4).map(lambda n: (MASK - 2 + n) & MASK), max_size=8),
    size=st.integers(1, 6),
)
def test_the_greatest_and_smallest_ids_are_ids_like_others(values: list[int], size: int) -> None:
    """Ids 2**64 - 3 .. 2**64 - 1, and 0 and 1, which fill two buckets, are selected like all others."""
    multiplier, increment = np.uint64(1), np.uint64(0)
    fingerprints = np.array([unmixed(value) for value in values], dtype=np.uint64)
    ids = np.zeros(8, dtype=np.uint64)
    scratch = np.empty(scratch_needed(len(values)), dtype=np.uint64)

    n_features, written = select_smallest(fingerprints, multiplier, increment, size, scratch, ids)

    assert n_features == len(set(values))
    assert ids[:written].tolist() == sorted(set(values))[:size]


def unmixed(value: int) -> int:
    """Invert the fixed steps of the permutation."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        undone = value
        for _ in range(64 // shift + 1):
            undone = value ^ undone >> shift
        value = undone * pow(factor, -1, 2**64) & MASK
    return value
