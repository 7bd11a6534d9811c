"""`nddup diff` on Spark: runs on any file system. Steps and result are those of this machine."""

from typing import Any

from pyspark.sql import SparkSession

from nddup.diffing.diff_tables import (
    HEADER,
    PAGE,
    Difference,
    diff_finished,
    draw_page,
    queries,
    require_room,
    spell_header,
)
from nddup.results.opening import open_on_spark
from nddup.spark.session_files import files_at
from nddup.spark.session_tables import UNMARKED


def diff_on_spark(spark: SparkSession, before: str, after: str, output: str | None) -> Difference:
    """Compare two runs, and write the output, if any; errors as of `write_diff.diff_here`."""
    earlier: Any = open_on_spark(spark, before).run
    later: Any = open_on_spark(spark, after).run
    if output is None:
        return diff_finished(earlier, later)
    storage = files_at(spark, output)
    require_room(storage, (before, after), output)
    difference = diff_finished(earlier, later)
    try:
        storage.make_folder(output)
        for name, text in queries().items():
            later.answer(text).write.options(compression="zstd", **UNMARKED).parquet(
                storage.spelled(f"{output}/{name}")
            )
        storage.write_text(f"{output}/{PAGE}", draw_page(later, before, after, difference))
        storage.write_text(f"{output}/{HEADER}", spell_header(before, after, difference))
    except BaseException:
        storage.remove(output)
        raise
    return difference
