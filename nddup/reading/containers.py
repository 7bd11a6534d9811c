"""Files that are not cut at a separator: CSV, Parquet, and pages that are files of their own.

container_head    first bytes and name of a file -> its head, where it is one of these (or WARC)
read_container    an open file -> its records, one by one
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nddup.reading.charsets import canonical_charset, decode_content
from nddup.reading.formats import FORMATS, FileHead, Format, FormatError
from nddup.reading.outcomes import EXCERPT_LENGTH, Record, Reject, make_record
from nddup.reading.streams import PIECE, Expanded, StoppedError
from nddup.reading.warc import cut_warc, parse_warc
from nddup.reading.xml_structure import BODY_NAMES, ID_NAMES, TITLE_NAMES, URL_NAMES, first_of

CONTAINERS = ("warc", "csv", "parquet", "html")
PARQUET_ROWS = 500
"""Rows of a Parquet file that are held at a time."""

PAGE_BYTES = 4096
"""Of a file, so many bytes are looked at for the root of a page."""

_BLANKS = re.compile(rb"\s*+")
_PAGE = re.compile(rb"<(!doctype\s+html|html)[\s>]", re.IGNORECASE)
_PAGE_NAME = re.compile(r"\.(x?html?|shtml|xht)$", re.IGNORECASE)
_TABLE_NAME = re.compile(r"\.(csv|tsv)(\.(gz|bz2|zst|xz))?$", re.IGNORECASE)
_HOST = re.compile(r"[\w-]+(\.[\w-]+)+(:\d+)?$")


def container_head(head: bytes, name: str, format: str | None, options: Mapping[str, Any]) -> FileHead | None:  # noqa: A002
    """Tell from the first expanded bytes of a file, and its name, whether it is a container, and how to read it.

    Args:
        head: the first bytes, expanded.
        name: the file's name; only an ending `.csv`, `.tsv`, `.html` and the like says anything.
        format: `input.format`; None to detect.
        options: `id`, `url`, `content` (paths), `charset` as set by the user; None where they are not.

    Returns:
        The head; None for a file of another format.

    Raises:
        FormatError: if the columns of a table cannot be told.
    """
    kind, why = (format, "input.format") if format else _detect(head, name)
    if kind not in CONTAINERS:
        return None
    settings = {key: value for key, value in options.items() if value and key != "charset"}
    declared = replace(FORMATS[kind], **settings)
    if kind == "csv":
        return _csv_head(head, declared, options.get("charset"), why)
    return FileHead(format=declared, encoding="utf-8", separator=b"", why=why)


def _detect(head: bytes, name: str) -> tuple[str, str]:
    if head.startswith(b"PAR1"):
        return "parquet", "begins with PAR1"
    if head.startswith(b"WARC/"):
        return "warc", "begins with WARC/"
    if _TABLE_NAME.search(name):
        return "csv", "its name"
    if _PAGE_NAME.search(name):
        return "html", "its name"
    return ("html", "begins as a page") if _begins_as_page(head[:PAGE_BYTES]) else ("", "")


def _begins_as_page(head: bytes) -> bool:
    """Whether the root is HTML's: before it stand at most blanks, an XML declaration and whole comments. Linear."""
    at = _past_blanks(head, 0)
    if head[at : at + 5].lower() == b"<?xml" and (end := head.find(b">", at)) > 0:
        at = _past_blanks(head, end + 1)

    while head.startswith(b"<!--", at):
        end = head.find(b"-->", at + 4)
        if end < 0:
            return False
        at = _past_blanks(head, end + 3)
    return _PAGE.match(head, at) is not None


def _past_blanks(head: bytes, at: int) -> int:
    found = _BLANKS.match(head, at)
    return found.end() if found else at


def is_page(name: str) -> bool:
    """Whether a file's name alone says that it is a page: its head need not be read."""
    return _PAGE_NAME.search(name) is not None


def _csv_head(head: bytes, declared: Format, charset: str | None, why: str) -> FileHead:
    decoded = decode_content(head, charset)
    encoding = canonical_charset(charset) if charset else decoded.encoding
    encoding = "utf-8" if encoding in (None, "ascii") else str(encoding)
    if head.startswith(b"\xef\xbb\xbf"):
        encoding = "utf-8-sig"
    elif head.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    text = decoded.text.lstrip("\r\n")
    first = next(io.StringIO(text, newline=""), "")  # ends as a row does: at a return, a line feed, or both
    delimiter = max(",;\t|", key=first.count)
    try:
        columns = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    except csv.Error as error:
        raise FormatError(f"its first line is no line of a table: {error}") from error
    return FileHead(
        format=_table_format(declared, [column.strip() for column in columns]),
        encoding=encoding,
        separator=delimiter.encode(),
        why=why,
    )


def _table_format(declared: Format, columns: list[str]) -> Format:
    """The format with its columns chosen by name, or checked."""
    body, title = first_of(BODY_NAMES, columns), first_of(TITLE_NAMES, columns)
    content = declared.content or tuple(name for name in (title, body) if name and body)
    missing = [name for name in (declared.id, declared.url, *content) if name and name not in columns]
    if missing:
        raise FormatError(f"no column {', '.join(missing)}; there are {', '.join(columns)}")
    if not content:
        raise FormatError(f"cannot tell which column is the text; there are {', '.join(columns)}; set input.content")
    doc_id, url = declared.id or first_of(ID_NAMES, columns), declared.url or first_of(URL_NAMES, columns)
    return replace(declared, id=doc_id, url=url, content=content)


