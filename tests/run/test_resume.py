"""A run that is killed and resumed gives the same tables and counts, makes nothing twice and trusts nothing stale."""

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from nddup.embedded.one_task import MADE
from nddup.embedded.run import run_locally
from nddup.ground.metrics import RunMetrics
from nddup.report.summary import notes
from nddup.settings.load import build_config
from nddup.spark.clustering import problems
from nddup.spark.session import set_to, splitting
from nddup.spark.session_tables import SparkFolder
from nddup.spark.steps import documents, one_task
from nddup.tables import RESULTS
from tests.finished_runs import run_over, sorted_tables

SETTINGS: dict[str, Any] = {
    "shingle": {"length": 3},
    "sketch": {"size": 40},
    "pairs": {"threshold": 0.5, "max_postings": 9, "max_edges": 50},  # so low that one family is heavy and large
    "clusters": {"fpgrowth_limit": 3},
    "input": {"max_record": 4000},  # so low that one file is read again
    "output": {"kept": "jsonl", "report": False},
}
UNMEASURED = {"seconds", "shuffle_bytes", "resumed", "settings"}
OF_SPARK = frozenset(
    {"fpgrowth_components", "fpgrowth_fits", "files_read_again", "candidates", "compared", "crowd", "pruned_to"}
)
"""Counts that differ between the engines: families, whose candidates are no rows, are larger in a task of its own."""

LEAST = {
    *RESULTS, "records", "offsets", "nodes", "compared", "searched", "settled", "matches", "confirmed", "graph", "sets",
    "kept",
}  # fmt: skip
"""The tables that the run must make: all that a run on one machine can make."""


class KilledError(Exception):
    """Raised to stop the driver."""


def write_pages(folder: Path) -> None:
    """Write a heavy family, small families, equal pages, a broken line, and a record too long for Spark's lines."""
    random = np.random.default_rng(7)

    def page(words: list[int]) -> str:
        return " ".join(f"w{word}" for word in words)

    texts: list[str] = []
    for size, changes in [(14, 3), *[(3, 1)] * 4, *[(2, 0)] * 3, *[(1, 0)] * 6]:
        base = random.integers(0, 10_000, 60).tolist()
        for member in range(size):
            words = list(base)
            for place in random.integers(0, 60, changes if member else 0).tolist():
                words[place] = 10_000 + len(texts)
            texts.append(page(words))
    texts.append(page(random.integers(0, 10_000, 1_000).tolist()))
    lines = [json.dumps({"id": str(number), "text": text}) + "\n" for number, text in enumerate(texts)]
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text("".join([*lines[:5], "{broken\n", *lines[5:-3]]))
    (folder / "b.jsonl").write_text("".join(lines[-3:]))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection whose run makes every table."""
    path = tmp_path_factory.mktemp("resume") / "pages"
    write_pages(path)
    return path


def begin_or_resume(spark: SparkSession, pages: Path, output: Path, /, **changed: dict[str, Any]) -> dict[str, Any]:
    """Begin or resume the run; returns its metrics."""
    return run_over(spark, [pages], output, settings_with(**changed), resume=True)


def settings_with(**changed: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with changes in some sections."""
    return SETTINGS | {section: SETTINGS.get(section, {}) | values for section, values in changed.items()}


def rows(output: Path) -> dict[str, list[str]]:
    """Return the sorted tables and kept documents of a finished run, and the lines of duplicates.txt."""
    kept = sorted(line for part in (output / "kept").glob("part-*") for line in part.read_text().splitlines())
    return sorted_tables(output) | {
        "kept": kept,
        "duplicates": (output / "duplicates.txt").read_text().splitlines(),
    }


def made(output: Path) -> list[str]:
    """Return the sorted names of all tables of a run."""
    return sorted(path.stem for path in (output / "_stages").glob("*.json"))


def counts(value: Any, left_out: frozenset[str] = frozenset()) -> Any:  # noqa: ANN401 - of JSON
    """Return the metrics without `UNMEASURED` and the keys left out."""
    if isinstance(value, dict):
        return {key: counts(item, left_out) for key, item in value.items() if key not in UNMEASURED | left_out}
    return value


@contextmanager
def killed(monkeypatch: pytest.MonkeyPatch, when: Callable[[str], bool]) -> Iterator[list[str]]:
    """Kill the run after the first table for which `when` is true; yields the names of all tables sealed."""
    sealed: list[str] = []
    seal = SparkFolder.seal

    def note(folder: SparkFolder, name: str, **said: Any) -> None:  # noqa: ANN401
        seal(folder, name, **said)
        sealed.append(name)
        if when(name):
            raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(SparkFolder, "seal", note)
        yield sealed


