"""A table of a run, or an answer of SQL: an Arrow dataset that is read on demand."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from nddup.api import html
from nddup.errors import CapacityError
from nddup.run.task_memory import machine_memory

SHOWN = 10
"""Rows shown in a notebook."""

SHARE = 0.5
"""Largest part of the machine's memory that the columns of one table may take."""


class RunTable:
    """A table: rows of the declared columns, on disk or in memory.

    Polars, DuckDB and pandas read it through Arrow's stream (`polars.from_arrow(run.pairs)`) or read `dataset` itself.

    Args:
        name: name of the table, for messages.
        dataset: the rows.
        compare: called before rows are read, to compare files with what was noted of them.
    """

    def __init__(self, name: str, dataset: ds.Dataset, compare: Callable[[str], None] = lambda name: None) -> None:  # noqa: ARG005
        self.name = name
        self._dataset, self._compare = dataset, compare

    @property
    def dataset(self) -> ds.Dataset:
        """The rows as an Arrow dataset.

        Raises:
            OutputError: if a file of the table is not as it was written.
        """
        self._compare(self.name)
        return self._dataset

    @property
    def schema(self) -> pa.Schema:
        """The columns and their Arrow types."""
        return self._dataset.schema

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.schema.names)

    def __len__(self) -> int:
        """Count the rows; for files, from their footers."""
        return int(self.dataset.count_rows())

    def to_table(self, columns: Sequence[str] | None = None, filter: ds.Expression | None = None) -> pa.Table:  # noqa: A002 - Arrow's word
        """Read the rows into memory, as an Arrow table; rows have no order.

        Args:
            columns: names of the columns to read; None: all.
            filter: an expression of `pyarrow.dataset`, such as `ds.field("resemblance") > 0.9`.

        Raises:
            CapacityError: without a filter, if the columns may take more than half of the machine's memory.

        Cost: reads only these columns and, in files, only the row groups that the filter may match.
        """
        if filter is None:
            self._require_room(columns)
        return self.dataset.to_table(columns=None if columns is None else list(columns), filter=filter)

    def to_pandas(self, columns: Sequence[str] | None = None) -> Any:  # noqa: ANN401 - a DataFrame of pandas
        """Return the rows as a pandas DataFrame; see `to_table`."""
        return self.to_table(columns).to_pandas()

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries; see `to_table`."""
        rows: list[dict[str, Any]] = self.to_table().to_pylist()
        return rows

    def head(self, rows: int = SHOWN) -> pa.Table:
        """Return the first rows, as an Arrow table."""
        return self.dataset.head(rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return Arrow's stream of the rows, which other libraries read a batch at a time."""
        return self.dataset.scanner().to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """Return the name, number of rows and columns."""
        return f"<{self.name}: {len(self):,} rows; {', '.join(self.column_names)}>"

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
        first, count = self.head(SHOWN), len(self)
        said = f"{self.name}: {count:,} row{'' if count == 1 else 's'}"
        caption = said + (f", the first {len(first)}" if count > len(first) else "")
        rows = zip(*(column.to_pylist() for column in first.columns), strict=True)
        return html.table(self.column_names, rows, caption=caption)

    def _require_room(self, columns: Sequence[str] | None) -> None:
        """Refuse columns that may take more than half of the machine's memory."""
        needed, given = _bytes_of(self.dataset, columns), machine_memory() * SHARE
        if needed > given:
            raise CapacityError(
                f"{self.name}: may take {needed / 1e9:.1f} GB, more than half of the memory, {given / 1e9:.1f} GB;"
                f" choose columns, to_table(columns=[…]), of {', '.join(self.column_names)}; or ask with run.sql"
            )


def table_of(name: str, rows: pa.Table) -> RunTable:
    """Wrap an Arrow table in memory as a `RunTable`."""
    return RunTable(name, ds.dataset(rows))


def _bytes_of(dataset: ds.Dataset, columns: Sequence[str] | None) -> int:
    """Sum the uncompressed bytes of columns from the footers of the files; 0 for a table that is already in memory."""
    if not isinstance(dataset, ds.FileSystemDataset):
        return 0
    found = 0
    for path in dataset.files:
        footer = pq.read_metadata(path)
        for group in (footer.row_group(place) for place in range(footer.num_row_groups)):
            parts = (group.column(place) for place in range(group.num_columns))
            found += sum(
                part.total_uncompressed_size
                for part in parts
                if columns is None or part.path_in_schema.partition(".")[0] in columns
            )
    return found
