"""Look-ups in the newest version of a repository over HTTP; read-only.

    GET  /                       a page: paste a text, see the stored documents that are like it
    GET  /status                 {"repository", "version", "documents"}
    GET  /health                 {"status": "ok"}; 503 while the server ends
    GET  /metrics                counts of requests, for Prometheus
    POST /query?top=5&bands=60   the body (`read_body`) is looked up; {"version", "seconds", "unread_bytes", "matches"}

Errors are {"error", "status"}. Look-ups are deferred, and one thread computes them: those that came while it computed
others, together and in one version, since a look-up of many texts costs little more than that of one. More than
`MAX_WAITING` are refused with 503. On this machine (`is_loopback`) only its own names are answered, and no page of
another site: a browser would let one ask here. At other addresses, and wherever there is a token, programs show it.
"""

import base64
import hashlib
import hmac
import ipaddress
import json
import re
import socket
import threading
import time
import zlib
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from nddup.errors import ConfigError, NddupError
from nddup.reading.charsets import canonical_charset, decode_content
from nddup.reading.containers import is_binary
from nddup.reading.records import without_surrogates
from nddup.reading.streams import compression_of
from nddup.repository.list_matches import Ask
from nddup.repository.opened_repository import Repository
from nddup.serving.connections import JSON, Answer, Environ, Server, Task, spell_error

BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Upper ends of the histogram of seconds."""

SCRIPT = """
const [field, rows, said] = ["textarea", "tbody", "output"].map((name) => document.querySelector(name));
let token = "";
const ask = () => fetch("/query?top=50", {
  method: "POST", body: field.value,
  headers: {"Content-Type": "text/plain;charset=utf-8", ...(token && {Authorization: `Bearer ${token}`})},
});
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  rows.replaceChildren();
  said.textContent = "…";
  let answer = await ask();
  if (answer.status === 401) {
    token = prompt("Token") ?? "";
    answer = await ask();
  }
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

FIELDS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""Of every answer."""

QUERY = "/query"

HOST = "127.0.0.1"

MAX_WAITING = 64
"""Maximum number of look-ups that wait or are computed."""

MAX_WAIT = 30.0
"""Maximum seconds that a look-up waits for its answer."""

MAX_TOGETHER = 1 << 20
"""Maximum number of characters of look-ups that are computed together, if they are several."""

MIN_TOKEN = 16
"""Minimum number of characters of a token."""

TOKEN = "NDDUP_SERVE_TOKEN"  # noqa: S105 - the name of the variable

_COUNT = re.compile(r"0*[1-9][0-9]{0,5}")

_BANDS = re.compile(r"[0-9]{1,3}(,[0-9]{1,3}){0,99}")

MAX_BYTES = 4 << 20
"""Maximum number of bytes of a body, as sent and expanded."""

ENCODINGS: Mapping[str, int] = {"gzip": 31, "x-gzip": 31, "deflate": zlib.MAX_WBITS}
"""The `wbits` of zlib for each content encoding that is read."""

TEXTS = ("text/", "application/xhtml+xml")

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s\";]+)", re.IGNORECASE)

_NO_FORM = re.compile(rb"[^A-Za-z0-9*\-._+%&=]")

FORM = "application/x-www-form-urlencoded"

ACCEPTED_ENCODINGS = "gzip, deflate"

EXPECTED = "say what it is, as in `curl -H 'Content-Type: text/html' --data-binary @new.html`"


class Counts:
    """Requests by status, and the seconds of look-ups, waiting included. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statuses: Counter[int] = Counter()
        self._seconds = [0] * (len(BUCKETS) + 1)
        self._sum = 0.0

    def add(self, status: int) -> None:
        """Count an answer."""
        with self._lock:
            self._statuses[status] += 1

    def add_look_up(self, seconds: float) -> None:
        """Count a look-up."""
        with self._lock:
            self._seconds[bisect_left(BUCKETS, seconds)] += 1
            self._sum += seconds

    def spell(self, now: Mapping[str, int]) -> str:
        """Return all counts, with values of this moment by name."""
        with self._lock:
            lines = ["# TYPE nddup_requests_total counter"]
            lines += [f'nddup_requests_total{{status="{one}"}} {n}' for one, n in sorted(self._statuses.items())]
            lines += ["# TYPE nddup_look_up_seconds histogram"]
            total = 0
            for end, count in zip((*map(str, BUCKETS), "+Inf"), self._seconds, strict=True):
                total += count
                lines.append(f'nddup_look_up_seconds_bucket{{le="{end}"}} {total}')
            lines += [f"nddup_look_up_seconds_sum {self._sum:.6f}", f"nddup_look_up_seconds_count {total}"]
        for name, value in now.items():
            lines += [f"# TYPE nddup_{name} gauge", f"nddup_{name} {value}"]
        return "\n".join(lines) + "\n"


