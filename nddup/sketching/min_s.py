"""Min-s sketches: the s smallest shingle ids of a document under one random permutation (Broder's MIN_s).

    sketch_texts      texts         -> Sketches: at most s ascending ids per text, or all if there are fewer
    cut_sketches      Sketches      -> the same with fewer ids
    select_smallest   fingerprints  -> the `size` smallest distinct ids, permuted
    sort_distinct     values        -> the distinct ones, ascending

Texts are as Arrow stores them: one array of UTF-8 bytes, and the offsets of the documents in it. No Python object is
made per token or shingle. Two sketches can be compared only if `length`, `offset`, `size`, `seed` and
`tokens.SKETCH_FORMAT` are the same; they estimate resemblance.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import gather
from nddup.ground.kernels import Written, compiled
from nddup.sketching.accuracy import check_at_least_one
from nddup.sketching.permutations import MixKeys, mix_id, mix_keys
from nddup.sketching.rolling_hash import (
    NO_LIMIT,
    Shingling,
    hash_characters,
    hash_tokens,
    most_characters,
    most_tokens,
    roll,
    shingling,
)
from nddup.sketching.tokens import word_table

BITS: Final = 64
BIT: Final = np.uint32(1)
NONE, ONE = np.uint64(0), np.uint64(1)
MOST_ROUNDS: Final = 12
"""Rounds that sort nearly all texts: a thousand shingles take five."""


class Sketches(NamedTuple):
    """The sketches of d documents, one after the other.

    Attributes:
        n_tokens: shape (d,), tokens of each document.
        n_features: shape (d,), its distinct shingles, before any was left out.
        offsets: shape (d + 1,), from 0: sketch i is `ids[offsets[i]:offsets[i + 1]]`.
        ids: the sketches, each distinct and ascending as unsigned numbers.
        signatures: of a kind with n slots (`minhash`), n values for each text with tokens, one after the other; else
            None.
    """

    n_tokens: Written[np.int32]
    n_features: Written[np.int32]
    offsets: Written[np.int64]
    ids: Written[np.uint64]
    signatures: NDArray[np.uint64] | None = None


def cut_sketches(whole: Sketches, size: int) -> Sketches:
    """Return sketches that keep the `size` smallest ids of each.

    Example:
        >>> whole = Sketches(*np.zeros((2, 2), np.int32), np.array([0, 3, 4]), np.array([1, 5, 7, 2], np.uint64))
        >>> cut_sketches(whole, 2).ids.tolist()
        [1, 5, 2]
    """
    kept = np.minimum(np.diff(whole.offsets), size)
    offsets = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return whole._replace(offsets=offsets, ids=gather(whole.offsets, whole.ids, np.arange(kept.size), offsets))


class _Rule(NamedTuple):
    """The settings that decide the sketch of a text: shingles, permutation, number of ids kept, and kind of token."""

    shingles: Shingling
    keys: MixKeys
    size: int
    characters: bool


@compiled
def _bucket_bits(n_shingles: int) -> int:
    """Return the binary logarithm of the number of buckets: one to two per shingle."""
    bits = 1
    while (1 << bits) < n_shingles:
        bits += 1
    return bits


@compiled
def scratch_needed(n_shingles: int) -> int:
    """Return the words of scratch that `select_smallest` needs: the ids twice, and half a word for each bucket."""
    return 2 * n_shingles + (1 << _bucket_bits(n_shingles)) // 2


@compiled
def select_smallest(
    fingerprints: NDArray[np.uint64],
    multiplier: np.uint64,
    increment: np.uint64,
    size: int,
    scratch: Written[np.uint64],
    ids: Written[np.uint64],
) -> tuple[int, int]:
    """Permute the fingerprints and write the `size` smallest distinct ids to the front of `ids`.

    Args:
        fingerprints: (n,), any order, repeated ones allowed.
        multiplier: of the permutation, from `mix_keys`.
        increment: likewise.
        size: s.
        scratch: at least `scratch_needed(n)`.
        ids: written.

    Returns:
        How many distinct ids there are, and how many were written.
    """
    n_shingles = fingerprints.size
    bits = _bucket_bits(n_shingles)
    shift = np.uint64(BITS - bits)
    values, ordered = scratch[:n_shingles], scratch[n_shingles : 2 * n_shingles]
    places = scratch[2 * n_shingles :].view(np.uint32)[: 1 << bits]

    # Sort by the highest bits: count the ids of each bucket, turn the counts into places, and put each id in its place.
    for i in range(n_shingles):
        values[i] = mix_id(fingerprints[i], multiplier, increment)
    places[:] = 0
    for value in values:
        places[value >> shift] += BIT
    total = np.uint32(0)
    for bucket in range(places.size):
        count = places[bucket]
        places[bucket] = total
        total = np.uint32(total + count)
    for value in values:
        place = places[value >> shift]
        ordered[np.uint64(place)] = value
        places[value >> shift] = np.uint32(place + BIT)

    n_features = sort_distinct(ordered)
    written = min(size, n_features)
    ids[:written] = ordered[:written]
    return n_features, written


@compiled
def sort_distinct(values: Written[np.uint64]) -> int:
    """Sort values that are nearly in order, bring the distinct ones to the front, and return their number.

    Few random ids share a bucket, so a few rounds in which neighbours change places sort them, without a branch that
    depends on them. After MOST_ROUNDS each value is inserted where it belongs, and dropped if it is there: whatever a
    bucket was filled with, it takes no more than the square of its distinct values.
    """
    moved, rounds = ONE, 0
    while moved and rounds < MOST_ROUNDS:
        moved = _swap_neighbours(values, 0) + _swap_neighbours(values, 1)
        rounds += 1

    size = np.uint64(values.size)
    end = min(size, ONE)
    for i in range(end, size):
        value = values[i]
        at = end
        while moved and at and values[at - ONE] > value:
            at -= ONE
        if at and values[at - ONE] == value:
            continue
        for k in range(end - at):
            values[end - k] = values[end - k - ONE]
        values[at] = value
        end += ONE
    return np.int64(end)  # type: ignore[return-value]


@compiled
def _swap_neighbours(values: Written[np.uint64], first: int) -> np.uint64:
    """Order each two neighbours, from place `first` on; return how many pairs were not in order."""
    moved = NONE
    for pair in range((values.size - first) // 2):
        place = np.uint64(first + 2 * pair)
        before, after = values[place], values[place + ONE]
        values[place], values[place + ONE] = min(before, after), max(before, after)
        moved += ONE if before > after else NONE
    return moved


@compiled
def _sketch_batch(
    data: NDArray[np.uint8], bounds: NDArray[np.int64], table: NDArray[np.uint32], rule: _Rule, sketches: Sketches
) -> None:
    """Sketch every text into the arrays of `sketches`; see `sketch_texts`."""
    longest = 0
    for d in range(bounds.size - 1):
        longest = max(longest, bounds[d + 1] - bounds[d])
    room = most_characters(longest) if rule.characters else most_tokens(longest)
    hashes = np.empty(room + 1, dtype=np.uint64)
    fingerprints = np.empty(room, dtype=np.uint64)
    scratch = np.empty(0, dtype=np.uint64)
    shingles, keys = rule.shingles, rule.keys

    for d in range(bounds.size - 1):
        if rule.characters:
            n_tokens = hash_characters(data, bounds[d], bounds[d + 1], table, hashes)
        else:
            n_tokens = hash_tokens(data, bounds[d], bounds[d + 1], table, hashes)
        n_shingles = roll(hashes, n_tokens, shingles.length, shingles.offset, shingles.leaving, fingerprints)
        if scratch.size < scratch_needed(n_shingles):
            scratch = np.empty(scratch_needed(n_shingles), dtype=np.uint64)

        begin = sketches.offsets[d]
        n_features, written = select_smallest(
            fingerprints[:n_shingles], keys.multiplier, keys.increment, rule.size, scratch, sketches.ids[begin:]
        )
        sketches.n_tokens[d], sketches.n_features[d] = n_tokens, n_features
        sketches.offsets[d + 1] = begin + written


def check_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int32] | NDArray[np.int64], **at_least_one: int
) -> NDArray[np.int64]:
    """Check texts and settings, as described in `sketch_texts`; return the offsets as int64.

    Raises:
        ValueError: if a setting is less than 1, or the offsets fall or lie outside `data`.
    """
    check_at_least_one(**at_least_one)
    bounds = np.ascontiguousarray(offsets, dtype=np.int64)
    if bounds.size > 1 and (bounds[0] < 0 or bounds[-1] > data.size or np.any(bounds[1:] < bounds[:-1])):
        raise ValueError(f"offsets must rise from 0 at least to {data.size} at most, the bytes of data")
    return bounds


def sketch_texts(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int32] | NDArray[np.int64],
    *,
    length: int = 5,
    offset: int = 1,
    size: int = 200,
    seed: int = 1,
    characters: bool = False,
    ignore: tuple[str, ...] = (),
) -> Sketches:
    """Make the min-s sketches of texts.

    Each document takes one pass. Its bytes are decoded, classified and hashed token by token; the fingerprints of the
    shingles roll over the token hashes; each fingerprint is permuted, and sorted by its highest bits and then among the
    few that share them. The sketch is the front of the distinct ones.

    Args:
        data: UTF-8, shape (b,): the values buffer of an Arrow string array. A byte that is not part of well-formed
            UTF-8 separates words.
        offsets: shape (d + 1,), never falling, within 0 .. b: text i is `data[offsets[i]:offsets[i + 1]]`. The first
            need not be 0. An Arrow null is the text between its offsets, normally empty.
        length: tokens per shingle, at least 1. A text with fewer tokens, but at least one, is one shingle of all of
            them.
        offset: tokens from the start of a shingle to that of the next, at least 1. Tokens after the last whole shingle
            are left out.
        size: ids per sketch, s, at least 1. The standard error of a resemblance r is sqrt(r (1 - r) / s): at r = 0.8
            it is 0.028 for s = 200, and half of that for four times the ids.
        seed: chooses the permutation; any integer, taken modulo 2**64.
        characters: whether the tokens are characters, as `rolling_hash.hash_characters` says, instead of words.
        ignore: names of `respelling.IGNORED`, what tokens leave out.

    Returns:
        One sketch per text, in the order given. A text without tokens has an empty sketch and no features.

    Raises:
        ValueError: if `length`, `offset` or `size` is less than 1, or `offsets` falls or leaves `data`.

    Cost: one pass, about 4 ns per byte of English text. Besides the result, scratch arrays of some 9 bytes per byte of
        the largest text. The first call of a process loads or compiles the kernel.

    Example:
        >>> text = "A rose is a rose is a rose. ... Роза есть роза".encode()
        >>> data, offsets = np.frombuffer(text, dtype=np.uint8), np.array([0, 27, 32, len(text)])
        >>> sketches = sketch_texts(data, offsets, length=3)
        >>> sketches.n_tokens.tolist(), sketches.n_features.tolist(), sketches.offsets.tolist()
        ([8, 0, 3], [3, 0, 1], [0, 3, 3, 4])

    Sources:
        Broder 1997, On the resemblance and containment of documents, SEQUENCES '97 (MIN_s).
        Broder, Glassman, Manasse, Zweig 1997, Syntactic clustering of the Web, WWW6.
    """
    bounds = check_texts(data, offsets, length=length, offset=offset, size=size)
    n_texts = max(bounds.size - 1, 0)
    most_ids = int(bounds[-1] - bounds[0]) + n_texts + 1 if n_texts else 0
    sketches = Sketches(
        n_tokens=np.zeros(n_texts, dtype=np.int32),
        n_features=np.zeros(n_texts, dtype=np.int32),
        offsets=np.zeros(n_texts + 1, dtype=np.int64),
        ids=np.empty(min(n_texts * size, most_ids), dtype=np.uint64),
    )

    rule = _Rule(shingling(length, offset), mix_keys(seed), min(size, NO_LIMIT), characters)
    _sketch_batch(data, bounds, word_table(ignore), rule, sketches)
    return sketches._replace(ids=sketches.ids[: sketches.offsets[-1]].copy())
