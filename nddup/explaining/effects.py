"""The effects of the settings of a run, by kind of sketch: the error of the estimate, which pairs pass, the size.

    explain_settings           settings -> lines for the terminal, and curves, by kind of sketch:
        smallest   min-s, super                  estimated from the s smallest ids of both documents together
        slots      min-perm, minhash             estimated from equal slots out of n; with bands, their S-curve as well
        sampled    mod-m, mod-pow2               estimated from the ids divisible by a modulus, more of longer documents
        equal      whole                         nothing is estimated: only equal texts are pairs
        words      lexicon, i-match, keywords    nothing is estimated: a sketch has every word of the kind
    say_what_readers_judged    settings -> lines on two sets of pairs of web pages that people judged

The probabilities are those of `nddup.sketching.accuracy`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from nddup.errors import ConfigError
from nddup.explaining.curves import (
    PAGE,
    Explanation,
    curve_of,
    explain_bands,
    explain_overlap,
    explain_support,
    grid,
    percent,
    table,
)
from nddup.matching.measures import MEASURES
from nddup.settings.plan import bands_of, candidate_share, kind_of, recipe_of
from nddup.settings.schema import Config, say_estimated
from nddup.sketching.accuracy import (
    expected_overlap,
    pass_probability,
    sampled_variance,
    say_missed,
    slots_variance,
    smallest_variance,
)
from nddup.sketching.kinds import KINDS
from nddup.sketching.recipe import IDS, level_of, size_of


class Judged(NamedTuple):
    """A threshold on the resemblance, and its precision and recall on each of the two sets.

    The sets have 358 and 374 pairs of web pages. Resemblance is that of all 5-word shingles; a sketch of 200 ids costs
    .001 to .004 of average precision. The judges contradict each other on templates filled with another subject, and on
    revisions of one article.
    """

    threshold: float
    first: tuple[float, float]
    second: tuple[float, float]


BY_RESEMBLANCE = (
    Judged(0.5, (0.83, 0.94), (0.68, 0.90)),
    Judged(0.6, (0.90, 0.83), (0.78, 0.82)),
    Judged(0.7, (0.95, 0.70), (0.86, 0.67)),
    Judged(0.8, (0.99, 0.56), (0.93, 0.48)),
)

AT_EDIT = "F1 .83 on the second set, which was not used to choose it; resemblance reaches .80 at its best, .75 at 0.7"

UNTAGGED = "Compared as plain sets they show less, about r / (2 - r): the table holds for sketch.tagged=true."

EQUAL_TEXTS = "Two documents are a pair if their words, or characters, are the same in the same order, and only then."

LONG = 10
"""Length of the long example document, in example pages."""

SHORT = 50
"""Number of shingles of the short example document."""


def say_what_readers_judged(config: Config) -> list[str]:
    """Return lines of `nddup explain`: the figures, and which of the settings move away from a reader's judgement."""
    rows = [
        [f"{row.threshold:g}".lstrip("0"), *(f"{share:.2f}" for share in (*row.first, *row.second))]
        for row in BY_RESEMBLANCE
    ]
    lines = [
        "",
        "What readers judged: two sets of web pages (358 and 374 pairs), resemblance of 5-word shingles.",
        *table(("resemblance", "precision", "recall", "precision", "recall"), rows),
        "  (the first two columns are of the first set)",
    ]
    if config.pairs.confirm == "edit":
        lines.append(f"Confirmed by their texts at edit similarity 0.77: {AT_EDIT}.")
    else:
        lines.append(f"--config reader confirms pairs by their texts: {AT_EDIT}.")
    return [*lines, *_warnings(config)]


def _warnings(config: Config) -> list[str]:
    """Return warnings on settings that agree less with the readers."""
    warnings = []
    if config.pairs.measure == "containment":
        warnings.append(
            "pairs.measure containment moves away from a reader's judgement: average precision .938 and .749, where"
            " resemblance has .956 and .890."
        )
    if config.pairs.max_document_frequency is not None:
        warnings.append(
            "A low pairs.max_document_frequency does too: with shingles of at most 5 other documents only, .916 and"
            " .867."
        )
    return warnings


