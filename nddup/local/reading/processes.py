"""Worker processes that read and sketch files: started early, forked from one that has loaded everything.

The first process runs `nddup.local.reading.worker`: it imports what reading needs and forks the others, so that all of
them cost one start. It has one thread: a process with several must not be forked, and the caller may be a notebook.
Only the standard library is imported here, so that the workers load while the caller is still loading.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

START = "import sys; sys.path.append(sys.argv[1]); from nddup.local.reading.worker import serve; serve(sys.argv[2:])"
"""Code of the first process. It is told where the package is, so the package need not be installed."""

FEW_BYTES = 8 << 20
"""Stored bytes below which a collection is read in this process, because starting others would take longer."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Processes:
    """Worker processes, each at the other end of a connection."""

    def __init__(self, connections: Sequence[Connection], first: "subprocess.Popen[bytes]") -> None:
        self.connections = list(connections)
        self._first = first

    @classmethod
    def start(cls, count: int) -> "Processes":
        """Start `count` processes and return at once; they load meanwhile."""
        pairs = [socket.socketpair() for _ in range(count)]
        theirs = [other.fileno() for _, other in pairs]
        root = str(Path(__file__).resolve().parents[2])
        first = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", START, root, *map(str, theirs)],
            pass_fds=theirs,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD},
            start_new_session=True,  # a keyboard interrupt reaches the caller only, who ends the processes
        )
        for _, other in pairs:
            other.close()
        return cls([Connection(ours.detach()) for ours, _ in pairs], first)

    def close(self) -> None:
        """Close the connections, so that the workers exit; kill them if they have not after 10 seconds."""
        for connection in self.connections:
            connection.close()
        try:
            self._first.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the processes, whatever they are doing."""
        for connection in self.connections:
            connection.close()
        with suppress(ProcessLookupError):
            os.killpg(self._first.pid, signal.SIGKILL)
        self._first.wait()


def is_worth_it(inputs: Sequence[str]) -> bool:
    """Return whether the files of INPUT paths have more than `FEW_BYTES` in all; a path that cannot be read has 0."""
    left = FEW_BYTES
    waiting = [path.removeprefix("file://") if path.startswith("file:///") else path for path in inputs]
    while waiting and left >= 0:
        path = waiting.pop()
        try:
            if os.path.isdir(path):  # noqa: PTH112 - a string is all that is needed
                waiting += [entry.path for entry in os.scandir(path)]
            else:
                left -= os.stat(path).st_size  # noqa: PTH116
        except OSError:
            continue
    return left < 0
