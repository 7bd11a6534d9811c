"""Check the settings against the first records of a collection, before a run: paths that match nothing, missing ids.

require_paths    refuse `input.id` or `input.content` if no record at the start of any file has it
require_columns  refuse Parquet files in which no column is the text
require_policy   refuse a column of the keep policy if no record at the start of any file has it
note_others      a message about elements of XML beside the records that have a text too
note_ids         a message about a file without ids, with the field that could be the id
"""

import io
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import pyarrow as pa

from nddup.errors import ConfigError, NddupError
from nddup.reading.detect import first_row
from nddup.reading.formats import FORMATS, FileHead, Format, FormatError
from nddup.reading.json_pairs import paired_rows
from nddup.reading.json_spread import as_lines
from nddup.reading.markup import INLINE
from nddup.reading.outcomes import Record, Reject
from nddup.reading.streams import expand_head
from nddup.reading.xml_structure import ID_NAMES, PARAGRAPHS, URL_NAMES, Shape, first_of, scan
from nddup.scanning.file_heads import PartReader, open_parts
from nddup.scanning.input_files import InputFile, columns_of
from nddup.scanning.whole_files import StoredFile, read_file

RECORDS, FILES = 100, 100
"""Maximum numbers of records per file, and of files, that are examined; the first record with the path ends the search.
"""

START_BYTES = 1 << 18
"""Expanded bytes of a file that are searched for its first records; also the stored bytes that are read for this."""

MOST_OTHERS = 5
"""Maximum number of elements that a message names."""

LIKE_IDS = ("id", "doi", "key", "name", "no", "number", "guid")
"""Endings of field names that suggest an id."""


DAMAGED = (NddupError, pa.ArrowException, OSError, ValueError, struct.error)
"""What reading the schema of a damaged file raises."""


def require_paths(
    reader: PartReader, files: Iterable[tuple[InputFile, FileHead]], *, id_: str | None, content: str | None
) -> None:
    """Refuse a path that the user set if no record at the start of any file has it.

    Args:
        files: each with its head, in order; the first `FILES` are examined.
        id_: `input.id`; None if not set.
        content: `input.content`; None if not set.

    Raises:
        ConfigError: naming the setting, a file, and the fields of its first record.

    Cost: nothing if neither is set; else the starts of files are read until both paths have been found.
    """
    waiting = {name: path for name, path in (("id", id_), ("content", content)) if path}
    seen = ""
    for file, head in islice((pair for pair in files if not pair[1].format.files.holds), FILES):
        if not waiting:
            return
        names = _found_in(reader, file, head, waiting)
        if names is not None:
            waiting = {name: path for name, path in waiting.items() if name not in names}
            seen = seen or f"{file.source} has {', '.join(fields_of(reader, file, head)) or 'none'}"

    if waiting and seen:
        name, path = next(iter(waiting.items()))
        raise ConfigError(f"input.{name}={path}: no record at the start of any file has it; {seen}")


def require_columns(reader: PartReader, files: Iterable[tuple[InputFile, FileHead]], *, content: str | None) -> None:
    """Refuse a collection of Parquet files in which no column looks like the text. Their heads do not hold the columns.

    Args:
        files: each with its head; the first `FILES` are examined.
        content: `input.content`; if it is set, `require_paths` checks the columns.

    Raises:
        ConfigError: naming a file, its columns, and the setting.

    Cost: the metadata of Parquet files is read up to the first that has a text.
    """
    refused = None
    for file, head in islice(files, FILES):
        if not head.format.files.is_columnar or content:
            return
        try:
            completed(reader, file, head)
        except FormatError as error:
            refused = refused or f"{file.path}: {error}"
        else:
            return
    if refused:
        raise ConfigError(refused)


