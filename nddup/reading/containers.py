"""Files that are not cut at a separator: WARC and ARC, CSV, Parquet, e-mail, and files that are a single page or text.

    container_head    first bytes and name of a file -> its head, or None for any other format
    read_container    an open file -> its records, one by one

To add such a format, declare its kind in `formats`, with the bytes by which it is recognised, and read it in `READERS`.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from nddup.reading.charsets import (
    WIDE,
    canonical_charset,
    decode_content,
    may_be_narrow,
    shown_encoding,
    wide_without_mark,
)
from nddup.reading.csv_rows import (
    NAMED,
    Dialect,
    column_names,
    dialect_of,
    find_dialect,
    is_remark,
    meant,
    read_csv,
)
from nddup.reading.decoding import decode_anyway
from nddup.reading.formats import FILE_KINDS, FORMATS, BinaryError, FileHead, Format, FormatError, NoRecordsError
from nddup.reading.mail import read_mail
from nddup.reading.mail_cutting import starts_as_mail
from nddup.reading.outcomes import Record, Reject
from nddup.reading.streams import PIECE, Expanded, StoppedError, compression_of
from nddup.reading.warc import Wanted, read_warc
from nddup.reading.warc_cutting import LEAD
from nddup.reading.xml_structure import FIRST_ROWS, table_format

CONTAINERS = tuple(kind for kind, files in FILE_KINDS.items() if not files.is_cut)
PAGE_BYTES = 4096
"""Bytes of a file that are searched for the root element of a page."""

START_BYTES = 512
"""First bytes of a record that show what it is; a tar archive shows it at byte 257."""

_BLANKS = re.compile(rb"\s*+")
_PAGE = re.compile(
    rb"<(?:!doctype\s+html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\s>]", re.IGNORECASE
)
"""First bytes of a page. Source: https://mimesniff.spec.whatwg.org/#identifying-a-resource-with-an-unknown-mime-type"""

