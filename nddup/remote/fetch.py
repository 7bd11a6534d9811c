"""Files elsewhere, listed and read whatever their scheme: tried again, within bounds of time, and never half.

    list_remote    an address                -> the files at and below it
    read_remote    a file that was listed    -> its bytes, or some of them, exactly as many as were asked for

Files of web servers are read by Python's own client: `https://`, and `http://` where the user writes that. A redirect
is followed `MOST_REDIRECTS` times and never to another scheme. A login comes from `~/.netrc`, only for `https://`, and
goes to the host that it is for, and no other.
A read ends with an error unless every byte came, and the file is the one that was listed: a web server says so in each
answer, a bucket is asked again after the last byte.
"""

import io
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection
from netrc import NetrcParseError, netrc
from typing import IO, Any, NoReturn, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from nddup.errors import ConfigError, UnreachableError, first_line
from nddup.remote.addresses import WEB, RemoteFile, scheme_of, spell_bare
from nddup.remote.buckets import list_bucket, look_at, stream_bucket

ATTEMPTS = 5
"""How often in a row a server may fail without sending a byte."""

FIRST_WAIT = 0.5
"""Seconds before the second attempt; before each later one twice as many."""

LEAST_RATE = 16 << 10
"""Bytes a second that a file must come with, beside `GRACE` seconds."""

GRACE = 600.0

R = TypeVar("R")

PIECE = 1 << 20

SILENCE = 30.0
"""Seconds for which a server may send nothing."""

HEADER_SECONDS = 60.0
"""Seconds for which a server may send one header, however many bytes come meanwhile."""

MOST_REDIRECTS = 5

_PASSING = frozenset([408, 425, 429, 500, 502, 503, 504])
"""Answers that a server may give at one moment and not at the next."""

_PLACE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")


class FileChangedError(UnreachableError):
    """The file is another one than was listed."""


class _NoSuchBytesError(OSError):
    """The server says that the file has no such bytes, as it does of an empty one."""


