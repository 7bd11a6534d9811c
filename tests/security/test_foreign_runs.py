"""A run folder of someone else: nothing in it is read as SQL, and no query opens a file that is not its table."""

import json
import os
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nddup
from nddup.checking.check_run import check_run
from nddup.cli import main
from nddup.engines.duck import DuckRun, MemoryRun
from nddup.errors import ConfigError, NddupError, OutputError
from nddup.results.show import show_run
from nddup.settings.stored import NOT_SHOWN, complete_shown
from nddup.stages.inputs_found import find_again
from nddup.storage.local_folder import LocalFolder
from nddup.storage.local_storage import LocalStorage
from nddup.storage.run_folder import RunFolder, digest
from nddup.tables import RESULTS
from scripts.try_foreign_run import MARKUP, renew_digests, try_changes
from tests.finished_runs import write_texts
from tests.opened.made_runs import write_family
from tests.report.made_reports import metrics_of
from tests.samples_by_night import first

BAD_CONFIG = 2
CHANGES = 2
"""Changed values of each seed: one costs as much as three commands."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a small run."""
    return write_family(tmp_path / "run")


def test_names_in_the_metrics_are_no_sql(folder: Path, tmp_path: Path) -> None:
    """A name of a table in `metrics.json` that is SQL is not executed: it is reported as a table that is not there."""
    (folder / "written").mkdir()
    name = f"(SELECT 1) AS t; COPY (SELECT 1) TO '{tmp_path}/written.csv'; SELECT count(*) AS n FROM pairs"  # noqa: S608
    metrics = json.loads((folder / "metrics.json").read_text())
    for listed in (name, '"documents" AS d JOIN pairs', "written"):
        rows = {"documents": 4, "pairs": 3, "clusters": 1, "members": 3, "keep": 4, "rejects": 1, listed: 3}
        (folder / "metrics.json").write_text(json.dumps(metrics | {"rows": rows}))

        report = check_run(DuckRun(str(folder)), steps=["accounting"])

        assert not report.is_sound
        assert f"{listed}: 3 in metrics.json, None in the table" in report.findings[0].examples
    assert not list(tmp_path.glob("*.csv"))


@pytest.mark.parametrize("place", ["run", "it's [1]*?", "link"])
def test_sql_opens_the_tables_and_nothing_else(place: str, folder: Path, tmp_path: Path) -> None:
    """SQL over a run reads its tables, under any name of the folder, but writes and reads no other file."""
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    path = tmp_path / place
    if place == "link":
        path.symlink_to(folder)
    elif place != "run":
        folder.rename(path)
    run = DuckRun(str(path))

    assert run.sql("SELECT count(*) AS n FROM documents")["n"].to_pylist() == [4]
    for text in (
        f"FROM '{other}'", f"FROM read_text('{other}')", f"FROM glob('{tmp_path}/*')",
        f"COPY (SELECT 1) TO '{tmp_path}/new.csv'", f"ATTACH '{tmp_path}/new.db'", "SET enable_external_access = true",
        f"SET temp_directory = '{tmp_path}'", "SET threads = 99", "INSTALL httpfs", "LOAD httpfs",
        f"EXPORT DATABASE '{tmp_path}/new'", "RESET memory_limit",
    ):  # fmt: skip
        with pytest.raises(NddupError):
            run.rows(text).__next__()
    assert {file.name for file in tmp_path.iterdir()} <= {"other.csv", "run", place}


def test_the_api_opens_the_tables_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    """`nddup.open(RUN).sql` and a run in memory read no file, and no variable of the calling program."""
    (tmp_path / "secret.csv").write_text("a\n1\n")
    secret = pa.table({"a": [1]})
    for run in (nddup.open(str(folder)), nddup.find_duplicates(pa.table({"id": ["a"], "text": ["one"]}))):
        with pytest.raises(ConfigError, match="secret"):
            run.sql("SELECT * FROM secret")
        assert run.sql("SELECT * FROM mine", mine=secret).to_pylist() == [{"a": 1}]
        with pytest.raises((ConfigError, NddupError)):
            run.sql(f"SELECT * FROM '{tmp_path}/secret.csv'")  # noqa: S608


