"""The page of passages: what it shows, in which order, and how it is marked."""

import json
import re
from pathlib import Path

import pytest

from nddup.cli import main

SHORT = " ".join(f"s{number}" for number in range(8))
LONG = " ".join(f"l{number}" for number in range(30))
FIVE = ["--set", "passages.min_tokens=5"]


@pytest.fixture
def page(tmp_path: Path) -> str:
    """The page of four documents: a long passage in two of them, a short one in three."""
    rows = [
        ("a<b>", f"{LONG} <script> and {SHORT} {'more ' * 9}{' '.join(f'x{number}' for number in range(900))}"),
        ("b", f"{LONG} here"),
        ("c", f"there {SHORT}"),
        ("d", f"{SHORT}"),
    ]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f"{json.dumps({'id': name, 'text': text})}\n" for name, text in rows), encoding="utf-8")
    assert main(["passages", str(path), "--output", str(tmp_path / "out"), *FIVE, "--set", "input.markup=text"]) == 0
    return (tmp_path / "out/report/index.html").read_text(encoding="utf-8")


def test_passages_come_by_the_tokens_they_save_with_their_places(page: str) -> None:
    """The one that saves most comes first; each lists its places, the first one first."""
    assert re.findall(r"<h3>([\d,]+) tokens saved</h3>", page) == ["30", "16"]
    places = re.findall(r'<th scope="row"><bdi>(.+?)</bdi>.*?<span class="chip.*?">(.+?)</span>', page)
    assert places == [
        ("a&lt;b&gt;", "first place"),
        ("b", "cut"),
        ("a&lt;b&gt;", "first place"),
        ("c", "cut"),
        ("d", "cut"),
    ]


def test_documents_have_their_repeated_parts_marked(page: str) -> None:
    """What can be cut and what stays are told apart; nothing of a text is markup, and long parts are left out."""
    assert f'<mark class="only">{LONG}</mark> here' in page
    assert f'<mark class="first">{LONG}</mark> &lt;script&gt; and <mark class="first">{SHORT}</mark>' in page
    assert "<script" not in page
    assert re.search(r"… [\d,]+ characters …", page)
    assert "default-src 'none'" in page


def test_no_page_where_no_report_is_wanted(tmp_path: Path) -> None:
    """With output.report=false only tables are written; without any passage the page says so."""
    path = tmp_path / "in.jsonl"
    path.write_text('{"id": "a", "text": "one"}\n', encoding="utf-8")
    assert main(["passages", str(path), "--output", str(tmp_path / "no"), "--set", "output.report=false"]) == 0
    assert not (tmp_path / "no/report").exists()
    assert main(["passages", str(path), "--output", str(tmp_path / "yes")]) == 0
    assert (tmp_path / "yes/report/index.html").read_text("utf-8").count("None.") == 2