def explain_settings(config: Config, *, asked: Sequence[float] = ()) -> Explanation:
    """Explain the settings of a run.

    Args:
        asked: resemblances to show in the tables besides the usual ones.

    Raises:
        ConfigError: for a number of common ids that no sketch has.
    """
    kind = kind_of(config.sketch)
    if kind.is_of_words:
        explanation = _explain_words(config)
    elif kind.name == "whole":
        explanation = Explanation((EQUAL_TEXTS,), (), 1.0, IDS)
    elif kind.name in {"min-perm", "minhash"}:
        explanation = _explain_slots(config, asked=asked)
    elif kind.estimate == "smallest":
        explanation = _explain_smallest(config, asked=asked)
    else:
        explanation = _explain_sampled(config, asked=asked)

    heading = [f"sketch: {kind.name}, {KINDS[kind.name].says}"]
    if not (kind.is_of_words or kind.name == "whole"):
        heading.append(f"features: {config.shingle.length}-{config.shingle.unit} shingles")
    heading += [f"ignored in tokens: {', '.join(config.tokens.ignore)}"] if config.tokens.ignore else []
    heading += [*_pairs_of(config), ""]
    mark = float(config.pairs.share) if config.pairs.confirm == "resemblance" else explanation.mark
    edits = [] if kind.is_of_words or kind.name == "whole" else [_edits(config, mark)]
    is_judged = not (kind.is_of_words or kind.name == "whole") and config.shingle.unit == "word"
    judged = say_what_readers_judged(config) if is_judged else []
    return replace(explanation, lines=(*heading, *explanation.lines, *edits, *judged))


def _pairs_of(config: Config) -> list[str]:
    pairs = config.pairs
    text = f"pairs: {pairs.measure} at least {pairs.threshold:g}"
    if pairs.confirm == "edit":
        return [f"{text}, texts of edit similarity {pairs.edit_threshold:g}"]
    if pairs.confirm == "none":
        return [text + say_estimated(dict(pairs), dict(config.sketch))]
    return [
        f"{text}, exact: all shingles of the candidates are compared",
        f"candidates: estimated resemblance at least {float(candidate_share(config)):g}, the threshold of what follows",
        f"expected missed: {say_missed(config.sketch.size, pairs.share)}",
    ]


def _edits(config: Config, mark: float) -> str:
    """Say how many scattered edits bring a page down to the resemblance `mark`; each changes `length` shingles."""
    edits = PAGE * (1 - mark) / ((1 + mark) * config.shingle.length)
    unit = "words" if config.shingle.unit == "word" else "characters"
    return f"{edits:.0f} {unit}, changed far from each other, leave a page of {PAGE:,} a resemblance of {mark:.2f}."


def _ids_needed(config: Config, size: int) -> int:
    """Return how many of `size` ids a pair must have in common: the count that is set, or the share of `size`."""
    threshold = config.pairs.threshold
    return threshold if isinstance(threshold, int) else max(1, math.ceil(candidate_share(config) * size))


def _ids_needed_of_full(config: Config) -> int:
    """Return how many ids two full sketches must have in common.

    Raises:
        ConfigError: for a count above the size of a sketch.
    """
    need, size = _ids_needed(config, config.sketch.size), config.sketch.size
    if need > size:
        raise ConfigError(f"pairs.threshold {need} is more than sketch.size {size}: no pair can have it")
    return need


def _explain_smallest(config: Config, *, asked: Sequence[float]) -> Explanation:
    if config.sketch.growth != "fixed":
        return _explain_growing(config, asked=asked)
    if MEASURES[config.pairs.measure].is_estimated:
        return _explain_estimate(candidate_share(config), config.sketch.size, asked=asked)
    explain = explain_support if isinstance(config.pairs.threshold, int) else explain_overlap
    return explain(_ids_needed_of_full(config), config.sketch.size, asked=asked)


def _explain_estimate(share: Fraction, size: int, *, asked: Sequence[float]) -> Explanation:
    threshold, need = float(share), math.ceil(share * size)
    chance = _chance_to_pass(size, need)

    def cells(resemblance: float) -> list[str]:
        error = smallest_variance(resemblance, size=size) ** 0.5
        common = expected_overlap(resemblance, size=size)
        return [f"{resemblance:g}", f"{error:.4f}", f"{common:.1f}", percent(chance(resemblance))]

    lines = (
        f"The estimate of a resemblance r has standard error sqrt(r (1 - r) / {size}). The error is smaller if the two",
        f"documents together have not many more than {size} shingles; with at most {size} the estimate is exact.",
        *table(("resemblance", "standard error", "common ids", "found"), [cells(r) for r in grid((*asked, threshold))]),
        "  (common ids: mean number for two full sketches; found: the estimate reaches the threshold)",
        "",
        f"Out of {size} ids, a resemblance of {threshold:g} needs",
        f"  {need} in common at the least: with fewer, no estimate reaches it",
        f"  {expected_overlap(threshold, size=size):.0f} on average",
        f"  {math.ceil((1 + share) * size / 2)} at the most: with as many, every estimate reaches it",
        "",
    )
    curve = curve_of(f"estimate from {size} ids at least {threshold:g}", chance)
    return Explanation(lines, (curve,), threshold, size)


