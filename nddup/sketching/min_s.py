"""Sketches: small samples of a document's shingles that can be compared with each other.

Input is text as Arrow stores it: one array of UTF-8 bytes and the offsets of the documents in it. Output is
one sorted array of 64-bit ids per document, all in one array. Nothing is made per token or per shingle but
numbers.

    min-s    the s smallest ids under one random permutation (Broder's MIN_s), all of them if there are fewer.
             Size at most s. Gives resemblance.

One pass per document: its bytes are decoded, classified and hashed token by token, the shingles' fingerprints
roll over the token hashes, each is permuted and put into a table whose order is that of the ids. The sketch
is the front of it.

Two sketches compare only if made with the same `length`, `offset`, `size`, `seed` and `sketch_format.SKETCH_FORMAT`.

Sources:
    Broder 1997, On the resemblance and containment of documents, SEQUENCES '97 (MIN_s).
    Broder, Glassman, Manasse, Zweig 1997, Syntactic clustering of the Web, WWW6.
    Amble, Knuth 1974, Ordered hash tables, The Computer Journal 17(2) (the table).
"""

from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.sketching.permutations import mix_id, mix_keys
from nddup.sketching.ranges import check_at_least_one
from nddup.sketching.rolling_hash import SHINGLE_BASE, hash_tokens, most_tokens, roll
from nddup.sketching.tokens import WORD_TABLE

EMPTY: Final = np.uint64(2**64 - 1)  # a free slot; the one id of this value is remembered apart
BITS: Final = 64
ONE: Final = np.uint64(1)
NO_LIMIT: Final = 2**62  # above any number of tokens, and safe to add to one


Number = TypeVar("Number", bound=np.generic)


class Sketches(NamedTuple):
    """The sketches of d documents, one after the other.

    Attributes:
        n_tokens: shape (d,), tokens of each document.
        n_features: shape (d,), its distinct shingles, before any was left out.
        offsets: shape (d + 1,), from 0: sketch i is `ids[offsets[i]:offsets[i + 1]]`.
        ids: the sketches, each distinct and ascending as unsigned numbers.
        signatures: of a kind with n slots (`minima`), n values for each text with tokens, one after the other; else
            None.
    """

    n_tokens: NDArray[np.int32]
    n_features: NDArray[np.int32]
    offsets: NDArray[np.int64]
    ids: NDArray[np.uint64]
    signatures: NDArray[np.uint64] | None = None


@compiled
def slot_bits(n_shingles: int) -> int:
    """Give the logarithm of the number of home slots: two to four per shingle."""
    bits = 1
    while (1 << bits) < 2 * n_shingles:
        bits += 1
    return bits


@compiled
def slots_needed(n_shingles: int) -> int:
    """Count the slots of a table: its homes, as many behind as there are shingles to pile up, one free."""
    return (1 << slot_bits(n_shingles)) + n_shingles + 1


@compiled
def insert(slots: NDArray[np.uint64], home: np.uint64, value: np.uint64) -> bool:
    """Put `value` into an ordered hash table; say whether it is new.

    `home` never falls as values rise, and what meets a smaller value moves on while what meets a greater one
    takes its slot. So the table read from the front, free slots left out, is in ascending order.
    """
    i = home
    held = slots[i]
    if held == EMPTY:
        slots[i] = value
        return True
    while held < value:
        i += ONE
        held = slots[i]
    if held == value:
        return False
    while value != EMPTY:
        held = slots[i]
        slots[i] = value
        value = held
        i += ONE
    return True


@compiled
def select_smallest(
    fingerprints: NDArray[np.uint64],
    n_shingles: int,
    multiplier: np.uint64,
    increment: np.uint64,
    size: int,
    slots: NDArray[np.uint64],
    ids: NDArray[np.uint64],
) -> tuple[int, int]:
    """Permute the fingerprints and write the `size` smallest distinct ids to the front of `ids`.

    Returns:
        How many distinct ids there are, and how many were written.

    `slots` has room for `slots_needed(n_shingles)`. A table of random ids has no long runs; should there be
    one, there is room behind the last home for all of it.
    """
    bits = slot_bits(n_shingles)
    shift = np.uint64(BITS - bits)
    slots[: slots_needed(n_shingles)] = EMPTY
    n_features = 0
    has_greatest = False
    for i in range(n_shingles):
        value = mix_id(fingerprints[i], multiplier, increment)
        if value == EMPTY:
            has_greatest = True
        elif insert(slots, value >> shift, value):
            n_features += 1
    wanted = min(size, n_features)
    written = 0
    i = 0
    while written < wanted:
        if slots[i] != EMPTY:
            ids[written] = slots[i]
            written += 1
        i += 1
    if has_greatest:
        n_features += 1
        if written < size:
            ids[written] = EMPTY
            written += 1
    return n_features, written


