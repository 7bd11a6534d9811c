"""A finished run as its readers see it, whichever engine reads its tables."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa

from nddup.metrics import RunMetrics
from nddup.table_types import Table

Batches = Iterator[pa.RecordBatch]
Kernel = Callable[[Batches], Batches]
"""Makes rows of other rows. Where the order matters, it is that of the batches; where not, any batch may be alone."""

Reader = Callable[[Iterator[str]], Batches]
"""Makes rows of the parts of a text, in their order."""


class Folder(Protocol):
    """Where a run lies, as far as its readers ask: `RunFolder`, or what stands for one in memory."""

    path: str

    def open(self) -> Mapping[str, Any]:
        """The metrics of the run, as in `metrics.json`."""

    def holds(self, name: str) -> bool:
        """Whether a table or a file of this name is there."""

    def read_text(self, name: str) -> str:
        """A text file beside the tables, whole."""


class FinishedRun(ABC):
    """A finished run: its path, its metrics, the files beside its tables, and SQL over the tables.

    Args:
        folder: of the run.

    Raises:
        OutputError: if the folder is not a run, the run did not finish, or its metrics cannot be read.
        IncompatibleSketchError: if its sketches are of another format than this version's.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.path = folder.path
        self.metrics = RunMetrics.read(folder.open(), origin=f"{folder.path}/metrics.json")

    def holds(self, name: str) -> bool:
        """Whether a table or a file of this name is there."""
        return self._folder.holds(name)

    def read_text(self, name: str) -> str:
        """A text file beside the tables, whole.

        Raises:
            OutputError: if it is not there.
        """
        return self._folder.read_text(name)

    @abstractmethod
    def sql(self, text: str, **tables: pa.Table) -> pa.Table:
        """The answer to one question.

        Args:
            text: one SELECT that DuckDB and Spark both understand. It names the tables of the run as
                `nddup.tables.RESULTS` does: a table that the run `holds`, with all its columns; where a run of an
                earlier version did not write a column, that is null.
            tables: small tables of the caller, under the names that the text gives them. A question about some
                documents joins with a table of their ids, so that no value is ever put into the text.

        Returns:
            The rows, in the order of ORDER BY if there is one. Both engines order strings by their UTF-8 bytes, and
            nulls first, with DESC last. Columns of a run keep their types. The type of a sum depends on the engine,
            so a question casts it; count(*) is int64.

        Raises:
            NddupError: if a table cannot be read, or the text is wrong; on Spark, an error of its own.

        Cost: only the columns and rows that the question needs are read. The answer is in memory.
        """

    @abstractmethod
    def see(self, name: str, rows: Any) -> None:  # noqa: ANN401 - of either engine
        """Give rows of the caller a name for all questions that follow, until `forget`.

        Args:
            name: one that no table has.
            rows: what the engine reads: an Arrow table, which may lie on the disk; on Spark a DataFrame.
        """

    @abstractmethod
    def rows(self, text: str, kernel: Kernel | None = None, schema: str = "") -> Iterator[tuple[Any, ...]]:
        """The rows of an answer of any size, one after another, in the order of ORDER BY.

        Args:
            text: as of `sql`.
            kernel: makes batches of the answer into other batches, as many or fewer rows in the same order; on Spark
                it runs in the tasks, so it must be one that a worker can import.
            schema: `name type, …` of what the kernel gives.
        """

    @abstractmethod
    def put(self, name: str, table: pa.Table) -> None:
        """Give later questions a table, under this name."""

    @abstractmethod
    def keep(self, name: str, text: str, *, is_wide: bool = False) -> None:
        """Give later questions the answer to one, as a table of this name.

        Args:
            name: of the table.
            text: as in `sql`.
            is_wide: it holds whole columns of the run. An engine that reads these again quickly keeps no copy of them.

        Cost: computed once; what does not fit the memory is written to the folder for temporary files.
        """

    @abstractmethod
    def transform(self, table: Table, text: str, kernel: Kernel, *, by: tuple[str, ...] = ()) -> None:
        """Give later questions what a kernel makes of an answer, as a table.

        Args:
            table: its name and columns.
            text: as in `sql`.
            kernel: gives batches with the columns of the table. All cores call it at once, unless `by` is given.
            by: columns of the answer: rows with the same first one go to the same call, sorted by all of them.
        """

    @abstractmethod
    def transform_text(self, table: Table, name: str, reader: Reader) -> None:
        """Give later questions what a reader makes of the files of a text beside the tables, each on its own.

        Args:
            table: its name and columns.
            name: of the file, or of the folder of its parts.
            reader: gives batches with the columns of the table.
        """

    @abstractmethod
    def forget(self) -> None:
        """Take back every name that was given, and free what was kept."""
