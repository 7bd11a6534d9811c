"""`nddup show RUN --copies-of`: the documents that share a passage with a text, as a list for other commands."""

import csv
import io
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import nddup.repository
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.settings.load import build_config
from tests.finished_runs import write_texts

LENGTH, WHOLE = 8, 0.8


def words(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(count)]


TEXT = words("t", 60)
TEXTS = {
    "text": TEXT,
    "equal": TEXT,
    "near": [*TEXT[:57], *words("n", 3)],
    "longer": [*words("l", 50), *TEXT, *words("m", 50)],
    "shorter": TEXT[10:40],
    "=quoting": [*words("q", 100), *TEXT[20:32], *words("r", 20), *TEXT[40:50]],
    "too short": [*words("s", 40), *TEXT[:7], *words("u", 40)],
    "other": words("o", 60),
    "few": ["one", "two", "three"],
    "also few": ["one", "two", "three"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run over two files."""
    folder = tmp_path_factory.mktemp("copies")
    texts = {name: " ".join(text) for name, text in TEXTS.items()}
    halves = list(texts.items())
    for name, half in (("a", halves[::2]), ("b", halves[1::2])):
        (folder / "in").mkdir(exist_ok=True)
        write_texts(folder / "in" / f"{name}.jsonl", dict(half))
    config = build_config({"shingle": {"length": 2}, "output": {"report": False}}, origin="test")
    run_locally([str(folder / "in")], str(folder / "run"), config)
    return folder


def table_of(run: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(run / name).to_pylist()
    return rows


def copies(capsys: pytest.CaptureFixture[str], run: Path, asked: str) -> list[dict[str, str]]:
    """Return the rows of the list; their ids are spelled as in the list."""
    capsys.readouterr()
    assert main(["show", str(run), "--copies-of", asked, "--csv"]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def shingles(text: list[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(text[at : at + length]) for at in range(len(text) - length + 1)}


@pytest.mark.parametrize("asked", ["text", "shorter", "=quoting", "few"])
def test_all_that_share_a_passage_are_listed(made: Path, asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By definition: the shares of the shingles of either, and the places of the shared ones in the document."""
    own = shingles(TEXTS[asked], length := min(LENGTH, len(TEXTS[asked])))
    due = {}
    for name, text in TEXTS.items():
        theirs = shingles(text, length)
        if common := len(own & theirs):
            of_text, of_document = common / len(own), common / len(theirs)
            what = ("copy" if of_document >= WHOLE else "contains") if of_text >= WHOLE else (
                "contained" if of_document >= WHOLE else "passage")  # fmt: skip
            due[name] = (what, round(of_text, 4), round(of_document, 4))
    found = copies(capsys, made / "run", asked)
    assert {row["doc_id"].removeprefix("'"): (row["what"], float(row["of_text"]), float(row["of_document"]))
            for row in found} == due  # fmt: skip
    sources = {row["doc_id"]: (row["source"], str(row["record"])) for row in table_of(made / "run", "documents")}
    for row in found:
        name = row["doc_id"].removeprefix("'")
        assert (row["source"], row["record"]) == sources[name]
        cut = [" ".join(TEXTS[name])[slice(*map(int, place.split("-")))] for place in row["places"].split()]
        assert {one for piece in cut for one in shingles(piece.split(), length)} == own & shingles(TEXTS[name], length)


def test_a_file_of_texts_is_asked_for_too(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts that are no documents of the run; what is neither is one line."""
    file = made / "asked.txt"
    file.write_text(" ".join([*words("x", 9), *TEXTS["other"][:20]]))
    assert [(row["doc_id"], row["what"]) for row in copies(capsys, made / "run", str(file))] == [("other", "passage")]
    assert copies(capsys, made / "run", "<text>") == copies(capsys, made / "run", "text")  # as a Message-ID stands
    assert main(["show", str(made / "run"), "--copies-of", "nobody"]) == 2
    assert "neither a document of the run nor a file" in capsys.readouterr().err


def test_the_list_is_read_whole(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By `keep.force`, which removes all that it names, and by `index remove`."""
    found = copies(capsys, made / "run", "text")
    ids = {row["doc_id"].removeprefix("'") for row in found}
    main(["show", str(made / "run"), "--copies-of", "text", "--csv"])
    (tmp_path / "list.csv").write_text(capsys.readouterr().out)
    config = build_config({"keep": {"force": str(tmp_path / "list.csv")}, "output": {"report": False}}, origin="test")
    run_locally([str(made / "in")], str(tmp_path / "run"), config)
    forced = {row["doc_id"] for row in table_of(tmp_path / "run", "keep") if row["reason"] == "forced"}
    assert forced == ids == {"text", "equal", "near", "longer", "shorter", "=quoting"}

    nddup.repository.create(str(tmp_path / "repo"), local={"processes": 1}).add(
        {name: " ".join(text) for name, text in TEXTS.items()}
    )
    assert main(["index", "remove", str(tmp_path / "repo"), "--ids", str(tmp_path / "list.csv")]) == 0
    left = nddup.repository.open(str(tmp_path / "repo")).tables()["documents"]["doc_id"].to_pylist()
    assert set(left) == TEXTS.keys() - ids


@pytest.mark.parametrize("change", ["gone", "changed"])
def test_inputs_that_are_gone_are_one_line(tmp_path: Path, change: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The list would be incomplete: exit status 1."""
    texts = {name: " ".join(text) for name, text in TEXTS.items()}
    file = write_texts(tmp_path / "a.jsonl", texts)
    config = build_config({"output": {"report": False}}, origin="test")
    run_locally([str(file)], str(tmp_path / "run"), config)
    if change == "gone":
        file.unlink()
    else:
        os.utime(file, (1, 1))
    assert main(["show", str(tmp_path / "run"), "--copies-of", "text", "--csv"]) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.splitlines()[-1][:6]) == ("", "nddup:")
