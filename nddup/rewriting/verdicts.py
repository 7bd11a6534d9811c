"""The verdicts on the records of one file, and the four fields that a tagged record gets.

Verdicts   for each record of a file, in order: whether it stays, or its tags
Tags       kept, duplicate_of, cluster, copies
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

NAMES: Final = ("nddup_kept", "nddup_duplicate_of", "nddup_cluster", "nddup_copies")
"""The names of the fields in a tagged record; in XML the prefix is a namespace prefix."""

SCHEMA: Final = pa.schema(
    [(NAMES[0], pa.bool_()), (NAMES[1], pa.string()), (NAMES[2], pa.string()), (NAMES[3], pa.int64())]
)
"""The fields as columns; all are null for a record that is no document."""

BLOCK: Final = 10_000
"""Records whose tags are converted to Python objects at a time."""


class RewriteError(Exception):
    """A file cannot be rewritten as asked; the message says why, in one line."""


class Tags(NamedTuple):
    """The fields of a document.

    Attributes:
        kept: whether it is kept.
        duplicate_of: the kept document that it duplicates; None if it is kept itself.
        cluster: the smallest id of the clusters that hold its kept document; None if there are none.
        copies: how many documents a kept one stands for, itself included; None for a removed one.
    """

    kept: bool
    duplicate_of: str | None
    cluster: str | None
    copies: int | None


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on the n records and rejects of a file, in file order.

    Attributes:
        count: n.
        stays: (n,), whether each is written; None: all are.
        tags: n rows of `SCHEMA`; None if nothing is tagged.
        may_go_on: whether the file may have more records, which are left out (`input.limit`).
        may_be_empty: whether the one verdict may be on a file without a record.
    """

    count: int
    stays: NDArray[np.bool_] | None = None
    tags: pa.Table | None = None
    may_go_on: bool = False
    may_be_empty: bool = False

    @property
    def is_tagging(self) -> bool:
        """Whether every record is written, with its tags."""
        return self.tags is not None

    def each(self) -> Iterator["bool | Tags | None"]:
        """Yield, per record, whether it stays; when tagging, its tags, or None for a record to leave as it is."""
        if self.tags is None:
            yield from (self.stays if self.stays is not None else np.ones(self.count, np.bool_)).tolist()
            return
        for low in range(0, self.count, BLOCK):
            for row in zip(*(column.to_pylist() for column in self.tags.slice(low, BLOCK).columns), strict=True):
                yield None if row[0] is None else Tags(*row)


class Reader:
    """Gives the verdicts in order, one for each record met in the file."""

    def __init__(self, verdicts: Verdicts) -> None:
        self._each = verdicts.each()
        self._may_go_on = verdicts.may_go_on
        self._may_be_empty = verdicts.may_be_empty
        self.met = 0
        self.is_over = False

    def next(self) -> "bool | Tags | None":
        """Return the verdict on the next record; False after the last one, if the file may go on.

        Raises:
            RewriteError: if the file has more records than verdicts, and may not go on.
        """
        found = next(self._each, self)
        if isinstance(found, Reader):
            if not self._may_go_on:
                raise RewriteError(f"it has more than the {self.met:,} records of the run; the input changed meanwhile")
            self.is_over = True
            return False
        self.met += 1
        return found

    def require_all(self, count: int) -> None:
        """Raise RewriteError if fewer than `count` records were met."""
        if self.met != count and not (self._may_be_empty and self.met == 0):
            raise RewriteError(f"it has {self.met:,} of the {count:,} records of the run; the input changed meanwhile")
