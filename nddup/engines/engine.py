"""The contract of an engine: a few verbs, in which every relational step of a run is written once for both engines.

    sql, rows        a SELECT          -> a small answer; an answer of any size, row by row
    answer           a SELECT, kernel  -> a table that the run stores
    count            a table           -> aggregates over it
    see, put, join   rows              -> register rows; copy a small table; add the columns of a group
    materialise      a SELECT          -> its answer as a table, computed once
    transform        a SELECT, kernel  -> what the kernel makes of the answer, as a table
    forget                                drop all of these

`engines.duck` implements them with DuckDB in this process, `nddup.spark.engine` with Spark; a step takes an engine as
its argument. Other steps are in `embedded` and `spark`. `FinishedRun` is an engine over a run.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from nddup.errors import OutputError
from nddup.ground.json_text import load_object
from nddup.ground.shown import SPELLINGS
from nddup.tables import Table

EngineTable: TypeAlias = Any
"""Rows of either engine: a table of Arrow, or a DataFrame of Spark."""

Batches = Iterator[pa.RecordBatch]
Kernel = Callable[[Batches], Batches]
"""Makes rows from other rows. If order matters, it gets all batches in order; if not, it may be called on any batch."""

R = TypeVar("R")


class Engine(ABC):
    """Tables by name, and queries over them."""

    @abstractmethod
    def sql(self, text: str, **tables: pa.Table) -> pa.Table:
        """Return the answer to one query.

        Args:
            text: one SELECT that DuckDB and Spark both understand. It may name any table that the engine was given or
                keeps; of a finished run any of `nddup.tables.RESULTS` that the run `holds`, with all its columns: a
                column that an earlier version did not write is null.
            tables: small tables of the caller, by the name that the text uses. A query about some documents joins
                with a table of their ids, so that no value is ever written into the text.

        Returns:
            The rows, in the order of ORDER BY if there is one. Both engines order strings by their UTF-8 bytes, nulls
            first, or last with DESC. Columns of a run keep their types. The type of a sum depends on the engine, so
            a query casts it; count(*) is int64.

        Raises:
            NddupError: if a table cannot be read, or the text is wrong; on Spark, an error of its own.

        Cost: reads only the columns and rows that the query needs. The answer is in memory.
        """

    @abstractmethod
    def answer(
        self, text: str, kernel: Kernel | None = None, table: Table | None = None, *, by: tuple[str, ...] = ()
    ) -> EngineTable:
        """Return the answer to a query as a table that a run of this engine stores: on Spark lazily, a DataFrame.

        Args:
            kernel: makes batches of `table` from any batches of the answer; None: the answer itself.
            table: the columns that the kernel gives.
            by: as in `transform`.
        """

    @abstractmethod
    def join(  # noqa: PLR0913 - both sides, and how they meet
        self, name: str, rows: str, groups: str, *, key: str, by: str, many: int | None = None
    ) -> None:
        """Give rows, each with the columns of the group of its key, a name for later queries, until `forget`.

        One key may have most of the rows: Spark spreads them over many tasks, which a JOIN in a query would not.

        Args:
            name: a name that no table has.
            rows: a table; `n` is how many of its rows have the key.
            groups: one SELECT with a row a key at most, and `n` as well. Rows without a group are left out.
            key: the column of both to join on.
            by: a column of the rows whose values differ within a key.
            many: the number of the rows, if they have no `n`; then rows without a group stay, with nulls.
        """

    @abstractmethod
    def see(self, name: str, rows: EngineTable) -> None:
        """Register: give rows of the caller a name for later queries, until `forget`.

        Args:
            name: a name that no table has.
            rows: rows that the engine can read: an Arrow table, which may lie on disk, or a reader of batches, read
                once; on Spark a DataFrame.
        """

    @abstractmethod
    def rows(self, text: str, kernel: Kernel | None = None, schema: str = "") -> Iterator[tuple[Any, ...]]:
        """Yield the rows of an answer of any size one by one, in the order of ORDER BY.

        Args:
            kernel: turns batches of the answer into other batches, with as many or fewer rows in the same order; on
                Spark it runs in the tasks, so a worker must be able to import it.
            schema: `name type, …` of the kernel's batches.
        """

    @abstractmethod
    def put(self, name: str, table: pa.Table) -> None:
        """Copy a table for later queries, under this name, until `forget`."""

    @abstractmethod
    def materialise(self, name: str, text: str, *, is_wide: bool = False) -> None:
        """Materialise the answer to a query as a table of this name, for later queries, until `forget`.

        Args:
            is_wide: whether it holds whole columns of the run. An engine that reads these quickly makes no copy.

        Cost: computed once; data that does not fit in memory is written to the folder for temporary files. A wide
        answer without a copy is computed at each use.
        """

    @abstractmethod
    def transform(self, table: Table, text: str, kernel: Kernel, *, by: tuple[str, ...] = ()) -> None:
        """Materialise what a kernel makes of an answer, for later queries, until `forget`.

        Args:
            table: name and columns of the result.
            kernel: yields batches with the columns of `table`. All cores call it at once, unless `by` is given.
            by: columns of the answer: rows with the same first column go to the same call, sorted by all of them.
        """

    def count(self, name: str, counts: Mapping[str, str]) -> dict[str, int]:
        """Return aggregates over a table, by their names; 0 where there are no rows."""
        listed = ", ".join(f"CAST(coalesce({text}, 0) AS BIGINT) AS {column}" for column, text in counts.items())
        totals: dict[str, int] = self.sql(f"SELECT {listed} FROM {name}").to_pylist()[0]  # noqa: S608
        return totals

    @abstractmethod
    def forget(self) -> None:
        """Drop every name that was given, and free the materialised tables."""


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
        """Compare a table or a text with its note; return whether there is one."""

    def noted_tables(self) -> list[str]:
        """Return the tables and texts that are noted."""


class FinishedRun(Engine):
    """A finished run: its path, its metrics, the files beside its tables, and SQL over the tables.

    Raises:
        OutputError: if the folder is not a run, the run did not finish, or its metrics cannot be read.
        ConfigError: if no run can have its settings.
        IncompatibleSketchError: if its sketches have another format than this version's.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.path = folder.path
        from nddup.ground.metrics import RunMetrics  # noqa: PLC0415 - a question to a repository opens no run
        from nddup.settings.stored import complete_shown  # noqa: PLC0415

        origin = f"{folder.path}/metrics.json"
        metrics = RunMetrics.read(folder.open(), origin=origin)
        self.metrics = metrics.model_copy(update={"settings": complete_shown(metrics.settings, origin=origin)})

    def holds(self, name: str) -> bool:
        """Return whether there is a table or a file of this name."""
        return self._folder.holds(name)

    def read_text(self, name: str) -> str:
        """Read a whole text file beside the tables.

        Raises:
            OutputError: if there is no such file.
        """
        return self._folder.read_text(name)

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a file beside the tables that holds a JSON object.

        Raises:
            OutputError: if there is no such file, or it holds none.
        """
        try:
            return load_object(self.read_text(name))
        except ValueError as error:
            raise OutputError(f"{self.path}/{name}: is damaged, expected a JSON object") from error

    def meanwhile(self, ask: Callable[..., R], *arguments: EngineTable) -> Callable[[], R]:
        """Begin to ask a run, while the caller does something else; return what waits for the answer.

        Args:
            ask: called once, with a run like this one and the arguments; here, when the answer is wanted.
        """
        return cache(partial(ask, self, *arguments))

    def noted(self) -> list[str]:
        """Return the tables and texts that the run says it has."""
        return self._folder.noted_tables()

    def unlike_written(self) -> tuple[list[str], list[str]]:
        """Compare every file of the run with its note; return those that differ, and those without a note."""
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
        """Materialise what a reader makes of each file of a text beside the tables, until `forget`.

        Args:
            table: name and columns of the result.
            name: name of the file, or of the folder of its parts.
            reader: yields batches with the columns of `table`.
        """


PLACES = """
    SELECT /*+ BROADCAST(w) */ d.doc_id, d.source, d.record, d.content_fingerprint, d.record_type
    FROM documents AS d JOIN wanted AS w ON d.doc_id = w.doc_id
