"""`nddup check` of collections whose pairs lie just below the threshold: it costs what pairs cost."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from nddup.checking import evidence
from nddup.checking.check_run import check_run
from nddup.checking.evidence import Evidence
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.settings.load import build_config
from tests.results.damages import rewrite

PAIRS = "pairs: the near-duplicates, all and only, with overlap and resemblance"
MISSED = "pairs: no more are missed by the sketches than expected"


def make_run(folder: Path, texts: Iterator[str]) -> Path:
    """Make a run over texts, d0, d1 and so on."""
    lines = [json.dumps({"id": f"d{i}", "text": text}) for i, text in enumerate(texts)]
    (folder / "texts.jsonl").write_text("\n".join(lines))
    config = build_config({"output": {"report": False}}, origin="test")
    run_locally([str(folder / "texts.jsonl")], str(folder / "run"), config)
    return folder / "run"


def forms(count: int, words: int, changed: int, seed: int = 1) -> Iterator[str]:
    """Yield texts of one form, each with some of its words replaced by a word that no other has."""
    drawn = random.Random(seed)  # noqa: S311
    for i in range(count):
        places = drawn.sample(range(words), changed)
        yield " ".join(f"only{i}x{place}" if place in places else f"w{place}" for place in range(words))


def test_sketches_that_hold_all_shingles_are_recounted_exactly(tmp_path: Path) -> None:
    """Of short texts with a resemblance of .6, more than the margin asks, none is listed; two pairs are, both ways."""
    titles = [f"a b c d e f g {i}" for i in range(200)]
    run = make_run(tmp_path, iter([*titles, *(f"h i j k l m n o p q {i}" for i in "rs"), "t u v w x y z t u"]))

    found = Evidence(DuckRun(str(run)))

    assert (
        found.count("SELECT count(*) AS n FROM found_near", "found_near") == 2 * len(pq.read_table(run / "pairs")) == 2
    )
    assert check_run(DuckRun(str(run))).is_sound


def test_of_many_less_like_than_candidates_some_are_recounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are compared at the threshold, fewer below it; each line says how many, and a lost pair is found."""
    monkeypatch.setattr(evidence, "NEAR_BELOW", 600)
    run = make_run(tmp_path, iter([*forms(60, 400, 12), *forms(2, 300, 2, seed=2)]))
    assert len(pq.read_table(run / "pairs")) == 1

    found = Evidence(DuckRun(str(run)))
    report = check_run(DuckRun(str(run)))

    amounts = {finding.promise: finding.amount for finding in report.findings}
    assert report.is_sound, report.text()
    assert amounts[PAIRS] == "all 62 distinct sketches"
    assert amounts[MISSED].startswith("sample of ")
    assert 0 < found.count("SELECT count(*) AS n FROM found_near", "found_near") < 1_500 < 60 * 59

    rewrite(run, "pairs", list.clear)
    assert PAIRS in [finding.promise for finding in check_run(DuckRun(str(run))).findings if finding.broken]


@pytest.mark.parametrize(
    ("limits", "few"),
    [
        pytest.param({"STEPS": 90_000, "STEPS_EACH": 0}, PAIRS, id="shared ids"),
        pytest.param({"NEAR": 300, "NEAR_LISTED": 300}, PAIRS, id="near"),
        pytest.param({"EXTENSIONS": 300}, "clusters: no document can be added", id="further members"),
    ],
)
def test_families_are_proved_by_a_sample(
    limits: dict[str, int], few: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nearly all sketches share nearly all ids, fewer are probes; of clusters that all begin alike, fewer too."""
    for name, value in limits.items():
        monkeypatch.setattr(evidence, name, value)
    run = make_run(tmp_path, forms(80, 115, 3))
    assert pc.sum(pq.read_table(run / "clusters")["size"]).as_py() > 80

    report = check_run(DuckRun(str(run)))

    assert report.is_sound, report.text()
    assert next(one.amount for one in report.findings if one.promise == few).startswith("sample of ")
