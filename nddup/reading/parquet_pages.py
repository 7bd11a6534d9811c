"""The pages of a Parquet file by their own headers: what they expand to, before anything is expanded.

    measure_pages   a column of a row group -> its pages, by size and number of values
    most_rows       pages -> how many rows together expand to some bytes at most

The metadata at the end of a file may say anything of its columns. Arrow expands what the headers before the pages say,
so these are read: some 20 bytes and 20 µs a page, which usually has 1 MB. Nothing else is read.

Source: https://github.com/apache/parquet-format, `PageHeader`, in Thrift's compact protocol: a field is a byte with the
step from the number of the field before and the type, then its value; numbers are zigzag, in groups of seven bits.
"""

from itertools import accumulate
from typing import Any, BinaryIO, NamedTuple

HEADER, MAX_HEADER = 1 << 8, 1 << 24
"""Bytes read of a page header first, and most: Arrow reads no more."""

MAX_DEPTH, MAX_FIELDS = 8, 1 << 12

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
"""Kinds of pages."""

DELTA_BYTE_ARRAY = 7
"""The encoding in which a value repeats the start of the one before."""

KIND, EXPANDED, STORED, ABOUT_DATA, ABOUT_DICTIONARY, ABOUT_DATA_V2 = 1, 2, 3, 5, 7, 8
"""Numbers of the fields of a page header."""

TRUE, FALSE, BYTE, DOUBLE, BINARY, STRUCT = 1, 2, 3, 7, 8, 12
NUMBERS = (4, 5, 6)
"""Types of Thrift."""


class Pages(NamedTuple):
    """The pages of a column of a row group.

    Attributes:
        dictionary: bytes of the largest dictionary.
        sizes: bytes of each page of data, expanded.
        values: the number of values in each.
        is_shared: whether values may repeat others in part, a dictionary does not come first, or the headers cannot be
            read to the end.
    """

    dictionary: int
    sizes: list[int]
    values: list[int]
    is_shared: bool


def measure_pages(raw: BinaryIO, start: int, size: int) -> Pages:
    """Read the headers of the pages that begin at `start`, in `size` bytes; up to the first that cannot be read."""
    end, dictionary, sizes, values, is_shared = start + size, 0, list[int](), list[int](), False
    while start < end:
        try:
            header, start = _read_header(raw, start, end)
            expanded, stored = int(header[EXPANDED]), int(header[STORED])
            if min(expanded, stored) < 0:
                return Pages(dictionary, sizes, values, is_shared=True)
            if header[KIND] == DICTIONARY:
                dictionary = max(dictionary, expanded, stored)
                is_shared |= bool(sizes)  # a dictionary comes first; of another the longest value is not known
            elif header[KIND] in (DATA, DATA_V2):
                about = header[ABOUT_DATA_V2 if header[KIND] == DATA_V2 else ABOUT_DATA]
                count, encoding = max(int(about[1]), 0), about[4 if header[KIND] == DATA_V2 else 2]
                sizes.append(max(expanded, stored))
                values.append(count)
                is_shared |= encoding == DELTA_BYTE_ARRAY
            start += stored
        except (LookupError, TypeError, ValueError, RecursionError):
            return Pages(dictionary, sizes, values, is_shared=True)
    return Pages(dictionary, sizes, values, is_shared)


def most_rows(pages: Pages, size: int, most: int) -> int:
    """Return a power of two, at most `most`: so many rows that follow each other lie in pages of `size` bytes or less.

    At least 1. A page alone may have more bytes.

    Example:
        >>> most_rows(Pages(0, [100, 100, 5000, 5000], [10, 10, 1, 1], is_shared=False), 6000, 64)
        1
    """
    ends = list(accumulate(pages.values))
    while most > 1:
        total, first = 0, 0
        for page, page_size in enumerate(pages.sizes):
            total += page_size
            while ends[page] - pages.values[page] - ends[first] >= most - 1 and first < page:
                total -= pages.sizes[first]
                first += 1
            if total > size and first < page:
                break
        else:
            return most
        most //= 2
    return 1


def _read_header(raw: BinaryIO, start: int, end: int) -> tuple[dict[int, Any], int]:
    """Return the fields of the header at a place, and where it ends.

    Raises:
        ValueError: if it is none.
        IndexError: if it does not end.
    """
    length = HEADER
    while True:
        raw.seek(start)
        data = raw.read(min(length, end - start))
        try:
            fields, at = _read_struct(data, 0, 0)
        except IndexError:
            if len(data) < length or length >= MAX_HEADER:
                raise
            length *= 16
        else:
            return fields, start + at


def _read_struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    fields, number = dict[int, Any](), 0
    for _ in range(MAX_FIELDS):
        mark, at = data[at], at + 1
        if not mark:
            return fields, at
        if mark >> 4:
            number += mark >> 4
        else:
            number, at = _read_number(data, at)
        fields[number], at = _read_value(data, at, mark & 15, depth)
    raise ValueError("too many fields")


def _read_value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """Return a number, a boolean or a structure; None for a value of another type, which is passed over."""
    if kind in (TRUE, FALSE):
        return kind == TRUE, at
    if kind in NUMBERS:
        return _read_number(data, at)
    if kind == STRUCT:
        return _read_struct(data, at, depth + 1)
    if kind in (BYTE, DOUBLE):
        return None, at + (1 if kind == BYTE else 8)
    if kind == BINARY:
        length, at = _read_length(data, at)
        if at + length > len(data):
            raise IndexError
        return None, at + length
    raise ValueError("a type that no page header has")


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    number, at = _read_length(data, at)
    return (number >> 1) ^ -(number & 1), at


def _read_length(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:  # noqa: PLR2004
            return number, at
        if shift > 63:  # noqa: PLR2004
            raise ValueError("a number without an end")
