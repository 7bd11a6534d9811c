"""`nddup sweep`: every combination of a grid gives the numbers of a separate run."""

import csv
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.errors import ConfigError
from nddup.evaluating.sweep import Engines, read_grid, table_of
from nddup.explaining.curves import spread
from nddup.ground.metrics import RunMetrics
from nddup.scanning.input_files import Listing
from nddup.settings.load import build_config, load_config
from nddup.settings.schema import Config
from nddup.storage.local_storage import LocalStorage
from tests.samples_by_night import first

WORDS = [f"w{number}" for number in range(80)]


def test_a_grid_is_every_combination() -> None:
    """The last key changes fastest, keys may be nested, one value needs no brackets, and the base gives the rest."""
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
    """A combination whose settings contradict each other becomes a row with the reason; the other three remain."""
    grid = "pairs.measure: [resemblance, overlap]\npairs.threshold: [0.9, 30]"

    points = read_grid(grid, origin="grid.yaml", base=load_config())

    assert [bool(point.config) for point in points] == [True, False, True, True]
    assert "30" in table_of(points).splitlines()[2]
    assert "a count, which needs measure overlap" in table_of(points).splitlines()[2]


def test_what_is_not_given_is_that_of_the_combination() -> None:
    """A setting that neither the grid nor the base names has the default of the combination, as in a separate run."""
    grid = "pairs.measure: [resemblance, overlap]\nsketch.kind: [min-s, mod-m]"
    for base in ([], ["pairs.threshold=0.9"], ["pairs.confirm=none", "keep.policy=first"]):
        points = read_grid(grid, origin="grid.yaml", base=load_config(None, base))

        for point in points:
            alone = [f"{key}={value}" for key, value in point.settings.items()]
            assert point.config == load_config(None, [*base, *alone])


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
    """A text that is no grid is refused in one line that names the file and the expected form."""
    with pytest.raises(ConfigError) as error:
        read_grid(text, origin="grid.yaml", base=load_config())

    assert str(error.value).startswith(said)


