"""The embedded engine with too little memory, after an interrupt, and with leftovers of an earlier attempt."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nddup
from nddup import cli
from nddup.commands import run as command
from nddup.embedded import match, workers
from nddup.embedded import steps as engine
from nddup.embedded.memory import Memory
from nddup.embedded.read_records import number_texts
from nddup.embedded.run import run_locally
from nddup.embedded.workers import Workers
from nddup.errors import NeedsSparkError
from nddup.ground.arrays import Ragged
from nddup.ground.progress import AT_ONCE, LocalProgress
from nddup.matching import sift
from nddup.settings.load import build_config
from nddup.settings.plan import threshold_of
from nddup.tables import RESULTS
from tests.embedded.edited_texts import make_texts, write_lines

TOO_MUCH = 1 << 50
PLAIN = {"output": {"report": False}}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Edited, damaged and repeated records."""
    return write_lines(tmp_path_factory.mktemp("limits") / "pages.jsonl", make_texts())


@pytest.fixture(scope="module")
def undisturbed(pages: Path) -> dict[str, pa.Table]:
    """The tables of an uninterrupted run."""
    run_locally([str(pages)], str(pages.parent / "whole"), build_config(PLAIN, origin="test"))
    return tables(pages.parent / "whole")


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send everything to worker processes, in tasks of 20 KB."""
    monkeypatch.setattr(workers, "TASK_BYTES", 20_000)
    monkeypatch.setattr(workers, "FEW_BYTES", 0)


def tables(folder: Path) -> dict[str, pa.Table]:
    """Return the tables of a finished run."""
    return {name: pq.read_table(folder / name) for name in RESULTS}


STEPS = {
    "reading": ("nddup.embedded.workers.OF_ROWS", r"what was read of \d+ of \d+ MB"),
    "documents": ("nddup.embedded.memory.OF_DOCUMENT", r"the \d+ documents"),
    "tokens": ("nddup.embedded.workers.OF_TEXT", r"what was read of \d+ of \d+ MB"),
    "match": ("nddup.embedded.match.OF_MATCH", r"\d+ distinct sketches with \d+ pairs so far"),
    "expand": ("nddup.embedded.steps.OF_PAIR", r"\d+ documents with \d+ pairs"),
    "pairs of sketches held meanwhile": ("nddup.embedded.steps.OF_MATCH", r"\d+ documents with \d+ pairs"),
    "components": ("nddup.embedded.steps.OF_EDGE", r"components of \d+ pairs"),
    "mine": ("nddup.embedded.mine_components.OF_SET_MEMBER", r"sets of \d+ members so far"),
    "name": ("nddup.embedded.steps.OF_MEMBER", r"clusters of \d+ members"),
}
"""For each step, the constant of its memory per row, and its message if that is too much."""

BY_WORKERS = {"reading", "documents", "tokens", "match"}
"""Steps that are tried with worker processes; the others do the same whoever has read."""

AT_NIGHT = {"documents", "expand", "components"}
"""Steps that only `make nightly` tries: other steps of the same stages are tried by day."""

RESUMED = {"reading", "match", "name"}
"""Steps after which the run is resumed: one of each stage that a resumed run may begin with."""


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=[pytest.mark.nightly] * (step in AT_NIGHT)) for step in STEPS]
)
def test_each_step_stops_before_it_takes_too_much(  # noqa: PLR0913, PLR0917 - fixtures
    tmp_path: Path,
    pages: Path,
    undisturbed: dict[str, pa.Table],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    step: str,
) -> None:
    """A step stops before it takes too much memory; documents stay, and a resumed run gives the undisturbed tables."""
    if step in BY_WORKERS:
        request.getfixturevalue("small_tasks")
    config, output = build_config(PLAIN, origin="test"), tmp_path / "run"
    constant, said = STEPS[step]
    with monkeypatch.context() as patched:
        patched.setattr(constant, TOO_MUCH)
        with pytest.raises(NeedsSparkError, match=rf"{said} may need .* go on with --engine spark --resume") as caught:
            run_locally([str(pages)], str(output), config)
    assert ("(the whole some " in str(caught.value)) == (step in {"reading", "tokens"})
    assert (output / "_stages" / "documents.json").exists() == (step != "reading")
    if step not in RESUMED:
        return

    made = run_locally([str(pages)], str(output), config, resume=True)

    assert made["stages"]["sketch"]["resumed"] == ([] if step == "reading" else ["documents", "rejects"])
    assert tables(output) == undisturbed


@pytest.mark.parametrize(
    ("constant", "said"),
    [
        ("nddup.embedded.memory.OF_MAPPED_DOCUMENT", r"the \d+ documents"),
        ("nddup.embedded.memory.OF_KEPT", r"the \d+ documents"),
        ("nddup.matching.sift.SLOT_BITS", r"\d+ sketches of [\d,]+ ids"),
        ("nddup.embedded.memory.OF_NUMBERED", r"\d+ sketches that may be near another"),
        ("nddup.embedded.memory.OF_SHARED", r"\d+ sketches with [\d,]+ ids in common"),
    ],
)
def test_mapped_ids_are_counted_in_each_step(
    tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch, constant: str, said: str
) -> None:
    """Where ids lie in a mapped file, the steps that read them say what they need besides."""
    monkeypatch.setattr("nddup.embedded.memory.MAPPED", 0)
    monkeypatch.setattr(constant, TOO_MUCH)

    with pytest.raises(NeedsSparkError, match=rf"{said} may need .* go on with --engine spark --resume"):
        run_locally([str(pages)], str(tmp_path / "run"), build_config(PLAIN, origin="test"))


def test_mapped_ids_that_are_joined_with_earlier_ones_count() -> None:
    """Documents joined with those of an earlier run hold their ids in memory, though those read are mapped."""
    memory = Memory(is_mapped=True)
    held = {}
    for is_copied in (False, True):
        memory.hold(1_000, 200_000, is_copied=is_copied)
        held[is_copied] = memory.bytes_in_use
    assert held[True] - held[False] == 8 * 200_000


def test_a_resumed_run_maps_ids_too(
    tmp_path: Path, pages: Path, undisturbed: dict[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many ids are mapped whether their documents were just read or are those of an earlier attempt."""
    monkeypatch.setattr("nddup.embedded.memory.MAPPED", 0)
    config, output, sifted = build_config(PLAIN, origin="test"), tmp_path / "run", list[int]()
    with monkeypatch.context() as patched:
        patched.setattr("nddup.embedded.memory.OF_NUMBERED", TOO_MUCH)
        with pytest.raises(NeedsSparkError):
            run_locally([str(pages)], str(output), config)
    sift_of_run = sift.sift

    def note(sketches: Ragged, *given: Any) -> Any:  # noqa: ANN401
        sifted.append(len(sketches.offsets) - 1)  # where ids are mapped alone
        return sift_of_run(sketches, *given)

    monkeypatch.setattr(match, "sift", note)

    made = run_locally([str(pages)], str(output), config, resume=True)

    assert sifted == [len(undisturbed["documents"])]
    assert made["stages"]["sketch"]["resumed"] == ["documents", "rejects"]
    assert tables(output) == undisturbed


