"""Kinds of mistake that readers judged: as the page on thresholds tells them, and as runs decide them."""

from typing import Any

import pyarrow as pa
import pytest

import nddup
from nddup.explaining.effects import explain_settings
from nddup.settings.load import load_config
from tests.counted_rows import once
from tests.explaining.kinds_of_mistake import EXAMPLES, MEASURES
from tests.places import ROOT

PAGE = (ROOT / "docs" / "howto" / "choose-a-threshold.md").read_text(encoding="utf-8")


def test_the_page_tells_what_each_measure_says() -> None:
    """The page has a row for each example, with the three measures of its texts and the reader's judgement."""
    for name, example in EXAMPLES.items():
        told = [f"{measure(example.first, example.second):.2f}" for measure in MEASURES.values()]
        assert f"| {name} | {' | '.join(told)} | {example.reader} |" in PAGE


@pytest.mark.parametrize("profile", ["none", "edit"])
def test_runs_decide_as_the_measures_say(profile: str) -> None:
    """Runs pair the texts of an example iff its measure reaches the threshold, by resemblance or by edit similarity."""
    texts = {f"{name}/{side}": text for name, one in EXAMPLES.items() for side, text in enumerate(one[:2])}
    table = pa.table({"id": list(texts), "text": list(texts.values())})
    pairs: Any = {"threshold": 0.6} if profile == "none" else {"threshold": 0.4, "confirm": "edit"}
    measure, least = (MEASURES["resemblance"], 0.6) if profile == "none" else (MEASURES["edit"], 0.77)

    run = nddup.find_duplicates(table, pairs=pairs)

    found = once((row["doc_a"], row["doc_b"]) for row in run.pairs.to_pylist())
    assert found == {
        (f"{name}/0", f"{name}/1") for name, one in EXAMPLES.items() if measure(one.first, one.second) >= least
    }


def test_explain_tells_the_figures_and_warns() -> None:
    """The readers' figures are shown for shingles of words, with warnings for containment and for rare shingles."""
    plain = explain_settings(load_config()).text()
    reader = explain_settings(load_config("reader")).text()
    away = ["sketch.kind=mod-m", "pairs.measure=containment", "clusters.mode=partition",
            "pairs.max_document_frequency=5"]  # fmt: skip
    warned = explain_settings(load_config(None, away)).text()
    words = explain_settings(load_config("dd2014")).text()

    assert "--config reader confirms pairs by their texts: F1 .83" in plain
    assert "pairs: resemblance at least 0.4, texts of edit similarity 0.77" in reader
    assert "Confirmed by their texts at edit similarity 0.77: F1 .83" in reader
    assert "pairs.measure containment moves away" in warned
    assert "A low pairs.max_document_frequency does too" in warned
    assert "readers judged" not in words
