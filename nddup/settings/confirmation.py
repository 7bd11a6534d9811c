"""The settings of the confirmation of pairs by their texts (`pairs.confirm`)."""

from fractions import Fraction

from nddup.matching.edit_rule import EditRule
from nddup.settings.schema import Config


def edit_rule_of(config: Config) -> EditRule | None:
    """Return the rule by which the texts of a pair of sketches confirm it; None where the sketches decide."""
    if config.pairs.confirm == "none":
        return None
    share = Fraction(repr(config.pairs.edit_threshold))
    return EditRule(share.numerator, share.denominator)


def conflicts_of_texts(config: Config) -> list[str]:
    """Return the settings that confirmation by texts cannot be combined with: one message each, which names the key."""
    pairs = config.pairs
    if pairs.confirm == "none":
        is_changed = pairs.edit_threshold != type(pairs).model_fields["edit_threshold"].get_default()
        return ["pairs.edit_threshold: needs pairs.confirm edit"] if is_changed else []

    found = []
    if pairs.measure == "containment":
        found.append("pairs.confirm: edit compares whole texts; with containment, one text is only a part of the other")
    if not config.sketch.verify:
        found.append("pairs.confirm: edit needs sketch.verify: the sketches of a pair are compared before its texts")
    return found
