"""Read the rows of a Parquet file as records, a few at a time, so that memory is bounded by the length of a few rows.

Arrow decodes all rows of a request at once. With a dictionary of one long value, every row has that length: a file of
1.8 KB became 500 MB. So ROWS rows are decoded at a time, at 5 us per row. A value that cannot be read makes its row a
reject. A damaged page makes the rest of its row group one reject, which says how many rows the metadata promised.

pyarrow ends the process where the metadata of a column are damaged and it is asked for them: `columns_of` has them read
first by a call that raises.
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from nddup.reading.formats import FileHead, Format, FormatError
from nddup.reading.outcomes import EXCERPT_LENGTH, Record, Reject, Value, excerpt, make_record
from nddup.reading.streams import PIECE
from nddup.reading.xml_structure import table_format

ROWS = 4
"""Rows decoded at a time; 1 if a dictionary is longer than ROWS_BYTES."""

ROWS_BYTES = 16 << 20

LARGEST = 2
"""A row group is not decoded if a dictionary, or the mean length of a value, exceeds this many times `max_record`."""

PAGE_HEADER = 16
"""First bytes of a page header, which hold the page's kind and expanded size."""

DICTIONARY_PAGE = 2
DAMAGED: tuple[type[Exception], ...] = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises for bytes that it cannot read."""


def read_parquet(raw: BinaryIO, head: FileHead, *, limit: int | None, max_record: int) -> Iterator[Record | Reject]:
    """Yield the records of a file, in file order.

    Args:
        raw: the file, seekable.
        head: its format; columns that are not set are chosen by their names.
        limit: the most bytes of content; None for no limit.
        max_record: the most bytes of a record.

    Returns:
        Records and rejects: `malformed`, `no content`, `id too long` and `too large` for a row; `damaged` and
        `too large` for the rest of a row group, with the number of rows promised; `damaged` for an unreadable file;
        `no records` if its columns cannot be used; `too large` at `limit`, where reading stops.

    Memory: ROWS values, and what Arrow expands at a time: one page per column.
    """
    for found, _ in place_rows(raw, head, limit=limit, max_record=max_record):
        yield found


class RowPlace(NamedTuple):
    """The row group of a row, and its number in it, both from 0."""

    group: int
    row: int


def place_rows(
    raw: BinaryIO, head: FileHead, *, limit: int | None, max_record: int
) -> Iterator[tuple[Record | Reject, RowPlace | None]]:
    """Yield the items of `read_parquet` with their places; None if a reject stands for several rows or for the file."""
    try:
        file = open_parquet(raw)
        declared, names = _choose_columns(file, head.format)
    except FormatError as error:
        yield Reject("no records", str(error), ""), None
        return
    except DAMAGED as error:
        yield Reject("damaged", first_line(error), ""), None
        return

    expanded = 0
    for group in range(file.num_row_groups):
        for found, row in _read_group(file, raw, group, declared, names, max_record):
            yield found, None if row is None else RowPlace(group, row)
            expanded += sum(map(len, found.fields)) if isinstance(found, Record) else 0
            if limit is not None and expanded > limit:
                rows = file.metadata.num_rows
                detail = f"expands to more than {limit:,} bytes (input.max_expansion); {rows:,} rows are promised"
                yield Reject("too large", detail, ""), None
                return

    there = sum(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))
    if there != file.metadata.num_rows:
        yield Reject("damaged", f"the file has {file.metadata.num_rows:,} rows, its row groups {there:,}", ""), None


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


def _choose_columns(file: pq.ParquetFile, declared: Format) -> tuple[Format, list[str]]:
    """Return the format with its columns, and the names of these, the id first.

    Raises:
        FormatError: if a column is missing, repeated or nested, or if no column looks like the text.
    """
    schema = file.schema_arrow
    declared = table_format(declared, schema.names)
    wanted = (declared.id, declared.url, *declared.content, *(name for name in declared.policy if name in schema.names))
    names = list(dict.fromkeys(name for name in wanted if name))
    for name in names:
        if schema.names.count(name) > 1:
            raise FormatError(f"{schema.names.count(name)} columns named {name}")
        if pa.types.is_nested(schema.field(name).type):
            raise FormatError(f"column {name} holds {schema.field(name).type}, which is not text")
    return declared, names


def _read_group(
    file: pq.ParquetFile, raw: BinaryIO, group: int, declared: Format, names: list[str], max_record: int
) -> Iterator[tuple[Record | Reject, int | None]]:
    """Yield the rows of a row group with their numbers, then one reject for the rows that could not be decoded."""
    promised, read, reason = file.metadata.row_group(group).num_rows, 0, "damaged"
    detail = "its pages end early"

    try:
        dictionary, mean = measure_values(columns_of(file, group), raw, names)
        if max(dictionary, mean) > LARGEST * max_record:
            reason, detail = "too large", f"values of up to {max(dictionary, mean):,} bytes, more than input.max_record"
        else:
            rows = 1 if dictionary > ROWS_BYTES else ROWS
            for batch in file.iter_batches(rows, row_groups=[group], columns=names, use_threads=False):
                for row in range(batch.num_rows):
                    yield _read_row(batch, row, declared, names, max_record), read
                    read += 1
    except DAMAGED as error:
        detail = first_line(error)

    if read < promised:
        where = f"row group {group + 1} of {file.num_row_groups}"
        told = f"{read:,} of its {promised:,} rows are read; the file has {file.metadata.num_rows:,}"
        yield Reject(reason, f"{detail}; {where}: {told}", ""), None


def measure_values(columns: list[pq.ColumnChunkMetaData], raw: BinaryIO, names: list[str]) -> tuple[int, int]:
    """Return the bytes of the longest dictionary of the columns `names`, and the largest mean bytes per value."""
    dictionary = mean = 0
    for column in columns:
        if column.path_in_schema in names:
            raw.seek(column.dictionary_page_offset or column.data_page_offset)
            dictionary = max(dictionary, _dictionary_size(raw.read(PAGE_HEADER)))
            mean = max(mean, column.total_uncompressed_size // max(column.num_values, 1))
    return dictionary, mean


def _dictionary_size(header: bytes) -> int:
    """Read the expanded size of a dictionary page from the start of its header; 0 for any other page.

    Source: Thrift's compact protocol: each of the first fields is a byte 0x15, then a zigzag number in groups of seven
    bits, lowest group first.
    """
    numbers: list[int] = []
    at = 0
    while len(numbers) < 2 and at < len(header) and header[at] == 0x15:  # noqa: PLR2004
        number, shift, at = 0, 0, at + 1
        while at < len(header):
            number |= (header[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if header[at - 1] < 0x80:  # noqa: PLR2004
                break
        numbers.append(number >> 1)
    return numbers[1] if len(numbers) == 2 and numbers[0] == DICTIONARY_PAGE else 0  # noqa: PLR2004


def _read_row(batch: pa.RecordBatch, row: int, declared: Format, names: list[str], max_record: int) -> Record | Reject:
    values: dict[str, Value | None] = {}
    for name in names:
        scalar = batch.column(name)[row]
        try:
            values[name] = _value(scalar)
        except (pa.ArrowException, ValueError) as error:
            raw = scalar.as_buffer()[: 4 * EXCERPT_LENGTH].to_pybytes() if hasattr(scalar, "as_buffer") else b""
            return Reject("malformed", f"{name}: {first_line(error)}", excerpt(raw), _text(values, declared.id))

    doc_id, url = _text(values, declared.id), _text(values, declared.url)
    fields = [value for name in declared.content if (value := values[name]) is not None]
    if not fields:
        return Reject("no content", f"{' and '.join(declared.content)} are null", "", doc_id)
    start = str(fields[0][:EXCERPT_LENGTH])
    if sum(map(len, fields)) > max_record:
        return Reject("too large", "more than input.max_record", start, doc_id)
    policy = tuple(_text(values, name) for name in declared.policy)
    return make_record(doc_id, url, [(value, declared.is_markup) for value in fields], start=start, policy=policy)


def _value(scalar: pa.Scalar) -> Value | None:
    """Return a value: strings and bytes unchanged, UUIDs and whole numbers in full, anything else as Arrow writes it.

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
    if pa.types.is_floating(scalar.type):
        number = float(scalar.as_py())
        if number != number:  # noqa: PLR0124 - NaN, which stands for null where a column has no other
            return None
        if number.is_integer():
            return str(int(number))
    value = scalar.as_py() if hasattr(scalar, "as_buffer") else scalar.cast(pa.string()).as_py()
    return value if isinstance(value, str | bytes) else str(value)


def _text(values: dict[str, Value | None], name: str | None) -> str | None:
    """Return a value as text; bytes that are not UTF-8 in hexadecimal digits, so that different ones stay different."""
    value = values.get(name) if name else None
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def first_line(error: Exception) -> str:
    """Return the first line of an error's message; pyarrow adds others."""
    return (str(error) or type(error).__name__).splitlines()[0]
