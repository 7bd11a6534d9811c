"""The files of a run: how each is read, told from its first bytes before the run starts.

    find_files    INPUT paths -> Collection: groups of files that are read alike, and those that cannot be read

Plain files that are cut at a separator (`can_cut`) are read by many tasks a file. All others are read from their
start, one task a file: compressed ones, WARC, CSV, Parquet, pages, and any in which a record was too long to be cut.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

from nddup.errors import ConfigError
from nddup.reading.charset_labels import canonical_charset
from nddup.reading.formats import FileHead
from nddup.scanning.file_heads import (
    HeadReader,
    InputOptions,
    Look,
    Looked,
    Seen,
    Unread,
    can_cut,
    is_known_page,
    look_at,
)
from nddup.scanning.first_records import require_columns, require_paths
from nddup.scanning.input_files import BESIDE_WHY, InputFile, Listing, is_note

HEAD_THREADS = 16
"""Heads read at a time: a small file costs a round trip, not bandwidth."""


class Files(HeadReader, Protocol):
    """How an engine lists and opens files. A path is what `InputFile.path` holds, or an INPUT."""

    def list_inputs(self, inputs: list[str]) -> Listing:
        """The files at and below INPUT paths. Raises ConfigError for one that is missing or cannot be listed."""

    def look_in_tasks(self, inputs: list[str], files: Sequence[InputFile], look: Look) -> dict[str, Seen]:
        """What `look` says of those of the files that tasks of the engine have looked at, by path.

        Files that are not among them are opened here. `look` is sent to the tasks.
        """


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


def find_files(files: Files, inputs: list[str], options: InputOptions) -> Collection:
    """List the inputs and read the head of each file.

    Args:
        files: how the engine lists and opens them; `read_head` and `read_part` are called from several threads.
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

    seen = list(zip(listing.files, _look_at_all(files, inputs, listing, options), strict=True))
    if all(isinstance(found, Unread) for _, found in seen):
        # Nothing but texts: each is a document. Beside other files a text may be anything, a licence or a listing.
        seen = [(file, found.as_text or found if isinstance(found, Unread) else found) for file, found in seen]
    read = [(file, found) for file, found in seen if isinstance(found, Looked)]
    unread = [(file, found) for file, found in seen if isinstance(found, Unread)]

    unknown = next((f"{file.path}: {found.detail}" for file, found in unread if found.is_unknown), None)
    if unknown and not read:
        raise ConfigError(unknown)
    heads = [(file, found.head) for file, found in read]
    require_paths(files, heads, id_=options.id, content=options.content)
    require_columns(files, heads, content=options.content)
    groups = _group(read)
    return Collection(groups, tuple((file.source, found.reason, found.detail) for file, found in unread), listing)


def _look_at_all(files: Files, inputs: list[str], listing: Listing, options: InputOptions) -> list[Seen]:
    """What is seen of each file, in their order: by tasks of the engine where it has them look, else by threads."""
    look = partial(look_at, options=options)
    opened = [file for file in listing.files if not is_known_page(file, options)]
    seen = files.look_in_tasks(inputs, opened, look)
    left = [file for file in opened if file.path not in seen]
    with ThreadPoolExecutor(HEAD_THREADS) as threads:
        seen |= zip((file.path for file in left), threads.map(partial(look, files), left), strict=True)
    return [seen.get(file.path) or look(files, file) for file in listing.files]  # pages are left: none is opened


def _group(read: Iterable[tuple[InputFile, Looked]]) -> tuple[Group, ...]:
    """Files with equal heads together, apart those that are read from their start."""
    groups: dict[tuple[FileHead, bool], list[ListedFile]] = {}
    for file, (head, compression, open_end) in read:
        is_whole = compression != "" or not can_cut(file.path, head)
        groups.setdefault((head, is_whole), []).append(ListedFile(file, compression, open_end))
    return tuple(Group(head, is_whole, tuple(entries)) for (head, is_whole), entries in groups.items())
