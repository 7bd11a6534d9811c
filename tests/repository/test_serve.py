"""`nddup serve`: the matches of a query as JSON, for this machine, with bounds; nothing is written."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nddup.repository
from nddup.cli import main
from nddup.repository import serve

TEXTS = {name: f"{' '.join(f'w{k}' for k in range(40))} {name}" for name in "abc"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[serve.LookUps]:
    """A server of three documents that are alike."""
    repo = nddup.repository.create(str(tmp_path / "repo"), pairs={"threshold": 0.5}, local={"processes": 1})
    repo.add(TEXTS)
    with serve.LookUps(nddup.repository.open(str(tmp_path / "repo")), "repo", 0) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def ask(server: serve.LookUps, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, Any]:
    """Return the status and the answer; JSON as its value."""
    connection = http.client.HTTPConnection(serve.HOST, server.server_port, timeout=20)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    data, is_json = answer.read().decode(), answer.getheader("Content-Type", "").startswith("application/json")
    connection.close()
    return answer.status, json.loads(data) if is_json else data


def test_a_query_gets_the_matches_of_the_newest_version(server: serve.LookUps, tmp_path: Path) -> None:
    """The rows are those of `query`; a batch that is added meanwhile is found, and a page is read as a page."""
    status, found = ask(server, "POST", "/query?top=1", f"<html><body><p>{TEXTS['b']}</p></body></html>")
    assert (status, found["version"]) == (200, 2)
    assert [(row["doc_id"], row["resemblance"]) for row in found["matches"]] == [("b", 1.0)]

    nddup.repository.open(str(tmp_path / "repo")).add({"new": f"{TEXTS['b']} new"})
    assert ask(server, "GET", "/status") == (200, {"repository": "repo", "version": 3, "documents": 4})
    assert len(ask(server, "POST", "/query", TEXTS["b"])[1]["matches"]) == 4
    assert {row["band"] for row in ask(server, "POST", "/query?bands=60,90", TEXTS["b"])[1]["matches"]} <= {
        ">=90",
        "60-90",
    }


def test_the_page_is_there(server: serve.LookUps) -> None:
    """A person gets a page with a form."""
    status, page = ask(server, "GET", "/")
    assert status == 200
    assert "<textarea" in page


@pytest.mark.parametrize(
    ("asked", "headers", "status"),
    [
        (("GET", "/query", None), {}, 404),
        (("GET", "/../etc/passwd", None), {}, 404),
        (("POST", "/query?top=0", "a"), {}, 400),
        (("POST", "/query?bands=x", "a"), {}, 400),
        (("POST", "/query?bands=1", "a"), {}, 400),
        (("POST", "/query?sources=x", "a"), {}, 400),
        (("POST", "/query", "a" * (serve.MOST_BYTES + 1)), {}, 413),
        (("POST", "/query", "a"), {"Host": "evil.example"}, 403),
        (("POST", "/query", "a"), {"Origin": "http://evil.example"}, 403),
        (("PUT", "/query", "a"), {}, 501),
    ],
)
def test_other_requests_are_refused(
    asked: tuple[str, str, str | None], headers: dict[str, str], status: int, server: serve.LookUps
) -> None:
    """Unknown addresses, wrong arguments, long bodies, other names of the machine and other sites get no answer."""
    try:
        found = ask(server, *asked, **headers)[0]
    except (ConnectionError, BrokenPipeError):  # it was closed while the long body was sent
        found = 413
    assert found == status


def test_a_port_that_is_taken_is_a_mistake(
    server: serve.LookUps, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the port."""
    assert main(["serve", str(tmp_path / "repo"), "--port", str(server.server_port)]) == 2
    assert f"--port {server.server_port}: cannot be used" in capsys.readouterr().err


def test_more_connections_than_there_is_room_for_are_closed(server: serve.LookUps) -> None:
    """Connections that send nothing take no thread beyond the bound, and the next one is told."""
    idle = [socket.create_connection((serve.HOST, server.server_port)) for _ in range(serve.MOST_AT_ONCE)]
    try:
        with socket.create_connection((serve.HOST, server.server_port), timeout=20) as late:
            assert late.recv(100).startswith(b"HTTP/1.0 503 ")
    finally:
        for one in idle:
            one.close()
