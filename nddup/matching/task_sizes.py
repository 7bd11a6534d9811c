"""The number of tasks that the pairs stage needs, by one formula from the memory of a task.

`BASE_BYTES` of the memory of a task are used before it has a row. With M bytes more, a task keeps M / 32 ids of
sketches, 8 bytes each: in memory they exist as received, once more in the order of their nodes, and once more when
sent. A task takes M / 8 bytes of postings, which grow to some three times that while candidates are found. The length
of the prefixes is known only when they have been cut: half their greatest length is expected, more than was ever seen
(`docs/operations.md`).
"""

import math
from typing import NamedTuple

from nddup.matching.threshold import Threshold

BASE_BYTES = 800 << 20
"""Bytes of a task before it has a row: the address space that Python, Arrow and the compiled kernels take. Spark limits
the address space, not the pages in use."""

LEAST_SHARE = 8
"""At least 1/LEAST_SHARE of a task's memory counts as free, so that the number of tasks is bounded."""

BYTES_OF_ID = 32
"""Bytes of memory per id that a task keeps."""

BYTES_OF_POSTING_BYTE = 8
"""Bytes of memory per byte of postings that a task takes."""

POSTING_BYTES = 78
"""Bytes of a posting: one element of a prefix, with the data of its sketch, if no two elements share an owner."""

EXPECTED_SHARE = 0.5
"""Expected length of the prefixes, as a share of their greatest length."""

MOST_TASKS = 1 << 16


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


def tasks_needed(volume: Volume, memory: int) -> int:
    """Return the least number of tasks that each stay within `memory` bytes.

    Example:
        >>> tasks_needed(Volume(ids=2 * 10**11, prefix_share=0.2), memory=2 << 30)
        9537
    """
    free = max(memory - BASE_BYTES, memory // LEAST_SHARE)
    by_ids = volume.ids * BYTES_OF_ID / free
    by_postings = volume.posting_bytes * BYTES_OF_POSTING_BYTE / free
    return max(1, math.ceil(max(by_ids, by_postings)))
