"""The distinct shingles of the items, as a table in memory that the other collection streams past.

    make_known                         texts of the items, length  -> Known: keys, places, normalised texts
    open_known                         a folder                    -> the same, mapped, for all workers of a machine
    find_number, has_key               a fingerprint               -> its shingle; whether any shingle has it
    make_filter, add_keys, may_have    keys                        -> a Bloom filter, before a look-up in the table

A shingle is `length` consecutive tokens of one item; a text of fewer tokens has none. All are taken, none is sampled.
Two shingles are the same if their tokens are equal: a 64-bit fingerprint finds candidates in the table, and the
normalised tokens are compared, so no result relies on the fingerprint.
"""

from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.against.spans import fold_tokens, locate_tokens, same_tokens
from nddup.errors import CapacityError
from nddup.ground.array_files import map_array, write_array
from nddup.ground.arrays import HASH_MULTIPLIER
from nddup.ground.kernels import Written, compiled
from nddup.sketching.folding import folded_words
from nddup.sketching.respelling import IGNORED
from nddup.sketching.rolling_hash import hash_tokens, roll, shingling
from nddup.sketching.tokens import word_table

BITS_OF_KEY: Final = 16

MOST_FILTER_BYTES: Final = 1 << 25
"""Maximum number of bytes of a filter, 32 MB: beyond 16 million keys each has fewer bits, and more foreign keys pass.
"""

_WORD: Final = 64
_BELOW: Final = np.uint64(12)  # the bits in a word are chosen by lower bits of the product than the word itself
_SIX: Final = np.uint64(6)
_PLACE: Final = np.uint64(63)
_ONE: Final = np.uint64(1)

ALL_BITS: Final = (1 << 64) - 1
"""Mask for the whole fingerprint; tests use fewer bits, so that different shingles have equal fingerprints."""

MOST_BYTES: Final = (1 << 31) - 1
"""Maximum number of bytes of all items together: places are 32-bit numbers."""


def make_filter(keys: NDArray[np.uint64], *, most_bytes: int = MOST_FILTER_BYTES) -> NDArray[np.uint64]:
    """Make the filter of n keys: (w,) uint64, w a power of two, at least 2 and at most `most_bytes / 8`.

    All bits of one key are in one word: a look-up reads 64 bits, so it waits for memory once. With 16 bits per key, 0.6
    % of the foreign keys pass.

    Sources:
        Bloom 1970, Space/time trade-offs in hash coding with allowable errors, CACM 13.
        Putze, Sanders, Singler 2007, Cache-, hash- and space-efficient Bloom filters, WEA.

    Example:
        >>> words = make_filter(np.array([5, 7], np.uint64))
        >>> [may_have(np.uint64(key), words, filter_shift(words)) for key in (5, 6, 7)]
        [True, False, True]
    """
    words = empty_filter(len(keys), most_bytes=most_bytes)
    add_keys(keys, words)
    return words


