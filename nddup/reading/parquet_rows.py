"""The rows of a Parquet file as records, some at a time, so that memory is bounded by the length of a few rows.

    read_parquet  a file  -> its records and rejects
    read_rows     a file  -> Rows, and rejects
    read_plain    Rows    -> the texts, ids and URLs of those that are plain, without an object for each
    place_rows    a file  -> its records and rejects, one by one, with their places

After an error, rows are decoded ROWS at a time, so that those before a damaged page are read. A value that cannot be
read makes its row a reject. A damaged page makes the rest of its row group one reject, which says how many rows the
metadata promised.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, BinaryIO, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nddup.errors import first_line
from nddup.ground.columns import field_of, fields_in, in_utc, kind_of
from nddup.reading.chats import LISTS, chats_of, holds_texts, left_of, texts_of, unread_parts
from nddup.reading.formats import FileHead, Format, FormatError
from nddup.reading.json_lines import PlainRecords, are_printable, non_empty
from nddup.reading.outcomes import EXCERPT_LENGTH, Record, Reject, Value, excerpt, make_record
from nddup.reading.parquet_pages import Pages, measure_pages, most_rows
from nddup.reading.streams import LINE_BYTES, PIECE
from nddup.reading.xml_structure import FIRST_ROWS, SOURCE, is_filled, rivals, table_format, text_fields

ROWS = 4
"""Minimum number of rows decoded at a time; 1 if a dictionary is longer than ROWS_BYTES."""

ROWS_BYTES = 16 << 20

MOST_ROWS = 4_096
"""Maximum number of rows decoded at a time."""

BLOCK_BYTES = 4 << 20
"""Bytes of values, on average, that are decoded at a time."""

EXPANDED = 8 << 20
"""Bytes of rows that are decoded at a time, if each is as long as the longest value of a dictionary."""

LARGEST = 2
"""A row group is not decoded if a dictionary, or the mean length of a value, exceeds this many times `max_record`."""

LONGEST_FIRST = 1 << 24
"""Twice the mean length up to which the first values of columns are looked at."""

WIDEST = 8
"""Bytes of a number or a time, and those that an entry of a list counts for."""

EXPANSION = 200
"""Maximum expansion of a list, in times its stored bytes, however few rows there are; as `input.max_expansion`."""

STRINGS = {pa.string(), pa.large_string()}
BYTES = {pa.binary(), pa.large_binary()}
VIEWED = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}

PAGES_BYTES, MOST_PAGE = 64 << 20, 1 << 29
"""Bytes of the pages that are expanded for some rows, unless one page alone has more; maximum size of a page."""

DAMAGED: tuple[type[Exception], ...] = (pa.ArrowException, OSError, ValueError)
"""Exceptions that pyarrow raises for bytes that it cannot read."""


class Rows(NamedTuple):
    """Rows of one row group: the columns that records are made of, and the number of the first row in its group."""

    batch: pa.RecordBatch
    declared: Format
    group: int
    first: int

    def read(self, row: int, max_record: int) -> Record | Reject:
        """Return the record of a row, or a reject."""
        return _read_row(self.batch, row, self.declared, max_record)


def read_parquet(raw: BinaryIO, head: FileHead, *, limit: int | None, max_record: int) -> Iterator[Record | Reject]:
    """Yield the records of a file, in file order.

    Args:
        raw: the file, seekable.
        head: its format; columns that are not set are chosen by their names.
        limit: the most bytes of text, where each row counts for LINE_BYTES more; None for no limit.
        max_record: the most bytes of a record.

    Returns:
        Records and rejects: `malformed`, `no content`, `id too long` and `too large` for a row; `damaged` and
        `too large` for the rest of a row group, with the number of rows promised; `damaged` for an unreadable file;
        `no records` if its columns cannot be used; `too large` before the rows that pass `limit`, where reading stops.

    Memory: as `read_rows`.
    """
    for record, _ in place_rows(raw, head, limit=limit, max_record=max_record):
        yield record


class RowPlace(NamedTuple):
    """The row group of a row, and its number in it, both from 0."""

    group: int
    row: int


def place_rows(
    raw: BinaryIO, head: FileHead, *, limit: int | None, max_record: int
) -> Iterator[tuple[Record | Reject, RowPlace | None]]:
    """Yield the items of `read_parquet` with their places; None if a reject stands for several rows or for the file."""
    for part in limit_rows(read_rows(raw, head, max_record), raw, limit):
        if isinstance(part, Reject):
            yield part, None
            continue
        for row in range(part.batch.num_rows):
            yield part.read(row, max_record), RowPlace(part.group, part.first + row)


def limit_rows(parts: Iterable[Rows | Reject], raw: BinaryIO, limit: int | None) -> Iterator[Rows | Reject]:
    """Yield rows as long as they count for `limit` bytes; then a reject for the others."""
    left = sys.maxsize if limit is None else limit
    for part in parts:
        left -= content_size(part) if isinstance(part, Rows) else 0
        if left < 0:
            rows = open_parquet(raw).metadata.num_rows
            detail = f"expands to more than {limit:,} bytes (input.max_expansion); {rows:,} rows are promised"
            yield Reject("too large", detail, "")
            return
        yield part


def read_rows(raw: BinaryIO, head: FileHead, max_record: int) -> Iterator[Rows | Reject]:
    """Yield the rows of a file, in file order, and rejects for a row group or the file, as of `read_parquet`.

    Memory: see BLOCK_BYTES and EXPANDED; and what Arrow expands at a time: one page per column.
    """
    try:
        file = open_parquet(raw)
        declared, names = _choose_columns(file, raw, head.format)
    except FormatError as error:
        yield Reject("no records", str(error), "")
        return
    except DAMAGED as error:
        yield Reject("damaged", first_line(error), "")
        return

    stored = 0
    for group in range(file.num_row_groups):
        with suppress(*DAMAGED):  # reading the group says what is wrong
            stored += sum(one.total_compressed_size for one in _chosen(file, group, names))
        if stored > raw.seek(0, os.SEEK_END):
            yield Reject("damaged", f"row group {group + 1} of {file.num_row_groups} lies where others lie", "")
            return
        yield from _read_group(file, raw, group, declared, names, max_record)

    there = sum(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))
    if there != file.metadata.num_rows:
        yield Reject("damaged", f"the file has {file.metadata.num_rows:,} rows, its row groups {there:,}", "")


def content_size(rows: Rows) -> int:
    """Return the bytes that rows count for: those of their texts, and LINE_BYTES each."""
    columns = [rows.batch.column(name) for name in rows.declared.content]
    are_texts = (one.type in STRINGS | BYTES or pa.types.is_nested(one.type) for one in columns)
    sizes = (int(one.nbytes) for one, is_text in zip(columns, are_texts, strict=True) if is_text)
    return LINE_BYTES * int(rows.batch.num_rows) + sum(sizes)


def open_parquet(raw: BinaryIO) -> pq.ParquetFile:
    """Open a file. Pages with a checksum are compared with it.

    Raises:
        OSError: as for all of pyarrow's, if its metadata are damaged; or pa.ArrowException, or ValueError.
    """
    return pq.ParquetFile(raw, buffer_size=PIECE, pre_buffer=False, page_checksum_verification=True)


def columns_of(file: pq.ParquetFile, group: int) -> list[pq.ColumnChunkMetaData]:
    """Return the metadata of the columns of a row group.

    Raises:
        OSError: if they are damaged; or pa.ArrowException.
    """
    # A reader of no rows decodes nothing, but looks at the metadata of every column, and raises. `column` does not: the
    # exception of the C++ library ends the process.
    for _ in file.reader.iter_batches(0, row_groups=[group], use_threads=False):
        break
    metadata = file.metadata.row_group(group)
    return [metadata.column(at) for at in range(metadata.num_columns)]


def format_of(file: pq.ParquetFile, raw: BinaryIO, declared: Format) -> Format:
    """Return the format with its columns: of several with usual names the first that is not empty in the first rows.

    One that holds no text, but objects or lists of numbers, is chosen only if the user names it.

    Raises:
        FormatError: if a column is missing or repeated, or if no column looks like the text.

    Cost: nothing, unless there are several; then those of the first row group are read, up to FIRST_ROWS.
    """
    schema = file.schema_arrow
    chats, filled = chats_of(schema), _filled_in(file, raw, declared)
    given = {declared.id, declared.url, *declared.content, *declared.policy}
    columns = [
        name
        for name, kind in zip(schema.names, schema.types, strict=True)
        if name in given or holds_texts(kind) or not pa.types.is_nested(kind)
    ]
    inside = [name for name in fields_in(schema) if name not in schema.names]
    columns += [name for name in inside if name in given or name.startswith(SOURCE)]
    is_text_there = bool(declared.content or text_fields(columns, chats, filled))
    return table_format(declared, columns if is_text_there else fields_in(schema), chats, filled)


def _filled_in(file: pq.ParquetFile, raw: BinaryIO, declared: Format) -> list[str]:
    """Return which of several columns for the same purpose hold something in the first rows."""
    schema = file.schema_arrow
    likely = rivals(schema.names, declared, chats_of(schema))
    doubtful = [name for name in likely if not _is_nested(schema, name) or holds_texts(schema.field(name).type)]
    filled = list[str]()
    with suppress(TooLargeError, *DAMAGED):
        for batch, _ in islice(
            read_batches(file, raw, 0, doubtful, LONGEST_FIRST), 1 if doubtful and file.num_row_groups else 0
        ):
            first = _decode(batch.slice(0, FIRST_ROWS), doubtful)
            filled = [name for name in doubtful if any(is_filled(_value(one)) for one in first.column(name))]
    return filled


def _choose_columns(file: pq.ParquetFile, raw: BinaryIO, declared: Format) -> tuple[Format, list[str]]:
    """Return the format with its columns, and the names of these, the id first.

    Raises:
        FormatError: if a column is missing, repeated or nested, or if no column looks like the text.
    """
    schema = file.schema_arrow
    declared = format_of(file, raw, declared)
    policy = (name for name in declared.policy if name in fields_in(schema) and not _is_nested(schema, name))
    wanted = (declared.id, declared.url, *declared.content, *policy)
    names = list(dict.fromkeys(name for name in wanted if name))
    for name in names:
        if _is_nested(schema, name) and not holds_texts(kind_of(schema, name)):
            raise FormatError(f"column {name} holds {kind_of(schema, name)}, which is not text")
    return declared, names


def _is_nested(schema: pa.Schema, name: str) -> bool:
    """Return whether a column holds lists or the like: a value of the keep policy is then missing, as in JSON."""
    return bool(pa.types.is_nested(kind_of(schema, name)))


def _read_group(
    file: pq.ParquetFile, raw: BinaryIO, group: int, declared: Format, names: list[str], max_record: int
) -> Iterator[Rows | Reject]:
    """Yield the rows of a row group, then one reject for those that could not be decoded."""
    promised, read, reason = file.metadata.row_group(group).num_rows, 0, "damaged"
    detail = "its pages end early"

    try:
        for batch, first in read_batches(file, raw, group, names, max_record):
            yield Rows(_decode(batch, names), declared, group, first)
            read = first + batch.num_rows
    except TooLargeError as error:
        reason, detail = "too large", str(error)
    except DAMAGED as error:
        detail = first_line(error)

    if read < promised:
        where = f"row group {group + 1} of {file.num_row_groups}"
        text = f"{read:,} of its {promised:,} rows are read; the file has {file.metadata.num_rows:,}"
        yield Reject(reason, f"{detail}; {where}: {text}", "")


class TooLargeError(Exception):
    """A row group is not decoded: see LARGEST."""


def read_batches(
    file: pq.ParquetFile, raw: BinaryIO, group: int, names: list[str] | None, max_record: int
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield the rows of a row group, each batch with the number of its first row.

    Arrow decodes all rows of a request at once. With a dictionary of one long value, every row has that length: a file
    of 1.8 KB became 500 MB. So as many rows are decoded at a time as take BLOCK_BYTES on average, and EXPANDED if each
    is the longest value of a dictionary; fewer where a part of a group has longer values than the others.

    Args:
        group: the number of the row group.
        names: of columns; None for all.
        max_record: the most bytes of a record.

    Raises:
        TooLargeError: for values that are too long to be decoded.
        OSError: where a page is damaged; or pa.ArrowException, or ValueError.
    """
    fewest, most = _rows_together(file, raw, group, names, max_record)
    start, step = 0, 1 << most.bit_length() - 1  # powers of two, so that batches begin alike
    while True:
        at = 0
        try:
            for batch in file.iter_batches(step, row_groups=[group], columns=names, use_threads=False):
                if at >= start:
                    yield batch, at
                    start = at + batch.num_rows
                at += batch.num_rows
                if batch.nbytes > 4 * BLOCK_BYTES and step > fewest:  # this part of the group has longer values
                    break
            else:
                return
        except DAMAGED:
            if step == fewest:
                raise
            step = fewest
        else:
            step = max(fewest, step // 16)


def _rows_together(
    file: pq.ParquetFile, raw: BinaryIO, group: int, names: list[str] | None, max_record: int
) -> tuple[int, int]:
    """Return the fewest and the most rows that are decoded at a time.

    Raises:
        TooLargeError: for values, or lists of values, that are too long to be decoded.
    """
    dictionary, lists, mean, most, is_shared, flat = 0, 0, 0, MOST_ROWS, False, list[str]()
    for column in _chosen(file, group, names):
        pages, each = _pages_of(column, raw), 1
        values = sum(pages.values)
        if column.path_in_schema in file.schema_arrow.names:
            dictionary = max(dictionary, pages.dictionary)
            flat.append(column.path_in_schema)
        else:
            each = -(-values // max(file.metadata.row_group(group).num_rows, 1)) or 1
            lists = max(lists, _longest_list(file, raw, group, column, pages, max_record))
        mean = max(mean, sum(pages.sizes) // max(values, 1) * each)
        most = min(most, most_rows(pages, PAGES_BYTES, MOST_ROWS * each) // each)
        is_shared |= pages.is_shared
        if max(pages.sizes, default=0) > MOST_PAGE:
            raise TooLargeError(f"a page of more than {MOST_PAGE:,} bytes")
    if max(dictionary, lists, mean) > LARGEST * max_record:
        raise TooLargeError(f"values of up to {max(dictionary, lists, mean):,} bytes, more than input.max_record")

    fewest = 1 if max(dictionary, lists) > ROWS_BYTES else ROWS
    most = min(most, BLOCK_BYTES // max(mean, 1))
    if dictionary * most > EXPANDED:
        dictionary = _longest_value(file, raw, group, flat) or dictionary
    if (longest := max(dictionary, lists)) * most > EXPANDED:
        most = min(most, EXPANDED // longest)
    return fewest, fewest if is_shared else max(fewest, most)


def _longest_list(
    file: pq.ParquetFile, raw: BinaryIO, group: int, column: pq.ColumnChunkMetaData, pages: Pages, max_record: int
) -> int:
    """Return the bytes of the longest list of a column, as far as its entries repeat a dictionary.

    Where all entries together are no more than a file may expand to, a list of mean length of the longest entry.

    Raises:
        TooLargeError: for more entries than the bytes of the column may expand to.
        OSError: if a page is damaged; or pa.ArrowException, or ValueError.

    Cost: the indices of the entries are decoded if they repeat more than a file may expand to.
    """
    values, allowed = sum(pages.values), max(LARGEST * max_record, EXPANSION * column.total_compressed_size)
    if WIDEST * values > allowed:
        raise TooLargeError(f"lists of {values:,} entries, in {column.total_compressed_size:,} bytes")
    if not pages.dictionary:
        return 0
    path = [column.path_in_schema]
    longest = _longest_value(file, raw, group, path) or pages.dictionary
    if longest * values <= allowed:
        return int(longest * (-(-values // max(file.metadata.row_group(group).num_rows, 1))))
    coded = _open_coded(file, raw, path)
    batches = coded.iter_batches(MOST_ROWS, row_groups=[group], columns=path, use_threads=False)
    return max((int(_bytes_of(batch.column(0)).max()) for batch in batches if batch.num_rows), default=0)


def _bytes_of(values: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the bytes of the strings in each value, as far as they are those of dictionaries."""
    if pa.types.is_dictionary(values.type):
        lengths = pc.fill_null(pc.binary_length(values.dictionary).take(values.indices), 0)
        return np.asarray(lengths, np.int64)
    sizes = np.zeros(len(values), np.int64)
    if isinstance(values, pa.StructArray):
        for inner in values.flatten():
            sizes += _bytes_of(inner)
    elif isinstance(values.type, LISTS):
        ends = np.append(0, np.cumsum(_bytes_of(values.values)))
        sizes = np.diff(ends[values.offsets.to_numpy(zero_copy_only=False)])
    return sizes


def _chosen(file: pq.ParquetFile, group: int, names: list[str] | None) -> list[pq.ColumnChunkMetaData]:
    columns, inner = columns_of(file, group), tuple(f"{name}." for name in names or ())
    return [
        one for one in columns
        if names is None or one.path_in_schema in names or one.path_in_schema.startswith(inner)
    ]  # fmt: skip


def expanded_size(raw: BinaryIO, most: int) -> int:
    """Return the bytes that the columns of a whole file expand to, or more; above `most` not exactly.

    From the headers of its pages: only of dictionaries that could expand to more, the first is expanded.

    Raises:
        OSError: if the file is damaged; or pa.ArrowException, or ValueError.
    """
    file, total, stored = open_parquet(raw), 0, 0
    for group in range(file.num_row_groups):
        for column in columns_of(file, group):
            pages = _pages_of(column, raw)
            stored += column.total_compressed_size
            values, longest = sum(pages.values), pages.dictionary if column.physical_type == "BYTE_ARRAY" else 0
            if longest * values > most - total:
                longest = _longest_value(file, raw, group, [column.path_in_schema]) or longest
            total += sum(pages.sizes) + max(longest, WIDEST) * values
            if pages.is_shared or total > most or stored > raw.seek(0, os.SEEK_END):
                return max(total, most + 1)
    return total


def _pages_of(column: pq.ColumnChunkMetaData, raw: BinaryIO) -> Pages:
    start = column.data_page_offset
    if column.dictionary_page_offset:
        start = min(start, column.dictionary_page_offset)
    return measure_pages(raw, start, column.total_compressed_size)


def _open_coded(file: pq.ParquetFile, raw: BinaryIO, paths: list[str]) -> pq.ParquetFile:
    """Open a file whose columns at these paths are read as indices of dictionaries."""
    return pq.ParquetFile(raw, metadata=file.metadata, read_dictionary=paths, buffer_size=PIECE, pre_buffer=False)


def _longest_value(file: pq.ParquetFile, raw: BinaryIO, group: int, names: list[str]) -> int:
    """Return the bytes of the longest value in the dictionaries of a row group's strings; 0 if that is not known."""
    try:
        coded = _open_coded(file, raw, names)
        row = next(coded.iter_batches(1, row_groups=[group], columns=names, use_threads=False), None)
        known = [values for column in (row.columns if row is not None else []) for values in _dictionaries(column)]
        return max((pc.max(pc.binary_length(values)).as_py() or 0 for values in known), default=0)
    except DAMAGED:
        return 0


def _dictionaries(column: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_dictionary(column.type):
        yield column.dictionary
    elif isinstance(column, pa.StructArray):
        for inner in column.flatten():
            yield from _dictionaries(inner)
    elif isinstance(column.type, LISTS):
        yield from _dictionaries(column.values)


def _read_row(batch: pa.RecordBatch, row: int, declared: Format, max_record: int) -> Record | Reject:
    values: dict[str, Value | list[object] | None] = {}
    for name in batch.schema.names:
        scalar = batch.column(name)[row]
        try:
            values[name] = _value(scalar)
        except (pa.ArrowException, ValueError) as error:
            raw = scalar.as_buffer()[: 4 * EXCERPT_LENGTH].to_pybytes() if hasattr(scalar, "as_buffer") else b""
            return Reject("malformed", f"{name}: {first_line(error)}", excerpt(raw), _text(values, declared.id))

    doc_id, url = _text(values, declared.id), _text(values, declared.url)
    content = [values[name] for name in declared.content]
    fields = [one for value in content for one in ([value] if isinstance(value, bytes) else texts_of(value))]
    if not fields:
        return Reject("no content", f"{' and '.join(declared.content)} are null", "", doc_id)
    start = str(fields[0][:EXCERPT_LENGTH])
    if sum(map(len, fields)) > max_record:
        return Reject("too large", "more than input.max_record", start, doc_id)
    policy = tuple(_text(values, name) for name in declared.policy)
    unread = unread_parts([part for value in content for part in left_of(value)])
    texts = [(value, declared.is_markup) for value in fields]
    return make_record(doc_id, url, texts, start=start, policy=policy, unread=unread)


def _value(scalar: pa.Scalar) -> Value | list[object] | None:
    """Return a value: strings and bytes unchanged, UUIDs and whole numbers in full, lists as those of Python, anything
    else as Arrow writes it.

    None for null and NaN.

    Raises:
        ValueError: for a string that is not UTF-8.
        pa.ArrowException: for a value that cannot be written as text, such as a time outside the calendar.
    """
    while isinstance(scalar, pa.DictionaryScalar | pa.ExtensionScalar):
        is_uuid = getattr(scalar.type, "extension_name", "") == "arrow.uuid"
        scalar = scalar.value
        if is_uuid and scalar is not None and scalar.is_valid:
            return str(UUID(bytes=scalar.as_py()))
    if scalar is None or not scalar.is_valid:
        return None
    if pa.types.is_nested(scalar.type):
        return list(scalar.as_py())
    if pa.types.is_floating(scalar.type):
        number = float(scalar.as_py())
        if number != number:  # noqa: PLR0124 - NaN, which stands for null where a column has no other
            return None
        if number.is_integer():
            return str(int(number))
    is_text = hasattr(scalar, "as_buffer")
    value = scalar.as_py() if is_text else scalar.cast(in_utc(scalar.type)).cast(pa.string()).as_py()
    return value if isinstance(value, str | bytes) else str(value)


def _text(values: dict[str, Value | list[object] | None], name: str | None) -> str | None:
    """Return a value as text; bytes that are not UTF-8 in hexadecimal digits, so that different ones stay different.

    Of a list its first text, as of JSON.
    """
    value = values.get(name) if name else None
    value = next(iter(texts_of(value)), None) if isinstance(value, list) else value
    if not isinstance(value, bytes):
        return value if isinstance(value, str) else None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def _decode(batch: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    """Return these columns in this order, of types whose rows Arrow can take: no codes of a dictionary, no views."""
    columns = []
    for name in names:
        column = batch.column(name) if name in batch.schema.names else field_of(batch, name)
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        columns.append(plain.cast(VIEWED.get(plain.type, plain.type)))
    return pa.RecordBatch.from_arrays(columns, names)


def read_plain(rows: Rows, max_record: int) -> PlainRecords:
    """Read rows. A row is plain if the record of `Rows.read` takes these values as they are.

    Its text and its title, if any, are strings, its id and its URL are strings of printable ASCII or whole numbers.

    Cost: some 0.1 ns a byte of text, and some 1 µs a value of the keep policy that is no string or whole number.
    """
    declared, size = rows.declared, rows.batch.num_rows
    nothing = pa.nulls(size, pa.string())
    odd = PlainRecords(np.zeros(size, np.bool_), nothing, nothing, nothing, nothing)
    if len(declared.content) not in (1, 2) or declared.prefixes_ids:
        return odd
    title = declared.content[0] if len(declared.content) > 1 else None
    columns = [
        rows.batch.column(name) if name else nothing
        for name in (declared.content[-1], title, declared.id, declared.url)
    ]
    text, titled, *named = (column.type for column in columns)
    if (
        text not in STRINGS
        or titled not in STRINGS
        or not all(kind in STRINGS or pa.types.is_integer(kind) for kind in named)
    ):
        return odd
    try:
        for column in columns:
            column.validate(full=True)
        texts, titles, ids, urls = (column.cast(pa.string()) for column in columns)
        asked = tuple(_spell(rows.batch, name) for name in declared.policy)
    except (pa.ArrowException, ValueError):  # a string that is not UTF-8
        return odd
    size_of = pc.add(pc.binary_length(texts), pc.fill_null(pc.binary_length(titles), 0))
    is_short = pc.fill_null(pc.less_equal(size_of, max_record), fill_value=False)
    is_plain = np.asarray(is_short) & are_printable(ids) & are_printable(urls)
    return PlainRecords(is_plain, texts, non_empty(ids), non_empty(urls), non_empty(titles), asked)


def _spell(batch: pa.RecordBatch, name: str) -> pa.StringArray:
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.string())
    column = batch.column(name)
    column.validate(full=True)
    if column.type in STRINGS or pa.types.is_integer(column.type):
        return column.cast(pa.string())
    return pa.array([_text({name: _value(scalar)}, name) for scalar in column], pa.string())
