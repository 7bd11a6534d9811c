"""The inputs that can be added to a repository or used as queries, and the engine that reads them."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from nddup.errors import ConfigError
from nddup.local.reading.number_texts import number_texts
from nddup.local.reading.workers import Workers
from nddup.run.engines import choose_engine
from nddup.run.limits import require_readable
from nddup.scanning.collection import Collection, Files, find_files
from nddup.settings.derive import processes_of
from nddup.settings.schema import Config
from nddup.storage.local_storage import LocalStorage

Path: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = Path | Sequence[Path]

Inputs: TypeAlias = Paths | Mapping[str, str] | pa.Table
"""One or several paths of files and folders; texts by id; or an Arrow table of `id` and `text`."""

Given: TypeAlias = list[str] | Mapping[str, str] | pa.Table
"""The same, with a list of paths."""


def paths_given(inputs: Paths) -> list[str]:
    """Return one or several paths as a list of strings.

    Example:
        >>> from pathlib import PurePosixPath
        >>> paths_given("a.jsonl"), paths_given([PurePosixPath("b"), "c"])
        (['a.jsonl'], ['b', 'c'])
    """
    return [os.fspath(path) for path in ([inputs] if isinstance(inputs, str | os.PathLike) else inputs)]


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
    if isinstance(inputs, pa.Table | Mapping):
        if config.engine == "spark":
            raise ConfigError("engine: spark reads files; texts that are given are read in this process")
        return Reading(Workers(count), LocalStorage())
    if choose_engine(inputs, "", config, master=None).engine == "local":
        return Reading(Workers(count), LocalStorage())

    from nddup.run.java import is_small  # noqa: PLC0415 - Spark is loaded only where it is needed
    from nddup.run.on_spark.workers_on_spark import WorkersOnSpark  # noqa: PLC0415
    from nddup.run.session import start_session  # noqa: PLC0415

    spark = start_session(master=None, settings=config.spark, is_small=is_small(list(inputs)))
    workers = WorkersOnSpark(count, spark=spark)
    return Reading(workers, workers.storage)


def find_source(inputs: Given, config: Config, files: Files) -> Collection | pa.Table:
    """Return the inputs in the form that workers read: given texts as a table, paths as a collection.

    Raises:
        ConfigError: if a path is missing.
        NddupError: if more files than `input.max_unreadable` cannot be read.
    """
    if isinstance(inputs, pa.Table):
        return number_texts(inputs, id="id", text="text")
    if isinstance(inputs, Mapping):
        columns = [pa.array(inputs.keys(), pa.string()), pa.array(inputs.values(), pa.string())]
        return number_texts(pa.Table.from_arrays(columns, names=["id", "text"]), id="id", text="text")
    found = find_files(files, list(inputs), config.input)
    require_readable(found.unread, config.input.max_unreadable)
    return found
