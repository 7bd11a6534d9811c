"""`nddup serve`: the matches of a query as JSON, with bounds of time and bytes for everyone; nothing is written."""

import gzip
import hmac
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import nddup.repository
from nddup.cli import main
from nddup.errors import ConfigError, NddupError
from nddup.repository.opened_repository import Repository
from nddup.serving import connections, look_ups
from nddup.serving.look_ups import MAX_BYTES, LookUps, RefusedError, listen_at, read_body

TEXTS = {name: f"{' '.join(f'w{k}' for k in range(40))} {name}" for name in "abc"}
SHOWN = "0123456789abcdefgh"


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A repository of three documents that are alike."""
    path = str(tmp_path_factory.mktemp("serving") / "repo")
    nddup.repository.create(path, pairs={"threshold": 0.5}, local={"processes": 1}).add(TEXTS)
    return path


def serving(repo: str, token: str | None = None) -> Iterator[LookUps]:
    """Serve until the test ends."""
    found = LookUps(nddup.repository.open(repo), "repo", listen_at(look_ups.HOST, 0), token)
    thread = threading.Thread(target=found.server.serve, daemon=True)
    thread.start()
    yield found
    found.server.end()
    thread.join(20)
    assert not thread.is_alive()


@pytest.fixture
def server(repo: str) -> Iterator[LookUps]:
    """A server for this machine."""
    yield from serving(repo)


def ask(server: LookUps, method: str, path: str, body: str | bytes | None = None, **headers: str) -> tuple[int, Any]:
    """Return the status and the answer; JSON as its value."""
    connection = http.client.HTTPConnection(look_ups.HOST, server.port, timeout=20)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    data, is_json = answer.read().decode(), answer.getheader("Content-Type", "").startswith("application/json")
    connection.close()
    return answer.status, json.loads(data) if is_json else data


def send(server: LookUps, request: bytes) -> bytes:
    """Return all bytes that come back for bytes that are sent at once."""
    with socket.create_connection((look_ups.HOST, server.port), timeout=20) as connection:
        connection.sendall(request)
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def test_a_query_gets_the_matches_of_the_newest_version(tmp_path: Path) -> None:
    """The rows are those of `query`; a batch that is added meanwhile is found, and a page is read as a page."""
    path = str(tmp_path / "repo")
    nddup.repository.create(path, pairs={"threshold": 0.5}, local={"processes": 1}).add(TEXTS)
    for server in serving(path):
        status, found = ask(server, "POST", "/query?top=1", f"<html><body><p>{TEXTS['b']}</p></body></html>")
        assert (status, found["version"], found["unread_bytes"]) == (200, 2, 0)
        assert [(row["doc_id"], row["resemblance"]) for row in found["matches"]] == [("b", 1.0)]

        nddup.repository.open(path).add({"new": f"{TEXTS['b']} new"})
        assert ask(server, "GET", "/status") == (200, {"repository": "repo", "version": 3, "documents": 4})
        assert len(ask(server, "POST", "/query", TEXTS["b"])[1]["matches"]) == 4
        bands = {row["band"] for row in ask(server, "POST", "/query?bands=60,90", TEXTS["b"])[1]["matches"]}
        assert bands <= {">=90", "60-90"}


def test_what_is_ignored_does_not_count_in_a_query(tmp_path: Path) -> None:
    """A query that differs in its numbers alone has the resemblance 1; the setting is that of the repository."""
    path, words = str(tmp_path / "repo"), "of goods that were delivered in good order and are paid within days"
    ignoring: dict[str, Any] = {"tokens": {"ignore": ["numbers"]}, "local": {"processes": 1}}
    nddup.repository.create(path, **ignoring).add({"a": f"invoice 2024 {words} 1500 euro"})
    for server in serving(path):
        for number in ("7", "2024", "20241127001"):
            found = ask(server, "POST", "/query", f"invoice {number} {words} 99 euro")[1]["matches"]
            assert [(row["doc_id"], row["resemblance"]) for row in found] == [("a", 1.0)], number
        other = words.replace("goods", "wares").replace("days", "weeks")
        assert ask(server, "POST", "/query", f"invoice 2024 {other} 1500 euro")[1]["matches"][0]["doc_id"] is None


def test_the_other_addresses(server: LookUps) -> None:
    """A person gets a page with a form; programs that watch get health and counts, on one connection."""
    connection = http.client.HTTPConnection(look_ups.HOST, server.port, timeout=20)
    found = {}
    for path in ("/", "/health", "/none", "/query", "/metrics"):
        connection.request("POST" if path == "/query" else "GET", path, TEXTS["a"] if path == "/query" else None)
        found[path] = connection.getresponse().read().decode()
    connection.request("HEAD", "/")
    head = connection.getresponse()
    assert (head.read(), head.getheader("Content-Length")) == (b"", str(len(found["/"].encode())))
    assert "frame-ancestors 'none'" in head.getheader("Content-Security-Policy", "")
    connection.close()

    assert "<textarea" in found["/"]
    assert json.loads(found["/health"]) == {"status": "ok"}
    for line in ('nddup_requests_total{status="200"} 3', 'nddup_requests_total{status="404"} 1',
                 "nddup_look_up_seconds_count 1", "nddup_connections 1", "nddup_documents 3"):  # fmt: skip
        assert line in found["/metrics"].splitlines()


@pytest.mark.parametrize(
    ("asked", "headers", "status"),
    [
        (("GET", "/query", None), {}, 405),
        (("PUT", "/query", "a"), {}, 405),
        (("GET", "/../etc/passwd", None), {}, 404),
        (("POST", "/query?top=0", "a"), {}, 400),
        (("POST", f"/query?top={'9' * 5000}", "a"), {}, 400),
        (("POST", f"/query?bands={'9' * 5000}", "a"), {}, 400),
        (("POST", "/query?bands=1", "a"), {}, 400),
        (("POST", "/query?sources=x", "a"), {}, 400),
        (("POST", "/query", f'{{"text": {"9" * 5000}}}'), {"Content_Type": "application/json"}, 400),
        (("POST", "/query", "a"), {"Content_Length": "9" * 5000}, 400),
        (("POST", "/query", "a"), {"Content_Length": "-1"}, 400),
        (("POST", "/query", "a" * (MAX_BYTES + 1)), {}, 413),
        (("POST", "/query", "a"), {"Content_Type": "application/pdf"}, 415),
        (("POST", "/query", "a"), {"X": "x" * connections.MAX_HEADER}, 431),
        (("POST", "/query", "a"), {"Host": "evil.example"}, 403),
        (("POST", "/query", "a"), {"Origin": "http://evil.example"}, 403),
    ],
)
def test_other_requests_are_refused(
    asked: tuple[str, str, str | None], headers: dict[str, str], status: int, server: LookUps
) -> None:
    """Unknown addresses, wrong arguments, long bodies, other names of the machine and other sites get an error."""
    found, answer = ask(server, *asked, **headers)
    assert (found, answer["status"]) == (status, status)
    assert answer["error"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nHost\r\n\r\n", 400),
        (b"GET http://[::1 HTTP/1.1\r\n\r\n", 400),
        (b"POST /query HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", 411),
        (b"POST /query HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 9999999\r\nExpect: 100-continue\r\n\r\n", 413),
        (b"POST /query HTTP/1.1\r\nHost: localhost:%d\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /query HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST /query HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /query HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n", 400),
        (b"POST /query HTTP/1.0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /query HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na", 400),
    ],
)  # fmt: skip
def test_what_is_no_request_gets_an_error(request_: bytes, status: int, server: LookUps) -> None:
    """Bytes that are no request get a status and JSON, and the connection ends where no more can be understood."""
    request_ = request_.replace(b"%d", str(server.port).encode())
    head, _, body = send(server, request_.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)).partition(
        b"\r\n\r\n"
    )
    assert head.startswith((f"HTTP/1.1 {status} ".encode(), f"HTTP/1.0 {status} ".encode()))
    assert json.loads(body)["status"] == status


PLAIN = "слово за слово"

packed = partial(gzip.compress, mtime=0)  # a time in the name of a test would differ between processes


@pytest.mark.parametrize(
    ("body", "kind", "encoding", "found"),
    [
        (PLAIN.encode(), "", "", PLAIN),
        (PLAIN.encode("koi8-r"), "text/plain; charset=koi8-r", "", PLAIN),
        (b"\xff\xfe" + PLAIN.encode("utf-16-le"), "text/plain", "", PLAIN),
        (json.dumps({"id": 1, "text": PLAIN}).encode(), "application/json", "", PLAIN),
        (b'{"text": "a \\ud800 b"}', "application/json", "", "a \ufffd b"),
        (urlencode({"a": "", "text": PLAIN}).encode(), "application/x-www-form-urlencoded", "identity", PLAIN),
        (packed(PLAIN.encode()) + packed(b"!"), "text/html", "gzip", f"{PLAIN}!"),
        (zlib.compress(PLAIN.encode()), "text/plain", "Deflate", PLAIN),
        (zlib.compress(PLAIN.encode())[2:-4], "text/plain", "deflate", PLAIN),
        (zlib.compress(packed(PLAIN.encode())), "text/plain", "x-gzip, deflate", PLAIN),
        (packed(PLAIN.encode())[:-1], "text/plain", "gzip", 400),
        (b"no gzip", "text/plain", "gzip", 400),
        (packed(bytes(MAX_BYTES + 1)), "text/plain", "gzip", 413),
        (b"", "text/plain", "br", 415),
        (b"", "text/plain", "zstd", 415),
        (packed(PLAIN.encode()), "text/plain", "", 415),
        (b"%PDF\0\0\0", "", "", 415),
        (b"a", "text/plain; charset=none", "", 415),
        (b"--x\r\n", "multipart/form-data; boundary=x", "", 415),
        (b"<p>not a form", "application/x-www-form-urlencoded", "", 415),
        (b"q=1", "application/x-www-form-urlencoded", "", 400),
        (b"text=%FF", "application/x-www-form-urlencoded", "", 400),
        (b"[" * 100_000, "application/json", "", 400),
        (b'{"text": 1}', "application/json", "", 400),
    ],
)
def test_bodies_are_read_or_refused(body: bytes, kind: str, encoding: str, found: str | int) -> None:
    """What is said to be compressed or a form is read as that; whatever is not read is refused."""
    try:
        assert read_body(body, kind, encoding).text == found
    except RefusedError as refused:
        assert refused.status == found  # noqa: PT017 - either is an answer


def test_requests_in_a_row_are_answered_in_order(server: LookUps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies that come together are kept apart, however their length is given; a slow one after them is refused."""
    monkeypatch.setattr(connections, "PATIENCE", 1.0)
    head = f"POST /query?top=1 HTTP/1.1\r\nHost: localhost:{server.port}\r\n"
    bodies = [TEXTS["a"], TEXTS["b"], TEXTS["c"]]
    whole = [f"{head}Content-Length: {len(bodies[0])}\r\n\r\n{bodies[0]}",
             f"{head}Transfer-Encoding: chunked\r\n\r\n{len(bodies[1]):x};a=b\r\n{bodies[1]}\r\n0\r\nHost: a\r\n\r\n",
             f"{head}Content-Length: {len(bodies[2])}\r\n\r\n{bodies[2]}"]  # fmt: skip
    answers = send(server, "".join([*whole, f"{head}Content-Length: 2\r\n\r\na"]).encode())
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"200", b"200", b"408"]
    assert re.findall(rb'"doc_id": "(\w)"', answers) == [b"a", b"b", b"c"]


