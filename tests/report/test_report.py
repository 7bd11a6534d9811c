"""The report in a browser: its overview, search and sorting, and the comparison of two documents."""

import re

import pytest
from playwright.sync_api import expect

from nddup.report.data import compared_by
from nddup.sketching.respelling import IGNORED
from nddup.sketching.tokens import tokenise
from tests.report.opened_reports import EDITED, WORDS, Watched, labels

pytestmark = pytest.mark.browser


def test_it_opens_from_disk_and_says_what_was_found(watched: Watched, address: str) -> None:
    """The overview shows the statement, headline numbers as in the terminal, the funnel, the charts and the notes."""
    page = watched.open(address)

    expect(page.locator("h1")).to_have_text("5 of 10 documents stay")
    assert page.locator(".numbers dt").all_inner_texts() == [
        "records read", "rejected", "documents", "near-duplicate pairs", "clusters",
        "removed",
    ]  # fmt: skip
    assert page.locator(".funnel .amount").all_inner_texts() == ["11", "10", "10", "5"]
    assert page.locator(".remarks").inner_text().startswith("1 file skipped (1 named as a readme)")
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
    """Clusters are found by words, size and column and opened by mouse and keyboard; the address keeps the view."""
    page = watched.open(address, "clusters")
    status = page.locator("#clusters .status")
    expect(status).to_have_text("4 clusters")
    assert labels(page)[0] == WORDS

    page.get_by_label("Search").fill("EDITED example")
    expect(status).to_have_text("1 of 4 clusters")
    assert labels(page) == [WORDS]
    page.get_by_label("Search").fill("LONGER")
    expect(status).to_have_text("1 of 4 clusters")
    expect(page).to_have_url(re.compile(r"#/clusters\?query=LONGER$"))
    page = watched.open(address, "clusters?query=nowhere")
    expect(page.get_by_text("No cluster is like that.")).to_be_visible()
    page = watched.open(address, "clusters?size=3")
    expect(status).to_have_text("1 of 4 clusters")
    page.get_by_label("At least").fill("2")
    page.get_by_label("with stored texts").check()
    expect(status).to_have_text("3 of 4 clusters")
    page.get_by_label("with stored texts").uncheck()

    page.get_by_role("button", name="First document").click()
    addresses = page.locator("#clusters .c-id").all_text_contents()
    assert addresses == sorted(addresses)
    expect(page.get_by_role("columnheader", name="First document")).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("button", name="First document").click()
    assert page.locator("#clusters .c-id").all_text_contents() == addresses[::-1]
    expect(page).to_have_url(re.compile(r"\?sort=label&reverse=true$"))
    page.get_by_label("Sort by").select_option("size")

    page.get_by_role("grid").focus()
    for key in ("End", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#cluster h1")).to_contain_text("2 documents")
    page.go_back()
    page.locator("#clusters .rows .row").first.click()
    expect(page.locator("#cluster h1")).to_contain_text("3 documents")


def test_two_documents_are_compared(watched: Watched, address: str) -> None:
    """The matrix selects a pair; differences are marked, shared words are not, and the counts equal Python's."""
    page = watched.open(address, "cluster/0000000000000000")
    assert page.locator(".documents tbody tr").count() == 3
    assert page.locator(".documents .outcome").all_inner_texts() == ["kept", *["removed: near-duplicate of b"] * 2]
    assert page.locator(".matrix button").all_inner_texts() == ["90"] * 6

    page.get_by_role("button", name="1 and 2: resemblance 0.900, 180 features shared").click()

    expect(page.locator(".pair-head")).to_contain_text("b")
    only = [text.strip() for text in page.locator(".pair-rows mark.only").all_inner_texts()]
    assert only == ["changed words here", "and an end"]
    expect(page.locator(".verdict")).to_contain_text("resemblance 0.363 of these texts; the run lists 0.900, exact")
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
    expect(page.locator("#cluster .no-text")).to_contain_text("nddup report")
    expect(page.locator("#cluster")).not_to_contain_text("Choose a pair")
    page = watched.open(address, "cluster/ffffffffffffffff")
    expect(page.locator("#cluster h1")).to_have_text("No such cluster")


def test_the_focus_returns_with_the_page(watched: Watched, address: str) -> None:
    """After Back the focus is on the row or link that was followed, and `/` leads to a search field from every page."""
    page = watched.open(address, "documents")
    page.get_by_role("grid").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#document h1")).to_be_visible()
    expect(page.locator("#main")).to_be_focused()
    page.go_back()
    expect(page.get_by_role("grid")).to_be_focused()
    expect(page.locator("#documents .row.active")).to_have_attribute("data-at", "2")

    page = watched.open(address, "document/a")
    link = page.locator("#document").get_by_role("link", name="Compare", exact=True).first
    link.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#compare h1")).to_have_text("Two documents")
    page.go_back()
    expect(page.locator("#document").get_by_role("link", name="Compare", exact=True).first).to_be_focused()

    for view in ("", "clusters", "document/a", "quality", "run"):
        page = watched.open(address, view)
        page.keyboard.press("/")
        expect(page.locator(".view:not([hidden]) input[type=search]").first).to_be_focused()


def test_the_command_that_reads_texts_again_is_named(watched: Watched, address: str) -> None:
    """Any two documents can be compared: where their texts are not stored, the page says how to read them again."""
    page = watched.open(address, "document/no-text")
    page.get_by_label("Compare with").fill(" a ")
    page.keyboard.press("Enter")

    told = page.locator("#compare .no-text")
    expect(told).to_contain_text("The text of no-text is not stored")
    assert re.search(r"nddup report '.*' --doc no-text --doc a$", told.locator("code").inner_text())


@pytest.mark.parametrize("ignore", [(), tuple(IGNORED)])
def test_shared_shingles_are_those_of_the_run(watched: Watched, address: str, ignore: tuple[str, ...]) -> None:
    """The browser's tokens and shingles equal Python's in many scripts; its steps cover both texts in order."""
    texts = [
        "Ёлка растёт в лесу, ёлка РАСТЁТ в лесу; 薔薇は薔薇である ok_1 x², Ⅷ٣",
        "薔薇は ภาษาไทย 한국어 문장 İstanbul ΣΑΣ σας naïve cafe\u0301",
        "Straße STRASSE co\u00adop IŞIK ısı लड़का दूध كَتَبَ หมู่บ้าน ᾼ\u0301 ൺ ണ്\u200d \u1112\u1161\u11ab",
        "#\u20e3 1\ufe0f\u20e3 \u0301a", "Ｎｏ．47 ｶﾞｽ ـ كتـابٌ שָׁלוֹם שּׁ mp3 ٤٧ ๑๒ 𝟙x",
        WORDS, EDITED, "", "a a a a a a a b a a a a a", "a a a a b a a a a a a a a a", "x\ufffdy \u202eab",
        " ".join(f"w{n % 37}" for n in range(900)), " ".join(f"w{n % 41}" for n in range(900)),
    ]  # fmt: skip
    page = watched.open(address)
    found = page.evaluate(
        """([texts, shingle]) => texts.flatMap((a) => texts.map((b) => {
            const {a: {words, starts, ends, shingles}, common, steps} = nddup.differ(a, b, shingle);
            return {words, common, inA: shingles, steps, pieces: starts.map((start, at) => a.slice(start, ends[at]))};
        }))""",
        [texts, compared_by({"shingle": {"length": 5, "offset": 2, "unit": "word"}, "tokens": {"ignore": ignore}})],
    )

    def shingles(tokens: list[str]) -> set[tuple[str, ...]]:
        return {tuple(tokens[at : at + 5]) for at in range(0, max(1, len(tokens) - 4), 2)} if tokens else set()

    tokens = [tokenise(text, ignore) for text in texts]
    sets = [shingles(words) for words in tokens]
    pieces = [found[number * len(texts)]["pieces"] for number in range(len(texts))]
    assert [[tokenise(piece, ignore) for piece in some] for some in pieces] == [
        [[word] for word in one] for one in tokens
    ]
    for number, made in enumerate(found):
        a, b = divmod(number, len(texts))
        one, other = tokens[a], tokens[b]
        assert made["words"] == one
        assert made["pieces"] == pieces[a]
        assert (made["inA"], made["common"]) == (len(sets[a]), len(sets[a] & sets[b]))
        at = [0, 0]
        for step in made["steps"]:
            assert [step["a"][0], step["b"][0]] == at
            at = [step["a"][1], step["b"][1]]
            equal = one[slice(*step["a"])] == other[slice(*step["b"])]
            assert equal or not step["same"]
        assert at == [len(one), len(other)]
