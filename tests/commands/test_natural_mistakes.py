"""What people get wrong in their first hour: the exit status and every line that is printed."""

import json
from pathlib import Path

import pytest

from nddup.cli import main

ROWS = [
    {"url": f"http://x/{i}", "text": " ".join(f"w{i}-{j}" for j in range(30)), "meta": {"by": "a"}} for i in range(6)
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    Path("odd").mkdir()
    Path("odd/news.csv").write_text(Path("news.jsonl").read_text(encoding="utf-8"), encoding="utf-8")
    Path("odd/note.txt").write_text("a note", encoding="utf-8")
    Path("odd/logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")


AS_SETTING = "a setting is given as --set pairs.threshold=0.9"
MISTAKES = {
    "a key that is not there": (
        ["--set", "input.id=nope"],
        "input.id=nope: no record at the start of any file has it; news.jsonl has url, text, meta.by",
    ),
    "an object as text": (
        ["--set", "input.content=meta"],
        "input.content=meta: no record at the start of any file has it; news.jsonl has url, text, meta.by",
    ),
    "per cent": (
        ["--set", "pairs.threshold=80"],
        "--set: pairs.threshold: an integer (80) is a count, which needs measure overlap; for a share write 0.8",
    ),
    "a setting as an option": (
        ["--threshold", "0.9"],
        f"unrecognized arguments: --threshold 0.9; {AS_SETTING} (see nddup run --help)",
    ),
    "an option of nobody": (["--fast"], "unrecognized arguments: --fast (see nddup run --help)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_line_says_what_to_do(
    mistake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is started, nothing is written."""
    arguments, said = MISTAKES[mistake]
    command = ["run", "news.jsonl", "--output", "out", *arguments]
    monkeypatch.setattr("sys.argv", ["nddup", *command])
    try:
        status = main(command)
    except SystemExit as left:
        status = int(str(left.code))

    assert status == 2
    assert capsys.readouterr() == ("", f"nddup: {said}\n")
    assert not Path("out").exists()


def test_wildcards_that_the_shell_left(capsys: pytest.CaptureFixture[str]) -> None:
    """Quoted, they are names of files."""
    assert main(["run", "in/*.jsonl", "--output", "out"]) == 2

    said = "no such file or folder; wildcards are taken literally: leave out the quotes, or name the folder"
    assert capsys.readouterr() == ("", f"nddup: INPUT in/*.jsonl: {said}\n")


def test_made_up_ids_and_unread_files_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    """At the start which key could be the id; at the end how many were made up, and what was not read."""
    assert main(["run", "odd", "--output", "out", "--set", "output.report=false"]) == 0

    said = capsys.readouterr()
    assert "news.csv: no id found, using file#record; perhaps input.id=url\n" in said.err
    assert "note: 6 documents have no id of their own: theirs is file#record\n" in said.out
    unread = "logo.png (binary, of no format that nddup reads), note.txt (neither XML nor JSON lines)"
    assert f"note: files that gave no record: {unread}; each is in rejects/\n" in said.out


def test_too_many_rejects_name_their_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    """As people write numbers, not as a dictionary."""
    limits = ["--set", "input.min_tokens=1000", "--set", "input.max_rejects=0.5"]
    assert main(["run", "news.jsonl", "--output", "out", *limits]) == 1

    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "nddup: 6 of 6 records are rejects (6 short); input.max_rejects=0.5 allows 3"
