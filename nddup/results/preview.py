"""`nddup inspect`: how each file would be read, its first records, and what would be rejected, before a long run.

Reads at most `RECORDS` records of a file, in this process, by the functions of the job.
"""

import io
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import BinaryIO

from nddup.reading.records import Record, Reject, read_text
from nddup.scanning.collection import Collection, Entry, Group, find_files
from nddup.scanning.found import Limits
from nddup.scanning.input_files import InputFile
from nddup.scanning.whole_files import StoredFile, read_file
from nddup.settings.schema import Config
from nddup.sketching.tokens import tokenise
from nddup.spark.reading.hadoop_files import FETCHED_BYTES, is_remote, open_uri
from nddup.storage.files import Storage

RECORDS = 1_000
REMOTE_BYTES = 4 << 20
"""Of a file that is not local, looked at."""

SHOWN_FILES, SHOWN_RECORDS, SHOWN_REJECTS, SHOWN_TEXT = 20, 3, 3, 72


def preview(storage: Storage, inputs: list[str], config: Config) -> str:
    """A text for the terminal: one paragraph a file, then what was left out.

    Raises:
        ConfigError: if an input is missing, or no file can be understood.
    """
    collection = find_files(storage, inputs, config.input)
    parts = [_heading(collection)]
    entries = sorted(
        ((entry, group) for group in collection.groups for entry in group.files),
        key=lambda found: found[0].file.source.encode(),
    )
    parts += [_describe(storage, entry, group, config) for entry, group in entries[:SHOWN_FILES]]
    if len(entries) > SHOWN_FILES:
        parts.append(f"… and {len(entries) - SHOWN_FILES:,} more files\n")
    parts += [f"{source}\n  not read   {reason}: {detail}\n" for source, reason, detail in collection.unread]
    parts += [f"{path}\n  skipped    {why}\n" for path, why in collection.listing.skipped[:SHOWN_FILES]]
    if len(collection.listing.skipped) > SHOWN_FILES:
        parts.append(f"… and {len(collection.listing.skipped) - SHOWN_FILES:,} more files skipped\n")
    return "\n".join(parts)


def _heading(collection: Collection) -> str:
    formats = Counter(group.head.format.name for group in collection.groups for _ in group.files)
    size = sum(file.size for file in collection.listing.files)
    told = ", ".join(f"{count:,} {name}" for name, count in sorted(formats.items()))
    return f"{len(collection.listing.files):,} files, {size / 1e6:,.1f} MB: {told or 'none can be read'}\n"


def _describe(storage: Storage, entry: Entry, group: Group, config: Config) -> str:
    file, compression = entry.file, entry.compression
    head = group.head
    declared = head.format
    stored = f"{file.size / 1e6:,.1f} MB" + (f", {compression}" if compression else "")
    tasks = "read from its start, by one task" if group.is_whole else "cut by Spark, many tasks"
    paths = [("record", declared.record), ("id", declared.id), ("url", declared.url)]
    fields = "  ".join(f"{name}={value}" for name, value in paths if value)
    content = "+".join((*declared.title, *declared.content))
    lines = [
        f"{file.source}",
        f"  format     {declared.name}: {head.why}" if head.why else f"  format     {declared.name}",
        f"  stored     {stored}; {tasks}",
        f"  encoding   {head.encoding}"
        + (" (of the file; each document has its own)" if declared.has_own_charset else ""),
        f"  fields     {fields}  content={content}" if content else f"  fields     {fields or 'the whole file'}",
    ]
    return "\n".join([*lines, *_first_records(_read_first(storage, entry, group, config), file, config), ""])


def _read_first(storage: Storage, entry: Entry, group: Group, config: Config) -> list[Record | Reject]:
    """The first records of a file; of one that is not local, those in its first bytes."""
    file, limits = entry.file, Limits(int(config.input.max_record), config.input.max_expansion)
    is_cut = False
    opened: Callable[[], BinaryIO] = partial(open_uri, file.path)
    if is_remote(file.path):
        size = FETCHED_BYTES if group.head.format.kind == "parquet" else REMOTE_BYTES
        is_cut, opened = file.size > size, partial(io.BytesIO, storage.read_head(file.path, size))

    stored = StoredFile(file.source, entry.compression, limits.most_expanded(file.size), opened)
    found = [record for record, _ in islice(read_file(stored, group.head, limits.max_record), RECORDS)]
    return found[:-1] if is_cut and len(found) < RECORDS else found  # the last one lacks its end


def _first_records(found: list[Record | Reject], file: InputFile, config: Config) -> list[str]:
    good = [(place, record) for place, record in enumerate(found, 1) if isinstance(record, Record)]
    lines = []
    for place, record in good[:SHOWN_RECORDS]:
        text = read_text(record, config.input.charset, config.input.markup, config.input.text).text
        name = record.doc_id or f"{file.source}#{place}"
        lines.append(f"  record {place:<4}{name}  {record.url or ''}".rstrip())
        lines.append(f"             {len(tokenise(text)):,} tokens: {_short(text)}")
    reasons = Counter(record.reason for record in found if not isinstance(record, Record))
    whole = ", all there are" if len(found) < RECORDS and not is_remote(file.path) else ""
    told = "".join(f", {count} {reason}" for reason, count in sorted(reasons.items()))
    lines.append(f"  looked at  {len(found):,} records{whole}: {len(good):,} documents{told}")
    rejects = [(place, record) for place, record in enumerate(found, 1) if not isinstance(record, Record)]
    lines += [
        f"  reject     record {place}: {record.reason}: {_short(record.detail)}"
        for place, record in rejects[:SHOWN_REJECTS]
    ]
    return lines


def _short(text: str) -> str:
    line = " ".join(text[: 4 * SHOWN_TEXT].split())
    return line if len(line) <= SHOWN_TEXT else line[: SHOWN_TEXT - 1] + "…"
