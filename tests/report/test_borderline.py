"""The pairs nearest to the threshold: the list, the page with both texts, and the texts that a run stores for it."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.ground.shown import spell_share
from nddup.report.for_review import SHOWN, decisive_of, find_closest
from nddup.settings.load import build_config
from tests.counted_rows import once_each
from tests.embedded.confirmed_texts import draw_together
from tests.finished_runs import write_texts
from tests.report.opened_reports import Watched
from tests.samples_by_night import first


@pytest.fixture(scope="module", params=first(1, ["edit", "none"]))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run at a low threshold over families of texts, with its report; few texts are stored for clusters."""
    folder, case = tmp_path_factory.mktemp("borderline"), draw_together(range(12))
    settings = case.settings
    if request.param == "none":
        settings["pairs"] = {"threshold": 0.4}
    write_texts(folder / "texts.jsonl", case.texts)
    config = build_config({**settings, "output": {"texts": 4}}, origin="test")
    run_locally([str(folder / "texts.jsonl")], str(folder / "run"), config)
    return folder / "run"


def expected(run: Path, number: int) -> list[tuple[float, str, str]]:
    """Return rows of `pairs`, the first for each two groups: the lowest that share no group, then the lowest others."""
    group = once_each((row["doc_id"], row["group"]) for row in pq.read_table(run / "documents").to_pylist())
    rows = pq.read_table(run / "pairs").to_pylist()
    name = "resemblance" if rows[0]["edit"] is None else "edit"
    seen: set[frozenset[str]] = set()
    found = []
    for measured, a, b in sorted((row[name], row["doc_a"], row["doc_b"]) for row in rows):
        groups = frozenset((group[a], group[b]))
        if len(groups) == len((a, b)) and groups not in seen:
            seen.add(groups)
            found.append((measured, a, b))
    apart: list[tuple[float, str, str]] = []
    for one in found:
        if not {group[one[1]], group[one[2]]} & {group[name] for other in apart for name in other[1:]}:
            apart.append(one)
    return sorted([*apart, *(one for one in found if one not in apart)][:number])


def test_the_closest_are_those_of_the_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The closest pairs are the lowest rows of `pairs` by the deciding measure, one for each two groups, as printed."""
    opened = DuckRun(str(run))
    decisive = decisive_of(opened.metrics.settings)
    assert decisive is not None

    found = find_closest(opened, decisive, 7)
    assert len({name for one in found for name in (one.doc_a, one.doc_b)}) == 14

    assert [(one.measured, one.doc_a, one.doc_b) for one in found] == expected(run, 7)
    assert main(["show", str(run), "--borderline", "7"]) == 0
    told = capsys.readouterr().out
    assert all(f"{spell_share(one.measured)}  {one.doc_a}  {one.doc_b}" in told for one in found)
    assert f"{run}/report/borderline.html" in told


def test_the_page_has_both_texts_of_each(run: Path) -> None:
    """The page shows both texts of each pair, which are stored with the run in addition to those of its clusters."""
    page = (run / "report" / "borderline.html").read_text(encoding="utf-8")
    stored = set(pq.read_table(run / "texts")["doc_id"].to_pylist())

    nearest = expected(run, SHOWN)

    assert {name for _, a, b in nearest for name in (a, b)} <= stored
    assert page.count("<h2 ") == len(nearest)
    assert '<link rel="stylesheet" href="assets/report.css">' in page
    assert "not stored" not in page
    confirm = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["settings"]["pairs"]["confirm"]
    how = "estimated from the sketches" if confirm == "none" else "exact"
    assert f"the values here are {how}." in page
    assert "<mark>" in page


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("dark", 390), pytest.param("light", 1280, marks=pytest.mark.nightly)])
def test_no_serious_fault(browser: Browser, run: Path, scheme: str, width: int) -> None:
    """axe-core finds nothing serious, nothing is wider than the screen, and the page looks like the report."""
    watched = Watched(browser, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = watched.page
    page.goto((run / "report" / "borderline.html").as_uri())

    faults = Axe().run(page, options={"preload": False}).response["violations"]

    assert [fault["id"] for fault in faults if fault["impact"] in {"serious", "critical"}] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("getComputedStyle(document.querySelector('.card')).borderTopLeftRadius") == "10px"
    page.get_by_role("link", name="Overview").click()
    page.wait_for_selector("html[data-ready]")
    assert watched.faults == []
    watched.context.close()


def test_a_run_that_compared_a_share_of_the_overlap_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run by a share of the overlap, which `pairs` does not hold, is refused and its report has no such page."""
    write_texts(tmp_path / "texts.jsonl", draw_together(range(2)).texts)
    config = build_config({"pairs": {"measure": "overlap", "threshold": 0.5}}, origin="test")
    run_locally([str(tmp_path / "texts.jsonl")], str(tmp_path / "run"), config)

    assert main(["show", str(tmp_path / "run"), "--borderline", "3"]) == 2
    assert "compared a share of the overlap" in capsys.readouterr().err
    assert not (tmp_path / "run" / "report" / "borderline.html").exists()
