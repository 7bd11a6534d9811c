"""`pairs.confirm: resemblance`: which kinds and settings allow it, and what the sketches then have to reach."""

from fractions import Fraction
from typing import Any

import pytest

from nddup.errors import ConfigError
from nddup.settings.load import build_config
from nddup.settings.plan import bands_of, threshold_of
from nddup.sketching.minhash import Bands

EXACT = {"confirm": "resemblance"}


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