def _explain_growing(config: Config, *, asked: Sequence[float]) -> Explanation:
    """Explain sketches that grow with the document, for the shortest example document with enough ids."""
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
    explanation = explain_overlap(_ids_needed(config, size), size, asked=asked)
    kept = ", ".join(f"{ids:,} of {length:,}" for length, ids in sizes.items())
    lines = (f"Kept of a document's shingles: {kept}. Of two documents of {among:,} shingles each:", *explanation.lines)
    return replace(explanation, lines=lines, more=(f"  (documents of {among:,} shingles)",))


def _explain_slots(config: Config, *, asked: Sequence[float]) -> Explanation:
    """Explain equal slots out of n: each slot is equal with probability r, independently of the others."""
    size, need = config.sketch.size, _ids_needed_of_full(config)
    chance = _chance_to_pass(size, need)

    def cells(resemblance: float) -> list[str]:
        error = slots_variance(resemblance, slots=size) ** 0.5
        return [f"{resemblance:g}", f"{error:.4f}", f"{resemblance * size:.1f}", percent(chance(resemblance))]

    lines = (
        f"Equal slots / {size} estimate the resemblance r with standard error sqrt(r (1 - r) / {size}).",
        *table(
            ("resemblance", "standard error", "equal slots", "found"), [cells(r) for r in grid((*asked, need / size))]
        ),
        f"  (found: at least {need} slots are equal)",
        *(() if config.sketch.tagged else (UNTAGGED,)),
        "",
    )
    curve = curve_of(f"at least {need} of {size} slots", chance)
    explanation = Explanation(lines, (curve,), need / size, size)
    if KINDS[config.sketch.kind].finder != "bands":
        return explanation

    bands = explain_bands(*bands_of(config), asked=asked)
    return replace(explanation, lines=(*lines, *bands.lines, ""), curves=(curve, *bands.curves), more=bands.more)


def _chance_to_pass(size: int, need: int) -> Callable[[float], float]:
    """Return the function of a resemblance that gives the probability of at least `need` of `size` ids in common."""
    return lambda resemblance: pass_probability(resemblance, size=size, need=need)


def _explain_sampled(config: Config, *, asked: Sequence[float]) -> Explanation:
    """Explain samples of the ids divisible by a modulus: the error falls with the length of the documents."""
    share, size = float(min(config.pairs.share, Fraction(1))), config.sketch.size
    modulus = recipe_of(config).modulus if config.sketch.kind == "mod-m" else 0
    pages = (PAGE, LONG * PAGE)

    def error(resemblance: float, among: int) -> str:
        m = modulus or 1 << level_of(among, size)
        return f"{sampled_variance(resemblance, modulus=m, among=among) ** 0.5:.4f}"

    rows = [[f"{r:g}", *(error(r, among) for among in pages)] for r in grid((*asked, share))]
    none = (1 - 1 / modulus) ** SHORT if modulus else 0.0
    rate = f"one id in {modulus}" if modulus else f"{size // 2} to {size} ids of any document of more than {size}"
    lines = (
        f"Kept: {rate}. The sample shows a resemblance and a containment.",
        "Standard error if both documents together (for a containment: the contained one) have N shingles:",
        *table(("share", *(f"N = {among:,}" for among in pages)), rows),
        *((f"  a document of {SHORT} shingles keeps none with probability {percent(none)}",) if modulus else ()),
        "",
    )
    ids = PAGE // modulus if modulus else size
    return Explanation(lines, (), share, ids, (f"  (documents of {PAGE:,} shingles)",) if modulus else ())


def _explain_words(config: Config) -> Explanation:
    """Explain sketches of words: they hold every word of the kind, so nothing is sampled; they ignore the order."""
    words = recipe_of(config).words
    assert words is not None  # noqa: S101 - the kind is of words
    lines = [
        f"words: {words.key}",
        "The resemblance is that of two sets of words, and exact: nothing is sampled. It ignores the order and number",
        "of the words, so it is above that of shingles: pages on one subject look alike.",
    ]

    if words.kind == "i-match":
        k, q = words.copies, words.left_out
        rows = [[str(d), percent(1 - (1 - q**d) ** k)] for d in (1, 2, 3, 5)]
        lines += [
            "Two documents share a signature if they hold the same words of the lexicon, or of one of its",
            f"{k} copies, each of which leaves out {percent(q)} of the words. Documents that differ in d of these",
            f"words share a signature with probability 1 - (1 - {q:g}^d)^{k}:",
            *table(("d", "probability"), rows),
        ]
    return Explanation(tuple(lines), (), float(min(config.pairs.share, Fraction(1))), 0)
