"""The folder of a finished run, opened as an object."""

from nddup.api.run_object import Run
from nddup.opened.duck import DuckRun


def open_run(path: str) -> Run:
    """Open a finished run: its tables, SQL over them, and what is said of single decisions.

    Args:
        path: the folder of the run, on this machine.

    Returns:
        The run; nothing of its tables is read before it is asked for.

    Raises:
        OutputError: if the folder is not a finished run.
        IncompatibleSketchError: if its sketches are of another format than this version's.
        ConfigError: for a folder of another file system: copy it, or ask `nddup show`, which starts Spark.

    Cost: a tenth of a second, and the footer of a file for each table; the first time a second or two, to load DuckDB
    and Arrow.

    Example:
        run = nddup.open("out/run")
        run.sql("SELECT source, count(*) AS n FROM documents GROUP BY source ORDER BY n DESC")
    """
    return Run.of_folder(DuckRun(path))
