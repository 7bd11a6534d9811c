"""The server: waitress, which reads each request whole before it is answered, with what it lacks.

    Server   bounds on the time of a whole request; errors as JSON, never a connection closed without a byte; an end
             that waits for what was begun
    Task     a request: a thread answers it at once, or the application defers it and gives the answer later

A client that sends slowly holds a connection and no thread. Beyond `MAX_CONNECTIONS` the one makes room whose request
is the oldest of those not yet received.
"""

import json
import logging
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask, WSGITask
from waitress.utilities import BadRequest

MAX_CONNECTIONS = 256
MAX_HEADER = 16 << 10
PATIENCE = 10.0
"""Maximum seconds from the first byte of a request, or from the connection, to its last byte."""

IDLE = 60.0
"""Maximum seconds between two requests of a connection, and for a client to receive an answer."""

LINGER = 2.0
"""Maximum seconds of reading what a refused client still sends: a connection closed before loses the answer."""

THREADS = 8
"""Requests that are answered at the same time, besides those that are deferred."""

END_PATIENCE = 30.0
"""Maximum seconds, after the end, of answering requests that began before it."""

JSON = "application/json; charset=utf-8"

Environ = Mapping[str, Any]


class Answer(NamedTuple):
    """The body of an answer, its type, and its status."""

    body: bytes
    type: str = JSON
    status: int = 200
    fields: Mapping[str, str] = {}


class Application(Protocol):
    """What answers the requests."""

    def answer(self, environ: Environ) -> Answer:
        """Return the answer of a request; called in one of `THREADS` threads."""

    def defer(self, task: "Task") -> bool:
        """Take a request to answer it later (`Task.give`), and return whether it was taken. It may not block."""

    def expire(self) -> None:
        """Answer what was deferred too long ago; called every second, and may not block."""

    def count(self, status: int) -> None:
        """Count an answer that the server gives itself."""


def spell_error(status: int, why: str) -> bytes:
    """Return the body of each answer that is no success."""
    return json.dumps({"error": why, "status": status}).encode() + b"\n"


class _Request(HTTPRequestParser):
    """Turns whatever the parser does not expect into status 400, also a body whose length is given in two ways."""

    answer: Answer | None = None

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        is_left = "TRANSFER_ENCODING" in self.headers  # it is not read before HTTP/1.1
        if is_left or (self.chunked and "CONTENT_LENGTH" in self.headers):
            raise ParsingError("a body has Content-Length or, since HTTP/1.1, Transfer-Encoding")

    def received(self, data: bytes) -> int:
        try:
            read: int = super().received(data)
        except Exception:  # noqa: BLE001 - such as a length of 5,000 digits; the connection would be closed unanswered
            self.error, self.completed, read = BadRequest("the request cannot be read"), True, len(data)
        if self.error is not None:
            self.expect_continue = False
        return read


class _Error(ErrorTask):
    """Answers with JSON, as the application does, and counts it."""

    def execute(self) -> None:
        error = self.request.error
        body = spell_error(error.code, str(error.body))
        self.status = f"{error.code} {error.reason}"
        self.response_headers += {"Content-Type": JSON, **self.channel.server.fields}.items()
        self.content_length = len(body)
        self.set_close_on_finish()
        self.channel.server.application.count(error.code)
        self.write(body)


class Task(WSGITask):
    """A request to answer, whose environment is that of WSGI."""

    complete = True  # the status is known before anything is written

    def execute(self) -> None:
        """Write the answer: the one given, or that of the application."""
        answer = self.request.answer or self.channel.server.application.answer(self.get_environment())
        self.status = f"{answer.status} {HTTPStatus(answer.status).phrase}"
        fields = {"Content-Type": answer.type, **self.channel.server.fields, **answer.fields}
        self.response_headers += fields.items()
        self.content_length = len(answer.body)
        head = self.build_response_header()
        self.wrote_header = True
        self.channel.write_soon(head if self.request.command.upper() == "HEAD" else head + answer.body)

    def give(self, answer: Answer) -> None:
        """Answer this request, which was deferred. From any thread, once; this waits for no client.

        Where answers are still to be sent, or requests to follow, one of `THREADS` threads does it, which may wait.
        """
        self.request.answer = answer
        if self.channel.total_outbufs_len or len(self.channel.requests) > 1:
            self.channel.server.add_task(self.channel)
        else:
            self.channel.service()


