"""Sketching: the compiled pass against the definition, in plain Python, bit for bit."""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.sketching.min_s import EMPTY, Sketches, insert, select_smallest, sketch_texts, slots_needed
from nddup.sketching.permutations import mix_keys
from nddup.sketching.sketch_format import SKETCH_FORMAT
from nddup.sketching.tokens import TOKEN_TABLE_VERSION, tokenise

MASK = 2**64 - 1
ALL = 2**40
ALONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u3005-\u312f\u3190-\u3195\u31a0-\u31ff"
    "\u3220-\u3229\u3280-\u3289\u3400-\u4dbf\u4e00-\ua48f\ua9e0-\ua9ff\uaa60-\uaadf\uf900-\ufaff\uff66-\uff9f"
    "\U00011700-\U0001174f\U00016fe0-\U00018d7f\U0001aff0-\U0001b2ff\U0001d372-\U0001d376\U00020000-\U0003ffff"
)
"""Spaceless scripts, as ranges that hold no other word character."""

same_unicode = pytest.mark.skipif(
    unicodedata.unidata_version != TOKEN_TABLE_VERSION, reason="another Unicode than the table's"
)
# Half the characters from a small alphabet, so that words and shingles repeat; half from all of Unicode.
texts = st.text(st.one_of(st.sampled_from("aAbB ,.1_éЖжς薔は ก\u0e31한İ😀"), st.characters(codec="utf-8")), max_size=60)
lengths = st.integers(1, 7)
offsets_between = st.integers(1, 4)
sizes = st.one_of(st.integers(1, 8), st.just(200))
seeds = st.integers(0, 2**64 - 1)


def sketch(documents: Sequence[str | bytes], **how: int) -> Sketches:
    """Sketch documents laid out as Arrow lays them out."""
    encoded = [d.encode() if isinstance(d, str) else d for d in documents]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return sketch_texts(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends, **how)


def sketch_one(document: str | bytes, **how: int) -> list[int]:
    ids: list[int] = sketch([document], **how).ids.tolist()
    return ids


def split(sketches: Sketches) -> list[list[int]]:
    return [part.tolist() for part in np.split(sketches.ids, sketches.offsets[1:-1])]


def defined_tokens(text: str) -> list[str]:
    """Find the tokens by a regular expression, and lower each character alone."""
    return [
        "".join(c.lower() if len(c.lower()) == 1 else c for c in token).replace("ς", "σ")
        for token in re.findall(rf"(?=\w)[{ALONE}]|(?:(?![{ALONE}])\w)+", text)
    ]


def defined_shingles(tokens: list[str], length: int, offset: int) -> list[tuple[str, ...]]:
    if 0 < len(tokens) < length:
        return [tuple(tokens)]
    return [tuple(tokens[i : i + length]) for i in range(0, len(tokens) - length + 1, offset)]


def defined_id(shingle: tuple[str, ...], seed: int) -> int:
    """Hash the tokens, hash the hashes, permute: in exact integers."""
    fingerprint = 0
    for token in shingle:
        state = 0xCBF29CE484222325
        for character in token:
            state = (state ^ ord(character)) * 0xD6E8FEB86659FD93 & MASK
        state = (state ^ state >> 32) * 0xFF51AFD7ED558CCD & MASK
        state ^= state >> 29
        fingerprint = (fingerprint * 0x9FB21C651E98DF25 + state) & MASK
    multiplier, increment = (int(key) for key in mix_keys(seed))
    value = (fingerprint * multiplier + increment) & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def defined_sketch(text: str, length: int, offset: int, size: int, seed: int) -> tuple[int, int, list[int]]:
    tokens = defined_tokens(text)
    ids = sorted({defined_id(shingle, seed) for shingle in defined_shingles(tokens, length, offset)})
    return len(tokens), len(ids), ids[:size]


