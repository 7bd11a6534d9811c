"""Single files on web servers, by Python's own client: `https://`, and `http://` where the user writes that.

    look_at_web    an address -> the file, of which not more than the header is read
    stream_web     a file     -> its bytes from a place on; FileChangedError if it is another one now

A redirect is followed `MOST_REDIRECTS` times and never to another scheme. A login comes from `~/.netrc`, only for
`https://`, and goes to the host that it is for, and no other.
"""

import io
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection
from netrc import NetrcParseError, netrc
from typing import IO, Any, NoReturn
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

from nddup.errors import UnreachableError
from nddup.remote.addresses import RemoteFile, spell_bare

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
    """Return a file as it is now.

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
