"""`nddup truth` against the edit distances of all pairs, computed by the plain recurrence."""

import csv
import json
import random
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.errors import ConfigError, NddupError
from nddup.evaluating.truth import CANDIDATES, SAMPLE, Asked, Truth, make_truth, settings_of_candidates
from nddup.ground.progress import Steps
from nddup.settings.load import build_config
from nddup.settings.plan import finder_of, kind_of, threshold_of

SIMILARITY = 0.8


def distance(a: str, b: str) -> int:
    """Count the characters inserted, deleted or replaced, by the recurrence of Wagner and Fischer."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]


def similarity(a: str, b: str) -> float:
    """Return 1 - distance / length of the longer text."""
    return 1 - distance(a, b) / max(len(a), len(b), 1)


@given(st.text("abc", max_size=9), st.text("abc", max_size=9))
def test_the_library_measures_by_definition(a: str, b: str) -> None:
    """RapidFuzz's similarity follows the definition for every pair but two empty texts."""
    if a or b:
        assert Levenshtein.normalized_similarity(a, b) == pytest.approx(similarity(a, b))


def documents() -> dict[str, str]:
    """Return edited families, a text with every third word changed, one with other blanks, short and empty texts."""
    draw = random.Random(3)  # noqa: S311 - texts
    texts: dict[str, str] = {}
    for family in range(3):
        words = [f"{draw.choice('abcdefgh')}{draw.randrange(10**4)}" for _ in range(40)]
        for version in range(4):
            low = draw.randrange(30)
            texts[f"f{family}v{version}"] = " ".join([*words[:low], *["new"] * version * 2, *words[low + version :]])
    first = texts["f0v0"].split()
    texts["scattered"] = " ".join(word + "x" if number % 3 == 0 else word for number, word in enumerate(first))
    return texts | {"blanks": texts["f1v0"].replace(" ", "\n  "), "empty1": "", "empty2": " ", "short": "a b"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run over these documents."""
    folder = tmp_path_factory.mktemp("truth")
    lines = (json.dumps({"id": name, "text": text}) + "\n" for name, text in documents().items())
    (folder / "pages.jsonl").write_text("".join(lines))
    config = build_config({"output": {"texts": 0}}, origin="test")
    run_locally([str(folder / "pages.jsonl")], str(folder / "run"), config)
    return folder / "run"


def truth_of(run: Path, output: Path, *, least: float = CANDIDATES, sampled: int = SAMPLE) -> Truth:
    """Make a reference list in this process."""
    steps = Steps("truth", 6, is_quiet=True)
    return make_truth(str(run), Asked(SIMILARITY, least, sampled), str(output), steps)


def test_the_list_holds_the_pairs_that_are_alike(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The list holds every similar pair that shares a feature and counts the others; `evaluate` reads it."""
    texts = {name: " ".join(text.split()) for name, text in documents().items()}
    measured = {(min(a, b), max(a, b)): similarity(texts[a], texts[b])
                for a, b in combinations(sorted(texts), 2) if texts[a] and texts[b]}  # fmt: skip
    every = {pair: value for pair, value in measured.items() if value >= SIMILARITY}
    output = finished.parent / "truth.csv"

    made = truth_of(finished, output, least=0.2, sampled=len(texts))
    assert main(["evaluate", str(finished), "--truth", str(output)]) == 0

    lines = output.read_text().splitlines()
    comments = [line for line in lines if line.startswith("#")]
    rows = {(a, b): float(value) for a, b, value in csv.reader(lines[len(comments) + 1 :])}
    missed = set(every) - set(rows)
    assert rows == {pair: round(value, 6) for pair, value in every.items() if pair not in missed}
    assert missed
    assert all("scattered" in pair for pair in missed)
    assert (made.sampled_pairs, made.sampled_found) == (len(every), len(rows))
    assert f"{len(missed):,} of {len(every):,} are not in this list" in comments[2]
    assert f"reference{len(rows):>31,}" in capsys.readouterr().out


def test_a_list_read_by_processes_is_the_same(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes, which read inputs of more than a few megabytes, give the same list as a single process."""
    few = truth_of(finished, tmp_path / "few.csv")
    monkeypatch.setattr("nddup.embedded.workers.FEW_BYTES", 0)

    many = truth_of(finished, tmp_path / "many.csv")

    assert many == few
    assert (tmp_path / "many.csv").read_text() == (tmp_path / "few.csv").read_text()


OF_KINDS: list[dict[str, Any]] = [
    {"sketch": {"kind": "min-s"}, "keep": {"max_lost": 0.1}},
    {"sketch": {"kind": "min-s", "growth": "linear"}, "pairs": {"measure": "overlap", "threshold": 12}},
    {"sketch": {"kind": "super", "rows": 4}},
    {"sketch": {"kind": "min-perm", "tagged": False}},
    {"sketch": {"kind": "minhash", "bands": 20, "rows": 10, "permutation": "affine"}},
    {"sketch": {"kind": "minhash", "verify": False}, "clusters": {"mode": "partition"}},
    {"sketch": {"kind": "mod-m"}, "pairs": {"measure": "containment"}, "clusters": {"mode": "components"}},
    {"sketch": {"kind": "mod-pow2"}, "clusters": {"mode": "partition"}},
    {"sketch": {"kind": "i-match"}, "pairs": {"measure": "overlap", "threshold": 1}},
]


@pytest.mark.parametrize("settings", OF_KINDS, ids=lambda settings: settings["sketch"]["kind"])
def test_candidates_are_all_that_are_so_near(settings: dict[str, Any]) -> None:
    """For every kind the settings find all pairs of sketches at the given resemblance, or share of overlap, exactly."""
    before = build_config(settings, origin="test")

    config = settings_of_candidates(before, 0.4)

    kind, threshold = kind_of(config.sketch), threshold_of(config)
    assert kind.is_exact
    assert finder_of(config) is None
    assert config.sketch.verify
    assert (Fraction(threshold.numerator, threshold.denominator), threshold.is_count) == (Fraction(2, 5), False)
    assert threshold.measure == ("resemblance" if config.sketch.growth == "fixed" else "overlap")
    assert (kind.estimate, kind.sample(config.sketch.size)) == (
        kind_of(before.sketch).estimate, kind_of(before.sketch).sample(before.sketch.size))  # fmt: skip


def test_a_wrong_share_of_candidates_is_refused_in_a_line() -> None:
    """A share with more decimals than can be compared exactly is refused."""
    with pytest.raises(ConfigError, match=r"--candidates.*at most nine decimals"):
        settings_of_candidates(build_config({}, origin="test"), 0.12345678901)


def test_changed_inputs_are_refused(finished: Path, tmp_path: Path) -> None:
    """An input that has grown since the run is refused, and nothing is written."""
    with (finished.parent / "pages.jsonl").open("a") as file:
        file.write('{"id": "late", "text": "came later"}\n')

    with pytest.raises(NddupError, match=r"changed since the run: pages\.jsonl"):
        truth_of(finished, tmp_path / "truth.csv")
    assert not (tmp_path / "truth.csv").exists()
