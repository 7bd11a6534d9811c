"""From settings to arguments: the kind, its recipe, threshold and bands, and the rules by which records are read.

What several settings choose together is made here, and choices that contradict each other are refused. So is a setting
that the chosen kind does not use, so that nobody believes it has an effect.
"""

import os
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from pydantic import BaseModel

from nddup.matching.confirm_texts import ConfirmRule, EditRule, SetRule
from nddup.matching.measures import MEASURES
from nddup.matching.threshold import Threshold
from nddup.mining.modes import DIVIDING, MODES, SHARE_NODES
from nddup.settings.kept_columns import needs_ledger, read_columns, spell_times, spell_value
from nddup.settings.schema import Config, SketchConfig
from nddup.sketching.accuracy import least_equal
from nddup.sketching.kinds import KINDS, NO_CLUSTERS, Kind
from nddup.sketching.minhash import Bands, choose_bands

if TYPE_CHECKING:  # kernels load slowly: a command that only reads a run needs none, and a run starts workers first
    from nddup.matching.overlap_join import ComparisonLimits
    from nddup.mining.cluster_modes import Budget
    from nddup.scanning.found import RecordLimits, SketchRule, TextRule
    from nddup.scanning.read_again import Tokens
    from nddup.sketching.minhash import Finder
    from nddup.sketching.recipe import Recipe
    from nddup.sketching.word_sketches import Kind as WordKind
    from nddup.sketching.word_sketches import WordRule


ANCHOR: Final = {"word": 1, "char": 16}
"""Tokens that make an anchor of two long texts: 16 characters are about as seldom repeated by chance as a rare word."""

RABIN_BITS: Final = 40

MODULUS: Final = 25

RUN: Final = 8
"""Ids of a super-shingle: two sketches of 200 ids share some 33 super-shingles at resemblance 0.8, and one at 0.5."""

WEIGHT_OF_MISSED: Final = 0.95
"""Weight of missed pairs in the choice of bands: candidates are verified, so false ones cost only time."""

EXACT: Final = {"super": "min-s", "minhash": "min-perm"}
"""For each kind whose pairs are found by keys, the kind that makes the same sketches and finds every pair."""

SHINGLED: Final = frozenset({"size", "fingerprint", "bits", "permutation"})
"""Keys of the section `sketch` that concern shingles."""


def confirm_rule_of(config: Config) -> ConfirmRule | None:
    """Return the rule by which the texts of a pair of sketches confirm it; None where the sketches decide."""
    if config.pairs.confirm == "none":
        return None
    if config.pairs.confirm == "resemblance":
        return SetRule(config.pairs.share.numerator, config.pairs.share.denominator)
    share = Fraction(repr(config.pairs.edit_threshold))
    return EditRule(share.numerator, share.denominator, window=ANCHOR[config.shingle.unit])


def tokens_of(config: Config, contents: frozenset[bytes] | None = None) -> "Tokens":
    """Return how texts are read again where they confirm pairs; `contents` are those that are wanted, None for all."""
    from nddup.scanning.found import whole_recipe  # noqa: PLC0415
    from nddup.scanning.read_again import Tokens  # noqa: PLC0415

    return Tokens(text_rule(config), whole_recipe(recipe_of(config)), config.pairs.confirm, contents)


def candidate_share(config: Config) -> Fraction:
    """Return the threshold of two sketches: `pairs.threshold`, less the margin where the texts' resemblance decides."""
    share = config.pairs.share
    return candidates_at(share, config) if config.pairs.confirm == "resemblance" else share


def candidates_at(share: Fraction, config: Config) -> Fraction:
    """Return the threshold of two sketches whose texts' resemblance may be `share`: less by the margin."""
    return Fraction(least_equal(config.sketch.size, share), config.sketch.size)


