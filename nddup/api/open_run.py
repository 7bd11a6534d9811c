"""Open the folder of a finished run as an object."""

import os

from nddup.api.run_object import Run
from nddup.opened.duck import DuckRun


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open a finished run: its tables, SQL over them, and explanations of single decisions.

    Args:
        path: the folder of the run, on this machine.

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
    return Run.of_folder(DuckRun(os.fspath(path)))
