"""Worker processes that read and sketch files: started early, forked from one that has loaded everything.

The first process runs `nddup.embedded.worker`: it imports what reading needs and forks the others, so that all of
them cost one start. It has one thread: a process with several must not be forked, and the caller may be a notebook.
It watches the socket from which it read how many to fork: when this process closes it, or dies in whatever way, the
system closes it, and the first process ends with all others, whatever they are doing.
Only the standard library and what lists files is imported here, so that the workers load while the caller still does.
"""

import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

from nddup.ground.start_up import start_python
from nddup.remote.addresses import is_remote
from nddup.scanning.walk import sizes_of

START = "from nddup.embedded.worker import serve; serve(int(sys.argv[1]))"
"""Code of the first process."""

LAST = b"!"
"""Message after the last connection."""

FEW_BYTES = 16 << 20
"""Bytes, as `weigh` counts them, below which a collection is read in this process: to start others takes 0.7 s of CPU,
and no less time than reading."""

LINES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt")
"""How names of plain files end."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Processes:
    """Worker processes, each at the other end of a connection.

    `start` starts the first process, which loads; `fork` sets their number, which the settings give later.
    """

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self._control, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self.first = start_python(START, str(number), environment=ONE_THREAD, descriptors=[number])

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
        with suppress(OSError):
            self._control.send(LAST)

    def close(self) -> None:
        """Close the connections, so that the workers exit; kill them if they have not after 10 seconds."""
        self._disconnect()
        try:
            self.first.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the processes, whatever they are doing: the others end with the first."""
        self._disconnect()
        self.first.kill()
        self.first.wait()

    def _disconnect(self) -> None:
        for connection in self.connections:
            connection.close()
        self._control.close()


def is_worth_it(inputs: Sequence[str]) -> bool:
    """Return whether the files of INPUT paths have more than `FEW_BYTES` in all; a path that cannot be read has 0."""
    if any(map(is_remote, inputs)):
        return True  # to list them takes longer than to start processes
    left = FEW_BYTES
    for path, size in sizes_of([one.removeprefix("file://") if one.startswith("file:///") else one for one in inputs]):
        left -= weigh(path, size)
        if left < 0:
            break
    return left < 0


def weigh(path: str, size: int) -> int:
    """Return the size of a plain file, twice that of another: what is packed or marked up takes longer to read."""
    return size if path.endswith(LINES) else 2 * size
