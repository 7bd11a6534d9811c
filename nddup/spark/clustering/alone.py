"""Documents that are alone, in no pair, of a sketch of their own and not forced: they stay, and need not move.

    graph         --mark_nodes, put_together-->  words, a bit for each node
    nodes, words  --take_joined-->               those that the keep-list joins
                  --keep_alone-->                KEEP of all others

Of 300,000 sketches, 30 % in families, the keep-list shuffles 48 bytes each, not 208.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.mining.keep_verdicts import FREE, classes_of
from nddup.spark.schemas import schema_of, table
from nddup.tables import KEEP

MOST_WORDS = 1 << 23
"""Words of the bits, 64 MB: of more than 537 million documents several share a bit, and some that are alone move."""

MARKS = table("word long, bits long")

Batches = Iterator[pa.RecordBatch]


def words_for(documents: int) -> int:
    """Return the number of words w, so that each of so many documents has a bit of its own, up to `MOST_WORDS`."""
    return min(MOST_WORDS, 1 << (documents // 64).bit_length())


def mark_nodes(graph: DataFrame, words: int) -> DataFrame:
    """Return MARKS: for each node of a graph the bit of number `node`, modulo 64 w, lazily.

    Args:
        graph: with `node`, a `doc_key`.
        words: w. A task holds as many, and so does whoever takes the answer.

    Shuffles:  a row for each word that a task has bits of.    Actions:  none.
    """
    marks = graph.select("node").mapInArrow(partial(_mark, words=words), MARKS)
    return marks.groupBy("word").agg(F.bit_or("bits").alias("bits"))


def put_together(marks: pa.Table, words: int) -> NDArray[np.uint64]:
    """Return the words, (w,) uint64, of MARKS."""
    union = np.zeros(words, np.uint64)
    union[marks["word"].to_numpy()] = marks["bits"].to_numpy().view(np.uint64)
    return union


def take_joined(nodes: DataFrame, words: NDArray[np.uint64]) -> DataFrame:
    """Return the rows of NODES that are not alone, lazily, and a few that are. No shuffle."""
    return nodes.mapInArrow(partial(_take_joined, words=words), nodes.schema)


def keep_alone(nodes: DataFrame, words: NDArray[np.uint64]) -> DataFrame:
    """Return KEEP of the others, lazily. No shuffle."""
    return nodes.select("doc_id", "node", "weight", "n").mapInArrow(partial(_keep, words=words), schema_of(KEEP))


def _mark(batches: Batches, *, words: int) -> Batches:
    union = np.zeros(words, np.uint64)
    for batch in batches:
        places, bits = _places(batch, words)
        np.bitwise_or.at(union, places, bits)
    places = np.flatnonzero(union)
    yield pa.record_batch({"word": pa.array(places), "bits": pa.array(union[places].view(np.int64))})


def _places(batch: pa.RecordBatch, words: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    keys = batch["node"].to_numpy()
    return (keys >> 6) % words, np.uint64(1) << (keys & 63).astype(np.uint64)


def _is_alone(batch: pa.RecordBatch, words: NDArray[np.uint64]) -> pa.Array:
    places, bits = _places(batch, len(words))
    is_free = classes_of(batch["weight"].to_numpy()) == FREE
    return pa.array((batch["n"].to_numpy() == 1) & is_free & (words[places] & bits == 0))


def _take_joined(batches: Batches, *, words: NDArray[np.uint64]) -> Batches:
    for batch in batches:
        yield batch.filter(pc.invert(_is_alone(batch, words)))


def _keep(batches: Batches, *, words: NDArray[np.uint64]) -> Batches:
    for batch in batches:
        ids = batch["doc_id"].filter(_is_alone(batch, words))
        columns = {name: pa.nulls(len(ids), KEEP.arrow.field(name).type) for name in KEEP.names}
        yes, no = (pa.repeat(pa.scalar(value=value), len(ids)) for value in (True, False))
        columns |= {"doc_id": ids, "kept": yes, "leader": no}
        yield KEEP.batch([columns[name] for name in KEEP.names])
