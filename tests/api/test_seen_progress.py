"""The progress of `find_duplicates`: on a terminal, in a notebook, in a log, and with progress turned off."""

import logging
import sys
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import nddup
from nddup.ground.progress import logger

PAGES = pd.DataFrame({"id": ["a", "b"], "text": ["one two three four five six", "seven eight nine ten eleven twelve"]})
STAGES = ["sketch", "pairs", "clusters", "keep"]


def test_a_terminal_and_a_notebook_get_one_line_that_is_erased(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal and a notebook get one line, of which nothing stays; the notebook's has no terminal codes."""
    notebook: Any = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr.isatty", lambda: True)
        nddup.find_duplicates(PAGES)
        terminal = capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "IPython", notebook)
        nddup.find_duplicates(PAGES)
        shown = capsys.readouterr().err
        nddup.find_duplicates(PAGES, progress=False)
        quiet = capsys.readouterr().err

    assert "\n" not in terminal + shown
    assert terminal.endswith("\r\033[K")
    assert shown.endswith("\r" + " " * 100 + "\r")
    assert "\033" not in shown
    assert quiet == ""


def test_elsewhere_the_program_decides(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere progress goes to the log at level INFO, or on request to standard error."""
    monkeypatch.setattr(logger, "handlers", [])
    caplog.set_level(logging.WARNING, "nddup")
    nddup.find_duplicates(PAGES)
    unheard = [record.name for record in caplog.records]
    with caplog.at_level(logging.INFO, "nddup"):
        nddup.find_duplicates(PAGES)
    heard = [record.getMessage().split()[0] for record in caplog.records]
    silent = capsys.readouterr().err

    monkeypatch.setattr(logger, "hasHandlers", lambda: False)
    nddup.find_duplicates(PAGES, progress=True)

    assert unheard == []
    assert heard == STAGES
    assert silent == ""
    assert [line.split()[2] for line in capsys.readouterr().err.splitlines()] == STAGES
