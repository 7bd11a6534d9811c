"""The model of `metrics.json`: current files, files of earlier versions, and invalid files.

`tests/results/test_every_kind.py` reads and writes the files of real runs through it.
"""

import json
from typing import Any

import pytest

from nddup.errors import OutputError
from nddup.ground.metrics import RunMetrics

STAGE = {"rows_in": {"pairs": 3}, "rows_out": {}, "seconds": 1.25, "shuffle_bytes": 17, "resumed": ["matches"]}

LEAST: dict[str, Any] = {
    "records": 4,
    "rows": {"documents": 3, "rejects": 1, "pairs": 3, "clusters": 1, "keep": 3},
    "empty_sketches": 0,
    "below_count": 0,
    "equal_sketches": 2,
    "stages": {"sketch": {}, "pairs": {}, "clusters": {}, "keep": {}},
    "settings": {"pairs": {"measure": "overlap", "threshold": 85}, "spark": {"spark.x": None}},
    "versions": {"nddup": "0.1.0"},
}
"""The keys that every version wrote."""


def test_a_count_that_the_file_lacks_is_nothing() -> None:
    """A count that a file lacks is read as zero; the stage `texts` and the lexicon may be missing in any version."""
    metrics = RunMetrics.read(json.dumps(LEAST))

    assert metrics.stages.pairs.candidates == 0
    assert metrics.stages.sketch.skipped_files == []
    assert metrics.stages.sketch.lexicon is None
    assert list(metrics.stages.by_name()) == ["sketch", "pairs", "clusters", "keep"]
    assert metrics.seconds == 0


def test_what_is_read_is_written_in_the_order_of_the_model() -> None:
    """A file is written as it was read, with keys in the order of the model and none for what the run lacks."""
    stages = {"sketch": STAGE, "pairs": {**STAGE, "candidates": 9}, "clusters": {}, "keep": {"kept": 1, "removed": 2},
              "texts": {"clusters": 1}}  # fmt: skip

    metrics = RunMetrics.read({**LEAST, "stages": stages})
    dumped = metrics.dump()

    assert RunMetrics.read(json.dumps(dumped)) == metrics
    assert list(dumped) == list(LEAST)
    assert dumped["settings"] == LEAST["settings"]
    assert type(dumped["settings"]["pairs"]["threshold"]) is int
    assert list(dumped["stages"]["sketch"])[:5] == list(STAGE)
    assert dumped["stages"]["pairs"]["candidates"] == 9
    assert "lexicon" not in dumped["stages"]["sketch"]
    assert metrics.seconds == 2.5


def test_a_key_of_another_version_is_left_out() -> None:
    """A file may have unknown keys, which are dropped; a model may not be created with one."""
    metrics = RunMetrics.read({**LEAST, "stages": {**LEAST["stages"], "pairs": {"gone": 1}}, "more": 2})

    assert metrics == RunMetrics.read(LEAST)
    with pytest.raises(ValueError, match="pairs_found"):
        RunMetrics.model_validate({**LEAST, "pairs_found": 2})


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{", "run/metrics.json: expected JSON, got Expecting property name"),
        ("[]", "run/metrics.json: the file: Input should be"),
        ({**LEAST, "records": "4"}, "run/metrics.json: records: Input should be a valid integer"),
        ({**LEAST, "rows": {"documents": 3}}, "run/metrics.json: rows.clusters: Field required"),
        ({**LEAST, "rows": {"pairs": 0.5}}, "run/metrics.json: rows.pairs: Input should be a valid integer"),
        ({**LEAST, "stages": {"sketch": {}}}, "run/metrics.json: stages.pairs: Field required"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(source: str | dict[str, Any], said: str) -> None:
    """An invalid file is refused in one line that names the file and the first wrong key."""
    with pytest.raises(OutputError) as refused:
        RunMetrics.read(source, origin="run/metrics.json")

    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)
