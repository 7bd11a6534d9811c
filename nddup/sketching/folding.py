# ruff: noqa: PLR2004 (the numbers are those of UTF-8)
"""Normalising as the kernels do it: UTF-8 text -> its tokens, normalised, each followed by zero bytes.

    fold_text    the whole text, by the rules of `tokens`

Most characters become another one whatever stands around them: those are written at once. A mark that may compose, a
vowel of Hangul, a character that becomes several: for these the last written character is taken back, and normalised
together with all marks that follow (`_fold_cluster`). Long runs of ASCII, Russian and Latin-1 are those of
`block_folding`.

The kernels are called by `rolling_hash`, which hashes the tokens, and by `against`, which compares them.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled
from nddup.sketching.block_folding import BEYOND_ASCII, BLOCK, LONG, ONE, fold_ascii, fold_blocks, is_ascii
from nddup.sketching.tokens import (
    ABOVE,
    ALONE,
    CLASS,
    CLASS_SHIFT,
    CODE,
    COMPOSED,
    DOT_ABOVE,
    DROPPED,
    FACTS,
    IOTA,
    IOTA_BELOW,
    IS_FIRST,
    JOIN_BITS,
    JOIN_SHIFT,
    JOINING,
    JOINS,
    LEAD,
    LEADS,
    LETTER_I,
    MARK,
    NUMBERS,
    OF_ALONE,
    OF_MARK,
    ORDER,
    SECONDS,
    SPELLINGS,
    SPELT,
    SYLLABLE,
    TAIL,
    TAILS,
    VOWEL,
    VOWELS,
)

# What was written last.
GAP, IN_WORD, STANDING = 0, 1, 2

PADDING: Final = 16
"""Zero bytes after the last token, so that eight bytes can be read at each of its bytes."""

FEW: Final = 32
"""More marks than this on one letter are ordered by counting: an insertion sort would take quadratic time."""

MOST_PLAIN: Final = 2
"""ASCII characters in a row that are normalised one by one among others: blanks and stops between words."""

NONE, TWO, THREE, SIX, TWELVE = (np.uint64(n) for n in (0, 2, 3, 6, 12))
MOST_PATIENCE: Final = 32 * BLOCK
"""Bytes until the next block is tried after a long text in another script."""
PARTS: Final = 64
"""First room for the characters of a cluster."""


@compiled
def signed(value: np.unsignedinteger) -> int:
    """Return a value as a signed number: numba makes floats of arithmetic that mixes unsigned and signed numbers."""
    return np.int64(value)  # type: ignore[return-value]


@compiled
def byte_at(data: NDArray[np.uint8], i: int) -> int:
    """Read one byte as a signed number."""
    return np.int64(data[i])  # type: ignore[return-value]


@compiled
def decode(data: NDArray[np.uint8], i: int, end: int) -> tuple[int, int]:  # noqa: PLR0911 (one per length and fault)
    """Decode the character of two to four bytes at `i`: its code point and its length.

    If no well-formed character that ends before `end` begins at `i`, the result is (0, 1): U+0000, a separator.
    """
    lead = byte_at(data, i)
    if lead < 0xC2 or lead > 0xF4 or i + 1 >= end:  # not the first byte of a character, or the last byte of the text
        return 0, 1
    second = byte_at(data, i + 1)
    if second & 0xC0 != 0x80:
        return 0, 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | (second & 0x3F), 2

    # Three bytes; below U+0800 they would be an overlong form.
    if i + 2 >= end or byte_at(data, i + 2) & 0xC0 != 0x80:
        return 0, 1
    code = (lead & 0x0F) << 12 | (second & 0x3F) << 6 | (byte_at(data, i + 2) & 0x3F)
    if lead < 0xF0:
        return (code, 3) if code >= 0x800 else (0, 1)

    # Four bytes; the lead has three bits of the code point.
    if i + 3 >= end or byte_at(data, i + 3) & 0xC0 != 0x80:
        return 0, 1
    code = (code & 0x7FFF) << 6 | (byte_at(data, i + 3) & 0x3F)
    return (code, 4) if 0x10000 <= code < 0x110000 else (0, 1)


@compiled
def decode_any(data: NDArray[np.uint8], i: int, end: int) -> tuple[int, int]:
    """Decode the character at `i`, of any length."""
    code = byte_at(data, i)
    if code < BEYOND_ASCII:
        return code, 1
    return decode(data, i, end)


@compiled
def encode(code: int, folded: Written[np.uint8], at: int) -> int:
    """Write a character as UTF-8; return the place after it."""
    if code < 0x80:
        folded[at] = code
        return at + 1
    if code < 0x800:
        folded[at] = 0xC0 | code >> 6
        folded[at + 1] = 0x80 | code & 0x3F
        return at + 2
    if code < 0x10000:
        folded[at] = 0xE0 | code >> 12
        folded[at + 1] = 0x80 | code >> 6 & 0x3F
        folded[at + 2] = 0x80 | code & 0x3F
        return at + 3
    folded[at] = 0xF0 | code >> 18
    folded[at + 1] = 0x80 | code >> 12 & 0x3F
    folded[at + 2] = 0x80 | code >> 6 & 0x3F
    folded[at + 3] = 0x80 | code & 0x3F
    return at + 4


@compiled
def folded_words(n_bytes: int) -> int:
    """Return the 64-bit words that the folded form of `n_bytes` bytes needs; eight may be read from any of its bytes.

    No character becomes more than twice its bytes, with the zero bytes around it: `क़`, 3 bytes, becomes 6.
    """
    return (2 * n_bytes + PADDING) // 8 + 9


@compiled
def _last_written(folded: NDArray[np.uint8], at: int) -> int:
    """Return the character before `at`, which has one or two bytes; 0 for a zero byte."""
    last = byte_at(folded, at - 1)
    return last if last < BEYOND_ASCII else (byte_at(folded, at - 2) & 0x1F) << 6 | last & 0x3F


@compiled
def fold_text(  # noqa: C901, PLR0912, PLR0915 - one pass over the bytes: a call for each character would cost more
    data: NDArray[np.uint8],
    start: int,
    end: int,
    table: NDArray[np.uint32],
    apart: bool,  # noqa: FBT001 - a kernel takes no keywords
    folded: Written[np.uint8],
) -> int:
    """Normalise the UTF-8 text `data[start:end]`; return the bytes written.

    Args:
        data: UTF-8, (b,).
        start: first byte of the text.
        end: the byte after the text.
        table: of `tokens.word_table`.
        apart: whether characters of spaceless scripts stand alone; else they are like letters of a word.
        folded: written: the tokens as UTF-8, zero bytes between them, `PADDING` zero bytes at the end; needs room for
            `8 * folded_words(end - start)`.
    """
    parts = np.empty(PARTS, np.uint32)
    at, last = 0, GAP
    before, rank_before = 0, 0  # the last character written, and its combining class
    i = start
    by_blocks, patience = start + 1, BLOCK  # where a block may be tried: not first, and not again and again in vain
    while i < end:
        code = byte_at(data, i)
        if code < BEYOND_ASCII:
            folded[at] = 0
            source, target, stop = np.uint64(i), np.uint64(at + 1 if last == STANDING else at), np.uint64(end)
            while source + LONG < stop and is_ascii(data, source):
                fold_ascii(data, source, folded, target)
                source += LONG
                target += LONG
            while source < stop and data[source] < BEYOND_ASCII:
                folded[target] = table[data[source]]
                source += ONE
                target += ONE
            i, at = signed(source), signed(target)
            before, rank_before = byte_at(folded, at - 1), 0
            last = IN_WORD if before else GAP
            continue

        if code < 0xE0 and last != STANDING:
            if i >= by_blocks and (code == 0xC3 or code == 0xD0 or code == 0xD1):  # noqa: PLR1714 - as machine code
                taken = signed(fold_blocks(data, np.uint64(i), np.uint64(end), folded, np.uint64(at)))
                patience = BLOCK if taken else min(2 * patience, MOST_PATIENCE)
                by_blocks = i + taken + patience
                if taken:
                    i, at = i + taken, at + taken
                    before, rank_before = _last_written(folded, at), 0
                    last = IN_WORD if before else GAP
                    continue

            # A run of letters of two bytes that stay so.
            source, target, stop = np.uint64(i), np.uint64(at), np.uint64(end)
            letter = NONE
            while source + ONE < stop:
                lead, second = data[source], data[source + ONE]
                if (lead < 0xC2) | (lead >= 0xE0) | (second & 0xC0 != 0x80):
                    break
                entry = table[np.uint64(lead & 0x1F) << SIX | np.uint64(second & 0x3F)]
                if (entry < 0x80) | (entry >= 0x800):
                    break
                letter = np.uint64(entry)
                folded[target] = 0xC0 | entry >> 6
                folded[target + ONE] = 0x80 | entry & 0x3F
                source += TWO
                target += TWO
            if letter:
                i, at = signed(source), signed(target)
                before, rank_before, last = signed(letter), 0, IN_WORD
                continue

        # A run of characters that stay of as many bytes, with marks that nothing changes, and a little ASCII between.
        source, target, stop = np.uint64(i), np.uint64(at), np.uint64(end)
        letter, plain = NONE, 0
        while source + TWO < stop:
            lead, second = data[source], data[source + ONE]
            if lead < BEYOND_ASCII:
                if plain == MOST_PLAIN:
                    break
                plain += 1
                folded[target] = 0
                target += ONE if last == STANDING else NONE
                value = table[lead]
                folded[target] = value
                source += ONE
                target += ONE
                letter, last = np.uint64(value), IN_WORD if value else GAP
                continue

            plain = 0
            if lead < 0xE0:
                value = table[np.uint64(lead & 0x1F) << SIX | np.uint64(second & 0x3F)]
                if (lead < 0xC2) | (second & 0xC0 != 0x80) | (value < 0x80) | (value >= 0x800):
                    break
                folded[target] = 0
                target += ONE if last == STANDING else NONE
                folded[target] = 0xC0 | value >> 6
                folded[target + ONE] = 0x80 | value & 0x3F
                source += TWO
                target += TWO
                letter, last = np.uint64(value), IN_WORD
                continue

            third = data[source + TWO]
            if (lead >= 0xF0) | (second & 0xC0 != 0x80) | (third & 0xC0 != 0x80):
                break
            place = np.uint64(lead & 0x0F) << TWELVE | np.uint64(second & 0x3F) << SIX | np.uint64(third & 0x3F)
            entry = table[place]
            value = entry & CODE
            if apart and ALONE + 0x800 <= entry < ALONE + 0x10000:
                folded[target] = 0
                target += ONE if last != GAP else NONE
                folded[target] = 0xE0 | value >> 12
                folded[target + ONE] = 0x80 | value >> 6 & 0x3F
                folded[target + TWO] = 0x80 | value & 0x3F
                source += THREE
                target += THREE
                letter, last = np.uint64(value), STANDING
                continue
            if (place < 0x800) | (value < 0x800) | (value >= 0x10000) | (entry >= DROPPED):
                if entry or place < 0x800:
                    break
                folded[target] = 0
                source += THREE
                target += ONE
                letter, last = NONE, GAP
                continue
            if entry >= MARK:
                if last == GAP or table[FACTS + value] & ORDER:
                    break
            else:
                folded[target] = 0
                target += ONE if last == STANDING else NONE
                last = IN_WORD
            folded[target] = 0xE0 | value >> 12
            folded[target + ONE] = 0x80 | value >> 6 & 0x3F
            folded[target + TWO] = 0x80 | value & 0x3F
            source += THREE
            target += THREE
            letter = np.uint64(value)
        if source > np.uint64(i):
            i, at = signed(source), signed(target)
            before, rank_before = signed(letter), 0
            continue

        code, width = decode(data, i, end)
        entry = signed(table[code])
        value = entry & CODE
        if entry == 0:
            if last != GAP:
                folded[at] = 0
                at += 1
            last = GAP
        elif entry < MARK:
            stands = entry >= ALONE and apart
            if last == STANDING or (stands and last != GAP):
                folded[at] = 0
                at += 1
            at = encode(value, folded, at)
            before, rank_before, last = value, 0, STANDING if stands else IN_WORD
        elif entry >= SPELT or (entry >= JOINING and last == GAP):
            i, at, last = _fold_cluster(data, i, end, table, apart, folded, at, last, parts)
            before, rank_before = DOT_ABOVE, ABOVE  # unknown: what comes next is no mark
            continue
        elif (entry < DROPPED or entry >= JOINING) and last != GAP:
            rank = signed(table[FACTS + value] & ORDER)
            whole = -1 if 0 < rank < rank_before else 0  # -1: it belongs before the mark that was written last
            if entry >= JOINING and whole == 0 and (rank or not rank_before):
                fact = signed(table[FACTS + before])
                if fact & IS_FIRST or (rank and fact >> JOIN_SHIFT) or rank_before or value == IOTA_BELOW:
                    whole = _compose_two(table, before, rank_before, value, rank)
            if whole < 0:
                i, at, last = _fold_cluster(data, i, end, table, apart, folded, at, last, parts)
                before, rank_before = DOT_ABOVE, ABOVE
                continue
            if whole:
                at -= 1
                while byte_at(folded, at) & 0xC0 == 0x80:
                    at -= 1
                at = encode(whole, folded, at)
                before = whole
            else:
                if last == STANDING and signed(table[FACTS + value]) >> CLASS_SHIFT & CLASS != OF_MARK:
                    folded[at] = 0
                    at += 1
                    last = IN_WORD
                at = encode(value, folded, at)
                before, rank_before = value, rank
        i += width

    for pad in range(PADDING):
        folded[at + pad] = 0
    if table[NUMBERS]:
        _hide_numbers(folded, at)
    return at


@compiled
def _hide_numbers(folded: Written[np.uint8], size: int) -> None:
    """Make each run of digits alone between zero bytes a single 0; its other bytes become zero bytes."""
    begin = 0
    while begin < size:
        end, is_number = begin, True
        while folded[end]:  # zero bytes follow the text
            is_number &= 0x30 <= folded[end] <= 0x39
            end += 1
        if is_number and end > begin:
            folded[begin] = 0x30
            folded[begin + 1 : end] = 0
        begin = end + 1


@compiled
def _compose_two(table: NDArray[np.uint32], before: int, rank_before: int, code: int, rank: int) -> int:
    """Return the composition of a mark with the character written last; 0 if there is none, -1 if it is hard to tell.

    Args:
        table: `tokens.WORD_TABLE`.
        before: the character written last.
        rank_before: its combining class.
        code: the mark, or a vowel of Hangul.
        rank: its combining class.
    """
    join = signed(table[FACTS + before]) >> JOIN_SHIFT
    if rank_before or code == IOTA_BELOW or (code == DOT_ABOVE and (join or before == LETTER_I)):
        return -1
    if join and rank and rank < signed(table[FACTS + signed(table[SECONDS + join - 1])] & ORDER):
        return -1  # it belongs before a mark of the composition
    return _joined(table, before, code)


@compiled
def _fold_cluster(  # noqa: C901, PLR0912 - one pass over a few characters
    data: NDArray[np.uint8],
    i: int,
    end: int,
    table: NDArray[np.uint32],
    apart: bool,  # noqa: FBT001 - a kernel takes no keywords
    folded: Written[np.uint8],
    at: int,
    last: int,
    parts: Written[np.uint32],
) -> tuple[int, int, int]:
    """Normalise the character at `i`, and all marks after it, together with what they may compose with.

    Returns:
        The first byte that was not read, the bytes written, and what was written last.
    """
    n = 0
    is_joined = last != GAP
    if is_joined:
        # Take back the last character of combining class 0 and the marks after it.
        begin = at
        rank = 1
        while rank:
            begin -= 1
            while byte_at(folded, begin) & 0xC0 == 0x80:
                begin -= 1
            rank = signed(table[FACTS + decode_any(folded, begin, at)[0]] & ORDER)
        back = begin
        while back < at:
            code, width = decode_any(folded, back, at)
            parts, n = _add_parts(table, code, parts, n)
            back += width
        at = begin

    while i < end:
        code, width = decode_any(data, i, end)
        entry = signed(table[code])
        if entry < MARK:  # the next character that no mark changes
            break
        i += width
        if entry >= SPELT:
            spelling = SPELLINGS + (entry & CODE)
            for place in range(signed(table[spelling])):
                parts, n = _add_parts(table, signed(table[spelling + 1 + place]), parts, n)
        elif entry >= JOINING or entry < DROPPED:
            parts, n = _add_parts(table, entry & CODE, parts, n)

    _order_marks(table, parts, n)
    n = _compose(table, parts, _fold_marks(table, parts, n))
    for place in range(n):
        code = signed(parts[place])
        kind = signed(table[FACTS + code]) >> CLASS_SHIFT & CLASS
        if kind == OF_MARK:
            at = encode(code, folded, at) if last != GAP else at
            continue
        if place or not is_joined:
            if last == STANDING or (kind == OF_ALONE and apart and last != GAP):
                folded[at] = 0
                at += 1
            last = STANDING if kind == OF_ALONE and apart else IN_WORD
        at = encode(code, folded, at)
    return i, at, last


@compiled
def _add_parts(
    table: NDArray[np.uint32], code: int, parts: Written[np.uint32], n: int
) -> tuple[NDArray[np.uint32], int]:
    """Add the decomposition of a folded character to the `n` parts; return the array, a larger one if it was full."""
    length = 1
    first = code
    join = signed(table[FACTS + first]) >> JOIN_SHIFT
    while join:
        first = signed(table[JOINS + join - 1])
        join = signed(table[FACTS + first]) >> JOIN_SHIFT
        length += 1
    if n + length > parts.size:
        wider = np.empty(2 * (n + length), np.uint32)
        wider[:n] = parts[:n]
        parts = wider

    for place in range(n + length - 1, n, -1):
        join = signed(table[FACTS + code]) >> JOIN_SHIFT
        parts[place] = table[SECONDS + join - 1]
        code = signed(table[JOINS + join - 1])
    parts[n] = code
    return parts, n + length


@compiled
def _order_marks(table: NDArray[np.uint32], parts: Written[np.uint32], n: int) -> None:
    first = 0
    while first < n:
        if table[FACTS + signed(parts[first])] & ORDER == 0:
            first += 1
            continue
        stop = first + 1
        while stop < n and table[FACTS + signed(parts[stop])] & ORDER:
            stop += 1
        if stop - first > FEW:
            _order_many(table, parts[first:stop])
        else:
            for place in range(first + 1, stop):
                code = parts[place]
                rank = table[FACTS + signed(code)] & ORDER
                to = place
                while to > first and table[FACTS + signed(parts[to - 1])] & ORDER > rank:
                    parts[to] = parts[to - 1]
                    to -= 1
                parts[to] = code
        first = stop


@compiled
def _order_many(table: NDArray[np.uint32], marks: Written[np.uint32]) -> None:
    """Sort marks by combining class, equal classes as they were: by counting."""
    places = np.zeros(ORDER + 2, np.int64)
    for code in marks:
        places[(signed(table[FACTS + signed(code)]) & ORDER) + 1] += 1
    for rank in range(ORDER):
        places[rank + 1] += places[rank]
    for code in marks.copy():
        rank = signed(table[FACTS + signed(code)]) & ORDER
        marks[places[rank]] = code
        places[rank] += 1


@compiled
def _fold_marks(table: NDArray[np.uint32], parts: Written[np.uint32], n: int) -> int:
    """Drop the dot above every i, and make the iota below a letter; return how many parts are left."""
    left = 0
    is_i = False  # the last letter is an i, and no other mark is above it
    for place in range(n):
        code = signed(parts[place])
        if code == DOT_ABOVE and is_i:
            continue
        rank = signed(table[FACTS + code]) & ORDER
        is_i = code == LETTER_I or (is_i and rank != 0 and rank != ABOVE)  # noqa: PLR1714 - as machine code
        parts[left] = IOTA if code == IOTA_BELOW else code
        left += 1
    return left


@compiled
def _compose(table: NDArray[np.uint32], parts: Written[np.uint32], n: int) -> int:
    """Compose each letter with the marks that no other mark keeps from it; return how many parts are left."""
    left = 0
    starter, before = -1, 0  # the last part of class 0, and the class of the last part
    for place in range(n):
        code = signed(parts[place])
        rank = signed(table[FACTS + code]) & ORDER
        if starter >= 0 and (starter == left - 1 or 0 < before < rank):
            whole = _joined(table, signed(parts[starter]), code)
            if whole:
                parts[starter] = whole
                continue
        if rank == 0:
            starter = left
        parts[left] = code
        before = rank
        left += 1
    return left


@compiled
def _joined(table: NDArray[np.uint32], first: int, second: int) -> int:
    """Return the composition of two characters, 0 if there is none."""
    if LEAD <= first < LEAD + LEADS and VOWEL <= second < VOWEL + VOWELS:
        return SYLLABLE + ((first - LEAD) * VOWELS + second - VOWEL) * TAILS
    if TAIL < second < TAIL + TAILS and SYLLABLE <= first < SYLLABLE + LEADS * VOWELS * TAILS:
        return first + second - TAIL if (first - SYLLABLE) % TAILS == 0 else 0

    # The first join that is not less, by halving.
    low = 0
    for bit in range(JOIN_BITS - 1, -1, -1):
        middle = low + (1 << bit) - 1
        here = signed(table[JOINS + middle])
        if here < first or (here == first and signed(table[SECONDS + middle]) < second):
            low = middle + 1
    if low < 1 << JOIN_BITS and signed(table[JOINS + low]) == first and signed(table[SECONDS + low]) == second:
        return signed(table[COMPOSED + low])
    return 0