def conflicts_of_texts(config: Config) -> list[str]:
    """Return the settings that confirmation by texts cannot be combined with: one message each, which names the key."""
    pairs, sketch = config.pairs, config.sketch
    is_changed = pairs.edit_threshold != type(pairs).model_fields["edit_threshold"].get_default()
    messages = ["pairs.edit_threshold: needs pairs.confirm edit"] if is_changed and pairs.confirm != "edit" else []
    if pairs.confirm == "none":
        return messages

    if not sketch.verify:
        messages.append(
            f"pairs.confirm: {pairs.confirm} needs sketch.verify: the sketches of a pair are compared before its texts"
        )
    if pairs.confirm == "edit":
        if MEASURES[pairs.measure].is_directed:
            messages.append(
                "pairs.confirm: edit compares whole texts; with containment, one text is only a part of the other"
            )
        return messages

    if not MEASURES[pairs.measure].is_estimated:
        messages.append(f"pairs.confirm: resemblance needs pairs.measure resemblance, got {pairs.measure}")
    if kind_of(sketch).estimate not in {"smallest", "slots"}:
        messages.append(
            "pairs.confirm: resemblance needs sketches that estimate the resemblance of all shingles: kind min-s,"
            f" super, minhash or tagged min-perm; got {sketch.kind}"
        )
    if sketch.growth != "fixed":
        messages.append(f"pairs.confirm: resemblance needs sketch.growth fixed, got {sketch.growth}")
    if pairs.max_document_frequency is not None:
        messages.append("pairs.confirm: resemblance counts all shingles; pairs.max_document_frequency leaves some out")
    return messages


def stored_texts(config: Config) -> int:
    """Return the most documents whose texts a run stores: none without a report, the only reader of them."""
    return config.output.texts if config.output.report else 0


def kind_of(sketch: SketchConfig) -> Kind:
    """Return the chosen kind; untagged minima are compared as sets."""
    kind = KINDS[sketch.kind]
    return kind if sketch.tagged else replace(kind, estimate="whole")


def recipe_of(config: Config) -> "Recipe":
    """Return the recipe by which a text becomes a sketch."""
    from nddup.sketching.recipe import Recipe  # noqa: PLC0415

    sketch, shingle = config.sketch, config.shingle
    return Recipe(
        kind=sketch.kind,
        length=shingle.length,
        offset=shingle.offset,
        unit=shingle.unit,
        size=sketch.size,
        seed=sketch.seed,
        fingerprint=sketch.fingerprint,
        bits=sketch.bits or RABIN_BITS,
        permutation=_permutation(sketch),
        modulus=sketch.modulus or MODULUS,
        growth=sketch.growth,
        tagged=sketch.tagged,
        words=words_of(config),
        ignore=config.tokens.ignored,
    )


def words_of(config: Config) -> "WordRule | None":
    """Return the rule by which texts become sketches of words; None for a kind of shingles."""
    if not KINDS[config.sketch.kind].is_of_words:
        return None

    from nddup.sketching.vocabulary import LexiconRule  # noqa: PLC0415
    from nddup.sketching.word_sketches import WordRule  # noqa: PLC0415

    given = config.lexicon
    lexicon = LexiconRule(
        tuple(given.languages), given.stems, given.stop_words, repr(given.low), repr(given.high), config.tokens.ignored
    )
    kind = cast("WordKind", config.sketch.kind)
    return WordRule(kind, lexicon, given.letters, given.copies, given.left_out, config.sketch.seed)


def threshold_of(config: Config) -> Threshold:
    """Return the threshold at which two sketches are near-duplicates, or candidates where texts confirm pairs."""
    pairs, sketch = config.pairs, config.sketch
    kind = kind_of(sketch)
    sample, share = kind.sample(sketch.size), candidate_share(config)
    if not sketch.verify:
        return Threshold("overlap", bands_of(config).rows, 1, is_count=True, size=sample, by_slots=kind.by_slots)
    return Threshold(
        pairs.measure,
        share.numerator,
        share.denominator,
        is_count=isinstance(pairs.threshold, int),
        size=sample,
        by_slots=kind.by_slots,
        shows_containment=kind.shows_containment,
        by_text=pairs.confirm != "none",
        exact=pairs.share if pairs.confirm == "resemblance" and kind.estimate == "smallest" else None,
    )


