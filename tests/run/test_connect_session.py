"""The Spark Connect server that a session uses, and the errors if there is none."""

import pytest

from nddup.cli import main
from nddup.errors import ConfigError
from nddup.spark import session
from nddup.spark.session import is_started_here, lead_to, require_reachable, server_of
from scripts.standalone import free_port
from tests.places import ROOT


@pytest.mark.parametrize(
    ("master", "settings", "around", "server"),
    [
        (None, {}, None, None),
        ("local[2]", {}, None, None),
        ("sc://a:1", {"spark.remote": "sc://b:2"}, "sc://c:3", "sc://a:1"),
        (None, {"spark.remote": "sc://b:2"}, "sc://c:3", "sc://b:2"),
        (None, {}, "sc://c:3", "sc://c:3"),
        ("spark://a:7077", {}, "sc://c:3", None),
    ],
)
def test_the_first_that_names_a_server(
    monkeypatch: pytest.MonkeyPatch,
    master: str | None,
    settings: dict[str, str],
    around: str | None,
    server: str | None,
) -> None:
    """The server is named by `--master`, else by the settings, else by the environment."""
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    if around:
        monkeypatch.setenv("SPARK_REMOTE", around)

    assert server_of(master, settings) == server


def test_a_server_is_started_where_the_mode_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mode that starts a server here is chosen by a setting or by the environment."""
    monkeypatch.delenv("SPARK_API_MODE", raising=False)
    assert not is_started_here({})
    assert not is_started_here({"spark.api.mode": "classic"})
    assert is_started_here({"spark.api.mode": "Connect"})
    monkeypatch.setenv("SPARK_API_MODE", "connect")
    assert is_started_here({})


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing packages are named, with the extra that installs them, before anything else is tried."""
    monkeypatch.setattr(session, "CLIENT", ("no_such_client",))

    with pytest.raises(ConfigError, match=r"Spark Connect needs pip install 'nddup\[connect\]' .*no_such_client"):
        lead_to("sc://127.0.0.1:1", {})


def test_nobody_answers(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable server is reported in one line, at once, without the token of its address."""
    port = free_port()
    with pytest.raises(ConfigError, match=f"no server can be reached at 127.0.0.1:{port} "):
        require_reachable(f"sc://127.0.0.1:{port}/;token=hush-hush")

    monkeypatch.setattr(session, "CLIENT", ())
    server = f"sc://127.0.0.1:{port}/;token=hush-hush"
    status = main(["run", str(ROOT / "samples"), "--output", "never", "--master", server])

    said = capfd.readouterr().err
    assert status == 2
    assert f"no server can be reached at 127.0.0.1:{port}" in said
    assert "hush" not in said
