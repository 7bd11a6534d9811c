"""Bitmaps of sets: what two sets have in common, or a bound on it, read from a few words of each.

    make_bitmaps      n sets -> Bitmaps
    most_common       two of them -> at most how many members both have
    pack, count_packed    n sets -> Packed; two of them -> how many members both have
    add_parities, count_different     the same of one bitmap and of two, of any number of words

A member flips the bit of its bucket. Sets of l and r members that have c in common differ in at most l + r - 2 c
buckets, so c is at most half of l + r less the buckets in which they differ.

Source: Sandes, Teodoro, Melo 2017, Bitmap filter: speeding up exact set similarity joins with bitwise operations.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import HASH_MULTIPLIER
from nddup.ground.kernels import Written, compiled

WORDS = 4
"""64-bit words of a bitmap in one memory. With 2, as in what Spark sends, a tenth more pairs of 100 members pass."""

SHIFT = np.uint64(32)
M1, M2, M4 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
M8 = np.uint64(0x0101010101010101)


class Bitmaps(NamedTuple):
    """The bitmaps of n sets."""

    sizes: NDArray[np.int32]
    """Members of each, (n,)."""

    words: NDArray[np.uint64]
    """The parity of the number of members in each of 64 `WORDS` buckets, (n, WORDS)."""


MOST_BITS = 1024
"""Members that have a bit in a packed set: those of one sketch with its variants, or of some families."""


class Packed(NamedTuple):
    """n sets of numbered members, the commonest of which have the highest numbers."""

    words: NDArray[np.uint64]
    """A bit for each of the commonest members, at most `MOST_BITS`: (n, w)."""

    offsets: NDArray[np.int64]
    """Where the other members of each begin, (n + 1,)."""

    others: NDArray[np.int32]
    """These, ascending in each."""


NOTHING_PACKED = Packed(np.empty((0, 1), np.uint64), np.zeros(1, np.int64), np.empty(0, np.int32))
"""Where sets are not packed."""


@compiled
def scatter(value: np.uint64) -> np.uint64:
    """Hash one number, one to one: two rounds of multiplying and folding."""
    value = value * HASH_MULTIPLIER
    value = (value ^ (value >> SHIFT)) * HASH_MULTIPLIER
    return value ^ (value >> SHIFT)


@compiled
def add_parities(bitmap: Written[np.uint64], values: NDArray[np.integer]) -> None:
    """Flip the bit of each value's bucket in a bitmap whose number of words is a power of two."""
    mask = np.uint64(64 * len(bitmap) - 1)
    for value in values:
        bucket = scatter(np.uint64(value) ^ np.uint64(0x5555)) & mask
        bitmap[bucket >> np.uint64(6)] ^= np.uint64(1) << (bucket & np.uint64(63))


@compiled
def make_bitmaps(offsets: NDArray[np.int64], values: NDArray[np.integer]) -> Bitmaps:
    """Make the bitmaps of the rows of `values`, distinct in each: rows `offsets[i]` to `offsets[i + 1]`."""
    sizes, words = np.empty(len(offsets) - 1, np.int32), np.zeros((len(offsets) - 1, WORDS), np.uint64)
    for row in range(len(sizes)):
        sizes[row] = offsets[row + 1] - offsets[row]
        add_parities(words[row], values[offsets[row] : offsets[row + 1]])
    return Bitmaps(sizes, words)


@compiled
def count_bits(bits: np.uint64) -> int:
    """Count the bits of a word, adding them up in pairs, fours and eights."""
    bits -= (bits >> np.uint64(1)) & M1
    bits = (bits & M2) + ((bits >> np.uint64(2)) & M2)
    bits = (bits + (bits >> np.uint64(4))) & M4
    return int((bits * M8) >> np.uint64(56))


@compiled
def count_different(bitmaps: NDArray[np.uint64], a: int, b: int) -> int:
    """Count the bits in which two bitmaps, rows of (n, words), differ."""
    count = 0
    for word in range(bitmaps.shape[1]):
        count += count_bits(bitmaps[a, word] ^ bitmaps[b, word])
    return count


@compiled
def most_common(bitmaps: Bitmaps, a: int, b: int) -> int:
    """Return at most how many members two sets have in common."""
    return int((bitmaps.sizes[a] + bitmaps.sizes[b] - count_different(bitmaps.words, a, b)) // 2)


@compiled
def pack(
    offsets: NDArray[np.int64], members: NDArray[np.int32], order: NDArray[np.int64], first: int, end: int
) -> Packed:
    """Pack sets in this order.

    Args:
        offsets: where each begins in `members`, (n + 1,).
        members: ascending in each.
        order: (n,), the sets.
        first: the first member that is a bit.
        end: one more than the last.
    """
    words, starts = np.zeros((len(order), (end - first + 63) // 64), np.uint64), np.zeros(len(order) + 1, np.int64)
    others = np.empty(len(members), np.int32)
    count = 0
    for row in range(len(order)):
        for member in members[offsets[order[row]] : offsets[order[row] + 1]]:
            if member < first:
                others[count] = member
                count += 1
            else:
                bit = np.uint64(member - first)
                words[row, bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
        starts[row + 1] = count
    return Packed(words, starts, others[:count].copy())


@compiled
def count_packed(packed: Packed, a: int, b: int) -> int:
    """Count the members that two sets have in common. Cost: the words, and a merge of the other members."""
    count = 0
    for word in range(packed.words.shape[1]):
        count += count_bits(packed.words[a, word] & packed.words[b, word])
    i, i_end, j, j_end = packed.offsets[a], packed.offsets[a + 1], packed.offsets[b], packed.offsets[b + 1]
    while i < i_end and j < j_end:
        x, y = packed.others[i], packed.others[j]
        count += x == y
        i += x <= y
        j += y <= x
    return count
