"""Repeated windows, passages and cuts are those of their definitions."""

from collections import Counter, defaultdict
from itertools import pairwise
from random import Random
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.passages.repeats import Repeats, find_anchors, find_repeats
from nddup.scanning.found import text_buffers
from nddup.sketching.rolling_hash import hash_rows
from tests.counted_rows import once

Place = tuple[int, int]
Texts = list[list[int]]

DOCUMENTS = st.lists(st.lists(st.integers(0, 2), max_size=24), max_size=6)


class Defined(NamedTuple):
    """What the definitions say: places of the passages with their tokens, tokens covered, tokens cut, second copies."""

    passages: set[tuple[int, frozenset[Place]]]
    covered: set[Place]
    cut: set[Place]
    second_copies: int


def define(texts: Texts, ranks: list[int], length: int, *, within: bool) -> Defined:
    """Find everything by the definitions, window by window, in quadratic time."""
    held: dict[tuple[int, ...], set[Place]] = defaultdict(set)
    for number, text in enumerate(texts):
        for at in range(len(text) - length + 1):
            held[tuple(text[at : at + length])].add((number, at))
    windows = [
        frozenset(places)
        for places in held.values()
        if len({number for number, _ in places}) > 1 or (within and len(places) > 1)
    ]
    after = {places: frozenset((number, at + 1) for number, at in places) for places in windows}
    followed = set(after.values())

    passages = set()
    for places in windows:
        if places not in followed:
            tokens, last = length, places
            while after[last] in after:
                tokens, last = tokens + 1, after[last]
            passages.add((tokens, places))

    covered, kept = set(), set()
    firsts = {places: min(places, key=lambda place: (ranks[place[0]], place[1])) for places in windows}
    for places in windows:
        for number, at in places:
            tokens_of = {(number, at + t) for t in range(length)}
            covered |= tokens_of
            if (number, at) == firsts[places] or (not within and number == firsts[places][0]):
                kept |= tokens_of
    cut = covered - kept
    copies = sum(
        place != firsts[places] and not any((place[0], place[1] + t) in cut for t in range(length))
        for places in windows
        for place in places
    )
    return Defined(passages, covered, cut, copies)


def ragged_of(texts: Texts) -> Ragged:
    """Return texts as rows of hashes: each token is multiplied, as hashes are spread."""
    offsets = np.cumsum([0, *map(len, texts)])
    tokens = np.array([token for text in texts for token in text], np.uint64)
    return Ragged(offsets.astype(np.int64), tokens * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1))


def say(found: Repeats) -> Defined:
    """Return what was found in the form of the definitions."""
    places: dict[int, set[Place]] = defaultdict(set)
    for passage, document, token in zip(*(column.tolist() for column in found.passages[4:]), strict=True):
        places[passage].add((document, token))
    cuts = found.cuts
    runs = zip(cuts.document.tolist(), cuts.token.tolist(), cuts.token_end.tolist(), strict=True)
    return Defined(
        once((tokens, frozenset(places[number])) for number, tokens in enumerate(found.passages.tokens.tolist())),
        {
            (document, token + t)
            for passage, document, token in zip(*(column.tolist() for column in found.passages[4:]), strict=True)
            for t in range(int(found.passages.tokens[passage]))
        },
        once((document, token) for document, low, high in runs for token in range(low, high)),
        cuts.second_copies,
    )


@given(DOCUMENTS, st.integers(1, 7), st.booleans(), st.randoms())
def test_passages_and_cuts_are_those_of_the_definitions(
    texts: Texts,
    length: int,
    within: bool,  # noqa: FBT001 - drawn
    chance: Random,
) -> None:
    """Passages, covered and cut tokens equal brute force, whatever overlaps or is repeated within a document."""
    ranks = list(range(len(texts)))
    chance.shuffle(ranks)
    found = find_repeats(ragged_of(texts), np.array(ranks, np.int64), length, within=within)
    defined = define(texts, ranks, length, within=within)

    assert say(found) == defined
    by_document = [sum(place[0] == number for place in defined.covered) for number in range(len(texts))]
    assert found.cuts.covered.tolist() == by_document
    assert found.cuts.cut.tolist() == [sum(place[0] == number for place in defined.cut) for number in range(len(texts))]
    assert len(found.passages.tokens) == len(set(found.passages.passage.tolist()))
    for number, first in enumerate(found.passages.firsts.tolist()):
        places = next(some for tokens, some in say(find_one(found, number)).passages)
        offsets = ragged_of(texts).offsets
        assert first in {int(offsets[document]) + token for document, token in places}


