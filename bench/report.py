"""Report: seconds to open, sort, search and scroll a page of 100,000 clusters in Chromium."""

import argparse
import subprocess
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from bench.recording import drop, fresh, record, show
from tests.report.made_reports import make_shown, many_clusters, write_to

TARGET = 3.0
"""Seconds from entering the address to a usable page."""

FRAMES = """async () => {
    const height = document.documentElement.scrollHeight;
    let longest = 0, last = performance.now();
    for (let step = 0; step < 120; step += 1) {
        scrollTo(0, height * step / 120);
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
    }
    return longest / 1000;
}"""


def run(options: argparse.Namespace) -> None:
    """Measure each step; all but writing as a user experiences it."""
    clusters = many_clusters(2_000 if options.small else 100_000)
    shown = make_shown(clusters)
    folder = fresh("report")
    started = time.perf_counter()
    address = write_to(folder.absolute(), shown)
    seconds = {"write": time.perf_counter() - started}
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    program = subprocess.run(
        [Path("scripts/chromium.sh").resolve()], check=True, capture_output=True, text=True
    ).stdout.strip()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        seconds |= _visit(browser.new_page(), address, f"doc-{len(clusters) - 1}-1")
        browser.close()
    drop(folder)
    rows = [(name, f"{value:.2f}", TARGET if name in {"open", "clusters"} else "") for name, value in seconds.items()]
    show(f"report of {len(clusters):,} clusters, {size / 1e6:.0f} MB", ("step", "seconds", "target"), rows)
    record("report", options, clusters=len(clusters), bytes=size, seconds=seconds)


def _visit(page: Page, address: str, last: str) -> dict[str, float]:
    """Open the page and the list, sort it, scroll through it, and search for a document of the last cluster."""
    seconds: dict[str, float] = {}

    def measure(name: str, step: Any, until: str) -> None:  # noqa: ANN401 - a function
        started = time.perf_counter()
        step()
        page.wait_for_selector(until)
        seconds[name] = time.perf_counter() - started

    page.goto("about:blank")
    measure("open", lambda: page.goto(f"{address}#/"), "html[data-ready]")
    page.goto("about:blank")
    measure("clusters", lambda: page.goto(f"{address}#/clusters"), "html[data-ready] [aria-rowindex='2']")
    click = page.get_by_role("button", name="First document").click
    measure("sort by text", click, "[aria-sort=ascending]")
    seconds["longest frame"] = float(page.evaluate(FRAMES))
    page.evaluate("scrollTo(0, 0)")
    one = page.get_by_text("1 of ", exact=False)
    started = time.perf_counter()
    page.get_by_label("Search").fill(last)
    one.wait_for(timeout=60_000)
    seconds["first search"] = time.perf_counter() - started
    return seconds
