"""`nddup against --output-kept`: A is written again without the records that hold an item."""

import json
from pathlib import Path

import pytest

from nddup.cli import main

ITEM = " ".join(f"w{number}" for number in range(30))
OTHER = " ".join(f"z{number}" for number in range(30))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A training set of two files and a page, and a test set of two items, of which one stands in two documents."""
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "a/more"):
        Path(folder).mkdir()
    rows = [("1", f"before {ITEM} after"), ("2", OTHER), ("3", ITEM[: len(ITEM) // 3])]
    lines = [f"{json.dumps({'id': name, 'text': text}, separators=(',', ':'))}\n" for name, text in rows]
    Path("a/one.jsonl").write_text("".join([lines[0], "{broken\n", *lines[1:]]))
    Path("a/more/two.csv").write_text(f"id,text\n4,{OTHER}\n5,{ITEM}\n")
    Path("a/page.html").write_text(f"<html><body><p>{ITEM}</p></body></html>")
    Path("b.jsonl").write_text(
        json.dumps({"id": "q", "text": ITEM}) + "\n" + json.dumps({"id": "r", "text": "u " * 30})
    )
    return tmp_path


@pytest.mark.parametrize("of", ["item", "any"])
def test_records_that_hold_an_item_are_left_out(of: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every document that reaches the threshold goes, not only the best one; all else stays byte for byte."""
    assert main(["against", "a", "b.jsonl", "--of", of, "--output-kept", "clean"]) == 0

    first, second, third = [
        line for line in Path("a/one.jsonl").read_text().splitlines(keepends=True) if "{b" not in line
    ]
    stays = second if of == "any" else second + third  # all of the third document stands in the item
    assert first not in stays
    assert Path("clean/one.jsonl").read_text() == stays
    assert Path("clean/more/two.csv").read_text() == f"id,text\n4,{OTHER}\n"
    assert not Path("clean/page.html").exists()
    assert "A without what was found in clean" in capsys.readouterr().out
    assert (place / "a" / "page.html").exists()


def test_an_output_that_exists_or_lies_in_an_input_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is read before; the line names the option."""
    for folder in ("a", "a/clean"):
        assert main(["against", "a", "b.jsonl", "--output-kept", folder]) == 2
        assert capsys.readouterr().err.startswith(f"nddup: --output-kept {folder}: ")
    assert not (place / "a" / "clean").exists()
