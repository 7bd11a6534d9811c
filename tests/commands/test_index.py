"""The actions of `nddup index` on the command line: output, exit status and refusals."""

import contextlib
import gzip
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import nddup.repository
from nddup.cli import main
from nddup.errors import ConfigError
from nddup.ground.shown import csv_line

TEXTS = {f"p{n}": " ".join(f"w{n // 2}x{k}" for k in range(40)) + (" more" if n % 2 else "") for n in range(6)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a repository of two versions, a batch and a page."""
    folder = tmp_path_factory.mktemp("made")
    lines = [json.dumps({"id": name, "text": text}) for name, text in TEXTS.items()]
    (folder / "batch.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "nameless.jsonl").write_text(json.dumps({"text": "a text without an id"}) + "\n")
    (folder / "page.txt").write_text(TEXTS["p2"])
    (folder / "gone.txt").write_text("p0\nnobody\n")
    with contextlib.chdir(folder):
        assert index("create", "repo", "--set", "pairs.threshold=0.7", "--set", "local.processes=1") == 0
        assert index("add", "repo", "batch.jsonl") == 0
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Run in a copy of the folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    return tmp_path


def index(*arguments: str) -> int:
    """Run `nddup index`; returns its exit status."""
    return main(["index", *arguments])


def test_the_life_of_a_repository(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each action prints what it did, and adding a batch again changes nothing."""

    def told(*arguments: str, status: int = 0) -> str:
        assert index(*arguments) == status
        return capsys.readouterr().out

    assert told("add", "repo", "batch.jsonl") == "repo: nothing changed (6 unchanged)\n"
    assert "p2 1.000, p3 " in told("query", "repo", "page.txt", "--exit-code", status=3)
    assert ">=90: p2" in told("query", "repo", "page.txt", "--bands", "90", "--top", "1")
    assert "no match" in told("query", "repo", "page.txt", "--versions", "7", "--exit-code")
    assert "no match" in told("query", "repo", "page.txt", "--sources", "other/*")
    assert "unknown: nobody" in told("remove", "repo", "--ids", "gone.txt")
    assert told("tables", "repo", "--output", "out").endswith("results in out\n")
    assert "BROKEN" not in told("check", "repo")
    assert "one segment" in told("compact", "repo", "--days", "0")
    assert len(told("list", "repo").splitlines()) >= 4
    assert main(["show", "out"]) == 0
    assert (place / "out" / "report" / "index.html").exists()


@pytest.mark.parametrize("text", ["\ufeffp1\r\n", " p1 \t\n\n", "p1\r\r", "\tp1", "p1\t"])
def test_what_editors_add_is_no_part_of_an_id(text: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mark, blanks, tabs and any line end around an id do not hide it."""
    (place / "ids.txt").write_bytes(text.encode())

    assert index("remove", "repo", "--ids", "ids.txt") == 0
    assert "unknown" not in capsys.readouterr().out
    assert index("list", "repo") == 0


def test_a_list_of_our_own_may_be_removed_twice(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table with `doc_id`, or cells without names, name what is removed; ids that never stood exit with 2."""
    (place / "odd.jsonl").write_text(
        "".join(json.dumps({"id": one, "text": f"{one} x"}) + "\n" for one in ("@a", "=b, c"))
    )
    (place / "table.csv").write_text(csv_line(["duplicate_of", "doc_id"]) + csv_line(["p1", "@a"]))
    (place / "cells.csv").write_text(csv_line(["=b, c", "kept"]) + csv_line(["nobody", "kept"]))
    (place / "none.txt").write_text("nobody\nnone\n")
    assert index("add", "repo", "odd.jsonl") == 0
    capsys.readouterr()

    assert index("remove", "repo", "--ids", "cells.csv", "--all-known") == 2
    assert "1 id of no document: nobody" in capsys.readouterr().err
    for name, unknown in (("table.csv", 0), ("cells.csv", 1)):
        for before in (0, 1):
            assert index("remove", "repo", "--ids", name) == 0
            told = capsys.readouterr().out
            assert (told.count("unknown: nobody"), told.count("removed before: 1")) == (unknown, before)
    assert index("remove", "repo", "--ids", "none.txt") == 2
    assert "--ids none.txt: none of 2 ids is a document: nobody, none" in capsys.readouterr().err


def test_a_query_without_text_is_not_called_unlike(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A query that nothing can be like says so, and one that cannot be read has its reason; --exit-code tells it."""
    (place / "asked").mkdir()
    (place / "asked/empty.jsonl").touch()
    (place / "asked/q.jsonl").write_text(
        '{"id": "none", "text": ""}\n{"id": "signs", "text": "!!! ..."}\n{"id": "new", "text": "other words"}\n{bad\n'
    )

    assert index("query", "repo", "asked", "--exit-code") == 1

    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert lines[:3] == ["none   nothing to compare", "signs   nothing to compare", "new   no match"]
    assert lines[3].startswith("q.jsonl#4: not read: malformed: ")
    assert lines[4] == "empty.jsonl#1: not read: no records: the file is empty"
    assert "2 records could not be read" in told.err


def test_one_text_one_path_and_one_id_are_no_lists_of_characters(place: Path) -> None:
    """A string or a `Path` given where several are expected is one of them; what is no text is refused."""
    repo = nddup.repository.open(place / "repo")

    assert repo.query(TEXTS["p2"])["doc_id"].to_pylist() == ["p2", "p3"]
    assert repo.query(["", TEXTS["p0"]])["note"].to_pylist() == ["nothing to compare", None, None]
    assert repo.query_files(place / "page.txt")[0]["doc_id"].to_pylist() == ["p2", "p3"]
    assert repo.add(str(place / "batch.jsonl")).commit is None
    assert repo.remove("p5")[1] == []
    for wrong in (b"bytes", [None], {"a": 1}):
        with pytest.raises(ConfigError, match=r"^query: expected texts as strings, got \w+ for \w+$"):
            repo.query(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mode": "Frozen"}, "--mode Frozen: expected rebuild or frozen"),
        ({"mode": None}, "--mode None: expected rebuild or frozen"),
        ({"store": "keep"}, "--store keep: expected all or kept"),
        ({"texts": 1.5}, "--texts 1.5: expected 0 to 268,435,456 characters"),
        ({"texts": "many"}, "--texts many: expected 0 to 268,435,456 characters"),
        ({"lowest": "low"}, "--lowest low: expected a number such as 0.6"),
        ({"lowest": True}, "--lowest True: expected a number such as 0.6"),
    ],
)
def test_what_a_program_gives_is_compared_as_the_options(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    """`create` in Python refuses what the command line refuses, and makes nothing."""
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        nddup.repository.create(tmp_path / "made", **given)

    assert not (tmp_path / "made").exists()


def test_a_batch_without_rows_changes_nothing(tmp_path: Path) -> None:
    """An empty list has no rows, as for `find_duplicates`, and no columns; nothing is committed."""
    for policy in ("longest", ["-score:number"]):
        repo = nddup.repository.create(tmp_path / policy[0], keep={"policy": policy})
        for nothing in (list[str](), (), dict[str, str]()):
            assert repo.add(nothing).commit is None
        assert repo.version == 1


WRONG: list[tuple[list[str], str]] = [
    (["list", "nowhere://host/repo"], "nowhere://host/repo: "),
    (["add", "nowhere", "batch.jsonl"], "nowhere: is not a repository of nddup"),
    (["add", "repo", "nothing.jsonl"], "INPUT nothing.jsonl: no such file or folder"),
    (["add", "repo", "s3a://there/pages", "--engine", "local"], "is not a path of this machine"),
    (["add", "repo", "nameless.jsonl"], "ids made up from file and record may repeat in another batch"),
    (["create", "repo"], "repo: exists already, and is not empty"),
    (["create", "new", "--texts", "-1"], "--texts -1: expected 0 to 268,435,456 characters"),
    (["create", "new", "--texts", "1" + 20 * "0"], f"--texts 1{20 * '0'}: expected 0 to 268,435,456 characters"),
    (["create", "new", "--lowest", "0.95"], "--lowest 0.95: expected more than 0 and at most pairs.threshold 0.7"),
    (["create", "new", "--lowest", "low"], "--lowest low: expected a number"),
    (["create", "new", "--lowest", "nan"], "--lowest nan: expected more than 0 and at most pairs.threshold 0.7"),
    (["create", "new", "--store", "kept"], "--store kept: needs --mode frozen"),
    (["create", "new", "--set", "sketch.kind=i-match"], "give lexicon.saved"),
    (["query", "repo", "page.txt", "--bands", "20"], "--bands 20: expected 70 to 100"),
    (["query", "repo", "page.txt", "--bands", "many"], "--bands many: expected lower ends"),
    (["query", "repo", "page.txt", "--bands", "80,nan"], "--bands nan: expected 70 to 100"),
    (["query", "repo", "page.txt", "--versions", "3..1"], "--versions 3..1: no version is in it"),
    (["query", "repo", "page.txt", "--versions", "new"], "--versions new: expected a version"),
    (["query", "repo", "page.txt", "--also", "nowhere"], "nowhere: is not a repository of nddup"),
    (["query", "repo", "page.txt", "--output", "repo"], "--output repo: exists already"),
    (["compact", "repo", "--days", "-1"], "--days -1: expected 0 or more days"),
    (["compact", "repo", "--days", "nan"], "--days nan: expected 0 or more days"),
    (["tables", "repo", "--output", "out", "--version", "9"], "has no version 9; there are 1 to 2"),
    (["remove", "repo", "--ids", "nowhere.txt"], "--ids nowhere.txt: cannot be read"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_wrong_use_is_one_line(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """Wrong use is refused in one line that names the mistake, and no file is changed or created."""
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}

    status = index(*arguments)

    told = capsys.readouterr().err.splitlines()
    assert status in (1, 2)
    assert len(told) == 1
    assert said in told[0]
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def values(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> dict[str, Any]:
    """Return what a command prints with --json."""
    assert main([*arguments, "--json"]) == status
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    found: dict[str, Any] = json.loads(printed)
    return found


def test_every_result_can_be_had_as_json(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each action that prints a result prints the same as one line of JSON; the exit status is that of the text."""
    assert values(capsys, "index", "create", "new") == {"version": 1, "documents": 0}
    assert values(capsys, "index", "add", "new", "batch.jsonl")["counts"]["added"] == 6
    assert values(capsys, "index", "remove", "repo", "--ids", "gone.txt")["unknown"] == ["nobody"]
    assert [one["version"] for one in values(capsys, "index", "list", "new")["versions"]] == [1, 2]
    found = values(capsys, "index", "query", "repo", "page.txt", "--exit-code", status=3)["matches"]
    assert [row["doc_id"] for row in found] == ["p2", "p3"]
    assert values(capsys, "index", "tables", "new", "--output", "out")["rows"]["documents"] == 6
    assert values(capsys, "index", "check", "new")["is_sound"]
    assert values(capsys, "index", "compact", "new", "--days", "0")["version"] is None

    cluster = values(capsys, "show", "out")["clusters"][0]["cluster_id"]
    assert values(capsys, "show", "out", "--cluster", cluster)["size"] == 2
    assert values(capsys, "show", "out", "--doc", "p0")["near"][0]["other"] == "p1"
    assert values(capsys, "show", "out", "--borderline", "3")["threshold"] == 0.7
    assert values(capsys, "check", "out")["is_sound"]
    assert values(capsys, "run", "batch.jsonl", "--output", "run", "--set", "output.report=false")["records"] == 6
    items = values(capsys, "against", "batch.jsonl", "page.txt", "--exit-code", status=3)["items"]
    assert [item["verdict"] for item in items] == ["found"]
    assert (place / "run" / "metrics.json").exists()


def test_a_document_need_not_find_itself(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A query that is stored itself finds the others, also where it is the only one like it."""
    Path("stored.jsonl").write_text(json.dumps({"id": "p2", "text": TEXTS["p2"]}) + "\n")

    assert index("query", "repo", "stored.jsonl", "--top", "1", "--not-itself") == 0
    assert capsys.readouterr().out.startswith("p2   p3 ")
    assert index("query", "repo", "stored.jsonl", "--bands", "99", "--not-itself", "--exit-code") == 0
    assert capsys.readouterr().out == "p2   no match\n"
    assert place.exists()


def test_a_query_may_come_from_standard_input(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-` is one document, also a plain text, or a file of them in any format; anything else is a mistake."""
    del place
    for given, due in ((f"<html><body>{TEXTS['p2']}</body></html>".encode(), "stdin.txt   p2 1.000"),
                       (gzip.compress(TEXTS["p2"].encode()), "stdin.txt   p2 1.000"),
                       (json.dumps({"id": "q", "text": TEXTS["p4"]}).encode(), "q   p4 1.000")):  # fmt: skip
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        assert index("query", "repo", "-") == 0
        assert capsys.readouterr().out.startswith(due)
    for given, due in ((b"", "standard input is empty"), (b"\x7fELF\0\0\0", "nddup: standard input: ")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        assert index("query", "repo", "-") == 2
        assert due in capsys.readouterr().err


def test_a_batch_can_be_written_without_its_duplicates(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The files of the batch are written again with the documents that were new and are kept, line by line."""
    assert index("create", "fixed", "--mode", "frozen") == index("add", "fixed", "batch.jsonl") == 0
    texts = {"n1": f"{TEXTS['p0']} x", "p2": TEXTS["p2"], "n2": " ".join(f"z{k}" for k in range(40)),
             "n3": f"n3 {TEXTS['p4']}"}  # fmt: skip
    new = [{"id": name, "text": text} for name, text in texts.items()]
    capsys.readouterr()
    lines = [f"{json.dumps(row)}\n" for row in new]
    (place / "in").mkdir()
    (place / "in" / "new.jsonl").write_text("".join([lines[0], "{broken\n", *lines[1:]]))

    assert index("add", "fixed", "in", "--output", "clean") == 0
    assert "new documents in clean" in capsys.readouterr().out
    assert (place / "clean" / "new.jsonl").read_text() == lines[2]
    kept = nddup.repository.open("fixed").tables()["keep"]
    assert [row["kept"] for row in kept.to_pylist() if row["doc_id"] in {"n1", "n2", "n3"}] == [False, True, False]

    assert index("add", "fixed", "in", "--output", "clean") == 2
    assert "exists already" in capsys.readouterr().err
    assert index("add", "fixed", "in", "--output", "in/clean") == 2
    assert index("add", "fixed", "in", "--output", "again") == 0
    assert (place / "again" / "new.jsonl").read_text() == ""
    assert sorted(path.name for path in place.iterdir() if path.name.startswith(".")) == []
