"""`nddup against` with A read by Spark: on any file system and of any size, in one pass whatever the size of B.

    files of A      --a filter of B's shingles, broadcast-->  documents with possible shingles
    their hashes    --joined with those of B-->               documents with a hash of B
    these           --collected, compared character by character with each part of B-->  SHARED

Only documents with a hash of B come to the driver. The remaining steps are those of the embedded engine.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.against.against_inputs import Items, Side
from nddup.against.compare_collections import ADVICE, Engine, Share, Start, report_to
from nddup.against.share_records import FilteredShingles, ShareRecords, verify_filter_hits
from nddup.against.shingle_table import add_keys, empty_filter
from nddup.embedded.memory import Memory
from nddup.engines.choose import memory_of
from nddup.ground.progress import Steps
from nddup.settings.plan import processes_of, record_limits, text_rule
from nddup.settings.schema import Config
from nddup.spark.steps.documents import WorkersOnSpark
from nddup.spark.steps.state import persisted

FILTER_BYTES = 1 << 27
"""Largest broadcast filter, 128 MB: 16 bits for each of up to 64 million shingles of B, fewer bits each beyond."""

PLACE = ["source", "split", "seq"]


def engine_on_spark(spark: SparkSession) -> Start:
    """Return a starter of the Spark engine for `compare`."""

    @contextmanager
    def start(config: Config, spool: Path, steps: Steps) -> Iterator[Engine]:
        memory = Memory(memory_of(config), advice=ADVICE)
        workers = WorkersOnSpark(
            processes_of(config), spool=spool / "rows", progress=report_to(steps), memory=memory, spark=spark
        )
        with workers:
            yield Engine(workers.storage, workers, share_on_spark(workers))

    return start


def share_on_spark(workers: WorkersOnSpark) -> Share:
    """Make a `Share` with one pass over the files, with a filter of the shingles of all parts of B."""

    def share(side: Side, items: Items, counts: bool) -> list[pa.Table]:  # noqa: FBT001 - as `Share`
        words = empty_filter(sum(len(known.keys) for known in items.tables), most_bytes=FILTER_BYTES)
        for known in items.tables:
            add_keys(known.keys, words)
        shingles = FilteredShingles(words.tobytes(), items.tables[0].length)
        consumer = ShareRecords(shingles, text_rule(side.config), counts)
        keys = pa.table({"key": np.concatenate([known.keys for known in items.tables]).view(np.int64)})
        rows = workers.scan_narrowed(
            side.collection, consumer, record_limits(side.config), _keep_known(workers.spark.createDataFrame(keys))
        )
        is_document = pc.equal(rows["what"], "document")
        others, possible = rows.filter(pc.invert(is_document)), rows.filter(is_document)
        return [pa.concat_tables([others, verify_filter_hits(possible, known)]) for known in items.tables]

    return share


def _keep_known(keys: DataFrame) -> Callable[[DataFrame], AbstractContextManager[DataFrame]]:
    """Return a filter that keeps the documents of SHARED with one of the fingerprints in `keys`, and all other rows.

    Shuffles:  the possible fingerprints once, and the documents that have any once.
    """

    @contextmanager
    def narrow(shared: DataFrame) -> Iterator[DataFrame]:
        with persisted(shared) as rows:
            documents = rows.where(F.col("what") == "document")
            possible = documents.select(*PLACE, F.explode("keys").alias("key"))
            places = possible.join(keys, "key", "left_semi").select(*PLACE).distinct()
            known = documents.join(places, PLACE, "left_semi").select(*rows.columns)  # a join puts its keys first
            yield known.union(rows.where(F.col("what") != "document"))

    return narrow
