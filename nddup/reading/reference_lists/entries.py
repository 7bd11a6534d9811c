"""Lists of duplicates made by other tools: read the lines of a list whose layout is known (`layouts`).

lines_of       a stream of bytes -> lines
read_lines     lines -> Lists: pairs with their scores, or groups
entries_of     lines -> PAIRS, or GROUP_LINES: one row per line
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from nddup.reading.reference_lists.layouts import (
    DELIMITERS,
    ENDS,
    MEMBERS,
    PAIR,
    Layout,
    finite_number,
    first_key,
    split_fields,
)
from nddup.shown import read_cell

LINES = 10_000
"""Lines per batch."""

PAIRS = pa.schema([("doc_a", pa.string()), ("doc_b", pa.string()), ("score", pa.float64())])
"""One row per line of pairs: the ids as in the list, and the score or null. Ids are null if the line is unreadable."""

GROUPS = pa.schema([("set_id", pa.int64()), ("doc_id", pa.string())])
"""One row per member of a group, without repetitions. An unreadable line is a group whose only id is null."""

GROUP_LINES = pa.schema([("members", pa.list_(pa.string()))])
"""One row per line of groups: its ids, without repetitions; null if the line is unreadable."""

_END = re.compile(rb"\r\n?|\n")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Entry(NamedTuple):
    """The ids on a line and the score of a pair; None for a part that could not be read."""

    members: list[str] | None
    score: float | None = None


class Lists(NamedTuple):
    """The entries of many lines, one per line that is not skipped; `members` has None for an unreadable line."""

    members: list[list[str] | None]
    scores: list[float | None]


def lines_of(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of a stream of bytes, without line ends; bytes that are not UTF-8 become U+FFFD.

    As in Spark's text source, a line ends with a line feed, a carriage return, or both, wherever the pieces are cut.

    Cost: linear, however long a line is.
    """
    begun: list[bytes] = []  # the pieces of a line that has not ended
    held = b""  # a carriage return at the end of a piece: the next piece may begin with its line feed
    for piece in pieces:
        there = held + piece
        held = b"\r" if there.endswith(b"\r") else b""
        first, *others = _END.split(there[: len(there) - len(held)])
        begun.append(first)
        if not others:
            continue

        yield _decoded(b"".join(begun))
        *whole, last = others
        yield from map(_decoded, whole)
        begun = [last]

    if held or any(begun):
        yield _decoded(b"".join(begun))


def read_lines(lines: Iterable[str], layout: Layout) -> Lists:
    """Read the lines of a list in order; empty and skipped lines give no entry.

    Example:
        >>> read_lines(["1 2 0.5", "1", "2 3"], Layout("pairs", "blank", score=2))
        Lists(members=[['1', '2'], None, ['2', '3']], scores=[0.5, None, None])
    """
    read_entry = _read_json if layout.delimiter == "json" else _read_fields
    skipped = frozenset(layout.skipped)
    found = Lists([], [])
    for line in lines:
        text = line.strip("\ufeff\r\n")
        if not text.strip() or text in skipped:
            continue
        entry = read_entry(text, layout)
        found.members.append(entry.members)
        found.scores.append(entry.score)
    return found


def entries_of(lines: Iterable[str], layout: Layout) -> Iterator[pa.RecordBatch]:
    """Yield the lines of a list as PAIRS or GROUP_LINES, by its kind, in batches of at most `LINES` lines.

    Empty and skipped lines give no row.
    """
    left = iter(lines)
    while some := list(islice(left, LINES)):
        found = read_lines(some, layout)
        if layout.kind == "pairs":
            ends = [members or (None, None) for members in found.members]
            columns = [[first for first, _ in ends], [second for _, second in ends], found.scores]
            arrays = [pa.array(values, field.type) for values, field in zip(columns, PAIRS, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=PAIRS)
        else:
            members = [None if ids is None else list(dict.fromkeys(ids)) for ids in found.members]
            yield pa.RecordBatch.from_arrays([pa.array(members, GROUP_LINES.field(0).type)], schema=GROUP_LINES)


def _read_fields(line: str, layout: Layout) -> Entry:
    fields = split_fields(line, DELIMITERS[layout.delimiter])
    if layout.kind == "groups":
        return Entry([field for field in fields if field] or None)
    if len(fields) < PAIR or not fields[0] or not fields[1]:
        return Entry(None)

    at = layout.score
    score = finite_number(fields[at]) if isinstance(at, int) and at < len(fields) else None
    pair = fields[:PAIR]
    return Entry([*map(read_cell, pair)] if layout.delimiter == "comma" else pair, score)


def _read_json(line: str, layout: Layout) -> Entry:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return Entry(None)
    if layout.kind == "groups":
        ids = value.get(first_key(value, MEMBERS)) if isinstance(value, dict) else value
        return Entry(_texts(ids) or None) if isinstance(ids, list) else Entry(None)
    if not isinstance(value, dict):
        return Entry(None)

    ids = next(([value[a], value[b]] for a, b in ENDS if a in value and b in value), [])
    pair = _texts(ids)
    score = value.get(layout.score) if layout.score else None
    number = finite_number(score) if isinstance(score, int | float) and not isinstance(score, bool) else None
    return Entry(pair if len(pair) == PAIR else None, number)


def _texts(ids: Sequence[Any]) -> list[str]:
    """Return strings and integers as text, and drop other values. Lone surrogates become U+FFFD, as in a record."""
    found = (str(value) for value in ids if isinstance(value, str | int) and not isinstance(value, bool))
    return [_SURROGATE.sub("\ufffd", text) for text in found]


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "replace")
