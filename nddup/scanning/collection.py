"""The files of a run: how each is read, told from its first bytes before the run starts.

    find_files    INPUT paths -> Collection: groups of files that are read alike, and those that cannot be read

Plain files that are cut at a separator (`can_cut`) are read by many tasks a file. All others are read from their
start, one task a file: compressed ones, WARC, CSV, Parquet, pages, and any in which a record was too long to be cut.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from nddup.errors import ConfigError, NddupError
from nddup.reading.charset_labels import canonical_charset
from nddup.reading.containers import CONTAINERS, container_head, is_binary, is_page, is_text_name, name_binary
from nddup.reading.detect import read_head
from nddup.reading.formats import FORMATS, FileHead, FormatError, NoRecordsError
from nddup.reading.streams import compression_of, expand_head, find_open_end
from nddup.scanning.first_records import require_columns, require_paths
from nddup.scanning.input_files import BESIDE_WHY, InputFile, Listing, is_note

HEAD_BYTES = 1 << 18
"""Expanded bytes of each file looked at before the run."""

RAW_HEAD_BYTES = 1 << 20
"""Stored bytes taken for it: a block of bzip2 gives nothing before 900 KB of it are there."""

HEAD_THREADS = 16
"""Heads read at a time: a small file costs a round trip, not bandwidth."""

DECODED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".passthrough")
"""Endings of names at which Spark's text source decodes, whatever the file holds."""

PAGE = FileHead(format=FORMATS["html"], encoding="utf-8", separator=b"")
"""The head of every HTML page: its bytes need not be examined."""

TEXT = FileHead(format=FORMATS["text"], encoding="utf-8", separator=b"", why="its name; nothing else is there")
"""The head of every text, where the files of a collection are texts only."""


class Files(Protocol):
    """How an engine lists and opens files. A path is what `InputFile.path` holds, or an INPUT."""

    def list_inputs(self, inputs: list[str]) -> Listing:
        """The files at and below INPUT paths. Raises ConfigError for one that is missing or cannot be listed."""

    def read_head(self, path: str, size: int) -> bytes:
        """The first `size` bytes of a file, as stored; fewer where it ends. Raises NddupError."""

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """`size` bytes of a file from a place, as stored; fewer where it ends. Raises NddupError."""


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


class ListedFile(NamedTuple):
    """A file, its compression (empty for none), and where it ends open: `streams.find_open_end`, -1 if not cut.

    Of a file with `records`, so many are read, from its start; None: all.
    """

    file: InputFile
    compression: str
    open_end: int
    records: int | None = None


@dataclass(frozen=True)
class Group:
    """Files that are read alike; `is_whole` where each is read from its start by one task."""

    head: FileHead
    is_whole: bool
    files: tuple[ListedFile, ...]


@dataclass(frozen=True)
class Collection:
    """All files of a run; `unread` says of a file that gives no record the source, the reason and the detail."""

    groups: tuple[Group, ...]
    unread: tuple[tuple[str, str, str], ...]
    listing: Listing

    def read_whole(self, sources: set[str]) -> "Collection":
        """The same with these files read from their start."""
        groups: list[Group] = []
        for group in self.groups:
            for is_named in (False, True):
                files = tuple(entry for entry in group.files if (entry.file.source in sources) == is_named)
                if files:
                    groups.append(Group(group.head, group.is_whole or is_named, files))
        return replace(self, groups=tuple(groups))

    @property
    def files(self) -> list[tuple[InputFile, FileHead]]:
        """Every file that is read, with its head, in the order of the groups."""
        return [(entry.file, group.head) for group in self.groups for entry in group.files]

    def only(self, sources: set[str]) -> "Collection":
        """The same without the files not named; no file is left that cannot be read."""
        kept = [
            replace(group, files=tuple(entry for entry in group.files if entry.file.source in sources))
            for group in self.groups
        ]
        return replace(self, groups=tuple(group for group in kept if group.files), unread=())


