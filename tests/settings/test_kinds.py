"""Settings of the kinds: contradictory choices are refused, and defaults depend on the kind."""

from typing import Any

import pytest

from nddup.errors import ConfigError
from nddup.settings.load import build_config, load_config
from nddup.settings.plan import bands_of, recipe_of, threshold_of

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"sketch.size": 0}, "sketch.size: .*greater than or equal to 1"),
    ({"shingle.length": 0}, "shingle.length: .*greater than or equal to 1"),
    ({"sketch.modulus": 4}, "sketch.modulus: kind min-s takes it only with growth linear"),
    ({"sketch.kind": "mod-m", "sketch.modulus": 0}, "sketch.modulus: .*greater than or equal to 1"),
    ({"sketch.kind": "mod-m", "sketch.bands": 4}, "sketch.bands: kind mod-m takes none; minhash does"),
    ({"sketch.kind": "mod-m", "sketch.growth": "linear"}, "sketch.growth: kind mod-m takes none"),
    ({"sketch.tagged": False}, "sketch.tagged: kind min-s takes none; min-perm does"),
    ({"sketch.kind": "minhash", "sketch.bands": 20, "sketch.rows": 5}, "must be sketch.size 200, 20 x 5 = 100"),
    ({"sketch.kind": "minhash", "sketch.rows": 7}, "bands x rows must be sketch.size 200, do not divide it"),
    (
        {"sketch.kind": "minhash", "sketch.size": 16, "pairs.threshold": 0.3, "pairs.confirm": "resemblance"},
        "sketch.size: 16 slots tell no candidates from others at pairs.threshold=0.3 .*; take more, or give",
    ),
    ({"sketch.bits": 40}, "sketch.bits: only for Rabin's fingerprint; sketch.fingerprint is rolling"),
    ({"sketch.fingerprint": "rabin", "sketch.bits": 64}, "sketch.bits: .*less than or equal to 63"),
    ({"sketch.permutation": "datasketch"}, "datasketch needs kind minhash, got kind min-s"),
    ({"sketch.kind": "minhash", "sketch.seed": 2**32}, "datasketch takes seeds below 2"),
    ({"pairs.measure": "containment"}, "containment needs kind mod-m.*not a containment"),
    ({"sketch.kind": "mod-m", "pairs.measure": "containment"}, "clusters.mode: .*partition, components and none work"),
    ({"sketch.kind": "minhash", "sketch.verify": False, "clusters.mode": "cover"}, "clusters.mode: candidates that"),
    ({"sketch.kind": "mod-pow2"}, "clusters.mode: its pairs do not make maximal sets"),
    ({"sketch.kind": "super", "sketch.size": 7}, "a run has at most sketch.size 7 ids, got 8"),
    ({"sketch.kind": "minhash", "pairs.max_document_frequency": 9}, "stands for no single shingle"),
    ({"pairs.max_document_frequency": 1.5}, "pairs.max_document_frequency: a share must lie in"),
    ({"pairs.max_document_frequency": 0}, "pairs.max_document_frequency: a count must be at least 1, got 0"),
    ({"sketch.growth": "logarithmic"}, "different rates, which show no resemblance; overlap works"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG, ids=[" ".join(given) for given, _ in WRONG])
def test_a_choice_that_contradicts_is_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        load_config(None, [f"{key}={value}" for key, value in settings.items()])

    assert "\n" not in str(refused.value)


def test_what_is_not_given_follows_the_kind() -> None:
    config = build_config({"sketch": {"kind": "minhash", "size": 128}, "pairs": {"threshold": 0.5}}, origin="test")

    bands = bands_of(config)

    assert recipe_of(config).permutation == "datasketch"
    assert threshold_of(config).size == 128
    assert threshold_of(config).by_slots
    assert bands.bands * bands.rows <= 128
