"""The report of a finished run, written into its folder."""

from collections.abc import Iterable

from pyspark.sql import SparkSession

from nddup.metrics import RunMetrics
from nddup.redaction import drop_login
from nddup.report.data import chunks
from nddup.report.gather import gather
from nddup.report.write import write_report
from nddup.storage.spark_folder import SparkFolder


def report_run(spark: SparkSession, run: str, *, asked: Iterable[str] = ()) -> str:
    """Write `report/` into the folder of a finished run, replacing one that is there.

    Args:
        spark: the session.
        run: the run's folder.
        asked: clusters whose texts are read again from the inputs, where they are not stored.

    Returns:
        The path of its page.

    Raises:
        OutputError: if the folder is no finished run, or cannot be written.
        ConfigError: if there is no such cluster, or an input is gone.
        NddupError: if inputs changed since the run, and must be read again.
    """
    folder = SparkFolder(spark, run)
    metrics = RunMetrics.read(folder.open(), origin=f"{folder.path}/metrics.json")
    shown = gather(spark, folder, metrics, asked)
    folder.remove("report")
    write_report(lambda name, text: folder.write_text(f"report/{name}", text), chunks(shown))
    return f"{drop_login(folder.path)}/report/index.html"
