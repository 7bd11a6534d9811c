"""`nddup inspect`: show, before a long run, how each file would be read, its first records, and its rejects.

It calls the functions of a run, in this process, and reads at most `RECORDS` records of a file.
"""

import io
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import BinaryIO, NamedTuple

from nddup.ground.progress import Steps
from nddup.ground.shown import counted, one_line, shorten, spell_size
from nddup.reading.csv_rows import dialect_of
from nddup.reading.formats import FormatError
from nddup.reading.outcomes import Record, Reject
from nddup.scanning.collection import Collection, Files, Group, ListedFile, find_files
from nddup.scanning.first_records import completed, note_ids, note_others
from nddup.scanning.found import TextRule, with_source
from nddup.scanning.input_files import ASSET_WHY, InputFile, columns_of, is_of_this_machine
from nddup.scanning.walk import open_stored
from nddup.scanning.whole_files import StoredFile, read_file
from nddup.settings.schema import Config
from nddup.sketching.tokens import tokenise

RECORDS = 1_000
"""Maximum number of records read from a file."""

REMOTE_BYTES, REMOTE_PARQUET = 4 << 20, 64 << 20
"""Maximum number of bytes fetched from a file that is not local; Parquet is read from its end, so more of it is
fetched."""

ALIKE = 3
"""Maximum number of files of one reason, or of a kind whose files are one record, mostly, that are named one by one."""

SHOWN_FILES, SHOWN_RECORDS, SHOWN_REJECTS, SHOWN_TEXT = 20, 3, 3, 72
"""Maximum numbers of files described, of records and rejects shown of each, and of characters of a text."""


class _Described(NamedTuple):
    """A file: what is equal for files that are read alike, its name, the number of records read, its paragraph."""

    kind: tuple[str, ...]
    source: str
    records: int
    text: str


def preview(files: Files, inputs: list[str], config: Config, *, steps: Steps | None = None) -> str:
    """Return a text for the terminal: one paragraph per file, then the files that were left out.

    Raises:
        ConfigError: if an input is missing, or no file can be understood.

    Cost: the head of every file, and `RECORDS` records of the files that are described.
    """
    steps = steps or Steps("inspect", 2, is_quiet=True)
    steps.begin("find the files and their formats")
    collection = find_files(files, inputs, config.input)
    entries = sorted(
        ((entry, group) for group in collection.groups for entry in group.files),
        key=lambda pair: pair[0].file.source.encode(),
    )

    parts = [_heading(collection)]
    steps.begin("read the first records")
    chosen, left = _choose(entries)
    alike: dict[tuple[str, ...], list[_Described]] = {}
    for number, (entry, group) in enumerate(chosen):
        steps.advance(number, len(chosen))
        described = _describe(files, entry, group, config)
        alike.setdefault(described.kind, []).append(described)
    parts += [_spell_alike(same) for same in alike.values()]
    parts += [f"… and {counted(count, 'more file')}: {name}\n" for name, count in sorted(left.items())]
    notes = note_ids(files, collection.files), note_others(files, collection.files)
    parts += [f"{one_line(note)}\n" for note in notes if note]
    unread = [
        (source, detail if detail.startswith(f"{reason}:") else f"{reason}: {detail}")
        for source, reason, detail in collection.unread
    ]
    parts += _kinds_of(unread, "not read   ")
    skipped = [*collection.listing.skipped, *((file.source, ASSET_WHY) for file in collection.assets)]
    parts += _kinds_of(skipped, "skipped    ")
    return "\n".join(parts)


def _spell_alike(files: Sequence[_Described]) -> str:
    """Return the paragraph of the first of files that are read alike, and which others there are."""
    first, *others = files
    if not others:
        return first.text
    names = one_line(others[0].source) + (f" to {one_line(others[-1].source)}" if len(others) > 1 else "")
    records = f"{counted(sum(one.records for one in others), 'record')} looked at"
    return f"{first.text}  like it    {counted(len(others), 'file')}, {records}: {names}\n"


def _choose(entries: Sequence[tuple[ListedFile, Group]]) -> tuple[list[tuple[ListedFile, Group]], Counter[str]]:
    """Choose the files that are described, and count the others by format: of files that are one record, a few."""
    seen, left, chosen = Counter[str](), Counter[str](), list[tuple[ListedFile, Group]]()
    for entry, group in entries:
        name = group.head.format.name
        seen[name] += 1
        if len(chosen) < SHOWN_FILES and (seen[name] <= ALIKE or group.head.format.files.has_columns):
            chosen.append((entry, group))
        else:
            left[name] += 1
    return chosen, left


def _kinds_of(unread: Sequence[tuple[str, str]], word: str) -> list[str]:
    """Return a paragraph for each file that is not read; of more than `ALIKE` with one reason, one for all of them."""
    by_reason: dict[str, list[str]] = {}
    for source, why in unread:
        by_reason.setdefault(why, []).append(source)
    paragraphs = []
    for why, sources in by_reason.items():
        if len(sources) > ALIKE:
            paragraphs.append(f"{len(sources):,} files, the first {one_line(sources[0])}\n  {word}{one_line(why)}\n")
        else:
            paragraphs += [f"{one_line(source)}\n  {word}{one_line(why)}\n" for source in sources]
    return paragraphs