def read_container(
    raw: BinaryIO, head: FileHead, *, source: str, compression: str, limit: int | None, max_record: int
) -> Iterator[Record | Reject]:
    """The records of one file, in its order.

    Args:
        raw: the file as stored; Parquet needs one that can seek.
        head: as `container_head` gave it.
        source: its name in the tables: the id of a page.
        compression: of the whole file.
        limit: the most bytes it may expand to.
        max_record: the longest record read.

    Returns:
        Records and rejects. A stop is the last reject. Never raises for what is in the file.
    """
    kind = head.format.kind
    if kind == "parquet":
        yield from _read_parquet(raw, head, max_record)
        return
    stream = Expanded(raw, compression, limit)
    if kind == "warc":
        for found in cut_warc(stream, max_record=max_record):
            yield found if isinstance(found, Reject) else parse_warc(found.value, max_record=max_record)
    elif kind == "csv":
        yield from _read_csv(stream, head, max_record)
    else:
        yield _read_page(stream, head, source, max_record)


def _read_page(stream: Expanded, head: FileHead, source: str, max_record: int) -> Record | Reject:
    """A page: its id is its path, its address what a mirror made the path from."""
    data = b""
    try:
        while len(data) <= max_record and (piece := stream.read(PIECE)):
            data += piece
    except StoppedError as error:
        return Reject(error.reason, str(error), "", source)
    if len(data) > max_record:
        return Reject("too large", "more than input.max_record bytes", "", source)
    host, slash, _ = source.partition("/")
    url = f"http://{source}" if slash and _HOST.fullmatch(host) else None
    return Record(source, url, (data,), head.format.is_markup)


def _read_csv(stream: Expanded, head: FileHead, max_record: int) -> Iterator[Record | Reject]:
    """Rows after the header line; a row of another width than the header is a reject."""
    csv.field_size_limit(max_record)
    lines = io.TextIOWrapper(io.BufferedReader(stream, PIECE), head.encoding, errors="replace", newline="")
    rows = csv.reader(lines, delimiter=head.separator.decode())
    columns: list[str] | None = None
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield Reject("malformed", str(error), "")
            continue
        except StoppedError as error:
            yield Reject(error.reason, str(error), "")
            return
        if row is None:
            return
        if not row:
            continue
        if columns is None:
            columns = [column.strip() for column in row]
            places = [columns.index(name) for name in head.format.content if name in columns]
            id_at, url_at = (_place(columns, name) for name in (head.format.id, head.format.url))
        elif len(row) != len(columns):
            yield Reject("malformed", f"{len(row)} fields, expected {len(columns)}", "|".join(row)[:EXCERPT_LENGTH])
        else:
            doc_id, url = (row[at] if at is not None else None for at in (id_at, url_at))
            yield make_record(doc_id, url, [(row[at], head.format.is_markup) for at in places])


def _place(columns: list[str], name: str | None) -> int | None:
    return columns.index(name) if name in columns else None


def _read_parquet(raw: BinaryIO, head: FileHead, max_record: int) -> Iterator[Record | Reject]:
    try:
        file = pq.ParquetFile(raw)
        declared = _table_format(head.format, file.schema_arrow.names)
        names = dict.fromkeys(name for name in (declared.id, declared.url, *declared.content) if name)
        for batch in file.iter_batches(batch_size=PARQUET_ROWS, columns=list(names)):
            columns = {name: _texts(batch.column(name)) for name in names}
            for row in range(batch.num_rows):
                yield _parquet_row({name: values[row] for name, values in columns.items()}, declared, max_record)
    except (pa.ArrowException, OSError, FormatError, ValueError) as error:
        yield Reject("damaged", str(error).splitlines()[0], "")


def _parquet_row(row: Mapping[str, Any], declared: Format, max_record: int) -> Record | Reject:
    doc_id = row.get(declared.id) if declared.id else None
    doc_id = doc_id.decode("utf-8", "replace") if isinstance(doc_id, bytes) else doc_id
    url = row.get(declared.url) if declared.url else None
    url = url.decode("utf-8", "replace") if isinstance(url, bytes) else url
    fields = tuple(row[name] for name in declared.content if row[name] is not None)
    if not fields:
        return Reject("no content", f"{' and '.join(declared.content)} are null", "", doc_id)
    if sum(map(len, fields)) > max_record:
        return Reject("too large", "more than input.max_record", str(fields[0][:EXCERPT_LENGTH]), doc_id)
    return make_record(doc_id, url, [(value, declared.is_markup) for value in fields])


def _texts(column: pa.Array) -> list[Any]:
    """Strings and bytes as they are, anything else as Arrow writes it."""
    kind = column.type
    if not any(is_kind(kind) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary,
                                              pa.types.is_large_binary, pa.types.is_string_view)):  # fmt: skip
        column = pc.cast(column, pa.string())
    return list(column.to_pylist())
