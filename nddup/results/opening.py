"""Open a finished run for a command that only reads it: in this process where possible, else on Spark.

And read texts again from its inputs that it did not store.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nddup.errors import ConfigError, NddupError
from nddup.scanning.input_files import refuse_foreign
from nddup.storage.local_storage import is_readable, is_submitted

if TYPE_CHECKING:  # these load slowly, and not every command needs them: `inspect` opens no run, `show` no list
    import pyarrow as pa

    from nddup.embedded.workers import Workers
    from nddup.engines.engine import FinishedRun, TextPlace
    from nddup.results.list_questions import Files, ReferenceFile
    from nddup.scanning.collection import Files as InputFiles
    from nddup.stages.inputs_found import Again
    from nddup.storage.run_folder import RunFolder


QUICK_BYTES = 4 << 30
"""Bytes of files that are read in blocks, some of whose records are read again sooner than processes have started."""


class Opened(NamedTuple):
    """A finished run, and the file access that a command needs beside it, by the same engine."""

    run: "FinishedRun"

    folder: "RunFolder"
    """The run's folder, for files that the command writes."""

    files: "Files"
    """File system of the other files that the command reads."""

    read_list: "Callable[[ReferenceFile], Any]"
    """Reads the entries of a reference list into the form that `FinishedRun.see` takes."""


def is_read_here(*paths: str, master: str | None) -> bool:
    """Return whether a command reads these files and folders in this process, without Spark.

    Args:
        paths: files and folders that the command reads.
    """
    return master is None and not is_submitted() and all(map(is_readable, paths))


def open_run(path: str, *, master: str | None, beside: tuple[str, ...] = ()) -> Opened:
    """Open a finished run; start Spark only if it is needed.

    Args:
        path: the folder of the run.
        beside: other files that the command reads.

    Raises:
        OutputError: if the folder is not a finished run.
        ConfigError: if Spark is needed and does not start.
    """
    if is_read_here(path, *beside, master=master):
        return open_here(path)

    from nddup.spark.java import is_small  # noqa: PLC0415
    from nddup.spark.session import start_session  # noqa: PLC0415 - neither engine is loaded for the other

    return open_on_spark(start_session(master=master, settings={}, is_small=is_small([path, *beside])), path)


def open_files(*paths: str, master: str | None, settings: Mapping[str, str]) -> "Files":
    """Return the file system for reading these paths: this machine's, or Hadoop's.

    Args:
        paths: files and folders that the command reads.
        settings: Spark settings; any setting means that the user wants Spark.

    Raises:
        ConfigError: if Spark is needed and does not start.
    """
    refuse_foreign(paths)
    if not settings and is_read_here(*paths, master=master):
        from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415

        return LocalStorage()

    from nddup.spark.java import is_small  # noqa: PLC0415
    from nddup.spark.session import start_session  # noqa: PLC0415
    from nddup.spark.session_files import files_of  # noqa: PLC0415

    return files_of(start_session(master=master, settings=settings, is_small=is_small(paths)))


def open_here(path: str) -> Opened:
    """Open a run on this machine in this process."""
    from nddup.engines.duck import DuckRun  # noqa: PLC0415
    from nddup.remote.addresses import is_remote  # noqa: PLC0415
    from nddup.remote.kept_copies import find_kept  # noqa: PLC0415
    from nddup.storage.local_storage import LocalStorage, local_path  # noqa: PLC0415
    from nddup.storage.run_folder import RunFolder  # noqa: PLC0415

    def read_list(file: "ReferenceFile") -> Any:  # noqa: ANN401 - a reader of Arrow
        from nddup.reading.reference_lists import read_list  # noqa: PLC0415 - not for `show`

        path = str(find_kept(file.path)) if is_remote(file.path) else local_path(file.path)
        return read_list(path, file.layout, compression=file.compression)

    return Opened(DuckRun(path), RunFolder(LocalStorage(), path), LocalStorage(), read_list)


