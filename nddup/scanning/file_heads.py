"""Examine the head of one file: its format, how it is stored and where it ends open, or why it yields no record.

    inspect_head    a file -> HeadFound | HeadError; inspect_asset, of one that is named as an asset

Uses no Spark: it runs in threads of the driver, or in a Spark task that holds all of a small file (`WholeContent`).
"""

import io
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO, NamedTuple, Protocol, cast

from nddup.errors import NddupError, UnreachableError
from nddup.reading.charsets import file_encoding, unit_of
from nddup.reading.containers import (
    PAGE_BYTES,
    container_head,
    holds_stray_zeros,
    is_binary,
    is_page,
    is_text_name,
    name_binary,
)
from nddup.reading.detect import are_lines, read_head
from nddup.reading.formats import FORMATS, BinaryError, FileHead, FormatError, NoRecordsError
from nddup.reading.json_spread import as_lines
from nddup.reading.markup import begins_as_page
from nddup.reading.streams import (
    PIECE,
    Chunk,
    Expanded,
    StoppedError,
    compression_of,
    cut_pieces,
    expand_head,
    find_open_end,
)
from nddup.scanning.input_files import InputFile, is_of_this_machine, is_utf8
from nddup.scanning.walk import split_member

HEAD_BYTES = 1 << 18
"""Expanded bytes of each file that are examined before the run."""

SHARED_EXPANSION = 1 << 26
"""Bytes to which the files of a collection may expand together, however small: they may be very regular."""

STORED_BLOCK = 1 << 12
"""Minimum number of bytes that a file counts as stored: what it takes of a disk. One in an archive counts as it is."""

START_BYTES = 512
"""Stored bytes that show the compression of a file."""

RAW_HEAD_BYTES = 1 << 20
"""Stored bytes read for this: bzip2 returns nothing of a block before all of it, up to 900 KB, has been read."""

DECODED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".passthrough")
"""Endings of names for which Spark's text source decompresses, whatever the file holds."""

SHORT = 3
"""Characters of a separator that, in UTF-16, are surely not halves of others."""

PAGE = FileHead(format=FORMATS["html"], encoding="utf-8", separator=b"", why="its name; it begins as nothing else")
"""The head of a file with the name of a page that begins as nothing else."""

LINES_NAME = re.compile(r"\.(jsonl|ndjson)(\.\w+)?$", re.IGNORECASE)
"""The name of a file of JSON lines; another first line than one of JSON does not make it something else."""

TEXT = FileHead(format=FORMATS["text"], encoding="utf-8", separator=b"", why="its name; it begins as nothing else")
"""The head of a file with the name of a text that begins as nothing else."""


NO_MEMBERS = "a WACZ archive that is damaged, without WARC files, or not of this machine; unpack it, read its `archive`"
"""The reason for a WACZ file that the walk could not open: it is a lost part of the collection, not beside it."""


class PartReader(Protocol):
    """Opens files. A path is what `InputFile.path` holds."""

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """Return `size` bytes of a file from a place, as stored; fewer at its end. Raises NddupError, StoppedError."""


class WholeContent:
    """A reader of the one file whose content is in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """Return `size` bytes from a place, whatever the path."""
        del path
        return self._content[start : start + size]


class InputOptions(Protocol):
    """The settings of the section `input` that say how files are read; None to detect from the file's head."""

    @property
    def format(self) -> str | None:
        """Name of a format."""

    @property
    def record(self) -> str | None:
        """Local name of the record element."""

    @property
    def id(self) -> str | None:
        """Path of the id."""

    @property
    def url(self) -> str | None:
        """Path of the URL."""

    @property
    def content(self) -> str | None:
        """Paths of the text, joined by `+`."""

    @property
    def charset(self) -> str | None:
        """Encoding of the content."""

    @property
    def quote(self) -> str:
        """The character around the values of a table; `auto` or `none`."""

    @property
    def escape(self) -> str:
        """The character before a quote inside such a value; `auto` or `double`."""

    @property
    def id_prefix(self) -> str:
        """What comes before each id: `none`, or `source`."""

    @property
    def statuses(self) -> list[int] | str:
        """HTTP statuses of the captures of an archive that are read; `all`."""

    @property
    def max_record(self) -> int | str:
        """The longest record, in bytes."""

    @property
    def max_expansion(self) -> int:
        """How many times its stored size a compressed file may expand to."""