def _heading(collection: Collection) -> str:
    formats = Counter(group.head.format.name for group in collection.groups for _ in group.files)
    assets = {file.source for file in collection.assets}
    looked = [file for file in collection.listing.files if file.source not in assets]
    size = sum(file.size for file in looked)
    text = ", ".join(f"{count:,} {name}" for name, count in sorted(formats.items()))
    files = counted(len(looked), "file")
    return f"{files}, {spell_size(size)}: {text or 'none can be read'}\n"


def _describe(files: Files, entry: ListedFile, group: Group, config: Config) -> _Described:
    file, head = entry.file, group.head
    try:
        declared = completed(files, file, head)
    except FormatError:  # its records are rejects, which say why
        declared = head.format
    stored = spell_size(file.size) + (f", {entry.compression}" if entry.compression else "")
    reading = "read from its start to its end" if group.is_whole else "can be read in parts, at the same time"

    paths = [("record", declared.record), ("id", declared.id), ("url", declared.url)]
    fields = "  ".join(f"{name}={one_line(value)}" for name, value in paths if value)
    content = one_line("+".join((*declared.title, *declared.content)))
    charset = " (of the file; each document has its own)" if declared.has_own_charset else ""

    lines = [
        one_line(file.source),
        f"  format     {declared.name}: {head.why}" if head.why else f"  format     {declared.name}",
        f"  stored     {stored}; {reading}",
        f"  encoding   {head.encoding}{charset}",
        f"  fields     {fields}  content={content}"
        if content
        else f"  fields     {fields or declared.files.holds or 'none'}",
    ]
    if columns := columns_of(file.source):
        lines.append(f"  folders    {one_line(', '.join(f'{name}={value}' for name, value in columns.items()))}")
    if declared.kind == "csv":
        lines.append(f"  table      {dialect_of(head).describe()}")
    records = _read_first(files, entry, group, config)
    rejected = {one.reason for one in records if isinstance(one, Reject)}
    kind = (*lines[1:2], entry.compression, reading, *lines[3:], *([file.source] if rejected else []))
    text = "\n".join([*lines, *_first_records(records, file, config), ""])
    return _Described(kind, file.source, len(records), text)


def _read_first(files: Files, entry: ListedFile, group: Group, config: Config) -> list[Record | Reject]:
    file, max_record = entry.file, int(config.input.max_record)
    is_cut = False
    if not _is_remote(file.path):
        opened: Callable[[], BinaryIO] = partial(open_stored, file.path)
    else:
        size = REMOTE_PARQUET if group.head.format.files.is_columnar else REMOTE_BYTES
        is_cut, opened = file.size > size, partial(io.BytesIO, files.read_part(file.path, 0, size))

    stored = StoredFile(file.source, entry.compression, entry.most, opened)
    records = [record for record, _ in islice(read_file(stored, group.head, max_record), RECORDS)]
    records = [with_source(one, file.source, group.head.format) for one in records]
    return records[:-1] if is_cut and len(records) < RECORDS else records  # the last record is incomplete


def _first_records(records: list[Record | Reject], file: InputFile, config: Config) -> list[str]:
    """Return the lines about the records of a file: a few documents, the counts, a few rejects."""
    good = [(place, record) for place, record in enumerate(records, 1) if isinstance(record, Record)]
    rejects = [(place, record) for place, record in enumerate(records, 1) if isinstance(record, Reject)]
    rule = TextRule(config.input.markup, config.input.charset, config.input.text)

    lines = []
    texts = [rule.read(record) for _, record in good]
    for (place, record), read in list(zip(good, texts, strict=True))[:SHOWN_RECORDS]:
        text = read.text
        name = one_line(record.doc_id or f"{file.source}#{place}")
        lines.append(f"  record {place:<4}{name}  {one_line(record.url)}".rstrip())
        lines.append(f"             {counted(len(tokenise(text, config.tokens.ignored)), 'token')}: {_short(text)}")

    reasons = Counter(record.reason for _, record in rejects)
    whole = ", all there are" if len(records) < RECORDS and not _is_remote(file.path) else ""
    by_reason = "".join(f", {count} {reason}" for reason, count in sorted(reasons.items()))
    lines.append(f"  looked at  {counted(len(records), 'record')}{whole}: {counted(len(good), 'document')}{by_reason}")

    stripped = sum(text.stripped > 0 for text in texts)
    if any(None in _kinds(record) for _, record in good) and config.input.markup == "auto":
        lines.append(
            f"  markup     {stripped:,} of {counted(len(good), 'text')} {'holds' if stripped == 1 else 'hold'} markup"
        )
    guessed = sum(text.guessed > 0 for text in texts)
    if guessed:
        lines.append(f"  guessed    the encoding of {counted(guessed, 'record')}; input.charset sets it")
    lines += [
        f"  reject     record {place}: {record.reason}: {_short(record.detail)}"
        for place, record in rejects[:SHOWN_REJECTS]
    ]
    return lines


def _kinds(record: Record) -> tuple[bool | None, ...]:
    return record.is_markup if isinstance(record.is_markup, tuple) else (record.is_markup,)


def _is_remote(path: str) -> bool:
    return not is_of_this_machine(path)


def _short(text: str) -> str:
    return shorten(" ".join(text[: 4 * SHOWN_TEXT].split()), SHOWN_TEXT)