def test_a_run_in_memory_opens_no_file(tmp_path: Path) -> None:
    """DuckDB over tables in memory writes no file, whatever the text of a query says."""
    run = MemoryRun({"documents": pa.table({"a": [1]})}, metrics_of(1, 0, 0, 1))

    with pytest.raises(NddupError):
        run.sql(f"COPY (SELECT 1) TO '{tmp_path}/new.csv'")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["_RUN.json", "metrics.json", "_COMPLETE", "documents", "documents/part-0.parquet", "report", "_stages"]
)
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_links_and_pipes_in_a_run_are_not_followed(folder: Path, tmp_path: Path, name: str, kind: str) -> None:
    """No command opens or writes what a link in a run leads to, or waits for a pipe: one line refuses the folder."""
    (folder / "_stages").mkdir(exist_ok=True)
    (folder / "report").mkdir(exist_ok=True)
    outside = tmp_path / "outside"
    (folder / name).rename(outside)
    if kind == "link":
        (folder / name).symlink_to(outside)
    else:
        os.mkfifo(folder / name)
    before = [(file, file.lstat().st_mtime_ns) for file in (outside, *sorted(outside.rglob("*")))]
    pages, truth = write_texts(tmp_path / "a.jsonl", {"a": "one"}), tmp_path / "truth.csv"
    truth.write_text("a,b\n")

    for command in (
        ["show", str(folder)], ["check", str(folder)], ["report", str(folder)],
        ["evaluate", str(folder), "--truth", str(truth)],
        ["run", str(pages), "--output", str(folder), "--resume"], ["run", str(pages), "-o", str(folder), "--overwrite"],
    ):  # fmt: skip
        assert main(command) in (1, 2)
    assert [(file, file.lstat().st_mtime_ns) for file in (outside, *sorted(outside.rglob("*")))] == before


def test_notes_that_name_each_other_are_no_table(tmp_path: Path) -> None:
    """A note of a dropped table that names itself, or no table, ends no process: the table counts as missing."""
    run = LocalFolder(str(tmp_path / "run"))
    run.start(settings={}, inputs={})
    run.write("documents", RESULTS["documents"].arrow.empty_table())
    run.seal("documents", settings={}, reads=["input"], counted={})
    note = tmp_path / "run" / "_stages" / "documents.json"
    for made in (["documents"], ["../../x"], [1], {"documents": 1}, "documents", 7):
        value = json.loads(note.read_text())
        value.pop("digest", None)
        note.write_text(json.dumps({**value, "dropped": made}))
        assert not run.has("documents", settings={}, reads=["input"])


@pytest.mark.parametrize("noted", ["x", 7, [], {"a": 1}])
def test_a_note_of_no_digests_is_a_change(tmp_path: Path, noted: object) -> None:
    """Digests of another type are those of no file: one line."""
    run = LocalFolder(str(tmp_path / "run"))
    run.start(settings={}, inputs={})
    run.write("documents", RESULTS["documents"].arrow.empty_table())
    run.seal("documents", settings={}, reads=["input"], counted={})
    note = tmp_path / "run" / "_stages" / "documents.json"
    value = json.loads(note.read_text())
    value.pop("digest", None)
    value["crc32"] = noted
    note.write_text(json.dumps({**value, "digest": digest(value)}))

    with pytest.raises(OutputError) as refused:
        LocalFolder(str(tmp_path / "run")).require_same("documents")
    assert "\n" not in str(refused.value)


def test_settings_that_no_run_can_have_are_refused(folder: Path) -> None:
    """A renamed key or a value of another type is refused when the run is opened; a missing key is not."""
    whole = json.loads((folder / "metrics.json").read_text())["settings"]
    whole = {name: one for name, one in whole.items() if name not in NOT_SHOWN}
    assert complete_shown({}, origin="x").keys() == whole.keys()
    for section, values in ((name, one) for name, one in whole.items() if name != "spark"):
        foreign: list[object] = [None, [], 7, {"x": 1}, MARKUP]
        for wrong in foreign:
            with pytest.raises(ConfigError, match="settings"):
                complete_shown({**whole, section: wrong}, origin="x")
        for key in values:
            less = {name: one for name, one in values.items() if name != key}
            assert complete_shown({**whole, section: less}, origin="x")[section].keys() == values.keys()
            for changed in ({**less, f"{key}s": values[key]}, {**less, key: {"a": [None]}}):
                with pytest.raises(ConfigError, match=f"settings.{section}.{key}"):
                    complete_shown({**whole, section: changed}, origin="x")


