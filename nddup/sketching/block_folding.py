# ruff: noqa: PLR2004 (the numbers are those of UTF-8)
"""Normalising many bytes at once, by steps that do not depend on the text: ASCII, Russian letters, Latin-1.

    is_ascii, fold_ascii    BLOCK bytes of ASCII
    fold_blocks             blocks of ASCII, Russian letters and Latin-1

No setting of `tokens.ignore` changes what any of these characters becomes.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled

BEYOND_ASCII: Final = 0x80

BLOCK: Final = 32
"""Bytes normalised at once."""

ONE: Final = np.uint64(1)
LONG: Final = np.uint64(BLOCK)
ZERO, BIT, UP_10, UP_20, DOWN_20 = (np.uint8(n) for n in (0, 1, 0x10, 0x20, 0xE0))


@compiled
def is_ascii(data: NDArray[np.uint8], source: np.uint64) -> bool:
    """Return whether a block is ASCII alone."""
    seen = ZERO
    for k in range(BLOCK):
        seen |= data[source + np.uint64(k)]
    return seen < BEYOND_ASCII  # type: ignore[return-value]


@compiled
def fold_ascii(data: NDArray[np.uint8], source: np.uint64, folded: Written[np.uint8], target: np.uint64) -> None:
    """Normalise a block of ASCII without a branch that depends on the text; a separator becomes 0."""
    for k in range(BLOCK):
        c = data[source + np.uint64(k)]
        is_upper = (c >= 0x41) & (c <= 0x5A)
        is_word = ((c >= 0x61) & (c <= 0x7A)) | ((c >= 0x30) & (c <= 0x39)) | (c == 0x5F) | is_upper
        folded[target + np.uint64(k)] = (c | (0x20 if is_upper else 0)) if is_word else 0


@compiled
def fold_blocks(
    data: NDArray[np.uint8], source: np.uint64, end: np.uint64, folded: Written[np.uint8], target: np.uint64
) -> np.uint64:
    """Normalise whole blocks of ASCII, Russian letters and Latin-1; return the bytes read, and written.

    As in `fold_ascii`, no step depends on the text within a block, so a processor takes many bytes at once: in UTF-8
    these characters take one or two bytes, and become letters of as many, or zero bytes.

        C2    signs before U+00B2, ¶ · » are separators; the others, ª and the soft hyphen end the blocks
        C3    À to Þ become the letter 20 after them; × ß ÷ end the blocks
        D0    Ѐ to Џ and Р to Я become letters whose first byte is D1, А to П do not
        D1    р to џ are small; what follows them ends the blocks

    Args:
        data: UTF-8, (b,).
        source: the first byte of a character; at least one byte is before it.
        end: the byte after the text; at least one byte of it is left.
        folded: written.
        target: where.
    """
    first = source
    while source + LONG < end:
        if is_ascii(data, source):
            fold_ascii(data, source, folded, target)
            source += LONG
            target += LONG
            continue

        fault = ZERO
        for k in range(BLOCK):
            c, p = data[source + np.uint64(k)], data[source + np.uint64(k) - ONE]
            is_second = BIT if (c >= 0x80) & (c < 0xC0) else ZERO
            is_wanted = BIT if (p == 0xD0) | (p == 0xD1) | (p == 0xC3) | (p == 0xC2) else ZERO
            is_sign = (c < 0xB2) | (c == 0xB6) | (c == 0xB7) | (c == 0xBB)
            of_c2 = (p == 0xC2) & ((c == 0xAA) | (c == 0xAD) | (not is_sign))
            of_c3 = (p == 0xC3) & ((c == 0x97) | (c == 0x9F) | (c == 0xB7))
            other = (c >= 0xC0) & (c != 0xD0) & (c != 0xD1) & (c != 0xC3) & (c != 0xC2)
            is_other = BIT if of_c2 | of_c3 | ((p == 0xD1) & (c >= 0xA0)) | other else ZERO
            fault = np.uint8(fault | is_second ^ is_wanted | is_other)
        if fault:
            break

        for k in range(BLOCK):
            at = source + np.uint64(k)
            c, p, n = data[at], data[at - ONE], data[at + ONE]
            is_upper = (c >= 0x41) & (c <= 0x5A)
            is_word = ((c >= 0x61) & (c <= 0x7A)) | ((c >= 0x30) & (c <= 0x39)) | (c == 0x5F) | is_upper
            plain = np.uint8(c | (0x20 if is_upper else 0)) if is_word else ZERO
            russian = UP_10 if c < 0x90 else UP_20 if c < 0xA0 else DOWN_20 if c < 0xB0 else ZERO
            shift = russian if p == 0xD0 else UP_20 if (p == 0xC3) & (c < 0x9F) else ZERO
            lead = BIT if (c == 0xD0) & ((n < 0x90) | ((n >= 0xA0) & (n < 0xB0))) else ZERO
            long = ZERO if (p == 0xC2) | (c == 0xC2) else np.uint8(np.uint8(c + shift) + lead)
            folded[target + np.uint64(k)] = plain if c < 0x80 else long

        # The next block begins with the last character if only its first byte was in this one.
        step = LONG - ONE if data[source + LONG - ONE] >= 0xC0 else LONG
        source += step
        target += step
    return source - first