"""

ORIGINALS = """
    SELECT /*+ BROADCAST(w) */ d.content_fingerprint, min(d.source) AS source
    FROM documents AS d JOIN wanted AS w ON d.content_fingerprint = w.content_fingerprint
    WHERE d.record_type <> 'revisit' GROUP BY d.content_fingerprint
"""


KNOWN = "SELECT w.doc_id FROM wanted AS w SEMI JOIN documents AS d ON w.doc_id = d.doc_id"


def find_ids(engine: Engine, ids: Iterable[str]) -> dict[str, str]:
    """Return the document that each id of a person's list names: as it is, or else by one of `SPELLINGS`.

    Args:
        engine: with the table `documents`.
        ids: as they stand in the list; unknown ones are left out.

    Cost: one join of `documents` with the ids, which are in memory, as the answer is.
    """
    forms = {one: (one, *(spelling(one) for spelling in SPELLINGS)) for one in ids}
    asked = dict.fromkeys(chain.from_iterable(forms.values()))
    wanted = pa.array([form.encode(errors="replace") for form in asked], pa.string())  # no document has a surrogate
    known = set(engine.sql(KNOWN, wanted=pa.table({"doc_id": wanted}))["doc_id"].to_pylist())
    named = {one: next(filter(known.__contains__, spelled), None) for one, spelled in forms.items()}
    return {one: doc_id for one, doc_id in named.items() if doc_id is not None}


class TextPlace(NamedTuple):
    """The source of a text, the 16 bytes of its content's fingerprint, and the ordinal of its document's record."""

    source: str
    content: bytes
    record: int


def text_places(engine: Engine, ids: Iterable[str]) -> dict[str, TextPlace]:
    """Return where the texts of documents stand, by id; a revisit's in the source of what it repeats.

    Args:
        engine: with the table `documents`.
        ids: of documents; unknown ids have no place.

    Returns:
        The place of each document; empty for no ids.

    Raises:
        NddupError: if the table cannot be read.

    Cost: a pass over five columns of `documents`, and another if a revisit is among them; on Spark the ids are
        broadcast, and only the second pass shuffles, one row for each content. The answer is in memory.
    """
    wanted = pa.table({"doc_id": pa.array(sorted(set(ids)), pa.string())})
    rows = engine.sql(PLACES, wanted=wanted).to_pylist()
    contents = {row["content_fingerprint"] for row in rows if row["record_type"] == "revisit"}
    originals: dict[bytes, str] = {}
    if contents:
        repeated = pa.table({"content_fingerprint": pa.array(sorted(contents), pa.binary())})
        repeats = engine.sql(ORIGINALS, wanted=repeated).to_pylist()
        originals = {row["content_fingerprint"]: row["source"] for row in repeats}

    places: dict[str, TextPlace] = {}
    for row in rows:
        content = row["content_fingerprint"]
        elsewhere = originals.get(content) if row["record_type"] == "revisit" else None
        places[row["doc_id"]] = TextPlace(elsewhere or row["source"], content, row["record"])
    return places