class _Parts(io.RawIOBase):
    """A file as a seekable stream of its stored bytes."""

    def __init__(self, reader: PartReader, file: InputFile) -> None:
        super().__init__()
        self._reader, self._path, self._size, self._at = reader, file.path, file.size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._reader.read_part(self._path, self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def open_parts(reader: PartReader, file: InputFile) -> BinaryIO:
    """Open a file to read its stored bytes with `read_part`, which is called for pieces of PIECE bytes."""
    return cast("BinaryIO", io.BufferedReader(_Parts(reader, file), PIECE))


class HeadFound(NamedTuple):
    """The head of a file, its compression (empty for none), and where it ends open (`ListedFile`)."""

    head: FileHead
    compression: str
    open_end: int


class HeadError(NamedTuple):
    """Why a file yields no record.

    `is_unknown`: its format was not recognised, and a setting may help.
    """

    reason: str
    detail: str
    is_unknown: bool = False


Seen = HeadFound | HeadError
Look = Callable[[PartReader, InputFile], Seen]


def most_expanded(file: InputFile, max_expansion: int, together: int) -> int:
    """Return the bytes to which a file may expand that shares SHARED_EXPANSION with so many, itself among them.

    Example:
        >>> most_expanded(InputFile("/a.jsonl.gz", "a.jsonl.gz", 90, 0), 200, together=10_000)
        819200
    """
    stored = file.size if split_member(file.path) else max(file.size, STORED_BLOCK)
    return max(stored * max_expansion, SHARED_EXPANSION // max(together, 1))


def inspect_head(files: PartReader, file: InputFile, options: InputOptions, together: int = 1) -> Seen:
    """Examine the head of one of so many files and how it is stored. Whatever the file holds, it raises no error.

    Raises:
        UnreachableError: for one elsewhere that cannot be fetched: a run without it would lack something.
    """
    raw = b""
    try:
        if _begins_as_named(files, file, options):
            return HeadFound(PAGE, "", -1)
        raw = files.read_part(file.path, 0, RAW_HEAD_BYTES)
        compression, is_archive = compression_of(raw), raw.startswith(b"PK") and file.source.lower().endswith(".wacz")
        most = most_expanded(file, options.max_expansion, together) if compression else sys.maxsize
        head = None if is_archive else _find_head(files, file, raw, options, most)
        if head is None:
            why = (
                NO_MEMBERS if is_archive else f"none of it can be decompressed ({_cause(raw, file.size, compression)})"
            )
            return HeadError("damaged", why, is_unknown=is_archive)
        if split_member(file.path) and head.format.kind != "warc":
            raise BinaryError(f"a file of a WACZ archive that is no WARC file, but {head.format.name}")  # noqa: TRY301
        if options.id_prefix == "source" and not head.format.files.is_copied:
            head = replace(head, format=replace(head.format, prefixes_ids=True))

        is_cut = not compression and can_cut(file.path, head)
        open_end = _open_end(files, file, raw, head, int(options.max_record)) if is_cut else -1
        return HeadFound(head, compression, open_end)
    except (BinaryError, NoRecordsError) as error:
        is_binary_file = isinstance(error, BinaryError)
        return HeadError("binary" if is_binary_file else "no records", str(error), is_unknown=is_binary_file)
    except FormatError as error:
        return _not_understood(file, raw, error, options)
    except UnreachableError:
        raise
    except (StoppedError, NddupError) as error:
        return HeadError(error.reason if isinstance(error, StoppedError) else "unreadable", str(error))


def _cause(raw: bytes, size: int, compression: str) -> str:
    """Return the compression, and why the first bytes of a file do not expand, such as a dictionary that is missing."""
    try:
        Expanded(io.BytesIO(raw), compression).read()
    except StoppedError as error:
        return (
            f"{compression}: {error}" if len(raw) >= size or not isinstance(error.__cause__, EOFError) else compression
        )
    return compression


def inspect_asset(files: PartReader, file: InputFile) -> Seen:
    """Return the head of a page that is named as what pages are shown with, such as `File:Map.png` of a wiki.

    Anything else is a `HeadError`, whatever it is.
    """
    try:
        start = files.read_part(file.path, 0, PAGE_BYTES)
    except (StoppedError, NddupError) as error:
        return HeadError("unreadable", str(error))
    return HeadFound(PAGE, "", -1) if begins_as_page(start.decode("latin-1")) else HeadError("binary", "")


def _begins_as_named(files: PartReader, file: InputFile, options: InputOptions) -> bool:
    """Return whether a file is named as a page and begins as one. Its start is enough: there may be 100,000 of them."""
    if options.format not in (None, "html") or options.record is not None or not is_page(file.source):
        return False
    start = files.read_part(file.path, 0, PAGE_BYTES)
    if not start or compression_of(start):
        return False
    head = container_head(start, file.source, options.format, {})
    return head is not None and head.format.kind == "html"


def _not_understood(file: InputFile, raw: bytes, error: FormatError, options: InputOptions) -> Seen:
    """Read a file that begins with `raw`, in which no format was recognised, by its name; or explain the error."""
    start = expand_head(raw, HEAD_BYTES)
    if is_binary(start) and not (is_text_name(file.source) and holds_stray_zeros(start)):
        return HeadError("binary", name_binary(start, file.source), is_unknown=True)
    if options.format is None and options.record is None:
        for head, is_named in ((TEXT, is_text_name(file.source)), (PAGE, is_page(file.source))):
            if is_named:
                return HeadFound(head, compression_of(raw), -1)
    return HeadError("no records", str(error), is_unknown=True)


def _find_head(files: PartReader, file: InputFile, raw: bytes, options: InputOptions, expanded: int) -> FileHead | None:
    """Find the head of a file that begins with `raw` and may expand to some bytes, reading more if that is too little.

    None if nothing expands.
    """
    most = min(int(options.max_record), max(expanded, HEAD_BYTES))
    for size in (HEAD_BYTES, most):
        if len(raw) < min(size, file.size):
            raw = files.read_part(file.path, 0, size)
        start = expand_head(raw, size)
        if not start and compression_of(raw) and not (len(raw) >= file.size and _is_empty(raw)):
            if size == most or len(raw) >= file.size:
                return None
            continue  # bytes that hold no text come first, such as a long skippable frame
        try:
            return _head_of(start, file.source, options)
        except FormatError:
            if len(start) >= size and size != most:
                continue
            later = _around_long_lines(files, file, start, options, expanded) if len(start) >= size else b""
            if not later:  # the file has no more bytes, or a record no more room
                raise
            return _head_of(later, file.source, options)
    raise AssertionError  # the second size returns or raises


def _is_empty(raw: bytes) -> bool:
    """Return whether a compressed file is whole and holds nothing."""
    try:
        return not Expanded(io.BytesIO(raw), compression_of(raw)).read()
    except StoppedError:
        return False


def _around_long_lines(files: PartReader, file: InputFile, start: bytes, options: InputOptions, expanded: int) -> bytes:
    """Return the first lines of a JSON lines file no longer than `input.max_record`, after its byte order mark.

    Empty if `start`, its first expanded bytes, begins no JSON object, or there is no such line. Cost: expands the lines
    up to HEAD_BYTES of these once. Memory: `input.max_record` and two pieces.
    """
    encoding, mark = file_encoding(start)
    is_asked = options.format in (None, "jsonl") and options.record is None
    if not is_asked or not start[mark:].decode(encoding, "replace").lstrip().startswith("{"):
        return b""
    compression = compression_of(files.read_part(file.path, 0, START_BYTES))
    stream, end = Expanded(open_parts(files, file), compression, expanded), "\n".encode(encoding)
    lines, size = [start[:mark]], 0
    for piece in cut_pieces(stream, end, max_record=int(options.max_record), unit=unit_of(encoding)):
        if isinstance(piece, Chunk):
            lines += [piece.value.removeprefix(start[:mark]), end]
            size += len(piece.value)
        if size >= HEAD_BYTES:
            break
    return b"".join(lines) if size else b""


def _head_of(start: bytes, name: str, options: InputOptions) -> FileHead:
    """Return the head of a file from its first expanded bytes. Raises FormatError if they do not determine it."""
    paths = {
        "id": options.id,
        "url": options.url,
        "content": tuple(path.strip() for path in options.content.split("+")) if options.content else None,
        "charset": options.charset,
    }
    signs = {"auto": None, "none": "", "double": ""}
    table = {"quote": signs.get(options.quote, options.quote), "escape": signs.get(options.escape, options.escape)}
    archive = {"statuses": None if isinstance(options.statuses, str) else tuple(options.statuses)}
    if (
        options.record is None
        and (container := container_head(start, name, options.format, paths | table | archive)) is not None
    ):
        return container
    try:
        head = read_head(start, format=options.format, record=options.record, **paths)  # type: ignore[arg-type]
        lines = as_lines(start, head.list_keys) if head.is_spread else start
        if head.is_by_line and is_text_name(name) and not (options.format or are_lines(lines, head)):
            raise FormatError("most of its first lines are no JSON objects")  # noqa: TRY301
    except FormatError:
        if options.format or options.record or not LINES_NAME.search(name):
            raise
        with suppress(FormatError):  # a first line that is none is a reject, as in the middle of the file
            return read_head(start, format="jsonl", **paths)  # type: ignore[arg-type]
        raise
    return head


def _open_end(files: PartReader, file: InputFile, raw: bytes, head: FileHead, max_record: int) -> int:
    """Find where a file ends open (`find_open_end`); `raw` holds its first bytes, or all of a small file."""

    def read_part(start: int, size: int) -> bytes:
        return raw[start : start + size] if len(raw) >= file.size else files.read_part(file.path, start, size)

    return find_open_end(read_part, file.size, head.separator, max_record=max_record)


def can_cut(path: str, head: FileHead) -> bool:
    """Return whether several tasks may cut a plain file at its separators and get the records of `streams.cut_pieces`.

    The rule is that of Spark's text source, for every engine, so that all read a file alike. That source skips hidden
    names, cannot open a name that is not UTF-8 or holds a colon, and decompresses by the ending of a name. In UTF-16
    the bytes of a line end, or of `/>`, may also be halves of other characters, and the source would cut there.
    """
    if not head.format.files.is_cut or head.is_indivisible:
        return False
    if is_hidden(path) or not is_utf8(path) or is_decoded(path) or is_refused(path):
        return False
    if head.encoding.startswith(("utf-32", "iso2022", "hz")):
        return False
    return not (head.encoding.startswith("utf-16") and len(head.separator_text) < SHORT)


def is_hidden(path: str) -> bool:
    """Return whether Spark's own sources skip a file because of its name."""
    name = path.rpartition("/")[2]
    return name.startswith(("_", ".")) or name.endswith("._COPYING_")


def is_refused(path: str) -> bool:
    """Return whether Spark's own sources cannot open a file of this machine: its name holds a colon.

    Hadoop compares a local file with its checksum, and takes the name of the checksum, `.a:b.crc`, for a URI.
    """
    return is_of_this_machine(path) and ":" in path.rpartition("/")[2]


def is_decoded(path: str) -> bool:
    """Return whether Spark's text source would decompress a file because of its name."""
    return path.lower().endswith(DECODED)
