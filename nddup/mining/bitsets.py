"""Sets of small numbers as bits of uint64 words: bit i of a set is bit i mod 64 of word i // 64.

Counts and slots are int64 and are not mixed with uint64: NumPy makes a float of the two.
"""

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled

Bits = NDArray[np.uint64]

ONE = np.uint64(1)
FULL = ~np.uint64(0)
"""A word of 64 ones."""
PAIRS, FOURS, EIGHTS, BYTES = (
    np.uint64(0x5555555555555555),
    np.uint64(0x3333333333333333),
    np.uint64(0x0F0F0F0F0F0F0F0F),
    np.uint64(0x0101010101010101),
)


@compiled
def count_bits(word: np.uint64) -> int:
    """Count the bits of one word, by pairs, fours, eights; LLVM compiles this form to one instruction."""
    word = word - ((word >> ONE) & PAIRS)
    word = (word & FOURS) + ((word >> np.uint64(2)) & FOURS)
    word = (word + (word >> np.uint64(4))) & EIGHTS
    return int(np.int64((word * BYTES) >> np.uint64(56)))


@compiled
def count_all(bits: Bits) -> int:
    """Count the bits of a set."""
    count = 0
    for i in range(bits.size):
        count += count_bits(bits[i])
    return count


@compiled
def count_common(left: Bits, right: Bits) -> int:
    """Count the bits of left ∩ right."""
    count = 0
    for i in range(left.size):
        count += count_bits(left[i] & right[i])
    return count


@compiled
def count_outside(left: Bits, right: Bits) -> int:
    """Count the bits of left minus right; 0 means that left lies inside right."""
    count = 0
    for i in range(left.size):
        count += count_bits(left[i] & ~right[i])
    return count


@compiled
def copy_bits(target: Bits, source: Bits) -> None:
    """Make target = source in a plain loop: an array expression takes ten times as long to compile."""
    for i in range(target.size):
        target[i] = source[i]


@compiled
def keep_common(target: Bits, other: Bits) -> None:
    """Make target = target ∩ other."""
    for i in range(target.size):
        target[i] &= other[i]


@compiled
def keep_outside(target: Bits, other: Bits) -> None:
    """Make target = target minus other."""
    for i in range(target.size):
        target[i] &= ~other[i]


@compiled
def has_slot(bits: Bits, slot: int) -> bool:
    """Tell whether a set holds a slot."""
    return bool((bits[slot >> 6] >> np.uint64(slot & 63)) & ONE)


@compiled
def add_slot(bits: Bits, slot: int) -> None:
    """Put a slot into a set."""
    bits[slot >> 6] |= ONE << np.uint64(slot & 63)


@compiled
def remove_slot(bits: Bits, slot: int) -> None:
    """Take a slot out of a set."""
    bits[slot >> 6] &= ~(ONE << np.uint64(slot & 63))


@compiled
def list_slots(bits: Bits, slots: NDArray[np.int64]) -> int:
    """Write the slots of a set, ascending, into `slots`, and return their number."""
    count = 0
    for i in range(bits.size):
        word = bits[i]
        while word != 0:
            # The position of the lowest set bit is the number of bits below it; then that bit is cleared.
            slots[count] = (i << 6) + count_bits(~word & (word - ONE))
            count += 1
            word &= word - ONE
    return count
