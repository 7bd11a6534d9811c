"""Read texts that a run did not store again from its inputs."""

from collections.abc import Mapping

import pyarrow as pa

from nddup.results.opening import is_read_here
from nddup.scanning.read_again import CHARACTERS
from nddup.stages.inputs_found import find_again, paths_of
from nddup.storage.local_storage import LocalStorage
from nddup.storage.run_folder import RunFolder


def read_texts(
    path: str, documents: Mapping[str, tuple[str, bytes]], *, master: str | None, characters: int | None = CHARACTERS
) -> pa.Table:
    """Return STORED_TEXTS of documents, read again from the inputs.

    Args:
        path: the run's folder.
        documents: source and content fingerprint of each document, by doc_id.
        master: the Spark master that the user asked for, or None; Spark starts only if the run or its inputs need it.
        characters: number of characters to keep of each text; None: all.

    Raises:
        ConfigError: if an input of the run no longer exists.
        NddupError: if a file was changed, added or removed since the run.
    """
    if is_read_here(path, master=master):
        folder = RunFolder(LocalStorage(), path)
        if is_read_here(*paths_of(folder), master=None):
            return _read_here(folder, documents, characters)

    from nddup.run.on_spark.documents import reopen_inputs  # noqa: PLC0415
    from nddup.run.session import start_session  # noqa: PLC0415
    from nddup.storage.session_tables import SparkFolder  # noqa: PLC0415

    spark = start_session(master=master, settings={})
    return reopen_inputs(spark, SparkFolder(spark, path)).find_texts(documents, characters).toArrow()


def _read_here(folder: RunFolder, documents: Mapping[str, tuple[str, bytes]], characters: int | None) -> pa.Table:
    from nddup.local.outputs import Reader  # noqa: PLC0415
    from nddup.local.workers import Workers  # noqa: PLC0415
    from nddup.settings.plan import (  # noqa: PLC0415
        processes_of,
        record_limits,
        text_rule,
    )

    collection, config = find_again(folder, LocalStorage())
    with Workers(processes_of(config)) as workers:
        return Reader(collection, text_rule(config), record_limits(config), workers).find_texts(documents, characters)
