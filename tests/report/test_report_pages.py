"""Reports of unusual runs (hostile, evaluated, empty, damaged, large), and their accessibility."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from nddup.reading.id_lists import list_judged, read_rows
from nddup.report.gather import SCRIPTS
from tests.report.made_reports import make_shown, many_clusters, write_to
from tests.report.opened_reports import CLUSTERS, HOSTILE, Watched, labels
from tests.samples_by_night import by_day_if_changed

pytestmark = pytest.mark.browser

VIEWS = ("", "clusters", "cluster/0000000000000000", "documents", "document/a", "judge", "quality", "run")


def test_hostile_documents_are_text(watched: Watched, address: str) -> None:
    """Markup, scripts and broken characters in ids, addresses, texts, rejects and paths are shown and never run."""
    for view in (
        "",
        "clusters",
        "cluster/0000000000000002",
        "cluster/0000000000000003",
        "documents",
        "document/alone",
        "judge",
        "quality",
        "run",
    ):
        page = watched.open(address, view)
        expect(page.locator("main > section:visible h1")).to_be_visible()
        if view == "cluster/0000000000000002":
            page.wait_for_selector(".compared")
            assert HOSTILE in page.locator("#cluster").inner_text()
            assert HOSTILE.partition(">")[0] in page.locator(".pair-rows").inner_text()
        assert page.evaluate("window.hacked") is None
        assert (
            page.evaluate("document.querySelectorAll('img, iframe, object, embed, [onerror], [style*=url]').length")
            == 0
        )
        targets = page.evaluate("[...document.querySelectorAll('main a')].map((a) => a.protocol)")
        assert set(targets) <= {"file:", "https:", "http:"}
    assert page.evaluate("document.querySelectorAll('script').length") == 2 + len(SCRIPTS)


def test_the_policy_stops_what_gets_in(browser: Browser, address: str) -> None:
    """The content policy refuses scripts planted into the page: inline, as a handler, as markup, by address."""
    watched = Watched(browser)
    page = watched.open(address)

    refused = page.evaluate(
        """() => {
            const script = document.createElement("script");
            let thrown = 0;
            try { script.textContent = "window.hacked = 1"; document.head.append(script); } catch { thrown += 1; }
            try { document.body.innerHTML = "<img src=x onerror='window.hacked=1'>"; } catch { thrown += 1; }
            const other = document.createElement("script");
            try { other.src = "https://example.org/x.js"; } catch { thrown += 1; }
            try { nddup.load("../../x"); } catch { thrown += 1; }
            const button = document.createElement("button");
            try { button.setAttribute("onclick", "window.hacked = 1"); button.click(); } catch { thrown += 1; }
            return thrown;
        }"""
    )

    assert refused >= 3
    assert page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in fault or "TrustedScript" in fault for fault in watched.faults)
    watched.context.close()


@by_day_if_changed("nddup/report", "tests/report")
@pytest.mark.parametrize(
    ("scheme", "width", "views"),
    [
        ("dark", 360, VIEWS[::2]),
        pytest.param("dark", 360, VIEWS[1::2], marks=pytest.mark.nightly),
        pytest.param("light", 1280, VIEWS[1::3], marks=pytest.mark.nightly),
    ],
)
def test_no_serious_fault_for_people_who_see_or_type_otherwise(
    browser: Browser, address: str, scheme: str, width: int, views: Sequence[str]
) -> None:
    """axe-core finds nothing serious or critical on these views.

    On no view is anything wider than the screen, and the system tells whether the page is dark.
    """
    watched = Watched(browser, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for view in VIEWS:
        page = watched.open(address, view)
        if view.startswith("cluster/"):
            page.wait_for_selector(".compared")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        assert (brightness(page) < 150) == (scheme == "dark"), view
        if view not in views:
            continue
        found = Axe().run(page, options={"preload": False}).response["violations"]
        serious = [(fault["id"], [node["html"][:200] for node in fault["nodes"]][:3]) for fault in found
                   if fault["impact"] in {"serious", "critical"}]  # fmt: skip
        assert serious == [], view
    assert watched.faults == []
    watched.context.close()


def brightness(page: Page) -> int:
    """Return the red, green and blue of the background, added."""
    found = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(value) for value in re.findall(r"\d+", found)[:3])


def test_it_fits_the_dark_and_paper(browser: Browser, address: str) -> None:
    """Dark mode follows system and button; print shows the marks."""
    watched = Watched(browser, viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = watched.open(address)
    assert brightness(page) < 150
    page.get_by_role("button", name="Theme: auto").click()
    assert brightness(page) > 600
    page.get_by_role("button", name="Theme: light").click()
    assert brightness(page) < 150

    page = watched.open(address, "cluster/0000000000000000")
    page.wait_for_selector(".compared")
    page.emulate_media(media="print")
    expect(page.locator("nav")).to_be_hidden()
    expect(page.locator("mark.only").first).to_be_visible()
    assert brightness(page) == 3 * 255
    assert watched.faults == []
    watched.context.close()


def test_the_evaluation_and_false_components_are_shown(watched: Watched, address: str) -> None:
    """The page shows the five numbers, ratios, unknown ids, both curves, the lists, and components with false pairs."""
    page = watched.open(address, "quality")

    rows = [row.split("\t") for row in page.locator(".evaluation tbody").inner_text().splitlines()]
    assert ["Unique to the reference", "3", "3"] in rows
    assert ["Precision", "0.7778", "0.7778"] in rows
    assert ["Recall of known ids", "0.8750", "0.8750"] in rows
    text = page.locator("#quality").inner_text()
    assert "2 pairs of the reference have an id that is no document of this run (1 id)" in text
    assert "3 of 3 in evaluation/unique_to_reference.csv" in text
    assert page.locator("#quality canvas").count() == 2
    assert HOSTILE in text


def test_a_run_without_clusters_has_a_report(watched: Watched, tmp_path: Path) -> None:
    """A run without clusters says that nothing was found, without an error."""
    address = write_to(tmp_path, make_shown([]))
    page = watched.open(address)
    expect(page.locator("h1")).to_have_text("0 of 0 documents stay")
    page = watched.open(address, "clusters")
    expect(page.get_by_text("No cluster is like that.")).to_be_visible()
    page = watched.open(address, "quality")
    expect(page.get_by_text("was not compared")).to_be_visible()


def test_a_damaged_report_says_so(browser: Browser, tmp_path: Path) -> None:
    """A missing chunk is named."""
    watched = Watched(browser)
    address = write_to(tmp_path, make_shown([]))
    (tmp_path / "data" / "summary.js").unlink()

    watched.page.goto(address)

    expect(watched.page.locator("#opening")).to_contain_text("data/summary.js is missing or damaged")
    watched.context.close()


def test_thousands_of_clusters(watched: Watched, tmp_path: Path) -> None:
    """With 12,000 clusters only visible rows are in the page, and the last cluster is found, sorted to and opened."""
    clusters = many_clusters(12_000)
    shown = make_shown(clusters)
    address = write_to(tmp_path, shown)
    documents = math.ceil(len(shown.documents) / 5_000)
    assert len(list((tmp_path / "data").iterdir())) == 2 + 2 + 24 + 3 * documents

    page = watched.open(address)
    assert (
        page.evaluate("performance.getEntriesByType('resource').filter((e) => e.name.includes('/data/')).length") <= 2
    )
    page = watched.open(address, "clusters")
    status = page.locator("#clusters .status")
    expect(status).to_have_text("12,000 clusters")
    for share in (0, 0.5, 1):
        page.evaluate(f"scrollTo(0, document.documentElement.scrollHeight * {share})")
        page.wait_for_timeout(100)
        assert page.locator(".rows .row").count() < 40
        assert page.evaluate("document.querySelectorAll('*').length") < 900
    assert labels(page)[-1] == clusters[-1][0][1]
    page.evaluate("scrollTo(0, 0)")
    page.get_by_label("Search").fill("doc-11999-1")
    expect(status).to_have_text("1 of 12,000 clusters")
    page.locator("#clusters .rows .row a").click()
    expect(page.locator(".documents tbody tr").nth(1)).to_contain_text("doc-11999-1")
    page.locator(".documents tbody tr").nth(1).locator("a.id").click()
    expect(page.locator("#document .lead")).to_contain_text("near-duplicate of doc-11999-0")


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (None, "Not checked yet: nddup check out/made"),
        ({"when": "2026-01-02T03:04:05+00:00", "is_sound": True, "summary": "every promise holds", "unproved": 0},
         "Checked: every promise holds (2026-01-02, 03:04 UTC)."),
        ({"when": "2026-01-02T03:04:05+00:00", "is_sound": False, "summary": "1 of 9 promises BROKEN", "unproved": 0},
         "Do not delete: 1 of 9 promises BROKEN"),
    ],
)  # fmt: skip
def test_the_first_page_answers_three_questions(
    watched: Watched, tmp_path: Path, check: dict[str, Any] | None, said: str
) -> None:
    """What was found, may the rest be deleted, what is strange: the worst loss, the check, limits, conflicts."""
    losses = {"removed": 4, "known": 4, "nothing": 1, "worst": [["a", "b", 0.251]]}
    conflicts = [{"column": HOSTILE, "families": 2, "documents": 5, "largest": []},
                 {"column": "lang", "families": 0, "documents": 0, "largest": []}]  # fmt: skip
    shown = replace(make_shown(CLUSTERS), check=check, losses=losses, disagreements=conflicts)
    watched.page.set_viewport_size({"width": 390, "height": 844})
    page = watched.open(write_to(tmp_path, shown))

    questions = page.locator(".questions .card")
    assert questions.locator("h2").all_inner_texts() == [
        "What was found?",
        "May I delete the rest?",
        "What is strange?",
    ]
    expect(questions.nth(0)).to_contain_text("4 families: one document that stays")
    answers = questions.nth(1).inner_text()
    assert "At worst, 25.1 % of a removed text is not in the one that stays. 1 of 4 lose nothing." in answers
    assert said in answers
    assert f"2 families differ in {HOSTILE}, with 5 documents." in answers
    assert "No family differs in lang." in answers
    assert "notes on what was skipped, cut or limited, the first: 1 file skipped" in answers
    expect(questions.nth(2)).to_contain_text("1 record became no document: 1 truncated.")
    expect(questions.nth(2)).to_contain_text("25.0 % of the pages of <b>menu</b>.example share most of their words")
    assert len({link.bounding_box()["y"] for link in page.locator("nav a").all()}) == 1  # type: ignore[index]
    page.get_by_role("link", name="25.1 % of a removed text").click()
    expect(page.locator("#compare .pair-rows mark.only").first).to_be_visible()


def test_false_pairs_of_components_fit_a_phone(watched: Watched, tmp_path: Path) -> None:
    """Every column is seen without moving the table; a number that is a bound says so."""
    rows = [{"component": f"5{at}933", "size": 143, "pairs": 1_219, "invented": 8_934 - at, "exact": not at}
            for at in range(2)]  # fmt: skip
    watched.page.set_viewport_size({"width": 390, "height": 844})
    page = watched.open(write_to(tmp_path, make_shown(CLUSTERS, components=rows)))
    page.get_by_role("link", name="Quality").click()
    table = page.locator("#quality table", has_text="Invented pairs")
    expect(table.locator("tbody td:last-child")).to_have_text(["8,934", "≤ 8,933"])
    assert table.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")


def test_removals_are_judged_by_keys_and_saved(watched: Watched, address: str) -> None:
    """Each pair stands side by side, the kept one first; keys judge and move on; the file has a line for each."""
    page = watched.open(address)
    page.get_by_role("link", name="Judge 3 removals").click()
    status = page.locator("#judge .status")
    expect(status).to_have_text("1 of 3, 0 judged")
    expect(page.locator("#judge .pair-head")).to_contain_text("A bhttps://example.org/kept.html")
    expect(page.locator("#judge")).to_contain_text(
        "What may be wrong: the kept one is shorter, just above the threshold. Lost: 2.5 %."
    )
    for key, told in (("3", "2 of 3, 1 judged"), ("ArrowLeft", "1 of 3, 1 judged"), ("3", "1 of 3, 0 judged"),
                      ("4", "2 of 3, 1 judged"), ("1", "3 of 3, 2 judged")):  # fmt: skip
        page.keyboard.press(key)
        expect(status).to_have_text(told)

    with page.expect_download() as waited:
        page.get_by_role("button", name="Save judgements").click()
    data = Path(waited.value.path()).read_bytes()
    rows = list(list_judged(read_rows(data, lambda _: True)))
    assert [(row.doc_id, row.kept, row.judgement) for row in rows][:2] == [
        ("a", "b", "not a duplicate"),
        ("longer", "long", "better"),
    ]
    assert (rows[2].doc_id, rows[2].judgement) == ("</script>", "")


def test_a_run_with_earlier_names_begins_with_what_is_new(watched: Watched, tmp_path: Path) -> None:
    """The page says first what became of the families since the earlier run; the largest lead to their document."""
    news = {"since": "out/<b>night 1", "documents": 10, "before": 7, "born": 1, "alone": 2, "grown": 0, "shrunk": 0,
            "gone": 1, "largest": [["b", "a", 3, 0]]}  # fmt: skip
    page = watched.open(write_to(tmp_path, replace(make_shown(CLUSTERS), news=news)))

    expect(page.locator("main h2").first).to_have_text("What is new")
    card = page.locator("#overview > .card").first
    expect(card.locator("p")).to_have_text(
        "Since out/<b>night 1: 1 new family, 2 new documents like no other, 1 family is gone."
        " 7 documents before, 10 now."
    )
    card.locator("a").click()
    expect(page.locator("#document-title")).to_have_text("Document b")
