"""Recipes: everything that decides which ids a text gets, and the sketches made by one.

    text --tokens--> words or characters --fingerprints--> rolling or Rabin's --permutation--> ids --kind--> sketch

    min-s, super   the s smallest ids; s fixed, or growing with the document
    mod-m          the ids that the modulus divides
    mod-pow2       the ids that 2**i divides; i follows the number of shingles, so that s/2 to s are kept
    min-perm       the smallest shingle under each of s permutations (`minima`)
    minhash        the same under other permutations, and with its signature

Two sketches can be compared only if their recipes and their sketch formats (`sketch_format`) are equal.
`Recipe.key` writes both down.

Sources:
    Broder 1997, On the resemblance and containment of documents (MIN_s, MOD_m, V_i).
    Kuznetsov, Ignatov et al. 2005; Ignatov, Kuznetsov 2009 (a fixed, a logarithmic, a linear number of shingles).
"""

import math
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.sketching.min_s import (
    NO_LIMIT,
    Sketches,
    check_texts,
    read_only,
    select_smallest,
    sketch_texts,
    slots_needed,
)
from nddup.sketching.minhash import Slots, draw_slots, find_minima, tag_slots
from nddup.sketching.permutations import affine, gf2, mix, mix_keys
from nddup.sketching.rabin import rabin_tables, roll_rabin
from nddup.sketching.rolling_hash import SHINGLE_BASE, hash_characters, hash_tokens, most_characters, most_tokens, roll
from nddup.sketching.sketch_format import FULL_FORMAT, SKETCH_FORMAT
from nddup.sketching.tokens import WORD_TABLE
from nddup.sketching.words.word_sketches import WordRule

PERMUTATIONS: Final = {"mix": mix, "gf2": gf2, "affine": affine}


