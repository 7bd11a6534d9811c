"""Serving: look-ups a second, and how long they take, of `nddup serve` over 100,000 documents.

The load is as fast as 64 clients can ask, and then at given rates: a request that comes while all clients wait is late,
and its time counts from when it was due.
"""

import argparse
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.processes import nddup
from bench.recording import drop, fresh, record, show
from bench.scale import write_records

WORDS, NEAR = (70, 131), 0.3
CLIENTS = 64
RATES = (0, 250, 500, 1_000)
"""Requests a second; 0: as fast as the clients can."""

ANSWER = re.compile(rb"HTTP/1\.1 (\d{3}).*?\r\nContent-Length: (\d+)\r\n.*?\r\n\r\n", re.DOTALL | re.IGNORECASE)


class Load(NamedTuple):
    """What came of the requests: milliseconds of those that were answered, and how many were refused."""

    took: list[float]
    refused: int
    seconds: float
    cpu_seconds: float


class Client:
    """A connection that sends one request after another."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.due, self._read = 0.0, bytearray()

    def ask(self, body: bytes, host: bytes, due: float) -> None:
        """Send a look-up that was due at a time."""
        self.due = due
        head = (
            b"POST /query HTTP/1.1\r\nHost: %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
        )
        self.socket.sendall(head % (host, len(body)) + body)

    def status(self) -> int | None:
        """Read what has come; return the status of the answer once it is whole."""
        self._read += self.socket.recv(1 << 18)
        found = ANSWER.match(self._read)
        if found is None or len(self._read) < found.end() + int(found[2]):
            return None
        status = int(found[1])
        self._read = bytearray()
        return status


def put_load(port: int, bodies: Sequence[bytes], rate: float, seconds: float, process: int) -> Load:
    """Ask for so many seconds, with as many requests a second as `rate` says."""
    selector, free, host = selectors.DefaultSelector(), deque[Client](), b"127.0.0.1:%d" % port
    for _ in range(CLIENTS):
        free.append(Client(port))
        selector.register(free[-1].socket, selectors.EVENT_READ, free[-1])
    took, refused, asked, waiting = list[float](), 0, 0, CLIENTS
    cpu, began = _cpu_of(process), time.perf_counter()
    while (now := time.perf_counter()) < began + seconds or len(free) < waiting:
        due = began + asked / rate if rate else now
        while free and due <= now < began + seconds:
            free.popleft().ask(bodies[asked % len(bodies)], host, due)
            asked += 1
            due = began + asked / rate if rate else now
        for key, _ in selector.select(max(0.0, min(due, began + seconds) - now) if free else 1.0):
            client: Client = key.data
            if status := client.status():
                took += [1000 * (time.perf_counter() - client.due)] if status == 200 else []  # noqa: PLR2004
                refused += status != 200  # noqa: PLR2004
                free.append(client)
    for client in free:
        client.socket.close()
    return Load(took, refused, time.perf_counter() - began, _cpu_of(process) - cpu)


def _cpu_of(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(options: argparse.Namespace) -> None:
    """Serve a repository, and put each load on it; print the table."""
    count, seconds = (2_000, 2.0) if options.small else (int(options.records or 100_000), 60.0)
    folder = fresh("serving")
    write_records(folder / "a.jsonl", count, 1, WORDS, NEAR)
    write_records(folder / "new.jsonl", count, 2, WORDS, NEAR)
    repo = str(folder / "repo")
    for command in (["create", repo], ["add", repo, str(folder / "a.jsonl")]):
        subprocess.run([nddup(), "index", *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    bodies = list[bytes]()
    for name in ("a", "new"):
        with (folder / f"{name}.jsonl").open(encoding="utf-8") as file:
            bodies += [json.loads(line)["text"].encode() for line, _ in zip(file, range(20_000), strict=False)]
    np.random.default_rng(3).shuffle(bodies)
    rows = list[list[object]]()
    with subprocess.Popen([nddup(), "serve", repo, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None  # noqa: S101
        try:
            port = int(re.findall(r":(\d+)/ answers", server.stdout.readline())[0])
            put_load(port, bodies, 100, 1.0, server.pid)
            for rate in RATES:
                load = put_load(port, bodies, rate, seconds, server.pid)
                middle, late = np.percentile(load.took, [50, 99]).tolist()
                done = len(load.took)
                rows.append([f"{rate or 'as fast as can be'}", round(done / load.seconds), middle, late, load.refused,
                             1000 * load.cpu_seconds / done])  # fmt: skip
        finally:
            server.send_signal(signal.SIGTERM)
    drop(folder)
    headings = ["asked a second", "answered a second", "p50 ms", "p99 ms", "refused", "CPU ms each"]
    show(f"serving: {CLIENTS} clients, {count:,} documents, {seconds:.0f} s each", headings, rows)
    record("serving", options, rows=rows)