class _Connection(HTTPChannel):
    """A connection that knows when its request began, and that is closed only after the client has read the answer."""

    parser_class, task_class, error_task_class = _Request, Task, _Error
    served = 0
    lingers_until = 0.0

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)
        self.began = time.monotonic()

    def received(self, data: bytes) -> bool:
        if self.request is None:
            self.began = time.monotonic()
        before = self.request
        answer: bool = super().received(data)
        if before is not None and self.request is not None and self.request is not before:
            self.began = time.monotonic()
        self.served += self.request is None
        return answer

    @property
    def is_working(self) -> bool:
        """Whether a request waits or is computed."""
        return bool(self.requests)

    def refuse(self, status: HTTPStatus, why: str) -> None:
        """Answer a request that was not received whole, and close."""
        body = spell_error(status, why)
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {JSON}\r\n"
        retry = "Retry-After: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
        self.server.application.count(status.value)
        with suppress(OSError):
            self.socket.send(f"{head}{retry}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        self.handle_close()

    def maintain(self, now: float) -> None:
        """Refuse or close a connection that takes too long."""
        age = now - self.began
        if self.lingers_until:
            if now > self.lingers_until:
                self.handle_close()
        elif self.total_outbufs_len:
            if time.time() - self.last_activity > IDLE or age > 3 * IDLE:
                self.handle_close()
        elif self.is_working:
            return
        elif (self.request is not None or not self.served) and age > PATIENCE:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, f"the request was not received within {PATIENCE:.0f} seconds")
        elif age > PATIENCE and time.time() - self.last_activity > IDLE:
            self.handle_close()

    def end_if_idle(self) -> None:
        """Close a connection that waits for its next request."""
        if not (self.is_working or self.request or self.total_outbufs_len or self.lingers_until):
            self.handle_close()

    def readable(self) -> bool:
        return bool(self.lingers_until or super().readable())

    def writable(self) -> bool:
        """Whether the loop is to send: not what a thread is sending, which would keep the loop busy waiting for it."""
        if self.is_working and self.total_outbufs_len <= self.adj.outbuf_high_watermark and not self.will_close:
            return False
        return not self.lingers_until and bool(super().writable())

    def handle_read(self) -> None:
        if not self.lingers_until:
            super().handle_read()
            return
        with suppress(OSError):
            self.recv(1 << 16)  # at its end the connection is closed

    def handle_close(self) -> None:
        """Say that nothing follows and read what still comes; close at the second call."""
        if self.connected and not self.lingers_until and not self.total_outbufs_len and self.socket is not None:
            self.lingers_until = time.monotonic() + LINGER
            self.will_close = self.close_when_flushed = False
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
                return
        super().handle_close()


class Server(TcpWSGIServer):
    """Answers requests at one address with an application.

    Args:
        listening: bound to the address; it is closed with the server.
        fields: of every answer.
        max_body: most bytes of a body.
    """

    channel_class = _Connection

    def __init__(
        self, application: Application, listening: socket.socket, *, fields: Mapping[str, str], max_body: int
    ) -> None:
        logging.getLogger("waitress").setLevel(logging.CRITICAL)  # what is looked up is nobody's business
        self.fields, self.is_ending, self._waits = fields, False, False
        bounds = Adjustments(
            threads=THREADS, connection_limit=2 * MAX_CONNECTIONS, cleanup_interval=1, channel_timeout=3600,
            max_request_header_size=MAX_HEADER, max_request_body_size=max_body + 1, asyncore_use_poll=True,
            log_socket_errors=False, ident="nddup", sockets=[listening],
            clear_untrusted_proxy_headers=False,  # it would wrap the application; nothing reads such fields
        )  # fmt: skip
        about = (listening.family, listening.type, listening.proto, listening.getsockname())
        super().__init__(application, _sock=listening, adj=bounds, sockinfo=about, bind_socket=False)

    @property
    def connections(self) -> list[_Connection]:
        """The open connections."""
        return list(self.active_channels.values())

    def add_task(self, channel: _Connection) -> None:
        """Have the first request of a connection answered: deferred, or by a thread."""
        request = channel.requests[0]
        is_known = request.error is not None or request.answer is not None
        if is_known or not self.application.defer(Task(channel, request)):
            super().add_task(channel)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Wake the loop once for all answers that one thread gives: each time costs a look at every connection."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
            self.pull_trigger()

    def pull_trigger(self) -> None:
        """Wake the loop."""
        if not self._waits:
            super().pull_trigger()

    def maintenance(self, now: float) -> None:
        """Refuse or close the connections that take too long."""
        del now
        self.application.expire()
        for one in self.connections:
            one.maintain(time.monotonic())

    def handle_accept(self) -> None:
        """Take a connection; if there are too many, the oldest request that is not received yet makes room."""
        waiting = [one for one in self.connections if not one.is_working]
        if len(self.active_channels) >= MAX_CONNECTIONS and waiting:
            oldest = min(waiting, key=lambda one: one.began)
            if not oldest.lingers_until and not oldest.total_outbufs_len:
                oldest.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
            if oldest.socket is not None:
                oldest.handle_close()
        super().handle_accept()

    def end(self) -> None:
        """Have `serve` return when all begun requests are answered. May be called from a signal handler."""
        self.is_ending = True
        self.pull_trigger()

    def serve(self) -> None:
        """Answer requests until `end` is called, and then those that were begun, for at most `END_PATIENCE` seconds."""
        while not self.is_ending:
            wasyncore.loop(timeout=1.0, use_poll=True, map=self._map, count=1)
        wasyncore.dispatcher.close(self)  # it accepts nothing more
        latest = time.monotonic() + END_PATIENCE
        while self.active_channels and time.monotonic() < latest:
            self.maintenance(time.time())
            for one in self.connections:
                one.end_if_idle()
            wasyncore.loop(timeout=0.05, use_poll=True, map=self._map, count=1)
        self.task_dispatcher.shutdown()
        for one in self.connections:
            one.close()  # the trigger stays open: `end` may still write to it