@pytest.mark.parametrize(
    ("name", "value", "said"), [("LARGE", 2, "components of up to"), ("SHARE_NODES", 3, "shares of a component of")]
)
def test_mining_bounds_its_largest_components(  # noqa: PLR0913, PLR0917 - fixtures and cases
    tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int, said: str
) -> None:
    """The memory of the largest components, or of the largest shares of a divided one, is checked before any mining."""
    where = {"LARGE": "nddup.embedded.mine_components", "SHARE_NODES": "nddup.settings.plan"}[name]
    monkeypatch.setattr(f"{where}.{name}", value)
    monkeypatch.setattr("nddup.embedded.mine_components.bound_memory", lambda *_: TOO_MUCH)

    with pytest.raises(NeedsSparkError, match=said):
        run_locally([str(pages)], str(tmp_path / "run"), build_config(PLAIN, origin="test"))


@pytest.mark.parametrize("limit", [1, 3, 500_000])
@pytest.mark.parametrize("measure", [{"threshold": 0.8}, {"measure": "overlap", "threshold": 20}])
def test_the_pairs_are_counted_before_they_are_made(limit: int, measure: dict[str, Any]) -> None:
    """The count of pairs made beforehand, with products of groups, stars and equal sketches, is exact."""
    texts = make_texts()
    given = pa.table({"id": list(texts), "body": list(texts.values())})
    config = build_config({"pairs": {"expand_limit": limit, **measure}}, origin="test")
    with Workers(1) as one:
        numbered = number_texts(given, id="id", text="body")
        paired = engine.pair(engine.sketch(numbered, config, one).documents, config, one, numbered)
        threshold = threshold_of(config)

    counted = engine.count_pairs(paired.matches, paired.nodes, threshold=threshold, expand_limit=limit)

    assert counted == len(paired.pairs) > 0


