"""The tasks of the pairs stage at their planned size, within the memory they were planned for; Spark is not needed.

`python -m tests.spark.home_memory MEMORY:DOCUMENTS:IDS …` limits its address space to MEMORY MB, as Spark does to a
worker, and does the work of a map task, a home and an owner of so many documents with so many ids each.
"""

import resource
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from nddup.ground.arrays import Ragged
from nddup.matching.elements import divide
from nddup.matching.overlap_join import LongLists
from nddup.matching.task_sizes import MOST_TASKS, free_memory, tasks_needed, volume_of
from nddup.matching.threshold import Threshold
from nddup.spark.blocks import cell_lengths, pack
from nddup.spark.pairing import prefix_exchange
from nddup.spark.pairing.prefix_exchange import REPLY_LAYOUT, SKETCH_LAYOUT, WANTED_LAYOUT, Pairing
from tests.spark.simulated_tasks import find_pairs, sketch_batches

MB = 1 << 20
PART = 2_000
"""Sketches made at a time."""


def pairing_of(memory: int, documents: int, ids: int) -> Pairing:
    """Plan the stage for distinct sketches of documents that all have so many ids."""
    threshold = Threshold("resemblance", 7, 10, is_count=False, size=ids)
    tasks = max(2, tasks_needed(volume_of(documents * ids, documents, threshold), memory))
    if tasks > MOST_TASKS:
        raise ValueError(f"{tasks:,} tasks of {memory // MB:,} MB, more than there can be")
    division = divide(documents * ids, tasks)
    return Pairing(threshold, division, LongLists(10_000, 10**9), most_ids=ids, free=free_memory(memory))


def sketches_of(count: int, ids: int) -> Iterator[Ragged]:
    """Yield sketches of random ids, some at a time."""
    random = np.random.default_rng(1)
    for low in range(0, count, PART):
        some = min(PART, count - low)
        values = np.sort(random.integers(0, 1 << 63, (some, ids), dtype=np.uint64), axis=1)
        yield Ragged(np.arange(some + 1) * ids, values.ravel())


def run_home(pairing: Pairing, count: int, ids: int) -> dict[str, int]:
    """Do the work of a home with `count` sketches; return the bytes of a block of requests, and of postings."""
    held = []
    for number, some in enumerate(sketches_of(count, ids)):
        rows = len(some.offsets) - 1
        of_each = np.full(rows, ids, np.int32)
        columns: dict[str, Any] = {"node": np.arange(rows) + PART * number, "size": of_each, "total": of_each}
        targets = np.zeros(rows, np.int32)
        held.append(pack(SKETCH_LAYOUT, targets, columns, {"ids": some}, partitions=pairing.partitions))

    sizes = np.zeros(pairing.partitions, np.int64)
    blocks = asked = 0
    for batch in prefix_exchange.request_rarity(iter(held), pairing=pairing):
        lengths = cell_lengths(batch.column("rest"), np.dtype(pairing.division.rest_type))
        sizes[np.asarray(batch.column("target"))] += (lengths + 1) // 2
        blocks, asked = blocks + batch.num_rows, asked + int(lengths.sum())

    posted = _gathered(prefix_exchange.post_prefixes(held, [_replies(sizes)], pairing=pairing))
    wanted = pack(WANTED_LAYOUT, np.zeros(count, np.int32), {"node": np.arange(count)}, partitions=pairing.partitions)
    wanted = wanted.append_column("owner", pa.repeat(pa.scalar(0, pa.int32()), wanted.num_rows))
    block = posted.nbytes // max(posted.num_rows, 1)
    del posted
    _gathered(prefix_exchange.send_sketches(held, [wanted], pairing=pairing))
    return {"requests": 4 * asked // max(blocks, 1), "postings": block}


def _gathered(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Hold all that a task of two tables makes, as Spark's `applyInArrow` does."""
    return pa.Table.from_batches(list(batches))


def _replies(sizes: np.ndarray) -> pa.RecordBatch:
    """Return the replies of all owners: every element has two holders, so that no posting is spared."""
    cells = np.full(int(sizes.sum()), 0x11, np.uint8)
    present = np.flatnonzero(sizes)
    ends = np.append(0, np.cumsum(sizes[present])).astype(np.int32)
    classes = pa.BinaryArray.from_buffers(pa.binary(), len(present), [None, pa.py_buffer(ends), pa.py_buffer(cells)])
    return pa.RecordBatch.from_arrays([pa.array(present.astype(np.int32)), classes], names=["owner", *REPLY_LAYOUT])


def run_owner(pairing: Pairing, elements: int) -> None:
    """Do the work of an owner that is asked for so many elements by as many homes as there are."""
    rests = np.random.default_rng(2).integers(0, 1 << 32, elements, dtype=np.uint64)
    each = max(1, elements // pairing.partitions)
    ends = np.append(np.arange(0, elements, each), elements).astype(np.int32)
    values = rests.astype(pairing.division.rest_type)
    del rests
    width = np.dtype(pairing.division.rest_type).itemsize
    rest = pa.BinaryArray.from_buffers(
        pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends * width), pa.py_buffer(values)]
    )
    zeros = pa.array(np.zeros(len(rest), np.int32))
    columns = [zeros, rest, pa.nulls(len(rest), pa.binary()), pa.array(np.arange(len(rest), dtype=np.int32)), zeros]
    asked = pa.RecordBatch.from_arrays(columns, names=["target", "rest", "many", "home", "question"])
    for _ in prefix_exchange.reply_rarity([asked], pairing=pairing):
        pass


def run_case(memory: int, documents: int, ids: int) -> str:
    """Do the work of each kind of task; MemoryError if one takes more than it was planned for."""
    pairing = pairing_of(memory, documents, ids)
    count = -(-documents // pairing.partitions)
    resource.setrlimit(resource.RLIMIT_AS, (memory, resource.RLIM_INFINITY))
    try:
        given = (batch for some in sketches_of(min(count, 4 * PART), ids) for batch in sketch_batches(some))
        for _ in prefix_exchange.gather_sketches(given, pairing=pairing):
            pass
        blocks = run_home(pairing, count, ids)
        run_owner(pairing, count * ids)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    told = ", ".join(f"{name} {size / 1024:.1f} kB" for name, size in blocks.items())
    return f"{memory // MB:,} MB, {documents:,} documents of {ids} ids: {pairing.partitions:,} tasks; a block of {told}"


def main() -> None:
    """Run the cases of the command line, one after another."""
    pairing, sketches = pairing_of(1 << 40, 300, 64), next(sketches_of(300, 64))  # kernels are loaded first
    find_pairs(sketches, pairing)
    for case in sys.argv[1:]:
        memory, documents, ids = map(int, case.split(":"))
        sys.stdout.write(run_case(memory * MB, documents, ids) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