class _Received(io.RawIOBase):
    """The bytes that a server sends; each waits for `SILENCE` at most, and while `until` is set, not beyond it."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket, self._bytes = sock, sock.makefile("rb", buffering=0)
        self.until: float | None = time.monotonic() + HEADER_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int | None:  # type: ignore[override]
        if self.until is None:
            self._socket.settimeout(SILENCE)
            return self._bytes.readinto(buffer)
        left = self.until - time.monotonic()
        if left > 0:
            self._socket.settimeout(min(SILENCE, left))
            with suppress(TimeoutError):
                return self._bytes.readinto(buffer)
        raise TimeoutError("the header of its answer does not come in time")

    def close(self) -> None:
        self._bytes.close()
        super().close()


class _Response(HTTPResponse):
    """An answer whose header has come within `HEADER_SECONDS`, or it is an error."""

    def __init__(
        self, sock: socket.socket, debuglevel: int = 0, method: str | None = None, url: str | None = None
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        received = _Received(sock)
        self.fp.close()
        self.received, self.fp = received, io.BufferedReader(received)


class _Connection(HTTPConnection):
    response_class = _Response


class _SafeConnection(HTTPSConnection):
    response_class = _Response


class _Http(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Connection, req)


class _Https(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_SafeConnection, req)


class _Redirects(HTTPRedirectHandler):
    max_redirections = MOST_REDIRECTS

    def redirect_request(  # noqa: PLR0913, PLR0917 - as urllib calls it
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request:
        del msg, headers
        fp.close()  # else what it sends beside the address would be read
        before, after = urlsplit(req.full_url), urlsplit(urljoin(req.full_url, newurl))
        if after.scheme.lower() != before.scheme.lower():
            raise UnreachableError(
                f"{spell_bare(req.full_url)}: redirects ({code}) to another scheme, {spell_bare(newurl)}, which is not"
                " followed; give the address that you trust"
            )
        kept = {name: value for name, value in req.headers.items() if name in ("Range", "Accept-encoding")}
        request = Request(after.geturl(), headers=kept)  # noqa: S310 - of the same scheme
        request.timeout = req.timeout
        return _with_login(request)


def list_remote(url: str) -> dict[str, RemoteFile]:
    """Return the files at and below an address, by their paths below it; that of the address itself is ``''``.

    Raises:
        ConfigError: if there is none, or a client is missing.
        UnreachableError: if it cannot be listed.
    """
    name = spell_bare(url)
    try:
        if scheme_of(url) in WEB:
            return {"": _try(url, lambda: look_at_web(url))}
        listed = _try(url, lambda: list_bucket(url))
    except FileNotFoundError:
        listed = {}
    if not listed:
        raise ConfigError(f"INPUT {name}: no such file or folder")
    return listed


def read_remote(file: RemoteFile, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` to `end`, or to its end; all of them, or an error.

    Raises:
        FileChangedError: if it is not the file that was listed.
        UnreachableError: if it cannot be read.
    """
    end = file.size if end is None else min(end, file.size)
    at, failed, limit = start, 0, time.monotonic() + GRACE + (end - start) / LEAST_RATE
    why: BaseException = OSError("the connection ended early")
    while at < end:
        before = at
        try:
            for piece in _stream(file, at, end, limit - time.monotonic()):
                at += len(piece)
                yield piece
                if time.monotonic() > limit:
                    break
        except (FileNotFoundError, PermissionError) as error:
            raise UnreachableError(f"{spell_bare(file.url)}: cannot be read any more ({first_line(error)})") from error
        except OSError as error:
            why = error
        if at < end and time.monotonic() > limit:
            raise UnreachableError(f"{spell_bare(file.url)}: comes slower than {LEAST_RATE >> 10} KB a second")
        if at < end:
            failed = 1 if at > before else failed + 1
            _wait(file.url, failed, why)
    if scheme_of(file.url) not in WEB:
        now = _try(file.url, lambda: look_at(file.url))
        if now != file:
            raise FileChangedError(f"{spell_bare(file.url)}: changed since it was listed; run the command again")


def _stream(file: RemoteFile, start: int, end: int, seconds: float) -> Iterator[bytes]:
    if scheme_of(file.url) in WEB:
        return stream_web(file, start, end)
    return stream_bucket(file.url, start, end, seconds)


def _try(url: str, ask: Callable[[], R]) -> R:
    """Return what a server answers, asked again where it fails. Raises UnreachableError, FileNotFoundError."""
    failed = 0
    while True:
        try:
            return ask()
        except FileNotFoundError:
            raise
        except PermissionError as error:
            raise UnreachableError(f"{spell_bare(url)}: cannot be opened ({first_line(error)})") from error
        except OSError as error:
            failed += 1
            _wait(url, failed, error)


def _wait(url: str, failed: int, error: BaseException) -> None:
    if failed >= ATTEMPTS:
        raise UnreachableError(
            f"{spell_bare(url)}: cannot be read after {ATTEMPTS} attempts ({first_line(error)}); try again later"
        ) from error
    time.sleep(FIRST_WAIT * 2 ** (failed - 1))


