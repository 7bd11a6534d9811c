"""Candidates by common keys: pairs that agree in a band of slots, or in a run of ids, compared like any others.

    sketches --find_heavy-->  sketches with a key that too many have            2 shuffles, of keys
    sketches --match_keys-->  candidates with a common key, compared            1 shuffle, of blocks

A pair is made at the first key that its sketches have in common, by the same join as that of prefixes
(`nddup.matching.overlap_join`); the keys themselves are in `nddup.sketching.lsh_keys`. If more than `max_postings`
sketches have a key, these are heavy: they are not compared with each other here, but in `large_components`.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.arrays import Ragged, take_rows
from nddup.sketching.lsh_keys import Finder
from nddup.spark.blocks import block_schema, list_column
from nddup.spark.pairing.match import Pairing, mark_heavy, match_probes
from nddup.spark.pairing.probes import PROBE_LAYOUT, post_probes
from nddup.spark.schemas import SKETCHES, require

Batches = Iterator[pa.RecordBatch]


def find_heavy(sketches: DataFrame, *, finder: Finder, max_postings: int) -> DataFrame:
    """The sketches with a key that more than `max_postings` sketches have.

    Schema in:   SKETCHES
    Schema out:  HEAVY
    Shuffles:  the keys, then those of large buckets again.    Actions:  none.
    """
    require(sketches, SKETCHES, stage="pairs")
    rows = sketches.select("node", "sketch").mapInArrow(partial(_list_keys, finder=finder), "key long, node long")
    common = rows.groupBy("key").count().where(F.col("count") > max_postings).select("key")
    return rows.join(common, "key").select("node").distinct()


def match_keys(sketches: DataFrame, finder: Finder, pairing: Pairing, heavy: DataFrame | None = None) -> DataFrame:
    """Compare the sketches with a key in common. Heavy sketches are not compared with each other, only linked.

    Args:
        sketches: the distinct sketches.
        finder: the keys of a sketch.
        pairing: how sketches are compared.
        heavy: the heavy sketches; None where there are none.

    Schema in:   SKETCHES; HEAVY
    Schema out:  COMPARED
    Shuffles:  one, of blocks: each sketch goes to the partitions that own one of its keys.    Actions:  none.
    """
    require(sketches, SKETCHES, stage="pairs")
    task = partial(_post_keys, finder=finder, pairing=pairing)
    probes = mark_heavy(sketches, heavy).mapInArrow(task, block_schema(PROBE_LAYOUT))
    return match_probes(probes, pairing)


def _list_keys(batches: Batches, *, finder: Finder) -> Batches:
    """A row a key of a sketch: key, node."""
    for batch in batches:
        keys = finder.keys(list_column(batch.column("sketch")))
        nodes = np.repeat(np.asarray(batch.column("node")), np.diff(keys.offsets))
        yield pa.RecordBatch.from_pydict({"key": keys.values.view(np.int64), "node": nodes})


def _post_keys(batches: Batches, *, finder: Finder, pairing: Pairing) -> Batches:
    """Blocks of PROBE_LAYOUT: each sketch that can be in a pair, to every partition that owns one of its keys."""
    for batch in batches:
        rows = list_column(batch.column("sketch"))
        sizes = np.diff(rows.offsets).astype(np.int32)
        bounds = pairing.threshold.bounds(sizes)
        possible = np.flatnonzero((sizes > 0) & (bounds <= sizes))

        sketches = take_rows(rows, possible)
        keys = finder.keys(sketches)
        columns = {name: np.asarray(batch.column(name))[possible] for name in ("node", "heavy")}
        columns |= {"bound": bounds[possible], "posted": np.diff(keys.offsets).astype(np.int32)}

        # Keys have no rarity: with equal holders their own order is the total order.
        holders = Ragged(keys.offsets, np.zeros(len(keys.values), np.uint64))
        yield from post_probes(columns, sketches, keys, holders, partitions=pairing.partitions)