class GraphRule(NamedTuple):
    """How the pair graph is divided, and how the kept nodes are chosen; None means not requested."""

    share_nodes: int | None
    """A component of more nodes is cut into shares of about this many."""
    least_containment: float | None
    """Share of a document that another must contain to replace it."""
    max_lost: Fraction | None
    """Share of a document that another may lack to replace it."""


def graph_rule(config: Config) -> GraphRule:
    """Return how the pair graph is divided and kept nodes are chosen."""
    is_mined = MODES[config.clusters.mode].is_mined
    least = float(config.pairs.share) if threshold_of(config).is_containment else None
    return GraphRule(SHARE_NODES if is_mined else None, least, config.keep.most_lost)


def one_graph_rules(config: Config) -> list[str]:
    """Return the settings by which not every pair may remove a document: one task must hold the whole graph then."""
    rules = {
        "pairs.measure=containment": threshold_of(config).is_containment,
        "keep.force": config.keep.force is not None,
        "keep.max_lost": config.keep.max_lost is not None,
    }
    return [rule for rule, is_set in rules.items() if is_set]


def budget_of(config: Config) -> "Budget":
    """Return the budget of mining a component."""
    from nddup.mining.cluster_modes import Budget  # noqa: PLC0415 - a query mines nothing

    clusters = config.clusters
    return Budget(clusters.max_sets, clusters.max_members, clusters.max_nodes, clusters.support or 0)


def comparison_limits(config: Config) -> "ComparisonLimits | None":
    """Return the limits of a component's pairs and of the comparisons within a family of heavy sketches.

    None where there are no leaders: for containment, for candidates that count as pairs unverified, and for kinds whose
    pairs do not make clusters. There all sketches with a common feature are compared, however many they are.
    """
    from nddup.matching.overlap_join import ComparisonLimits  # noqa: PLC0415

    pairs = config.pairs
    if MEASURES[pairs.measure].is_directed or not config.sketch.verify or not kind_of(config.sketch).is_mined:
        return None
    return ComparisonLimits(pairs.max_edges, pairs.max_comparisons)


def bands_of(config: Config) -> Bands:
    """Return the bands and rows of LSH: as set, or chosen for the threshold so that few pairs are missed.

    Raises:
        ValueError: if bands x rows is not the size of the signature, or it is too small for a least resemblance of
            candidates, for which bands could be chosen.
    """
    sketch, n = config.sketch, config.sketch.size
    if sketch.bands is None and sketch.rows is None:
        threshold = candidate_share(config) / (n if isinstance(config.pairs.threshold, int) else 1)
        if not threshold:
            raise ValueError(
                f"sketch.size: {n} slots tell no candidates from others at pairs.threshold={config.pairs.threshold}"
                " where texts decide; take more, or give sketch.bands"
            )
        return choose_bands(n, float(min(threshold, Fraction(1))), weight_of_missed=WEIGHT_OF_MISSED)

    bands, rows = sketch.bands or n // (sketch.rows or 1), sketch.rows or n // (sketch.bands or 1)
    if bands * rows != n:
        given = f"{bands} x {rows} = {bands * rows}" if sketch.bands and sketch.rows else "do not divide it"
        raise ValueError(f"sketch.bands and sketch.rows: bands x rows must be sketch.size {n}, {given}")
    return Bands(bands, rows)


def most_ids_of(config: Config) -> int:
    """Return the number of ids of the largest possible sketch; 2^31 where the size has no limit."""
    sketch = config.sketch
    is_fixed = kind_of(sketch).estimate in {"smallest", "slots"} and sketch.growth == "fixed"
    return sketch.size if is_fixed else 1 << 31


