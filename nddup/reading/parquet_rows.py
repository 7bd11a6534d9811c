"""The rows of a Parquet file as records, some at a time, so that memory is bounded by the length of a few rows.

    read_parquet  a file  -> its records and rejects
    read_rows     a file  -> Rows, and rejects
    read_plain    Rows    -> the texts, ids and URLs of those that are plain, without an object for each
    place_rows    a file  -> its records and rejects, one by one, with their places

After an error, rows are decoded ROWS at a time, so that those before a damaged page are read. A value that cannot be
read makes its row a reject. A damaged page makes the rest of its row group one reject, which says how many rows the
metadata promised.
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nddup.reading.chats import LISTS, chats_of, holds_texts, left_of, texts_of, unread_parts
from nddup.reading.formats import FileHead, Format, FormatError
from nddup.reading.json_lines import PlainRecords, are_printable, non_empty
from nddup.reading.outcomes import EXCERPT_LENGTH, Record, Reject, Value, excerpt, make_record
from nddup.reading.streams import PIECE
from nddup.reading.xml_structure import table_format

ROWS = 4
"""Fewest rows decoded at a time; 1 if a dictionary is longer than ROWS_BYTES."""

ROWS_BYTES = 16 << 20

MOST_ROWS = 4_096
"""Maximum number of rows decoded at a time."""

BLOCK_BYTES = 4 << 20
"""Bytes of values, on average, that are decoded at a time."""

EXPANDED = 8 << 20
"""Bytes of rows that are decoded at a time, if each is as long as the longest value of a dictionary."""

LARGEST = 2
"""A row group is not decoded if a dictionary, or the mean length of a value, exceeds this many times `max_record`."""

STRINGS = {pa.string(), pa.large_string()}
BYTES = {pa.binary(), pa.large_binary()}
VIEWED = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}

LONGEST = 100
"""Maximum number of characters of the text of a number or a time, for each of its bytes."""

PAGE_HEADER = 16
"""First bytes of a page header, which hold the page's kind and expanded size."""

