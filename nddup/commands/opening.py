"""A finished run for a command that only reads it: opened in this process where that is possible, else on Spark."""

from typing import NamedTuple

from nddup.opened.finished_run import FinishedRun
from nddup.storage.machine import is_local, is_submitted
from nddup.storage.run_folder import RunFolder


class Opened(NamedTuple):
    """A finished run, and its folder for what a command writes into it."""

    run: FinishedRun
    folder: RunFolder


def open_run(path: str, *, master: str | None) -> Opened:
    """Open a finished run; Spark is started only where it is needed.

    Args:
        path: the folder of the run.
        master: the Spark master that was asked for.

    Raises:
        OutputError: if the folder is not a finished run.
        ConfigError: if Spark is needed and does not start.
    """
    if master is None and not is_submitted() and is_local(path):
        from nddup.opened.duck import DuckRun  # noqa: PLC0415 - neither engine is loaded for the other
        from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415

        return Opened(DuckRun(path), RunFolder(LocalStorage(), path))

    from nddup.opened.spark import SparkRun  # noqa: PLC0415
    from nddup.run.session import start_session  # noqa: PLC0415
    from nddup.storage.spark_folder import SparkFolder  # noqa: PLC0415

    spark = start_session(master=master, settings={})
    return Opened(SparkRun(spark, path), SparkFolder(spark, path))
