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

from nddup.scanning.walk import sizes_of

START = (
    "import sys; sys.path.append(sys.argv[1]); from nddup.local.reading.worker import serve; serve(int(sys.argv[2]))"
)
"""Code of the first process. It is told where the package is, so the package need not be installed."""

FEW_BYTES = 8 << 20
"""Stored bytes below which a collection is read in this process, because starting others would take longer."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Processes:
    """Worker processes, each at the other end of a connection.

    `start` starts the first process, which loads; `fork` says how many there will be, which the settings tell later.
    """

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self._control, theirs = socket.socketpair()
        root = str(Path(__file__).resolve().parents[2])
        with theirs:
            self.first = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-c", START, root, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD},
                start_new_session=True,  # a keyboard interrupt reaches the caller only, who ends the processes
            )

    @classmethod
    def start(cls, inputs: Sequence[str]) -> "Processes | None":
        """Start the first process if INPUT paths have more than `FEW_BYTES`; return at once, it loads meanwhile."""
        return cls() if is_worth_it(inputs) else None

    def fork(self, count: int) -> None:
        """Have `count` processes serve as many connections, once the first has loaded; return at once."""
        for _ in range(count):
            ours, theirs = socket.socketpair()
            with theirs, suppress(OSError):  # a process that died answers no task either
                socket.send_fds(self._control, [b"."], [theirs.fileno()])
            self.connections.append(Connection(ours.detach()))
        self._control.close()

    def close(self) -> None:
        """Close the connections, so that the workers exit; kill them if they have not after 10 seconds."""
        self._disconnect()
        try:
            self.first.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the processes, whatever they are doing."""
        self._disconnect()
        with suppress(ProcessLookupError):
            os.killpg(self.first.pid, signal.SIGKILL)
        self.first.wait()

    def _disconnect(self) -> None:
        self._control.close()
        for connection in self.connections:
            connection.close()


def is_worth_it(inputs: Sequence[str]) -> bool:
    """Return whether the files of INPUT paths have more than `FEW_BYTES` in all; a path that cannot be read has 0."""
    left = FEW_BYTES
    for _, size in sizes_of([path.removeprefix("file://") if path.startswith("file:///") else path for path in inputs]):
        left -= size
        if left < 0:
            break
    return left < 0