DICTIONARY_PAGE = 2
DAMAGED: tuple[type[Exception], ...] = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises for bytes that it cannot read."""


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
        limit: the most bytes of content; None for no limit.
        max_record: the most bytes of a record.

    Returns:
        Records and rejects: `malformed`, `no content`, `id too long` and `too large` for a row; `damaged` and
        `too large` for the rest of a row group, with the number of rows promised; `damaged` for an unreadable file;
        `no records` if its columns cannot be used; `too large` at `limit`, where reading stops.

    Memory: as `read_rows`.
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
    expanded = 0
    for some in read_rows(raw, head, max_record):
        if isinstance(some, Reject):
            yield some, None
            continue
        for row in range(some.batch.num_rows):
            found = some.read(row, max_record)
            yield found, RowPlace(some.group, some.first + row)
            expanded += sum(map(len, found.fields)) if isinstance(found, Record) else 0
            if limit is not None and expanded > limit:
                rows = open_parquet(raw).metadata.num_rows
                detail = f"expands to more than {limit:,} bytes (input.max_expansion); {rows:,} rows are promised"
                yield Reject("too large", detail, ""), None
                return


def read_rows(raw: BinaryIO, head: FileHead, max_record: int) -> Iterator[Rows | Reject]:
    """Yield the rows of a file, in file order, and rejects for a row group or the file, as of `read_parquet`.

    Memory: see BLOCK_BYTES and EXPANDED; and what Arrow expands at a time: one page per column.
    """
    try:
        file = open_parquet(raw)
        declared, names = _choose_columns(file, head.format)
    except FormatError as error:
        yield Reject("no records", str(error), "")
        return
    except DAMAGED as error:
        yield Reject("damaged", first_line(error), "")
        return

    for group in range(file.num_row_groups):
        yield from _read_group(file, raw, group, declared, names, max_record)

    there = sum(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))
    if there != file.metadata.num_rows:
        yield Reject("damaged", f"the file has {file.metadata.num_rows:,} rows, its row groups {there:,}", "")


def content_size(some: Rows) -> int:
    """Return the bytes of the content, or a larger number."""
    columns = [some.batch.column(name) for name in some.declared.content]
    are_texts = [column.type in STRINGS | BYTES or pa.types.is_nested(column.type) for column in columns]
    return sum(column.nbytes * (1 if is_text else LONGEST) for column, is_text in zip(columns, are_texts, strict=True))


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
    declared = table_format(declared, schema.names, chats_of(schema))
    wanted = (declared.id, declared.url, *declared.content, *(name for name in declared.policy if name in schema.names))
    names = list(dict.fromkeys(name for name in wanted if name))
    for name in names:
        if schema.names.count(name) > 1:
            raise FormatError(f"{schema.names.count(name)} columns named {name}")
        if pa.types.is_nested(kind := schema.field(name).type) and not (name in declared.content and holds_texts(kind)):
            raise FormatError(f"column {name} holds {kind}, which is not text")
    return declared, names


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
        told = f"{read:,} of its {promised:,} rows are read; the file has {file.metadata.num_rows:,}"
        yield Reject(reason, f"{detail}; {where}: {told}", "")


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
        file: the file.
        raw: the same.
        group: the number of the row group.
        names: of columns; None for all.
        max_record: the most bytes of a record.

    Raises:
        TooLargeError: for values that are too long to be decoded.
        OSError: where a page is damaged; or pa.ArrowException, or ValueError.
    """
    longest = measure_values(file, raw, group, names)
    if max(longest) > LARGEST * max_record:
        raise TooLargeError(f"values of up to {max(longest):,} bytes, more than input.max_record")

    dictionary, mean = longest
    fewest = 1 if dictionary > ROWS_BYTES else ROWS
    most = min(MOST_ROWS, BLOCK_BYTES // max(mean, 1))
    if dictionary * most > EXPANDED:
        most = min(most, EXPANDED // max(_longest_value(file, raw, group, names) or dictionary, 1))
    columns = columns_of(file, group)
    is_shared = any("DELTA_BYTE_ARRAY" in column.encodings for column in columns)  # values that repeat others in part
    most = fewest if is_shared else max(fewest, most)
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


def measure_values(file: pq.ParquetFile, raw: BinaryIO, group: int, names: list[str] | None) -> tuple[int, int]:
    """Return the bytes of the largest dictionary of the columns `names`, and the largest mean bytes per value.

    A value of a list counts as many times as a list has entries on average; of its dictionary, the longest entry.
    """
    metadata, dictionary, mean = file.metadata.row_group(group), 0, 0
    for column in columns_of(file, group):
        path = column.path_in_schema
        is_list = names is not None and path not in names
        if is_list and not path.startswith(tuple(f"{name}." for name in names or ())):
            continue
        raw.seek(column.dictionary_page_offset or column.data_page_offset)
        size, each = _dictionary_size(raw.read(PAGE_HEADER)), 1
        if is_list:
            each = -(-column.num_values // max(metadata.num_rows, 1))
            size = size and (_longest_value(file, raw, group, [path]) or size)
        dictionary = max(dictionary, size * each)
        mean = max(mean, column.total_uncompressed_size // max(column.num_values, 1) * each)
    return dictionary, mean


def _longest_value(file: pq.ParquetFile, raw: BinaryIO, group: int, names: list[str] | None) -> int:
    """Return the bytes of the longest value in the dictionaries of a row group's strings; 0 if that is not known."""
    try:
        coded = pq.ParquetFile(raw, metadata=file.metadata, read_dictionary=names, buffer_size=PIECE, pre_buffer=False)
        row = next(coded.iter_batches(1, row_groups=[group], columns=names, use_threads=False), None)
        known = [values for column in (row.columns if row is not None else []) for values in _dictionaries(column)]
        return max((pc.max(pc.binary_length(values)).as_py() or 0 for values in known), default=0)
    except DAMAGED:
        return 0


def _dictionaries(column: pa.Array) -> Iterator[pa.Array]:
    """Yield the dictionaries of a column, also of those of the fields of its lists."""
    if pa.types.is_dictionary(column.type):
        yield column.dictionary
    elif isinstance(column, pa.StructArray):
        for inner in column.flatten():
            yield from _dictionaries(inner)
    elif isinstance(column.type, LISTS):
        yield from _dictionaries(column.values)


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
    told = [(value, declared.is_markup) for value in fields]
    return make_record(doc_id, url, told, start=start, policy=policy, unread=unread)


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
    value = scalar.as_py() if hasattr(scalar, "as_buffer") else scalar.cast(pa.string()).as_py()
    return value if isinstance(value, str | bytes) else str(value)


def _text(values: dict[str, Value | list[object] | None], name: str | None) -> str | None:
    """Return a value as text; bytes that are not UTF-8 in hexadecimal digits, so that different ones stay different."""
    value = values.get(name) if name else None
    if not isinstance(value, bytes):
        return value if isinstance(value, str) else None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def first_line(error: Exception) -> str:
    """Return the first line of an error's message; pyarrow adds others."""
    return (str(error) or type(error).__name__).splitlines()[0]


def _decode(batch: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    """Return these columns in this order, of types whose rows Arrow can take: no codes of a dictionary, no views."""
    columns = []
    for name in names:
        column = batch.column(name)
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        columns.append(plain.cast(VIEWED.get(plain.type, plain.type)))
    return pa.RecordBatch.from_arrays(columns, names)


def read_plain(rows: Rows, max_record: int) -> PlainRecords:
    """Read rows. A row is plain if the record of `Rows.read` takes these values as they are.

    Its text and its title, if any, are strings, its id and its URL are strings of printable ASCII or whole numbers, and
    no column of the keep policy is asked for.

    Cost: some 0.1 ns a byte of text.
    """
    declared, size = rows.declared, rows.batch.num_rows
    nothing = pa.nulls(size, pa.string())
    odd = PlainRecords(np.zeros(size, np.bool_), nothing, nothing, nothing, nothing)
    if len(declared.content) not in (1, 2) or declared.policy or declared.prefixes_ids:
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
    except pa.ArrowException:  # a string that is not UTF-8
        return odd
    size_of = pc.add(pc.binary_length(texts), pc.fill_null(pc.binary_length(titles), 0))
    is_short = pc.fill_null(pc.less_equal(size_of, max_record), fill_value=False)
    is_plain = np.asarray(is_short) & are_printable(ids) & are_printable(urls)
    return PlainRecords(is_plain, texts, non_empty(ids), non_empty(urls), non_empty(titles))
