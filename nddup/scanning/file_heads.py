"""What the head of one file tells: its format, how it is stored and where it ends open, or why it gives no record.

    look_at    a file -> Looked | Unread

Pure Python over whatever opens the file: threads of the driver, or a task of Spark that holds all of a small file.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from nddup.errors import NddupError
from nddup.reading.containers import CONTAINERS, container_head, is_binary, is_page, is_text_name, name_binary
from nddup.reading.detect import read_head
from nddup.reading.formats import FORMATS, FileHead, FormatError, NoRecordsError
from nddup.reading.streams import compression_of, expand_head, find_open_end
from nddup.scanning.input_files import InputFile

HEAD_BYTES = 1 << 18
"""Expanded bytes of each file looked at before the run."""

RAW_HEAD_BYTES = 1 << 20
"""Stored bytes taken for it: a block of bzip2 gives nothing before 900 KB of it are there."""

DECODED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".passthrough")
"""Endings of names at which Spark's text source decodes, whatever the file holds."""

PAGE = FileHead(format=FORMATS["html"], encoding="utf-8", separator=b"")
"""The head of every HTML page: its bytes need not be examined."""

TEXT = FileHead(format=FORMATS["text"], encoding="utf-8", separator=b"", why="its name; nothing else is there")
"""The head of every text, where the files of a collection are texts only."""


class HeadReader(Protocol):
    """Opens files. A path is what `InputFile.path` holds."""

    def read_head(self, path: str, size: int) -> bytes:
        """The first `size` bytes of a file, as stored; fewer where it ends. Raises NddupError."""

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """`size` bytes of a file from a place, as stored; fewer where it ends. Raises NddupError."""


class WholeContent:
    """Opens the one file whose content is at hand."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read_head(self, path: str, size: int) -> bytes:
        """The first `size` bytes, whatever the path."""
        return self.read_part(path, 0, size)

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """`size` bytes from a place, whatever the path."""
        del path
        return self._content[start : start + size]


class InputOptions(Protocol):
    """The settings of the section `input` that say how files are read; None where the file's head is to tell."""

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
        """Path of the address."""

    @property
    def content(self) -> str | None:
        """Paths of the text, joined by `+`."""

    @property
    def charset(self) -> str | None:
        """Encoding of the content."""

    @property
    def max_record(self) -> int | str:
        """The longest record, in bytes."""


class Looked(NamedTuple):
    """The head of a file, its compression (empty for none), and where it ends open (`ListedFile`)."""

    head: FileHead
    compression: str
    open_end: int


class Unread(NamedTuple):
    """Why a file gives no record; `is_unknown` where a setting may help, `as_text` how it would be read as a text."""

    reason: str
    detail: str
    is_unknown: bool = False
    as_text: Looked | None = None


Seen = Looked | Unread
Look = Callable[[HeadReader, InputFile], Seen]


def is_known_page(file: InputFile, options: InputOptions) -> bool:
    """Whether a file is read as a page, which its name tells; it need not be opened."""
    return file.size > 0 and is_page(file.source) and options.format in (None, "html")


def look_at(files: HeadReader, file: InputFile, options: InputOptions) -> Seen:
    """The head of one file and how it is stored. Never raises for what is in the file."""
    if is_known_page(file, options):
        return Looked(PAGE, "", -1)
    try:
        raw = files.read_head(file.path, RAW_HEAD_BYTES)
        compression = compression_of(raw)
        head = _find_head(files, file, raw, options)
        if head is None:
            return Unread("damaged", f"nothing of it can be expanded ({compression})")

        is_cut = not compression and can_cut(file.path, head)
        open_end = _open_end(files, file, raw, head, int(options.max_record)) if is_cut else -1
        return Looked(head, compression, open_end)
    except NoRecordsError as error:
        return Unread("no records", str(error))
    except FormatError as error:
        return _not_understood(file, raw, error, options)
    except NddupError as error:
        return Unread("unreadable", str(error))


def _not_understood(file: InputFile, raw: bytes, error: FormatError, options: InputOptions) -> Unread:
    """What to say of a file that begins with `raw` and is of no format."""
    start = expand_head(raw, HEAD_BYTES)
    if is_binary(start):
        return Unread("no records", name_binary(start), is_unknown=True)
    is_text = options.format is None and options.record is None and is_text_name(file.source)
    as_text = Looked(TEXT, compression_of(raw), -1) if is_text else None
    return Unread("no records", str(error), is_unknown=True, as_text=as_text)


def _find_head(files: HeadReader, file: InputFile, raw: bytes, options: InputOptions) -> FileHead | None:
    """The head of a file that begins with `raw`, or with more where that does not tell; None if nothing expands."""
    most = int(options.max_record)
    for size in (HEAD_BYTES, most):
        if len(raw) < min(size, file.size):
            raw = files.read_head(file.path, size)
        start = expand_head(raw, size)
        if not start and compression_of(raw):
            return None
        try:
            return _head_of(start, file.source, options)
        except FormatError:
            if len(start) < size or size == most:  # more bytes will not come, or would not fit a record
                raise
    raise AssertionError  # the second size returns or raises


def _head_of(start: bytes, name: str, options: InputOptions) -> FileHead:
    """The head of a file from its first expanded bytes. Raises FormatError where they do not tell it."""
    paths = {
        "id": options.id,
        "url": options.url,
        "content": tuple(path.strip() for path in options.content.split("+")) if options.content else None,
        "charset": options.charset,
    }
    if options.record is None and (found := container_head(start, name, options.format, paths)) is not None:
        return found
    return read_head(start, format=options.format, record=options.record, **paths)  # type: ignore[arg-type]


def _open_end(files: HeadReader, file: InputFile, raw: bytes, head: FileHead, max_record: int) -> int:
    """Where a file ends open; `raw` are its first bytes, and all of a small one."""

    def read_part(start: int, size: int) -> bytes:
        return raw[start : start + size] if len(raw) >= file.size else files.read_part(file.path, start, size)

    return find_open_end(read_part, file.size, head.separator, max_record=max_record)


def can_cut(path: str, head: FileHead) -> bool:
    """Whether a plain file may be cut at its separators by several tasks, with the records of `streams.cut_stream`.

    The rule is that of Spark's text source, for every engine, so that all read a file alike. The source passes over
    hidden names and decodes by the ending of a name. A line end in UTF-16 is two bytes that may also lie across two
    characters, and would be cut there.
    """
    is_misread = head.is_by_line and head.encoding.startswith("utf-16")
    return not (is_misread or is_hidden(path) or is_decoded(path) or head.format.kind in CONTAINERS)


def is_hidden(path: str) -> bool:
    """Whether Spark's own sources pass over a file because of its name."""
    name = path.rpartition("/")[2]
    return name.startswith(("_", ".")) or name.endswith("._COPYING_")


def is_decoded(path: str) -> bool:
    """Whether Spark's text source would decode a file because of its name."""
    return path.lower().endswith(DECODED)
