"""If a Spark Connect server has no MLlib, the pivot miner mines everything, with a warning."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from nddup.errors import ConfigError
from nddup.settings.load import build_config
from nddup.spark.clustering import mine_components
from nddup.spark.steps import clustering
from nddup.spark.steps.clustering import _choose_miner


def choose(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], *, is_connect: bool, can_fit: bool) -> str:
    """Return the miner of a job whose session is of this kind."""
    monkeypatch.setattr(clustering, "is_connect", lambda _: is_connect)
    monkeypatch.setattr(mine_components, "can_fit", lambda _: can_fit)
    job: Any = SimpleNamespace(spark=None, config=build_config({"clusters": settings}, origin="test"))
    return _choose_miner(job)


def test_a_classic_session_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A classic session always has MLlib, so it is not tested by a fit."""
    assert choose(monkeypatch, {}, is_connect=False, can_fit=False) == "auto"
    assert choose(monkeypatch, {"miner": "fpgrowth"}, is_connect=False, can_fit=False) == "fpgrowth"


def test_the_settings_hold_where_mllib_is(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """With MLlib the miner is as set, and modes that mine no sets, and `pivot`, do not need MLlib."""
    assert choose(monkeypatch, {}, is_connect=True, can_fit=True) == "auto"
    assert choose(monkeypatch, {"mode": "partition"}, is_connect=True, can_fit=False) == "pivot"
    assert choose(monkeypatch, {"miner": "pivot"}, is_connect=True, can_fit=False) == "pivot"
    assert caplog.text == ""


def test_the_other_miner_is_taken_and_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Without MLlib, `auto` becomes `pivot` with a warning, and `fpgrowth` is refused."""
    with caplog.at_level(logging.WARNING, logger="nddup"):
        assert choose(monkeypatch, {}, is_connect=True, can_fit=False) == "pivot"
    assert "no MLlib: the pivot miner" in caplog.text

    with pytest.raises(ConfigError, match=r"clusters\.miner: fpgrowth: this Spark server has no MLlib"):
        choose(monkeypatch, {"miner": "fpgrowth"}, is_connect=True, can_fit=False)
