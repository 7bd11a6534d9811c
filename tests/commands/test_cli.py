"""The command line: exit status, one line per mistake, and the output of `show`."""

import argparse
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import pytest

from nddup import __version__
from nddup.cli import NO_SPARK, build_parser, main
from nddup.commands import COMMANDS
from nddup.embedded.run import run_locally
from nddup.errors import NddupError
from nddup.settings.load import load_config
from nddup.settings.schema import Config
from nddup.spark.run import run_job
from tests.places import ROOT
from tests.samples_by_night import STARTS, by_day_if_changed

WORDS = [f"word{number}" for number in range(40)]
TEXTS = {
    "007": " ".join(WORDS),
    "008": " ".join(WORDS),
    "b": " ".join([*WORDS, "more"]),
    "far": " ".join(reversed(WORDS)),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two copies, a near-duplicate of them, an unrelated document, and a line that is not a document."""
    path = tmp_path_factory.mktemp("cli") / "pages.jsonl"
    lines = [json.dumps({"id": name, "url": f"http://x/{name}", "text": text}) for name, text in TEXTS.items()]
    path.write_text("\n".join([*lines, "{broken", ""]))
    return path


@pytest.fixture(scope="module")
def finished(pages: Path) -> Path:
    """A run of the embedded engine over these pages."""
    run_locally([str(pages)], str(pages.parent / "out"), load_config())
    return pages.parent / "out"


def mistake(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the message of a mistake, after checking that the exit status is 2 and that it is all that is printed."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as end:
        status = int(str(end.code))
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("nddup: ")
    return printed.err.removeprefix("nddup: ").rstrip("\n")


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the help goes to standard error, and the exit status is that of wrong usage."""
    assert main([]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.startswith("usage: nddup ")


def test_an_unknown_command_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    """The one line names the unknown command and the known ones."""
    said = mistake(capsys, "rnu", "x")

    assert "rnu" in said
    assert "run" in said.replace("rnu", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            [__file__, "--output", "b", "--resume", "--overwrite"],
            "argument --overwrite: not allowed with argument --resume",
        ),
        ([__file__, "--output", "b", "--set", "pairs.treshold=1"], "--set: pairs.treshold: unknown key; did you mean"),
        (["a", "--output", "b", "--config", "/none.yaml"], "/none.yaml: cannot read the configuration (No such"),
        (["a", "--output", "b", "--outptu", "c"], "unrecognized arguments: --outptu c (see nddup"),
        (["a"], "the following arguments are required: -o/--output (see nddup run --help)"),
        (["--output", "b"], "INPUT: expected a file or folder, got none"),
    ],
)
def test_wrong_arguments_are_refused_before_spark_starts(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """One line says what is wrong with the arguments."""
    assert mistake(capsys, "run", *arguments).startswith(said)


def test_help_fits_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of any command's help is longer, so that none is broken in a word."""
    monkeypatch.setenv("COLUMNS", "80")
    parsers = [build_parser()]
    for parser in parsers:
        for action in parser._actions:  # noqa: SLF001 - argparse has no public list of them
            parsers += action.choices.values() if isinstance(action, argparse._SubParsersAction) else []  # noqa: SLF001

    assert len(parsers) > len(COMMANDS)
    assert [line for parser in parsers for line in parser.format_help().splitlines() if len(line) > 80] == []


def test_help_holds_examples(capsys: pytest.CaptureFixture[str]) -> None:
    """`nddup --help` and `nddup run --help` show at least three example commands."""
    for arguments in (["--help"], ["run", "--help"]):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        printed = capsys.readouterr().out
        assert end.value.code == 0
        assert printed.count("\n  nddup run ") >= 3


def test_inputs_and_outputs_that_cannot_be_are_refused(
    capsys: pytest.CaptureFixture[str], pages: Path, tmp_path: Path
) -> None:
    """A missing input, and an output that exists, is not a run or lies below a file, are refused; nothing changes."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")

    missing = mistake(capsys, "run", tmp_path / "none", "--output", tmp_path / "out")
    existing = mistake(capsys, "run", pages, "--output", mine)
    foreign = mistake(capsys, "run", pages, "--output", mine, "--overwrite")
    below = mistake(capsys, "run", pages, "--output", mine / "thesis.txt" / "out")

    assert missing == f"INPUT {tmp_path}/none: no such file or folder"
    assert existing.startswith(f"--output {mine}: exists already; give another folder, or --overwrite to replace it")
    assert foreign == f"--output {mine}: holds files that are no run of nddup; it is not overwritten"
    assert "thesis.txt/out" in below
    assert "cannot be written" in below
    assert (mine / "thesis.txt").read_text() == "years of work"
    assert not (tmp_path / "out").exists()


def test_runs_that_cannot_be_shown_are_refused(
    capsys: pytest.CaptureFixture[str], finished: Path, tmp_path: Path
) -> None:
    """`show` refuses a folder that is no run, an unfinished run, and unknown ids, with exit status 2 and the reason."""
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "_RUN.json").write_text("{}")

    assert mistake(capsys, "show", tmp_path / "none").endswith("none: no such folder")
    assert mistake(capsys, "show", tmp_path).endswith("is not a run of nddup (it has no _RUN.json)")
    assert mistake(capsys, "show", unfinished).endswith("the run did not finish; what it holds is not a result")
    assert mistake(capsys, "show", finished, "--cluster", "0") == f"--cluster 0: no such cluster in {finished}"
    assert mistake(capsys, "show", finished, "--doc", "7").startswith(f"--doc 7: no such document in {finished} (its")


def test_sketches_of_another_format_are_a_failure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A run of another sketch format fails with a line that names both formats."""
    (tmp_path / "_RUN.json").write_text("{}")
    (tmp_path / "_COMPLETE").write_text("{}")
    (tmp_path / "metrics.json").write_text('{"versions": {"sketch_format": "old"}}')

    status = main(["show", str(tmp_path)])

    assert status == 1
    assert "its sketches are of format old, this version reads" in capsys.readouterr().err


def test_show_gives_the_summary_one_cluster_and_one_document(
    capsys: pytest.CaptureFixture[str], finished: Path
) -> None:
    """`show` prints what a run read and found, the members of a cluster, or a document with its pairs and clusters."""
    assert main(["show", str(finished)]) == 0
    summary = capsys.readouterr().out
    cluster = summary.strip().splitlines()[-1].split()[0]
    assert main(["show", str(finished), "--cluster", cluster]) == 0
    members = capsys.readouterr().out
    assert main(["show", str(finished), "--doc", "008"]) == 0
    document = capsys.readouterr().out

    numbers = {line[2:23].strip(): line.split()[-1:] and line[23:36].strip() for line in summary.splitlines()}
    assert numbers["records read"] == "5"
    assert numbers["rejected"] == "1"
    assert numbers["documents"] == "4"
    assert numbers["near-duplicate pairs"] == "3"
    assert numbers["clusters"] == "1"
    assert (numbers["kept"], numbers["removed"]) == ("2", "2")
    assert "1 malformed" in summary
    assert str(finished) in summary
    assert f"cluster {cluster}: 3 documents" in members
    assert "* b  http://x/b" in members
    assert "  007  http://x/007" in members
    assert "document 008: pages.jsonl#2, 40 tokens, 36 features" in document
    assert "removed   near-duplicate of b" in document
    assert "      1.000      36  007" in document
    assert f"cluster   {cluster}  of 3" in document


def test_a_value_may_begin_with_a_hyphen(capsys: pytest.CaptureFixture[str], finished: Path) -> None:
    """As an id often does; an option that lacks its value before another option is still told."""
    assert main(["show", str(finished), "--doc", "-dQw4w9"]) == 2
    assert "--doc -dQw4w9: no such document" in capsys.readouterr().err
    for given in (["--doc", "-q"], ["--doc", "--csv"], ["--doc"]):
        with pytest.raises(SystemExit):
            main(["show", str(finished), *given])
        assert "argument --doc: expected one argument" in capsys.readouterr().err


def test_an_unexpected_error_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pages: Path, tmp_path: Path
) -> None:
    """A fault of the program gives exit status 1 and one line; NDDUP_DEBUG=1 shows the traceback."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken\nin two lines")

    monkeypatch.setattr("nddup.spark.session.start_session", fail)

    assert main(["run", str(pages), "--output", str(tmp_path / "out"), "--engine", "spark"]) == 1
    assert capsys.readouterr().err == "nddup: broken (NDDUP_DEBUG=1 shows the trace)\n"
    monkeypatch.setenv("NDDUP_DEBUG", "1")
    assert main(["run", str(pages), "--output", str(tmp_path / "out"), "--engine", "spark"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            (
                "An error occurred.\n: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT]"
                " Encountered error while reading file file:///a%20b.gz.  SQLSTATE: KD001\n\tat x.y(Z.scala:1)\n"
                "Caused by: java.io.EOFException: Unexpected end of input stream\n\tat x.y(Z.scala:1)"
            ),
            "file:///a%20b.gz: cannot be read (java.io.EOFException: Unexpected end of input stream)",
        ),
        (
            (
                "An error occurred.\n: org.apache.spark.SparkException: Job aborted: Lost task:"
                " org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
                '  File "a.py", line 3, in f\nValueError: no such thing\n\n\tat x.y(Z.scala:1)'
            ),
            "ValueError: no such thing",
        ),
        (
            (
                "An error occurred.\n: org.apache.spark.SparkException: Job aborted.\n\tat x.y(Z.scala:1)\n"
                "Caused by: java.io.IOException: No space left on device\n\tat x.y(Z.scala:1)"
            ),
            "java.io.IOException: No space left on device",
        ),
        (
            (
                "Job aborted: Encountered error while reading file file:///a.jsonl. Details:\n\tat x.y(Z.scala:1)\n"
                "Caused by: java.io.IOException: Disk quota exceeded\n\tat x.y(Z.scala:1)"
            ),
            "java.io.IOException: Disk quota exceeded",
        ),
        ("", "RuntimeError"),
    ],
    ids=["file", "worker", "cause", "disk", "nothing"],
)
def test_the_line_of_a_failure_says_what_happened(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    """The line for a long Java trace names the unreadable file, the Python worker's own error, or the root cause."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(text)

    monkeypatch.setattr("nddup.spark.session.start_session", fail)

    assert main(["check", "out", "--master", "local[1]"]) == 1
    assert capsys.readouterr().err == f"nddup: {said} (NDDUP_DEBUG=1 shows the trace)\n"