def test_each_row_is_the_run_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each row has the numbers of a separate run, compared with a list; an invalid threshold is a row with an error."""
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
    told = capsys.readouterr().out.splitlines()
    assert told[0].split()[:3] == ["pairs.threshold", "documents", "pairs"]
    assert [line.split()[:3] for line in told[1:3]] == [["0.5", "4", "3"], ["0.95", "4", "0"]]
    assert told[3].startswith("  refused: ")
    assert [row["pairs"] for row in rows] == ["3", "0", ""]
    assert [row["kept"] for row in rows] == ["2", "4", ""]
    assert [row["recall"] for row in rows] == ["0.5", "0.0", ""]
    assert rows[0]["candidates"] == str(alone["stages"]["pairs"]["candidates"])
    assert rows[2]["refused"].startswith(f"{tmp_path}/grid.yaml: pairs.threshold: an integer (7) is a count")
    assert json.loads((tmp_path / "sweep" / "sweep.json").read_text())[0]["metrics"]["rows"] == alone["rows"]
    assert not (tmp_path / "sweep" / "runs").exists()


def _collection(folder: Path) -> str:
    """Write three texts that differ in a word, and one unlike them; return the path."""
    texts = [" ".join([*WORDS[:cut], "edit", *WORDS[cut:]]) for cut in (10, 30, 50)] + ["other words here"]
    lines = (json.dumps({"id": f"d{number}", "text": text}) + "\n" for number, text in enumerate(texts))
    if not (folder / "pages.jsonl").exists():  # writing the file again would make it another input
        (folder / "pages.jsonl").write_text("".join(lines))
    return str(folder / "pages.jsonl")


def _sweep(folder: Path, grid: str, *options: str) -> int:
    (folder / "grid.yaml").write_text(grid)
    where = ["--grid", str(folder / "grid.yaml"), "--output", str(folder / "sweep")]
    return main(["sweep", _collection(folder), *where, *options])


def test_a_sweep_is_drawn_over_the_setting_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each measure has a panel over the setting of --x, each line its name beside it; the rows are Markdown too."""
    grid = "pairs.threshold: [0.5, 0.9]\nkeep.policy: [first-id, longest]\n"

    assert _sweep(tmp_path, grid, "--x", "shingle.length") == 2
    assert "--x shingle.length: expected a setting that varies in the grid: pairs.threshold, keep.policy" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "sweep").exists()
    assert _sweep(tmp_path, grid, "--x", "keep.policy") == 0

    drawn = (tmp_path / "sweep" / "sweep.svg").read_text()
    written = [line.partition("<!-- ")[2].removesuffix(" -->") for line in drawn.splitlines() if "<!-- " in line]
    assert (tmp_path / "sweep" / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert [written.count(text) for text in ("kept", "seconds", "keep.policy", "longest", "threshold=0.9", "f1")] == [
        1, 1, 4, 4, 4, 0]  # fmt: skip
    table = (tmp_path / "sweep" / "sweep.md").read_text().splitlines()
    assert table[0].startswith("| pairs.threshold | keep.policy | documents | pairs |")
    assert [line.split(" | ")[:4] for line in table[2:]] == [
        ["| 0.5", "first-id", "4", "3"], ["| 0.5", "longest", "4", "3"],
        ["| 0.9", "first-id", "4", "0"], ["| 0.9", "longest", "4", "0"]]  # fmt: skip


@given(heights=st.lists(st.floats(0, 1), max_size=8).map(sorted))
def test_names_of_lines_stand_apart_in_their_order(heights: list[float]) -> None:
    """Names of lines keep their order and their distance, and stay within the panel."""
    moved = spread(heights, 0.125)

    assert all(high - low >= 0.125 - 1e-9 for low, high in pairwise(moved))
    assert all(-1e-9 <= height <= 1 for height in moved)
    if all(high - low >= 0.125 for low, high in pairwise(heights)):
        assert moved == heights


GRID = "pairs.threshold: [0.5, 0.9]\nshingle.length: [3, 5]\nkeep.policy: [first-id, longest]\n"


@pytest.mark.parametrize("keeping", first(1, [[], ["--keep-runs"]]))
def test_shared_steps_are_made_once_and_change_nothing(tmp_path: Path, keeping: list[str]) -> None:
    """All combinations read the collection twice, once for each shingle length; each row equals a separate run."""
    grid, many = (GRID.replace("0.5, 0.9", "0.5"), 4) if keeping else (GRID, 8)
    assert _sweep(tmp_path, grid, *keeping) == 0

    made = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    sketched = [point["metrics"]["stages"]["sketch"]["resumed"] for point in made]
    assert sum(reused == [] for reused in sketched) == 2
    for number, point in enumerate(made):
        values = {} if keeping else {"output": {"texts": 0, "report": False}}
        for key, value in point["settings"].items():
            section, name = key.split(".")
            values.setdefault(section, {})[name] = value
        alone = run_locally([_collection(tmp_path)], str(tmp_path / f"alone{number}"), build_config(values, origin="t"))
        assert point["metrics"]["rows"] == alone["rows"]
        assert point["results"]["candidates"] == alone["stages"]["pairs"]["candidates"]
        assert point["results"]["kept"] == alone["stages"]["keep"]["kept"]
        if keeping:  # the runs of a sweep with reports and texts are made as those without
            break
    kept = tmp_path / "sweep" / "runs"
    assert sorted(path.name for path in kept.glob("*")) == ([f"{n:04}" for n in range(1, many + 1)] if keeping else [])


def test_a_killed_sweep_is_finished_by_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep killed in its third run makes only the remaining runs on resume; its table equals an unbroken sweep's."""
    seen: list[str] = []
    whole = Engines.run

    def run(self: Engines, folder: str, config: Config) -> RunMetrics:
        seen.append(folder)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return whole(self, folder, config)

    monkeypatch.setattr(Engines, "run", run)
    grid = "pairs.threshold: [0.5, 0.9]\nshingle.length: [3, 5]"

    assert _sweep(tmp_path, grid) == 130
    assert _sweep(tmp_path, grid) == 2  # the output exists, and --resume is not given
    assert _sweep(tmp_path, grid, "--resume") == 0
    resumed = json.loads((tmp_path / "sweep" / "sweep.json").read_text())

    assert len(seen) == 3 + 2
    (tmp_path / "sweep").rename(tmp_path / "first")
    assert _sweep(tmp_path, grid) == 0
    fresh = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    untimed = [{**point["results"], "seconds": 0} for point in resumed]
    assert untimed == [{**point["results"], "seconds": 0} for point in fresh]


def test_a_sweep_of_something_else_is_not_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A resume with another grid, other settings or a folder that is no sweep is refused and changes nothing."""
    assert _sweep(tmp_path, "pairs.threshold: [0.5, 0.9]") == 0
    before = (tmp_path / "sweep" / "sweep.csv").read_text()
    capsys.readouterr()

    assert _sweep(tmp_path, "pairs.threshold: [0.5, 0.8]", "--resume") == 2
    assert "was made with other grid" in capsys.readouterr().err
    assert _sweep(tmp_path, "pairs.threshold: [0.5, 0.9]", "--resume", "--set", "sketch.size=50") == 2
    assert "was made with other settings" in capsys.readouterr().err
    assert (tmp_path / "sweep" / "sweep.csv").read_text() == before

    (tmp_path / "sweep" / "_SWEEP.json").unlink()
    assert _sweep(tmp_path, "pairs.threshold: [0.5, 0.9]", "--resume") == 2
    assert "holds no sweep that can be resumed" in capsys.readouterr().err


def test_inputs_may_lie_elsewhere_than_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With inputs in HDFS and a local output, Hadoop lists the inputs and the tables go to the local folder."""
    listed: list[list[str]] = []

    class Hadoop:
        def __init__(self, spark: object) -> None:
            del spark

        def list_inputs(self, inputs: list[str]) -> Listing:
            listed.append(inputs)
            return Listing((), (), ())

    monkeypatch.setattr("nddup.spark.session_files.Storage", Hadoop)
    monkeypatch.setattr(Engines, "spark", None)

    engines = Engines(["hdfs:///pages"], str(tmp_path / "sweep"), load_config(), master=None, truth=None)

    assert engines.describe()["inputs"] == {}
    assert listed == [["hdfs:///pages"]]
    assert isinstance(engines.storage, LocalStorage)
