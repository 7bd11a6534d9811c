"""The identity of a repository, fixed at `create`: settings, mode, lowest threshold; and the proof that sketches agree.

Sketches can be compared only with sketches of the same recipe and format. Opening a repository sketches eight fixed
texts and compares the digest of their ids with the one stored at `create`: a library or machine that gives other ids is
refused before it adds anything.
"""

import hashlib
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from nddup.embedded.read_records import take_saved
from nddup.errors import ConfigError, OutputError
from nddup.matching.lookups import Matching
from nddup.matching.measures import MEASURES
from nddup.matching.preference import DATED
from nddup.matching.threshold import Threshold
from nddup.mining.modes import MODES
from nddup.reading.outcomes import Record
from nddup.repository.segment_files import EXACT_LAYOUT, LAYOUT
from nddup.scanning.found import SketchRule, text_buffers
from nddup.scanning.sketch_records import sketch_texts
from nddup.settings import plan
from nddup.settings.load import read_stored
from nddup.settings.plan import sketch_rule
from nddup.settings.schema import Config, KeepConfig
from nddup.settings.sections import plain_value
from nddup.settings.stored import CALLERS
from nddup.sketching.tokens import FULL_FORMAT

TEXTS = (
    "",
    "word",
    "The quick brown fox jumps over the lazy dog, and the dog does not mind at all.",
    "Роза есть роза есть роза. Ёлка, йод и подъезд: все буквы на месте.",
    "日本語の文章は、単語の間に空白がありません。漢字、ひらがな、カタカナ。",
    "<html><head><title>A page</title></head><body><p>Text &amp; markup, with a <b>tag</b> or two.</body></html>",
    "Numbers 1, 22, 333 and 3.1415; e-mail name@example.org; naïve café, STRASSE and straße.",
    " ".join(f"word{n % 97} goes with number {n * n % 1009}" for n in range(400)),
)
"""Eight texts that exercise every rule of reading and sketching: scripts, markup, digits, accents, length."""


CHARACTERS = 1_000
"""Default number of characters of each document's text stored for reports."""

CHOICES = {"mode": ("rebuild", "frozen"), "store": ("all", "kept")}
"""The values of `mode` and `store`, the default first."""

MOST_CHARACTERS = 1 << 28
"""Characters stored for a batch, all documents together."""