@pytest.mark.parametrize("said", ["java.io.IOException: No space left on device", "java.io.IOException: not found"])
def test_a_full_disk_of_a_run_on_spark_is_that_of_its_output(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """One line names the folder, and no file that a task was reading; another failure is passed on."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"Encountered error while reading file file:///a.jsonl. \nCaused by: {said}")

    for name in ("SparkJob", "SparkFolder", "SparkProgress"):
        monkeypatch.setattr(f"nddup.spark.run.{name}", lambda *_, **__: None)
    monkeypatch.setattr("nddup.spark.run.make_run", fail)
    with pytest.raises((NddupError, RuntimeError)) as raised:
        run_job(cast("Any", None), ["a.jsonl"], "file:///out", Config())
    if "space" in said:
        assert str(raised.value).startswith("file:///out, or the folders of Spark's own files (spark.local.dir): ")
        assert "a.jsonl" not in str(raised.value)
    else:
        assert not isinstance(raised.value, NddupError)


@pytest.mark.spark
@by_day_if_changed(*STARTS)
def test_a_process_of_its_own_says_one_line_for_a_mistake(tmp_path: Path) -> None:
    """Java and Spark add nothing to the one line of a mistake, and leave no files in the folder."""
    command = [sys.executable, "-c", "import sys; from nddup.cli import main; sys.exit(main())"]
    arguments = ["run", "none.xml", "--output", "out", "--master", "local[1]", "--set", "spark.driver.memory=512m"]
    arguments += ["--set", f"spark.sql.warehouse.dir={tmp_path}/warehouse"]  # which only a new session can have
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYSPARK"))}

    done = subprocess.run(
        [*command, *arguments],
        env={**settings, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert (done.returncode, done.stdout) == (2, "")
    *steps, said = done.stderr.splitlines()
    assert said == "nddup: INPUT none.xml: no such file or folder"
    assert all(step.startswith("nddup run: ") for step in steps)
    assert list(tmp_path.iterdir()) == []


def test_without_spark_one_line_says_what_to_install(
    pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an image without pyspark a command that needs it names it, and ends with status 2."""

    def execute(options: object) -> int:
        raise ModuleNotFoundError(f"for {options}: No module named 'pyspark.sql'", name="pyspark.sql")

    monkeypatch.setattr(COMMANDS["run"], "execute", execute)

    status = main(["run", str(pages), "--output", str(tmp_path / "out"), "--engine", "spark"])

    assert status == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"nddup: {NO_SPARK}"


def test_an_installation_describes_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """One line of JSON for a question: versions and the machine, and nothing of the user."""
    assert main(["--version", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {name: version(name) for name in ("numpy", "pyarrow", "duckdb")}.items() <= facts.items()
    assert facts["nddup"] == __version__
    assert facts["memory"] > 0
    assert str(Path.home()) not in json.dumps(facts)
