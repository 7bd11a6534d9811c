"""A worker process: it receives tasks from its connection, and writes the rows of each task to a separate file.

It answers a task that fails with the error. When it dies, its connection closes, and so the caller knows.
"""

import os
from collections.abc import Sequence
from multiprocessing.connection import Connection

import numpy as np
import pyarrow as pa

from nddup.local.reading.scan import Task
from nddup.reading import base64_text
from nddup.reading.pages import markup, page_limits
from nddup.scanning import sketch_records
from nddup.scanning.found import Consumer, Limits
from nddup.sketching.min_s import sketch_texts
from nddup.start_up import spare_blas, spare_pandas

__all__ = ["serve", "sketch_records"]

Order = tuple[Consumer, Limits]
"""What makes the rows of the tasks that follow, and the limits of reading."""

Answer = tuple[int, str]
"""The number of rows written, and the error message; empty where there was no error."""


def serve(descriptors: Sequence[str]) -> None:
    """Load the kernels, fork a process for each descriptor but the last, and serve the last in this process."""
    spare_pandas()
    spare_blas()
    load_kernels()
    *others, last = map(int, descriptors)
    children = []
    for number, descriptor in enumerate(others):
        child = os.fork()
        if child == 0:
            for later in (*others[number + 1 :], last):
                os.close(later)
            _work(Connection(descriptor))
            os._exit(0)
        os.close(descriptor)
        children.append(child)
    _work(Connection(last))
    for child in children:
        os.waitpid(child, 0)


def load_kernels() -> None:
    """Load the most used kernels by calling each once on tiny data."""
    text = np.frombuffer(b"a rose is a rose", np.uint8)
    sketch_texts(text, np.array([0, len(text)], np.int64))
    markup.strip_markup("<div>" * (page_limits.MAX_DEPTH + 2))
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
