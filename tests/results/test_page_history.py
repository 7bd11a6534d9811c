"""`nddup show --captures` and `--compare`: how the pages of an archive changed."""

import csv
import gzip
import io
from pathlib import Path

import pytest

from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError, NddupError
from nddup.results.captures import capture_lines, show_captures
from nddup.results.show import compare_texts, mark
from nddup.settings.load import load_config
from tests.run.crawls import CRAWL, Made, words

NEWS = "http://news.example/"
FIRST = f"breaking {words(7)}"
MADE = [
    *CRAWL,
    Made("n4", NEWS, FIRST, "2024-03-02T10:00:00Z"),
    Made("n1", NEWS, FIRST, "2024-01-01T10:00:00Z"),
    Made("n2", NEWS, f"{FIRST} updated", "2024-01-02T10:00:00Z"),
    Made("n3", NEWS, words(8), "2024-02-02T10:00:00Z"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> DuckRun:
    """A crawl with revisits and a page that changes and returns."""
    folder = tmp_path_factory.mktemp("captures")
    (folder / "crawl.warc.gz").write_bytes(b"".join(gzip.compress(one.warc()) for one in MADE))
    run_locally([str(folder / "crawl.warc.gz")], str(folder / "run"), load_config())
    return DuckRun(str(folder / "run"))


def test_captures_stand_in_the_order_of_their_dates(run: DuckRun) -> None:
    """Each is compared with the one before it at its address; a text that returns keeps its number."""
    rows = list(csv.DictReader(io.StringIO("".join(capture_lines(run)))))

    news = [(row["doc_id"], row["change"], row["text"], row["since"][:10]) for row in rows if row["address"] == NEWS]
    assert news == [
        ("urn:x:n1", "first", "1", "2024-01-01"),
        ("urn:x:n2", "near", "2", "2024-01-02"),
        ("urn:x:n3", "changed", "3", "2024-02-02"),
        ("urn:x:n4", "changed", "1", "2024-01-01"),
    ]
    others = [(row["doc_id"], row["change"], row["before"]) for row in rows if row["address"] == "http://a.example/"]
    assert others == [("urn:x:z", "first", ""), ("urn:x:a", "same", "urn:x:z"), ("urn:x:b", "same", "urn:x:a")]
    assert len(rows) == int(run.metrics.rows["documents"])


def test_the_summary_counts_what_changed(run: DuckRun) -> None:
    """Captures and addresses, and the address with the most texts first."""
    lines = show_captures(run).splitlines()

    assert lines[0] == "10 captures of 4 addresses, 2020-01-01 to 2024-03-02"
    assert lines[8] == "         4      3  2024-01-01  2024-03-02  http://news.example/"


def test_two_captures_are_compared_word_by_word(run: DuckRun) -> None:
    """Only what differs is printed, with the words beside it."""
    lines = compare_texts(run, "urn:x:n1", "urn:x:n2", master=None).splitlines()

    assert lines[-1].endswith("word7of59 {+updated+}")
    for name in ("nobody", "\udcff"):  # of bytes that are no text
        with pytest.raises(ConfigError, match=r"^--compare .*: no such document"):
            compare_texts(run, "urn:x:n1", name, master=None)
    assert compare_texts(run, "<urn:x:n1>", "<urn:x:n2>", master=None).splitlines() == lines
    with pytest.raises(ConfigError, match="--compare: expected two documents, got urn:x:n1 twice"):
        compare_texts(run, "<urn:x:n1>", "urn:x:n1", master=None)


def test_marks_stand_around_differences_alone() -> None:
    """Common words far from any difference are left out; equal texts have no line of their own."""
    words = [f"w{number}" for number in range(60)]
    changed = [*words[:20], "x", *words[21:], "end"]

    assert mark(words, changed) == [
        "… w12 w13 w14 w15 w16 w17 w18 w19 [-w20-] {+x+} w21 w22 w23 w24 w25 w26 w27 w28 …",
        "… w52 w53 w54 w55 w56 w57 w58 w59 {+end+}",
    ]
    assert mark(words, words) == ["the same words"]
    assert mark([], ["a"]) == ["{+a+}"]


def test_other_collections_have_no_captures(tmp_path: Path) -> None:
    """A run over no archive says so."""
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "a few words of a text"}\n')
    run_locally([str(tmp_path / "a.jsonl")], str(tmp_path / "run"), load_config())

    with pytest.raises(NddupError, match="has no captures"):
        show_captures(DuckRun(str(tmp_path / "run")))