def _with_login(request: Request) -> Request:
    address = urlsplit(request.full_url)
    if address.scheme.lower() != "https" or not address.hostname:
        return request
    try:
        login = netrc().hosts.get(address.hostname)
    except (OSError, NetrcParseError):
        return request
    if login:
        from base64 import b64encode  # noqa: PLC0415 - few have one

        token = b64encode(f"{login[0]}:{login[2]}".encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {token}")
    return request


def _opener() -> OpenerDirector:
    opener = OpenerDirector()
    for handler in (ProxyHandler, _Http, _Https, HTTPDefaultErrorHandler, _Redirects, HTTPErrorProcessor):
        opener.add_handler(handler())
    return opener


def _ask(url: str, span: str) -> HTTPResponse:
    """Ask for some bytes of a file, or for all of them if `span` is empty."""
    address = urlsplit(url)
    if address.username is not None or not address.hostname:
        raise UnreachableError(f"{spell_bare(url)}: expected https://HOST/FILE; a login belongs into ~/.netrc")
    sent = address._replace(path=quote(address.path, safe="/%:@!$&'(),;=*+~-._"), fragment="").geturl()
    asked = {"Accept-Encoding": "identity"} | ({"Range": span} if span else {})
    request = Request(sent, headers=asked)  # noqa: S310 - of a known scheme
    try:
        answer: Any = _opener().open(_with_login(request), timeout=SILENCE)
    except HTTPError as error:
        error.close()
        _refuse(url, error)
    except URLError as error:
        raise OSError(f"{error.reason}") from error
    except (HTTPException, ValueError) as error:
        raise OSError(f"{type(error).__name__} {error}".strip()) from error
    answer.received.until = None
    encoding = answer.headers.get("Content-Encoding", "identity").lower()
    if encoding != "identity":
        answer.close()
        raise UnreachableError(f"{spell_bare(url)}: the server sends it encoded ({encoding}), not as it is stored")
    return answer  # type: ignore[no-any-return]


def _refuse(url: str, error: HTTPError) -> NoReturn:
    status = f"{error.code} {error.reason}"
    if error.code == 416:  # noqa: PLR2004 - Range Not Satisfiable
        raise _NoSuchBytesError(status) from error
    if error.code in _PASSING:
        raise OSError(status) from error
    if error.code in (404, 410):
        raise FileNotFoundError(status) from error
    raise UnreachableError(f"{spell_bare(url)}: the server answers {status}") from error


def _file_of(url: str, answer: HTTPResponse) -> tuple[RemoteFile, int]:
    """Return the file that an answer is of, and the place at which the bytes of the answer begin."""
    start, size = 0, answer.headers.get("Content-Length", "")
    if answer.status == 206:  # noqa: PLR2004 - Partial Content
        place = _PLACE.fullmatch(answer.headers.get("Content-Range", "").strip())
        if place is None or place[1] is None:
            raise OSError("it names no place of the bytes that it sends")
        start, size = int(place[1]), place[2]
    if not size.isascii() or not size.isdigit():
        raise UnreachableError(f"{spell_bare(url)}: the server does not say how long it is; download it first")
    try:
        modified = int(parsedate_to_datetime(answer.headers["Last-Modified"]).timestamp() * 1000)
    except (TypeError, ValueError, IndexError):
        modified = 0
    return RemoteFile(url, int(size), modified, answer.headers.get("ETag", "")), start


def look_at_web(url: str) -> RemoteFile:
    """Return a file of a web server as it is now; not more than its header is read.

    Raises:
        OSError: for what may be over at the next attempt.
        UnreachableError: for what will not.
    """
    try:
        answer = _ask(url, "bytes=0-0")
    except _NoSuchBytesError:
        answer = _ask(url, "")
    with answer:
        return _file_of(url, answer)[0]


def stream_web(file: RemoteFile, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` to `end`, or fewer where the connection ends; errors as `look_at_web`.

    Raises:
        FileChangedError: if the file is not the one that was listed.
    """
    with _ask(file.url, f"bytes={start}-{end - 1}") as answer:
        now, at = _file_of(file.url, answer)
        if now != file:
            raise FileChangedError(f"{spell_bare(file.url)}: changed since it was listed; run the command again")
        if at > start:
            raise OSError("it sends other bytes than were asked for")
        while at < end:
            try:
                piece = answer.read1(min(PIECE, end - at))
            except HTTPException as error:
                raise OSError(f"{type(error).__name__}") from error
            if not piece:
                return
            if (at := at + len(piece)) > start:
                yield piece[max(0, len(piece) - (at - start)) :]
                start = at
