"""Passes over files made by Spark for a step that works on the driver: their rows are collected there."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from nddup.local.reading.workers import Workers
from nddup.reading.outcomes import DIVIDED
from nddup.run.session import set_to, splitting
from nddup.scanning.collection import Collection
from nddup.scanning.found import Consumer, RecordLimits
from nddup.spark.reading.scan import scan, scan_counting, sources_cut_short
from nddup.storage.session_files import SessionFiles, files_of

Narrow = Callable[[DataFrame], AbstractContextManager[DataFrame]]
"""Reduces the rows of a consumer; as a context, it frees what it kept for that."""


@dataclass(kw_only=True)
class WorkersOnSpark(Workers):
    """As `Workers`, but Spark reads the files, from any storage it can reach, and makes the rows of a consumer."""

    spark: SparkSession
    storage: SessionFiles = field(init=False)

    def __post_init__(self) -> None:
        """Find the file system of the session; start no job."""
        super().__post_init__()
        self.storage = files_of(self.spark)

    def scan(self, source: Collection | pa.Table, consumer: Consumer, limits: RecordLimits) -> pa.Table:
        """Return the rows that a consumer makes of files; given texts are read here, without Spark.

        Spark silently skips a record longer than its buffer. So the bytes read are compared with the sizes of the
        files; if bytes of a file are missing, or it was divided inside a record (`DIVIDED`), all is read once more,
        that file from its start.

        Cost: one pass over the files by Spark's tasks, two if one did not suffice. The driver holds the rows, so
        `spark.driver.maxResultSize` bounds them.
        """
        if not isinstance(source, Collection):
            return super().scan(source, consumer, limits)
        return self.scan_narrowed(source, consumer, limits, nullcontext)

    def scan_narrowed(self, source: Collection, consumer: Consumer, limits: RecordLimits, narrow: Narrow) -> pa.Table:
        """As `scan`, for files; only the rows left by `narrow` come to the driver."""
        with set_to(self.spark, splitting(self.spark)):
            found, seen = scan_counting(self.spark, source, consumer, files=self.storage, limits=limits)
            with narrow(found) as left:
                rows = left.toArrow()
            short = {
                row["source"]
                for count in seen
                if count.is_short
                for row in sources_cut_short(self.spark, count.group, max_record=limits.max_record).collect()
            }
            if "reason" in rows.column_names:
                short |= set(rows.filter(pc.equal(rows["reason"], DIVIDED))["source"].to_pylist())
            if short:
                again = source.read_whole(short)
                with narrow(scan(self.spark, again, consumer, files=self.storage, limits=limits)) as left:
                    rows = left.toArrow()
        return rows.cast(consumer.table.arrow)
