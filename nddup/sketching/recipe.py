"""Recipes: everything that decides which ids a text gets, and the sketches that a recipe makes.

    text --tokens--> words or characters --fingerprints--> rolling or Rabin's --permutation--> ids --kind--> sketch

    Recipe          the rule; `Recipe.key` writes it down with the format (`tokens.SKETCH_FORMAT`)
    make_sketches   texts, Recipe           -> a sketch per text
    digest_texts    texts                   -> two ids per text that only equal texts share
    spread_levels   V_i sketches            -> each sketch at its own level and at each coarser one
    rabin_tables, roll_rabin, draw_polynomial    Rabin's fingerprints of shingles

Two sketches can be compared only if their keys are equal: the same recipe, made under the same format.
"""

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import Ragged
from nddup.ground.kernels import Written, compiled
from nddup.sketching.min_s import (
    Sketches,
    check_texts,
    scratch_needed,
    select_smallest,
    sketch_texts,
)
from nddup.sketching.minhash import Slots, draw_slots, find_minima, tag_slots
from nddup.sketching.permutations import (
    GOLDEN,
    Tables,
    affine,
    draw_words,
    gf2,
    gf2_id,
    linear_tables,
    mix,
    mix_id,
    mix_keys,
)
from nddup.sketching.rolling_hash import (
    hash_characters,
    hash_tokens,
    most_characters,
    most_tokens,
    roll,
    shingling,
)
from nddup.sketching.tokens import FULL_FORMAT, SKETCH_FORMAT, word_table
from nddup.sketching.word_sketches import WordRule

LEVEL_BITS: Final = 6
"""Bits of a level, which is below 64. A name packs the node, the level of its sketch, and the level compared at."""

ONE: Final = np.uint64(1)

TOKEN_BITS: Final = 64

IDS: Final = 2
"""Ids of a text that has a token."""

PERMUTATIONS: Final = {"mix": mix, "gf2": gf2, "affine": affine}

LEAST_BITS, MOST_BITS = 16, 63


def spread_levels(
    nodes: NDArray[np.int64], levels: NDArray[np.int64], sketches: Ragged, most: int
) -> tuple[NDArray[np.int64], Ragged]:
    """Reduce each sketch to its own level and to each coarser one, up to `most`; leave out empty results.

    V_i(D) is the sketch of the ids divisible by 2**i; those divisible by 2**(i+1) are the document's next coarser
    sketch. Two documents are compared at the coarser of their two moduli, at which both are sampled at one rate (Broder
    1997; Broder, Glassman, Manasse, Zweig 1997, Syntactic clustering of the Web).

    Args:
        nodes: (n,), numbers below 2**51.
        levels: (n,), the exponent i of each sketch.
        sketches: n rows of ascending ids divisible by 2**i.
        most: the coarsest level, below 64.

    Returns:
        Names, (m,), `node << 12 | own << 6 | level`, where `own` is the level of the sketch; and the ids of each row,
        ascending, permuted by the level, so that rows of different levels have no ids in common.

    Cost: linear in the ids times the levels of their sketch, and a sort of each row.

    Example:
        >>> names, rows = spread_levels(np.array([5]), np.array([1]), Ragged(np.array([0, 3]), np.array([2, 4, 8])), 3)
        >>> [(name >> 12, name >> 6 & 63, name & 63) for name in names.tolist()], rows.offsets.tolist()
        ([(5, 1, 1), (5, 1, 2), (5, 1, 3)], [0, 3, 5, 6])
    """
    names, offsets, values = _spread(nodes, levels, sketches.offsets, sketches.values.astype(np.uint64), most)
    return names, Ragged(offsets, values)