def require_policy(
    reader: PartReader, files: Iterable[tuple[InputFile, FileHead]], paths: Sequence[str], *, asked: str = "keep.policy"
) -> None:
    """Refuse a column of the keep policy if no record at the start of any file has it.

    Args:
        files: each with its head, whose format has the paths of the columns.
        paths: the columns, as the user wrote them.
        asked: what asks for them, for the message.

    Raises:
        ConfigError: naming the column, a file, and the fields of its first record.
    """
    waiting, seen, is_hidden = dict.fromkeys(range(len(paths))), "", False
    for file, head in islice((pair for pair in files if _has_columns(*pair)), FILES):
        has_own = head.format.files.has_columns
        fields = [*(fields_of(reader, file, head) if has_own else []), *columns_of(file.source)]
        places = {at for at in waiting if paths[at] in columns_of(file.source)}
        if head.format.files.is_columnar:
            places |= {at for at in waiting if paths[at] in fields}
        elif has_own:
            records = [one for one in read_first(reader, file, head) if isinstance(one, Record)]
            places |= {at for at in waiting if any(one.policy[at] is not None for one in records)}
            is_hidden |= not records  # a first record that is longer than a start, or damaged, tells nothing
        waiting = {at: None for at in waiting if at not in places}
        seen = seen or f"; {file.source} has {', '.join(fields) or 'none'}"
        if not waiting:
            return
    if is_hidden:
        return
    path = paths[next(iter(waiting))]
    raise ConfigError(f"{asked}: {path}: no record at the start of any file has it{seen}")


def _has_columns(file: InputFile, head: FileHead) -> bool:
    """Return whether the records of a file may have columns, of their own or by the names of its folders."""
    return head.format.files.has_columns or bool(columns_of(file.source))


def _found_in(reader: PartReader, file: InputFile, head: FileHead, paths: Mapping[str, str]) -> set[str] | None:
    """Return the settings whose paths the first records of a file have; None if it has no record to check."""
    if head.format.files.is_columnar:
        columns = fields_of(reader, file, head)
        parts = {name: {part.strip() for part in path.split("+")} for name, path in paths.items()}
        return {name for name, wanted in parts.items() if wanted <= set(columns)} if columns else None

    # A damaged start says nothing about the paths.
    records = read_first(reader, file, head)
    readable = [record for record in records if isinstance(record, Record) or record.reason == "no content"]
    if not readable:
        return None
    has = {
        "id": any(record.doc_id for record in readable),
        "content": any(isinstance(record, Record) for record in readable),
    }
    return {name for name, is_there in has.items() if is_there}


def note_ids(reader: PartReader, files: Iterable[tuple[InputFile, FileHead]]) -> str | None:
    """Return a message about the first file in which no id was found; None if the first `FILES` files have ids.

    Cost: nothing if the format of a file names its id; else its start, or the metadata of Parquet, is read.
    """
    for file, head in islice(files, FILES):
        if head.format.files.holds or (head.format.id and not head.format.files.is_columnar):
            continue
        fields = fields_of(reader, file, head)
        if not fields:  # damaged: the run reports it
            continue
        if head.format.files.is_columnar and (head.format.id or first_of(ID_NAMES, fields)):
            continue
        likely = [name for name in fields if name.lower().lstrip("@").endswith(LIKE_IDS)]
        address = head.format.url or first_of(URL_NAMES, fields)
        named = next(filter(partial(_tells_apart, reader, file, head), [address] if address else likely), None)
        hint = f" (its fields: {', '.join(fields)}); set input.id to one that no two records share"
        if named is not None:
            hint = f"; perhaps input.id={named}, if no two records share it"
        return f"{file.source}: no id found, using file#record{hint}"
    return None


def note_others(reader: PartReader, files: Iterable[tuple[InputFile, FileHead]]) -> str | None:
    """Return a message about the first file of XML in which other elements, beside its records or in them, have a text.

    They are no records, and so in no table: of plain XML those beside the records with the same parts, and records in
    records; of PubMed books. Or in a file that is one record, parts that may be some. None if the first `FILES` files
    have none, or name the record.

    Cost: the start of each such file is read.
    """
    for file, head in islice(files, FILES):
        if head.format.name not in ("xml", "pubmed") or head.why == "input.record":
            continue
        try:
            start = expand_head(reader.read_part(file.path, 0, START_BYTES), START_BYTES)
        except DAMAGED:
            continue
        if note := _note_in(scan(start.decode(head.encoding, "replace")), head):
            return f"{file.source}: {note}"
    return None


