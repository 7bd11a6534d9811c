"""What a table is declared with: columns of named types, each with its meaning."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

COUNTS = pa.list_(pa.struct([("value", pa.string()), ("documents", pa.int64())]))
"""Values with their numbers of documents."""

TYPES: dict[str, pa.DataType] = {
    "long": pa.int64(), "int": pa.int32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(),
    "boolean": pa.bool_(), "array<long>": pa.list_(pa.int64()), "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()), "array<counts>": COUNTS,
    "array<ledger>": pa.list_(pa.struct([
        ("name", pa.string()), ("values", COUNTS), ("distinct", pa.int64()), ("least", pa.string()),
        ("greatest", pa.string()),
    ])),
}  # fmt: skip
"""The types a column may have, by their names in Spark SQL; `ledger` is the structure of `families.ledger`,
`counts` that of its values."""


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: as in the table.
        type: a key of `TYPES`.
        meaning: what its values say.
        of_content: whether the content of a record tells it, so that a revisit has that of the record it repeats.
        is_stored: whether a repository stores it for each of its documents.
        proved_by: the step of `nddup check` that proves it, of `check_run.STEPS`; that of its table if empty.
        may_lack: whether null is sound: where nothing is to be said, or an earlier version stored none.
        came_later: whether a run of an earlier version may have no value at all.
    """

    name: str
    type: str
    meaning: str = ""
    of_content: bool = False
    is_stored: bool = False
    proved_by: str = ""
    may_lack: bool = False
    came_later: bool = False


def arrow_of(columns: str) -> pa.Schema:
    """Return the Arrow schema of `name type` pairs separated by commas.

    Example:
        >>> arrow_of("doc_id string, n_tokens int").types
        [DataType(string), DataType(int32)]
    """
    return pa.schema([(name, TYPES[kind]) for name, kind in map(str.split, columns.split(","))])


@dataclass(frozen=True)
class Table:
    """A table: what a row means, its columns in order, the progress text while it is made, and what proves it."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    doing: str = ""
    proved_by: str = ""

    @property
    def names(self) -> list[str]:
        """The columns' names, in order."""
        return [column.name for column in self.columns]

    @property
    def arrow(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return pa.schema([(column.name, TYPES[column.type]) for column in self.columns])

    def named(self, flag: str) -> tuple[str, ...]:
        """Return the names of the columns that have a flag of `Column`, in order."""
        return tuple(column.name for column in self.columns if getattr(column, flag))

    def batch(self, values: Sequence[pa.Array]) -> pa.RecordBatch:
        """Make a batch of this table from its columns in order."""
        return pa.RecordBatch.from_arrays(list(values), names=self.names)
