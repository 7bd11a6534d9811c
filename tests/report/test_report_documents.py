"""Documents and families in a browser: each document can be found and compared; overlapping sets are one family."""

import csv
import io
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.report.made_reports import Document, make_shown, write_to
from tests.report.opened_reports import CLUSTERS, EDITED, WORDS, Watched

pytestmark = pytest.mark.browser

OVERLAPPING: list[list[Document]] = [
    [(name, f"https://one.example/{name}", f"operator- {WORDS}") for name in ("a", "b", "c", "d")],
    [(name, f"https://two.example/{name}", f"operator-= {WORDS}") for name in ("d", "e", "f")],
    [(name, f"https://two.example/{name}", "") for name in ("e", "g")],
]


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a report of three overlapping sets; return the address of its page."""
    return write_to(tmp_path_factory.mktemp("family"), make_shown(OVERLAPPING, is_family=True))


def test_any_document_is_found_and_told(watched: Watched, address: str) -> None:
    """A document is found by words of its address, even without duplicates; its page explains and compares."""
    page = watched.open(address, "documents")
    status = page.locator("#documents .status")
    expect(status).to_have_text("10 documents")
    page.get_by_label("Search").fill("guide install")
    expect(status).to_have_text("1 of 10 documents")
    page.locator("#documents .rows a").first.click()
    expect(page.locator("#document .lead")).to_have_text(
        "Kept, unique: no other document of the run is a near-duplicate of it."
    )
    page.get_by_role("link", name="All documents").click()
    expect(page.get_by_label("Search")).to_have_value("guide install")

    page = watched.open(address, "document/b")
    expect(page.locator("#document .lead")).to_have_text(
        "Kept: the longest of a family of 3 documents. 2 documents were removed in its favour."
    )
    assert page.locator("#document table").first.locator("tbody tr").count() == 2
    page.locator("#document td a", has_text="a").first.click()
    expect(page.locator("#document .lead")).to_contain_text("Removed: it is a near-duplicate of b, which is kept.")
    page.get_by_role("link", name="Compare the two").click()
    expect(page.locator("#compare .verdict")).to_contain_text("the run lists 0.900, exact")
    assert EDITED.partition(" ")[0] in page.locator("#compare .pair-rows").inner_text()
    page = watched.open(address, "document/alone")
    expect(page.locator("#document .facts")).to_contain_text("1,200 bytes, 1 part")
    expect(page.locator("#document .facts")).to_contain_text("Leaderof a component of more pairs than pairs.max_edges")
    expect(page.locator("#document .facts a", has_text="b").last).to_have_attribute("href", "#/document/b")
    page = watched.open(address, "document/nobody")
    expect(page.locator("#document h1")).to_have_text("No such document")


def test_families_lead_to_what_a_document_stands_for(watched: Watched, address: str) -> None:
    """The first page names the largest families; a family is a kept document with those removed for it."""
    page = watched.open(address)
    assert page.locator("#overview .largest .note").all_text_contents() == ["3 documents", *["2 documents"] * 3]
    page.get_by_role("link", name="All families").click()
    expect(page.locator("#documents h1")).to_have_text("Families")
    expect(page.locator("#documents .status")).to_have_text("4 families of 10 documents")
    expect(page.locator("nav [aria-current]")).to_have_text("Families")
    page.locator("#documents .rows a").first.click()
    expect(page.locator("#document h1")).to_contain_text("b")
    rows = page.locator("#document table").first.locator("tbody tr").all_inner_texts()
    assert [" ".join(row.split()) for row in rows] == [f"{one} near-duplicate 0.900 2.5 % Compare" for one in "ac"]
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.locator("#document .scroll").first.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("link", name="All documents").click()
    page.get_by_label("Outcome").select_option("")
    expect(page.locator("#documents h1")).to_have_text("Documents")
    assert page.evaluate("[-1, 0, 3, 250].map(nddup.lost)") == ["–", "0.0 %", "< 0.1 %", "2.5 %"]


def test_a_cluster_shows_what_its_documents_share(watched: Watched, address: str) -> None:
    """The page of a cluster marks in the first text what is not common to all, and lists what each has beside it."""
    page = watched.open(address, "cluster/0000000000000000")
    said = page.locator("#extent + p")
    shared, least = page.evaluate(
        "(([one, two, three]) => { const found = nddup.extent([one, two, three], { length: 5, offset: 1 });"
        " return [found.common, found.least]; })",
        [text for _, _, text in CLUSTERS[0]],
    )
    sets = [
        {tuple(words[at : at + 5]) for at in range(len(words) - 4)}
        for words in (text.lower().split() for _, _, text in CLUSTERS[0])
    ]
    assert (shared, least) == (len(set.intersection(*sets)), min(map(len, sets)))
    expect(said).to_contain_text(f"{shared} shingles of 5 words in all documents: ")
    expect(page.locator(".extent .body")).to_have_text(CLUSTERS[0][0][2])
    rows = page.locator("#extent ~ .card table").first.locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["b", "a", "c"]
    assert "changed words here" in rows[1]


def test_documents_are_filtered_and_saved(watched: Watched, address: str) -> None:
    """Documents are filtered by source, site and outcome, also from the address; the CSV has no formulas."""
    page = watched.open(address, "documents?outcome=removed&site=example.org")
    status = page.locator("#documents .status")
    expect(status).to_have_text("2 of 10 documents")
    page.get_by_label("Outcome").select_option("unique")
    expect(status).to_have_text("0 of 10 documents")
    page.get_by_label("Site").fill("elsewhere")
    expect(status).to_have_text("1 of 10 documents")
    page.get_by_label("Site").fill("")
    page.get_by_label("Outcome").select_option("")
    page.get_by_label("Source").fill("pages")
    expect(status).to_have_text("9 of 10 documents")

    with page.expect_download() as waited:
        page.locator("#documents").get_by_role("button", name="Save as CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(waited.value.path()).read_text("utf-8-sig"), newline="")))
    assert len(rows) == 9
    assert {row["doc_id"]: (row["outcome"], row["duplicate_of"]) for row in rows}["a"] == ("near", "b")
    made = page.evaluate("""nddup.csv(["a"], [["=1+1"], [" ＝1"], ["'@"], ["-5"], ['x"y'], [-3], [null]])""")
    assert made == "a\r\n'=1+1\r\n' ＝1\r\n''@\r\n-5\r\n\"x\"\"y\"\r\n-3\r\n\r\n"


def test_overlapping_sets_are_one_family(watched: Watched, family: str) -> None:
    """Overlapping sets are folded under the largest with their shared size; the graph can show one alone."""
    page = watched.open(family, "clusters")
    expect(page.locator("#clusters .status")).to_have_text("3 clusters, 2 of them folded under one they overlap with")
    page.get_by_role("button", name="+ 2 overlapping sets").click()
    assert page.locator("#clusters .rows .row.child .tag").first.inner_text().startswith("shares 1 of 3 with")
    page.get_by_label("fold overlapping sets").uncheck()
    expect(page.locator("#clusters .rows .row")).to_have_count(3)

    page = watched.open(family, "cluster/0000000000000001")
    expect(page.locator("#cluster .hint")).to_contain_text("It shares 1 of its 3 documents with a set of 4")
    page.get_by_role("link", name="See all 7 documents of these sets").click()
    expect(page.locator("#family h1")).to_have_text("3 overlapping sets, 7 documents")
    assert page.locator("#family .node").count() == 7
    assert page.locator("#family .hull:not(.is-off)").count() == 3
    page.get_by_role("button", name="Show").nth(1).click()
    assert page.locator("#family .hull:not(.is-off)").count() == 1
    assert page.locator("#family .node:not(.is-off)").count() == 3
    page.locator("#family .node").nth(3).click()
    expect(page.locator("#document h1")).to_contain_text("d")
    expect(page.locator("#document table tbody tr", has_text="0000000000000001")).to_have_count(1)


def test_what_is_not_compared_is_marked(watched: Watched, family: str) -> None:
    """Signs that tokens ignore, as in `operator-` and `operator-=`, are marked, and the summary counts them."""
    page = watched.open(family, "compare/a/e")

    expect(page.locator("#compare .verdict")).to_contain_text("1 place differs only in these")
    marked = page.locator("#compare .pair-rows .uncompared").all_inner_texts()
    assert [text.strip() for text in marked] == ["-", "-="]
    assert page.locator("#compare .pair-rows mark.only").count() == 0
