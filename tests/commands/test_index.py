"""The actions of `nddup index` on the command line: output, exit status and refusals."""

import json
from pathlib import Path

import pytest

import nddup.repository
from nddup.cli import main
from nddup.errors import ConfigError

TEXTS = {f"p{n}": " ".join(f"w{n // 2}x{k}" for k in range(40)) + (" more" if n % 2 else "") for n in range(6)}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Run in a folder with a repository of two versions, a batch and a page."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": name, "text": text}) for name, text in TEXTS.items()]
    Path("batch.jsonl").write_text("\n".join(lines) + "\n")
    Path("nameless.jsonl").write_text(json.dumps({"text": "a text without an id"}) + "\n")
    Path("page.txt").write_text(TEXTS["p2"])
    Path("gone.txt").write_text("p0\nnobody\n")
    assert index("create", "repo", "--set", "pairs.threshold=0.7", "--set", "local.processes=1") == 0
    assert index("add", "repo", "batch.jsonl") == 0
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


WRONG: list[tuple[list[str], str]] = [
    (["list", "nowhere://host/repo"], "nowhere://host/repo: "),
    (["add", "nowhere", "batch.jsonl"], "nowhere: is not a repository of nddup"),
    (["add", "repo", "nothing.jsonl"], "INPUT nothing.jsonl: no such file or folder"),
    (["add", "repo", "s3://there/pages", "--engine", "local"], "is not a path of this machine"),
    (["add", "repo", "nameless.jsonl"], "ids made up from file and record may repeat in another batch"),
    (["create", "repo"], "repo: exists already, and is not empty"),
    (["create", "new", "--texts", "-1"], "--texts -1: expected 0 or more characters"),
    (["create", "new", "--lowest", "0.95"], "--lowest 0.95: expected more than 0 and at most pairs.threshold 0.7"),
    (["create", "new", "--lowest", "low"], "--lowest low: expected a number"),
    (["create", "new", "--store", "kept"], "--store kept: needs --mode frozen"),
    (["create", "new", "--set", "sketch.kind=i-match"], "give lexicon.saved"),
    (["query", "repo", "page.txt", "--bands", "20"], "--bands 20: expected 70 to 100"),
    (["query", "repo", "page.txt", "--bands", "many"], "--bands many: expected lower ends"),
    (["query", "repo", "page.txt", "--versions", "3..1"], "--versions 3..1: no version is in it"),
    (["query", "repo", "page.txt", "--versions", "new"], "--versions new: expected a version"),
    (["query", "repo", "page.txt", "--also", "nowhere"], "nowhere: is not a repository of nddup"),
    (["query", "repo", "page.txt", "--output", "repo"], "--output repo: exists already"),
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