class Text(NamedTuple):
    """A text or a page, and the number of bytes that no encoding decodes."""

    text: str
    unread_bytes: int = 0


NO_TEXT = Text("")


@dataclass(eq=False)
class LookUp:
    """A request whose text is looked up, which matches it asks for, and the text once its body is read."""

    task: Task
    ask: Ask
    text: Text = NO_TEXT
    began: float = field(default_factory=time.perf_counter)


class RefusedError(Exception):
    """A request that is not answered: the status, why, and fields of the answer."""

    def __init__(self, status: int, why: str, **fields: str) -> None:
        super().__init__(why)
        self.status, self.fields = status, {name.replace("_", "-"): value for name, value in fields.items()}


def is_loopback(listening: socket.socket) -> bool:
    """Return whether only this machine reaches a bound socket."""
    return ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback


def listen_at(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; `port` 0 takes a free one.

    Raises:
        OSError: if there is no such address of this machine, or it is taken.
        OverflowError: for a number that cannot be a port.
    """
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=1024)


class LookUps:
    """The answers of one repository, at a socket that is bound already.

    Args:
        name: its name for clients.
        listening: bound to the address; closed when the server ends.
        token: what programs must show; None only on this machine.

    Raises:
        ConfigError: if other machines could ask without a token, or it is short.
    """

    def __init__(self, repository: Repository, name: str, listening: socket.socket, token: str | None = None) -> None:
        if token is None and not is_loopback(listening):
            raise ConfigError(f"--host: other machines could ask; set {TOKEN} to what programs must show")
        if token is not None and (len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable()):
            raise ConfigError(f"{TOKEN}: expected at least {MIN_TOKEN} characters of ASCII")
        self._repository, self._name, self._token = repository, name, token
        self.port: int = listening.getsockname()[1]
        self._names = {f"{host}:{self.port}" for host in (HOST, "localhost", "[::1]", listening.getsockname()[0])}
        self._lock, self._room, self.counts = threading.Lock(), threading.Lock(), Counts()
        self._wanted, self._waiting = deque[LookUp](), set[LookUp]()
        self._computing = ThreadPoolExecutor(1, "look-ups")
        self.server = Server(self, listening, fields=FIELDS, max_body=MAX_BYTES)
        self._addresses: dict[str, tuple[str, Callable[[Environ], Answer]]] = {
            "/": ("GET", lambda _: Answer(PAGE.encode(), "text/html; charset=utf-8")),
            "/status": ("GET", self._status),
            "/health": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
            QUERY: ("POST", self._refuse_look_up),
        }

    def count(self, status: int) -> None:
        """Count an answer."""
        self.counts.add(status)

    def answer(self, environ: Environ) -> Answer:
        """Answer a request that was not deferred."""
        try:
            self._require_allowed(environ)
            answer = self._find(environ["PATH_INFO"], environ["REQUEST_METHOD"])(environ)
        except Exception as error:  # noqa: BLE001 - each request gets an answer, and the server goes on
            answer = answer_of(error)
        self.count(answer.status)
        return answer

    def defer(self, task: Task) -> bool:
        """Take a look-up, if nothing is wrong with its head and there is room."""
        environ = task.get_environment()
        if environ["PATH_INFO"] != QUERY or len(self._waiting) >= MAX_WAITING:
            return False
        try:
            self._require_allowed(environ)
            self._find(QUERY, environ["REQUEST_METHOD"])
            one = LookUp(task, _read_ask(environ))
        except RefusedError:
            return False
        with self._room:
            self._waiting.add(one)
            self._wanted.append(one)
        self._computing.submit(self._answer_waiting)
        return True

    def expire(self) -> None:
        """Refuse the look-ups that have waited too long."""
        latest = time.perf_counter() - MAX_WAIT
        with self._room:
            late = [one for one in self._waiting if one.began < latest]
        for one in late:
            self._give(one, answer_of(RefusedError(503, f"it waited for {MAX_WAIT:.0f} seconds", Retry_After="1")))

    def _find(self, path: str, method: str) -> Callable[[Environ], Answer]:
        if path not in self._addresses:
            raise RefusedError(404, f"no such address; there are {', '.join(self._addresses)}")
        allowed, answer = self._addresses[path]
        if method != allowed and (method, allowed) != ("HEAD", "GET"):
            raise RefusedError(405, f"{path} answers {allowed} only", Allow=allowed)
        return answer

    def _require_allowed(self, environ: Environ) -> None:
        """Refuse who shows no token; without one, another name of this machine and a request from a site's page."""
        if self._token is None:
            origin = environ.get("HTTP_ORIGIN")
            is_ours = origin is None or origin.removeprefix("http://") in self._names
            if environ.get("HTTP_HOST") not in self._names or not is_ours:
                raise RefusedError(403, f"only http://{HOST}:{self.port} is answered")
        elif environ["PATH_INFO"] not in ("/", "/health"):
            kind, _, shown = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
            is_right = hmac.compare_digest(shown.strip().encode("latin-1", "replace"), self._token.encode())
            if kind.lower() != "bearer" or not is_right:
                raise RefusedError(401, "expected the field Authorization: Bearer TOKEN", WWW_Authenticate="Bearer")

    def _status(self, environ: Environ) -> Answer:
        del environ
        commit = self._repository.snapshot.commit
        if self._lock.acquire(timeout=MAX_WAIT):
            try:
                commit = self._repository.refresh().snapshot.commit
            finally:
                self._lock.release()
        about = {"repository": self._name, "version": commit.version, "documents": commit.counts.get("documents", 0)}
        return Answer(json.dumps(about).encode() + b"\n")

    def _health(self, environ: Environ) -> Answer:
        del environ
        if self.server.is_ending:
            raise RefusedError(503, "the server ends", Retry_After="5")
        return Answer(b'{"status": "ok"}\n')

    def _metrics(self, environ: Environ) -> Answer:
        del environ
        commit = self._repository.snapshot.commit
        now = {"look_ups_waiting": len(self._waiting), "connections": len(self.server.active_channels),
               "version": commit.version, "documents": commit.counts.get("documents", 0)}  # fmt: skip
        return Answer(self.counts.spell(now).encode(), "text/plain; version=0.0.4; charset=utf-8")

    @staticmethod
    def _refuse_look_up(environ: Environ) -> Answer:
        """Say why a look-up was not deferred."""
        _read_ask(environ)
        raise RefusedError(503, f"{MAX_WAITING} look-ups wait already", Retry_After="1")

    def _give(self, one: LookUp, answer: Answer) -> None:
        """Answer a look-up, unless it was answered meanwhile."""
        with self._room:
            if one not in self._waiting:
                return
            self._waiting.remove(one)
        self.count(answer.status)
        one.task.give(answer)

    def _answer_waiting(self) -> None:
        """Answer the look-ups that wait now. Each that comes later asks for this again."""
        while batch := self._take_batch():
            self._answer_batch(batch)

    def _answer_batch(self, batch: Sequence[LookUp]) -> None:
        try:
            answers = self._compute(batch)
        except Exception as error:  # noqa: BLE001 - each request gets an answer, and the server goes on
            if len(batch) == 1:
                self._give(batch[0], answer_of(error))
                return
            for one in batch:  # the fault of one is not that of the others
                self._answer_batch([one])
            return
        with self.server.together():
            for one, answer in zip(batch, answers, strict=True):
                self.counts.add_look_up(time.perf_counter() - one.began)
                self._give(one, Answer(json.dumps(answer).encode() + b"\n"))

    def _take_batch(self) -> list[LookUp]:
        """Take the first look-up that waits, and of the others those that ask for the same matches."""
        batch, others, size = list[LookUp](), list[LookUp](), 0
        for _ in range(len(self._wanted)):
            one = self._wanted.popleft()
            if one not in self._waiting or not self._read(one):
                continue
            length = len(one.text.text)
            if batch and (one.ask != batch[0].ask or size + length > MAX_TOGETHER):
                others.append(one)
            else:
                batch.append(one)
                size += length
        self._wanted.extendleft(reversed(others))
        return batch

    def _read(self, one: LookUp) -> bool:
        """Read the text of a look-up, unless that was done, or refuse it; return whether there is one."""
        if one.text is not NO_TEXT:
            return True
        environ = one.task.get_environment()
        try:
            body = environ["wsgi.input"].read()
            one.text = read_body(body, environ.get("CONTENT_TYPE", ""), environ.get("HTTP_CONTENT_ENCODING", ""))
        except Exception as error:  # noqa: BLE001 - each request gets an answer, and the server goes on
            self._give(one, answer_of(error))
            return False
        return True

    def _compute(self, batch: Sequence[LookUp]) -> list[dict[str, Any]]:
        """Return the answers of look-ups that ask for the same matches, all in one version."""
        with self._lock:
            began = time.perf_counter()
            texts = {str(at): one.text.text for at, one in enumerate(batch)}
            rows = self._repository.refresh().query(texts, batch[0].ask).to_pylist()
            version, seconds = self._repository.version, round(time.perf_counter() - began, 6)
        matches_of: list[list[dict[str, Any]]] = [[] for _ in batch]
        for row in rows:
            matches_of[int(row["query_id"])].append({**row, "query_id": "query"})
        return [
            {"version": version, "seconds": seconds, "unread_bytes": one.text.unread_bytes, "matches": matches}
            for one, matches in zip(batch, matches_of, strict=True)
        ]


def answer_of(error: Exception) -> Answer:
    """Return the answer to a request that failed."""
    if isinstance(error, RefusedError):
        return Answer(spell_error(error.status, str(error)), JSON, error.status, error.fields)
    status = 400 if isinstance(error, ConfigError) else 500
    why = str(error) if isinstance(error, NddupError) else f"failed: {type(error).__name__}"
    return Answer(spell_error(status, why), JSON, status)


def _read_ask(environ: Environ) -> Ask:
    if not environ.get("CONTENT_LENGTH"):
        raise RefusedError(411, "a body with Content-Length is expected")
    try:
        given = parse_qs(environ["QUERY_STRING"], keep_blank_values=True, max_num_fields=10)
    except ValueError:
        given = {"": []}
    top, bands = (",".join(given.pop(name, [])) for name in ("top", "bands"))
    if given or (top and not _COUNT.fullmatch(top)):
        raise RefusedError(400, "expected ?top=N, from 1 to 999999, and ?bands=60,70")
    if bands and not _BANDS.fullmatch(bands):
        raise RefusedError(400, "bands are whole numbers such as 60,70")
    return Ask(bands=[int(band) for band in bands.split(",") if band], top=int(top) if top else None)


def read_body(body: bytes, media_type: str = "", encoding: str = "") -> Text:
    """Return the text in a body of at most `MAX_BYTES`: a text or a page, as it begins, or one in JSON or a form.

    Without a type it is a text. An encoding of HTTP is `gzip` or `deflate`: an end of Brotli that is missing is not
    noticed, and Zstandard cannot be expanded within bounds.

    Args:
        media_type: its Content-Type: none, `text/…`, `application/xhtml+xml`, or that of an object or a form whose
            `text` is the text.
        encoding: its Content-Encoding.

    Raises:
        RefusedError: 400 for a body that is not what it says, 413 if it expands past `MAX_BYTES`, 415 for what is not
            read: another type, what is compressed without saying so, and what is no text.

    Example:
        >>> read_body(b'{"text": "a b"}', "application/json").text, read_body(b"text=a+b", FORM).text
        ('a b', 'a b')
    """
    for name in reversed([one.strip().lower() for one in encoding.split(",")]):
        body = body if name in ("", "identity") else _expand(body, name)
    kind = media_type.partition(";")[0].strip().lower()
    charset = _CHARSET.search(media_type)
    if charset and canonical_charset(charset[1]) is None:
        raise RefusedError(415, f"charset {charset[1]}: unknown")
    if kind and kind not in _FIELDS and not kind.startswith(TEXTS):
        raise RefusedError(415, f"a body of type {kind} is not read; {EXPECTED}", Accept=ACCEPTED)
    if packed := compression_of(body):
        raise RefusedError(
            415, f"the body is {packed}, and no Content-Encoding says so", Accept_Encoding=ACCEPTED_ENCODINGS
        )
    if is_binary(body):
        raise RefusedError(415, f"the body is no text; {EXPECTED}", Accept=ACCEPTED)
    if kind in _FIELDS:
        return Text(_FIELDS[kind](body))
    decoded = decode_content(body, charset and charset[1])
    return Text(decoded.text, len(decoded.lost))


def _expand(body: bytes, name: str) -> bytes:
    if name not in ENCODINGS:
        raise RefusedError(415, f"Content-Encoding {name} is not read", Accept_Encoding=ACCEPTED_ENCODINGS)
    is_zlib = len(body) > 1 and body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2]) % 31 == 0
    wbits = -zlib.MAX_WBITS if name == "deflate" and not is_zlib else ENCODINGS[name]  # some send it without its header
    parts, room = list[bytes](), MAX_BYTES + 1
    try:
        while body or not parts:
            decoder = zlib.decompressobj(wbits)
            parts.append(decoder.decompress(body, room))
            room -= len(parts[-1])
            if not room:
                raise RefusedError(413, f"the body expands to more than {MAX_BYTES:,} bytes")
            if not decoder.eof:
                raise RefusedError(400, f"the body ends inside its {name}")
            body = decoder.unused_data
    except zlib.error as error:
        raise RefusedError(400, f"the body is no {name} ({error})") from error
    return b"".join(parts)


def _read_json(body: bytes) -> str:
    try:
        query = json.loads(body, parse_int=float)  # an int has at most 4,300 digits
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "the body is no JSON") from error
    text = query.get("text") if isinstance(query, dict) else None
    if not isinstance(text, str):
        raise RefusedError(400, 'expected a JSON object such as {"text": "…"}')
    return str(without_surrogates(text))


def _read_form(body: bytes) -> str:
    if _NO_FORM.search(body):  # programs name this type where nobody said what the body is
        raise RefusedError(415, f"the body is not URL-encoded, as its type says; {EXPECTED}", Accept=ACCEPTED)
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as error:
        raise RefusedError(400, "the body is no form of UTF-8 with at most 100 fields") from error
    if len(fields.get("text", [])) != 1:
        raise RefusedError(400, "expected a form with one field `text`")
    return fields["text"][0]


_FIELDS = {"application/json": _read_json, FORM: _read_form}
ACCEPTED = f"text/*, application/xhtml+xml, {', '.join(_FIELDS)}"