@dataclass(frozen=True)
class Identity:
    """What never changes in a repository.

    Attributes:
        config: all settings; those that say how and where to compute are the caller's, and never stored.
        mode: `rebuild` or `frozen`.
        store: `all` or `kept`.
        lowest: the lowest threshold that a query may ask for.
        texts: characters of each document's text that are kept for reports.
    """

    config: Config
    mode: str
    store: str
    lowest: int | float
    texts: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether the resemblance of all shingles decides, which are then stored; else the sketches decide."""
        return self.config.pairs.confirm == "resemblance"

    @property
    def is_front(self) -> bool:
        """Whether a sketch is the front of its shingle ids: of all, where it has as many ids as its document."""
        return plan.kind_of(self.config.sketch).estimate == "smallest"

    @property
    def layout(self) -> int:
        """The version of the tables and commit files."""
        return EXACT_LAYOUT if self.is_exact else LAYOUT

    @cached_property
    def matching(self) -> Matching:
        """How the sketches of a segment meet: at the lowest threshold."""
        return self.matching_at(self.lowest)

    def matching_at(self, threshold: float | Fraction) -> Matching:
        """Return how sketches meet at another threshold, which must not be below the lowest.

        Where all shingles decide, sketches that meet are candidates for it.
        """
        share, levels = share_of(threshold), plan.levels_of(self.config)
        if self.is_exact:
            share = plan.candidates_at(share, self.config)
        candidates = threshold_at(plan.threshold_of(self.config), share)
        if candidates.exact is not None:
            candidates = replace(candidates, exact=share_of(threshold))
        return Matching(candidates, plan.finder_of(self.config), levels)

    @cached_property
    def sketching(self) -> SketchRule:
        """How records become sketches, including the saved lexicon."""
        words, saved = plan.words_of(self.config), self.config.lexicon.saved
        if words is None or saved is None:
            return sketch_rule(self.config)
        table, _ = take_saved(saved, words)
        return sketch_rule(self.config, lexicon=np.sort(table["feature"].to_numpy().view(np.uint64)).tobytes())

    def on(self, caller: Config | None) -> Self:
        """Return the same identity, computing as the settings of a caller say: engine, memory, processes and Spark."""
        settings = {} if caller is None else {name: getattr(caller, name) for name in CALLERS}
        return replace(self, config=self.config.model_copy(update=settings))

    def proof(self) -> str:
        """Return the SHA-256 of the sketches of `TEXTS`, as hex."""
        texts = [self.sketching.text.read(Record("x", None, (text,), None))[0] for text in TEXTS]
        made = sketch_texts(*text_buffers(texts), self.sketching)
        digest = hashlib.sha256(made.offsets.astype("<i8").tobytes() + made.ids.astype("<u8").tobytes())
        return digest.hexdigest()

    def note(self) -> dict[str, Any]:
        """Return the identity as a commit records it."""
        from nddup.stages.stage import settings_of  # noqa: PLC0415 - only `create` writes it

        return {
            "layout": self.layout,
            "byte_order": sys.byteorder,
            "sketch_format": FULL_FORMAT,
            "recipe": plan.recipe_of(self.config).key,
            "mode": self.mode,
            "store": self.store,
            "lowest": self.lowest,
            "texts": self.texts,
            "settings": {key: value for key, value in settings_of(self.config).items() if key not in CALLERS},
            "proof": self.proof(),
        }

    @classmethod
    def read(cls, note: Mapping[str, Any], *, repo: str) -> Self:
        """Read the identity from a commit, and check that this nddup on this machine can continue with it.

        Raises:
            OutputError: if layout, byte order, sketch format, recipe or proof differ.
            ConfigError: for settings that this version does not know.
        """
        require_format(note, repo=repo)
        config = read_stored(note["settings"], origin=repo)
        identity = cls(config, note["mode"], note["store"], note["lowest"], note["texts"])
        if plan.recipe_of(config).key != note["recipe"]:
            raise OutputError(f"{repo}: its recipe is [{note['recipe']}], its settings give another")
        require_possible(identity)
        if identity.proof() != note["proof"]:
            raise OutputError(
                f"{repo}: eight fixed texts give other sketches here than where it was made; nothing can be compared"
            )
        return identity


def require_format(note: Mapping[str, Any], *, repo: str) -> None:
    """Refuse a repository that another version of nddup, or a machine of another kind, has made.

    Raises:
        OutputError: naming what differs.
    """
    for name, ours in (("layout", (LAYOUT, EXACT_LAYOUT)), ("byte_order", (sys.byteorder,))):
        if note.get(name) not in ours:
            expected = " or ".join(map(str, ours))
            raise OutputError(
                f"{repo}: its {name.replace('_', ' ')} is {note.get(name)}, expected {expected}: of another version or"
                " machine; create another repository and add the inputs to it"
            )
    if note["sketch_format"] != FULL_FORMAT:
        raise OutputError(
            f"{repo}: its sketches are of format {note['sketch_format']}, this version makes {FULL_FORMAT}"
        )


def new_identity(
    config: Config, *, mode: str = "rebuild", store: str = "all", lowest: float | None = None, texts: int | None = None
) -> Identity:
    """Return the identity of a new repository; the arguments are those of `nddup.repository.create`.

    Raises:
        ConfigError: for another mode or store, for a number that is none, for less than 0 characters of texts, or more
            than are stored for a batch.
    """
    for name, value in (("mode", mode), ("store", store)):
        if value not in CHOICES[name]:
            raise ConfigError(f"--{name} {value}: expected {' or '.join(CHOICES[name])}")
    least = plain_value(config.pairs.threshold if lowest is None else lowest)
    if type(least) not in (int, float):
        raise ConfigError(f"--lowest {lowest}: expected a number such as 0.6")
    characters = plain_value(CHARACTERS if texts is None else texts)
    if type(characters) is not int or not 0 <= characters <= MOST_CHARACTERS:
        raise ConfigError(f"--texts {texts}: expected 0 to {MOST_CHARACTERS:,} characters")
    return Identity(config, mode, store, least, characters)


def share_of(value: float | Fraction) -> Fraction:
    """Return a threshold as a fraction, exact as written."""
    return value if isinstance(value, Fraction) else Fraction(repr(value))


def threshold_at(threshold: Threshold, share: Fraction) -> Threshold:
    """Return the same measure with another threshold."""
    return replace(threshold, numerator=share.numerator, denominator=share.denominator)


def require_possible(identity: Identity) -> None:
    """Refuse settings under which adding would not equal a fresh run.

    Raises:
        ConfigError: one line that names the setting.
    """
    config, mode = identity.config, identity.mode
    kind, pairs = config.sketch.kind, config.pairs
    if kind in ("lexicon", "i-match") and config.lexicon.saved is None:
        raise ConfigError(
            f"sketch.kind {kind}: its words depend on the whole collection; give lexicon.saved, a run whose lexicon"
            " is used"
        )
    if pairs.max_document_frequency is not None:
        raise ConfigError("pairs.max_document_frequency: the shingles left out depend on the whole collection")
    if config.input.limit is not None:
        raise ConfigError("input.limit: a batch is added whole; give fewer files")
    if pairs.confirm == "edit":
        raise ConfigError("pairs.confirm: edit compares whole texts, of which a repository stores none")
    _require_stored_policy(config.keep)
    if not config.sketch.verify:
        raise ConfigError("sketch.verify: candidates that are not compared cannot be stored; leave it true")
    if mode == "frozen" and MEASURES[pairs.measure].is_directed:
        raise ConfigError("--mode frozen: pairs.measure containment prefers the largest document, which may come later")
    if mode == "frozen" and MODES[config.clusters.mode].follows_keep:
        raise ConfigError(
            f"--mode frozen: clusters.mode {config.clusters.mode} needs duplicates that follow their nearest document"
        )
    if mode == "frozen" and config.keep.same is not None:
        raise ConfigError("--mode frozen: keep.same needs the order of the policy; use --mode rebuild")
    if identity.store == "kept" and mode != "frozen":
        raise ConfigError("--store kept: needs --mode frozen; what is not stored cannot be kept later")
    _require_lowest(identity)


def _require_stored_policy(keep: KeepConfig) -> None:
    if keep.max_lost is not None or keep.force is not None:
        raise ConfigError("keep.max_lost and keep.force: a repository keeps by its policy alone; give them to a run")
    if keep.policy in DATED:
        raise ConfigError(f"keep.policy {keep.policy}: the dates of captures are not stored; a column of dates is")


def _require_lowest(identity: Identity) -> None:
    lowest, pairs = identity.lowest, identity.config.pairs
    if isinstance(lowest, int) != isinstance(pairs.threshold, int):
        raise ConfigError(f"--lowest {lowest}: expected a {'count' if isinstance(pairs.threshold, int) else 'share'},"
                          f" as pairs.threshold {pairs.threshold}")  # fmt: skip
    if not (0 < lowest < math.inf) or Fraction(repr(lowest)) > pairs.share:
        raise ConfigError(f"--lowest {lowest}: expected more than 0 and at most pairs.threshold {pairs.threshold}")
    if identity.matching.finder is not None and lowest != pairs.threshold:
        raise ConfigError(
            f"--lowest {lowest}: kind {identity.config.sketch.kind} finds pairs by keys made for pairs.threshold"
            f" {pairs.threshold}; a lower one cannot be asked for"
        )
