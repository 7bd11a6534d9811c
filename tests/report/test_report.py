"""The report in a browser: what a person does with it, documents that attack it, and 100,000 clusters."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from nddup.sketching.tokens import tokenise
from tests.places import ROOT
from tests.report.made_reports import Document, make_shown, many_clusters, write_to

pytestmark = pytest.mark.browser

SCRIPTS = ROOT / "scripts"
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync")  # fmt: skip

LONG = " ".join(f"word{number}" for number in range(200))
WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
EDITED = WORDS.replace("eight nine", "EIGHT changed words here nine") + " and an end"

HOSTILE = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>'
ODD = "\u2028\u2029 \ufeff\x00\x1b \ufffd \uffff \u202e backwards ]]> --> ${hacked} `'\"\\"
EVALUATION: dict[str, Any] = {
    "format": 1,
    "path": "truth.csv",
    "list": {"kind": "pairs", "lines": 10, "ids": 12, "unknown_ids": 1, "unknown_pairs": 2, "unreadable": 1},
    **{
        side: {"reference": 10, "found": 9, "unique_to_reference": 3, "unique_to_run": 2, "common": 7,
               "precision": 7 / 9, "recall": 0.7, "f1": 0.7368, "recall_of_known": 0.875}
        for side in ("pairs", "clusters")
    },
    "unlisted": 4,
    "curves": {
        "score": [{"at": 0.5 + n / 10, "reference": 10 - n, "common": 7, "together": 7, "precision": 0.7,
                   "recall": None if n else 1.0} for n in range(4)],
        "resemblance": [{"at": 0.8, "found": 9, "common": 7, "precision": 0.8, "recall": 0.7}],
    },
    "lists": {"unique_to_reference": {"file": "evaluation/unique_to_reference.csv", "rows": 3, "of": 3},
              "unique_to_run": {"file": None, "rows": 0, "of": 2}},
}  # fmt: skip

CLUSTERS: list[list[Document]] = [
    [("b", "https://example.org/kept.html", WORDS), ("a", "https://example.org/edited.html", EDITED),
     ("c", "https://example.org/Third.html", WORDS + " more")],
    [("long", None, LONG + " tail"), ("longer", None, LONG + " other end")],
    [(f"{HOSTILE}{ODD}", "javascript:window.hacked=1", f"{HOSTILE} {ODD} shared words of both texts"),
     ("</script>", "java\nscript:window.hacked=1", f"{HOSTILE} shared words of both texts {ODD}")],
    [("no-text", "data:text/html,<script>window.hacked=1</script>", ""), ("no-text-2", "http://[broken", "")],
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without a window."""
    program = subprocess.run([SCRIPTS / "chromium.sh"], check=True, capture_output=True, text=True).stdout.strip()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=list(OPTIONS))
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report with everything in it, hostile documents too."""
    shown = make_shown(
        CLUSTERS,
        path=f"out/{HOSTILE}",
        rejects=[
            {"source": HOSTILE, "record": 3, "doc_id": None, "reason": "truncated", "detail": ODD, "excerpt": HOSTILE}
        ],
        components=[{"component": HOSTILE, "size": 4, "pairs": 3, "invented": 3, "exact": True}],
        evaluation=EVALUATION,
    )
    return write_to(tmp_path_factory.mktemp("report with # and %20"), shown)


expect.set_options(timeout=20_000)


class Watched:
    """A page and whatever it did that it should not."""

    def __init__(self, browser: Browser, **context: Any) -> None:  # noqa: ANN401 - Playwright's options
        self.context = browser.new_context(**context)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.faults: list[str] = []
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        self.page.on("request", self._ask)

    def _ask(self, asked: Request) -> None:
        if not asked.url.startswith("file:") and asked.url != "about:blank":
            self.faults.append(asked.url)

    def open(self, address: str, view: str = "") -> Page:
        """Open one view and wait until it is there."""
        self.page.goto("about:blank")
        self.page.goto(f"{address}#/{view}")
        self.page.wait_for_selector("html[data-ready]")
        return self.page


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """A desk-sized page; the test fails if it logs, throws, asks, or requests anything but files."""
    made = Watched(browser, viewport={"width": 1280, "height": 900})
    yield made
    made.context.close()
    assert made.faults == []


def labels(page: Page) -> list[str]:
    """First documents of the rows on the screen, from above."""
    return [text.strip() for text in page.locator(".rows .c-label a").all_text_contents()]


def test_it_opens_from_disk_and_says_what_was_found(watched: Watched, address: str) -> None:
    """The statement, the headline numbers in the words of the terminal, the funnel, charts drawn, the notes."""
    page = watched.open(address)

    expect(page.locator("h1")).to_have_text("4 of 9 documents stay")
    assert page.locator(".numbers dt").all_inner_texts() == [
        "records read", "rejected", "documents", "near-duplicate pairs", "clusters", "false in components", "kept",
        "removed",
    ]  # fmt: skip
    assert page.locator(".funnel .amount").all_inner_texts() == ["10", "9", "9", "4"]
    assert page.locator(".remarks").inner_text().startswith("1 files skipped")
    drawn = page.evaluate(
        """[...document.querySelectorAll("canvas")].map((canvas) =>
            {
                const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                const bar = [106, 169, 165]; // --accent-soft
                const isBar = (at) => bar.every((value, i) => data[at + i] === value);
                return Array.from({length: data.length / 4}, (_, at) => 4 * at).some(isBar);
            })"""
    )
    assert drawn == [True, True, True]
    page.get_by_role("button", name="Log scale").first.click()
    expect(page.get_by_role("button", name="Log scale").first).to_have_attribute("aria-pressed", "true")


def test_clusters_are_searched_filtered_sorted_and_opened(watched: Watched, address: str) -> None:
    """By id and address of any document, by size, by column; a row opens by mouse and by keyboard."""
    page = watched.open(address, "clusters")
    expect(page.locator(".status")).to_have_text("4 clusters")
    assert labels(page)[:2] == ["https://example.org/kept.html", "long"]

    page.get_by_label("Search").fill("third.HTML")
    expect(page.locator(".status")).to_have_text("1 of 4 clusters")
    assert labels(page) == ["https://example.org/kept.html"]
    page.get_by_label("Search").fill("LONGER")
    expect(page.locator(".rows .c-label a")).to_have_text(["long"])
    page.get_by_label("Search").fill("nowhere")
    expect(page.get_by_text("No cluster is like that.")).to_be_visible()
    page.get_by_label("Search").fill("")
    page.get_by_label("At least").fill("3")
    expect(page.locator(".status")).to_have_text("1 of 4 clusters")
    page.get_by_label("At least").fill("2")
    page.get_by_label("with stored texts").check()
    expect(page.locator(".status")).to_have_text("3 of 4 clusters")
    page.get_by_label("with stored texts").uncheck()

    page.get_by_role("button", name="First document").click()
    assert labels(page) == sorted(labels(page))
    expect(page.get_by_role("columnheader", name="First document")).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("button", name="First document").click()
    assert labels(page) == sorted(labels(page), reverse=True)
    page.get_by_label("Sort by").select_option("size")

    page.get_by_role("grid").focus()
    for key in ("End", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#cluster h1")).to_contain_text("2 documents")
    page.go_back()
    page.locator(".rows .row").first.click()
    expect(page.locator("#cluster h1")).to_contain_text("3 documents")


def test_two_documents_are_compared(watched: Watched, address: str) -> None:
    """The matrix chooses a pair; what differs is marked, what is shared is not, and the counts are those of Python."""
    page = watched.open(address, "cluster/0000000000000000")
    assert page.locator(".documents tbody tr").count() == 3
    assert page.locator(".documents .fate").all_inner_texts() == ["kept", "near-duplicate of b", "near-duplicate of b"]
    assert page.locator(".matrix button").all_inner_texts() == ["90"] * 6

    page.get_by_role("button", name="1 and 2: resemblance 0.900, 180 features shared").click()

    expect(page.locator(".pair-head")).to_contain_text("b")
    only = [text.strip() for text in page.locator(".pair-rows mark.only").all_inner_texts()]
    assert only == ["changed words here", "and an end"]
    expect(page.locator(".verdict")).to_contain_text("resemblance 0.364 of these texts; the sketches say 0.900")
    assert "8 shingles of 5 words in both, 4 only in A, 10 only in B" in page.locator(".verdict").inner_text()
    page.get_by_label("B", exact=True).select_option("2")
    expect(page.locator(".pair-rows mark.only")).to_have_text(["more"])
    page.get_by_role("button", name="1 and 2:").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="1 and 3:")).to_be_focused()

    page = watched.open(address, "cluster/0000000000000001")
    expect(page.locator(".pair-rows mark.only")).to_have_text(["tail", "other end"])
    assert "word100" not in page.locator(".pair-rows").inner_text()
    page.get_by_role("button", name="Show all 200 equal words").click()
    assert page.locator(".pair-rows").inner_text().count("word100") == 2

    page = watched.open(address, "cluster/0000000000000003")
    expect(page.locator("#cluster")).to_contain_text("nddup report")
    page = watched.open(address, "cluster/ffffffffffffffff")
    expect(page.locator("#cluster h1")).to_have_text("No such cluster")


def test_hostile_documents_are_text(watched: Watched, address: str) -> None:
    """Markup, scripts and broken characters of ids, addresses, texts, rejects and paths are shown and never run."""
    for view in ("", "clusters", "cluster/0000000000000002", "cluster/0000000000000003", "quality", "run"):
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
    assert page.evaluate("document.querySelectorAll('script').length") == 13


def test_the_policy_stops_what_gets_in(browser: Browser, address: str) -> None:
    """Even a script planted into the page is refused: inline, as a handler, as markup, from the network."""
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_fault_for_people_who_see_or_type_otherwise(browser: Browser, address: str, scheme: str) -> None:
    """axe-core finds nothing serious or critical on any view, in light and dark."""
    watched = Watched(browser, viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    for view in ("", "clusters", "cluster/0000000000000000", "quality", "run"):
        page = watched.open(address, view)
        if view.startswith("cluster/"):
            page.wait_for_selector(".compared")
        found = Axe().run(page, options={"preload": False}).response["violations"]
        serious = [(fault["id"], [node["html"][:200] for node in fault["nodes"]][:3]) for fault in found
                   if fault["impact"] in {"serious", "critical"}]  # fmt: skip
        assert serious == [], view
    assert watched.faults == []
    watched.context.close()


def test_it_fits_a_phone_the_dark_and_paper(browser: Browser, address: str) -> None:
    """At 360 pixels nothing is wider than the screen; dark is dark, by system and by button; print shows the marks."""
    watched = Watched(browser, viewport={"width": 360, "height": 740}, color_scheme="dark")

    def brightness() -> int:
        found = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(value) for value in re.findall(r"\d+", found)[:3])

    for view in ("", "clusters", "cluster/0000000000000000", "quality", "run"):
        page = watched.open(address, view)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
        assert brightness() < 150
    page.get_by_role("button", name="Theme: auto").click()
    assert brightness() > 600
    page.get_by_role("button", name="Theme: light").click()
    assert brightness() < 150

    page = watched.open(address, "cluster/0000000000000000")
    page.wait_for_selector(".compared")
    page.emulate_media(media="print")
    expect(page.locator("nav")).to_be_hidden()
    expect(page.locator("mark.only").first).to_be_visible()
    assert brightness() == 3 * 255
    assert watched.faults == []
    watched.context.close()


def test_the_evaluation_and_false_components_are_shown(watched: Watched, address: str) -> None:
    """The five numbers, the ratios, what is unknown, both curves, the lists; the components with false pairs."""
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


def test_a_run_without_clusters_has_a_report(browser: Browser, tmp_path: Path) -> None:
    """Nothing found is said, not an error."""
    watched = Watched(browser)
    address = write_to(tmp_path, make_shown([]))
    page = watched.open(address)
    expect(page.locator("h1")).to_have_text("0 of 0 documents stay")
    page = watched.open(address, "clusters")
    expect(page.get_by_text("No cluster is like that.")).to_be_visible()
    page = watched.open(address, "quality")
    expect(page.get_by_text("was not compared")).to_be_visible()
    assert watched.faults == []
    watched.context.close()


def test_a_damaged_report_says_so(browser: Browser, tmp_path: Path) -> None:
    """A chunk that is gone is named."""
    watched = Watched(browser)
    address = write_to(tmp_path, make_shown([]))
    (tmp_path / "data" / "summary.js").unlink()

    watched.page.goto(address)

    expect(watched.page.locator("#opening")).to_contain_text("data/summary.js is missing or damaged")
    watched.context.close()


def test_a_hundred_thousand_clusters(watched: Watched, tmp_path: Path) -> None:
    """Only rows on the screen exist, wherever one scrolls; the last cluster is found, sorted to and opened."""
    clusters = many_clusters(100_000)
    address = write_to(tmp_path, make_shown(clusters))
    names = len(list((tmp_path / "data").glob("names-*.js")))
    assert len(list((tmp_path / "data").iterdir())) == 1 + 10 + 200 + names
    assert 2 < names < 20

    page = watched.open(address)
    assert (
        page.evaluate("performance.getEntriesByType('resource').filter((e) => e.name.includes('/data/')).length") <= 2
    )
    page = watched.open(address, "clusters")
    expect(page.locator(".status")).to_have_text("100,000 clusters")
    for share in (0, 0.5, 1):
        page.evaluate(f"scrollTo(0, document.documentElement.scrollHeight * {share})")
        page.wait_for_timeout(100)
        assert page.locator(".rows .row").count() < 40
        assert page.evaluate("document.querySelectorAll('*').length") < 900
    assert labels(page)[-1] == clusters[-1][0][1]
    page.evaluate("scrollTo(0, 0)")
    page.get_by_label("Search").fill("doc-99999-1")
    expect(page.locator(".status")).to_have_text("1 of 100,000 clusters")
    page.locator(".rows .row a").click()
    expect(page.locator(".documents tbody tr").nth(1)).to_contain_text("doc-99999-1")


def test_shared_shingles_are_those_of_the_run(browser: Browser, address: str) -> None:
    """The browser's tokens and shingles are Python's, in many scripts; steps that are equal are, and all is covered."""
    texts = [
        "Ёлка растёт в лесу, ёлка РАСТЁТ в лесу; 薔薇は薔薇である ok_1 x², Ⅷ٣",
        "薔薇は ภาษาไทย 한국어 문장 İstanbul ΣΑΣ σας naïve cafe\u0301",
        WORDS, EDITED, "", "a a a a a a a b a a a a a", "a a a a b a a a a a a a a a", "x\ufffdy \u202eab",
        " ".join(f"w{n % 37}" for n in range(900)), " ".join(f"w{n % 41}" for n in range(900)),
    ]  # fmt: skip
    watched = Watched(browser)
    page = watched.open(address)
    found = page.evaluate(
        """(texts) => texts.flatMap((a) => texts.map((b) => {
            const made = nddup.differ(a, b, {length: 5, offset: 2});
            return {words: made.a.words, common: made.common, inA: made.a.shingles, steps: made.steps};
        }))""",
        texts,
    )

    def shingles(tokens: list[str]) -> set[tuple[str, ...]]:
        return {tuple(tokens[at : at + 5]) for at in range(0, max(1, len(tokens) - 4), 2)} if tokens else set()

    for number, made in enumerate(found):
        one, other = (tokenise(text) for text in (texts[number // len(texts)], texts[number % len(texts)]))
        assert made["words"] == one
        assert (made["inA"], made["common"]) == (len(shingles(one)), len(shingles(one) & shingles(other)))
        at = [0, 0]
        for step in made["steps"]:
            assert [step["a"][0], step["b"][0]] == at
            at = [step["a"][1], step["b"][1]]
            equal = one[slice(*step["a"])] == other[slice(*step["b"])]
            assert equal or not step["same"]
        assert at == [len(one), len(other)]
    watched.context.close()