def finder_of(config: Config) -> "Finder | None":
    """Return how the keys of a kind are made; None for a kind whose pairs are found by their common ids."""
    from nddup.sketching.minhash import Finder  # noqa: PLC0415

    finder = KINDS[config.sketch.kind].finder
    if finder == "bands":
        return Finder(*bands_of(config))
    return Finder(0, config.sketch.rows or RUN) if finder == "runs" else None


def found_exactly(sketch: SketchConfig) -> SketchConfig:
    """Return settings that make the same sketches and find every pair, without bands and unverified candidates."""
    exact = EXACT.get(sketch.kind, sketch.kind)
    permutation = sketch.permutation if exact == sketch.kind else None
    return sketch.model_copy(
        update={"kind": exact, "permutation": permutation, "bands": None, "rows": None, "verify": True}
    )


def find_conflicts(config: Config) -> list[str]:
    """Return the contradictions among settings that are valid by themselves: one message each, which names the key."""
    return [
        *_about_sketches(config.sketch),
        *_about_words(config),
        *_about_whole(config),
        *_about_pairs(config),
        *conflicts_of_texts(config),
        *_about_bands(config),
        *_about_keep(config),
        *_about_columns(config),
        *_about_onto(config),
    ]


def _about_onto(config: Config) -> list[str]:
    """Return messages on `output.onto` where the tables of a run depend on more than it could keep."""
    if not config.output.onto:
        return []
    pairs, words, kept = config.pairs, words_of(config), config.output.kept
    needs_lexicon = words is not None and words.needs_lexicon and config.lexicon.saved is None
    reasons = {
        "pairs.confirm edit compares the words of texts, in order": pairs.confirm == "edit",
        "pairs.max_document_frequency leaves out what many documents share": pairs.max_document_frequency is not None,
        f"sketch.kind {config.sketch.kind} counts the words of all documents; set lexicon.saved": needs_lexicon,
        f"sketch.kind {config.sketch.kind} compares each sketch at several levels": bool(levels_of(config)),
        "sketch.verify=false counts what meets as pairs": not config.sketch.verify,
        "input.limit ends within the inputs": config.input.limit is not None,
        f"output.kept {kept} reads all kept documents again": kept not in ("none", "as-input"),
    }
    return [f"output.onto: no later run can go on from this one: {why}" for why, holds in reasons.items() if holds]


def _about_columns(config: Config) -> list[str]:
    """Return messages on `output.weights` and `output.columns` where nothing could bear or give what they ask for."""
    output, ledger = config.output, config.keep.ledger
    if output.weights is None and output.columns is None:
        return []
    name = "columns" if output.weights is None else "weights"
    if output.kept == output.tagged == "none":
        return [f"output.{name}: stands in records that are written; set output.kept or output.tagged"]
    try:
        columns = read_columns(output.columns or [], ledger or [])
    except ValueError as error:
        return [str(error)]
    if needs_ledger(columns) and ledger is None:
        return ["output.columns: keep.ledger counts these; set it to columns of the records, such as [nddup_source]"]
    return []


def kept_columns(config: Config) -> dict[str, tuple[str, str]]:
    """Return the columns that kept records get: name -> type, and the value in SQL as in `spell_value`."""
    output = config.output
    columns = read_columns(output.columns or [], config.keep.ledger or [])
    kept = {f"nddup_{column.name}": (column.type, spell_value(column)) for column in columns}
    if output.weights is not None:
        kept["nddup_weight"] = "long", f"CAST({spell_times(output.weights, 'c.n')} AS BIGINT)"
    return kept


def _about_keep(config: Config) -> list[str]:
    """Return messages on `keep.max_lost` and `keep.force`, which not every run can promise."""
    keep, messages = config.keep, []
    if keep.max_lost is not None and config.pairs.confirm != "resemblance":
        messages.append(
            f"keep.max_lost: needs pairs.confirm resemblance, which counts what two texts share; got"
            f" {config.pairs.confirm}"
        )
    if keep.force is not None and config.clusters.mode == "partition":
        messages.append(
            "keep.force: clusters.mode partition gives every document the kept one that it duplicates; all, cover,"
            " components and none work"
        )
    if keep.force is not None and config.pairs.measure == "containment":
        messages.append("keep.force: pairs.measure containment orders documents by what they hold; use another measure")
    return messages