def open_on_spark(spark: Any, path: str) -> Opened:  # noqa: ANN401 - a SparkSession
    """Open a run with Spark."""
    from nddup.spark.engine import SparkRun  # noqa: PLC0415
    from nddup.spark.session_files import files_of  # noqa: PLC0415
    from nddup.spark.session_tables import SparkFolder  # noqa: PLC0415

    run = SparkRun(spark, path)

    def read_list(file: "ReferenceFile") -> Any:  # noqa: ANN401 - a DataFrame
        from nddup.spark.hadoop_files import read_list  # noqa: PLC0415 - not for `show`

        return read_list(run.session, file.path, file.layout, compression=file.compression, size=file.size)

    return Opened(run, SparkFolder(spark, path), files_of(spark), read_list)


def read_texts(
    path: str, documents: "Mapping[str, TextPlace]", *, master: str | None, is_whole: bool = False
) -> "pa.Table":
    """Return STORED_TEXTS of documents, read again from the inputs.

    Args:
        documents: where the text of each document stands, by doc_id.
        master: the Spark master that the user asked for, or None; Spark starts only if the run or its inputs need it.
        is_whole: whether to keep the whole of each text, not its first `read_again.CHARACTERS`.

    Raises:
        ConfigError: if an input of the run no longer exists.
        NddupError: if a file was changed, added or removed since the run.
    """
    from nddup.scanning.read_again import CHARACTERS  # noqa: PLC0415
    from nddup.stages.inputs_found import paths_of  # noqa: PLC0415
    from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415
    from nddup.storage.run_folder import RunFolder  # noqa: PLC0415

    characters = None if is_whole else CHARACTERS
    if is_read_here(path, master=master):
        folder = RunFolder(LocalStorage(), path)
        if is_read_here(*paths_of(folder), master=None):
            return _read_here(folder, documents, characters)

    from nddup.spark.session import start_session  # noqa: PLC0415
    from nddup.spark.session_tables import SparkFolder  # noqa: PLC0415
    from nddup.spark.steps.documents import reopen_inputs  # noqa: PLC0415

    spark = start_session(master=master, settings={})
    return reopen_inputs(spark, SparkFolder(spark, path)).find_texts(_named(documents), characters).toArrow()


def read_whole_texts(path: str, documents: "Mapping[str, TextPlace]", *, master: str | None) -> dict[str, str]:
    """Return the whole texts of documents, by doc_id; arguments and errors as of `read_texts`.

    Raises:
        NddupError: if the inputs no longer hold a document.
    """
    read = read_texts(path, documents, master=master, is_whole=True)
    texts = dict(zip(read["doc_id"].to_pylist(), read["text"].to_pylist(), strict=True))
    if missing := sorted(documents.keys() - texts.keys()):
        raise NddupError(f"the inputs of {path} no longer hold document {missing[0]}; run the job again")
    return texts


def _named(documents: "Mapping[str, TextPlace]") -> dict[str, tuple[str, bytes]]:
    return {doc_id: (place.source, place.content) for doc_id, place in documents.items()}


def _read_here(folder: "RunFolder", documents: "Mapping[str, TextPlace]", characters: int | None) -> "pa.Table":
    from nddup.embedded.outputs import Reader  # noqa: PLC0415
    from nddup.embedded.workers import Workers  # noqa: PLC0415
    from nddup.scanning.record_blocks import are_blocks  # noqa: PLC0415
    from nddup.settings.plan import processes_of, record_limits, text_rule  # noqa: PLC0415
    from nddup.stages.inputs_found import find_again  # noqa: PLC0415
    from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415

    collection, config = find_again(folder, LocalStorage())
    is_quick = all(are_blocks(group.head) for group in collection.groups)
    is_quick &= sum(file.size for file in collection.listing.files) < QUICK_BYTES
    if is_quick:  # in one process; files read whole need no pass that counts the records of their parts
        collection = collection.read_whole({place.source for place in documents.values()})
    with Workers(1 if is_quick else processes_of(config)) as workers:
        reader = Reader(collection, text_rule(config), record_limits(config), workers)
        places = reader.find_places((place.source, place.record) for place in documents.values())
        return reader.find_texts(_named(documents), characters, places)


