"""The files of a run, and how each is read, as determined from its first bytes before the run starts.

    list_batches       named inputs -> Listing: files called `NAME/…`, as if a folder that holds the batches were read
    find_files         INPUT paths -> Collection: groups of files that are read alike, and the files that cannot be read
    limit_collection   a collection, a number -> the collection of its first files; the last of them ends early

Plain files that are cut at a separator (`can_cut`) are read by many tasks per file. All others are read from their
start, one task per file. For `input.limit`, a first trial, the records are counted once, before the run, so that every
later pass finds the same records, on either engine.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

from nddup.errors import ConfigError
from nddup.reading.charsets import canonical_charset
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import EMPTY
from nddup.scanning.file_heads import (
    SHARED_EXPANSION,
    HeadError,
    HeadFound,
    InputOptions,
    Look,
    PartReader,
    Seen,
    can_cut,
    inspect_asset,
    inspect_head,
    most_expanded,
    open_parts,
)
from nddup.scanning.first_records import require_columns, require_paths
from nddup.scanning.found import RecordLimits
from nddup.scanning.input_files import ASSET, InputFile, Listing, count_reasons, why_skipped
from nddup.scanning.walk import OUTSIDE
from nddup.scanning.whole_files import StoredFile, read_file


class Batch(NamedTuple):
    """INPUT paths, and the name of their batch; "" for none."""

    name: str
    paths: tuple[str, ...]


class Lists(Protocol):
    """What lists the files at and below INPUT paths."""

    def list_inputs(self, inputs: list[str]) -> Listing:
        """As of `nddup.scanning.collection.Files`."""


HEAD_THREADS = 16
"""Heads read concurrently: a small file costs a round trip, not bandwidth."""


class Files(PartReader, Protocol):
    """How an engine lists and opens files. A path is what `InputFile.path` holds, or an INPUT."""

    def list_inputs(self, inputs: list[str]) -> Listing:
        """List the files at and below INPUT paths. Raises ConfigError for one that is missing or cannot be listed."""

    def look_in_tasks(self, inputs: list[str], files: Sequence[InputFile], look: Look) -> dict[str, Seen]:
        """Return the results of `look`, by path, for the files that tasks of the engine have examined.

        The caller opens the other files itself. `look` is sent to the tasks.
        """


class ListedFile(NamedTuple):
    """A file, its compression (empty for none), and where it ends open: `streams.find_open_end`, -1 if not cut.

    `records` is the number of records to read from its start; None for all. `most` are the bytes to which it may
    expand (`most_expanded`).
    """

    file: InputFile
    compression: str
    open_end: int
    records: int | None = None
    most: int = SHARED_EXPANSION


@dataclass(frozen=True)
class Group:
    """Files that are read alike; `is_whole` if each is read from its start by one task."""

    head: FileHead
    is_whole: bool
    files: tuple[ListedFile, ...]


@dataclass(frozen=True)
class Collection:
    """All files of a run.

    Attributes:
        groups: the files that are read.
        unread: source, reason and detail of each file that yields no record.
        listing: all files.
        assets: those that only show pages: skipped.
    """

    groups: tuple[Group, ...]
    unread: tuple[tuple[str, str, str], ...]
    listing: Listing
    assets: tuple[InputFile, ...] = ()

    def read_whole(self, sources: set[str]) -> "Collection":
        """Return the collection with these files read from their start."""
        groups: list[Group] = []
        for group in self.groups:
            for is_named in (False, True):
                files = tuple(entry for entry in group.files if (entry.file.source in sources) == is_named)
                if files:
                    groups.append(Group(group.head, group.is_whole or is_named, files))
        return replace(self, groups=tuple(groups))

    def without_columns(self) -> "Collection":
        """Return the same files, to be read again for their texts alone, which is quicker."""
        heads = [replace(group.head, format=replace(group.head.format, policy=())) for group in self.groups]
        groups = (replace(group, head=head) for group, head in zip(self.groups, heads, strict=True))
        return replace(self, groups=tuple(groups))

    @property
    def kinds(self) -> set[str]:
        """The kinds of the files that are read."""
        return {group.head.format.kind for group in self.groups}

    @property
    def files(self) -> list[tuple[InputFile, FileHead]]:
        """Every file that is read, with its head, in the order of the groups."""
        return [(entry.file, group.head) for group in self.groups for entry in group.files]

    @property
    def rejects_of_files(self) -> list[tuple[str, str, str]]:
        """Source, reason and detail of each file that is a reject: never of an asset or one with a record."""
        known = {source for source, _, _ in self.unread} | {file.source for file in self.assets}
        read = {entry.file.source for group in self.groups for entry in group.files} - known
        silent = [file.source for file in self.listing.files if file.source in read]
        return [*self.unread, *((source, *EMPTY) for source in silent)]

    @property
    def foreign(self) -> list[InputFile]:
        """The files that are empty, of no known format, or assets such as the images of a mirrored site."""
        sources = {source for source, reason, _ in self.unread if reason in ("no records", "binary")}
        return [*self.assets, *(file for file in self.listing.files if file.source in sources)]

    def only(self, sources: set[str]) -> "Collection":
        """Return the collection with these files only, and without any that cannot be read."""
        kept = [
            replace(group, files=tuple(entry for entry in group.files if entry.file.source in sources))
            for group in self.groups
        ]
        return replace(self, groups=tuple(group for group in kept if group.files), unread=())


NOTHING = Collection((), (), Listing((), (), ()))
"""No files: those of a run that only takes documents out of another."""


BESIDE = ("repeated", "tables")
"""What a listing says beside its files, which keeps its names."""


def list_batches(files: Lists, batches: Iterable[Batch]) -> Listing:
    """List the files of batches, sorted by source; a path that is skipped or given twice keeps its own name.

    Raises:
        ConfigError: as `list_inputs`.
    """
    listings = [(batch.name, files.list_inputs(list(batch.paths))) for batch in batches]
    named = [_under(name, file) for name, listing in listings for file in listing.files]
    named.sort(key=lambda file: file.source.encode())
    skipped = (why for _, listing in listings for why in listing.skipped)
    repeated, tables = ([one for _, listing in listings for one in getattr(listing, name)] for name in BESIDE)
    return Listing(tuple(named), tuple(skipped), tuple(repeated), tuple(tables))


def _under(name: str, file: InputFile) -> InputFile:
    return replace(file, source=f"{name}/{file.source}") if name else file


def name_fault(name: str) -> str | None:
    """Return why a batch cannot have a name; None if it can.

    Example:
        >>> name_fault("2026-11-27"), name_fault("a/b")
        (None, 'expected the name of one folder, without /')
    """
    if not name or "/" in name or name in (".", ".."):
        return "expected the name of one folder, without /"
    if not name.isprintable():
        return "expected printable characters"
    if why_skipped(name, is_folder=True):
        return "a folder of this name would be skipped; leave out the _ or . at its start"
    return None


def paths_of_batches(batches: Sequence[Batch]) -> list[str]:
    """Return the INPUT paths of all batches."""
    return [path for batch in batches for path in batch.paths]


def find_files(files: Files, inputs: list[str], options: InputOptions, *, batches: Sequence[Batch] = ()) -> Collection:
    """List the inputs and read the head of each file.

    Args:
        files: how the engine lists and opens them; `read_part` is called from several threads.
        batches: these inputs by the names of their batches, if they have any.

    Raises:
        ConfigError: if the charset is unknown, an input is missing, there is no file, no file's format is recognised
            (the message gives advice), or the first records lack the paths that are set (`first_records`).
    """
    if options.charset is not None and canonical_charset(options.charset) is None:
        raise ConfigError(f"input.charset={options.charset}: unknown encoding; expected a name such as utf-8 or cp1252")
    listing = list_batches(files, batches or [Batch("", tuple(inputs))])
    if not listing.files:
        why = f": {count_reasons(why for _, why in listing.skipped)}" if listing.skipped else ""
        hint = "; give what the links lead to as INPUT" if any(why == OUTSIDE for _, why in listing.skipped) else ""
        raise ConfigError(f"INPUT {' '.join(inputs)}: no files to read ({len(listing.skipped)} skipped{why}){hint}")

    seen = _look_at_assets(files, inputs, listing, options)
    assets = [file for file in listing.files if isinstance(seen.get(file.path), HeadError)]
    looked = [file for file in listing.files if file.path not in seen]
    seen |= _look_at_all(files, inputs, looked, partial(inspect_head, options=options, together=len(looked)))
    skipped = {file.path for file in assets}
    seen_files = [(file, seen[file.path]) for file in listing.files if file.path not in skipped]
    read = [(file, inspected) for file, inspected in seen_files if isinstance(inspected, HeadFound)]
    unread = [(file, inspected) for file, inspected in seen_files if isinstance(inspected, HeadError)]

    unknown = next((f"{file.path}: {inspected.detail}" for file, inspected in unread if inspected.is_unknown), None)
    if unknown and not read:
        raise ConfigError(unknown)
    heads = [(file, inspected.head) for file, inspected in read]
    require_paths(files, heads, id_=options.id, content=options.content)
    require_columns(files, heads, content=options.content)
    groups = _group(read, options.max_expansion)
    refusals = tuple((file.source, inspected.reason, inspected.detail) for file, inspected in unread)
    return Collection(groups, refusals, listing, tuple(assets))


def _look_at_assets(files: Files, inputs: list[str], listing: Listing, options: InputOptions) -> dict[str, Seen]:
    """Return, by path, pages that are named as assets, and errors for assets; with a format, or nothing else, none."""
    named = [file for file in listing.files if ASSET.fullmatch(file.source)]
    is_asked = options.format is not None or options.record is not None
    return {} if is_asked or len(named) == len(listing.files) else _look_at_all(files, inputs, named, inspect_asset)


def _look_at_all(files: Files, inputs: list[str], listed: Sequence[InputFile], look: Look) -> dict[str, Seen]:
    """Examine each file and return the results by path: in tasks of the engine if it uses them, else in threads."""
    seen = files.look_in_tasks(inputs, listed, look)
    left = [file for file in listed if file.path not in seen]
    with ThreadPoolExecutor(HEAD_THREADS) as threads:
        return seen | dict(zip((file.path for file in left), threads.map(partial(look, files), left), strict=True))


def _group(read: Sequence[tuple[InputFile, HeadFound]], max_expansion: int) -> tuple[Group, ...]:
    groups: dict[tuple[FileHead, bool], list[ListedFile]] = {}
    together = sum(inspected.compression != "" or inspected.head.format.files.is_packed for _, inspected in read)
    for file, (head, compression, open_end) in read:
        is_whole = compression != "" or not can_cut(file.path, head)
        groups.setdefault((head, is_whole), []).append(
            ListedFile(file, compression, open_end, most=most_expanded(file, max_expansion, together))
        )
    return tuple(Group(head, is_whole, tuple(entries)) for (head, is_whole), entries in groups.items())


def limit_collection(reader: PartReader, collection: Collection, most: int, limits: RecordLimits) -> Collection:
    """Limit a collection to its first `most` records and rejects; a file without any counts as one.

    Args:
        most: at least 1.

    Returns:
        The files up to the last of these records. The file that holds it is read from its start by one task, up to it.

    Raises:
        NddupError: if a file cannot be read.

    Cost: these records are read once, by this process.
    """
    known = {entry.file.source: (group.head, entry) for group in collection.groups for entry in group.files}
    assets = {file.source for file in collection.assets}
    left, kept, cut = most, [], None
    for file in collection.listing.files:
        if left <= 0:
            break
        kept.append(file)
        if file.source in assets:
            continue
        if file.source not in known:  # it could not be read at all: one reject
            left -= 1
            continue
        head, entry = known[file.source]
        count = sum(1 for _ in islice(_records_of(reader, entry, head, limits), left + 1))
        if count > left:
            cut = entry._replace(records=left)
        left -= max(count, 1)

    sources = {file.source for file in kept}
    first = replace(collection.only(sources), listing=replace(collection.listing, files=tuple(kept)))
    first = replace(first, unread=tuple(refusal for refusal in collection.unread if refusal[0] in sources))
    return first if cut is None else _end_early(first, cut)


def _end_early(collection: Collection, cut: ListedFile) -> Collection:
    groups = [
        Group(group.head, group.is_whole, tuple(cut if entry.file == cut.file else entry for entry in group.files))
        for group in collection.read_whole({cut.file.source}).groups
    ]
    return replace(collection, groups=tuple(groups))


def _records_of(reader: PartReader, entry: ListedFile, head: FileHead, limits: RecordLimits) -> Iterator[object]:
    opened = partial(open_parts, reader, entry.file)
    stored = StoredFile(entry.file.source, entry.compression, entry.most, opened)
    return read_file(stored, head, limits.max_record)