def test_headers_without_inputs_and_clusters_without_members(folder: Path) -> None:
    """What a foreign run lacks is one line, or is left out."""
    file = next((folder / "clusters").glob("*.parquet"))
    table = pq.read_table(file)
    for lacking_members in (None, [None]):
        members = pa.array([lacking_members] * len(table), pa.list_(pa.string()))
        pq.write_table(table.drop_columns("members").append_column("members", members), file)
        assert "clusters" in show_run(DuckRun(str(folder)), cluster=None, doc=None)
    header = json.loads((folder / "_RUN.json").read_text())
    lacking: list[object] = [None, [], {}, {"paths": []}, {"files": {}}, {"paths": [7], "files": {}}]
    for inputs in lacking:
        (folder / "_RUN.json").write_text(json.dumps({**header, "inputs": inputs}))
        with pytest.raises(NddupError, match="names no inputs"):
            find_again(RunFolder(LocalStorage(), str(folder)), LocalStorage())


def test_a_resumed_run_and_a_check_read_foreign_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A finished run is resumed only with settings that a run can have; a document without its tokens is a fault."""
    words = [f"w{number}" for number in range(40)]
    pages = write_texts(tmp_path / "pages.jsonl", {f"d{at}": " ".join([*words[:at], *words]) for at in range(3)})
    folder = tmp_path / "run"
    again = ["run", str(pages), "--output", str(folder), "--set", "output.report=false"]
    assert main(again) == 0
    file = next((folder / "documents").glob("*.parquet"))
    table = pq.read_table(file)
    at = table.column_names.index("n_tokens")
    counts = pa.array([None, *table["n_tokens"].to_pylist()[1:]], table.schema.field(at).type)
    pq.write_table(table.set_column(at, table.schema.field(at), counts), file)
    renew_digests(folder)
    assert not check_run(DuckRun(str(folder))).is_sound

    metrics = json.loads((folder / "metrics.json").read_text())
    metrics["settings"]["sketch"]["size"] = "file:/x"
    (folder / "metrics.json").write_text(json.dumps(metrics))
    renew_digests(folder)
    capsys.readouterr()
    assert main([*again, "--resume"]) == BAD_CONFIG
    assert "metrics.json: sketch.size: " in capsys.readouterr().err


UNSOUND = [("keep", "lost", float("inf"), "show"), ("keep", "lost", float("nan"), "show"),
           ("clusters", "size", None, "show"), ("members", "cluster_id", None, "evaluate")]  # fmt: skip


@pytest.mark.parametrize(("name", "column", "value", "command"), UNSOUND)
def test_a_value_that_ends_a_command_is_named(  # noqa: PLR0913, PLR0917
    name: str, column: str, value: object, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a value that no run writes ends a command, one line names it, and `check` finds it, or says so too."""
    words = [f"w{number}" for number in range(40)]
    pages = write_texts(tmp_path / "a.jsonl", {f"d{at}": " ".join([*words[:at], *words]) for at in range(3)})
    run, truth = str(tmp_path / "run"), tmp_path / "truth.csv"
    truth.write_text("a,b\nd0,d1\n")
    assert main(["run", str(pages), "--output", run, "--set", "output.report=false"]) == 0
    file = next((tmp_path / "run" / name).glob("*.parquet"))
    table = pq.read_table(file)
    values = [value if one is not None else one for one in table[column].to_pylist()]
    at = table.schema.get_field_index(column)
    pq.write_table(table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type)), file)
    renew_digests(tmp_path / "run")
    capsys.readouterr()

    assert main([command, run, *(("--truth", str(truth)) if command == "evaluate" else ())]) == 2
    assert (
        capsys.readouterr().err.splitlines()[-1].startswith(f"nddup: {run}: holds what nddup does not write: {name}.")
    )
    assert main(["check", run]) in (1, 2)
    printed = capsys.readouterr()
    assert "BROKEN" in printed.out or "holds what nddup does not write" in printed.err


def test_commands_refuse_foreign_settings_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command that reads a run says which of its settings is wrong, in one line."""
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics["settings"]["shingle"]["units"] = metrics["settings"]["shingle"].pop("unit")
    (folder / "metrics.json").write_text(json.dumps(metrics))
    for command in (["show", str(folder)], ["show", str(folder), "--doc", "a"], ["report", str(folder)],
                    ["check", str(folder)]):  # fmt: skip
        assert main(command) == 2
        printed = capsys.readouterr().err
        assert "settings.shingle.units" in printed
        assert printed.count("\n") == 1


@pytest.mark.parametrize("seed", first(1, range(1, 61)))
def test_a_changed_value_does_no_harm(tmp_path: Path, seed: int) -> None:
    """A value of any file or note, digests made to fit: no signal, no raw error, and nothing outside is opened."""
    changes = [*islice(try_changes(tmp_path, 1, seed=seed), CHANGES)]

    assert len(changes) == CHANGES
    assert [one for one in changes if one.wrong] == []
