"""Fixtures that open reports in a browser and record faults."""

import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

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


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """Open a desktop-sized page; the test fails if it logs, throws, opens a dialog, or requests anything but files."""
    made = Watched(browser, viewport={"width": 1280, "height": 900})
    yield made
    made.context.close()
    assert made.faults == []
