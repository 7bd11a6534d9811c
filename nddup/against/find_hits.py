"""Find where the shingles of the items occur in texts: every document of A passes through here.

find_hits       known shingles, compared token by token
find_possible   shingles that a filter lets pass
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.against.shingle_table import ALL_BITS, Known, filter_shift, find_number, has_key, may_have
from nddup.against.spans import count_characters, fold_tokens, locate_tokens
from nddup.ground.arrays import number_keys
from nddup.ground.kernels import Written, compiled
from nddup.sketching.folding import folded_words
from nddup.sketching.rolling_hash import hash_tokens, most_tokens, roll, shingling
from nddup.sketching.tokens import word_table

ALL = np.uint64(ALL_BITS)


class Hits(NamedTuple):
    """The h places in n texts at which a known shingle begins; those of text i are `offsets[i]` to `offsets[i + 1]`.

    Attributes:
        offsets: (n + 1,) int64.
        tokens: (h,) int32, the token at which the shingle begins, ascending within a text.
        numbers: (h,) int32, the number of the shingle; empty after a search by a filter alone.
        keys: (h,) uint64, the fingerprint of the shingle after a search by a filter alone; else empty.
        begins: (h,) int32, the first character of the shingle in the text.
        ends: (h,) int32, the character after its last.
        n_shingles: (n,) int32, the distinct shingles, by fingerprint, of each text that has a hit; else 0.
    """

    offsets: NDArray[np.int64]
    tokens: NDArray[np.int32]
    numbers: NDArray[np.int32]
    keys: NDArray[np.uint64]
    begins: NDArray[np.int32]
    ends: NDArray[np.int32]
    n_shingles: NDArray[np.int32]


def find_hits(data: NDArray[np.uint8], bounds: NDArray[np.int64], known: Known, *, counts: bool = False) -> Hits:
    """Find every known shingle in texts.

    Args:
        data: the texts as UTF-8, (b,).
        bounds: (n + 1,), where each text begins and ends.
        counts: whether to count the distinct shingles of texts that have a hit.

    Returns:
        The hits, each compared with the known shingle token by token. The counts of distinct shingles rely on
        64-bit fingerprints.

    Cost: linear, some 340 MB/s where few shingles are known; a text with a hit is read twice.
    """
    rule = shingling(known.length, 1)
    offsets, tokens, numbers, begins, ends, n_shingles = _find(
        data,
        bounds,
        word_table(known.ignored),
        known,
        rule.length,
        rule.leaving,
        _largest(bounds),
        counts,
    )
    return Hits(offsets, tokens, numbers, np.empty(0, np.uint64), begins, ends, n_shingles)


def find_possible(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    words: NDArray[np.uint64],
    length: int,
    *,
    counts: bool = False,
    ignore: tuple[str, ...] = (),
) -> Hits:
    """Find every shingle of texts whose fingerprint a filter lets pass.

    Args:
        data: the texts as UTF-8, (b,).
        bounds: (n + 1,), where each text begins and ends.
        words: the filter, from `shingle_table.make_filter`.
        length: tokens of a shingle.
        counts: whether to count the distinct shingles of texts that have a hit.
        ignore: names of `respelling.IGNORED`, what tokens leave out.

    Returns:
        The hits with their fingerprints: all known shingles, and a few others.
    """
    rule = shingling(length, 1)
    offsets, tokens, keys, begins, ends, n_shingles = _list_possible(
        data, bounds, word_table(ignore), words, rule.length, rule.leaving,
        _largest(bounds), counts,
    )  # fmt: skip
    return Hits(offsets, tokens, np.empty(0, np.int32), keys, begins, ends, n_shingles)


def _largest(bounds: NDArray[np.int64]) -> int:
    """Return the room needed for the tokens of the longest text."""
    return most_tokens(int(np.diff(bounds).max(initial=0))) + 1


@compiled
def _find(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    table: NDArray[np.uint32],
    known: Known,
    length: int,
    leaving: np.uint64,
    largest: int,
    counts: bool,  # noqa: FBT001 - a kernel takes no keywords
) -> tuple[
    NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]
]:
    n = len(bounds) - 1
    hashes, fingerprints = np.empty(largest, np.uint64), np.empty(largest, np.uint64)
    starts, ends = np.empty(largest, np.int32), np.empty(largest, np.int32)
    possible = np.empty(largest, np.int32)
    folded, heads = np.empty(8 * folded_words(2 * largest), np.uint8), np.empty(largest, np.uint32)

    # Pages that no hit reaches are never touched, so the room for a hit at every token costs nothing.
    room = most_tokens(len(data)) + n + 1
    hit_tokens, hit_numbers = np.empty(room, np.int32), np.empty(room, np.int32)
    hit_begins, hit_ends = np.empty(room, np.int32), np.empty(room, np.int32)
    offsets, n_distinct = np.zeros(n + 1, np.int64), np.zeros(n, np.int32)

    # Local names: a field of a tuple would have its references counted at every use.
    words, slots, keys, places = known.words, known.slots, known.keys, known.places
    known_folded, known_heads = known.folded, known.heads
    mask, shift = known.rule[1], filter_shift(words)
    total = 0
    for i in range(n):
        offsets[i + 1] = total
        n_tokens = hash_tokens(data, bounds[i], bounds[i + 1], table, hashes)
        if n_tokens < length:
            continue
        n_shingles = roll(hashes, n_tokens, length, 1, leaving, fingerprints)
        n_possible = _pass_filter(fingerprints, n_shingles, mask, words, shift, possible)
        first = 0
        while first < n_possible and not has_key(fingerprints[possible[first]] & mask, slots, keys):
            first += 1
        if first == n_possible:
            continue

        # A fingerprint is known, so it pays to locate the tokens.
        locate_tokens(data, bounds[i], bounds[i + 1], table, starts, ends)
        fold_tokens(data, bounds[i], bounds[i + 1], table, folded, heads)
        before, before_token = -1, -1
        for p in range(first, n_possible):
            s = int(possible[p])
            if before_token != s - 1:
                before = -1
            number, _ = find_number(
                fingerprints[s] & mask, slots, keys, places, known_folded, known_heads, folded, heads, s, length,
                before,
            )  # fmt: skip
            before = -1
            if number >= 0:
                hit_tokens[total], hit_numbers[total] = s, number
                before, before_token = int(places[number]), s
                total += 1
        if total == offsets[i + 1]:
            continue
        _write_characters(data, bounds[i], starts, ends, length, hit_tokens[offsets[i + 1] : total],
                          hit_begins[offsets[i + 1] : total], hit_ends[offsets[i + 1] : total])  # fmt: skip
        offsets[i + 1] = total
        if counts:
            n_distinct[i] = number_keys(fingerprints[:n_shingles])[1]
    return (
        offsets, hit_tokens[:total].copy(), hit_numbers[:total].copy(), hit_begins[:total].copy(),
        hit_ends[:total].copy(), n_distinct,
    )  # fmt: skip


@compiled
def _list_possible(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    table: NDArray[np.uint32],
    words: NDArray[np.uint64],
    length: int,
    leaving: np.uint64,
    largest: int,
    counts: bool,  # noqa: FBT001 - a kernel takes no keywords
) -> tuple[
    NDArray[np.int64], NDArray[np.int32], NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]
]:
    n = len(bounds) - 1
    hashes, fingerprints = np.empty(largest, np.uint64), np.empty(largest, np.uint64)
    starts, ends = np.empty(largest, np.int32), np.empty(largest, np.int32)
    possible = np.empty(largest, np.int32)
    room = most_tokens(len(data)) + n + 1
    hit_tokens, hit_keys = np.empty(room, np.int32), np.empty(room, np.uint64)
    hit_begins, hit_ends = np.empty(room, np.int32), np.empty(room, np.int32)
    offsets, n_distinct = np.zeros(n + 1, np.int64), np.zeros(n, np.int32)
    shift = filter_shift(words)
    total = 0
    for i in range(n):
        n_tokens = hash_tokens(data, bounds[i], bounds[i + 1], table, hashes)
        n_possible = 0
        if n_tokens >= length:
            n_shingles = roll(hashes, n_tokens, length, 1, leaving, fingerprints)
            n_possible = _pass_filter(fingerprints, n_shingles, ALL, words, shift, possible)
        offsets[i + 1] = total + n_possible
        if n_possible == 0:
            continue

        locate_tokens(data, bounds[i], bounds[i + 1], table, starts, ends)
        for p in range(n_possible):
            hit_tokens[total + p], hit_keys[total + p] = possible[p], fingerprints[possible[p]]
        stop = total + n_possible
        _write_characters(data, bounds[i], starts, ends, length, hit_tokens[total:stop], hit_begins[total:stop],
                          hit_ends[total:stop])  # fmt: skip
        total = stop
        if counts:
            n_distinct[i] = number_keys(fingerprints[:n_shingles])[1]
    return (
        offsets, hit_tokens[:total].copy(), hit_keys[:total].copy(), hit_begins[:total].copy(),
        hit_ends[:total].copy(), n_distinct,
    )  # fmt: skip


@compiled
def _pass_filter(
    fingerprints: NDArray[np.uint64],
    n_shingles: int,
    mask: np.uint64,
    words: NDArray[np.uint64],
    shift: np.uint64,
    possible: Written[np.int32],
) -> int:
    """Write the places of the shingles that the filter lets pass, ascending; return how many."""
    count = 0
    for s in range(n_shingles):
        if may_have(fingerprints[s] & mask, words, shift):  # 1 in 200 foreign ones passes: the branch is predictable
            possible[count] = s
            count += 1
    return count


@compiled
def _write_characters(
    data: NDArray[np.uint8],
    start: int,
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    length: int,
    tokens: NDArray[np.int32],
    begins: Written[np.int32],
    finishes: Written[np.int32],
) -> None:
    """Write the characters at which the shingles of a text begin and end; both ascend, so each takes one pass."""
    byte, characters = start, 0
    end_byte, end_characters = start, 0
    for h in range(len(tokens)):
        begin, end = int(starts[tokens[h]]), int(ends[tokens[h] + length - 1])
        characters += count_characters(data, byte, begin)
        end_characters += count_characters(data, end_byte, end)
        byte, end_byte = begin, end
        begins[h], finishes[h] = characters, end_characters
