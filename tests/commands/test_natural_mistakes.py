"""Mistakes in data and settings that new users make: the exit status and the printed lines."""

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
    Path("odd/paper.pdf").write_bytes(b"%PDF-1.7\n\0")


def test_an_object_is_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    """A content key whose value is an object is refused, and the keys of that object are named."""
    assert main(["run", "news.jsonl", "--output", "out", "--set", "input.content=meta"]) == 2

    said = "input.content=meta: no record at the start of any file has it; news.jsonl has url, text, meta.by"
    assert capsys.readouterr() == ("", f"nddup: {said}\n")
    assert not Path("out").exists()


def test_a_benchmark_with_other_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """The refusal names the setting that is for the benchmark alone; one of the collection does not."""
    Path("qa.jsonl").write_text('{"q": "some question", "n": 1}\n', encoding="utf-8")

    assert main(["against", "news.jsonl", "qa.jsonl"]) == 2
    assert "(--set-b input.content=KEY is for qa.jsonl alone)" in capsys.readouterr().err
    assert main(["against", "qa.jsonl", "news.jsonl"]) == 2
    assert "--set-b" not in capsys.readouterr().err


def test_the_first_reject_of_each_reason_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary shows the first reject of each reason, and says so if no record became a document."""
    Path("bad.csv").write_text("id,text\n1,a b c\n2,a,b\n3,c,d\n1,a b c\n4,d\n", encoding="utf-8")
    Path("none.csv").write_text("id,text\n2,a,b\n", encoding="utf-8")

    assert main(["run", "bad.csv", "--output", "out", "--set", "output.report=false"]) == 0
    some = capsys.readouterr().out
    limits = ["--set", "input.max_rejects=1", "--set", "output.report=false"]
    assert main(["run", "none.csv", "--output", "none", *limits]) == 0
    none = capsys.readouterr().out

    assert "  note: first malformed: bad.csv#2: 3 fields, expected 2\n" in some
    assert "  note: first repeated id: bad.csv#4: first seen as record 1 of bad.csv\n" in some
    assert "no record became a document" not in some
    assert "  note: no record became a document; `nddup inspect INPUT` shows how each file is read\n" in none


def test_made_up_ids_and_unread_files_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A run first suggests a key for the id, and at its end names made-up ids by number and unread files by name."""
    assert main(["run", "odd", "--output", "out", "--set", "output.report=false"]) == 0

    said = capsys.readouterr()
    assert "news.csv: no id found, using file#record; perhaps input.id=url, if no two records share it\n" in said.err
    assert "note: 6 documents without an id: named file#record\n" in said.out
    assert "note: files that gave no document: paper.pdf (binary: a PDF); each is in rejects/\n" in said.out


def test_too_many_rejects_name_their_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    """The line of a run with too many rejects counts them by reason, in words and not as a dictionary."""
    limits = ["--set", "input.min_tokens=1000", "--set", "input.max_rejects=0.5"]
    assert main(["run", "news.jsonl", "--output", "out", *limits]) == 1

    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "nddup: 6 of 6 records are rejects (6 short); input.max_rejects=0.5 allows 3"


@pytest.mark.parametrize(
    "given",
    [
        ["run", "news.jsonl", "--output", ""],
        ["run", "news.jsonl", "--output=", "--overwrite"],
        ["run", "news.jsonl", "--output", "out", "--tables", ""],
        ["evaluate", "out", "--truth", ""],
    ],
)
def test_an_empty_value_of_an_option_is_refused(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As of a variable that is not set: it would name this folder, or have no effect."""
    with pytest.raises(SystemExit) as stopped:
        main(given)

    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert "expected a value, got an empty text; is a variable of the shell not set?" in said
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "out", "--labels", "none.csv"], "--labels none.csv: no such file or folder"),
        (["evaluate", "out", "--labels", "/dev/null"], "--labels /dev/null: expected a file or a folder, got a device"),
        (["evaluate", "out", "--labels", "out"], "/out: holds the results of a run\n"),
        (["evaluate", "out", "--judged", "none.csv"], "--judged none.csv: no such file or folder"),
        (["evaluate", "out", "--truth", "out"], "/out: holds the results of a run\n"),
        (
            ["split", "out", "--parts", "a=.5,b=.5", "--output", "new", "--fixed", "none.csv"],
            "--fixed none.csv: no such",
        ),
        (
            ["split", "out", "--parts", "_a=.5,b=.5", "--output", "new"],
            "begins with a letter or digit and is not split",
        ),
        (["run", "news.jsonl", "--output", "new", "--set", "keep.force=none.csv"], "keep.force none.csv: no such file"),
        (["run", "news.jsonl", "--output", "new", "--set", "input.charset=''"], "input.charset=: unknown encoding"),
        (["truth", "out", "--output", "new", "--sample", "-1"], "--sample: expected a whole number of at least 0"),
        (["sweep", "news.jsonl", "--output", "new", "--grid", "old.yaml"], "--grid old.yaml: not UTF-8"),
    ],
)
def test_a_wrong_value_is_refused_under_the_name_of_its_option(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that an option names is called by the option, not INPUT; nothing is written."""
    Path("old.yaml").write_bytes("# настройки\n".encode("cp1251"))
    assert main(["run", "news.jsonl", "--output", "out", "--set", "output.report=false", "--quiet"]) == 0
    capsys.readouterr()

    try:
        status = main(arguments)
    except SystemExit as error:
        status = int(str(error.code))

    assert status == 2
    refused = capsys.readouterr().err
    assert said in refused
    assert "INPUT" not in refused
    assert refused.count("\n") == 1
    assert not Path("new").exists()