def _permutation(sketch: SketchConfig) -> str:
    return sketch.permutation or ("datasketch" if sketch.kind == "minhash" else "mix")


def _about_sketches(sketch: SketchConfig) -> list[str]:
    """Return messages on keys of the section `sketch` that the kind does not use, or cannot combine."""
    given = {
        "modulus": sketch.modulus is not None,
        "bands": sketch.bands is not None,
        "rows": sketch.rows is not None,
        "verify": not sketch.verify,
        "tagged": not sketch.tagged,
        "growth": sketch.growth != "fixed",
    }
    options = KINDS[sketch.kind].options
    messages = [
        f"sketch.{key}: kind {sketch.kind} takes none; {_kinds_with(key)} does"
        for key, is_given in given.items()
        if is_given and key not in options
    ]

    if sketch.kind == "super" and (sketch.rows or RUN) > sketch.size:
        messages.append(f"sketch.rows: a run has at most sketch.size {sketch.size} ids, got {sketch.rows or RUN}")
    if sketch.kind == "min-s" and sketch.modulus is not None and sketch.growth != "linear":
        messages.append(f"sketch.modulus: kind min-s takes it only with growth linear, got {sketch.growth}")
    if sketch.bits is not None and sketch.fingerprint != "rabin":
        messages.append(f"sketch.bits: only for Rabin's fingerprint; sketch.fingerprint is {sketch.fingerprint}")
    if _permutation(sketch) == "datasketch":
        from nddup.sketching.minhash import DATASKETCH_SEEDS  # noqa: PLC0415

        if sketch.kind != "minhash":
            messages.append(f"sketch.permutation: datasketch needs kind minhash, got kind {sketch.kind}")
        elif sketch.seed >= DATASKETCH_SEEDS:
            messages.append(f"sketch.seed: datasketch takes seeds below 2**32, got {sketch.seed}")
    return messages


def _about_words(config: Config) -> list[str]:
    """Return messages on settings of shingles for a kind of words, and of words for a kind of shingles."""
    kind, lexicon = KINDS[config.sketch.kind], config.lexicon

    # The kinds that use each key of `lexicon`; every kind of words uses the keys that are not listed.
    able = {"letters": ["keywords"], "copies": ["i-match"], "left_out": ["i-match"]}
    able |= {key: ["lexicon", "i-match"] for key in ("low", "high", "saved")}
    of_words = [name for name, other in KINDS.items() if other.is_of_words]

    messages = [
        f"lexicon.{key}: kind {kind.name} takes none; {' or '.join(able.get(key, of_words))} does"
        for key in _changed(lexicon)
        if kind.name not in able.get(key, of_words)
    ]

    if kind.is_of_words:
        keys = [f"shingle.{key}" for key in _changed(config.shingle)]
        keys += [f"sketch.{key}" for key in _changed(config.sketch) if key in SHINGLED]
        keys += ["sketch.seed"] if config.sketch.seed != 1 and kind.name != "i-match" else []
        messages += [f"{key}: kind {kind.name} is of words, not of shingles: it takes none" for key in keys]
    if lexicon.low >= lexicon.high:
        messages.append(f"lexicon.low: must be less than lexicon.high {lexicon.high}, got {lexicon.low}")
    return messages


def _about_whole(config: Config) -> list[str]:
    """Return messages on settings of samples, and a count as threshold, for the kind `whole` of equal texts."""
    if config.sketch.kind != "whole":
        return []
    keys = [f"shingle.{key}" for key in _changed(config.shingle) if key != "unit"]
    keys += [f"sketch.{key}" for key in _changed(config.sketch) if key in SHINGLED | {"seed"}]
    keys += ["pairs.threshold"] if isinstance(config.pairs.threshold, int) else []
    return [f"{key}: kind whole compares whole texts: it takes none" for key in keys]