@pytest.mark.parametrize("has_java", [True, False])
def test_auto_goes_on_with_spark_where_java_is(
    tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, has_java: bool
) -> None:
    """The engine `auto` goes on with Spark from the documents that were read; without Java it names the command."""
    asked: list[dict[str, Any]] = []

    def go_on(inputs: object, output: object, config: object, **how: object) -> dict[str, Any]:
        del inputs, output, config
        asked.append(how)
        raise KeyboardInterrupt

    monkeypatch.setattr("nddup.embedded.match.OF_MATCH", TOO_MUCH)
    monkeypatch.setattr(command, "_prepare_spark", lambda _options, config, _steps: (config, go_on))
    monkeypatch.setattr("nddup.engines.choose.has_java", lambda: has_java)

    status = cli.main(["run", str(pages), "--output", str(tmp_path / "run")])

    assert [how["resume"] for how in asked] == ([True] if has_java else [])
    assert status == (130 if has_java else 1)
    assert "go on with --engine spark --resume" in capsys.readouterr().err


def test_a_table_in_memory_says_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a table in memory needs too much, the error advises a Spark DataFrame, as there is no folder to resume."""
    monkeypatch.setattr("nddup.embedded.match.OF_MATCH", TOO_MUCH)
    texts = make_texts()

    with pytest.raises(NeedsSparkError, match="give it as a DataFrame of Spark"):
        nddup.find_duplicates(pd.DataFrame({"id": list(texts), "text": list(texts.values())}))


def test_an_interrupt_is_one_line_and_the_run_resumes(
    tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupt gives status 130 and one line, and the resumed run names the tables that it reuses."""
    arguments = ["run", str(pages), "--output", str(tmp_path / "run"), "--set", "output.report=false"]

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(engine, "pair", interrupt)
        assert cli.main(arguments) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "nddup: interrupted; `--resume` finishes it"

    assert cli.main([*arguments, "--resume"]) == 0
    assert "reused: documents, rejects" in capsys.readouterr().err


@pytest.mark.usefixtures("small_tasks")
def test_workers_write_within_the_runs_folder(tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers write only inside the run's folder, and the next attempt removes what a killed run left there."""
    config, output = build_config(PLAIN, origin="test"), tmp_path / "run"
    spool, real, seen = output / "_stages" / "spool", workers._take, []  # noqa: SLF001 - where a file is taken from

    def take(path: Path) -> pa.Table:
        seen.append(path)
        if len(seen) == 2:
            shutil.copytree(spool, tmp_path / "killed")
            raise KeyboardInterrupt
        return real(path)

    monkeypatch.setattr(workers, "_take", take)
    with pytest.raises(KeyboardInterrupt):
        run_locally([str(pages)], str(output), config)
    assert {path.parents[1] for path in seen} == {spool}
    assert not spool.exists()

    shutil.copytree(tmp_path / "killed", spool)  # as if it had been killed at that moment
    run_locally([str(pages)], str(output), config, resume=True)
    assert not spool.exists()


@pytest.mark.usefixtures("small_tasks")
def test_every_step_says_how_far_it_is(tmp_path: Path, pages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step reports progress under its name; steps that last begin at zero and reach their full size."""
    progress, told = LocalProgress(is_quiet=True), []
    progress.stage("sketch").__enter__()
    real = LocalProgress.step

    def step(self: LocalProgress, name: str, done: int, size: int) -> None:
        real(self, name, done, size)
        told.append((name, done, size, self.how_far()))

    monkeypatch.setattr(LocalProgress, "step", step)
    run_locally([str(pages)], str(tmp_path / "run"), build_config(PLAIN, origin="test"))

    names = {name for name, *_ in told}
    written = {f"write {name}" for name in [*RESULTS, "texts"]} - {"write documents"}  # behind the steps
    assert (
        names == {"reading", "collapse", "prune", "match", "confirm", "expand", "components", "mine", "name"} | written
    )
    for name in names - AT_ONCE:
        mine = [(done, size) for step_name, done, size, _ in told if step_name == name]
        assert mine[0][0] == 0
        assert mine[-1][0] == mine[-1][1]
    assert all(name in line for name, _, _, line in told)