@compiled
def sketch_batch(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    table: NDArray[np.uint32],
    length: int,
    offset: int,
    leaving: np.uint64,
    multiplier: np.uint64,
    increment: np.uint64,
    size: int,
    room: int,
    n_tokens: NDArray[np.int32],
    n_features: NDArray[np.int32],
    sketch_offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
) -> None:
    """Sketch every document into the arrays given last; see `sketch_texts`. `room` is for a text's tokens."""
    hashes = np.empty(room + 1, dtype=np.uint64)
    fingerprints = np.empty(room, dtype=np.uint64)
    slots = np.empty(0, dtype=np.uint64)
    for d in range(n_tokens.size):
        n_tokens[d] = hash_tokens(data, offsets[d], offsets[d + 1], table, hashes)
        n_shingles = roll(hashes, n_tokens[d], length, offset, leaving, fingerprints)
        if slots.size < slots_needed(n_shingles):
            slots = np.empty(slots_needed(n_shingles), dtype=np.uint64)
        begin = sketch_offsets[d]
        n_features[d], written = select_smallest(
            fingerprints, n_shingles, multiplier, increment, size, slots, ids[begin:]
        )
        sketch_offsets[d + 1] = begin + written


def read_only(array: NDArray[Number]) -> NDArray[Number]:
    """View an array as contiguous and read-only, as Arrow's buffers are: one kernel serves all callers."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def check_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int32] | NDArray[np.int64], **at_least_one: int
) -> NDArray[np.int64]:
    """The bounds of texts as int64, if they lie in `data` and the numbers are at least 1; see `sketch_texts`.

    Raises:
        ValueError: if not.
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
) -> Sketches:
    """Sketch texts by the `size` smallest of their shingles (kind `min-s`).

    Args:
        data: UTF-8, shape (b,): the values buffer of an Arrow string array. A byte that is no UTF-8 parts
            words.
        offsets: shape (d + 1,), never falling, within 0 .. b: text i is `data[offsets[i]:offsets[i + 1]]`.
            The first need not be 0. An Arrow null counts as what lies between its offsets, normally nothing.
        length: tokens per shingle, at least 1. A text with fewer tokens, but one, is one shingle of all of
            them.
        offset: tokens from the start of a shingle to that of the next, at least 1. What follows the last
            whole shingle is left out.
        size: ids per sketch, s, at least 1. The standard error of a resemblance r is sqrt(r (1 - r) / s): at
            r = 0.8 this is 0.028 for s = 200, and half that for four times the ids.
        seed: chooses the permutation; any integer, taken modulo 2**64.

    Returns:
        One sketch per text, in the order given. A text without tokens has an empty sketch and no features.

    Raises:
        ValueError: if `length`, `offset` or `size` is less than 1, or `offsets` falls or leaves `data`.

    Cost: one pass, about 4 ns a byte of English text; besides the result, scratch arrays of some 9 bytes per
        byte of the largest text. A process's first call loads or compiles the kernel.

    Example:
        >>> text = "A rose is a rose is a rose. ... Роза есть роза".encode()
        >>> data, offsets = np.frombuffer(text, dtype=np.uint8), np.array([0, 27, 32, len(text)])
        >>> sketches = sketch_texts(data, offsets, length=3)
        >>> sketches.n_tokens.tolist(), sketches.n_features.tolist(), sketches.offsets.tolist()
        ([8, 0, 3], [3, 0, 1], [0, 3, 3, 4])
    """
    bounds = check_texts(data, offsets, length=length, offset=offset, size=size)
    n_texts = max(bounds.size - 1, 0)
    most_ids = (int(bounds[-1] - bounds[0]) + n_texts) // 2 + 1 if n_texts else 0
    ids = np.empty(min(n_texts * size, most_ids), dtype=np.uint64)
    sketches = Sketches(
        n_tokens=np.zeros(n_texts, dtype=np.int32),
        n_features=np.zeros(n_texts, dtype=np.int32),
        offsets=np.zeros(n_texts + 1, dtype=np.int64),
        ids=ids,
    )
    leaving = np.uint64(pow(int(SHINGLE_BASE), length, 2**64))
    sketch_batch(
        read_only(data),
        read_only(bounds),
        WORD_TABLE,
        min(length, NO_LIMIT),
        min(offset, NO_LIMIT),
        leaving,
        *mix_keys(seed),
        min(size, NO_LIMIT),
        most_tokens(int(np.diff(bounds).max(initial=0))),
        sketches.n_tokens,
        sketches.n_features,
        sketches.offsets,
        ids,
    )
    return sketches._replace(ids=ids[: sketches.offsets[-1]].copy())
