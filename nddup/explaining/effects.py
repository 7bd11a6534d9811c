"""What the settings of a run mean, by kind of sketch: the error of its estimate, who passes its threshold, its size.

    smallest   min-s, super        the s smallest ids of both documents together
    slots      min-perm, minhash   equal slots of n; with bands, their S-curve as well
    sampled    mod-m, mod-pow2     the ids of a modulus: more of a longer document
    words      lexicon, i-match, keywords    all words that are kept: nothing is estimated

The probabilities are those of `nddup.sketching.accuracy`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from nddup.errors import ConfigError
from nddup.explaining.curves import (
    DRAWN,
    PAGE,
    Curve,
    Explanation,
    explain_bands,
    explain_overlap,
    explain_support,
    grid,
    percent,
    table,
)
from nddup.settings.derive import bands_of, kind_of, recipe_of
from nddup.settings.schema import Config
from nddup.sketching.accuracy import (
    expected_overlap,
    pass_probability,
    sampled_variance,
    slots_variance,
    smallest_variance,
)
from nddup.sketching.kinds import KINDS
from nddup.sketching.recipe import level_of, size_of

UNTAGGED = "Compared as plain sets they show less, about r / (2 - r): sketch.tagged=true is what this table is about."
LONG = 10
"""Times the page: the long document of the examples."""


def explain_settings(config: Config, *, asked: Sequence[float] = ()) -> Explanation:
    """What the settings of a run mean, of whatever kind its sketches are.

    Raises:
        ConfigError: for a count of ids that no sketch can have.
    """
    kind = kind_of(config.sketch)
    if kind.is_of_words:
        found = _explain_words(config)
    elif kind.name in {"min-perm", "minhash"}:
        found = _explain_slots(config, asked=asked)
    elif kind.estimate == "smallest":
        found = _explain_sizes(config, asked=asked)
    else:
        found = _explain_sampled(config, asked=asked)
    said = [f"sketch: {kind.name}, {KINDS[kind.name].says}"]
    shingles = f"features: {config.shingle.length}-{config.shingle.unit} shingles"
    said += [] if kind.is_of_words else [shingles]
    said += [f"pairs: {config.pairs.measure} at least {config.pairs.threshold:g}", ""]
    edits = [] if kind.is_of_words else [_edits(config, found.mark)]
    return replace(found, lines=(*said, *found.lines, *edits))


def _edits(config: Config, mark: float) -> str:
    words = PAGE * (1 - mark) / ((1 + mark) * config.shingle.length)
    unit = "words" if config.shingle.unit == "word" else "characters"
    return f"{words:.0f} {unit}, changed far from each other, leave a page of {PAGE:,} a resemblance of {mark:.2f}."


def _need(config: Config) -> int:
    """How many ids of a full sketch must be common, by a count or a share."""
    pairs, size = config.pairs, config.sketch.size
    if not isinstance(pairs.threshold, int):
        return max(1, math.ceil(pairs.share * size))
    if pairs.threshold > size:
        raise ConfigError(f"pairs.threshold {pairs.threshold} is more than sketch.size {size}: no pair can have it")
    return pairs.threshold


def _explain_sizes(config: Config, *, asked: Sequence[float]) -> Explanation:
    """Of the s smallest ids: a resemblance, or so many in common."""
    if config.sketch.growth != "fixed":
        return _explain_growing(config, asked=asked)
    if config.pairs.measure == "resemblance":
        return _explain_smallest(config.pairs.share, config.sketch.size, asked=asked)
    explain = explain_support if isinstance(config.pairs.threshold, int) else explain_overlap
    return explain(_need(config), config.sketch.size, asked=asked)


def _explain_growing(config: Config, *, asked: Sequence[float]) -> Explanation:
    """Of so many ids as follow from the length: explained for a page that has as many as the threshold asks."""
    recipe, pairs = recipe_of(config), config.pairs
    sizes = {among: size_of(recipe, among) for among in (PAGE, LONG * PAGE, LONG * LONG * PAGE)}
    least = pairs.threshold if isinstance(pairs.threshold, int) else 1
    among = next((among for among, size in sizes.items() if size >= least), None)
    if among is None:
        largest, most = max(sizes.items())
        raise ConfigError(
            f"pairs.threshold {least} is more than the {most:,} ids of a document of {largest:,} shingles"
        )
    size = sizes[among]
    need = least if isinstance(pairs.threshold, int) else max(1, math.ceil(pairs.share * size))
    found = explain_overlap(need, size, asked=asked)
    kept = ", ".join(f"{ids:,} of {length:,}" for length, ids in sizes.items())
    lines = (f"Kept of a document's shingles: {kept}. Of two documents of {among:,} shingles each:", *found.lines)
    return replace(found, lines=lines, more=(f"  (documents of {among:,} shingles)",))


def _explain_slots(config: Config, *, asked: Sequence[float]) -> Explanation:
    """Equal slots of n: each is equal with probability r, by itself."""
    size, need = config.sketch.size, _need(config)

    def chance(resemblance: float) -> float:
        return pass_probability(resemblance, size=size, need=need)

    rows = [
        [f"{r:g}", f"{slots_variance(r, slots=size) ** 0.5:.4f}", f"{r * size:.1f}", percent(chance(r))]
        for r in grid((*asked, need / size))
    ]
    curve = Curve(f"at least {need} of {size} slots", tuple(chance(r) for r in DRAWN.tolist()))
    lines = (
        f"Equal slots / {size} estimate the resemblance r with standard error sqrt(r (1 - r) / {size}).",
        *table(("resemblance", "standard error", "equal slots", "found"), rows),
        f"  (found: at least {need} slots are equal)",
        *(() if config.sketch.tagged else (UNTAGGED,)),
        "",
    )
    found = Explanation(lines, (curve,), need / size, size)
    if KINDS[config.sketch.kind].finder != "bands":
        return found
    bands = explain_bands(*bands_of(config), asked=asked)
    return replace(found, lines=(*lines, *bands.lines, ""), curves=(curve, *bands.curves), more=bands.more)


def _explain_sampled(config: Config, *, asked: Sequence[float]) -> Explanation:
    """The ids that a modulus divides: the error falls with the length of the documents."""
    share, size = float(min(config.pairs.share, Fraction(1))), config.sketch.size
    modulus = recipe_of(config).modulus if config.sketch.kind == "mod-m" else 0
    pages = (PAGE, LONG * PAGE)

    def error(resemblance: float, among: int) -> str:
        m = modulus or 1 << level_of(among, size)
        return f"{sampled_variance(resemblance, modulus=m, among=among) ** 0.5:.4f}"

    rows = [[f"{r:g}", *(error(r, among) for among in pages)] for r in grid((*asked, share))]
    none = (1 - 1 / modulus) ** 50 if modulus else 0.0
    rate = f"one id in {modulus}" if modulus else f"{size // 2} to {size} ids of any document of more than {size}"
    lines = (
        f"Kept: {rate}. The sample shows a resemblance and a containment.",
        "Standard error where the shingles of both documents together (for a containment: of the contained one) are",
        *table(("share", *(f"N = {among:,}" for among in pages)), rows),
        *((f"  a document of 50 shingles keeps none with probability {percent(none)}",) if modulus else ()),
        "",
    )
    ids = PAGE // modulus if modulus else size
    return Explanation(lines, (), share, ids, (f"  (documents of {PAGE:,} shingles)",) if modulus else ())


def _explain_words(config: Config) -> Explanation:
    """All words that are kept are in the sketch: there is no error of sampling, and nothing about order."""
    words = recipe_of(config).words
    assert words is not None  # noqa: S101 - the kind is of words
    lines = [
        f"words: {words.key}",
        "A resemblance is that of two sets of words, exact: nothing is sampled. It knows neither order nor number,",
        "so it lies above that of shingles: pages on one subject look alike.",
    ]
    if words.kind == "i-match":
        k, q = words.copies, words.left_out
        rows = [[str(d), percent(1 - (1 - q**d) ** k)] for d in (1, 2, 3, 5)]
        lines += [
            "Two documents share a signature when they hold the same words of the lexicon, or of one of its",
            f"{k} copies, from which {percent(q)} of the words are left out. Documents that differ in d of these",
            f"words share one with probability 1 - (1 - {q:g}^d)^{k}:",
            *table(("d", "probability"), rows),
        ]
    return Explanation(tuple(lines), (), float(min(config.pairs.share, Fraction(1))), 0)


def _explain_smallest(share: Fraction, size: int, *, asked: Sequence[float]) -> Explanation:
    """The error of an estimate from `size` ids, and who passes a threshold."""
    threshold, need = float(share), math.ceil(share * size)

    def chance(resemblance: float) -> float:
        return pass_probability(resemblance, size=size, need=need)

    rows = [
        [f"{r:g}", f"{smallest_variance(r, size=size) ** 0.5:.4f}", f"{expected_overlap(r, size=size):.1f}",
         percent(chance(r))]
        for r in grid((*asked, threshold))
    ]  # fmt: skip
    lines = (
        f"The estimate of a resemblance r has standard error sqrt(r (1 - r) / {size}), less where the two documents",
        f"together have not many more than {size} shingles; with at most {size} it is exact.",
        *table(("resemblance", "standard error", "common ids", "found"), rows),
        "  (common ids of two full sketches, in the mean; found: the estimate reaches the threshold)",
        "",
        f"A resemblance of {threshold:g} needs, of {size} ids,",
        f"  {need} in common at the least: fewer, and no estimate reaches it",
        f"  {expected_overlap(threshold, size=size):.0f} in the mean",
        f"  {math.ceil((1 + share) * size / 2)} at the most: as many, and every estimate reaches it",
        "",
    )
    curve = Curve(f"estimate from {size} ids at least {threshold:g}", tuple(chance(r) for r in DRAWN.tolist()))
    return Explanation(lines, (curve,), threshold, size)
