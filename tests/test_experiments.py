"""The experiments of the papers start from any input, and say what is missing in one line."""

import argparse
import csv
import json
from itertools import pairwise
from pathlib import Path

import pytest

from bench.papers import page, run
from bench.papers.cells import Cells
from bench.papers.collections import FILES, given, texts_in
from bench.papers.romip import draw_pages
from bench.papers.tables import all_tables
from tests.places import ROOT


def test_an_own_collection_becomes_files_of_its_texts(tmp_path: Path) -> None:
    """The texts of any input come in the order of the collection, in as many files as the papers' subsets need."""
    (tmp_path / "own").mkdir()
    rows = [{"id": "b", "text": "one two three"}, {"id": "a", "text": "four five"}]
    (tmp_path / "own" / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "own" / "2.txt").write_text("six seven")

    files = given(tmp_path / "own", tmp_path / "build")

    assert len(files) == FILES
    assert [text.strip() for text in texts_in(files)] == ["one two three", "four five", "six seven"]


@pytest.mark.parametrize(
    ("collection", "parts", "told"),
    [
        ("absent", None, "no such file or folder"),
        (".", "2014", "expected --parts of 1997,2009,2017,miners,romip; got"),
    ],
)
def test_what_is_missing_is_told_in_one_line(tmp_path: Path, collection: str, parts: str | None, told: str) -> None:
    """A folder that does not exist, and a part that needs other pages, end the command with one line."""
    options = argparse.Namespace(collection=tmp_path / collection, data=tmp_path, parts=parts, small=False)

    with pytest.raises(SystemExit) as ended:
        run(options)

    assert told in str(ended.value)
    assert "\n" not in str(ended.value)


def test_generated_pages_are_alike_only_within_a_family() -> None:
    """As many pages come as are asked for, always the same; one without a family has no two words from another page."""
    texts = [" ".join(f"w{number}" for number in range(start, start + 5000)) for start in (0, 5000)]

    pages = list(draw_pages(texts, 150))

    assert pages == list(draw_pages(texts, 150))
    runs = [set(pairwise(text.split())) for text, _ in pages]
    assert len(pages) == 150
    assert 0 < sum(is_alone for _, is_alone in pages) < 150
    for place, (_, is_alone) in enumerate(pages):
        others = set().union(*runs[:place], *runs[place + 1 :])
        assert is_alone == runs[place].isdisjoint(others)


def small_results(path: Path) -> Cells:
    """Return made-up results: the sizes of clusters, a curve, and the bands of one page."""
    curve = [{"from": 0.2, "pairs": 2000, "candidates": 12, "expected": 16.25},
             {"from": 0.3, "pairs": 0, "candidates": 0, "expected": 0.0}]  # fmt: skip
    bands = {"headings": ["data set", "document", "< 60 %", "60-70 %"], "rows": [["a, b", "w1", "", "w2 w3"]]}
    made = Cells(path)
    made.get("sizes", {"collection": "mix-170"}, lambda: {"rows": [{"size": 2, "clusters": 1234}]})
    made.get("2017 curve", {}, lambda: {"rows": curve})
    made.get("2014", {}, lambda: bands)
    return made


def test_long_tables_are_files_that_the_pages_link(tmp_path: Path) -> None:
    """A page shows a table whole, or the rows it asks for with a link to a CSV file of all; exact, without commas."""
    made = all_tables(small_results(tmp_path / "cells.jsonl"))
    folder = tmp_path / "papers"
    folder.mkdir()
    main = tmp_path / "papers.md"
    main.write_text("Sizes\n<!-- sizes-2009 -->\nold\n<!-- /sizes-2009 -->\n[bands](papers/bands-2014.csv)\n")
    shown = "<!-- curve-2017: 0.3–0.4 -->\nold\n<!-- /curve-2017 -->\n"
    (folder / "2017.md").write_text(shown)

    with pytest.raises(ValueError, match=r"no place for the tables curve-2017$"):
        page.write_pages(made, main, folder)
    assert "old" in main.read_text()

    (folder / "2017.md").write_text(f"[all](curve-2017.csv)\n{shown}")
    for _ in range(2):
        page.write_pages(made, main, folder)

    assert "| 2 | 1,234 |\n| 3 | 0 |" in main.read_text()
    heading = "exact resemblance | pairs | candidates | expected by the formula | share | paper, from the first"
    assert (folder / "2017.md").read_text() == (
        f"[all](curve-2017.csv)\n<!-- curve-2017: 0.3–0.4 -->\n| {heading} |\n|---|---:|---:|---:|---:|---:|\n"
        "| 0.3–0.4 | 0 | 0 | 0 | – | 0.047 |\n<!-- /curve-2017 -->\n"
    )
    assert {path.name for path in folder.glob("*.csv")} == {"curve-2017.csv", "bands-2014.csv"}
    assert list(csv.reader((folder / "curve-2017.csv").open(encoding="utf-8"))) == [
        heading.split(" | "),
        ["0.2–0.3", "2000", "12", "16.2", "0.006", "0.006"],
        ["0.3–0.4", "0", "0", "0", "", "0.047"],
    ]
    assert list(csv.DictReader((folder / "bands-2014.csv").open(encoding="utf-8"))) == [
        {"data set": "a, b", "document": "w1", "< 60 %": "0", "60-70 %": "w2 w3"}
    ]


def test_another_collection_has_its_tables_in_its_own_folder(tmp_path: Path) -> None:
    """Every table is a CSV file of the folder, and whole in its tables.md."""
    page.write(small_results(tmp_path / "cells.jsonl"), tmp_path, is_published=False)

    assert {path.stem for path in tmp_path.glob("*.csv")} == {"sizes-2009", "curve-2017", "bands-2014"}
    assert "| 2 | 1,234 |" in (tmp_path / "tables.md").read_text(encoding="utf-8")


def test_the_stored_tables_have_the_form_that_a_run_writes() -> None:
    """Each CSV file of docs/papers is linked, shown whole nowhere, and has as many fields in each row as headings."""
    folder = ROOT / "docs" / "papers"
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "papers.md", *folder.glob("*.md")))
    for path in folder.glob("*.csv"):
        heading, *rows = csv.reader(path.open(encoding="utf-8"))
        assert rows, path
        assert len(set(heading)) == len(heading), path
        assert {len(row) for row in rows} == {len(heading)}, path
        assert f"{path.name})" in pages, path
        assert f"<!-- {path.stem} -->" not in pages, path
