"""The number of tasks that the pairs stage needs, by one formula from the memory of a task.

`BASE_BYTES` of the memory of a task are used before it has a row. With M bytes more, a task keeps M / 48 ids of
sketches, 8 bytes each: a third of M, as received and once more in one array. What it makes of them is up to 12 bytes an
id of postings, all in memory at once, a quarter of M; and it makes it piece by piece, in another quarter (`piece_ids`).
Nothing that a task holds grows with the number of tasks.

A task takes M / 8 bytes of postings, which grow to some three times that while candidates are found. The length of the
prefixes is known only when they have been cut: half their greatest length is expected, more than was ever seen
(`docs/sizing.md`).
"""

import math
from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from nddup.matching.elements import divide
from nddup.matching.threshold import Threshold

BASE_BYTES = 800 << 20
"""Bytes of a task before it has a row: the address space that Python, Arrow and the compiled kernels take. Spark limits
the address space, not the pages in use."""

LEAST_SHARE = 8
"""At least 1/LEAST_SHARE of a task's memory counts as free, so that the number of tasks is bounded."""

BYTES_OF_ID = 48
"""Bytes of memory per id in a task."""

BYTES_OF_POSTING_BYTE = 8
"""Bytes of memory per byte of postings that a task takes."""

POSTING_BYTES = 78
"""Bytes of a posting: one element of a prefix, with the data of its sketch, if no two elements share an owner."""

EXPECTED_SHARE = 0.5
"""Expected length of the prefixes, as a share of their greatest length."""

MOST_TASKS = 1 << 16

MAX_IDS_IN_ONE_TASK = 10_000_000
"""Maximum number of ids for all steps in one task: 50,000 sketches of 200 ids, a few seconds."""

MOST_READ_HERE = 40_000_000
"""Maximum number of ids of all documents that such a task reads to find the distinct sketches: a second or two."""

REQUEST_BYTES = 32
"""Bytes of memory per id of the questions and answers about all ids at once."""

BYTES_IN_PIECE = 80
"""Bytes of memory per id of a piece that a task is working on."""

PIECE_PART, BATCH_PART = 4, 8
"""The parts of a task's free memory, 1/PIECE_PART and 1/BATCH_PART, that a piece may take, and a batch of blocks."""

BLOCK_BYTES = 32 << 10
"""Bytes that a task gathers for each other task, if its memory allows that: smaller blocks cost more a byte."""

SMALLEST = 1 << 16
"""Minimum number of ids of a piece, and of bytes of a batch."""


class Volume(NamedTuple):
    """The data that the pairs stage divides among tasks."""

    ids: int
    """Ids of all distinct sketches together."""

    prefix_share: float
    """Greatest share of an average sketch that is its prefix."""

    @property
    def posting_bytes(self) -> int:
        """Expected bytes of all postings together."""
        return math.ceil(self.ids * self.prefix_share * EXPECTED_SHARE * POSTING_BYTES)


def volume_of(ids: int, sketches: int, threshold: Threshold) -> Volume:
    """Return the volume of this many ids in this many distinct sketches.

    Example:
        >>> volume_of(200_000, 1_000, Threshold("resemblance", 8, 10, is_count=False, size=200)).prefix_share
        0.2
    """
    share = threshold.numerator / threshold.denominator
    if threshold.is_count:
        share *= sketches / max(ids, 1)
    return Volume(ids, 1.0 if threshold.is_containment else max(1 - share, 0.0).__round__(9))


