"""Candidates by common keys: pairs that agree in a band of slots, or in a run of ids, compared like any others.

    sketches --find_crowd-->  sketches with a key that too many have      1 shuffle, of keys
    sketches --match_keys-->  candidates of a common key, verified        1 shuffle, of blocks

A pair is made at the first key that its sketches have in common, by the same join as that of prefixes
(`nddup.matching.prefix_filter`); the keys themselves are in `nddup.sketching.lsh_keys`. A bucket of more than
`max_postings` sketches is not squared: its sketches are a crowd, and their family is led.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.arrays import Ragged, take_rows
from nddup.matching.threshold import Threshold
from nddup.sketching.lsh_keys import Finder
from nddup.spark.blocks import block_schema, list_column
from nddup.spark.pairing.match import mark_crowd, match_probes
from nddup.spark.pairing.probes import PROBE_LAYOUT, post_probes
from nddup.spark.schemas import SKETCHES, require

Batches = Iterator[pa.RecordBatch]


def find_crowd(sketches: DataFrame, *, finder: Finder, max_postings: int) -> DataFrame:
    """The sketches with a key that more than `max_postings` sketches have.

    Schema in:   SKETCHES
    Schema out:  CROWD
    Shuffles:  the keys, then those of large buckets again.    Actions:  none.
    """
    require(sketches, SKETCHES, stage="pairs")
    rows = sketches.select("node", "sketch").mapInArrow(partial(_list_keys, finder=finder), "key long, node long")
    large = rows.groupBy("key").count().where(F.col("count") > max_postings).select("key")
    return rows.join(large, "key").select("node").distinct()


def match_keys(  # noqa: PLR0913 - a table and what is done with it
    sketches: DataFrame,
    *,
    finder: Finder,
    threshold: Threshold,
    max_postings: int,
    partitions: int,
    crowd: DataFrame | None = None,
) -> DataFrame:
    """The near-duplicates among sketches with a key in common; those within the crowd only link.

    Schema in:   SKETCHES; CROWD, or None where there is none
    Schema out:  COMPARED
    Shuffles:  one, of blocks: each sketch goes to the partitions that own one of its keys.    Actions:  none.
    """
    require(sketches, SKETCHES, stage="pairs")
    task = partial(_post_keys, finder=finder, threshold=threshold, partitions=partitions)
    probes = mark_crowd(sketches, crowd).mapInArrow(task, block_schema(PROBE_LAYOUT))
    return match_probes(probes, threshold=threshold, max_postings=max_postings, partitions=partitions)


def _list_keys(batches: Batches, *, finder: Finder) -> Batches:
    for batch in batches:
        keys = finder.keys(list_column(batch.column("sketch")))
        nodes = np.repeat(np.asarray(batch.column("node")), np.diff(keys.offsets))
        yield pa.RecordBatch.from_pydict({"key": keys.values.view(np.int64), "node": nodes})


def _post_keys(batches: Batches, *, finder: Finder, threshold: Threshold, partitions: int) -> Batches:
    for batch in batches:
        rows = list_column(batch.column("sketch"))
        sizes = np.diff(rows.offsets).astype(np.int32)
        bounds = threshold.bounds(sizes)
        possible = np.flatnonzero((sizes > 0) & (bounds <= sizes))
        keys = finder.keys(take_rows(rows, possible))
        columns = {name: np.asarray(batch.column(name))[possible] for name in ("node", "crowd")}
        columns |= {"bound": bounds[possible], "posted": np.diff(keys.offsets).astype(np.int32)}
        no_order = Ragged(keys.offsets, np.zeros(len(keys.values), np.uint64))
        yield from post_probes(columns, take_rows(rows, possible), keys, no_order, partitions=partitions)
