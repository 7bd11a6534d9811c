"""Recipes: the sketches of every kind against their definitions, and the estimates they allow."""

from collections.abc import Sequence
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.sketching.min_s import Sketches
from nddup.sketching.minhash import MOST_SLOTS, SLOT_BITS, draw_slots, find_minima
from nddup.sketching.permutations import affine, gf2
from nddup.sketching.recipe import Recipe, level_of, make_sketches, size_of
from tests.sketching.defined_tokens import defined_hash

WORDS = [f"w{i}" for i in range(40)]
texts = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)
many_texts = st.lists(texts, min_size=1, max_size=4)
ALL = 10**5


def sketch(documents: Sequence[str], recipe: Recipe, left_out: Sequence[int] = ()) -> Sketches:
    """Sketch documents laid out as Arrow lays them out."""
    encoded = [document.encode() for document in documents]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return make_sketches(np.frombuffer(b"".join(encoded), np.uint8), ends, recipe, np.array(left_out, np.uint64))


def split(made: Sketches) -> list[list[int]]:
    return [part.tolist() for part in np.split(made.ids, made.offsets[1:-1])]


def all_ids(documents: Sequence[str], **how: int | str) -> list[list[int]]:
    """Return every id of each document, ascending, under `mix`."""
    return split(sketch(documents, Recipe(size=ALL, **how)))  # type: ignore[arg-type]


@given(documents=many_texts, modulus=st.integers(1, 9))
def test_mod_m_keeps_what_the_modulus_divides(documents: list[str], modulus: int) -> None:
    expected = [[id_ for id_ in ids if id_ % modulus == 0] for ids in all_ids(documents)]

    assert split(sketch(documents, Recipe("mod-m", modulus=modulus))) == expected


@given(documents=many_texts, size=st.integers(1, 9))
def test_mod_pow2_follows_the_length(documents: list[str], size: int) -> None:
    """2**i is the least power of two that keeps at most `size` shingles in the mean."""
    expected = []
    for ids in all_ids(documents):
        i = next(i for i in range(64) if len(ids) <= size * 2**i)
        expected.append([id_ for id_ in ids if id_ % 2**i == 0])

    assert split(sketch(documents, Recipe("mod-pow2", size=size))) == expected


@pytest.mark.parametrize("n", [0, 1, 99, 100, 101, 200, 201, 399, 12_800, 12_801])
def test_levels_keep_half_the_size_to_the_size(n: int) -> None:
    level = level_of(n, 100)

    assert n <= 100 << level
    assert level == 0 or n > 50 << level


@given(documents=many_texts, growth=st.sampled_from(["fixed", "logarithmic", "linear"]), size=st.integers(1, 9))
def test_sizes_follow_their_law(documents: list[str], growth: str, size: int) -> None:
    for kept, ids in zip(
        split(sketch(documents, Recipe(growth=growth, size=size, modulus=3))), all_ids(documents), strict=True
    ):
        law = {"fixed": size, "logarithmic": ceil(size * log2(1 + len(ids) / size)), "linear": ceil(len(ids) / 3)}
        assert kept == ids[: law[growth]]


def test_sizes_never_fall_as_documents_grow() -> None:
    for growth in ("fixed", "logarithmic", "linear"):
        sizes = [size_of(Recipe(growth=growth, size=10), n) for n in range(500)]
        assert sizes == sorted(sizes)


@pytest.mark.parametrize("permutation", ["gf2", "affine"])
@given(documents=many_texts)
def test_permutations_are_those_of_the_functions(permutation: str, documents: list[str]) -> None:
    """The ids of a recipe are the images of the fingerprints under its permutation."""
    function = {"gf2": gf2, "affine": affine}[permutation]
    tokens = [document.split() for document in documents]
    single = sorted({word for words in tokens for word in words})
    prints = {word: defined_hash(word) for word in single}

    made = sketch(documents, Recipe(length=1, permutation=permutation, seed=3, size=ALL))

    expected = [
        sorted({int(function(np.array([prints[word]], np.uint64), seed=3)[0]) for word in words}) for words in tokens
    ]
    assert split(made) == expected


