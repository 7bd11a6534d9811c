"""What becomes of the records of one file, and the four fields that a tagged record gets.

Verdicts   of each record of a file, by its ordinal: whether it stays; its tags where records are tagged
Tags       kept, duplicate_of, cluster, copies
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

NAMES: Final = ("nddup_kept", "nddup_duplicate_of", "nddup_cluster", "nddup_copies")
"""The fields of a tagged record, wherever the format has names of its own."""

SCHEMA: Final = pa.schema(
    [(NAMES[0], pa.bool_()), (NAMES[1], pa.string()), (NAMES[2], pa.string()), (NAMES[3], pa.int64())]
)
"""The fields as columns; all are null of a record that is no document."""

BLOCK: Final = 10_000
"""Records whose tags are Python objects at a time."""


class RewriteError(Exception):
    """A file cannot be written again as it is asked; the message says why, and is one line."""


class Tags(NamedTuple):
    """The fields of a document.

    Attributes:
        kept: whether it stays.
        duplicate_of: the kept document that it duplicates; None if it is kept itself.
        cluster: the smallest id of a cluster that holds its kept document; None without.
        copies: the documents that a kept one stands for, itself among them; None of a removed one.
    """

    kept: bool
    duplicate_of: str | None
    cluster: str | None
    copies: int | None


@dataclass(frozen=True)
class Verdicts:
    """What becomes of the n records and rejects of a file, in its order.

    Attributes:
        stays: (n,), whether it is written; None: all are, and the documents among them are tagged.
        tags: n rows of `SCHEMA`; None where nothing is tagged.
        may_go_on: whether the file may have more records, which are left out (`input.limit`).
    """

    count: int
    stays: NDArray[np.bool_] | None = None
    tags: pa.Table | None = None
    may_go_on: bool = False

    @property
    def is_tagging(self) -> bool:
        """Whether every record is written, with its tags."""
        return self.tags is not None

    def each(self) -> Iterator["bool | Tags | None"]:
        """Of each record: whether it stays, or where records are tagged its tags; None: it is left as it is."""
        if self.tags is None:
            yield from (self.stays if self.stays is not None else np.ones(self.count, np.bool_)).tolist()
            return
        for low in range(0, self.count, BLOCK):
            for row in zip(*(column.to_pylist() for column in self.tags.slice(low, BLOCK).columns), strict=True):
                yield None if row[0] is None else Tags(*row)


class Reader:
    """The verdicts in order, one a record that is met.

    Raises:
        RewriteError: if the file has more records than there are verdicts.
    """

    def __init__(self, verdicts: Verdicts) -> None:
        self._each = verdicts.each()
        self._may_go_on = verdicts.may_go_on
        self.met = 0
        self.is_over = False

    def next(self) -> "bool | Tags | None":
        """The verdict on the next record; False past the last one of a file that may go on."""
        found = next(self._each, self)
        if isinstance(found, Reader):
            if not self._may_go_on:
                raise RewriteError(f"it has more than the {self.met:,} records of the run; the input changed meanwhile")
            self.is_over = True
            return False
        self.met += 1
        return found

    def require_all(self, count: int) -> None:
        """Raise RewriteError if fewer records than these were met."""
        if self.met != count:
            raise RewriteError(f"it has {self.met:,} of the {count:,} records of the run; the input changed meanwhile")
