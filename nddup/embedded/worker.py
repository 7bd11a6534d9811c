"""A worker process: it receives tasks from its connection, and writes the rows of each task to a separate file.

It answers a task that fails with the error. When it dies, its connection closes, and so the caller knows.
"""

import gc
import os
import signal
import socket
from contextlib import suppress
from multiprocessing.connection import Connection

import numpy as np
import pyarrow as pa

from nddup.embedded.processes import LAST
from nddup.embedded.workers import Task
from nddup.ground.kernels import suppress_cache_warning
from nddup.ground.start_up import collect_rarely, end_with_parent, prevent_pandas_import
from nddup.reading import markup
from nddup.scanning import sketch_records
from nddup.scanning.found import Consumer, RecordLimits
from nddup.scanning.local_files import DividedError
from nddup.sketching.min_s import sketch_texts
from nddup.sketching.rolling_hash import unknown_bytes

__all__ = ["serve", "sketch_records"]

Order = tuple[Consumer, RecordLimits]
"""What makes the rows of the tasks that follow, and the limits of reading."""

Answer = tuple[str, set[str]]
"""The error message, empty where there was no error, and the files that were divided inside a record."""


def serve(control: int) -> None:
    """Load the kernels, fork a process for each connection, and end with them when the caller does.

    Args:
        control: descriptor of a socket, over which the descriptors of the connections come, one a message, and `LAST`
            after them. The caller keeps it open for as long as it wants the processes.
    """
    collect_rarely()
    prevent_pandas_import()
    suppress_cache_warning()
    load_kernels()
    gc.freeze()  # the processes share the objects loaded so far, as long as no search for garbage touches them
    children, parent = [], os.getpid()
    with socket.socket(fileno=control) as messages:
        descriptors = _receive(messages)
        for number, descriptor in enumerate(descriptors):
            child = os.fork()
            if child == 0:
                end_with_parent(parent)
                for later in (control, *descriptors[number + 1 :]):
                    os.close(later)
                _work(Connection(descriptor))
                os._exit(0)
            os.close(descriptor)
            children.append(child)
        with suppress(OSError):
            messages.recv(1)  # nothing comes but the end
    for child in children:
        os.kill(child, signal.SIGKILL)  # idle, or at work for nobody; not yet waited for, so the number is its own
    os._exit(0)  # numba's teardown takes longer than a small task


def _receive(messages: socket.socket) -> list[int]:
    """Return the descriptors that were sent before `LAST`; end this process if the other end is closed before that."""
    descriptors: list[int] = []
    while True:
        message, received, _, _ = socket.recv_fds(messages, 1, 1)
        if message == LAST:
            return descriptors
        if not message:
            os._exit(0)
        descriptors += received


def load_kernels() -> None:
    """Load the most used kernels by calling each once on tiny data."""
    text = np.frombuffer(b"a rose is a rose", np.uint8)
    bounds = np.array([0, len(text)], np.int64)
    sketch_texts(text, bounds)
    unknown_bytes(text, bounds)
    markup.strip_markup("<p>")


def _work(connection: Connection) -> None:
    """Answer messages until the other end is closed. An order applies to the tasks that follow it."""
    order: Order | None = None
    try:
        while True:
            asked = connection.recv()
            if not hasattr(asked[0], "run"):
                order = asked
            elif order is not None:
                connection.send(_answer(asked[0], asked[1], order))
    except (EOFError, OSError):
        return


def _answer(task: Task, path: str, order: Order) -> Answer:
    consumer, limits = order
    try:
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, consumer.table.arrow) as writer:
            for batch in task.run(consumer, limits):
                writer.write_batch(batch)
    except DividedError as error:
        return "", error.sources
    except Exception as error:  # noqa: BLE001 - every error is reported to the caller
        return f"{type(error).__name__}: {error}", set()
    return "", set()
