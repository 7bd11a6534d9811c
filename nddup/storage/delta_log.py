"""The kept documents of a run as a Delta table: `output.kept=delta`.

The rows are written as Parquet, and the log beside them by its own library in one commit, after all rows: without the
log the folder is no Delta table, with it the table is whole.
"""

from importlib.util import find_spec

from nddup.errors import ConfigError, OutputError, first_line
from nddup.scanning.input_files import local_path

DELTA = "delta"


def require_delta(form: str, *, is_on_spark: bool) -> None:
    """Refuse `output.kept=delta` where it cannot be written, before anything is read.

    Raises:
        ConfigError: on Spark, or without the library.
    """
    if form != DELTA:
        return
    if is_on_spark:
        raise ConfigError(
            "output.kept=delta: only the embedded engine writes it; write parquet, or give --engine local"
        )
    if find_spec("deltalake") is None:
        raise ConfigError("output.kept=delta: writing it needs pip install 'nddup[delta]'")


def commit_table(folder: str) -> None:
    """Make a folder of Parquet a Delta table, in one commit.

    Raises:
        OutputError: if the log cannot be written.
    """
    from deltalake import convert_to_deltalake  # noqa: PLC0415 - an extra

    try:
        convert_to_deltalake(local_path(folder))
    except Exception as error:
        raise OutputError(f"{folder}: its log cannot be written ({first_line(error)})") from error
