"""Numbering of given texts in the order of their ids, as `number_texts` in `nddup.spark.reading.scan` does it."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.local.columns import one_chunk
from nddup.tables import TEXTS

SOURCE = "dataframe"

SEED = 42
"""Seed of Spark's `xxhash64`."""

WORD = (1 << 64) - 1
PRIMES = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip
"""The primes of XXH64, from its specification."""

STRIPE = 32


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
    """Return TEXTS of a table, ordered by id; texts of equal ids are ordered by a hash that Spark has too.

    Args:
        table: any table with the columns `id` and `text`, which are read as strings.
        id: name of the column of ids.
        text: name of the column of texts.

    Cost: a sort of the ids; texts of repeated ids are hashed in Python.
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


def _key(text: pa.StringScalar) -> tuple[int, bool, bytes]:
    """Return the sort key of a text, which may be any bytes, among those of the same id."""
    data = text.as_buffer().to_pybytes() if text.is_valid else None
    hashed = SEED if data is None else xxhash64(data)
    return hashed - (1 << 64) if hashed >> 63 else hashed, data is not None, data or b""


def xxhash64(data: bytes, seed: int = SEED) -> int:
    """Return XXH64 of some bytes.

    Source: the specification of xxHash, version 0.1.1.

    Example:
        >>> hex(xxhash64(b"", 0)), hex(xxhash64(b"abc", 0))
        ('0xef46db3751d8e999', '0x44bc2cf5ad770999')
    """
    first, second, third, _, fifth = PRIMES
    at, size = 0, len(data)
    if size >= STRIPE:
        lanes = [(seed + first + second) & WORD, (seed + second) & WORD, seed, (seed - first) & WORD]
        while at + STRIPE <= size:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], int.from_bytes(data[at : at + 8], "little"))
                at += 8
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & WORD
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * first + PRIMES[3]) & WORD
    else:
        value = (seed + fifth) & WORD
    value = (value + size) & WORD
    return _avalanche(_take_rest(value, data[at:]), second, third)


def _take_rest(value: int, rest: bytes) -> int:
    """Mix in the bytes after the last stripe: eight, four and one at a time."""
    first, second, third, fourth, fifth = PRIMES
    while len(rest) >= 8:  # noqa: PLR2004 - bytes of a word
        value = (_rotate(value ^ _round(0, int.from_bytes(rest[:8], "little")), 27) * first + fourth) & WORD
        rest = rest[8:]
    if len(rest) >= 4:  # noqa: PLR2004 - bytes of half a word
        value = (_rotate(value ^ (int.from_bytes(rest[:4], "little") * first & WORD), 23) * second + third) & WORD
        rest = rest[4:]
    for byte in rest:
        value = _rotate(value ^ (byte * fifth & WORD), 11) * first & WORD
    return value


def _avalanche(value: int, second: int, third: int) -> int:
    value = (value ^ (value >> 33)) * second & WORD
    value = (value ^ (value >> 29)) * third & WORD
    return value ^ (value >> 32)


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * PRIMES[1]) & WORD, 31) * PRIMES[0] & WORD


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & WORD
