"""An output never overlaps what a command reads, whatever links lead there: nothing that is read is ever removed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nddup.cli import main
from nddup.errors import OutputError
from nddup.spark.session_files import Storage
from nddup.storage.local_storage import LocalStorage, require_apart
from tests.finished_runs import write_texts

PLAIN = ("--set", "output.report=false")
TEXTS = {name: f"{name} has some words of its own to tell" for name in "abc"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with an input, the folder `real`, and the link `sym` to it."""
    write_texts(tmp_path / "first.jsonl", TEXTS)
    (tmp_path / "real").mkdir()
    (tmp_path / "sym").symlink_to(tmp_path / "real")
    return tmp_path


def refused(arguments: list[str], said: Callable[[], str]) -> bool:
    """Return whether a command ends with status 2 and one line that names its output."""
    said()
    status = main(arguments)
    return status == 2 and (line := said()).count("\n") == 1 and "nddup: --output" in line


def test_a_link_does_not_hide_that_an_input_lies_in_the_output(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--overwrite` removes no input, whichever of the two paths goes through a link, and by whatever kind of link."""
    assert main(["run", f"{place}/first.jsonl", "--output", f"{place}/real/out", *PLAIN]) == 0
    (place / "real" / "out" / "given").mkdir()
    write_texts(place / "real" / "out" / "given" / "in.jsonl", TEXTS)
    (place / "alias.jsonl").symlink_to("real/out/given/in.jsonl")
    (place / "more").symlink_to("real/out/given")

    for given, output in (
        ("real/out/given/in.jsonl", "sym/out"), ("sym/out/given/in.jsonl", "real/out"), ("alias.jsonl", "real/out"),
        ("real/out/given", "sym/out"), ("more", "real/out"), ("sym", "real"),
        ("first.jsonl", "first.jsonl"),
    ):  # fmt: skip
        arguments = ["run", f"{place}/{given}", "--output", f"{place}/{output}"]
        assert refused([*arguments, "--overwrite"], lambda: capsys.readouterr().err), (given, output)
        assert refused([*arguments, "--resume"], lambda: capsys.readouterr().err), (given, output)
        assert (place / "real" / "out" / "given" / "in.jsonl").exists()
        assert (place / "real" / "out" / "_COMPLETE").exists()
    assert (place / "first.jsonl").exists()


def test_no_command_writes_into_what_it_reads(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An output within an input is refused by every command that has both, and nothing is written."""
    pages = place / "pages"
    pages.mkdir()
    write_texts(pages / "a.jsonl", TEXTS)
    (place / "way").symlink_to(pages)
    (place / "grid.yaml").write_text("pairs.threshold: [0.8]\n")
    assert main(["run", str(pages), "--output", f"{place}/run", *PLAIN]) == 0
    assert main(["index", "create", f"{place}/repo"]) == 0
    assert main(["index", "add", f"{place}/repo", str(pages)]) == 0

    out = f"{place}/way/out"
    for arguments in (
        ["run", str(pages)],
        ["sweep", str(pages), "--grid", f"{place}/grid.yaml"],
        ["truth", f"{place}/run"],
        ["against", str(pages), f"{place}/first.jsonl"],
        ["against", f"{place}/first.jsonl", str(pages)],
        ["index", "query", f"{place}/repo", str(pages)],
    ):
        assert refused([*arguments, "--output", out], lambda: capsys.readouterr().err), arguments
    for output in (f"{place}/repo/segments/out", f"{place}/repo"):
        assert refused(["index", "tables", f"{place}/repo", "--output", output], lambda: capsys.readouterr().err)
    assert [file.name for file in pages.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize("kind", ["dangling", "pipe"])
def test_nothing_is_written_through_what_lies_there(place: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An output that is a link to a file not yet there, or a pipe, is refused by every command; none waits."""
    run, given, output = f"{place}/run", f"{place}/first.jsonl", place / "new"
    assert main(["run", given, "--output", run, *PLAIN]) == 0
    (place / "sets").write_text("1 2\n")
    if kind == "pipe":
        os.mkfifo(output)
    else:
        output.symlink_to("outside")
    for command in (
        ["truth", run], ["diff", run, run], ["split", run, "--parts", "a=.5,b=.5"], ["against", given, given],
        ["passages", given], ["run", given], ["mine", f"{place}/sets", "--support", "2"],
    ):  # fmt: skip
        capsys.readouterr()
        assert main([*command, "--output", str(output)]) == 2, command
        assert [line[:7] for line in capsys.readouterr().err.splitlines()].count("nddup: ") == 1
    assert not (place / "outside").exists()


def test_a_repository_does_not_read_itself(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A repository within an input, or an input within a repository, is refused: its own files are no documents."""
    assert main(["index", "create", f"{place}/real/repo"]) == 0
    write_texts(place / "real" / "repo" / "a.jsonl", TEXTS)
    for given in ("sym", "sym/repo", "real/repo/a.jsonl"):
        capsys.readouterr()
        assert main(["index", "add", f"{place}/real/repo", f"{place}/{given}"]) == 2
        assert f"{place}/real/repo" in capsys.readouterr().err


def test_folders_are_compared_by_their_place(tmp_path: Path, session_or_none: SparkSession | None) -> None:
    """Links, dots and file URIs are followed on both sides, on this machine and through Hadoop; names alone are not."""
    files = LocalStorage() if session_or_none is None else Storage(session_or_none)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "loop").symlink_to("loop")

    inside = [("a/b", "a"), ("link/b", "a"), ("a/b", "link"), ("a", "link"), ("link/none/deep", "a"), ("a/../a/b", "a")]
    outside = [("a", "a/b"), ("ab", "a"), ("a/b", "none"), ("loop", "a"), ("a", "loop"), ("/", "a")]
    for name, folder in inside:
        assert files.is_within(f"{tmp_path}/{name}", f"{tmp_path}/{folder}"), (name, folder)
        assert files.is_within(f"file:{tmp_path}/{name}", f"{tmp_path}/{folder}/"), (name, folder)
        with pytest.raises(OutputError, match="holds INPUT"):
            require_apart(files, [f"{tmp_path}/{name}"], f"{tmp_path}/{folder}")
    for name, folder in outside:
        assert not files.is_within(str(tmp_path / name), str(tmp_path / folder)), (name, folder)
