"""The passes over files of a step that works on the driver, made by Spark: their rows are collected."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from nddup.local.reading.workers import Workers
from nddup.run.session import set_to, splitting
from nddup.scanning.collection import Collection
from nddup.scanning.found import Consumer, Limits
from nddup.spark.reading.scan import scan, scan_counting, sources_cut_short
from nddup.storage.session_files import SessionFiles, files_of

Narrow = Callable[[DataFrame], AbstractContextManager[DataFrame]]
"""Makes fewer rows of the rows of a consumer, and lets go of what it kept for that."""


@dataclass(kw_only=True)
class WorkersOnSpark(Workers):
    """As `Workers`, but Spark reads the files, from wherever it can, and makes the rows of a consumer."""

    spark: SparkSession
    storage: SessionFiles = field(init=False)

    def __post_init__(self) -> None:
        """Start no job yet."""
        super().__post_init__()
        self.storage = files_of(self.spark)

    def scan(self, source: Collection | pa.Table, consumer: Consumer, limits: Limits) -> pa.Table:
        """The rows that a consumer makes of files; texts that were given are read here.

        Spark passes over a record longer than its buffer without a word: the bytes that came are compared with the
        sizes of the files, and where some came short, those are read from their start.

        Cost: one pass over the files by Spark's tasks, two where files came short. The rows are held by the driver, so
        `spark.driver.maxResultSize` bounds them.
        """
        if not isinstance(source, Collection):
            return super().scan(source, consumer, limits)
        return self.scan_narrowed(source, consumer, limits, nullcontext)

    def scan_narrowed(self, source: Collection, consumer: Consumer, limits: Limits, narrow: Narrow) -> pa.Table:
        """As `scan`, of files; only what is left of the rows comes to the driver."""
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
            if short:
                again = source.read_whole(short)
                with narrow(scan(self.spark, again, consumer, files=self.storage, limits=limits)) as left:
                    rows = left.toArrow()
        return rows.cast(consumer.table.arrow)
