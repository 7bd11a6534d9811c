"""The progress line of a command: it appears after a delay, once per step, and its bar never goes back."""

import time

import pytest

from nddup.ground import progress
from nddup.ground.progress import Steps


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the delays to about a tenth."""
    monkeypatch.setattr(progress, "PATIENCE", 0.07)
    monkeypatch.setattr(progress, "REFRESH_SECONDS", 0.02)


def test_a_step_that_lasts_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal, a step that lasts is named once, and short steps and quiet commands print nothing."""
    with Steps("evaluate", 3) as shown:
        shown.begin("read the list")
        time.sleep(0.3)
        shown.begin("short")
        shown.begin("compare the pairs")
        time.sleep(0.3)
    with Steps("evaluate", 1, is_quiet=True) as silent:
        silent.begin("nothing")
        time.sleep(0.2)

    assert capsys.readouterr().err == "nddup evaluate: read the list\nnddup evaluate: compare the pairs\n"


def test_a_step_that_says_how_far_it_is_is_named_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal, a long step that counts is named again with its count."""
    monkeypatch.setattr(progress, "AGAIN", 0.1)
    with Steps("setup", 1) as shown:
        shown.begin("compile")
        shown.note("1 of 9")
        time.sleep(0.3)
        shown.note("5 of 9")
        time.sleep(0.4)

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "nddup setup: compile; 1 of 9"
    assert lines[-1] == "nddup setup: compile; 5 of 9"


def test_the_bar_never_goes_back() -> None:
    """The bar never goes back, even if the parts of a step come out of order or there are more steps than announced."""
    shown = Steps("truth", 3)
    filled = []
    for name in ("a", "b", "c", "d"):
        shown.begin(name)
        for done, whole in ((1, 4), (3, 4), (2, 4), (0, 0), (9, 4)):
            shown.advance(done, whole)
            filled.append(shown.line().count("█"))
            assert shown.line().endswith(f" {name}")

    assert filled == sorted(filled)
    assert filled[0] > 0
    assert filled[-1] == progress.BAR


def test_a_terminal_gets_one_line_that_goes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, the progress is one line that is overwritten in place and erased at the end."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Steps("show", 2) as shown:
        shown.begin("open the run")
        time.sleep(0.3)

    told = capsys.readouterr().err
    assert "open the run" in told
    assert "\n" not in told
    assert told.endswith("\r\033[K")