@pytest.fixture(scope="module", autouse=True)
def _in_several_tasks() -> Iterator[None]:
    """One task, and the driver, would make no working tables. Components are looked up in chunks, as of many nodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "FEW_BYTES", -1)
        patch.setattr(one_task, "fits_one", lambda *_, **__: False)
        patch.setattr(problems, "CHUNKED_NODES", 1)
        yield


def kill_in_turn(spark: SparkSession, pages: Path, output: Path, step: int) -> dict[str, Any]:
    """
    Kill a run after each `step` new tables and resume it, to its end; returns its metrics.

    It makes no table twice. The records, as large as the documents, are removed once the documents exist: later
    attempts do without them.
    """
    sealed: list[str] = []
    seals = itertools.count(1)
    for _ in range(len(LEAST) * 2):
        with (
            pytest.MonkeyPatch.context() as patch,
            killed(patch, lambda _: next(seals) % step == 0) as names,
        ):
            try:
                metrics = begin_or_resume(spark, pages, output)
                break
            except KilledError:
                assert not (output / "_COMPLETE").exists()
                assert (output / "_stages/records").exists() == ("nodes" not in [*sealed, *names])
            finally:
                sealed += names

    assert sorted(sealed) == made(output)
    assert json.loads((output / "metrics.json").read_text()) == metrics
    return metrics


@pytest.fixture(scope="module")
def resumed(spark: SparkSession, pages: Path) -> tuple[dict[str, list[str]], Any]:
    """The tables and counts of a run that was killed after each eighth table, which all other runs must give."""
    output = pages.parent / "resumed"
    metrics = kill_in_turn(spark, pages, output, 8)
    return rows(output), counts(metrics)


def test_the_collection_uses_every_table(pages: Path, resumed: tuple[dict[str, list[str]], Any]) -> None:
    """The collection gives heavy sketches, a reject, a file read again and every working table: a meaningful test."""
    tables, metrics = resumed

    assert set(made(pages.parent / "resumed")) >= LEAST
    assert {name for name, found in tables.items() if not found} <= {"texts"}
    assert metrics["stages"]["pairs"]["crowd"] > 0
    assert metrics["stages"]["clusters"]["led_components"] == 1
    assert metrics["stages"]["sketch"]["files_read_again"] == 1
    assert metrics["stages"]["clusters"]["fpgrowth_fits"] > 0
    told = notes(RunMetrics.read(json.loads((pages.parent / "resumed/metrics.json").read_text())))
    assert any(note.startswith("FP-Growth mined ") and ", the pivot miner " in note for note in told)
    assert metrics["stages"]["texts"]["clusters"] == 0  # as nobody sees them without a report


def test_a_killed_and_resumed_run_is_that_of_the_embedded_engine(
    pages: Path, resumed: tuple[dict[str, list[str]], Any], tmp_path: Path
) -> None:
    """Killed after each eighth new table and resumed, a run has the tables and counts of one that nothing disturbed."""
    metrics = run_locally([str(pages)], str(tmp_path / "run"), build_config(SETTINGS, origin="test"))

    assert resumed[0] == rows(tmp_path / "run")
    assert counts(resumed[1], OF_SPARK) == counts(metrics, OF_SPARK)


@pytest.mark.nightly
def test_killed_behind_every_table(
    spark: SparkSession, pages: Path, resumed: tuple[dict[str, list[str]], Any], tmp_path: Path
) -> None:
    """Killed after each new table and resumed, it ends alike, and so does one that nothing disturbed."""
    for name, step in (("killed", 1), ("undisturbed", 1_000)):
        metrics = kill_in_turn(spark, pages, tmp_path / name, step)
        assert (rows(tmp_path / name), counts(metrics)) == resumed


@pytest.mark.usefixtures("resumed")
def test_what_changed_is_made_again_and_nothing_else(
    spark: SparkSession, pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another reject limit remakes nothing, another threshold everything from the pairs on, another file everything."""
    shutil.copytree(pages.parent / "resumed", tmp_path / "out")

    with killed(monkeypatch, lambda _: False) as limited:
        begin_or_resume(spark, pages, tmp_path / "out", input={"max_rejects": 0.9})
    split = {"spark.sql.files.maxPartitionBytes": "1000"}
    with killed(monkeypatch, lambda _: False) as stricter, set_to(spark, split):
        metrics = begin_or_resume(spark, pages, tmp_path / "out", pairs={"threshold": 0.7})
    config = settings_with(pairs={"threshold": 0.7})
    anew = run_locally([str(pages)], str(tmp_path / "anew"), build_config(config, origin="test"))
    tables, tables_anew = rows(tmp_path / "out"), rows(tmp_path / "anew")
    (pages / "c.jsonl").write_text(json.dumps({"id": "new", "text": "another page"}) + "\n")
    try:
        with killed(monkeypatch, lambda _: True) as other, pytest.raises(KilledError):
            begin_or_resume(spark, pages, tmp_path / "out", pairs={"threshold": 0.7})
    finally:
        (pages / "c.jsonl").unlink()

    assert limited == []
    assert not {"records", "offsets", "documents", "rejects"} & set(stricter)
    assert {"compared", "pairs", "clusters", "keep", "kept"} <= set(stricter)
    assert counts(metrics, OF_SPARK) == counts(anew, OF_SPARK)
    assert tables == tables_anew
    assert other == ["records"]
    assert not (tmp_path / "out" / "_COMPLETE").exists()


