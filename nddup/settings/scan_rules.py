"""The settings of reading: how a record becomes text and a sketch, and how large it may be."""

from nddup.scanning.found import Limits
from nddup.scanning.rules import SketchRule, TextRule
from nddup.settings.derive import recipe_of
from nddup.settings.schema import Config


def text_rule(config: Config) -> TextRule:
    """Return the rule by which a record becomes text."""
    return TextRule(config.input.markup, config.input.charset, config.input.text)


def sketch_rule(config: Config, *, lexicon: bytes = b"") -> SketchRule:
    """Return the rule by which a text becomes a sketch; `lexicon` holds the ids of its terms, ascending uint64."""
    by_text = config.pairs.confirm != "none"
    return SketchRule(recipe_of(config), text_rule(config), config.input.min_tokens, lexicon=lexicon, by_text=by_text)


def limits_of(config: Config) -> Limits:
    """Return the limits of a record's size and of a file's expansion."""
    return Limits(int(config.input.max_record), config.input.max_expansion)
