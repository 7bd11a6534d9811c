"""Fixtures that open reports in a browser and record faults."""

import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ViewportSize, expect, sync_playwright

from tests.report.made_reports import make_shown, write_to
from tests.report.opened_reports import CLUSTERS, EVALUATION, HOSTILE, ODD, OPTIONS, RISKY, SCRIPTS, Watched


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start a headless Chromium."""
    program = subprocess.run([SCRIPTS / "chromium.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=list(OPTIONS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a report with every kind of content, hostile documents included; return the address of its page."""
    shown = make_shown(
        CLUSTERS,
        path=f"out/{HOSTILE}",
        rejects=[
            {"source": HOSTILE, "record": 3, "doc_id": None, "reason": "truncated", "detail": ODD, "excerpt": HOSTILE}
        ],
        components=[{"component": HOSTILE, "size": 4, "pairs": 3, "invented": 3, "exact": True}],
        evaluation=EVALUATION,
        risky=RISKY,
    )
    return write_to(tmp_path_factory.mktemp("report with # and %20"), shown)


expect.set_options(timeout=20_000)
DESK: ViewportSize = {"width": 1280, "height": 900}


@pytest.fixture(scope="session")
def desktop(browser: Browser) -> Iterator[Watched]:
    """Open a desktop-sized page for all tests: one of its own would cost a test more than what it looks at."""
    made = Watched(browser, viewport=DESK)
    yield made
    made.context.close()


@pytest.fixture
def watched(desktop: Watched) -> Iterator[Watched]:
    """Give a test the desktop; it fails if the page logs, throws, opens a dialog, or requests anything but files."""
    desktop.page.set_viewport_size(DESK)
    desktop.faults.clear()
    yield desktop
    desktop.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    assert desktop.faults == []
