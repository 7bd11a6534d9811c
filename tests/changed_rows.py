"""A stored table with a fault in it: its first row is missing, there twice, or has another value."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PART = "part-00000.zstd.parquet"


def _other(value: Any) -> Any:  # noqa: ANN401 - of any column
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}x"


def faults(folder: str, name: str, left: tuple[str, ...] = ()) -> Iterator[str]:
    """Write a table with one fault after the other, yield what it is, and write the table back.

    Args:
        folder: holds the table, as one file.
        left: columns that stay as they are.
    """
    path = Path(folder, name, PART)
    table = pq.read_table(path)
    rows, wide = table.to_pylist(), [one for one in table.column_names if one not in left]
    given = {"a row is missing": rows[1:], "a row twice": [*rows[:1], *rows]}
    given |= {one: [{**rows[0], one: _other(rows[0][one])}, *rows[1:]] for one in wide if rows[0][one] is not None}
    for fault, changed in given.items():
        pq.write_table(pa.Table.from_pylist(changed, table.schema), path)
        yield f"{name}: {fault}"
    pq.write_table(table, path)
