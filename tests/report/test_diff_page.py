"""The page of a diff: what stands first, hostile names, one file, and its accessibility."""

import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from nddup.diffing.diff_tables import WHY
from nddup.report.diff_page import Changes, draw_changes
from tests.report.opened_reports import HOSTILE, Watched

GROUP = {"name": HOSTILE, "change": "split", "before": 1_300, "after": 2, "came": 0, "went": 1_298}
LONG = GROUP | {"name": "71de2a7396b41017", "change": "grown"}
TOLD: dict[str, Any] = {
    "before": HOSTILE, "after": "out/after", "differs": True,
    "settings": [{"name": f"pairs.setting{at}", "before": HOSTILE, "after": None} for at in range(8)],
    "versions": [{"name": "nddup", "before": "1", "after": HOSTILE}],
    "counts": {"added": 1, "gone": 2, "text": 3, "verdicts": 1_200, "now_kept": 5, "now_removed": 6,
               "other_original": 7, "won": 8, "lost": 9, "crowded_sets": 0},
    "causes": {"settings": 1_199, "text": 1}, "families": {"split": 40, "grown": 1}, "sets": {},
}  # fmt: skip
SHOWN = Changes(
    [{"doc_id": HOSTILE, "cause": "settings", "kept_before": True, "kept_after": False, "duplicate_of_before": None,
      "duplicate_of_after": HOSTILE}],
    {"families": [GROUP, LONG], "sets": []},
)  # fmt: skip


def test_settings_stand_first_and_the_rest_is_said() -> None:
    """First settings, then counts, causes and groups; what is not shown is counted; one file that loads nothing."""
    page = draw_changes(SHOWN, TOLD, WHY)

    texts = (
        "pairs.setting0", "2 more</summary>", '<dl class="numbers">', "1,200</span>", "1,199 · Settings differ",
        "and 1,198 more", "Split: 40", "and 39 more", "None of two documents or more changed.",
    )  # fmt: skip
    places = [page.index(text) for text in texts]
    assert places == sorted(places)
    assert "default-src 'none'" in page
    assert set(re.findall(r'(?:href|src)="(.)', page)) == {"#"}
    assert "url(" not in page
    assert HOSTILE not in page
    same = TOLD | {"differs": False, "settings": [], "versions": [], "causes": {}, "families": {}}
    assert "Nothing changed" in draw_changes(Changes([], {"families": [], "sets": []}), same, WHY)


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("dark", 390), pytest.param("light", 1280, marks=pytest.mark.nightly)])
def test_no_serious_fault(browser: Browser, tmp_path: Path, scheme: str, width: int) -> None:
    """axe-core finds nothing serious, nothing is wider than the screen, and names run nothing."""
    (tmp_path / "index.html").write_text(draw_changes(SHOWN, TOLD, WHY), encoding="utf-8")
    watched = Watched(browser, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = watched.page
    page.goto((tmp_path / "index.html").as_uri())

    found = Axe().run(page, options={"preload": False}).response["violations"]

    assert [fault["id"] for fault in found if fault["impact"] in {"serious", "critical"}] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    tables = "[...document.querySelectorAll('.two .scroll')]"
    assert page.evaluate(f"{tables}.length && {tables}.every(one => one.scrollWidth <= one.clientWidth)")
    assert page.evaluate("getComputedStyle(document.querySelector('.card')).borderTopLeftRadius") == "10px"
    assert page.locator("img").count() == 0
    assert watched.faults == []
    watched.context.close()
