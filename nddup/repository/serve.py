"""`nddup serve REPO`: look-ups over HTTP, for this machine only; read-only, one page, and JSON for programs.

    GET  /                       a page: paste a text, see the stored documents that are like it
    GET  /status                 {"repository", "version", "documents"}
    POST /query?top=5&bands=60   the body is a text or a page, in UTF-8; {"version", "seconds", "matches"}, MATCHES

Each answer is that of the newest version. A body has at most `MOST_BYTES`; more than `MOST_AT_ONCE` requests at a time
are refused with 503, and one that sends nothing for `PATIENCE` seconds is closed. Only names of this machine are
answered, and no page of another site: a browser would let one ask here. Python's own server is enough for one machine;
it has no logins and no encryption, so it listens nowhere else.
"""

import base64
import hashlib
import json
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from nddup.errors import ConfigError, NddupError
from nddup.repository.opened_repository import Repository
from nddup.repository.query_stored import Ask

HOST = "127.0.0.1"
MOST_BYTES = 4 << 20
MOST_AT_ONCE = 8
PATIENCE = 10.0

SCRIPT = """
const [field, rows, said] = ["textarea", "tbody", "output"].map((name) => document.querySelector(name));
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  rows.replaceChildren();
  said.textContent = "…";
  const answer = await fetch("/query?top=50", {method: "POST", body: field.value});
  const found = await answer.json();
  if (!answer.ok) { said.textContent = found.error; return; }
  const like = found.matches.filter((match) => match.doc_id !== null);
  said.textContent = `${like.length} like it, in version ${found.version}, ${Math.round(found.seconds * 1000)} ms`;
  for (const match of like) {
    const row = rows.insertRow();
    for (const value of [match.resemblance.toFixed(3), match.doc_id, match.source, match.kept ? "kept" : "removed"]) {
      row.insertCell().textContent = value;
    }
  }
});
"""

PAGE = f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>nddup: look up</title>
<style>:root {{ color-scheme: light dark; }} body {{ font: 1rem/1.5 system-ui; max-width: 60rem; margin: 2rem auto;
padding: 0 1rem; }} textarea {{ width: 100%; height: 12rem; box-sizing: border-box; }} td, th {{ text-align: left;
padding: .2rem 1rem .2rem 0; overflow-wrap: anywhere; }}</style>
<main><h1>Is this text stored?</h1>
<form><label for="text">A text or a page</label><textarea id="text" required></textarea>
<p><button>Look up</button> <output for="text"></output></p></form>
<table><thead><tr><th scope="col">resemblance<th scope="col">document<th scope="col">file<th scope="col">state</tr>
</thead><tbody></tbody></table></main>
<script>{SCRIPT}</script></html>
"""

POLICY = (
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src"
    f" 'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'; base-uri 'none';"
    " frame-ancestors 'none'"
)


class LookUps(ThreadingHTTPServer):
    """The server of one repository; `port` 0 takes a free one. Queries are computed one after another."""

    daemon_threads = True

    def __init__(self, repository: Repository, name: str, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.repository, self.name = repository, name
        self.lock = threading.Lock()
        self.room = threading.BoundedSemaphore(MOST_AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - of the base class
        """Start a thread for a connection, or close it if there are too many."""
        if self.room.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Answer a connection, and make room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Write nothing: a client that goes away, or sends nothing, is no error of this process."""

    @property
    def names(self) -> set[str]:
        """What a request may call this server."""
        return {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    def query(self, text: str, ask: Ask) -> dict[str, Any]:
        """Return the matches of a text in the newest version."""
        with self.lock:
            began = time.perf_counter()
            matches = self.repository.refresh().query({"query": text}, ask).to_pylist()
            seconds = time.perf_counter() - began
            return {"version": self.repository.version, "seconds": round(seconds, 6), "matches": matches}

    def status(self) -> dict[str, Any]:
        """Return what is served."""
        with self.lock:
            commit = self.repository.refresh().snapshot.commit
            return {"repository": self.name, "version": commit.version, "documents": commit.counts.get("documents", 0)}


class _RefusedError(Exception):
    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


def _find_nothing(given: dict[str, list[str]]) -> None:
    del given
    raise _RefusedError(404, "no such address; there are GET /, GET /status and POST /query")


class _Handler(BaseHTTPRequestHandler):
    server: LookUps
    timeout = PATIENCE
    server_version, sys_version = "nddup", ""

    def do_GET(self) -> None:
        self._answer({"/": lambda _: PAGE, "/status": lambda _: self.server.status()})

    def do_POST(self) -> None:
        self._answer({"/query": self._query})

    def _answer(self, known: dict[str, Any]) -> None:
        status, found = 200, None
        try:
            self._require_ours()
            asked = urlsplit(self.path)
            found = known.get(asked.path, _find_nothing)(parse_qs(asked.query))
        except _RefusedError as refused:
            status, found = refused.status, {"error": str(refused)}
        except ConfigError as error:
            status, found = 400, {"error": str(error)}
        except NddupError as error:
            status, found = 500, {"error": str(error)}
        self._send(status, found)

    def _require_ours(self) -> None:
        """Refuse another name of this machine, which a site may have given itself, and a request from a site's page."""
        origin = self.headers.get("Origin")
        is_ours = origin is None or origin.removeprefix("http://") in self.server.names
        if self.headers.get("Host") not in self.server.names or not is_ours:
            raise _RefusedError(403, f"only http://{HOST}:{self.server.server_port} is answered")

    def _query(self, given: dict[str, list[str]]) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            raise _RefusedError(411, "a body with Content-Length is expected")
        if int(length) > MOST_BYTES:
            raise _RefusedError(413, f"a body has at most {MOST_BYTES:,} bytes")
        unknown = given.keys() - {"top", "bands"}
        top = given.get("top", [""])[0]
        bands = [band for band in given.get("bands", [""])[0].split(",") if band]
        if unknown or (top and not (top.isascii() and top.isdigit() and int(top))):
            raise _RefusedError(400, "expected ?top=N, at least 1, and ?bands=60,70")
        if not all(band.isascii() and band.isdigit() for band in bands):
            raise _RefusedError(400, "bands are whole numbers such as 60,70")
        text = self.rfile.read(int(length)).decode("utf-8", "replace")
        return self.server.query(text, Ask(bands=[int(band) for band in bands], top=int(top) if top else None))

    def _send(self, status: int, found: str | dict[str, Any]) -> None:
        is_page = isinstance(found, str)
        body = (found if isinstance(found, str) else json.dumps(found) + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{'text/html' if is_page else 'application/json'}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff",
                            "Cache-Control": "no-store", "Connection": "close"}.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002
        """Write nothing: what is looked up is nobody's business."""