@compiled
def _spread(
    nodes: NDArray[np.int64],
    levels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    ids: NDArray[np.uint64],
    most: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    # Count rows and ids first, so that the arrays are allocated once.
    rows = np.int64(0)
    total = np.int64(0)
    for i in range(nodes.size):
        rows += max(most - levels[i], 0) + 1
        for at in range(offsets[i], offsets[i + 1]):
            level = levels[i]
            while level <= most and ids[at] & ((ONE << np.uint64(level)) - ONE) == 0:
                total += 1
                level += 1
    names, starts, values = np.empty(rows, np.int64), np.zeros(rows + 1, np.int64), np.empty(total, np.uint64)

    row = end = 0
    for i in range(nodes.size):
        for level in range(levels[i], most + 1):
            mask = (ONE << np.uint64(level)) - ONE
            for at in range(offsets[i], offsets[i + 1]):
                if ids[at] & mask == 0:
                    values[end] = mix_id(ids[at], ONE, GOLDEN * np.uint64(level + 1))
                    end += 1

            # An empty row leaves its place to the next one.
            if end > starts[row]:
                values[starts[row] : end] = np.sort(values[starts[row] : end])
                names[row] = nodes[i] << 2 * LEVEL_BITS | levels[i] << LEVEL_BITS | level
                row += 1
                starts[row] = end
    return names[:row].copy(), starts[: row + 1].copy(), values[:end].copy()


def remainder(number: int, modulus: int) -> int:
    """Return the remainder of the division of one polynomial by another.

    Example:
        >>> remainder(0b1101, 0b11), remainder(0b101, 0b11)  # 1 + x**2 = (1 + x)**2
        (1, 0)
    """
    degree = modulus.bit_length()
    while number.bit_length() >= degree:
        number ^= modulus << (number.bit_length() - degree)
    return number


def product(first: int, second: int, modulus: int) -> int:
    """Multiply two polynomials modulo a third."""
    total = 0
    while second:
        if second & 1:
            total ^= first
        first, second = remainder(first << 1, modulus), second >> 1
    return remainder(total, modulus)


def power_of_x(exponent: int, modulus: int) -> int:
    """Return x**exponent modulo a polynomial."""
    result, base = 1, remainder(2, modulus)
    while exponent:
        if exponent & 1:
            result = product(result, base, modulus)
        base, exponent = product(base, base, modulus), exponent >> 1
    return remainder(result, modulus)


def is_irreducible(polynomial: int) -> bool:
    """Return whether a polynomial of degree n is irreducible, by Rabin's test.

    It is iff x**(2**n) = x modulo the polynomial, and x**(2**(n/q)) - x has no common factor with it for any prime
    divisor q of n.

    Example:
        >>> [polynomial for polynomial in range(4, 16) if is_irreducible(polynomial)]
        [7, 11, 13]
    """
    degree = polynomial.bit_length() - 1
    if degree < 1:
        return False
    x = remainder(2, polynomial)
    powers, power = {}, x  # powers[k] = x**(2**k)
    for step in range(1, degree + 1):
        power = product(power, power, polynomial)
        powers[step] = power
    if powers[degree] != x:
        return False

    primes = {q for q in range(2, degree + 1) if degree % q == 0 and all(q % d for d in range(2, q))}
    return all(_common_divisor(polynomial, powers[degree // q] ^ x) == 1 for q in primes)


def _common_divisor(first: int, second: int) -> int:
    while second:
        first, second = second, remainder(first, second)
    return first


def draw_polynomial(bits: int, seed: int) -> int:
    """Draw an irreducible polynomial of degree `bits` by a seed; about 2 in `bits` of those drawn are irreducible."""
    stream = 1 << 40
    while True:
        stream += 1
        polynomial: int = 1 << bits | draw_words(seed, 1, stream=stream)[0] % 2**bits | 1
        if is_irreducible(polynomial):
            return polynomial


class RabinTables(NamedTuple):
    """The linear maps of a polynomial, as tables.

    Attributes:
        entering: from a token to its remainder.
        shifted: from a fingerprint to its product with x**64.
        leaving: from a token to its product with x**(64 length).
    """

    entering: Tables
    shifted: Tables
    leaving: Tables


@lru_cache(maxsize=8)
def rabin_tables(bits: int, length: int, seed: int) -> RabinTables:
    """Make the tables for shingles of `length` tokens. They are cached: do not write to them.

    A number stands for a polynomial over GF(2): bit j is the coefficient of x**j. The polynomial of a shingle is the
    sequence of its token hashes, 64 bits each; its fingerprint is the remainder of division by an irreducible
    polynomial of degree `bits`. The next fingerprint follows from the last: multiply by x**64, add the new token,
    subtract the token that leaves. All three are linear maps of at most 64 bits, so each takes eight table look-ups.

    Over the choice of the polynomial, two different shingles get the same fingerprint with a chance of about length x
    64 / 2**bits. At 40 bits, as in 1997, half of all collections of a million distinct shingles contain such a pair.

    Args:
        bits: degree of the polynomial, 16 to 63.
        length: tokens per shingle, at least 1.
        seed: chooses the polynomial.

    Raises:
        ValueError: if `bits` is out of range.

    Sources:
        Rabin 1981, Fingerprinting by random polynomials, report TR-15-81, Harvard University.
        Broder 1993, Some applications of Rabin's fingerprinting method (windowed, by tables).
        Broder, Glassman, Manasse, Zweig 1997, Syntactic clustering of the Web (fingerprints of 40 bits).
    """
    if not LEAST_BITS <= bits <= MOST_BITS:
        raise ValueError(f"bits must lie in {LEAST_BITS} .. {MOST_BITS}, got {bits}")
    modulus = draw_polynomial(bits, seed)
    out = power_of_x(TOKEN_BITS * length, modulus)
    return RabinTables(
        linear_tables([power_of_x(j, modulus) for j in range(TOKEN_BITS)]),
        linear_tables([power_of_x(j + TOKEN_BITS, modulus) for j in range(bits)]),
        linear_tables([product(power_of_x(j, modulus), out, modulus) for j in range(TOKEN_BITS)]),
    )


@compiled
def roll_rabin(
    hashes: NDArray[np.uint64],
    n_tokens: int,
    length: int,
    offset: int,
    tables: RabinTables,
    fingerprints: Written[np.uint64],
) -> int:
    """Write the fingerprints of the shingles of `hashes[:n_tokens]`; return how many, as `rolling_hash.roll` does."""
    if n_tokens == 0:
        return 0

    rolling = np.uint64(0)
    first = min(length, n_tokens)
    for i in range(first):
        rolling = gf2_id(rolling, tables.shifted) ^ gf2_id(hashes[i], tables.entering)
    fingerprints[0] = rolling

    # Every window is computed; those that begin at a multiple of `offset` are written.
    n_shingles = 1
    following = offset
    for i in range(first, n_tokens):
        rolling = gf2_id(rolling, tables.shifted) ^ gf2_id(hashes[i], tables.entering)
        rolling ^= gf2_id(hashes[i - length], tables.leaving)
        if i + 1 - length == following:
            fingerprints[n_shingles] = rolling
            n_shingles += 1
            following += offset
    return n_shingles


def digest_texts(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int32] | NDArray[np.int64],
    *,
    unit: str = "word",
    ignore: tuple[str, ...] = (),
) -> Sketches:
    r"""Make the sketches of texts.

    A sketch is the BLAKE2b-128 of the hashes of the words or characters, in order, as two ids. Texts are equal when
    their tokens are: case, blanks and punctuation do not count, the order does. Nothing is estimated. Two different
    texts of a collection of 10^9 have the same ids with a probability of about 10^-21, if no two of their words have
    the same 64-bit hash.

    Args:
        data: UTF-8, as for `min_s.sketch_texts`.
        offsets: (d + 1,), as there.
        unit: the tokens that are compared, `word` or `char`.
        ignore: names of `respelling.IGNORED`, what tokens leave out.

    Returns:
        One sketch per text. `n_features` is `IDS`; 0 for a text without tokens, whose sketch is empty.

    Cost: one compiled pass per text hashes the tokens; then 8 bytes per token are digested.

    Example:
        >>> texts = ["A rose is a rose.", "a ROSE is\na rose", "a rose is rose a"]
        >>> data = np.frombuffer("".join(texts).encode(), np.uint8)
        >>> made = digest_texts(data, np.cumsum([0, *map(len, texts)]))
        >>> [(made.ids[:2] == made.ids[at : at + 2]).all().item() for at in (2, 4)]
        [True, False]
    """
    bounds = check_texts(data, offsets, length=1, offset=1, size=1)
    n_texts, longest = max(bounds.size - 1, 0), int(np.diff(bounds).max(initial=0))
    hash_text = hash_characters if unit == "char" else hash_tokens
    room = most_characters(longest) if unit == "char" else most_tokens(longest)
    hashes = np.empty(room + 1, np.uint64)

    table = word_table(ignore)
    n_tokens = np.zeros(n_texts, np.int32)
    digests: list[bytes] = []
    for d in range(n_texts):
        n_tokens[d] = hash_text(data, bounds[d], bounds[d + 1], table, hashes)
        if n_tokens[d]:
            digests.append(blake2b(hashes[: n_tokens[d]].tobytes(), digest_size=8 * IDS).digest())

    n_features = np.where(n_tokens > 0, IDS, 0).astype(np.int32)
    ids = np.sort(np.frombuffer(b"".join(digests), np.uint64).reshape(-1, IDS), axis=1).reshape(-1)
    return Sketches(n_tokens, n_features, np.concatenate([[0], np.cumsum(n_features, dtype=np.int64)]), ids)


@dataclass(frozen=True)
class Recipe:
    """How a text becomes a sketch.

        min-s, super   the s smallest ids; s is fixed or grows with the document
        mod-m          the ids divisible by the modulus
        mod-pow2       the ids divisible by 2**i; i follows the number of shingles, so that about s/2 to s ids are kept
        whole          two ids that only equal texts share (`digest_texts`)
        min-perm       the smallest id under each of s permutations (`minhash`)
        minhash        the same under other permutations, with the signature

    Attributes:
        kind: as in `kinds.KINDS`.
        length: tokens per shingle.
        offset: tokens from the start of a shingle to that of the next.
        unit: `word` or `char`.
        size: s, or the number of slots.
        seed: chooses permutations and polynomials.
        fingerprint: `rolling` or `rabin`.
        bits: degree of Rabin's polynomial.
        permutation: `mix`, `gf2`, `affine`, or for slots also `datasketch`.
        modulus: m of `mod-m`, and the divisor of linear growth.
        growth: sketch size for n distinct shingles. `fixed`: s. `logarithmic`: s log2(1 + n/s). `linear`: n / modulus,
            rounded up.
        tagged: whether ids of different slots differ; if not, a `min-perm` sketch is the set of its minima.
        words: for a kind of words instead of shingles, everything that decides its sketches (`word_sketches`).
        ignore: what tokens leave out, names of `respelling.IGNORED` in its order.

    Sources:
        Broder 1997, On the resemblance and containment of documents (MIN_s, MOD_m, V_i).
        Kuznetsov, Ignatov et al. 2005; Ignatov, Kuznetsov 2009 (a fixed, a logarithmic, a linear number of shingles).
    """

    kind: str = "min-s"
    length: int = 5
    offset: int = 1
    unit: str = "word"
    size: int = 200
    seed: int = 1
    fingerprint: str = "rolling"
    bits: int = 40
    permutation: str = "mix"
    modulus: int = 25
    growth: str = "fixed"
    tagged: bool = True
    words: WordRule | None = None
    ignore: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The recipe and the sketch format as a line. Sketches can be compared only if their keys are equal."""
        if self.words is not None:
            return f"kind={self.kind} {self.words.key} format={SKETCH_FORMAT}"
        values = {name: value for name, value in asdict(self).items() if name not in ("words", "ignore")}
        values |= {"ignore": "+".join(self.ignore)} if self.ignore else {}  # else the key is that of earlier versions
        text = " ".join(f"{name}={value}" for name, value in values.items())
        return f"{text} format={FULL_FORMAT}"

    @property
    def is_plain(self) -> bool:
        """Whether `min_s.sketch_texts` makes these sketches, in one compiled pass."""
        made = (self.kind, self.fingerprint, self.permutation, self.growth)
        return made in {(kind, "rolling", "mix", "fixed") for kind in ("min-s", "super")}


def size_of(recipe: Recipe, n_features: int) -> int:
    """Return the sketch size for n distinct shingles.

    Example:
        >>> [size_of(Recipe(size=100, growth="logarithmic"), n) for n in (50, 100, 300, 700)]
        [59, 100, 200, 300]
    """
    if recipe.growth == "logarithmic":
        return math.ceil(recipe.size * math.log2(1 + n_features / recipe.size))
    if recipe.growth == "linear":
        return -(-n_features // recipe.modulus)
    return recipe.size


def level_of(n_features: int, size: int) -> int:
    """Return exponent i of the modulus 2**i: the least with n / 2**i <= size, so that size/2 to size ids are expected.

    Example:
        >>> [level_of(n, 100) for n in (0, 100, 101, 200, 201, 800)]
        [0, 0, 1, 1, 2, 3]
    """
    return (max(n_features - 1, 0) // size).bit_length()


class _Document(NamedTuple):
    """One text: its number of tokens, and its shingles' fingerprints in order (a view, valid until the next text)."""

    n_tokens: int
    fingerprints: NDArray[np.uint64]


class _Sketcher:
    """The steps of a recipe for one text at a time, with their tables and scratch arrays."""

    def __init__(self, recipe: Recipe, most_bytes: int, left_out: NDArray[np.uint64]) -> None:
        self.recipe = recipe
        self.left_out = left_out
        self.minima: Slots | None = None
        if recipe.kind in {"min-perm", "minhash"}:
            self.minima = draw_slots(recipe.permutation, recipe.size, recipe.seed)
        self._keys = mix_keys(recipe.seed)
        self._shingles = shingling(recipe.length, recipe.offset)
        self._rabin = rabin_tables(recipe.bits, recipe.length, recipe.seed) if recipe.fingerprint == "rabin" else None

        self._table = word_table(recipe.ignore)
        self._hash = hash_characters if recipe.unit == "char" else hash_tokens
        room = most_characters(most_bytes) if recipe.unit == "char" else most_tokens(most_bytes)
        self._hashes = np.empty(room + 1, np.uint64)
        self._fingerprints = np.empty(room + 1, np.uint64)
        self._scratch = np.empty(0, np.uint64)

    def read(self, data: NDArray[np.uint8], start: int, end: int) -> _Document:
        """Read the text `data[start:end]`."""
        n_tokens = self._hash(data, start, end, self._table, self._hashes)
        length, offset, leaving = self._shingles
        if self._rabin is None:
            count = roll(self._hashes, n_tokens, length, offset, leaving, self._fingerprints)
        else:
            count = roll_rabin(self._hashes, n_tokens, length, offset, self._rabin, self._fingerprints)
        return _Document(n_tokens, self._fingerprints[:count])

    def permute(self, fingerprints: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the distinct ids of a text, ascending, without those that are left out."""
        if self.recipe.permutation in {"gf2", "affine"} and self.minima is None:
            ids = np.unique(PERMUTATIONS[self.recipe.permutation](fingerprints, seed=self.recipe.seed))
        else:
            ids = self._mix(fingerprints)
        return ids[~np.isin(ids, self.left_out)] if self.left_out.size else ids

    def _mix(self, fingerprints: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return all distinct ids under `mix`, ascending: random ids are sorted faster by their highest bits."""
        needed = scratch_needed(fingerprints.size)
        if self._scratch.size < needed:
            self._scratch = np.empty(needed, np.uint64)
        ids = np.empty(fingerprints.size, np.uint64)
        _, written = select_smallest(fingerprints, *self._keys, fingerprints.size, self._scratch, ids)
        return ids[:written]

    def select(self, ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the ids of a text that its sketch keeps."""
        recipe = self.recipe
        if recipe.kind == "mod-m":
            return np.asarray(ids[ids % np.uint64(recipe.modulus) == 0])
        if recipe.kind == "mod-pow2":
            return np.asarray(ids[ids & np.uint64((1 << level_of(ids.size, recipe.size)) - 1) == 0])
        return ids[: size_of(recipe, ids.size)]


def make_sketches(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int32] | NDArray[np.int64],
    recipe: Recipe,
    left_out: NDArray[np.uint64] | None = None,
) -> Sketches:
    """Sketch texts by a recipe.

    Args:
        data: UTF-8, as for `min_s.sketch_texts`.
        offsets: (d + 1,), as there.
        left_out: ids of shingles to leave out, (k,), uint64, any order. None for a kind with slots, whose ids do not
            stand for single shingles.

    Returns:
        One sketch per text, in the order given, with `signatures` if the kind has slots. `n_features` does not count
        shingles that are left out. A text without tokens has an empty sketch and no signature.

    Raises:
        ValueError: for numbers out of range, and for `left_out` with slots.

    Cost: one compiled pass for a plain recipe. Any other recipe takes some 10 us more per text, and for n slots
        m x n permuted ids of m shingles.

    Example:
        >>> text = "Роза есть роза есть роза".encode()
        >>> made = make_sketches(np.frombuffer(text, np.uint8), np.array([0, len(text)]), Recipe("minhash", size=4))
        >>> made.n_features.tolist(), len(made.ids), made.signatures.shape
        ([1], 4, (4,))
    """
    nothing = np.empty(0, np.uint64)
    left_out = nothing if left_out is None else left_out
    if recipe.is_plain and not left_out.size:
        return sketch_texts(
            data,
            offsets,
            length=recipe.length,
            offset=recipe.offset,
            size=recipe.size,
            seed=recipe.seed,
            characters=recipe.unit == "char",
            ignore=recipe.ignore,
        )

    if recipe.kind == "whole":
        return digest_texts(data, offsets, unit=recipe.unit, ignore=recipe.ignore)

    bounds = check_texts(data, offsets, length=recipe.length, offset=recipe.offset, size=recipe.size)
    n_texts = max(bounds.size - 1, 0)
    sketcher = _Sketcher(recipe, int(np.diff(bounds).max(initial=0)), np.sort(left_out))
    if sketcher.minima is not None and left_out.size:
        raise ValueError(f"kind {recipe.kind}: the id of a slot stands for no single shingle; none can be left out")

    n_tokens, n_features = np.zeros(n_texts, np.int32), np.zeros(n_texts, np.int32)
    ids, signatures = [nothing], [nothing]  # something to concatenate if there are no texts
    for d in range(n_texts):
        document = sketcher.read(data, bounds[d], bounds[d + 1])
        distinct = sketcher.permute(document.fingerprints)
        n_tokens[d], n_features[d] = document.n_tokens, distinct.size
        if sketcher.minima is None:
            ids.append(sketcher.select(distinct))
            continue
        signature = find_minima(document.fingerprints, sketcher.minima) if distinct.size else nothing
        signatures.append(signature)
        ids.append(tag_slots(signature) if recipe.tagged else np.unique(signature))

    starts = np.cumsum([0, *(part.size for part in ids[1:])], dtype=np.int64)
    signed = np.concatenate(signatures) if sketcher.minima is not None else None
    return Sketches(n_tokens, n_features, starts, np.concatenate(ids), signed)