def test_broders_example_in_characters() -> None:
    """`a rose is` and `a rose` have 6 and 3 shingles of 4 characters, of which 3 are common."""
    a, b = split(sketch(["A rose, is", "a ROSE!"], Recipe(unit="char", length=4)))

    assert (len(a), len(b), len(set(a) & set(b))) == (6, 3, 3)


@given(documents=many_texts, name=st.sampled_from(["mix", "gf2", "affine", "datasketch"]), n=st.integers(1, 6))
def test_slots_hold_the_minima(documents: list[str], name: str, n: int) -> None:
    """Each slot of a signature is the smallest image of the document's words; the sketch tags it with its slot."""
    slots = draw_slots(name, n, 7)
    made = sketch(documents, Recipe("minhash", length=1, permutation=name, size=n, seed=7))
    signed = [words for words in map(str.split, documents) if words]
    expected = [
        np.min([find_minima(np.array([defined_hash(word)], np.uint64), slots) for word in words], axis=0).tolist()
        for words in signed
    ]

    assert made.signatures is not None
    assert made.signatures.reshape(-1, n).tolist() == expected
    tagged = [sorted((value << SLOT_BITS | slot) % 2**64 for slot, value in enumerate(row)) for row in expected]
    assert [ids for ids in split(made) if ids] == tagged


def test_untagged_minima_are_their_set() -> None:
    made = sketch(["a b c d"], Recipe("min-perm", length=1, size=50, tagged=False))

    assert made.signatures is not None
    assert split(made) == [sorted(set(made.signatures.tolist()))]


@settings(max_examples=15)
@given(ids=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=30), seed=st.integers(0, 2**32 - 1))
def test_datasketch_gives_the_same_signature(ids: list[int], seed: int) -> None:
    """The signature equals that of datasketch, loads into its LeanMinHash and is found by its LSH."""
    from datasketch import LeanMinHash, MinHash, MinHashLSH  # noqa: PLC0415 - a second to load

    theirs = MinHash(num_perm=32, seed=seed, scheme="affine64", hashfunc=lambda value: value)
    theirs.update_batch(ids)

    ours = find_minima(np.array(ids, np.uint64), draw_slots("datasketch", 32, seed))

    lean = LeanMinHash(seed=seed, hashvalues=ours, scheme="affine64")
    assert ours.tolist() == theirs.hashvalues.tolist()
    assert lean.jaccard(LeanMinHash(theirs)) == 1.0
    index = MinHashLSH(num_perm=32, params=(8, 4))
    index.insert("theirs", LeanMinHash(theirs))
    assert index.query(lean) == ["theirs"]


def test_refuses_slots_out_of_range() -> None:
    with pytest.raises(ValueError, match="slots must be 1 to"):
        draw_slots("mix", MOST_SLOTS + 1, 1)
    with pytest.raises(ValueError, match="below 2"):
        draw_slots("datasketch", 4, 2**32)
    with pytest.raises(ValueError, match="no permutations named 'other'"):
        draw_slots("other", 4, 1)


@given(documents=many_texts, gone=st.sets(st.integers(0, 60)))
def test_what_is_left_out_is_never_selected(documents: list[str], gone: set[int]) -> None:
    """The sketch is that of the document without the shingles left out."""
    whole = all_ids(documents)
    known = sorted({id_ for ids in whole for id_ in ids})
    left_out = [id_ for i, id_ in enumerate(known) if i in gone]

    made = sketch(documents, Recipe(size=4), left_out)

    expected = [[id_ for id_ in ids if id_ not in left_out] for ids in whole]
    assert split(made) == [ids[:4] for ids in expected]
    assert made.n_features.tolist() == [len(ids) for ids in expected]


def test_nothing_of_slots_can_be_left_out() -> None:
    with pytest.raises(ValueError, match="the id of a slot stands for no single shingle"):
        sketch(["a b"], Recipe("min-perm"), [1])
