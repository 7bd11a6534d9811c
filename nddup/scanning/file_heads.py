"""Examine the head of one file: its format, how it is stored and where it ends open, or why it yields no record.

    inspect_head    a file -> HeadFound | HeadError

Uses no Spark: it runs in threads of the driver, or in a Spark task that holds all of a small file (`WholeContent`).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol

from nddup.errors import NddupError
from nddup.reading.containers import (
    PAGE_BYTES,
    container_head,
    is_binary,
    is_page,
    is_text_name,
    name_binary,
)
from nddup.reading.detect import read_head
from nddup.reading.formats import FORMATS, BinaryError, FileHead, FormatError, NoRecordsError
from nddup.reading.streams import compression_of, expand_head, find_open_end
from nddup.scanning.input_files import InputFile, is_of_this_machine, is_utf8

HEAD_BYTES = 1 << 18
"""Expanded bytes of each file that are examined before the run."""

RAW_HEAD_BYTES = 1 << 20
"""Stored bytes read for this: bzip2 returns nothing of a block before all of it, up to 900 KB, has been read."""

DECODED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".passthrough")
"""Endings of names for which Spark's text source decompresses, whatever the file holds."""

SHORT = 3
"""Characters of a separator that, in UTF-16, are surely not halves of others."""

PAGE = FileHead(format=FORMATS["html"], encoding="utf-8", separator=b"", why="its name; it begins as nothing else")
"""The head of a file with the name of a page that begins as nothing else."""

NAMED_BY_PATH = ("html", "text")
"""Kinds of files whose path is the id."""

TEXT = FileHead(format=FORMATS["text"], encoding="utf-8", separator=b"", why="its name; it begins as nothing else")
"""The head of a file with the name of a text that begins as nothing else."""


class HeadReader(Protocol):
    """Opens files. A path is what `InputFile.path` holds."""

    def read_head(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes of a file, as stored; fewer if it is shorter. Raises NddupError."""

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """Return `size` bytes of a file from a place, as stored; fewer at its end. Raises NddupError."""


class WholeContent:
    """A reader of the one file whose content is in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read_head(self, path: str, size: int) -> bytes:
        """Return the first `size` bytes, whatever the path."""
        return self.read_part(path, 0, size)

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
Look = Callable[[HeadReader, InputFile], Seen]


def inspect_head(files: HeadReader, file: InputFile, options: InputOptions) -> Seen:
    """Examine the head of one file and how it is stored. Never raises, whatever the file holds."""
    raw = b""
    try:
        if _begins_as_named(files, file, options):
            return HeadFound(PAGE, "", -1)
        raw = files.read_head(file.path, RAW_HEAD_BYTES)
        compression = compression_of(raw)
        head = _find_head(files, file, raw, options)
        if head is None:
            return HeadError("damaged", f"none of it can be decompressed ({compression})")
        if options.id_prefix == "source" and head.format.kind not in NAMED_BY_PATH:
            head = replace(head, format=replace(head.format, prefixes_ids=True))

        is_cut = not compression and can_cut(file.path, head)
        open_end = _open_end(files, file, raw, head, int(options.max_record)) if is_cut else -1
        return HeadFound(head, compression, open_end)
    except (BinaryError, NoRecordsError) as error:
        is_binary_file = isinstance(error, BinaryError)
        return HeadError("binary" if is_binary_file else "no records", str(error), is_unknown=is_binary_file)
    except FormatError as error:
        return _not_understood(file, raw, error, options)
    except NddupError as error:
        return HeadError("unreadable", str(error))


def _begins_as_named(files: HeadReader, file: InputFile, options: InputOptions) -> bool:
    """Return whether a file is named as a page and begins as one. Its start is enough: there may be 100,000 of them."""
    if options.format not in (None, "html") or options.record is not None or not is_page(file.source):
        return False
    start = files.read_head(file.path, PAGE_BYTES)
    if not start or compression_of(start):
        return False
    found = container_head(start, file.source, options.format, {})
    return found is not None and found.format.kind == "html"


def _not_understood(file: InputFile, raw: bytes, error: FormatError, options: InputOptions) -> Seen:
    """Read a file that begins with `raw`, in which no format was recognised, by its name; or explain the error."""
    start = expand_head(raw, HEAD_BYTES)
    if is_binary(start):
        return HeadError("binary", name_binary(start, file.source), is_unknown=True)
    if options.format is None and options.record is None:
        for head, is_named in ((TEXT, is_text_name(file.source)), (PAGE, is_page(file.source))):
            if is_named:
                return HeadFound(head, compression_of(raw), -1)
    return HeadError("no records", str(error), is_unknown=True)


def _find_head(files: HeadReader, file: InputFile, raw: bytes, options: InputOptions) -> FileHead | None:
    """Find the head of a file that begins with `raw`, reading more if that is too little; None if nothing expands."""
    most = int(options.max_record)
    for size in (HEAD_BYTES, most):
        if len(raw) < min(size, file.size):
            raw = files.read_head(file.path, size)
        start = expand_head(raw, size)
        if not start and compression_of(raw):
            if size == most or len(raw) >= file.size:
                return None
            continue  # bytes that hold no text come first, such as a long skippable frame
        try:
            return _head_of(start, file.source, options)
        except FormatError:
            if len(start) >= size and size != most:
                continue
            later = b"" if compression_of(raw) else _after_long_lines(files, file, start)
            if not later:  # the file has no more bytes, or a record no more room
                raise
            return _head_of(later, file.source, options)
    raise AssertionError  # the second size returns or raises


def _after_long_lines(files: HeadReader, file: InputFile, start: bytes) -> bytes:
    """Return what follows the first line of a plain JSON lines file, and other long ones, if `start` is within it.

    Empty if `start` is no JSON object that goes on, or no line follows. Cost: reads the long lines once.
    """
    at = len(start)
    if not start.startswith(b"{") or b"\n" in start:
        return b""
    while piece := files.read_part(file.path, at, HEAD_BYTES):
        end = piece.find(b"\n") + 1
        at += end or len(piece)
        later = files.read_part(file.path, at, HEAD_BYTES) if end else b""
        if b"\n" in later or (later and at + len(later) >= file.size):
            return later
    return b""


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
        and (found := container_head(start, name, options.format, paths | table | archive)) is not None
    ):
        return found
    return read_head(start, format=options.format, record=options.record, **paths)  # type: ignore[arg-type]


def _open_end(files: HeadReader, file: InputFile, raw: bytes, head: FileHead, max_record: int) -> int:
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