def find_inputs_again(folder: "RunFolder", files: "InputFiles") -> "Again":
    """Find the inputs of a run again, as `find_again`; that one is missing is a failure here, no wrong use.

    Raises:
        NddupError: if an input is gone, or changed.
    """
    from nddup.stages.inputs_found import find_again  # noqa: PLC0415

    try:
        return find_again(folder, files)
    except ConfigError as error:
        raise NddupError(f"{error}; the inputs of {folder.path} are read again") from error


def read_columns_with(
    workers: "Workers", files: "InputFiles", again: "Again", names: tuple[str, ...], *, asked: str | None
) -> "pa.Table":
    """Read columns of all records of a run again.

    Args:
        workers: they read the files, here or on Spark.
        names: the columns, paths as in `keep.policy`.
        asked: what asks for them, for the message; None: they may be missing.

    Returns:
        source, record, `policy`: the values, in the order of the names; a null list for a reject.

    Raises:
        ConfigError: if no record at the start of any file has a column.
    """
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    from nddup.embedded.collapse import number_in_file  # noqa: PLC0415
    from nddup.embedded.workers import in_collection_order  # noqa: PLC0415
    from nddup.scanning.read_again import Columns  # noqa: PLC0415
    from nddup.settings.plan import record_limits  # noqa: PLC0415
    from nddup.stages.inputs_found import with_columns  # noqa: PLC0415

    collection = with_columns(files, again.collection, names, asked=asked or "", is_added=asked is None)
    rows = in_collection_order(workers.scan(collection, Columns(), record_limits(again.config)), collection)
    numbers = pa.array(np.asarray(number_in_file(rows["source"]), np.int64))
    return pa.table({"source": rows["source"], "record": numbers, "policy": rows["policy"]})


def see_columns(opened: Opened, names: tuple[str, ...], kind: str, *, master: str | None) -> tuple[list[str], str]:
    """Let queries over a run read columns of its records of one kind: those it stored, or else read again.

    Args:
        names: the columns, paths as in `keep.policy`.
        kind: of the files that have them; other files are not read.

    Returns:
        The SQL of each column over `documents AS d`, and of a join that it needs; nothing if no file is of the kind.

    Raises:
        NddupError: if an input must be read, and is gone or changed.

    Cost: one pass over the files of the kind, unless the run stored the columns.
    """
    from dataclasses import replace  # noqa: PLC0415

    from nddup.settings.plan import processes_of  # noqa: PLC0415
    from nddup.stages.inputs_found import config_of, paths_of  # noqa: PLC0415
    from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415

    stored = list(config_of(opened.folder).keep.read)
    if all(name in stored for name in names):
        return [f"element_at(d.policy, {stored.index(name) + 1})" for name in names], ""
    is_here = is_read_here(opened.run.path, *paths_of(opened.folder), master=master)
    files: Any = LocalStorage() if is_here else opened.files
    again = find_inputs_again(opened.folder, files)
    groups = tuple(group for group in again.collection.groups if group.head.format.kind == kind)
    if not groups:
        return [], ""
    again = again._replace(collection=replace(again.collection, groups=groups))
    if is_here:
        from nddup.embedded.workers import Workers  # noqa: PLC0415

        with Workers(processes_of(again.config)) as workers:
            rows: Any = read_columns_with(workers, files, again, names, asked=None)
    else:
        from nddup.spark.engine import frame_of  # noqa: PLC0415
        from nddup.spark.steps.documents import WorkersOnSpark  # noqa: PLC0415

        session = cast("Any", opened.run).session
        with WorkersOnSpark(1, spark=session) as workers:
            rows = frame_of(session, read_columns_with(workers, files, again, names, asked=None))
    opened.run.see("read_again", rows)
    values = [f"element_at(v.policy, {at})" for at in range(1, len(names) + 1)]
    return values, " LEFT JOIN read_again AS v ON d.source = v.source AND d.record = v.record"
