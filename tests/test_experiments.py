"""The experiments of the papers start from any input, and say what is missing in one line."""

import argparse
import json
from itertools import pairwise
from pathlib import Path

import pytest

from bench.papers import run
from bench.papers.collections import FILES, given, texts_in
from bench.papers.romip import draw_pages


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
