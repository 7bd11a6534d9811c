"""The page of `nddup against` in a browser."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from nddup.cli import main
from tests.report.opened_reports import Watched


@pytest.mark.browser
def test_a_long_id_is_no_wider_than_the_screen(browser: Browser, tmp_path: Path) -> None:
    """It is broken where it stands, in the summary that unfolds the places of an item."""
    given = tmp_path / "in.jsonl"
    given.write_text(json.dumps({"id": "a" * 2000, "text": " ".join(map(str, range(40)))}) + "\n")
    assert main(["against", str(given), str(given), "--output", str(tmp_path / "out"), "-q"]) == 0

    page = Watched(browser, viewport={"width": 1280, "height": 900}).page
    page.goto((tmp_path / "out/index.html").as_uri())
    assert page.locator("summary").count()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
