"""A run as an object: its tables, SQL over them, and explanations of single decisions."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from nddup.api import views
from nddup.api.views import Cluster, Document, RunTable, find_cluster, find_document, table_of
from nddup.engines.duck import DuckRun, MemoryRun
from nddup.engines.engine import FinishedRun
from nddup.errors import ConfigError, NddupError
from nddup.ground.metrics import RunMetrics
from nddup.ground.shown import one_line
from nddup.remote.addresses import is_bucket
from nddup.report.for_review import Decisive, decisive_of, find_closest
from nddup.report.summary import headline, notes
from nddup.settings.schema import Config
from nddup.storage.local_folder import FORMAT
from nddup.storage.local_storage import LocalStorage, local_path
from nddup.storage.run_folder import RunFolder
from nddup.tables import FAMILIES, READABLE, RESULTS
from nddup.tables.features import DIFF_TABLES

if TYPE_CHECKING:
    from nddup.api.answers import PairVerdict
    from nddup.diffing.diff_tables import Difference
    from nddup.settings.schema import Config
    from nddup.spark.engine import FramesRun


@dataclass(frozen=True, repr=False)
class RunDiff:
    """What changed between two runs.

    Attributes:
        found: settings and versions that differ, counts, causes, and the families and sets that changed most.
        changes, pair_changes, family_changes, set_changes: the tables, as `docs/reference.md` declares them.
    """

    found: "Difference"
    changes: RunTable
    pair_changes: RunTable
    family_changes: RunTable
    set_changes: RunTable

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return not self.found.is_empty

    def __repr__(self) -> str:
        """Show the summary, as `nddup diff` prints it."""
        from nddup.diffing.diff_tables import say_diff  # noqa: PLC0415

        return "\n".join(one_line(line) for line in say_diff(self.found))


COUNTED = """
    SELECT w.doc_a, w.doc_b, count(*) AS pairs
    FROM pairs AS p JOIN documents AS a ON p.doc_a = a.doc_id JOIN documents AS b ON p.doc_b = b.doc_id
    JOIN wanted AS w ON w.doc_a = least(a.group, b.group) AND w.doc_b = greatest(a.group, b.group)
    GROUP BY w.doc_a, w.doc_b
