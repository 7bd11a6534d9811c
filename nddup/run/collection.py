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
from nddup.reading.containers import container_head, is_page
from nddup.reading.detect import read_head
from nddup.reading.formats import FORMATS, FileHead, FormatError, NoRecordsError
from nddup.reading.streams import compression_of, expand_head, find_open_end
from nddup.settings.schema import Config
from nddup.spark import schemas
from nddup.spark.reading import hadoop_files, sketch_scan, splits, text_scan, unsplit_files
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


class Entry(NamedTuple):
    """A file, its compression, and where it ends open (`streams.find_open_end`; of a file that Spark cuts)."""

    file: InputFile
    compression: str
    open_end: int


@dataclass(frozen=True)
class Group:
    """Files read alike; `is_whole` where each is read from its start by one task."""

    head: FileHead
    is_whole: bool
    files: tuple[Entry, ...]


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

    def only(self, sources: set[str]) -> "Collection":
        """The same without the files not named; no file is left that cannot be read."""
        kept = [
            replace(group, files=tuple(entry for entry in group.files if entry.file.source in sources))
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

        A separator is counted for each chunk, also where a file ends without one. Byte order marks are missing; where
        there may be so many that they could hide a record, the answer is yes, and each file is looked at.
        """
        files, separator = self.group.files, len(self.group.head.separator)
        expected = sum(entry.file.size + separator * (entry.open_end >= 0) for entry in files)
        came = int(self.observation.get.get("bytes") or 0)
        marks = MARK_BYTES * len(files)
        return marks >= self.max_record or expected - came > marks


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
    groups: dict[tuple[FileHead, bool], list[Entry]] = {}
    unread: list[tuple[str, str, str]] = []
    unknown: str | None = None
    for file, found in zip(listing.files, looked, strict=True):
        if isinstance(found, Unread):
            unknown = unknown or (f"{file.path}: {found.detail}" if found.is_unknown else None)
            unread.append((file.source, found.reason, found.detail))
        else:
            head, entry = found
            is_whole = entry.compression != "" or not splits.can_cut(file.path, head)
            groups.setdefault((head, is_whole), []).append(entry)
    if unknown and not groups:
        raise ConfigError(unknown)
    made = tuple(Group(head, is_whole, tuple(files)) for (head, is_whole), files in groups.items())
    return Collection(made, tuple(unread), listing)


def look_at(storage: Storage, file: InputFile, config: Config) -> tuple[FileHead, Entry] | Unread:
    """The head of one file and how it is stored."""
    most = int(config.input.max_record)
    if file.size and is_page(file.source) and config.input.format in (None, "html"):
        return PAGE, Entry(file, "", -1)
    try:
        raw = storage.read_head(file.path, RAW_HEAD_BYTES)
        compression = compression_of(raw)
        found = _find_head(storage, file, raw, config)
        if found is None:
            return Unread("damaged", f"nothing of it can be expanded ({compression})")
        is_cut = not compression and splits.can_cut(file.path, found)
        return found, Entry(file, compression, _open_end(storage, file, raw, found, most) if is_cut else -1)
    except NoRecordsError as error:
        return Unread("no records", str(error))
    except FormatError as error:
        return Unread("no records", str(error), is_unknown=True)
    except NddupError as error:
        return Unread("unreadable", str(error))


def _find_head(storage: Storage, file: InputFile, raw: bytes, config: Config) -> FileHead | None:
    """The head of a file that begins with `raw`, or with more where that does not tell; None if nothing expands."""
    most = int(config.input.max_record)
    for size in (HEAD_BYTES, most):
        if len(raw) < min(size, file.size):
            raw = storage.read_head(file.path, size)
        head = expand_head(raw, size)
        if not head and compression_of(raw):
            return None
        try:
            return _head_of(head, file.source, config)
        except FormatError:
            if len(head) < size or size == most:
                raise
    raise AssertionError  # the second size returns or raises


def _open_end(storage: Storage, file: InputFile, raw: bytes, head: FileHead, max_record: int) -> int:
    """Where a file ends open; `raw` are its first bytes, and all of a small one."""

    def read_part(start: int, size: int) -> bytes:
        return raw[start : start + size] if len(raw) >= file.size else storage.read_part(file.path, start, size)

    return find_open_end(read_part, file.size, head.separator, max_record=max_record)


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
    files = [(entry.file.path, entry.file.source, entry.open_end) for entry in group.files]
    return splits.read_chunks(spark, files, group.head, max_record=max_record)


def whole_files(spark: SparkSession, group: Group, *, max_expansion: int) -> DataFrame:
    """FILES of a group, packed into tasks."""
    files = []
    for file, compression, _ in group.files:
        most = most_expanded(file, max_expansion)
        found = hadoop_files.WholeFile(file.path, file.source, compression, most, file.size)
        if (
            hadoop_files.is_hidden(file.path)
            and hadoop_files.is_remote(file.path)
            and file.size <= hadoop_files.FETCHED_BYTES
        ):
            found = found._replace(
                content=Storage(spark).read_head(file.path, file.size)
            )  # no source of Spark reads it
        files.append(found)
    return hadoop_files.list_files(spark, files)


def most_expanded(file: InputFile, max_expansion: int) -> int:
    """The bytes that a compressed file may expand to."""
    return max(file.size * max_expansion, LEAST_EXPANSION)


def sources_cut_short(spark: SparkSession, group: Group, *, max_record: int) -> DataFrame:
    """The sources of a group of which bytes are missing, one a row; reads the files again, in the JVM alone."""
    sizes = schemas.local_table(
        spark,
        schemas.table("source string, size long"),
        [(entry.file.source, entry.file.size) for entry in group.files],
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