_PAGE_IN_XML = re.compile(rb"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
"""First bytes of a page after an XML declaration: there `<title>` or `<table>` may be the root of other XML."""

PAGE_NAME = re.compile(r"\.(x?html?|shtml|xht)$", re.IGNORECASE)
_OTHER = re.compile(rb"(\xef\xbb\xbf)?\s*+(\{\s*+\"|<\?xml\s)")
"""The start of JSON lines or XML, and never of a table's header. It overrides the name of the file."""

_BINARY = {
    b"PK\3\4": "a zip archive; unpack it",
    b"%PDF": "a PDF; convert it to text first",
    b"\xd0\xcf\x11\xe0": "a Microsoft Office document; export it as text or CSV",
    b"SQLite format 3\0": "an SQLite database; export its table as CSV",
    b"ARROW1\0\0": "a file of Arrow (Feather); write its table as Parquet",
    b"Obj\x01": "a file of Avro; write its records as JSON lines or Parquet",
    b"SEQ\x06": "a file of Hadoop (SequenceFile); write its records as JSON lines or Parquet",
    b"\x89HDF\r\n\x1a\n": "a file of HDF5; write its table as Parquet",
    b"\x93NUMPY": "an array of numpy; write its texts as JSON lines or Parquet",
    b"\x04\x22\x4d\x18": "compressed by lz4; decompress it (unlz4), or compress it with zstd",
    b"\x1f\x9d": "compressed by compress; decompress it (uncompress), or compress it with zstd",
    b"\xff\x06\0\0sNaPpY": "compressed by snappy; decompress it, or compress it with zstd",
    b"\x5d\0\0": "compressed by lzma; decompress it (unlzma), or compress it with zstd",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"Rar!\x1a": "a RAR archive; unpack it first",
    b" CDX ": "an index of WARC files (CDX), without pages; give the WARC files themselves",
    b'!meta {"': "an index of WARC files (CDXJ), without pages; give the WARC files themselves",
    b"{\\rtf": "an RTF document; export it as text",
    b"%!PS": "a PostScript file; convert it to text first",
    b"\x89PNG\r\n\x1a\n": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"II*\0": "a TIFF image",
    b"MM\0*": "a TIFF image",
    b"\x1aE\xdf\xa3": "a film (Matroska, WebM)",
    b"\x7fELF": "a program",
    b"\xca\xfe\xba\xbe": "a program",
    b"MZ\x90\0": "a program",
}
"""The first bytes of files of which no text can be read, what they are, and advice where they hold a collection."""

KNOWN_BINARY = "binary: "
"""First word of `name_binary` for a file that its first bytes name; it is no damaged file of another format."""

_INDEX = re.compile(rb"[^\s<{)]++\)\S*+ \d{14} (?:(\{)|\S++ \S++ (?:\d{3}|-) )")
"""The first line of an index of WARC files without a heading: the address turned round, a date, JSON or columns."""

_PACKED = (b"PK\3\4", b"\xd0\xcf\x11\xe0")
"""First bytes of the files of `_BY_NAME`; the name decides which of them it is."""

_BY_NAME = {
    ("doc", "docx", "docm", "dot", "dotx", "odt", "pages"): "a Word document; convert it to text first (soffice"
    " --convert-to txt:Text FILE)",
    ("xls", "xlsx", "xlsm", "xlsb", "ods"): "an Excel workbook; export each sheet as CSV",
    ("ppt", "pptx", "pptm", "odp"): "a PowerPoint presentation; convert it to text first",
    ("epub",): "an e-book (EPUB); convert it to text first",
    ("msg",): "an Outlook message; export it as .eml",
}
"""Descriptions of such files, by the endings of their names."""

_BINARY_WITH_ZEROS = {
    b"FEA1": "a file of Feather; write its table as Parquet",
    b"ORC": "a file of ORC; write its table as Parquet",
    b"LZIP": "compressed by lzip; decompress it (lzip -d), or compress it with zstd",
    b"GIF8": "a GIF image",
    b"RIFF": "an image, a sound or a film (RIFF)",
    b"OggS": "a sound or a film (Ogg)",
    b"ID3": "a sound (MP3)",
    b"wOF": "a font",
}
"""The same for bytes with which a text may begin too: such a file also has zero bytes."""

_REMARKS = re.compile("\ufeff?(?=#)(?:#[^\n]*+\n|[ \t\r]*+\n)+")
"""Lines before the header of a table, which its program or a person put there."""

_TABLE_NAME = re.compile(r"\.(csv|tsv)(\.(gz|bz2|zst|xz))?$", re.IGNORECASE)
_TEXT_NAME = re.compile(r"\.(txt|text|md|markdown|rst)(\.(gz|bz2|zst|xz))?$", re.IGNORECASE)
_HOST = re.compile(r"[\w-]+(\.[\w-]+)+(:\d+)?$")


def container_head(head: bytes, name: str, format: str | None, options: Mapping[str, Any]) -> FileHead | None:  # noqa: A002
    """Determine from a file's first expanded bytes and name whether it is a container, and how to read it.

    Args:
        head: the first bytes, expanded.
        name: the name of the file; only an ending such as `.csv`, `.tsv` or `.html` matters.
        format: `input.format`; None to detect.
        options: the user's `id`, `url`, `content` (paths), `charset`, `quote` and `escape` (of a table, empty for
            none), and `statuses` (of an archive); None where not set.

    Returns:
        The head; None for a file of another format.

    Raises:
        NoRecordsError: if a table is empty.
        BinaryError: if the file is binary, whatever its name and the format given.
        FormatError: if the columns of a table cannot be determined.
    """
    if known := known_binary(head, name):
        raise BinaryError(known)
    kind, why = (format, "input.format") if format else _detect(head, name)
    if kind not in CONTAINERS:
        return None
    settings = {key: options[key] for key in ("id", "url", "content") if options.get(key)}
    if kind == "warc":
        settings["statuses"] = options.get("statuses")
    declared = replace(FORMATS[kind], **settings)
    if kind == "csv":
        if not head.strip():
            raise NoRecordsError("the file is empty")
        return _csv_head(head, declared, options, why)
    return FileHead(format=declared, encoding="utf-8", separator=b"", why=why)


def _detect(head: bytes, name: str) -> tuple[str, str]:
    for kind, files in FILE_KINDS.items():
        first = head.lstrip(LEAD) if kind == "warc" else head
        for start in files.starts:
            if first.startswith(start):
                return kind, f"begins with {start.decode().strip()}"
    if _TABLE_NAME.search(name) and not _OTHER.match(head):
        return "csv", "its name"
    if starts_as_mail(head, name):
        return "mail", "begins like e-mail"
    if _begins_as_page(head[:PAGE_BYTES], name):
        return "html", "begins like a page"
    if not is_page(name) or _OTHER.match(head):
        return "", ""
    if is_binary(head) and not head.startswith((b"<\0", b"\0<")):  # UTF-16 has zero bytes
        raise BinaryError(name_binary(head, name))
    return "html", "its name"


def _begins_as_page(head: bytes, name: str) -> bool:
    """Return whether only blanks, an XML declaration and whole comments precede the first tag of a page. Linear.

    A comment with text after it begins a page too. A text by its name is a page only if it begins with <html>: Markdown
    may begin with a tag.
    """
    at = _past_blanks(head, 3 * head.startswith(b"\xef\xbb\xbf"))
    first = _PAGE_IN_XML if is_text_name(name) else _PAGE
    if head[at : at + 5].lower() == b"<?xml" and (end := head.find(b">", at)) > 0:
        at, first = _past_blanks(head, end + 1), _PAGE_IN_XML

    start = at
    while head.startswith(b"<!--", at):
        end = head.find(b"-->", at + 4)
        if end < 0:
            return False
        at = _past_blanks(head, end + 3)
    has_text = start < at < len(head) and head[at] != ord("<") and first is _PAGE
    return has_text or first.match(head, at) is not None


def _past_blanks(head: bytes, at: int) -> int:
    match = _BLANKS.match(head, at)
    return match.end() if match else at


def is_page(name: str) -> bool:
    """Return whether a file has a page's name. It is one unless its first bytes show something else."""
    return PAGE_NAME.search(name) is not None


def is_text_name(name: str) -> bool:
    """Return whether a file has a text's name. It is one unless its first bytes show something else."""
    return _TEXT_NAME.search(name) is not None


def is_binary(head: bytes) -> bool:
    """Return whether a file's first expanded bytes hold a zero byte, and are no text of UTF-16 or UTF-32."""
    has_mark = head.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"))
    return b"\0" in head and not has_mark and wide_without_mark(head) is None


def holds_stray_zeros(head: bytes) -> bool:
    """Return whether a file's first bytes are a text but for a few zero bytes."""
    return head.count(0) <= 1 + len(head) // 100 and may_be_narrow(head)


def name_binary(head: bytes, name: str = "") -> str:
    """Say what a binary file is and, for the most common kinds, what to do with it."""
    again = "binary: compressed twice; decompress it once" if compression_of(head) else ""
    return known_binary(head, name) or again or "binary, of no format that nddup reads"


def known_binary(head: bytes, name: str = "") -> str:
    """Do as `name_binary` for a file that its first bytes name; empty for any other file."""
    kinds = _BINARY | _BINARY_WITH_ZEROS if is_binary(head) else _BINARY
    description = next((description for start, description in kinds.items() if head.startswith(start)), "")
    if (index := _INDEX.match(head)) is not None:
        description = _BINARY[b'!meta {"' if index[1] else b" CDX "]
    if head.startswith(_PACKED):
        ending = name.lower().rpartition(".")[2]
        description = next((names for endings, names in _BY_NAME.items() if ending in endings), description)
    if is_tar(head):
        description = "a tar archive; unpack it first"
    if head.startswith(b"\0") and head[4:8] == b"ftyp":
        description = "a film or a sound (MP4)"
    return f"{KNOWN_BINARY}{description}" if description else ""


def is_tar(head: bytes) -> bool:
    """Return whether an expanded file is a tar archive."""
    return head[257:262] == b"ustar"


def _csv_head(head: bytes, declared: Format, options: Mapping[str, Any], why: str) -> FileHead:
    charset = options.get("charset")
    decoded = decode_content(head, charset)
    encoding = canonical_charset(charset) if charset else decoded.encoding
    encoding = "utf-8" if encoding in (None, "ascii") else str(encoding)
    if head.startswith(b"\xef\xbb\xbf"):
        encoding = "utf-8-sig"
    elif head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        encoding = "utf-32"
    elif head.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif not (charset or head.isascii() or encoding in WIDE):
        decoded = decode_anyway(head, encoding := shown_encoding(head))

    text = decoded.text.lstrip("\r\n")
    try:
        return _table_head(text, encoding, declared, options, why)
    except FormatError:
        if not (remarks := _REMARKS.match(text)):
            raise
        below = _table_head(text[remarks.end() :], encoding, declared, options, why)
        if not is_remark(text[: text.find("\n") + 1], dialect_of(below), below.format.content):
            raise
        return below


def _table_head(text: str, encoding: str, declared: Format, options: Mapping[str, Any], why: str) -> FileHead:
    named = NAMED.match(text)
    text = text[named.end() :].lstrip("\r\n") if named else text
    first = next(io.StringIO(text, newline=""), "")  # up to a carriage return, a line feed, or both, as rows end
    delimiter = named[1] if named else max(",;\t|", key=first.count)
    dialect = find_dialect(text, delimiter, options.get("quote"), options.get("escape"))
    try:
        columns = column_names(next(dialect.read(io.StringIO(text, newline="")), []))
    except csv.Error as error:
        raise FormatError(f"its first line is not a row of a table: {error}") from error

    return FileHead(
        format=table_format(declared, columns, filled=_filled_in(text, dialect, columns)),
        encoding=encoding,
        separator=dialect.separator.encode(),
        quote=dialect.quote,
        escape=dialect.escape,
        why=why,
    )


def _filled_in(text: str, dialect: Dialect, columns: list[str]) -> list[str]:
    """Return the columns that hold something but their names in the first rows of a table, which begins with these."""
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    lines, filled = io.StringIO(text, newline=""), set[str]()
    rows = (row for _ in range(FIRST_ROWS) for row in islice(dialect.read(lines), 1))
    with suppress(csv.Error):
        for row in islice(rows, 1, None):
            filled.update(
                name for name, value in zip(columns, row, strict=False) if meant(value.strip()) not in ("", name)
            )
    return [name for name in columns if name in filled]


def read_container(
    raw: BinaryIO, head: FileHead, *, source: str, compression: str, limit: int | None, max_record: int
) -> Iterator[Record | Reject]:
    """Yield the records of one file, in file order.

    Args:
        raw: the file as stored; seekable for Parquet.
        head: from `container_head`.
        source: name of the file in the tables; also the id of a page or text.
        compression: compression of the whole file; empty for none.
        limit: the most bytes it may expand to; for Parquet, the most bytes of content.
        max_record: the longest record that is read.

    Returns:
        Records and rejects. If reading stops early, the last item is a reject with the reason. Never raises, whatever
        the file holds.
    """
    if head.format.files.is_columnar:
        from nddup.reading.parquet_rows import read_parquet  # noqa: PLC0415 - most collections have no Parquet

        yield from read_parquet(raw, head, limit=limit, max_record=max_record)
        return
    stream = Expanded(raw, compression, limit)
    yield from READERS[head.format.kind](stream, head, ReadAs(source, limit, max_record))


class ReadAs(NamedTuple):
    """The name of a file in the tables, the most bytes it may expand to, and the longest record that is read."""

    source: str
    limit: int | None
    max_record: int


def _read_archive(stream: Expanded, head: FileHead, options: ReadAs) -> Iterator[Record | Reject]:
    wanted = Wanted(head.format.statuses, head.format.policy)
    return map(_as_text, read_warc(stream, max_record=options.max_record, most_expanded=options.limit, wanted=wanted))


def _as_text(record: Record | Reject) -> Record | Reject:
    """Return a record of WARC; a reject for one whose first bytes show that it is no text, whatever its header says."""
    start = record.fields[0][:START_BYTES] if isinstance(record, Record) else b""
    description = known_binary(start) if isinstance(start, bytes) else ""
    return Reject("not text", description, "", record.doc_id) if description else record


def _read_table(stream: Expanded, head: FileHead, options: ReadAs) -> Iterator[Record | Reject]:
    return read_csv(stream, head, options.max_record)


def _read_letters(stream: Expanded, head: FileHead, options: ReadAs) -> Iterator[Record | Reject]:
    return read_mail(stream, source=options.source, max_record=options.max_record, policy=head.format.policy)


def _read_page(stream: Expanded, head: FileHead, options: ReadAs) -> Iterator[Record | Reject]:
    """Yield a page or a text; its path is its id. A page has a URL if its path begins with a host, as in a mirror."""
    yield _read_file(stream, head, options.source, options.max_record)


def _read_file(stream: Expanded, head: FileHead, source: str, max_record: int) -> Record | Reject:
    data = b""
    try:
        while len(data) <= max_record and (piece := stream.read(PIECE)):
            data += piece
    except StoppedError as error:
        return Reject(error.reason, str(error), "", source)
    if len(data) > max_record:
        return Reject("too large", "more than input.max_record bytes", "", source)

    host, slash, _ = source.partition("/")
    url = f"http://{source}" if head.format.kind == "html" and slash and _HOST.fullmatch(host) else None
    return Record(source, url, (data,), head.format.is_markup)


READERS: dict[str, Callable[[Expanded, FileHead, ReadAs], Iterator[Record | Reject]]] = {
    "warc": _read_archive,
    "csv": _read_table,
    "mail": _read_letters,
    "html": _read_page,
    "text": _read_page,
}
"""The reader of the files of each kind, as a stream of bytes."""
