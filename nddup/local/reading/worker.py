"""A worker process: it receives tasks from its connection, and writes the rows of each task to a separate file.

It answers a task that fails with the error. When it dies, its connection closes, and so the caller knows.
"""

import gc
import os
import socket
from multiprocessing.connection import Connection

import numpy as np
import pyarrow as pa

from nddup.local.reading.scan import Task
from nddup.reading import base64_text
from nddup.reading.pages import markup
from nddup.scanning import sketch_records
from nddup.scanning.found import Consumer, Limits
from nddup.sketching.min_s import sketch_texts
from nddup.start_up import collect_rarely, spare_pandas

__all__ = ["serve", "sketch_records"]

Order = tuple[Consumer, Limits]
"""What makes the rows of the tasks that follow, and the limits of reading."""

Answer = tuple[int, str]
"""The number of rows written, and the error message; empty where there was no error."""


def serve(control: int) -> None:
    """Load the kernels, fork a process for each connection but the last, and serve the last in this process.

    Args:
        control: descriptor of a socket, over which the descriptors of the connections come, one a message.
    """
    collect_rarely()
    spare_pandas()
    load_kernels()
    gc.freeze()  # the processes share the objects loaded so far, as long as no search for garbage touches them
    children = []
    with socket.socket(fileno=control) as messages:
        descriptors = _receive(messages)
    for number, descriptor in enumerate(descriptors[:-1]):
        child = os.fork()
        if child == 0:
            for later in descriptors[number + 1 :]:
                os.close(later)
            _work(Connection(descriptor))
            os._exit(0)
        os.close(descriptor)
        children.append(child)
    if descriptors:
        _work(Connection(descriptors[-1]))
    for child in children:
        os.waitpid(child, 0)
    os._exit(0)  # freeing what numba holds takes longer than a small task


def _receive(messages: socket.socket) -> list[int]:
    """Return the descriptors that were sent before the other end was closed."""
    descriptors: list[int] = []
    while True:
        message, received, _, _ = socket.recv_fds(messages, 1, 1)
        if not message:
            return descriptors
        descriptors += received


def load_kernels() -> None:
    """Load the most used kernels by calling each once on tiny data."""
    text = np.frombuffer(b"a rose is a rose", np.uint8)
    sketch_texts(text, np.array([0, len(text)], np.int64))
    markup.strip_markup("<p>")
    base64_text.decode_base64("YQ")


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
    rows = 0
    try:
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, consumer.table.arrow) as writer:
            for batch in task.run(consumer, limits):
                writer.write_batch(batch)
                rows += len(batch)
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller is told
        return rows, f"{type(error).__name__}: {error}"
    return rows, ""