def free_memory(memory: int) -> int:
    """Return the bytes that the rows of a task may take, of the `memory` of its Python worker."""
    return max(memory - BASE_BYTES, memory // LEAST_SHARE)


def piece_ids(free: int, partitions: int) -> int:
    """Return how many ids a task works on at a time: enough for blocks of `BLOCK_BYTES`, within its `free` memory.

    Example:
        >>> piece_ids(1 << 30, 16), piece_ids(1 << 30, 2_400), piece_ids(200 << 20, 2_400)
        (1048576, 3355443, 655360)
    """
    wanted = max(1 << 20, BLOCK_BYTES // 4 * partitions)
    return max(SMALLEST, min(wanted, free // PIECE_PART // BYTES_IN_PIECE))


def batch_bytes(free: int, partitions: int) -> int:
    """Return how many bytes of sketches a task gathers before it packs them.

    Example:
        >>> batch_bytes(1 << 30, 16), batch_bytes(200 << 20, 2_400)
        (524288, 26214400)
    """
    return max(SMALLEST, min(BLOCK_BYTES * partitions, free // BATCH_PART))


def tasks_needed(volume: Volume, memory: int) -> int:
    """Return the least number of tasks that each stay within `memory` bytes.

    Example:
        >>> tasks_needed(Volume(ids=2 * 10**11, prefix_share=0.2), memory=2 << 30)
        9537
    """
    free = free_memory(memory)
    by_ids = volume.ids * BYTES_OF_ID / free
    by_postings = volume.posting_bytes * BYTES_OF_POSTING_BYTE / free
    return max(1, math.ceil(max(by_ids, by_postings)))


def block_bytes(ids: int, tasks: int, memory: int) -> float:
    """Return the bytes of a block of elements: 4 an id of a piece, 8 where few tasks own many elements each.

    The answers, the classes of the elements, take half a byte an id; all other exchanges take more than the elements.

    Example:
        >>> block_bytes(10**9, 100, 2 << 30), block_bytes(10**11, 10_000, 2 << 30)
        (41943.04, 1635.7784)
    """
    width = np.dtype(divide(ids, tasks).rest_type).itemsize
    return width * min(piece_ids(free_memory(memory), tasks), -(-ids // tasks)) / tasks


def blocks_sent(ids: int, tasks: int, memory: int) -> int:
    """Return how many blocks one exchange has: each piece of each task sends one to each task.

    Example:
        >>> blocks_sent(10**9, 100, 2 << 30), blocks_sent(10**11, 10_000, 2 << 30)
        (100000, 300000000)
    """
    pieces = -(-ids // tasks // piece_ids(free_memory(memory), tasks))
    return max(pieces, 1) * tasks**2


def ample_memory(volume: Volume) -> int:
    """Return the least memory of a task, in whole GB, of which the least tasks send no block below `BLOCK_BYTES`.

    Example:
        >>> ample_memory(Volume(10**9, 0.2)) >> 30, ample_memory(Volume(170 * 10**9, 0.2)) >> 30
        (2, 5)
    """

    def is_ample(gigabytes: int) -> bool:
        tasks = tasks_needed(volume, gigabytes << 30)
        return tasks == 1 or block_bytes(volume.ids, tasks, gigabytes << 30) >= BLOCK_BYTES

    return bisect_left(range(1 << 40), 1, lo=1, key=is_ample) << 30  # more memory: fewer tasks, and larger pieces


def say_small(volume: Volume, memory: int) -> str:
    """Note that tasks of this memory send blocks below `BLOCK_BYTES`, and how much is enough; empty if they do not."""
    tasks = tasks_needed(volume, memory)
    block = block_bytes(volume.ids, tasks, memory)
    if tasks == 1 or block >= BLOCK_BYTES:
        return ""
    return (
        f"blocks of {block / 1024:,.1f} kB, and below {BLOCK_BYTES >> 10} kB a byte costs more: workers of"
        f" {ample_memory(volume) >> 30} GB make larger ones"
    )


def fits_one(volume: Volume, memory: int, *, copies: float = 1.0) -> bool:
    """Whether one task takes all steps: few ids, and what each step makes of them stays in its memory to the end.

    Args:
        volume: of the distinct sketches.
        memory: of a task, in bytes.
        copies: documents for each distinct sketch; the task reads the sketches of all.

    Example:
        >>> fits_one(Volume(4_000_000, 0.3), 2 << 30), fits_one(Volume(10**7, 0.3), 2 << 30)
        (True, False)
        >>> fits_one(Volume(4_000_000, 0.3), 2 << 30, copies=1000)
        False
    """
    if volume.ids * copies > MOST_READ_HERE:
        return False
    needed = volume.ids * (BYTES_OF_ID + REQUEST_BYTES) + volume.posting_bytes * BYTES_OF_POSTING_BYTE
    return volume.ids <= MAX_IDS_IN_ONE_TASK and needed <= free_memory(memory)