def find_one(found: Repeats, number: int) -> Repeats:
    """Return the repeats with one passage alone."""
    is_its = found.passages.passage == number
    one = found.passages._replace(
        tokens=found.passages.tokens[number : number + 1],
        passage=np.zeros(int(is_its.sum()), np.int32),
        document=found.passages.document[is_its],
        token=found.passages.token[is_its],
    )
    return Repeats(one, found.cuts)


@given(DOCUMENTS, st.integers(1, 7), st.booleans(), st.randoms())
def test_no_repeated_window_loses_its_last_copy(
    texts: Texts,
    length: int,
    within: bool,  # noqa: FBT001 - drawn
    chance: Random,
) -> None:
    """Every repeated window stands uncut at its first place."""
    ranks = list(range(len(texts)))
    chance.shuffle(ranks)
    found = find_repeats(ragged_of(texts), np.array(ranks, np.int64), length, within=within)
    cut = say(found).cut
    whole, left = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    for number, text in enumerate(texts):
        windows = [(at, tuple(text[at : at + length])) for at in range(len(text) - length + 1)]
        for window in {window for _, window in windows} if not within else [window for _, window in windows]:
            whole[window] += 1
        left.update(window for at, window in windows if not any((number, at + t) in cut for t in range(length)))
    assert {window for window, count in whole.items() if count > 1} <= left.keys()


@given(DOCUMENTS, st.integers(1, 9))
def test_every_window_has_one_anchor_and_equal_windows_equal_ones(texts: Texts, length: int) -> None:
    """The ranges of anchors divide all windows, and equal windows have the anchor of the same hash."""
    rows = ragged_of(texts)
    anchors = find_anchors(rows, length)
    keys: dict[tuple[int, ...], set[int]] = defaultdict(set)
    seen: list[int] = []
    for key, first, end in zip(anchors.keys.tolist(), anchors.firsts.tolist(), anchors.ends.tolist(), strict=True):
        for window in range(first, end):
            keys[tuple(rows.values[window : window + length].tolist())].add(key)
            seen.append(window)

    offsets = rows.offsets.tolist()
    every = [at for low, high in pairwise(offsets) for at in range(low, high - length + 1)]
    assert seen == every
    assert all(len(found) == 1 for found in keys.values())


def hashed(texts: list[str]) -> Ragged:
    return hash_rows(*text_buffers(texts))


def words(chance: np.random.Generator, count: int) -> list[str]:
    return [f"w{number}" for number in chance.integers(0, 50_000, count)]


def planted() -> tuple[list[str], NDArray[np.int64]]:
    """Return an original of 200 words, a copy with a word changed every 60, one moved, one nested, and another text."""
    chance = np.random.default_rng(5)
    original = words(chance, 200)
    changed = [f"changed{place}" if place % 60 == 59 else word for place, word in enumerate(original)]
    moved = [*words(chance, 80), *original[100:], *words(chance, 10)]
    nested = [*words(chance, 30), *original[40:100], *words(chance, 30)]
    texts = [" ".join(some) for some in (original, changed, moved, nested, words(chance, 300))]
    return texts, np.arange(len(texts))


def test_planted_copies_are_found() -> None:
    """Copies with one word changed every 60, moved and nested are found whole, and nothing else."""
    texts, ranks = planted()
    found = find_repeats(hashed(texts), ranks, 50)
    assert found.cuts.covered.tolist() == [200, 177, 100, 60, 0]
    assert found.cuts.cut.tolist() == [0, 177, 100, 60, 0]


def test_a_template_of_many_pages_is_one_passage() -> None:
    """A text in 10,000 documents is one passage with 10,000 occurrences, of which one stays."""
    chance = np.random.default_rng(1)
    template = " ".join(words(chance, 60))
    texts = [f"{template} page {number}" for number in range(10_000)]
    found = find_repeats(hashed(texts), np.arange(len(texts)), 50)
    assert found.passages.tokens.tolist() == [61]
    assert found.passages.places.tolist() == [10_000]
    assert int((found.cuts.cut > 0).sum()) == 9_999


def test_constant_text_is_bounded() -> None:
    """One word 100,000 times in two documents is one window, and the second document may be cut whole."""
    texts = ["a " * 100_000, "a " * 90_000]
    found = find_repeats(hashed(texts), np.arange(2), 50)
    assert found.passages.tokens.tolist() == [50]
    assert found.cuts.cut.tolist() == [0, 90_000]
