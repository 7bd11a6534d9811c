"""`nddup sweep`: every combination of a grid, each the run it would be alone."""

import csv
import json
from pathlib import Path

import pytest

from nddup.cli import main
from nddup.errors import ConfigError
from nddup.results.sweep import read_grid, table_of
from nddup.run.local_job import run_locally
from nddup.settings.load import build_config, load_config

WORDS = [f"w{number}" for number in range(80)]


def test_a_grid_is_every_combination() -> None:
    """The last key changes fastest; keys may be nested; one value needs no brackets; the rest is the base's."""
    base = load_config(None, ["keep.policy=first-id"])

    points = read_grid(
        "sketch: {size: [50, 100]}\npairs.threshold: [0.7, 0.9]\nshingle.length: 3", origin="g", base=base
    )

    assert [tuple(point.settings.values()) for point in points] == [
        (50, 0.7, 3), (50, 0.9, 3), (100, 0.7, 3), (100, 0.9, 3)]  # fmt: skip
    configs = [point.config for point in points if point.config]
    assert [(c.sketch.size, c.pairs.threshold, c.shingle.length, c.keep.policy) for c in configs] == [
        (size, threshold, 3, "first-id") for size in (50, 100) for threshold in (0.7, 0.9)]  # fmt: skip


def test_a_combination_that_cannot_be_is_a_row_with_the_reason() -> None:
    """A count needs the measure overlap; the other three combinations stay."""
    grid = "pairs.measure: [resemblance, overlap]\npairs.threshold: [0.9, 30]"

    points = read_grid(grid, origin="grid.yaml", base=load_config())

    assert [bool(point.config) for point in points] == [True, False, True, True]
    assert "30" in table_of(points).splitlines()[2]
    assert "a count, which needs measure overlap" in table_of(points).splitlines()[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1", "grid.yaml: not YAML"),
        ("", "grid.yaml: expected lines such as"),
        ("size: [1, 2]", "grid.yaml: size: expected section.key"),
        ("sketch.size: []", "grid.yaml: 0 combinations"),
        ("sketch.sise: [1, 2]", "grid.yaml: sketch.sise: unknown key; did you mean size?"),
    ],
)
def test_what_is_no_grid_is_refused(text: str, said: str) -> None:
    """One line names the file and what was expected."""
    with pytest.raises(ConfigError) as error:
        read_grid(text, origin="grid.yaml", base=load_config())

    assert str(error.value).startswith(said)


def test_each_row_is_the_run_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two thresholds, one a configuration error beside them: the numbers of runs of their own, compared with a list."""
    texts = [" ".join([*WORDS[:cut], "edit", *WORDS[cut:]]) for cut in (10, 30, 50)] + ["other words here"]
    lines = (json.dumps({"id": f"d{number}", "text": text}) + "\n" for number, text in enumerate(texts))
    (tmp_path / "pages.jsonl").write_text("".join(lines))
    (tmp_path / "truth.txt").write_text("d0 d1\nd0 d3\n")
    (tmp_path / "grid.yaml").write_text("pairs.threshold: [0.5, 0.95, 7]\n")
    options = ["--grid", str(tmp_path / "grid.yaml"), "--truth", str(tmp_path / "truth.txt")]
    settings = ["--set", "output.texts=0", "--output", str(tmp_path / "sweep")]

    assert main(["sweep", str(tmp_path / "pages.jsonl"), *options, *settings]) == 0
    config = build_config({"pairs": {"threshold": 0.5}, "output": {"texts": 0}}, origin="test")
    alone = run_locally([str(tmp_path / "pages.jsonl")], str(tmp_path / "alone"), config)

    with (tmp_path / "sweep" / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert capsys.readouterr().out.startswith((tmp_path / "sweep" / "sweep.csv").read_text())
    assert [row["pairs"] for row in rows] == ["3", "0", ""]
    assert [row["kept"] for row in rows] == ["2", "4", ""]
    assert [row["recall"] for row in rows] == ["0.5", "0.0", ""]
    assert rows[0]["candidates"] == str(alone["stages"]["pairs"]["candidates"])
    assert rows[2]["refused"].startswith(f"{tmp_path}/grid.yaml: pairs.threshold: an integer (7) is a count")
    assert json.loads((tmp_path / "sweep" / "sweep.json").read_text())[0]["metrics"]["rows"] == alone["rows"]
    assert not (tmp_path / "sweep" / "runs").exists()