def test_slow_clients_keep_nobody_out(server: LookUps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that send a byte now and then hold no thread, and are told when the time of a request is over."""
    monkeypatch.setattr(connections, "PATIENCE", 1.5)
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 20)
    slow = [socket.create_connection((look_ups.HOST, server.port), timeout=20) for _ in range(40)]
    began = time.monotonic()
    for byte in b"POST /q":
        for one in slow[20:]:
            one.send(bytes([byte]))
        time.sleep(0.05)
    assert ask(server, "POST", "/query", TEXTS["a"])[0] == 200
    assert time.monotonic() - began < 1.4
    answers = [one.recv(1000)[:12] for one in slow]
    for one in slow:
        one.close()
    assert set(answers[:19]) <= {b"HTTP/1.1 503", b""}  # the oldest made room
    assert answers.count(b"HTTP/1.1 408") >= 15


def test_more_look_ups_than_there_is_room_for_are_told(server: LookUps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many at once some are answered and the others get 503, `Retry-After` and JSON; none gets nothing."""
    monkeypatch.setattr(look_ups, "MAX_WAITING", 3)
    with ThreadPoolExecutor(60) as pool:
        with server._lock:  # noqa: SLF001 - as if a look-up took long
            waiting = [pool.submit(ask, server, "POST", "/query", TEXTS["a"]) for _ in range(60)]
            refused = b""
            while not refused.startswith(b"HTTP/1.1 503 "):
                refused = send(server, f"POST /query HTTP/1.1\r\nHost: localhost:{server.port}\r\nContent-Length: 1\r\n"
                                       "Connection: close\r\n\r\na".encode())  # fmt: skip
            assert ask(server, "GET", "/health")[0] == 200
        answers = [one.result()[0] for one in waiting]
    assert b"\r\nRetry-After: 1\r\n" in refused
    assert {*answers} == {200, 503}


def test_a_look_up_that_waits_too_long_is_refused(server: LookUps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client is told, and it is not computed afterwards."""
    query, asked = Repository.query, list[Any]()

    def note(self: Any, texts: Any, given: Any) -> Any:  # noqa: ANN401
        asked.extend(texts.values())
        return query(self, texts, given)

    monkeypatch.setattr(Repository, "query", note)
    monkeypatch.setattr(look_ups, "MAX_WAIT", 0.3)
    with ThreadPoolExecutor(2) as pool:
        with server._lock:  # noqa: SLF001 - as if a look-up took long
            begun = pool.submit(ask, server, "POST", "/query", TEXTS["a"])
            while not server._waiting or server._wanted:  # noqa: SLF001
                time.sleep(0.01)
            assert ask(server, "POST", "/query", TEXTS["b"])[0] == 503
        assert begun.result()[0] == 503
    monkeypatch.undo()
    monkeypatch.setattr(Repository, "query", note)
    assert ask(server, "POST", "/query", TEXTS["c"])[0] == 200
    assert TEXTS["b"] not in asked


def test_look_ups_that_wait_are_computed_together(server: LookUps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gets the answer that it gets alone, also beside one that fails; other questions are asked for themselves."""
    query, asked = Repository.query, list[int]()
    texts = [f"{TEXTS['a']} {' '.join(f'x{k}' for k in range(n))}" for n in range(12)] + [
        "",
        "and nothing like it is there",
    ]

    def note(self: Any, texts: Any, given: Any) -> Any:  # noqa: ANN401
        asked.append(len(texts))
        if "fail" in texts.values():
            raise NddupError("no")
        return query(self, texts, given)

    monkeypatch.setattr(Repository, "query", note)
    wanted = [(path, text) for path in ("/query", "/query?top=1&bands=60") for text in [*texts, "fail"]]
    alone = [ask(server, "POST", path, text) for path, text in wanted]
    asked.clear()
    with ThreadPoolExecutor(len(wanted)) as pool:
        with server._lock:  # noqa: SLF001 - as if a look-up took long
            waiting = [pool.submit(ask, server, "POST", path, text) for path, text in wanted]
            while len(server._waiting) < len(wanted):  # noqa: SLF001
                time.sleep(0.01)
        together = [one.result() for one in waiting]
    for one in (*alone, *together):
        one[1].pop("seconds", None)
    assert together == alone
    assert [status for status, _ in alone].count(500) == 2
    assert max(asked) > 10


def test_several_look_ups_hold_a_bounded_number_of_characters(server: LookUps, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is longer than the bound is looked up alone."""
    query, lengths = Repository.query, list[list[int]]()

    def note(self: Any, texts: Any, given: Any) -> Any:  # noqa: ANN401
        lengths.append([len(text) for text in texts.values()])
        return query(self, texts, given)

    monkeypatch.setattr(Repository, "query", note)
    monkeypatch.setattr(look_ups, "MAX_TOGETHER", 500)
    given = [n * "word " for n in (1, 30, 90, 200, 60, 2, 3)]
    with ThreadPoolExecutor(len(given)) as pool:
        with server._lock:  # noqa: SLF001 - as if a look-up took long
            waiting = [pool.submit(ask, server, "POST", "/query", text) for text in given]
            while len(server._waiting) < len(given):  # noqa: SLF001
                time.sleep(0.01)
        assert [one.result()[0] for one in waiting] == [200] * len(given)
    assert sorted(length for one in lengths for length in one) == sorted(map(len, given))
    assert all(len(one) == 1 or sum(one) <= 500 for one in lengths)
    assert max(map(len, lengths)) > 1


def test_the_loop_does_not_wait_for_a_thread_that_sends(server: LookUps) -> None:
    """Else it asks without end whether that thread is done, which takes the time in which it would be."""
    with ThreadPoolExecutor(1) as pool:
        with server._lock:  # noqa: SLF001 - as if a look-up took long
            waiting = pool.submit(ask, server, "POST", "/query", TEXTS["a"])
            while not server._waiting:  # noqa: SLF001
                time.sleep(0.01)
            (connection,) = server.server.connections
            seen = list[bool]()
            for unsent in (1, 1 << 30):  # so much that its thread waits for the loop
                connection.total_outbufs_len = unsent
                seen.append(connection.writable())
            connection.total_outbufs_len = 0
        assert waiting.result()[0] == 200
    assert seen == [False, True]


def test_a_client_that_does_not_read_keeps_nobody_waiting(server: LookUps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answers fill what is held for it; others get theirs meanwhile, and in the end its connection is closed."""
    answer = {"matches": ["x" * (6 << 20)]}
    monkeypatch.setattr(LookUps, "_compute", lambda _, batch: [answer] * len(batch))
    monkeypatch.setattr(connections, "IDLE", 5.0)
    one = f"POST /query HTTP/1.1\r\nHost: localhost:{server.port}\r\nContent-Length: 1\r\n\r\na"
    with socket.create_connection((look_ups.HOST, server.port), timeout=20) as stalled:
        stalled.sendall(one.encode() * 12)
        time.sleep(0.5)
        assert ask(server, "POST", "/query", TEXTS["a"]) == (200, answer)
        assert any(connection.is_working for connection in server.server.connections)
        began = time.monotonic()
        while any(connection.is_working for connection in server.server.connections):
            assert time.monotonic() - began < 20
            time.sleep(0.1)


def test_a_token_is_needed_at_other_addresses(repo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a token no other machine can ask; with one, only who shows it, compared in constant time."""
    opened, compared = nddup.repository.open(repo), list[bytes]()
    compare = hmac.compare_digest

    def note(shown: bytes, token: bytes) -> bool:
        compared.append(shown)
        return compare(shown, token)

    monkeypatch.setattr(hmac, "compare_digest", note)
    everywhere, here = "0.0.0.0", look_ups.HOST  # noqa: S104 - it is refused
    for host, token in ((everywhere, None), (everywhere, "short"), (here, ""), (here, "é" * 20), (here, "a\n" * 20)):
        with listen_at(host, 0) as listening, pytest.raises(ConfigError, match="NDDUP_SERVE_TOKEN"):
            LookUps(opened, "repo", listening, token)
    for server in serving(repo, SHOWN):
        for shown in ({}, *({"Authorization": one} for one in ("Bearer wrong", SHOWN, "Bearer ", "Bearer \xe9\xff",
                                                                f"Bearer {SHOWN}x", f"Basic {SHOWN}"))):  # fmt: skip
            assert [ask(server, "GET", path, **shown)[0] for path in ("/status", "/metrics", "/x")] == [401] * 3
        assert ask(server, "GET", "/status", Authorization=f"Bearer {SHOWN}", Host="any.example")[0] == 200
        assert ask(server, "GET", "/health", Host="any.example")[0] == 200
        assert {b"", b"wrong", SHOWN.encode()} <= {*compared}


def test_what_was_begun_is_answered_before_the_end(repo: str) -> None:
    """SIGTERM in the middle of a request: it is answered, the exit status is 0, and nobody new is."""
    command = [sys.executable, "-m", "nddup", "serve", repo, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout is not None
        port = int(re.findall(r":(\d+)/ answers", process.stdout.readline())[0])
        idle = socket.create_connection((look_ups.HOST, port), timeout=20)
        with socket.create_connection((look_ups.HOST, port), timeout=20) as begun:
            body = TEXTS["a"].encode()
            begun.sendall(
                f"POST /query HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            )
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            begun.sendall(body)
            assert begun.recv(1 << 16).startswith(b"HTTP/1.1 200 OK\r\n")
        assert process.wait(20) == 0
        idle.close()


def test_a_port_that_is_taken_is_a_mistake(server: LookUps, repo: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line names the port."""
    assert main(["serve", repo, "--port", str(server.port)]) == 2
    assert f"--port {server.port}: cannot be used" in capsys.readouterr().err