def processes_of(config: Config) -> int:
    """Return the number of worker processes and threads: as set, else the cores this process may use."""
    return config.local.processes or len(os.sched_getaffinity(0))


def is_usual(config: Config) -> bool:
    """Return whether a run calls the kernels of the default settings alone (`nddup.compiling.install.USUAL`)."""
    others = [key for section in (config.sketch, config.lexicon, config.clusters) for key in _changed(section)]
    others += set(_changed(config.pairs)) - {"threshold", "confirm"}
    is_default = config.pairs.confirm == "resemblance" and config.shingle.unit == "word"
    return is_default and not others and config.keep.max_lost is None


def _changed(section: BaseModel) -> list[str]:
    """Return the keys of a section whose values differ from their defaults."""
    fields = type(section).model_fields
    return [key for key in fields if getattr(section, key) != fields[key].get_default()]


def _kinds_with(option: str) -> str:
    return " or ".join(name for name, kind in KINDS.items() if option in kind.options)


def _about_pairs(config: Config) -> list[str]:
    """Return messages on measures and cluster modes that the kind does not support."""
    sketch, measure = config.sketch, config.pairs.measure
    kind = kind_of(sketch)

    messages = []
    if measure in kind.refused:
        able = " or ".join(name for name, other in KINDS.items() if measure not in other.refused)
        messages.append(f"pairs.measure: {measure} needs kind {able}; a {kind.name} sketch {kind.refused[measure]}")
    if config.pairs.max_document_frequency is not None and not kind.is_of_shingles:
        messages.append(f"pairs.max_document_frequency: an id of a {kind.name} sketch stands for no single shingle")
    if sketch.growth != "fixed" and MEASURES[measure].is_estimated:
        messages.append(
            f"pairs.measure: sketches of {sketch.growth} growth are samples of different rates, which show no"
            " resemblance; overlap works"
        )

    why = NO_CLUSTERS if not kind.is_mined or MEASURES[measure].is_directed else ""
    why = why or ("" if sketch.verify else "candidates that are not verified do not make maximal sets")
    if why and config.clusters.mode not in DIVIDING:
        messages.append(
            f"clusters.mode: {why}; {', '.join(DIVIDING[:-1])} and {DIVIDING[-1]} work, got {config.clusters.mode}"
        )
    return messages


def _about_bands(config: Config) -> list[str]:
    if KINDS[config.sketch.kind].finder != "bands":
        return []
    try:
        bands_of(config)
    except ValueError as error:
        return [str(error)]
    return []


def levels_of(config: Config) -> int:
    """Return `sketch.size` where the modulus of a sketch follows the document's length; else 0."""
    return config.sketch.size if kind_of(config.sketch).estimate == "levels" else 0


def text_rule(config: Config) -> "TextRule":
    """Return the rule by which a record becomes text."""
    from nddup.scanning.found import TextRule  # noqa: PLC0415

    return TextRule(config.input.markup, config.input.charset, config.input.text)


def sketch_rule(config: Config, *, lexicon: bytes = b"", left_out: bytes = b"") -> "SketchRule":
    """Return the rule by which a text becomes a sketch; `lexicon` and `left_out` hold ids, ascending uint64."""
    from nddup.scanning.found import SketchRule  # noqa: PLC0415

    recipe, text, confirm = recipe_of(config), text_rule(config), config.pairs.confirm
    return SketchRule(recipe, text, config.input.min_tokens, left_out, lexicon, confirm)


def record_limits(config: Config) -> "RecordLimits":
    """Return the limit of a record's size."""
    from nddup.scanning.found import RecordLimits  # noqa: PLC0415

    return RecordLimits(int(config.input.max_record))
