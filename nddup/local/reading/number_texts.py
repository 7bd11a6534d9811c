"""Numbering of given texts in the order of their ids, as `number_texts` in `nddup.spark.reading.scan` does it."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.local.columns import one_chunk
from nddup.tables import TEXTS

SOURCE = "dataframe"

CHUNK_BYTES = 512 << 20
"""Most bytes of texts in one array: the offsets of Arrow's strings end at 2 GB."""


def cut(chunk: pa.Array) -> Iterator[pa.Array]:
    """Yield an array in parts of at most CHUNK_BYTES, or of one row."""
    if chunk.nbytes <= CHUNK_BYTES or len(chunk) <= 1:
        yield chunk
        return
    half = len(chunk) // 2
    for part in (chunk.slice(0, half), chunk.slice(half)):
        is_wide = pa.types.is_large_string(part.type) or pa.types.is_large_binary(part.type)
        # A slice keeps its offsets, which may be wider than those of a string; rows that are taken get their own.
        fits = is_wide and part.nbytes <= CHUNK_BYTES
        yield from cut(part.take(pa.array(np.arange(len(part)))) if fits else part)


def number_texts(table: pa.Table, *, id: str, text: str) -> pa.Table:  # noqa: A002 - the caller's word
    """Return TEXTS of a table, ordered by id; those of equal ids by their bytes.

    Args:
        table: any table with the columns `id` and `text`, which are read as strings.
        id: name of the column of ids.
        text: name of the column of texts.

    Cost: a sort of the ids; texts of repeated ids are sorted in Python.
    """
    ids, texts = (table[name].cast(pa.string()) for name in (id, text))
    order = np.asarray(pc.array_sort_indices(one_chunk(ids))).astype(np.int64)  # nulls come last
    in_order = one_chunk(ids).take(pa.array(order))
    keys = pc.fill_null(in_order, "").cast(pa.binary())
    is_null = np.asarray(pc.is_null(in_order))
    is_same = np.zeros(len(order), np.bool_)
    if len(order) > 1:
        is_same[1:] = np.asarray(pc.equal(keys[1:], keys[:-1])) & (is_null[1:] == is_null[:-1])

    starts = np.flatnonzero(~is_same)
    for low, high in zip(starts, np.append(starts[1:], len(order))[: len(starts)], strict=True):
        if high - low > 1:
            run = order[low:high].tolist()
            order[low:high] = sorted(run, key=lambda row: _key(texts[row]))

    rows = len(order)
    columns = [
        in_order if not is_same.any() else one_chunk(ids).take(pa.array(order)),
        pa.nulls(rows, pa.string()),
        _take(texts, order),
        pa.array([SOURCE], pa.string()).take(pa.array(np.zeros(rows, np.int64))),
        pa.array(np.zeros(rows, np.int64)),
        pa.array(np.arange(rows)),
    ]
    return pa.Table.from_arrays(columns, schema=TEXTS.arrow)


def _take(texts: pa.ChunkedArray, order: NDArray[np.int64]) -> pa.ChunkedArray:
    """Return texts in an order. Arrow joins all chunks for it, so it needs wide offsets."""
    wide = texts.cast(pa.large_string()).take(pa.array(order))
    parts = [part for chunk in wide.chunks for part in cut(chunk)]
    return pa.chunked_array([part.cast(pa.string()) for part in parts], pa.string())


def _key(text: pa.StringScalar) -> tuple[bool, bytes]:
    """Return the sort key of a text, which may be any bytes, among those of the same id: by bytes, null first."""
    data = text.as_buffer().to_pybytes() if text.is_valid else None
    return data is not None, data or b""