def _note_in(shape: Shape, head: FileHead) -> str:
    """Return what `note_others` says of the start of a file; empty for nothing."""
    record = next((element.path for element in shape.elements if element.tag == head.tag), ())
    text = head.format.content[-1].split("/")
    others = [
        path[-1]
        for path in shape.seen
        if path[:-1] == record[:-1]
        and path != record
        and ((*path, *text) in shape.with_text or path[-1] == FORMATS["pubmedbooks"].record)
    ]
    if others and record:
        named = ", ".join(f"<{name}>" for name in others[:MOST_OTHERS])
        more = ", …" if len(others) > MOST_OTHERS else ""
        return f"<{record[-1]}> is read, not {named}{more} beside it with texts; input.record names one"
    inner = [path for path in shape.seen if path[: len(record)] == record and path[-1:] == record[-1:]]
    if any(path != record and (*path, *text) in shape.with_text for path in inner):
        return f"<{record[-1]}> is read, not one in another, though it has a text too"
    part = next(iter(_parts_with_ids(shape)), "") if len(record) == 1 else ""
    return (
        f"all of <{record[0]}> is one document; if each <{part}> in it is one, set input.record={part}" if part else ""
    )


def _parts_with_ids(shape: Shape) -> list[str]:
    """Return the names of elements that are no paragraphs, of which several have a text and what may be an id."""
    named = Counter(
        element.path
        for element in shape.elements
        if element.path in shape.with_text and any(name.lower().endswith("id") for name in element.attributes)
    )
    return [path[-1] for path, count in named.items() if count > 1 and path[-1] not in (*PARAGRAPHS, *INLINE)]


def _tells_apart(reader: PartReader, file: InputFile, head: FileHead, name: str) -> bool:
    """Return whether a field has another value in each of the first records; true for Parquet, which is not read."""
    if head.format.files.is_columnar:
        return True
    records = read_first(reader, file, replace(head, format=replace(head.format, id=name)))
    ids = [record.doc_id for record in records if isinstance(record, Record)]
    return None not in ids and len(set(ids)) == len(ids)


def read_first(reader: PartReader, file: InputFile, head: FileHead) -> list[Record | Reject]:
    """Read at most `RECORDS` records in the first bytes of a file, without one cut at their end. Not for Parquet."""
    raw = reader.read_part(file.path, 0, START_BYTES)
    start = expand_head(raw, START_BYTES)
    stored = StoredFile(file.source, "", len(start), partial(io.BytesIO, start))
    records = [record for record, _ in islice(read_file(stored, head, START_BYTES), RECORDS + 1)]
    is_whole = len(raw) == file.size and len(start) < START_BYTES
    return records if is_whole and len(records) <= RECORDS else records[:-1]


def fields_of(reader: PartReader, file: InputFile, head: FileHead) -> list[str]:
    """Return the names of the fields of a file's first record: keys, columns, or children and attributes.

    Empty for a damaged file.
    """
    kind = head.format.kind
    try:
        if head.format.files.is_columnar:
            from nddup.ground.columns import fields_in  # noqa: PLC0415 - only for Parquet

            return fields_in(_schema_of(reader, file))
        expanded = expand_head(reader.read_part(file.path, 0, START_BYTES), START_BYTES)
        if head.is_paired:
            return list(first_row(paired_rows(expanded, head.encoding)[:RECORDS]))
        start = (as_lines(expanded, head.list_keys) if head.is_spread else expanded).decode(head.encoding, "replace")
        if kind == "jsonl":
            return list(first_row(start.split("\n")[:RECORDS]))
        if kind == "csv":
            return [name.strip(' "') for name in start.splitlines()[0].split(head.separator.decode()[0])]
        shape = scan(start)
        return shape.fields(next(element.path for element in shape.elements if element.tag == head.tag))
    except (*DAMAGED, StopIteration, IndexError):
        return []  # the run itself reports a damaged file


def completed(reader: PartReader, file: InputFile, head: FileHead) -> Format:
    """Return the format of a file with the fields that are read; for Parquet, only the schema at its end names them.

    Raises:
        FormatError: if no column of the schema looks like the text, or one that was set is missing.
    """
    if not head.format.files.is_columnar:
        return head.format
    from nddup.reading.parquet_rows import format_of, open_parquet  # noqa: PLC0415 - only for Parquet

    try:
        raw = open_parts(reader, file)
        return format_of(open_parquet(raw), raw, head.format)
    except FormatError:
        raise
    except DAMAGED:
        return head.format


def _schema_of(reader: PartReader, file: InputFile) -> pa.Schema:
    """Read the columns of a Parquet file from its end: the metadata, their length in 4 bytes, and PAR1."""
    (size,) = struct.unpack("<I", reader.read_part(file.path, file.size - 8, 4))
    tail = reader.read_part(file.path, max(0, file.size - 8 - size), size + 8)
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for Parquet

    return pq.read_schema(io.BytesIO(b"PAR1" + tail))