@dataclass(frozen=True)
class Recipe:
    """How a text becomes a sketch.

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
        modulus: m of `mod-m`; one id in so many of a size that is linear.
        growth: `fixed`: s. `logarithmic`: s log2(1 + n/s) of n shingles. `linear`: n / modulus, rounded up.
        tagged: slots are told apart; if not, `min-perm` is the set of its minima.
        words: of a kind that is of words, not of shingles: all that decides its sketches (`word_sketches`).
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

    @property
    def key(self) -> str:
        """What two sketches must have in common to be compared, as a line."""
        if self.words is not None:
            return f"kind={self.kind} {self.words.key} format={SKETCH_FORMAT}"
        said = " ".join(f"{name}={value}" for name, value in asdict(self).items() if name != "words")
        return f"{said} format={FULL_FORMAT}"

    @property
    def is_plain(self) -> bool:
        """Whether the one compiled pass of `sketching` makes these sketches."""
        return (self.kind, self.unit, self.fingerprint, self.permutation, self.growth) in {
            (kind, "word", "rolling", "mix", "fixed") for kind in ("min-s", "super")
        }


def size_of(recipe: Recipe, n_features: int) -> int:
    """S of a document of so many distinct shingles.

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
    """I of a document's modulus 2**i: the least with n / 2**i <= size, so that size/2 to size ids are expected.

    Example:
        >>> [level_of(n, 100) for n in (0, 100, 101, 200, 201, 800)]
        [0, 0, 1, 1, 2, 3]
    """
    return (max(n_features - 1, 0) // size).bit_length()


class _Maker:
    """The kernels and tables of a recipe, and the arrays they work in."""

    def __init__(self, recipe: Recipe, most_bytes: int, left_out: NDArray[np.uint64]) -> None:
        self.recipe = recipe
        self.left_out = left_out
        self.length, self.offset = min(recipe.length, NO_LIMIT), min(recipe.offset, NO_LIMIT)
        self.read = hash_characters if recipe.unit == "char" else hash_tokens
        room = most_characters(most_bytes) if recipe.unit == "char" else most_tokens(most_bytes)
        self.hashes = np.empty(room + 1, np.uint64)
        self.fingerprints = np.empty(room + 1, np.uint64)
        self.slots = np.empty(0, np.uint64)
        self.keys = mix_keys(recipe.seed)
        self.leaving = np.uint64(pow(int(SHINGLE_BASE), recipe.length, 2**64))
        self.rabin = rabin_tables(recipe.bits, recipe.length, recipe.seed) if recipe.fingerprint == "rabin" else None
        self.minima: Slots | None = None
        if recipe.kind in {"min-perm", "minhash"}:
            self.minima = draw_slots(recipe.permutation, recipe.size, recipe.seed)

    def read_shingles(self, data: NDArray[np.uint8], start: int, end: int) -> tuple[int, NDArray[np.uint64]]:
        """The tokens of a text, counted, and the fingerprints of its shingles as they come."""
        n_tokens = self.read(data, start, end, WORD_TABLE, self.hashes)
        if self.rabin is None:
            count = roll(self.hashes, n_tokens, self.length, self.offset, self.leaving, self.fingerprints)
        else:
            count = roll_rabin(self.hashes, n_tokens, self.length, self.offset, self.rabin, self.fingerprints)
        return n_tokens, self.fingerprints[:count]

    def permute(self, fingerprints: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The distinct ids, ascending, those that are left out not among them."""
        if self.recipe.permutation in {"gf2", "affine"} and self.minima is None:
            ids = np.unique(PERMUTATIONS[self.recipe.permutation](fingerprints, seed=self.recipe.seed))
        else:
            needed = slots_needed(fingerprints.size)
            if self.slots.size < needed:
                self.slots = np.empty(needed, np.uint64)
            ids = np.empty(fingerprints.size, np.uint64)
            _, written = select_smallest(
                fingerprints, fingerprints.size, *self.keys, fingerprints.size, self.slots, ids
            )
            ids = ids[:written]
        return ids[~np.isin(ids, self.left_out)] if self.left_out.size else ids

    def select(self, ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The ids of one document that its sketch keeps."""
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
        data: UTF-8, as of `sketching.sketch_texts`.
        offsets: (d + 1,), as there.
        recipe: what to make.
        left_out: ids of shingles that are passed over, (k,), uint64; not with slots, whose ids are of no one shingle.

    Returns:
        One sketch per text, in the order given; `signatures` where the kind has slots. `n_features` does not count
        what was left out. A text without tokens has an empty sketch and no signature.

    Raises:
        ValueError: for numbers out of range, and for `left_out` with slots.

    Cost: the plain recipe is one compiled pass; any other, some 10 us a text more, and for slots m x n images of m
        shingles.

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
            data, offsets, length=recipe.length, offset=recipe.offset, size=recipe.size, seed=recipe.seed
        )
    bounds = check_texts(data, offsets, length=recipe.length, offset=recipe.offset, size=recipe.size)
    n_texts = max(bounds.size - 1, 0)
    maker = _Maker(recipe, int(np.diff(bounds).max(initial=0)), np.sort(left_out))
    if maker.minima is not None and left_out.size:
        raise ValueError(f"kind {recipe.kind}: an id of a slot is of no one shingle; none can be left out")
    text, counts = read_only(data), np.zeros((2, n_texts), np.int32)
    ids, signatures = [nothing], [nothing]
    for d in range(n_texts):
        counts[0, d], shingles = maker.read_shingles(text, bounds[d], bounds[d + 1])
        distinct = maker.permute(shingles)
        counts[1, d] = distinct.size
        if maker.minima is None:
            ids.append(maker.select(distinct))
        else:
            signature = find_minima(shingles, maker.minima) if shingles.size else nothing
            signatures.append(signature)
            ids.append(tag_slots(signature) if recipe.tagged else np.unique(signature))
    starts = np.cumsum([0, *(part.size for part in ids[1:])], dtype=np.int64)
    signed = np.concatenate(signatures) if maker.minima is not None else None
    return Sketches(counts[0], counts[1], starts, np.concatenate(ids), signed)
