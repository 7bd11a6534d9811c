"""How many tasks the pairs stage needs, and how many ids one takes: from the memory of a task, by one formula.

Of the memory of a task, `BASE_BYTES` are taken before it has a row. With M bytes besides it keeps M / 32 ids of
sketches, 8 bytes each: they are there as they came, in the order of their nodes, and once more on their way out. It
takes M / 8 bytes of postings; while candidates are found they are some three times that. How long the prefixes are is
known only when they have been cut: half their greatest length is expected, more than was ever seen
(`docs/operations.md`).
"""

import math
from typing import NamedTuple

from nddup.matching.threshold import Threshold

BASE_BYTES = 800 << 20
"""Memory of a task before it has a row: what Python, Arrow and the compiled kernels take of its addresses. Spark limits
these, not the pages that are used."""

LEAST_SHARE = 8
"""Of a memory hardly larger than that, the part 1/LEAST_SHARE counts, so that the number of tasks has a bound."""

BYTES_OF_ID = 32
"""Memory of a task for each id it keeps."""

BYTES_OF_POSTING_BYTE = 8
"""Memory of a task for each byte of postings it takes."""

POSTING_BYTES = 78
"""Of one element of a prefix, and of what is told of its sketch, if every element is with another owner."""

EXPECTED_SHARE = 0.5
"""Of the greatest length of the prefixes."""

MOST_TASKS = 1 << 16


class Volume(NamedTuple):
    """What the pairs stage is to divide among tasks."""

    ids: int
    """Of all distinct sketches together."""

    prefix_share: float
    """The part of a sketch that is its prefix at most, of the usual sketch."""

    @property
    def posting_bytes(self) -> int:
        """Of all postings together, as expected."""
        return math.ceil(self.ids * self.prefix_share * EXPECTED_SHARE * POSTING_BYTES)


def volume_of(ids: int, sketches: int, threshold: Threshold) -> Volume:
    """The volume of so many distinct sketches.

    Example:
        >>> volume_of(200_000, 1_000, Threshold("resemblance", 8, 10, is_count=False, size=200)).prefix_share
        0.2
    """
    share = threshold.numerator / threshold.denominator
    if threshold.is_count:
        share *= sketches / max(ids, 1)
    return Volume(ids, 1.0 if threshold.is_containment else max(1 - share, 0.0).__round__(9))


def tasks_needed(volume: Volume, memory: int) -> int:
    """The least number of tasks that keep within so many bytes of memory each.

    Example:
        >>> tasks_needed(Volume(ids=2 * 10**11, prefix_share=0.2), memory=2 << 30)
        9537
    """
    free = max(memory - BASE_BYTES, memory // LEAST_SHARE)
    by_ids = volume.ids * BYTES_OF_ID / free
    by_postings = volume.posting_bytes * BYTES_OF_POSTING_BYTE / free
    return max(1, math.ceil(max(by_ids, by_postings)))