@same_unicode
@given(documents=st.lists(texts, max_size=4), length=lengths, offset=offsets_between, size=sizes, seed=seeds)
def test_is_what_the_definition_says(documents: list[str], length: int, offset: int, size: int, seed: int) -> None:
    expected = [defined_sketch(document, length, offset, size, seed) for document in documents]

    actual = sketch(documents, length=length, offset=offset, size=size, seed=seed)

    assert actual.n_tokens.tolist() == [n_tokens for n_tokens, _, _ in expected]
    assert actual.n_features.tolist() == [n_features for _, n_features, _ in expected]
    assert (split(actual) if documents else []) == [ids for _, _, ids in expected]


@same_unicode
def test_every_character_is_read_as_the_definition_says() -> None:
    """All of Unicode in one text, in order and each between letters."""
    everything = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)

    for text in (everything, "x".join(everything[:0x30000])):
        n_tokens, n_features, ids = defined_sketch(text, 2, 1, 500, 3)
        actual = sketch([text], length=2, size=500, seed=3)
        assert (actual.n_tokens[0], actual.n_features[0], actual.ids.tolist()) == (n_tokens, n_features, ids)


@given(texts)
def test_reads_the_tokens_that_tokenise_shows(text: str) -> None:
    expected = sorted({defined_id((token,), 1) for token in tokenise(text)})

    assert sketch_one(text, length=1, size=ALL) == expected


@same_unicode
@given(st.lists(st.one_of(st.binary(max_size=12), texts.map(str.encode)), max_size=5).map(b"".join))
def test_a_malformed_byte_parts_words(document: bytes) -> None:
    """Python puts U+FFFD, which is of no word, in its place."""
    _, _, expected = defined_sketch(document.decode("utf-8", "replace"), 2, 1, 200, 1)

    assert sketch_one(document, length=2) == expected


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_does_not_read_beyond_a_cut_character(cut: int) -> None:
    """The next document's bytes would complete the last character of the first."""
    whole = "a \U00020000".encode()
    ends = np.array([0, 2 + cut, len(whole)])

    sketches = sketch_texts(np.frombuffer(whole, dtype=np.uint8), ends, length=1)

    assert sketches.n_tokens.tolist() == [1, 0]


@pytest.mark.parametrize(("length", "shared", "union"), [(1, 3, 5), (2, 3, 6), (3, 3, 7)])
def test_roses(length: int, shared: int, union: int) -> None:
    """Broder's example: r1 = 3/5, r2 = 3/6, r3 = 3/7."""
    a, b = split(sketch(["a rose is a rose is a rose", "a rose is a flower which is a rose"], length=length, size=ALL))

    assert (len(set(a) & set(b)), len(set(a) | set(b))) == (shared, union)


@given(a=texts, b=texts, size=st.integers(1, 6), seed=seeds)
def test_the_sketch_of_a_union_needs_only_the_sketches(a: str, b: str, size: int, seed: int) -> None:
    """MIN_s(A u B) = MIN_s(MIN_s(A) u MIN_s(B)); single words, so that A u B is a text of both."""
    of_both = sketch_one(f"{a}\n{b}", length=1, size=size, seed=seed)

    parts = {*sketch_one(a, length=1, size=size, seed=seed), *sketch_one(b, length=1, size=size, seed=seed)}

    assert of_both == sorted(parts)[:size]


@given(text=texts, small=st.integers(1, 9), more=st.integers(0, 9))
def test_a_smaller_sketch_is_the_front_of_a_larger(text: str, small: int, more: int) -> None:
    assert sketch_one(text, length=2, size=small) == sketch_one(text, length=2, size=small + more)[:small]


@settings(deadline=None)  # the kernel may be compiled in it
@given(documents=st.lists(texts, min_size=1, max_size=5), first=st.integers(0, 4))
def test_a_sketch_does_not_depend_on_its_batch(documents: list[str], first: int) -> None:
    """Alone, in a batch, in a slice whose offsets begin later, with 32 or 64 bits: the same."""
    alone = [sketch_one(document) for document in documents]

    assert split(sketch(documents)) == alone
    for kind, width in ((pa.string(), "int32"), (pa.large_string(), "int64")):
        _, ends, values = pa.array(documents, kind).buffers()
        data = np.frombuffer(values or b"", dtype=np.uint8)
        bounds = np.frombuffer(ends, dtype=width)[first : len(documents) + 1]
        if bounds.size > 1:
            assert split(sketch_texts(data, bounds)) == alone[first:]