def empty_filter(n_keys: int, *, most_bytes: int = MOST_FILTER_BYTES) -> NDArray[np.uint64]:
    """Make an empty filter, which lets no key pass, with room for `n_keys`."""
    wanted = max(2, n_keys * BITS_OF_KEY // _WORD)
    return np.zeros(min(1 << (wanted - 1).bit_length(), most_bytes // 8), np.uint64)


@compiled
def add_keys(keys: NDArray[np.uint64], words: Written[np.uint64]) -> None:
    """Add keys to a filter, in place."""
    shift = filter_shift(words)
    for key in keys:
        product = key * HASH_MULTIPLIER
        words[product >> shift] |= _bits_of(product)


@compiled
def may_have(key: np.uint64, words: NDArray[np.uint64], shift: np.uint64) -> bool:
    """Return whether a key passes; `shift` is `filter_shift(words)`."""
    product = key * HASH_MULTIPLIER
    bits = _bits_of(product)
    return bool(words[product >> shift] & bits == bits)


@compiled
def filter_shift(words: NDArray[np.uint64]) -> np.uint64:
    """Return 64 minus the number of bits that choose a word."""
    shift = 64
    while (1 << (64 - shift)) < len(words):
        shift -= 1
    return np.uint64(shift)


@compiled
def _bits_of(product: np.uint64) -> np.uint64:
    """Return a word with the three bits of a key set; two of them may be the same."""
    low = product >> _BELOW
    first, second, third = low & _PLACE, (low >> _SIX) & _PLACE, (low >> _SIX >> _SIX) & _PLACE
    return np.uint64(_ONE << first | _ONE << second | _ONE << third)


class Known(NamedTuple):
    """The shingles of n items that have t tokens and d distinct shingles.

    Memory: per distinct shingle 8 bytes of fingerprint, 4 of place, and 8 to 16 of slots; per token 16; and the texts,
    as they are and normalised.

    Attributes:
        data: (b,), the texts as UTF-8, one after another.
        bounds: (n + 1,), where each text begins and ends.
        starts: (t,), the first byte of each token.
        ends: (t,), the byte after each token.
        folded: the tokens, normalised, as UTF-8 with a zero byte after each.
        heads: (t,), the first byte of each token in `folded`.
        firsts: (n + 1,), the first token of each item.
        numbers: (t,), the number of the shingle that begins at each token; -1 where none does.
        keys: (d,), the fingerprint of each shingle, by its number.
        places: (d,), a token at which each shingle begins.
        slots: hash table of numbers with open addressing, at most half full; -1 where free.
        words: the filter of the keys (`make_filter`).
        rule: (3,), uint64: the length of a shingle, the mask of the fingerprint bits that count, and what tokens leave
            out: a bit for each name of `respelling.IGNORED`.
    """

    data: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    folded: NDArray[np.uint8]
    heads: NDArray[np.uint32]
    firsts: NDArray[np.int64]
    numbers: NDArray[np.int32]
    keys: NDArray[np.uint64]
    places: NDArray[np.int32]
    slots: NDArray[np.int32]
    words: NDArray[np.uint64]
    rule: NDArray[np.uint64]

    @property
    def length(self) -> int:
        """Tokens of a shingle."""
        return int(self.rule[0])

    @property
    def ignored(self) -> tuple[str, ...]:
        """What tokens leave out."""
        return tuple(name for bit, name in enumerate(IGNORED) if int(self.rule[2]) >> bit & 1)

    def save(self, folder: Path) -> None:
        """Write the arrays into a folder that exists; `open_known` maps them."""
        for name, array in self._asdict().items():
            write_array(folder / name, array)


@lru_cache(maxsize=2)
def open_known(folder: str) -> Known:
    """Map the arrays that `Known.save` wrote, read-only, so that all workers of a machine share them."""
    return Known(*(map_array(Path(folder) / name) for name in Known._fields))


def make_known(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    length: int,
    *,
    mask: int = ALL_BITS,
    ignore: tuple[str, ...] = (),
) -> Known:
    """Make the table of the shingles of some texts.

    Args:
        data: the texts as UTF-8, (b,).
        bounds: (n + 1,), where each text begins and ends.
        length: tokens of a shingle, at least 1.
        mask: the bits of a fingerprint that count; it changes the cost, not which shingles are the same.
        ignore: names of `respelling.IGNORED`, what tokens leave out.

    Returns:
        The table; without shingles if all texts are short, or there are none.

    Raises:
        CapacityError: for more than `MOST_BYTES` of text.

    Cost: linear, some 20 MB of text per second.
    """
    if len(data) > MOST_BYTES:
        raise CapacityError(f"B has {len(data) / 1e9:.1f} GB of text; `against` takes at most 2 GB: give B in parts")
    room = (len(data) + len(bounds)) // 2 + len(bounds) + 2
    starts, ends = np.empty(room, np.int32), np.empty(room, np.int32)
    hashes, firsts = np.empty(room, np.uint64), np.zeros(len(bounds), np.int64)
    folded, heads = np.empty(8 * folded_words(len(data)) + len(bounds), np.uint8), np.empty(room, np.uint32)
    n_tokens, n_folded = _locate(data, bounds, word_table(ignore), starts, ends, folded, heads, hashes, firsts)
    starts, ends, heads = starts[:n_tokens].copy(), ends[:n_tokens].copy(), heads[:n_tokens].copy()
    folded = folded[:n_folded].copy()

    slot_bits = max(4, int(2 * n_tokens).bit_length())
    slots = np.full(1 << slot_bits, -1, np.int32)
    numbers, keys, places = np.full(n_tokens, -1, np.int32), np.empty(n_tokens, np.uint64), np.empty(n_tokens, np.int32)
    rule = shingling(length, 1)
    fingerprints = np.empty(np.diff(firsts).max(initial=0) + 1, np.uint64)
    count = _number(
        folded, heads, firsts, hashes, length, rule.leaving, np.uint64(mask), slots, keys, places, numbers,
        fingerprints,
    )  # fmt: skip

    keys = keys[:count].copy()
    bits = sum(1 << bit for bit, name in enumerate(IGNORED) if name in ignore)
    rules = np.array([length, mask, bits], np.uint64)
    return Known(
        data, bounds, starts, ends, folded, heads, firsts, numbers, keys, places[:count].copy(), slots,
        make_filter(keys), rules,
    )  # fmt: skip


@compiled
def find_number(
    key: np.uint64,
    slots: NDArray[np.int32],
    keys: NDArray[np.uint64],
    places: NDArray[np.int32],
    known_folded: NDArray[np.uint8],
    known_heads: NDArray[np.uint32],
    folded: NDArray[np.uint8],
    heads: NDArray[np.uint32],
    first: int,
    length: int,
    before: int,
) -> tuple[int, int]:
    """Return the number of the shingle that begins at token `first` of a text, -1 if unknown, and the last slot tried.

    `before` is the known place of the shingle one token earlier, -1 if there is none: if a known shingle follows at the
    next place, only its last token is compared, because the others are already known to be equal.
    """
    mask = len(slots) - 1
    slot = _first_slot(key, slots)
    while slots[slot] >= 0:
        number = slots[slot]
        if keys[number] == key:
            place = int(places[number])
            skip = length - 1 if before >= 0 and place == before + 1 else 0
            if same_tokens(folded, heads, first + skip, known_folded, known_heads, place + skip, length - skip):
                return int(number), slot
        slot = (slot + 1) & mask
    return -1, slot


@compiled
def has_key(key: np.uint64, slots: NDArray[np.int32], keys: NDArray[np.uint64]) -> bool:
    """Return whether any known shingle has this fingerprint; the shingle itself may differ."""
    slot = _first_slot(key, slots)
    while slots[slot] >= 0:
        if keys[slots[slot]] == key:
            return True
        slot = (slot + 1) & (len(slots) - 1)
    return False


@compiled
def _first_slot(key: np.uint64, slots: NDArray[np.int32]) -> int:
    """Return the slot at which the search for a fingerprint begins."""
    return np.int64((key * HASH_MULTIPLIER) >> np.uint64(64 - _log2(len(slots))))  # type: ignore[return-value]


@compiled
def _log2(size: int) -> int:
    power = 0
    while (1 << power) < size:
        power += 1
    return power


@compiled
def _locate(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    table: NDArray[np.uint32],
    starts: Written[np.int32],
    ends: Written[np.int32],
    folded: Written[np.uint8],
    heads: Written[np.uint32],
    hashes: Written[np.uint64],
    firsts: Written[np.int64],
) -> tuple[int, int]:
    """Write the tokens of all texts, and their hashes; return their number and the folded bytes."""
    total, written = 0, 0
    for i in range(len(bounds) - 1):
        n_tokens = locate_tokens(data, bounds[i], bounds[i + 1], table, starts[total:], ends[total:])
        size = fold_tokens(data, bounds[i], bounds[i + 1], table, folded[written:], heads[total:])
        for t in range(total, total + n_tokens):
            heads[t] += written
        written += size
        hash_tokens(data, bounds[i], bounds[i + 1], table, hashes[total:])
        total += n_tokens
        firsts[i + 1] = total
    return total, written


@compiled
def _number(
    folded: NDArray[np.uint8],
    heads: NDArray[np.uint32],
    firsts: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    length: int,
    leaving: np.uint64,
    mask: np.uint64,
    slots: Written[np.int32],
    keys: Written[np.uint64],
    places: Written[np.int32],
    numbers: Written[np.int32],
    fingerprints: Written[np.uint64],
) -> int:
    """Number the distinct shingles in the order in which they first appear; return their number."""
    count = 0
    for i in range(len(firsts) - 1):
        first, n_tokens = firsts[i], firsts[i + 1] - firsts[i]
        if n_tokens < length:
            continue
        n_shingles = roll(hashes[first:], n_tokens, length, 1, leaving, fingerprints)
        before = -1
        for s in range(n_shingles):
            key = fingerprints[s] & mask
            number, slot = find_number(
                key, slots, keys, places, folded, heads, folded, heads, first + s, length, before
            )
            if number < 0:
                number = count
                slots[slot], keys[count], places[count] = count, key, first + s
                count += 1
            numbers[first + s] = number
            before = int(places[number])
    return count
