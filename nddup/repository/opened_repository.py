"""A repository as an object: its commands, on the embedded engine. It holds one version until it is refreshed.

A query must answer soon after a process starts, so the other methods import what only they need when they are called.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import pyarrow as pa

from nddup.embedded.read_records import number_texts
from nddup.embedded.workers import Progress, Workers
from nddup.engines.choose import choose_engine
from nddup.errors import ConfigError
from nddup.repository.bucket_place import find_place
from nddup.repository.commits import Commit, read_commit, versions_in
from nddup.repository.identity import Identity
from nddup.repository.list_matches import Ask
from nddup.repository.query_stored import Queries, find_matches, read_queries, require_bands, sketch_texts
from nddup.repository.segment_files import read_all
from nddup.repository.snapshot import Snapshot
from nddup.scanning.collection import Collection, Files, find_files
from nddup.scanning.input_files import is_of_this_machine
from nddup.settings.plan import processes_of, record_limits
from nddup.settings.schema import Config
from nddup.stages.losses import require_readable
from nddup.storage.local_storage import LocalStorage, require_apart, require_new
from nddup.tables import VERDICTS

if TYPE_CHECKING:
    from nddup.engines.duck import MemoryRun
    from nddup.repository.prove_version import Proof
    from nddup.repository.write_versions import Compacted, Written


Path: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = Path | Sequence[Path]

Inputs: TypeAlias = Paths | Mapping[str, str] | Any
"""One or several paths of files and folders; texts by id; or a table of pandas, Polars or Arrow, or a list of
dictionaries, of `id`, and a title and a text by their usual names."""

NO_TEXTS = pa.table({"id": pa.nulls(0, pa.string()), "text": pa.nulls(0, pa.string())})

Given: TypeAlias = list[str] | pa.Table
"""A list of paths, or TEXTS."""


def paths_given(inputs: Paths) -> list[str]:
    """Return one or several paths as a list of strings.

    Example:
        >>> from pathlib import PurePosixPath
        >>> paths_given("a.jsonl"), paths_given([PurePosixPath("b"), "c"])
        (['a.jsonl'], ['b', 'c'])
    """
    return [os.fspath(path) for path in ([inputs] if isinstance(inputs, str | os.PathLike) else inputs)]


def read_given(inputs: Inputs, read: tuple[str, ...] = (), *, in_rows: bool = False) -> Given:
    """Return paths as a list, and texts by id or a table as TEXTS.

    Args:
        read: the columns of a table that are stored with its rows.
        in_rows: whether the rows of a table arrive in their order; else in that of their ids, as texts by id do.

    Raises:
        ConfigError: if it is no table, or one of Spark, or has no column of ids or of texts.
    """
    if isinstance(inputs, list | tuple) and not inputs:  # no rows, as for `find_duplicates`
        inputs = {}
    if isinstance(inputs, Mapping):
        inputs = [{"id": name, "text": text} for name, text in inputs.items()] or NO_TEXTS
        read, in_rows = (), False  # texts by id have no other columns
    if _are_paths(inputs):
        return paths_given(inputs)
    from nddup.embedded.given_tables import (  # noqa: PLC0415
        as_table,
        choose_columns,
        named,
        to_arrow,
        wanted_columns,
    )

    with named("add"):
        table = as_table(inputs, partial(wanted_columns, id="id", text=None, read=read))
        if hasattr(table, "sparkSession"):
            raise ConfigError("a table of Spark: write it as Parquet, and add its folder")
        rows = to_arrow(table, choose_columns(table, "id", None, read, advice="call it text"))
        return number_texts(rows, id="id", text="text", policy=rows["policy"] if read else None, in_rows=in_rows)


def _spelled(ids: Iterable[object]) -> list[str]:
    for one in ids:
        if not isinstance(one, str | Integral):
            raise ConfigError(f"remove: expected ids as strings, got {type(one).__name__}")
    return [str(one) for one in ids]


def _are_paths(inputs: Inputs) -> bool:
    is_list = isinstance(inputs, list | tuple) and all(isinstance(one, str | os.PathLike) for one in inputs)
    return is_list or isinstance(inputs, str | os.PathLike)


class Reading(NamedTuple):
    """What reads a batch: workers, which may read files on Spark, and the storage that lists and opens the files."""

    workers: Workers
    files: Files


def reading_of(inputs: Given, config: Config, engine: str | None) -> Reading:
    """Choose what reads the inputs, as for `nddup run`: with `auto`, Spark only where the embedded engine cannot.

    Args:
        inputs: paths, or given texts, which are read in this process.
        config: the settings; those of the caller, `engine`, `spark` and `local.memory`, decide.
        engine: `auto`, `local` or `spark`, instead of the setting `engine`.

    Raises:
        ConfigError: if `local` is asked for but the inputs need Spark, or `spark` for given texts.
    """
    config = config.model_copy(update={"engine": engine}) if engine else config
    count = processes_of(config)
    if isinstance(inputs, pa.Table):
        if config.engine == "spark":
            raise ConfigError("engine: spark reads files; texts that are given are read in this process")
        return Reading(Workers(count), LocalStorage())
    if choose_engine(inputs, None, config, master=None).engine == "local":
        return Reading(Workers(count), LocalStorage())

    from nddup.spark.java import is_small  # noqa: PLC0415 - Spark is loaded only where it is needed
    from nddup.spark.session import start_session  # noqa: PLC0415
    from nddup.spark.steps.documents import WorkersOnSpark  # noqa: PLC0415

    spark = start_session(master=None, settings=config.spark, is_small=is_small(list(inputs)))
    workers = WorkersOnSpark(count, spark=spark)
    return Reading(workers, workers.storage)


def find_source(inputs: Given, config: Config, files: Files) -> Collection | pa.Table:
    """Return the inputs in the form that workers read: given texts as they are, paths as a collection.

    Raises:
        ConfigError: if a path is missing.
        NddupError: if more files than `input.max_unreadable` cannot be read.
    """
    if isinstance(inputs, pa.Table):
        return inputs
    collection = find_files(files, list(inputs), config.input)
    require_readable(collection.unread, config.input.max_unreadable)
    return collection


def require_delta(inputs: Given, reading: Reading, output: str, repo: str) -> None:
    """Refuse an output of a batch that cannot be written, or that lies in an input or in the repository.

    Raises:
        ConfigError: if the inputs are no files that this machine reads.
        OutputError: for the folder.
    """
    if not isinstance(inputs, list) or not isinstance(reading.files, LocalStorage):
        raise ConfigError("--output: only files that this machine reads are written again (--engine local)")
    require_new(LocalStorage(), [*inputs, *filter(is_of_this_machine, [repo])], output)


class Repository:
    """A growing collection whose near-duplicates are known."""

    def __init__(self, path: str, version: int | None = None, *, caller: Config | None = None) -> None:
        """Open a version, or the newest.

        Args:
            path: its folder, or a URL.
            version: the version; None: the newest.
            caller: settings of the caller, of which `engine`, `local` and `spark` say how and where to compute; None:
                the defaults.

        Raises:
            OutputError: if there is none, its layout differs, or sketches made here cannot be compared with its own.
        """
        self._repo = find_place(path)
        self.progress: Progress | None = None
        commit = read_commit(self._repo, version)
        self._identity = Identity.read(commit.repository, repo=str(self._repo)).on(caller)
        self.snapshot = Snapshot(self._repo, commit, self._identity)

    @property
    def place(self) -> str:
        """Where it lies, however its path is spelled."""
        return self._repo.full_name()

    @classmethod
    def create(cls, path: str, identity: Identity) -> Self:
        """Make an empty repository: see `nddup.repository.create`."""
        from nddup.repository.write_versions import create  # noqa: PLC0415

        create(find_place(path), identity)
        return cls(path, caller=identity.config)

    @property
    def version(self) -> int:
        """The number of the version being read."""
        return self.snapshot.commit.version

    def refresh(self) -> Self:
        """Switch to the newest version. Cost: a listing, where it is this one."""
        if versions_in(self._repo)[-1] != self.version:
            self._read(read_commit(self._repo))
        return self

    def _read(self, commit: Commit) -> None:
        if commit.version != self.version:
            self.snapshot = Snapshot(self._repo, commit, self._identity)

    def workers(self) -> Workers:
        """Return workers with the threads and processes that the settings ask for."""
        return Workers(processes_of(self._identity.config), progress=self.progress)

    def _reading(self, inputs: Given, engine: str | None) -> Reading:
        """Return what reads a batch or queries, set to report progress."""
        reading = reading_of(inputs, self._identity.config, engine)
        reading.workers.progress = self.progress
        return reading

    def add(
        self,
        inputs: Inputs,
        *,
        replace: bool = False,
        id_prefix: str | None = None,
        engine: str | None = None,
        output: str | None = None,
    ) -> "Written":
        """Add a batch as one version; make none if nothing is stored or replaced.

        Args:
            inputs: a path or several; texts by id; or any table but one of Spark, of `id`, and of a title and a text by
                their usual names (`title`; `content`, `text`, `body`, …, `messages`), as `nddup.find_duplicates` reads
                it.
            replace: whether a live id with other content replaces the stored document.
            id_prefix: prefix of ids made up from file and record.
            engine: `auto`, `local` or `spark`: what reads the files; None: as the repository was opened with.
            output: a new folder for the batch without duplicates: its files, with only the documents that were not
                live before and are kept now, unchanged. It is written before the version is committed, and removed
                if that fails.

        Raises:
            ConfigError: for missing inputs, for what is no table, for a table without an id or a text, for made-up ids
                without a prefix, and for an output of inputs that are no files of this machine.
            OutputError: if the repository lies in an input, or an input in it; if the output exists or cannot be
                written.
            LostRaceError: if another writer committed meanwhile; nothing was changed.
        """
        from nddup.embedded.rewrite import Rewriter  # noqa: PLC0415
        from nddup.repository.commits import claimed  # noqa: PLC0415
        from nddup.repository.write_versions import (  # noqa: PLC0415
            Delta,
            add,
            read_batch,
        )
        from nddup.stages.inputs_found import name_readers, with_columns  # noqa: PLC0415

        config = self._identity.config
        given = read_given(inputs, config.keep.read, in_rows=config.keep.order.is_of_rows)
        reading = self._reading(given, engine)
        with reading.workers as workers, claimed(self._repo):
            self.refresh()
            if isinstance(given, list):
                require_apart(LocalStorage(), given, self._repo.full_name(), name="REPO")
            if output is not None:
                require_delta(given, reading, output, self._repo.full_name())
            source = find_source(given, config, reading.files)
            if config.keep.read and isinstance(source, Collection):
                is_added = bool(self.snapshot.commit.segments)
                asked = name_readers(config.keep)
                source = with_columns(reading.files, source, config.keep.read, asked=asked, is_added=is_added)
            batch = read_batch(self.snapshot, source, workers, replace=replace, id_prefix=id_prefix)
            delta = None
            if output is not None and isinstance(source, Collection):
                empty = VERDICTS.arrow.empty_table()
                rewriter = Rewriter(
                    source, empty, is_tagging=False, is_first=False, limits=record_limits(self._identity.config)
                )
                delta = Delta(batch, rewriter, output, workers)
            before = self.snapshot.commit
            try:
                written = add(self.snapshot, batch, workers, None if delta is None else delta.write)
            except BaseException as error:
                if delta is not None:
                    delta.withdraw(before, self._repo, error)
                raise
        if written.commit is not None:
            self._read(written.commit)
        return written

    def query(self, texts: str | Sequence[str] | Mapping[str, str], ask: Ask | None = None) -> pa.Table:
        """Return MATCHES of texts, given by id, or in order with `query_id` their number from 0.

        Args:
            texts: pages or plain texts; markup is removed as `input.markup` says. A string is one text.
            ask: the score bands, how many matches, and among which documents; None: near-duplicates at
                `pairs.threshold`.

        Raises:
            ConfigError: for bands below the `lowest` of the repository, and for texts that are no strings.

        Cost: some milliseconds; the first call also loads what stays in memory.

        Example:
            repo.query({"new.html": page}, Ask(bands=(60, 70, 80)))
        """
        return find_matches(self.snapshot, sketch_texts(self._identity, texts), ask or Ask())

    def query_files(self, inputs: Paths, ask: Ask | None = None, *, engine: str | None = None) -> tuple[pa.Table, int]:
        """Return MATCHES of the documents in files and folders, and how many records were rejected."""
        matches, queries = self.match_files(inputs, ask, engine=engine)
        return matches, queries.rejects

    def match_files(
        self, inputs: Paths, ask: Ask | None = None, *, engine: str | None = None
    ) -> tuple[pa.Table, Queries]:
        """Return MATCHES of the documents in files and folders, and these documents with what could not be read."""
        require_bands(self._identity, ask or Ask(), name=str(self._repo))
        config, paths = self._identity.config, paths_given(inputs)
        reading = self._reading(paths, engine)
        with reading.workers as workers:
            queries = read_queries(self._identity, find_source(paths, config, reading.files), workers)
            return find_matches(self.snapshot, queries, ask or Ask(), workers), queries

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables of this version, as a run over its live documents would give them."""
        from nddup.repository.live_tables import live_tables  # noqa: PLC0415

        return live_tables(self.snapshot)

    def write_tables(self, output: str) -> dict[str, Any]:
        """Write this version as the folder of a finished run; return its metrics."""
        from nddup.repository.live_tables import write_run  # noqa: PLC0415

        return write_run(self.snapshot, output)

    def open_run(self) -> "MemoryRun":
        """Return this version as a run in memory."""
        from nddup.repository.live_tables import open_version  # noqa: PLC0415

        return open_version(self.snapshot)

    def changes(self) -> pa.Table:
        """Return CHANGES of this version; empty if it changed nothing, as one made by `compact`."""
        commit = self.snapshot.commit
        named = [segment for segment in commit.segments if segment.name == commit.changes]
        return read_all(self._repo, named, "changes")

    def check(self) -> "list[Proof]":
        """Check the promises of this version; return each with what was compared."""
        from nddup.repository.prove_version import prove  # noqa: PLC0415

        with self.workers() as workers:
            return list(prove(self.snapshot, workers))

    def compact(self, *, days: float | None = None) -> "Compacted":
        """Merge all segments, drop removed documents, and remove segments out of use for `days` (None: 7).

        Raises:
            ConfigError: for less than 0 days.
        """
        from nddup.repository.commits import claimed  # noqa: PLC0415
        from nddup.repository.write_versions import DAYS, compact  # noqa: PLC0415

        if days is not None and not days >= 0:
            raise ConfigError(f"--days {days:g}: expected 0 or more days")
        with claimed(self._repo) as claim:
            done = compact(self.refresh().snapshot, claim, days=DAYS if days is None else days)
        if done.commit is not None:
            self._read(done.commit)
        return done

    def unknown(self, ids: Sequence[str]) -> list[str]:
        """Return the ids that are not live, ascending, each once."""
        wanted = pa.array(sorted(set(ids)), pa.string())
        absent: list[str] = wanted.filter(pa.array(self.snapshot.find_ids(wanted) < 0)).to_pylist()
        return absent

    def removed_before(self, ids: Sequence[str]) -> set[str]:
        """Return which of some ids a stored version removed. Cost: the changes of the versions until all are found."""
        from nddup.repository.write_versions import removed_ids  # noqa: PLC0415

        wanted, gone = set(ids), set[str]()
        for removed in removed_ids(self._repo) if wanted else ():
            gone |= wanted & removed
            if gone == wanted:
                break
        return gone

    def remove(self, ids: str | int | Sequence[str | int]) -> "tuple[Written, list[str]]":
        """Remove documents as one version; return it and the ids that are not live. A string or a number is one id.

        Raises:
            ConfigError: for anything but strings and whole numbers.
        """
        from nddup.repository.commits import claimed  # noqa: PLC0415
        from nddup.repository.write_versions import remove  # noqa: PLC0415

        with self.workers() as workers, claimed(self._repo):
            self.refresh()
            written, unknown = remove(self.snapshot, _spelled([ids] if isinstance(ids, str | int) else ids), workers)
        if written.commit is not None:
            self._read(written.commit)
        return written, unknown