def test_a_large_text_after_small_ones() -> None:
    """Scratch arrays grow, and keep nothing of the text before."""
    words = [f"w{i * i % 9973}" for i in range(20_000)]
    documents = ["one two", " ".join(words), "", "one two", " ".join(words[:500])]

    sketches = sketch(documents, length=3, size=50)

    assert split(sketches) == [defined_sketch(document, 3, 1, 50, 1)[2] for document in documents]


def test_the_seed_chooses_the_sample() -> None:
    text = " ".join(map(str, range(1000)))

    assert not set(sketch_one(text, seed=1)) & set(sketch_one(text, seed=2))
    assert sketch_one(text, seed=-1) == sketch_one(text, seed=2**64 - 1)


def test_huge_settings_mean_all_and_one() -> None:
    """Neither a number beyond 64 bits nor one that fills them wraps around."""
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


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), max_size=12))
def test_the_table_is_in_order_however_it_is_filled(values: list[tuple[int, int]]) -> None:
    """Four homes and up to 32 values: long runs, which random ids never make."""
    numbers = [home << 62 | rest for home, rest in values]
    slots = np.full(4 + len(numbers) + 1, EMPTY)

    new = [bool(insert(slots, np.uint64(number >> 62), np.uint64(number))) for number in numbers]

    assert slots[slots != EMPTY].tolist() == sorted(set(numbers))
    assert sum(new) == len(set(numbers))


@given(
    values=st.lists(st.integers(0, 4).map(lambda n: (MASK - 2 + n) & MASK), max_size=8),
    size=st.integers(1, 6),
)
def test_the_greatest_and_smallest_ids_are_ids_like_others(values: list[int], size: int) -> None:
    """Fingerprints whose ids are 2**64 - 3 .. 2**64 - 1, which marks a free slot, and 0 and 1."""
    multiplier, increment = np.uint64(1), np.uint64(0)
    fingerprints = np.array([unmixed(value) for value in values], dtype=np.uint64)
    ids = np.zeros(8, dtype=np.uint64)
    slots = np.empty(slots_needed(len(values)), dtype=np.uint64)

    n_features, written = select_smallest(fingerprints, multiplier, increment, size, slots, ids)

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


@pytest.mark.parametrize(
    ("text", "n_features", "ids"),
    [
        ("", 0, []),
        (
            "Rose",
            1,
            [0x009C3CAF0DA77505],
        ),
        (
            "A rose is a rose is a rose.",
            3,
            [0x8DA94760A2CA57CC, 0x9962F0F39E69C8D7, 0xE417818D1B5C9EBE],
        ),
        (
            "The quick brown fox jumps over the lazy dog, the 2nd time.",
            8,
            [0x085F8128F79B6A5E, 0x1673453D010622A5, 0x3002F61E366747F7],
        ),
        (
            "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.",
            9,
            [0x08851D6339A6980C, 0x2D718A8F0F32BB04, 0x36556B37B1E6B847],
        ),
        (
            "天地玄黃，宇宙洪荒。",
            4,
            [0x4C12F08DC6E85D4F, 0x8FC06FC665026681, 0xD29EB6AC8D04382B],
        ),
        (
            "ΟΔΟΣ οδος หมู่บ้าน İ_1",
            4,
            [0x80DD3A05E87B83BA, 0xB3EEA07730D7A029, 0xCD9EAD441BB8955E],
        ),
    ],
)
def test_ids_never_change_unnoticed(text: str, n_features: int, ids: list[int]) -> None:
    """Stored sketches hold these ids. If this fails, raise `SKETCH_FORMAT`, then change the numbers."""
    sketches = sketch([text], size=3)

    assert SKETCH_FORMAT == 1
    assert TOKEN_TABLE_VERSION == "14.0.0"  # noqa: S105 (no password)
    assert (sketches.n_features.tolist(), sketches.ids.tolist()) == ([n_features], ids)
