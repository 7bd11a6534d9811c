"""What the settings say of reading: how a record becomes text and a sketch, and what it may take."""

from nddup.scanning.found import Limits
from nddup.scanning.rules import SketchRule, TextRule
from nddup.settings.derive import recipe_of
from nddup.settings.schema import Config


def text_rule(config: Config) -> TextRule:
    """How a record becomes text."""
    return TextRule(config.input.markup, config.input.charset, config.input.text)


def sketch_rule(config: Config, *, lexicon: bytes = b"") -> SketchRule:
    """How a text becomes a sketch; `lexicon` are the ids of its terms, ascending uint64."""
    by_text = config.pairs.confirm != "none"
    return SketchRule(recipe_of(config), text_rule(config), config.input.min_tokens, lexicon=lexicon, by_text=by_text)


def limits_of(config: Config) -> Limits:
    """What a record may take."""
    return Limits(int(config.input.max_record), config.input.max_expansion)
