"""The interface of a finished run for its readers, whichever engine reads its tables."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from nddup.engines.engine import Batches, Engine
from nddup.errors import OutputError
from nddup.metrics import RunMetrics
from nddup.tables import Table

Reader = Callable[[Iterator[str]], Batches]
"""Makes rows from the parts of a text, in order."""


class Folder(Protocol):
    """The folder of a run, as far as its readers need it: `RunFolder`, or a stand-in for tables in memory."""

    path: str

    def open(self) -> Mapping[str, Any]:
        """Return the metrics of the run, as in `metrics.json`."""

    def holds(self, name: str) -> bool:
        """Return whether there is a table or a file of this name."""

    def read_text(self, name: str) -> str:
        """Read a whole text file beside the tables."""

    def require_same(self, name: str) -> bool:
        """Compare a table or a text with what was noted of it; return whether anything was."""

    def noted_tables(self) -> list[str]:
        """Return the tables and texts that are noted."""


class FinishedRun(Engine):
    """A finished run: its path, its metrics, the files beside its tables, and SQL over the tables.

    Args:
        folder: folder of the run, or its stand-in.

    Raises:
        OutputError: if the folder is not a run, the run did not finish, or its metrics cannot be read.
        IncompatibleSketchError: if its sketches have another format than this version's.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.path = folder.path
        self.metrics = RunMetrics.read(folder.open(), origin=f"{folder.path}/metrics.json")

    def holds(self, name: str) -> bool:
        """Return whether there is a table or a file of this name."""
        return self._folder.holds(name)

    def read_text(self, name: str) -> str:
        """Read a whole text file beside the tables.

        Raises:
            OutputError: if there is no such file.
        """
        return self._folder.read_text(name)

    def noted(self) -> list[str]:
        """Return the tables and texts that the run says it has."""
        return self._folder.noted_tables()

    def unlike_written(self) -> tuple[list[str], list[str]]:
        """Compare every file of the run with what was noted; return what differs, and of what nothing was noted."""
        wrong, unknown = [], []
        for name in self._folder.noted_tables():
            try:
                if not self._folder.require_same(name):
                    unknown.append(name)
            except OutputError as error:
                wrong.append(str(error))
        return wrong, unknown

    @abstractmethod
    def transform_text(self, table: Table, name: str, reader: Reader) -> None:
        """Keep the result of a reader over each file of a text beside the tables, as a table, until `forget`.

        Args:
            table: name and columns of the result.
            name: name of the file, or of the folder of its parts.
            reader: yields batches with the columns of `table`.
        """