class Unread(NamedTuple):
    """Why a file gives no record; `is_unknown` where a setting may help.

    `text` is how it would be read as a text, None where it is none.
    """

    reason: str
    detail: str
    is_unknown: bool = False
    text: ListedFile | None = None


def find_files(files: Files, inputs: list[str], options: InputOptions) -> Collection:
    """List the inputs and read the head of each file.

    Args:
        files: how the engine lists and opens them; called from several threads.
        inputs: INPUT paths.
        options: the settings `input`.

    Raises:
        ConfigError: if an input is missing, or no file of all can be understood: then what would help is said.
    """
    if options.charset and canonical_charset(options.charset) is None:
        raise ConfigError(f"input.charset={options.charset}: unknown encoding; expected a name such as utf-8 or cp1252")
    listing = files.list_inputs(inputs)
    notes = [path for path, why in listing.skipped if why == BESIDE_WHY and is_note(path)]
    if not listing.files and notes:
        listing = files.list_inputs(notes)  # a folder of nothing but notes is a collection of them
    if not listing.files:
        raise ConfigError(f"INPUT {' '.join(inputs)}: no files to read ({len(listing.skipped)} skipped)")

    with ThreadPoolExecutor(HEAD_THREADS) as threads:
        looked = list(threads.map(lambda file: _look_at(files, file, options), listing.files))
    seen = list(zip(listing.files, looked, strict=True))
    if all(isinstance(found, Unread) for found in looked):
        # Nothing but texts: each is a document. Beside other files a text may be anything, a licence or a listing.
        seen = [
            (file, (TEXT, found.text) if isinstance(found, Unread) and found.text else found) for file, found in seen
        ]
    read = [(file, found) for file, found in seen if not isinstance(found, Unread)]
    unread = [(file, found) for file, found in seen if isinstance(found, Unread)]

    unknown = next((f"{file.path}: {found.detail}" for file, found in unread if found.is_unknown), None)
    if unknown and not read:
        raise ConfigError(unknown)
    heads = [(file, head) for file, (head, _) in read]
    require_paths(files, heads, id_=options.id, content=options.content)
    require_columns(files, heads, content=options.content)
    groups = _group(found for _, found in read)
    return Collection(groups, tuple((file.source, found.reason, found.detail) for file, found in unread), listing)


def _group(looked: Iterable[tuple[FileHead, ListedFile]]) -> tuple[Group, ...]:
    """Files with equal heads together, apart those that are read from their start."""
    groups: dict[tuple[FileHead, bool], list[ListedFile]] = {}
    for head, entry in looked:
        is_whole = entry.compression != "" or not can_cut(entry.file.path, head)
        groups.setdefault((head, is_whole), []).append(entry)
    return tuple(Group(head, is_whole, tuple(entries)) for (head, is_whole), entries in groups.items())


def _look_at(files: Files, file: InputFile, options: InputOptions) -> tuple[FileHead, ListedFile] | Unread:
    """The head of one file and how it is stored. Never raises for what is in the file."""
    if file.size and is_page(file.source) and options.format in (None, "html"):
        return PAGE, ListedFile(file, "", -1)
    try:
        raw = files.read_head(file.path, RAW_HEAD_BYTES)
        compression = compression_of(raw)
        head = _find_head(files, file, raw, options)
        if head is None:
            return Unread("damaged", f"nothing of it can be expanded ({compression})")

        is_cut = not compression and can_cut(file.path, head)
        open_end = _open_end(files, file, raw, head, int(options.max_record)) if is_cut else -1
        return head, ListedFile(file, compression, open_end)
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
    return Unread(
        "no records", str(error), is_unknown=True, text=ListedFile(file, compression_of(raw), -1) if is_text else None
    )


def _find_head(files: Files, file: InputFile, raw: bytes, options: InputOptions) -> FileHead | None:
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


def _open_end(files: Files, file: InputFile, raw: bytes, head: FileHead, max_record: int) -> int:
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