"""
"""How many rows of `pairs` two groups have; a group is named by its smallest id."""

SIZED_PAIRS = """(
    SELECT p.*, greatest(array_size(a.sketch), array_size(b.sketch)) AS larger
    FROM pairs AS p JOIN documents AS a ON p.doc_a = a.doc_id JOIN documents AS b ON p.doc_b = b.doc_id
)"""
"""The rows of `pairs` with the size of the larger sketch."""


SHOWN = [*RESULTS, FAMILIES.name]
"""The tables that are attributes of a run."""


@dataclass(frozen=True, repr=False, eq=False)
class Run:
    """A run, as `nddup.open` and `nddup.find_duplicates` return it.

    Attributes:
        documents, rejects, pairs, clusters, members, keep, false_components: its tables, as `docs/reference.md`
            declares them: from `nddup.open` a `RunTable`, read on demand; from `find_duplicates`, a table of the same
            library as its input, with ids that are integers if the input's are.
        texts: the stored texts, if there are any; None from `find_duplicates`.
        families: what each kept document stands for; None without `keep.ledger`.
        metrics: counts and timings of the run, typed; `metrics["rows"]` is the same as `metrics.rows`.
    """

    documents: Any
    rejects: Any
    pairs: Any
    clusters: Any
    members: Any
    keep: Any
    false_components: Any
    metrics: RunMetrics
    texts: Any = None
    families: Any = None
    _opened: FinishedRun | None = None
    _open_frames: "Callable[[], FramesRun] | None" = None
    _free: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        """Return the run; it is closed at the end of the block."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the run."""
        self.close()

    def close(self) -> None:
        """Free the tables of a run on Spark, on the executors' disks: neither they nor what is lazily made of them can
        be read afterwards. Other runs hold nothing outside this process, and can still be used.
        """
        if "_frames" in vars(self) and self._frames is not None:
            self._frames.close()
        if self._free is not None:
            self._free()

    @classmethod
    def of_folder(cls, opened: DuckRun) -> Self:
        """Make a run of the tables in a folder."""
        there: dict[str, Any] = {
            name: RunTable(name, _dataset(opened.path, name), opened.require_same)
            for name in SHOWN
            if name in RESULTS or opened.holds(name)
        }
        return cls(**there, metrics=opened.metrics, _opened=opened)

    @classmethod
    def of_memory(cls, tables: Mapping[str, pa.Table], metrics: RunMetrics) -> Self:
        """Make a run of Arrow tables in memory."""
        shown: dict[str, Any] = {name: table_of(name, table) for name, table in tables.items() if name in SHOWN}
        return cls(**shown, metrics=metrics, _opened=MemoryRun(tables, metrics))

    @property
    def settings(self) -> "Config":
        """The settings that decided what the run found, typed; those of the engines have their defaults."""
        from nddup.settings.load import read_stored  # noqa: PLC0415

        return read_stored(self.metrics.settings, origin="metrics.json")

    def sql(self, query: str, **tables: Any) -> Any:  # noqa: ANN401 - of several libraries
        """Answer one SELECT over the tables of the run, in the SQL of DuckDB; for a run on Spark, in Spark's SQL.

        Args:
            query: a SELECT with the attributes as table names: `SELECT * FROM pairs WHERE resemblance < 0.85`.
            tables: the caller's own tables, by the name that the query uses: Arrow, pandas or Polars; Spark DataFrames
                for a run on Spark.

        Returns:
            A `RunTable` of the rows, in memory. For a run on Spark a DataFrame, not yet computed.

        Raises:
            ConfigError: if the query is not one SELECT, or names an unknown table or column, or a table has the name of
                one of the run.
            NddupError: if a table cannot be read.

        Cost: reads only the columns and rows that the query needs; data that does not fit in memory is written to the
        folder for temporary files.
        """
        if not isinstance(query, str):
            raise ConfigError(f"sql: expected one SELECT, got {type(query).__name__}")
        if taken := sorted(name for name in tables if name.lower() in READABLE):
            raise ConfigError(f"sql: {taken[0]} is a table of the run; give yours another name")
        if self._frames is not None:
            return self._frames.frame(query, **tables)
        given = {name: _as_arrow(f"sql: {name}", table) for name, table in tables.items()}
        try:
            kinds = [statement.type for statement in duckdb.extract_statements(query)]
            if kinds != [duckdb.StatementType.SELECT]:
                raise ConfigError(f"sql: expected one SELECT, got {query!r}")
            return table_of("answer", self._ask.sql(query, **given))
        except duckdb.Error as error:
            raise ConfigError(f"sql: {' '.join(str(error).split())}") from error
        except NddupError as error:
            if isinstance(error.__cause__, duckdb.ProgrammingError):
                raise ConfigError(f"sql: {' '.join(str(error.__cause__).split())}") from error
            raise

    def cluster(self, cluster_id: str) -> Cluster:
        """Return a cluster: its members and the pairs among them.

        Raises:
            ConfigError: if there is no cluster of this id.
        """
        return find_cluster(self._ask, cluster_id)

    def document(self, doc_id: str | int) -> Document:
        """Return a document: its sketch, pairs and clusters, and why it is kept or removed.

        Raises:
            ConfigError: if there is no document of this id.
        """
        return find_document(self._ask, str(doc_id), policy=str(self.settings.keep.policy))

    def explain_pair(self, first: str | int, second: str | int) -> "PairVerdict":
        """Say why two documents are, or are not, near-duplicates: the common features, the threshold, a verdict.

        Raises:
            ConfigError: if an id is not a document of the run, or both are the same.
        """
        from nddup.api.answers import explain_pair  # noqa: PLC0415

        return explain_pair(self._ask, self.settings, str(first), str(second))

    def closest_calls(self, n: int = 20) -> RunTable:
        """Return the pairs that reach the threshold by the smallest margin, one for each two groups of equal sketches.

        Returns:
            `doc_a`, `doc_b`: an example; `pairs`: number of rows of `pairs` that it stands for; and the value that is
            compared with the threshold, lowest first: `resemblance`, `containment`, or `overlap` as a share of the
            larger sketch or a count; `edit` where texts confirm pairs.

        Raises:
            ConfigError: for a share of the overlap in kind `mod-pow2`: `pairs` does not store the sketch sizes at the
                modulus of the comparison.

        Cost: two passes over `pairs`, one of them a join with `documents`.
        """
        decisive = decisive_of(self.metrics.settings)
        if decisive is None:
            if self._is_levelled:
                raise ConfigError("closest_calls: kind mod-pow2 stores no share of the overlap; explain_pair shows it")
            decisive = Decisive("overlap", "p.overlap / p.larger", self.settings.pairs.threshold, SIZED_PAIRS)
        closest = find_closest(self._ask, decisive, _counted("closest_calls", n))
        ends = {name: pa.array([getattr(one, name) for one in closest], pa.string()) for name in ("doc_a", "doc_b")}
        counted = self._ask.sql(COUNTED, wanted=pa.table(ends)).to_pylist()
        rows = {(row["doc_a"], row["doc_b"]): row["pairs"] for row in counted}
        pairs = pa.array([rows[one.doc_a, one.doc_b] for one in closest], pa.int64())
        measured = pa.array([one.measured for one in closest], pa.float64())
        measured = measured.cast(pa.int32()) if decisive.value == "p.overlap" else measured
        return table_of("answer", pa.table({**ends, "pairs": pairs, decisive.name: measured}))

    def largest_families(self, n: int = 20) -> RunTable:
        """Return the families of more than one document, the largest first.

        Returns:
            `kept`, the document that stays; `documents`, it and those removed for it; `least`, the lowest resemblance
            to it; `lost`, the most of a removed text that it lacks; `url`.

        Cost: a pass over `keep`, joined with `documents`.
        """
        from nddup.results.show import ALL_FAMILIES  # noqa: PLC0415

        return table_of("answer", self._ask.sql(f"{ALL_FAMILIES} LIMIT {_counted('largest_families', n)}"))

    def rethreshold(self, threshold: float) -> "Run":
        """Recompute the run with another `pairs.threshold`, without reading its inputs again.

        Args:
            threshold: a share such as 0.9; for the measure `overlap` also a count such as 180.

        Returns:
            A run in memory, with the tables of a fresh run; `texts` is None. For a run on Spark too: its `documents`
            are then collected on the driver.

        Raises:
            ConfigError: if the measure does not take this threshold, texts would have to be compared again (for a
                lower threshold where all shingles decide), or the run is a version of a repository.
            NeedsSparkError: if it needs more than `local.memory`.

        Cost: that of a run after reading and sketching: all pairs are found again from the stored sketches.
        """
        from nddup.api.answers import forced_of, make_again, require_tellable  # noqa: PLC0415

        run = self._ask
        if isinstance(run, DuckRun):
            require_tellable(run.read_json("_RUN.json"), run.path)
        rows = {name: run.sql(f"SELECT * FROM {name}") for name in ("documents", "rejects")}  # noqa: S608 - our names
        pairs = run.sql("SELECT * FROM pairs") if self.settings.pairs.confirm == "resemblance" else None
        forced = forced_of(run, self.settings.keep.force)
        made = make_again(rows["documents"], rows["rejects"], self.metrics, threshold, pairs, forced=forced)
        return Run.of_memory(made.tables, made.metrics)

    def split(
        self,
        parts: Mapping[str, float | str],
        *,
        by: str | Sequence[str] = (),
        seed: int = 1,
        fixed: Mapping[str | int, str] | None = None,
        earlier: Any = None,  # noqa: ANN401 - of several libraries
    ) -> RunTable:
        """Divide the documents into parts, so that no found near-duplicates are in two of them, as `nddup split` does.

        Args:
            parts: the share of each part, of sum 1: `{"train": 0.8, "valid": 0.1, "test": 0.1}`.
            by: columns within whose values the shares are kept too; those that the run did not store are read from
                its inputs again.
            seed: another gives another split of the same sizes.
            fixed: the part of some documents, by id; all that are connected with them by pairs come with them.
            earlier: an earlier split, a table with `doc_id` and `part`: documents stay in its parts as far as they can.

        Returns:
            The table `split`, a `RunTable` in memory; ids are texts. For a run on Spark it is collected on the driver.

        Raises:
            ConfigError: for parts that cannot be, an id or a column that is nowhere, or columns that must be read again
                for a run without a folder on this machine.
            NddupError: if columns must be read again and the inputs are gone or changed.

        Cost: joins of narrow rows; memory: 40 bytes a pair, some 200 a document.
        """
        from nddup.splitting.assign_units import read_parts  # noqa: PLC0415
        from nddup.splitting.write_split import SplitAsked, read_columns_here, split_run  # noqa: PLC0415

        run = self._ask

        def read_columns(names: tuple[str, ...]) -> pa.Table:
            if not isinstance(run, DuckRun):
                raise ConfigError(
                    f"split: by {', '.join(names)}: the run stores no such column; name it in keep.policy"
                )
            return read_columns_here(RunFolder(LocalStorage(), run.path), names)

        named = None if fixed is None else {str(doc_id): part for doc_id, part in fixed.items()}
        rows = None if earlier is None else _as_arrow("split: earlier", earlier)
        if rows is not None:
            if absent := sorted({"doc_id", "part"} - set(rows.column_names)):
                raise ConfigError(f"split: earlier: no column {absent[0]}; there are {', '.join(rows.column_names)}")
            rows = (
                rows.select(["doc_id", "part"])
                .filter(rows["part"].is_valid())
                .cast(pa.schema({"doc_id": pa.string(), "part": pa.string()}))
            )
        columns = (by,) if isinstance(by, str) else tuple(by)
        split_run(run, SplitAsked(read_parts(parts), seed, columns, named, rows), read_columns)
        split = run.sql("SELECT * FROM split ORDER BY doc_id")
        run.forget()
        return table_of("answer", split)

    def diff(self, later: "Run") -> "RunDiff":
        """Say what changed from this run to a later one, as `nddup diff` does.

        Args:
            later: a run of the same kind: both of this process, or both on Spark.

        Returns:
            Counts, and the tables of the diff in memory; ids are texts. For runs on Spark they are collected on the
            driver.

        Raises:
            ConfigError: if only one of the runs is on Spark, or `later` is no run.

        Cost: joins of narrow rows, and some 300 bytes a document in memory.
        """
        if not isinstance(later, Run):
            raise ConfigError(f"diff: expected a run, got {type(later).__name__}; nddup.open opens the folder of one")
        if (self._frames is None) != (later._frames is None):  # noqa: SLF001 - another run
            raise ConfigError("diff: expected two runs of this process or two on Spark, got one of each")
        return compare_runs(self._ask, later._ask)  # noqa: SLF001

    def minhash(self, doc_id: str | int) -> Any:  # noqa: ANN401 - datasketch is imported when asked for
        """Return the signature of a document as a `datasketch.LeanMinHash`; see `nddup.api.run_object`.

        Raises:
            ConfigError: if datasketch cannot read the run's signatures, there is no such document, or it has no
                features.
        """
        from nddup.api.answers import minhash_of  # noqa: PLC0415

        return minhash_of(self._documents, self.settings, str(doc_id))

    def lsh(self, threshold: float | None = None, *, storage_config: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401
        """Return a `datasketch.MinHashLSH` of every document with a signature; see `nddup.api.run_object`.

        Args:
            threshold: threshold of the index; None: that of the run.
            storage_config: where datasketch keeps the index, such as Redis; None: in memory.
        """
        from nddup.api.answers import fill_lsh  # noqa: PLC0415

        return fill_lsh(self._documents, self.settings, threshold=threshold, storage_config=storage_config)

    def __repr__(self) -> str:
        """Show the summary in a terminal."""
        rows = [f"{line.name:<20} {line.number:>13,}   {line.note}".rstrip() for line in headline(self.metrics)]
        remarks = [f"note: {one_line(note)}" for note in notes(self.metrics)]
        return "\n".join([f"run {one_line(self._where).removeprefix('run ')}", *rows, *remarks])

    def _repr_html_(self) -> str:
        lines = [(line.name, line.number, line.note) for line in headline(self.metrics)]
        text = "".join(f"<p>note: {views.cell(note)}</p>" for note in notes(self.metrics))
        return views.table(("", "", ""), lines, caption=f"run {self._where}") + text

    @property
    def _is_levelled(self) -> bool:
        return self.settings.sketch.kind == "mod-pow2"

    @property
    def _where(self) -> str:
        return self._opened.path if self._opened is not None else "on Spark"

    @property
    def _documents(self) -> ds.Dataset:
        if isinstance(self.documents, RunTable):
            return self.documents.dataset
        return ds.dataset(self._ask.sql("SELECT doc_id, signature FROM documents"))

    @cached_property
    def _frames(self) -> "FramesRun | None":
        """The reader of Spark DataFrames, opened on first use; None for other runs."""
        return None if self._open_frames is None else self._open_frames()

    @property
    def _ask(self) -> FinishedRun:
        run = self._opened or self._frames
        if run is None:
            raise ConfigError("this run was made by hand: open the folder of a run with nddup.open")
        return run


def compare_runs(before: FinishedRun, after: FinishedRun) -> RunDiff:
    """Compare two runs of one engine; errors and cost as of `diff_finished`."""
    from nddup.diffing.diff_tables import diff_finished  # noqa: PLC0415

    difference = diff_finished(before, after)
    tables: dict[str, pa.Table] = {}
    for name, table in DIFF_TABLES.items():
        rows = after.sql(f"SELECT * FROM {name} ORDER BY {', '.join(table.names[:2])}")  # noqa: S608 - our names
        tables[name] = rows.select(table.names).cast(table.arrow)
    after.forget()
    return RunDiff(difference, **{name: table_of(name, rows) for name, rows in tables.items()})


def _dataset(path: str, name: str) -> ds.Dataset:
    """Return the Parquet files of a table as a dataset with all declared columns; without files, no rows."""
    folder, declared = Path(local_path(path), name), READABLE[name].arrow
    files = sorted(str(file) for file in folder.iterdir() if file.name[0] not in "_.") if folder.is_dir() else []
    return ds.dataset(files, declared, format=FORMAT) if files else ds.dataset(declared.empty_table())


def _counted(caller: str, n: int) -> int:
    try:
        rows = index(n)
    except TypeError:
        rows = -1
    if rows < 0:
        raise ConfigError(f"{caller}: expected a number of rows, got {n!r}")
    return rows


def _as_arrow(called: str, table: object) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    if hasattr(table, "iloc"):  # pandas
        return pa.Table.from_pandas(table, preserve_index=False)
    if hasattr(table, "__arrow_c_stream__"):  # Polars, RunTable, other libraries
        return pa.table(table)
    raise ConfigError(f"{called}: expected a table of Arrow, pandas or Polars, got {type(table).__name__}")


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open a finished run: its tables, SQL over them, and explanations of single decisions.

    Args:
        path: the folder of the run, on this machine or in a bucket: then a copy is fetched.

    Returns:
        The run; its tables are read on demand.

    Raises:
        OutputError: if the folder is not a finished run.
        IncompatibleSketchError: if its sketches have another format than this version's.
        ConfigError: for a folder on another file system: copy it, or use `nddup show`, which starts Spark.

    Cost: a tenth of a second, and reading one file footer per table; the first call takes a second or two, to load
    DuckDB and Arrow.

    Example:
        run = nddup.open("out/run")
        run.sql("SELECT source, count(*) AS n FROM documents GROUP BY source ORDER BY n DESC")
    """
    where = os.fspath(path)
    if is_bucket(where):
        from nddup.storage.bucket_run import BucketRun  # noqa: PLC0415 - most runs are on this machine

        where = BucketRun(where).fetch()
    return Run.of_folder(DuckRun(where))
