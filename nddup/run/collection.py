"""The files of a run: how each is read, told from its first bytes before the run starts.

    find_files    INPUT paths -> Collection: groups of files that are read alike, and those that cannot be read
    read_records  Collection -> RECORDS

Plain files that are cut at a separator are read by Spark, many tasks a file. All others are read from their start,
one task a file: compressed ones, WARC, CSV, Parquet, pages, and any in which a record was too long for Spark.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from nddup.errors import ConfigError, NddupError
from nddup.reading.containers import CONTAINERS, container_head, is_page
from nddup.reading.detect import read_head
from nddup.reading.formats import FORMATS, FileHead, FormatError, NoRecordsError
from nddup.reading.streams import compression_of, expand_head
from nddup.settings.schema import Config
from nddup.spark import schemas
from nddup.spark.reading import sketch_scan, splits, text_scan, unsplit_files
from nddup.storage.files import InputFile, Listing, Storage

HEAD_BYTES = 1 << 18
"""Expanded bytes of each file looked at before the run."""

RAW_HEAD_BYTES = 1 << 20
"""Stored bytes taken for it: a block of bzip2 gives nothing before 900 KB of it are there."""

MARK_BYTES = 3
"""Of a byte order mark, which Spark takes off."""

LEAST_EXPANSION = 1 << 30
"""Bytes that any compressed file may expand to: a small one may be very regular."""

HEAD_THREADS = 16
"""Heads read at a time: a small file costs a round trip, not bandwidth."""


@dataclass(frozen=True)
class Group:
    """Files read alike, each with its compression; `is_whole` where each is read from its start by one task."""

    head: FileHead
    is_whole: bool
    files: tuple[tuple[InputFile, str], ...]


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
                files = tuple(entry for entry in group.files if (entry[0].source in sources) == is_named)
                if files:
                    groups.append(Group(group.head, group.is_whole or is_named, files))
        return replace(self, groups=tuple(groups))

    def only(self, sources: set[str]) -> "Collection":
        """The same without the files not named; no file is left that cannot be read."""
        kept = [
            replace(group, files=tuple(entry for entry in group.files if entry[0].source in sources))
            for group in self.groups
        ]
        return replace(self, groups=tuple(group for group in kept if group.files), unread=())


@dataclass(frozen=True)
class Seen:
    """What a reading counted of a group that Spark cuts: to compare with the sizes of its files."""

    group: Group
    observation: Observation
    max_record: int

    @property
    def is_short(self) -> bool:
        """Whether bytes may be missing: Spark passes over a record that is too long, and does not say so.

        A file that ends without a separator counts one too many; where so many files could hide a record, the answer
        is yes, and each is looked at.
        """
        expected = sum(file.size for file, _ in self.group.files)
        came = int(self.observation.get.get("bytes") or 0)
        files = len(self.group.files)
        can_hide = files * (MARK_BYTES + len(self.group.head.separator)) >= self.max_record
        return can_hide or expected - came > MARK_BYTES * files


class Unread(NamedTuple):
    """Why a file gives no record; `is_unknown` where a setting may help."""

    reason: str
    detail: str
    is_unknown: bool = False


def find_files(storage: Storage, inputs: list[str], config: Config) -> Collection:
    """List the inputs and read the head of each file.

    Raises:
        ConfigError: if an input is missing, or no file of all can be understood: then what would help is said.
    """
    listing = storage.list_inputs(inputs)
    if not listing.files:
        raise ConfigError(f"INPUT {' '.join(inputs)}: no files to read ({len(listing.skipped)} skipped)")
    with ThreadPoolExecutor(HEAD_THREADS) as threads:
        looked = list(threads.map(lambda file: look_at(storage, file, config), listing.files))
    groups: dict[tuple[FileHead, bool], list[tuple[InputFile, str]]] = {}
    unread: list[tuple[str, str, str]] = []
    unknown: str | None = None
    for file, found in zip(listing.files, looked, strict=True):
        if isinstance(found, Unread):
            unknown = unknown or (f"{file.path}: {found.detail}" if found.is_unknown else None)
            unread.append((file.source, found.reason, found.detail))
        else:
            head, compression = found
            is_hidden = file.path.rpartition("/")[2].startswith(("_", "."))
            is_whole = bool(compression) or is_hidden or head.format.kind in CONTAINERS
            groups.setdefault((head, is_whole), []).append((file, compression))
    if unknown and not groups:
        raise ConfigError(unknown)
    made = tuple(Group(head, is_whole, tuple(files)) for (head, is_whole), files in groups.items())
    return Collection(made, tuple(unread), listing)


def look_at(storage: Storage, file: InputFile, config: Config) -> tuple[FileHead, str] | Unread:
    """The head of one file and its compression. Where its first bytes do not tell, more of it is looked at."""
    most = int(config.input.max_record)
    if file.size and is_page(file.source) and config.input.format in (None, "html"):
        return PAGE, ""
    try:
        raw = storage.read_head(file.path, RAW_HEAD_BYTES)
        compression = compression_of(raw)
        for size in (HEAD_BYTES, most):
            if len(raw) < min(size, file.size):
                raw = storage.read_head(file.path, size)
            head = expand_head(raw, size)
            if compression and not head:
                return Unread("damaged", f"nothing of it can be expanded ({compression})")
            try:
                return _head_of(head, file.source, config), compression
            except FormatError:
                if len(head) < size or size == most:
                    raise
    except NoRecordsError as error:
        return Unread("no records", str(error))
    except FormatError as error:
        return Unread("no records", str(error), is_unknown=True)
    except NddupError as error:
        return Unread("unreadable", str(error))
    raise AssertionError  # the second size returns or raises


PAGE = FileHead(format=FORMATS["html"], encoding="utf-8", separator=b"")


def _head_of(head: bytes, name: str, config: Config) -> FileHead:
    options = config.input
    paths = {
        "id": options.id,
        "url": options.url,
        "content": tuple(options.content.split("+")) if options.content else None,
        "charset": options.charset,
    }
    if options.record is None and (found := container_head(head, name, options.format, paths)) is not None:
        return found
    return read_head(head, format=options.format, record=options.record, **paths)  # type: ignore[arg-type]


def read_records(
    spark: SparkSession, collection: Collection, *, rule: sketch_scan.Rule, max_expansion: int
) -> tuple[DataFrame, list[Seen]]:
    """RECORDS of all files, lazily, and what to compare once they were read."""
    parts, seen = [], []
    for group in collection.groups:
        if not group.is_whole:
            seen.append(Seen(group, Observation(), rule.max_record))
            chunks = read_group(spark, group, max_record=rule.max_record)
            count = F.sum(F.length("value") + len(group.head.separator)).alias("bytes")
            parts.append(
                sketch_scan.sketch_chunks(chunks.observe(seen[-1].observation, count), head=group.head, rule=rule)
            )
        else:
            files = whole_files(spark, group, max_expansion=max_expansion)
            parts.append(unsplit_files.sketch_files(files, head=group.head, rule=rule))
    records = reduce(DataFrame.unionByName, parts) if parts else schemas.local_table(spark, schemas.RECORDS)
    return records, seen


def read_group(spark: SparkSession, group: Group, *, max_record: int) -> DataFrame:
    """CHUNKS of files that Spark cuts."""
    files = [(file.path, file.source) for file, _ in group.files]
    return splits.read_chunks(spark, files, group.head, max_record=max_record)


def whole_files(spark: SparkSession, group: Group, *, max_expansion: int) -> DataFrame:
    """FILES of a group, packed into tasks."""
    entries = [
        (file.path, file.source, compression, most_expanded(file, max_expansion), file.size)
        for file, compression in group.files
    ]
    fetched = [entry for entry in entries if unsplit_files.is_fetched(entry[0], entry[4])]
    opened = [entry for entry in entries if not unsplit_files.is_fetched(entry[0], entry[4])]
    if not fetched:
        return unsplit_files.pack_files(spark, opened)
    files = unsplit_files.fetch_files(spark, fetched)
    return files.unionByName(unsplit_files.pack_files(spark, opened)) if opened else files


def most_expanded(file: InputFile, max_expansion: int) -> int:
    """The bytes that a compressed file may expand to."""
    return max(file.size * max_expansion, LEAST_EXPANSION)


def sources_cut_short(spark: SparkSession, group: Group, *, max_record: int) -> DataFrame:
    """The sources of a group of which bytes are missing, one a row; reads the files again, in the JVM alone."""
    sizes = schemas.local_table(
        spark, schemas.table("source string, size long"), [(file.source, file.size) for file, _ in group.files]
    )
    length = F.sum(F.length("value") + len(group.head.separator))
    came = read_group(spark, group, max_record=max_record).groupBy("source").agg(length.alias("came"))
    is_short = F.col("size") - F.coalesce("came", F.lit(0)) > MARK_BYTES
    return sizes.join(came, "source", "left").where(is_short).select("source")


def read_contents(
    spark: SparkSession, collection: Collection, *, rule: sketch_scan.Rule, max_expansion: int
) -> DataFrame:
    """CONTENTS of all files, lazily."""
    parts = [
        unsplit_files.file_contents(whole_files(spark, group, max_expansion=max_expansion), head=group.head, rule=rule)
        if group.is_whole
        else sketch_scan.chunk_contents(
            read_group(spark, group, max_record=rule.max_record), head=group.head, rule=rule
        )
        for group in collection.groups
    ]
    return reduce(DataFrame.unionByName, parts) if parts else schemas.local_table(spark, schemas.CONTENTS)


def read_texts(
    spark: SparkSession, collection: Collection, *, rule: sketch_scan.Rule, max_expansion: int, wanted: text_scan.Wanted
) -> DataFrame:
    """FOUND_TEXTS of all files, lazily."""
    parts = [
        text_scan.file_texts(
            whole_files(spark, group, max_expansion=max_expansion), head=group.head, rule=rule, wanted=wanted
        )
        if group.is_whole
        else text_scan.chunk_texts(
            read_group(spark, group, max_record=rule.max_record), head=group.head, rule=rule, wanted=wanted
        )
        for group in collection.groups
    ]
    return reduce(DataFrame.unionByName, parts) if parts else schemas.local_table(spark, schemas.FOUND_TEXTS)
