"""A web server whose answers fail as they are told to, and which counts the bytes of files that it sends."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FAULTS = ("cut", "reset", "slow", "503", "416", "other place", "whole", "no length", "redirect", "change")
"""What an answer may do; `whole` ignores the range that was asked for, `change` gives the file another content."""

MISSING = 404


class FaultyServer(ThreadingHTTPServer):
    """Serves `files`, by path; `fault` says for each request for a file what its answer does, or nothing."""

    daemon_threads = True

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.sent, self.asked = dict(files), 0, 0
        self.fault: Callable[[], str] = lambda: ""
        self.change: Callable[[bytes], bytes] = lambda content: content
        self.redirects: dict[str, str] = {}
        self.seen: list[Mapping[str, str]] = []
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as its base
        """Say nothing of connections that a client, or a fault, has cut."""


class _Handler(BaseHTTPRequestHandler):
    server: FaultyServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        server = self.server
        with server.lock:
            server.asked += 1
            server.seen.append(dict(self.headers))
            fault = server.fault()
            path = self.path.removeprefix("/moved")
            if fault == "change" and path in server.files:
                server.files[path] = server.change(server.files[path])
            content = server.files.get(path)
        if self.path in server.redirects:
            self._answer(302, {"Location": server.redirects[self.path]})
        elif content is None:
            self._answer(MISSING, {})
        elif fault == "redirect" and not self.path.startswith("/moved"):
            self._answer(307, {"Location": f"/moved{path}"})
        elif fault in ("503", "416"):
            self._answer(int(fault), {})
        elif fault == "reset":
            self.close_connection = True
        elif fault == "dripped header":
            self._drip()
        else:
            self._send(content, fault)

    def _answer(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _drip(self) -> None:
        """Send a header whose every byte comes in time, and whose end comes not."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        for _ in range(200):
            time.sleep(0.05)
            self.wfile.write(b"x")

    def _send(self, content: bytes, fault: str) -> None:
        size, headers, status = len(content), {"ETag": f'"{sha256(content).hexdigest()[:16]}"'}, 200
        asked = self.headers.get("Range", "").removeprefix("bytes=")
        low, high = 0, size
        if asked and fault != "whole":
            first, _, last = asked.partition("-")
            low, high, status = int(first), min(int(last) + 1, size), 206
            if low >= size:
                return self._answer(416, {"Content-Range": f"bytes */{size}"})
            at = low + (fault == "other place")
            headers["Content-Range"] = f"bytes {at}-{high - 1}/{size}"
        if fault != "no length":
            headers["Content-Length"] = str(high - low)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()
        if fault == "late":
            time.sleep(0.5)
        body = content[low:high]
        pieces = [body[: len(body) // 2]] if fault == "cut" else [body]
        if fault == "slow":
            pieces = [body[at : at + 1 + len(body) // 4] for at in range(0, len(body), 1 + len(body) // 4)]
        for piece in pieces:
            if fault == "slow":
                time.sleep(0.01)
            self.wfile.write(piece)
            with self.server.lock:
                self.server.sent += len(piece)
        self.close_connection = True
        return None


@contextmanager
def serving(files: Mapping[str, bytes]) -> Iterator[FaultyServer]:
    """Serve files until the context is left."""
    server = FaultyServer(files)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
