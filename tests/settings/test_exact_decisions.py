"""`pairs.confirm: resemblance`: which kinds and settings allow it, and what the sketches then have to reach."""

from fractions import Fraction
from typing import Any

import pytest

from nddup.errors import ConfigError
from nddup.evaluating.sweep import read_grid
from nddup.explaining.effects import explain_settings
from nddup.settings.load import build_config, read_stored
from nddup.settings.plan import bands_of, threshold_of
from nddup.settings.schema import Config, say_estimated
from nddup.sketching.minhash import Bands

EXACT = {"confirm": "resemblance"}

ESTIMATED: list[tuple[dict[str, Any], str]] = [
    ({"pairs": {"measure": "overlap"}}, "pairs.measure overlap"),
    ({"pairs": {"measure": "containment"}, "sketch": {"kind": "mod-m"}, "clusters": {"mode": "none"}},
     "pairs.measure containment"),
    ({"pairs": {"max_document_frequency": 5}}, "pairs.max_document_frequency 5"),
    ({"sketch": {"kind": "mod-m"}}, "sketch.kind mod-m"),
    ({"sketch": {"kind": "minhash"}}, "sketch.kind minhash"),
    ({"pairs": {"measure": "overlap"}, "sketch": {"growth": "linear", "modulus": 25}}, "pairs.measure overlap"),
    ({"pairs": {"confirm": "none"}}, "pairs.confirm none"),
]  # fmt: skip
"""Settings whose sketches decide, and the one that is named as the reason."""


@pytest.mark.parametrize("kind", ["min-s", "super", "min-perm", "minhash"])
def test_candidates_lie_a_margin_below_the_threshold(kind: str) -> None:
    """Of 200 ids 119 are enough at 0.7; the threshold of the texts stays as it was written."""
    config = build_config({"pairs": EXACT, "sketch": {"kind": kind}}, origin="test")

    threshold = threshold_of(config)

    assert Fraction(threshold.numerator, threshold.denominator) == Fraction(119, 200)
    assert threshold.by_text
    assert config.pairs.share == Fraction(7, 10)


def test_bands_are_chosen_for_the_candidates() -> None:
    """Bands of a lower threshold have fewer rows: else the keys would miss what the margin lets through."""
    exact, estimated = (
        build_config({"pairs": {"confirm": confirm}, "sketch": {"kind": "minhash"}}, origin="test")
        for confirm in ("resemblance", "none")
    )

    assert bands_of(exact).rows < bands_of(estimated).rows
    assert isinstance(bands_of(exact), Bands)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pairs": {**EXACT, "measure": "overlap", "threshold": 85}}, "needs pairs.measure resemblance, got overlap"),
        ({"pairs": EXACT, "sketch": {"kind": "mod-m"}}, "got mod-m"),
        ({"pairs": EXACT, "sketch": {"kind": "mod-pow2"}, "clusters": {"mode": "none"}}, "got mod-pow2"),
        ({"pairs": EXACT, "sketch": {"kind": "whole"}}, "got whole"),
        ({"pairs": EXACT, "sketch": {"kind": "lexicon"}}, "got lexicon"),
        ({"pairs": EXACT, "sketch": {"kind": "min-perm", "tagged": False}}, "tagged min-perm; got min-perm"),
        ({"pairs": {**EXACT, "max_document_frequency": 5}}, "max_document_frequency leaves some out"),
        ({"pairs": EXACT, "sketch": {"kind": "minhash", "verify": False}, "clusters": {"mode": "none"}},
         "needs sketch.verify"),
        ({"pairs": {**EXACT, "edit_threshold": 0.8}}, "edit_threshold: needs pairs.confirm edit"),
    ],
)  # fmt: skip
def test_what_cannot_be_exact_is_refused(settings: dict[str, Any], said: str) -> None:
    """Kinds that sample no resemblance, other measures and left-out shingles are refused in a line."""
    with pytest.raises(ConfigError, match=said):
        build_config(settings, origin="test")


def test_all_shingles_decide_unless_a_setting_prevents_it() -> None:
    """Exact decisions are the default for min-s; an earlier version stored no such key, and its sketches decided."""
    stored = Config().model_dump(exclude={"engine", "local", "spark"})

    assert Config().pairs.confirm == build_config({}, origin="test").pairs.confirm == "resemblance"
    assert read_stored(stored, origin="test") == Config()
    del stored["pairs"]["confirm"]
    assert read_stored(stored, origin="test").pairs.confirm == "none"
    assert build_config({"pairs": {"confirm": "auto"}}, origin="test").pairs == Config().pairs


@pytest.mark.parametrize(("settings", "why"), ESTIMATED)
def test_where_sketches_decide_the_setting_is_named(settings: dict[str, Any], why: str) -> None:
    """A setting that makes exact decisions impossible is no error: sketches decide, and `explain` says why."""
    config = build_config(settings, origin="test")

    assert config.pairs.confirm == "none"
    assert say_estimated(dict(config.pairs), dict(config.sketch)) == f", by sketches alone: {why}"
    assert f"by sketches alone: {why}" in "\n".join(explain_settings(config).lines)


@pytest.mark.parametrize("kind", ["whole", "lexicon", "i-match", "keywords"])
def test_a_sketch_of_the_whole_text_is_no_estimate(kind: str) -> None:
    """Kinds of words, and of equal texts, decide by themselves, and nothing is said of an estimate."""
    config = build_config({"sketch": {"kind": kind}, "clusters": {"mode": "none"}}, origin="test")

    assert config.pairs.confirm == "none"
    assert not say_estimated(dict(config.pairs), dict(config.sketch))


def test_what_decides_is_chosen_for_each_combination_of_a_grid() -> None:
    """A grid over kinds, from settings that leave it open, is exact where it can be; no combination is refused."""
    points = read_grid("sketch.kind: [min-s, mod-m]", origin="test", base=Config())

    assert [point.config and point.config.pairs.confirm for point in points] == ["resemblance", "none"]