def test_where_files_are_split_is_noted_as_spark_has_it(spark: SparkSession) -> None:
    """Split sizes that are not set are noted with Spark's defaults, and the least number of parts with the cores."""
    most, least = "spark.sql.files.maxPartitionBytes", "spark.sql.files.minPartitionNum"
    was = str(spark.conf.get(most))
    spark.conf.unset(most)
    unset = splitting(spark)
    spark.conf.set(most, was)

    assert unset == {most: f"{128 << 20}b", "spark.sql.files.openCostInBytes": "4194304b", least: "2"}
    with set_to(spark, unset):
        assert splitting(spark) == unset
    assert splitting(spark)[most] == was
    assert spark.conf.get(least, None) is None


def test_a_result_is_not_made_again(
    spark: SparkSession, pages: Path, resumed: tuple[dict[str, list[str]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resuming a finished run returns its metrics and starts no stage."""
    with monkeypatch.context() as patched:
        patched.setattr("nddup.stages.run.find_clusters", lambda *_: pytest.fail("a stage was started"))
        metrics = begin_or_resume(spark, pages, pages.parent / "resumed")

    assert counts(metrics) == resumed[1]


def test_nothing_of_other_settings_stays(
    spark: SparkSession, pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resuming with settings that leave out context, kept documents and report removes these, and the evaluation.

    The embedded engine made them.
    """
    monkeypatch.setattr(one_task, "fits_one", lambda *_, **__: True)
    out, ours = tmp_path / "out", {"input": {"max_record": 64_000}}
    all_of_it = {"context": True, "report": True}
    run_locally([str(pages)], str(out), build_config(settings_with(output=all_of_it, **ours), origin="test"))
    assert (out / "context.fimi").exists()
    assert (out / "report").exists()
    (out / "evaluation.json").write_text("{}")

    begin_or_resume(spark, pages, out, output=all_of_it, **ours)
    assert (out / "evaluation.json").exists()
    begin_or_resume(spark, pages, out, output={"kept": "none", "report": False}, pairs={"threshold": 0.7}, **ours)

    assert not {"context.fimi", "kept", "report", "evaluation.json"} & {path.name for path in out.iterdir()}
    assert not list(out.glob("_CLAIM*"))


@pytest.mark.parametrize(
    "damaged", ["duplicates.txt cut", "metrics.json", "metrics.json cut", "_COMPLETE cut", "_stages/kept.json"]
)
def test_a_result_that_lost_anything_is_finished_again(
    spark: SparkSession, pages: Path, resumed: tuple[dict[str, list[str]], Any], tmp_path: Path, damaged: str
) -> None:
    """Resuming checks the files beside the tables by name and size too, and remakes those that are missing or cut."""
    output = tmp_path / "out"
    shutil.copytree(pages.parent / "resumed", output)
    file = output / damaged.removesuffix(" cut")
    half = file.read_bytes()[: file.stat().st_size // 2]
    file.unlink()
    if damaged.endswith(" cut"):
        file.write_bytes(half)

    metrics = begin_or_resume(spark, pages, output)

    assert rows(output) == resumed[0]
    assert counts(metrics) == resumed[1]
    assert json.loads((output / "metrics.json").read_text()) == metrics


def test_killed_runs_of_one_task(
    spark: SparkSession,
    pages: Path,
    resumed: tuple[dict[str, list[str]], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed after each table that one task made, and resumed, a run ends alike; all tables there are taken over."""
    monkeypatch.setattr(one_task, "fits_one", lambda *_, **__: True)
    shutil.copytree(pages.parent / "resumed", tmp_path / "out")
    for name in ("_COMPLETE", *(f"_stages/{name}.json" for name in MADE)):
        (tmp_path / "out" / name).unlink()
    sealed: list[str] = []
    for _ in MADE:
        with killed(monkeypatch, lambda _: True) as names, pytest.raises(KilledError):
            begin_or_resume(spark, pages, tmp_path / "out")
        sealed += names
    with monkeypatch.context() as patched:
        patched.setattr("nddup.spark.steps.one_task.read_answers", lambda _: pytest.fail("a task was started"))
        metrics = begin_or_resume(spark, pages, tmp_path / "out")

    assert sorted(sealed) == sorted(MADE)
    assert rows(tmp_path / "out") == resumed[0]
    assert counts(metrics, OF_SPARK) == counts(resumed[1], OF_SPARK)
    assert metrics["stages"]["clusters"]["resumed"] == ["clusters", "false_components", "members"]
