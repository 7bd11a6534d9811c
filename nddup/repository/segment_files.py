"""The tables of a repository, declared once, and their files in `segments/NAME/`; `commits` describes the folders.

A document has a number, `doc_key`, in the order of arrival: (version, source, record). A node is a distinct sketch,
named by the number of the first document that had it. Components are numbered too. No number is used twice.

The tables of a segment are Parquet: written once, flushed to the disk, read whole or by a few keys.
The shingle ids of the stored texts are one Arrow file a segment, written in a stream. Ids are hashes, which no encoding
makes smaller: each takes 8 bytes, and the file is mapped as it is. Only the rows that are asked for are read, each
compared with the fingerprint of its node, so the file need not be read whole to be trusted.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nddup import tables
from nddup.embedded.confirm import Row
from nddup.errors import OutputError
from nddup.reading.parquet_rows import expanded_size
from nddup.repository.commits import Segment
from nddup.repository.places import SEGMENTS, Place, digest_file
from nddup.repository.sound_values import find_fault_in_table
from nddup.tables import CLUSTERS, FALSE_COMPONENTS, MEMBERS, OF_TEXTS, PAIRS, Column, Table

LAYOUT, EXACT_LAYOUT = 4, 5
"""Versions of the tables and of the commit files: where sketches decide, and where shingles are stored that decide; a
repository with another one is refused."""

_KEY = Column("doc_key", "long", "number of the document, in the order of arrival")
_COMPONENT = Column("component_key", "long", "number of the component whose rows these are")

_STORED = [column for column in tables.DOCUMENTS.columns if column.is_stored]
"""The columns of a run's documents that a repository stores too; lists come last."""

DOCUMENTS = Table(
    "documents", "One row per document that was added.",
    (
        _KEY, *sorted(_STORED, key=lambda column: column.type.startswith("array")),
        Column("node", "long", "its distinct sketch"),
        Column("version", "long", "the version that added it"),
    ),
)  # fmt: skip

TEXTS = Table(
    "texts", "One row per document whose text is kept for reports.",
    (_KEY, Column("text", "string", "the first characters of its text, markup removed")),
)  # fmt: skip

SKETCHES = Table(
    "sketches", "One row per distinct sketch that was new in the segment, ascending by node.",
    (
        Column("node", "long", "number of the first document that had it"),
        Column("n_features", "int", "of that document; decides the modulus of `mod-pow2`"),
        Column("sketch_fingerprint", "binary", "BLAKE2b-128 of what tells nodes apart: the sketch, or all shingle ids"),
        Column("sketch", "array<long>", "ids, ascending as unsigned numbers"),
    ),
)  # fmt: skip

SHINGLES = Table(
    "shingles",
    "One row per distinct sketch that does not hold all shingles of its documents, by node. An Arrow file, only where"
    " all shingles decide.",
    (
        Column("node", "long", "as in `sketches`"),
        Column("shingles", "array<long>", "the distinct shingle ids of its documents, ascending as unsigned numbers"),
    ),
)

POSTINGS = Table(
    "postings", "The prefix features of the segment's sketches, sorted by feature.",
    (
        Column("feature", "long", "hash of an id, 32 bits"),
        Column("row", "int", "ordinal of the sketch in the segment; for `mod-pow2`, of its row at one level"),
        Column("place", "int", "position of the feature in the order of its sketch, from 0"),
    ),
)  # fmt: skip

COMMON = Table(
    "common",
    "The features that four or more sketches of the segment hold: with the hash they define its order of features.",
    (Column("feature", "long", "hash of an id"), Column("holders", "int", "how many sketches hold it")),
)

GONE = Table("gone", "One row per document that was removed.", (_KEY, Column("doc_id", "string", "its id")))

REPLACED = Table("replaced", "The components whose rows no longer count.", (_COMPONENT,))

STATE = Table(
    "state", "One row per document of each component made: whether it is kept, and why.",
    (
        _KEY, _COMPONENT,
        Column("group", "string", "smallest id of the documents with the same sketch"),
        Column("kept", "boolean", "whether it is kept"),
        Column("duplicate_of", "string", "its kept near-duplicate; null where it is kept itself"),
        Column("duplicate_key", "long", "number of that document; null where it is kept itself"),
        Column("reason", "string", "as in `keep`"),
        Column("leader", "boolean", "likewise"),
    ),
)  # fmt: skip


NOT_STORED = tuple(column.name for column in OF_TEXTS if column.name == "edit")
"""The columns of `pairs` that are not stored: only `pairs.confirm: edit` fills them, which a repository refuses."""

DIGESTS = Table(
    "digests", "Order-free digest of the rows of each component of two documents or more, by table.",
    (
        _COMPONENT,
        Column("name", "string", "name of the table"),
        Column("rows", "long", "its rows in this component"),
        Column("digest", "binary", "sum of BLAKE2b-128 of its rows, 16 bytes"),
    ),
)  # fmt: skip

CHANGES = Table(
    "changes",
    "What a version changed: one row per document that was added, removed, replaced, promoted or demoted.",
    (
        Column("doc_id", "string", "the document"),
        Column("was", "string", "`kept`, `removed` or `absent`"),
        Column("is", "string", "the same, afterwards"),
        Column("duplicate_of", "string", "its kept near-duplicate, where it is removed"),
        Column("cause", "string",
               "`added`, `removed`, `replaced`, `promoted` (a duplicate that is kept now) or `demoted` (the reverse)"),
    ),
)  # fmt: skip

MATCHES = Table(
    "matches",
    "One row per stored document that is like a query; a query without any has one row with `doc_id` null.",
    (
        Column("query_id", "string", "the query"),
        Column("doc_id", "string", "a live document of the repository"),
        Column("version", "long", "the version that added it"),
        Column("source", "string", "the file it came from"),
        Column("overlap", "int", "features common to both sketches"),
        Column("resemblance", "double", "as in `pairs`"),
        Column("score", "double", "100 x resemblance"),
        Column("band", "string", "`>=80`, `70-80`, …: the lower bound belongs to it; null without bands"),
        Column("kept", "boolean", "whether the repository keeps it"),
        Column("repository", "string", "where it is stored"),
        Column("note", "string", "`nothing to compare`: the query has no feature to be found by; else null"),
        Column("common", "int", "number of distinct shingles that both have; null where sketches decide"),
        Column("shingles_a", "int", "number of distinct shingles of the query; null likewise"),
        Column("shingles_b", "int", "number of distinct shingles of the document; null likewise"),
    ),
)

TOGETHER = 1 << 19
"""Maximum number of ids of a batch, 4 MB, unless one text has more."""

Shingled = Iterable[tuple[int, Row]]
"""Nodes, ascending, each with the place of its shingle ids."""

ROWS = 1 << 16
"""Rows of a row group, which a look-up by key reads or skips as a whole."""

PACKED: dict[str, str] = {
    "feature": "DELTA_BINARY_PACKED", "row": "DELTA_BINARY_PACKED", "doc_key": "DELTA_BINARY_PACKED",
    "node": "DELTA_BINARY_PACKED", "component_key": "DELTA_BINARY_PACKED",
}  # fmt: skip
"""Encodings of columns whose successive numbers are close together."""

EXPANSION, LEAST_EXPANSION = 200, 1 << 30
"""How many times its size a table may expand to, and how many bytes any may: 10^8 numbers in order take few bytes."""


def _by_component(table: Table, name: str) -> Table:
    return Table(name, table.meaning, (_COMPONENT, *(one for one in table.columns if one.name not in NOT_STORED)))


RESULTS = {
    "pairs": _by_component(PAIRS, "pairs"),
    "clusters": _by_component(CLUSTERS, "clusters"),
    "members": _by_component(MEMBERS, "members"),
    "false_components": _by_component(FALSE_COMPONENTS, "false_components"),
}
"""The tables of a run that are stored whole, with the component of each row."""


SEGMENT = {
    table.name: table
    for table in (
        DOCUMENTS, TEXTS, SKETCHES, SHINGLES, POSTINGS, COMMON, GONE, REPLACED, STATE, *RESULTS.values(),
        DIGESTS, CHANGES,
    )
}  # fmt: skip
"""The tables of a segment, by name."""


def table_of(table: Table, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Return a few rows as an Arrow table; the values of a row are in the order of the columns."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, table.arrow, strict=True)]
    return pa.Table.from_arrays(arrays, schema=table.arrow)


class StoredShingles(NamedTuple):
    """The mapped rows of n nodes, in b batches."""

    nodes: NDArray[np.int64]  # (n,), ascending
    starts: NDArray[np.int64]  # (b + 1,), the place of the first node of each batch
    batches: list[tuple[NDArray[np.uint64], NDArray[np.int32]]]  # the ids of each, and the ends of its rows

    def row(self, place: int) -> Row:
        """Return the row of the node at a place."""
        number = int(np.searchsorted(self.starts, place, "right")) - 1
        ids, ends = self.batches[number]
        low, high = ends[place - self.starts[number] :][:2].tolist()
        return Row(ids, low, high)

    def only(self, chosen: NDArray[np.bool_]) -> Iterator[tuple[int, Row]]:
        """Yield the chosen nodes with their rows."""
        for place in np.flatnonzero(chosen).tolist():
            yield int(self.nodes[place]), self.row(place)


NO_SHINGLES = StoredShingles(np.empty(0, np.int64), np.zeros(1, np.int64), [])
"""Those of a segment whose sketches hold all shingles."""


def write_shingles(path: Path, shingled: Shingled) -> int:
    """Write SHINGLES to a file, and return the number of rows; no file is made for none.

    Cost: memory for one batch.
    """
    count = 0
    writer: pa.ipc.RecordBatchFileWriter | None = None
    try:
        for batch in _in_batches(shingled):
            writer = writer or pa.ipc.new_file(str(path), SHINGLES.arrow)
            writer.write_batch(batch)
            count += len(batch)
    finally:
        if writer is not None:
            writer.close()
    return count


def _in_batches(shingled: Shingled) -> Iterator[pa.RecordBatch]:
    nodes, rows, size = list[int](), list[Row](), 0
    for node, row in shingled:
        if rows and size + row.high - row.low > TOGETHER:
            yield _batch(nodes, rows)
            nodes, rows, size = [], [], 0
        nodes.append(node)
        rows.append(row)
        size += row.high - row.low
    if rows:
        yield _batch(nodes, rows)


def _batch(nodes: list[int], rows: list[Row]) -> pa.RecordBatch:
    ends = np.cumsum([0, *(row.high - row.low for row in rows)]).astype(np.int32)
    ids = np.concatenate([row.values[row.low : row.high] for row in rows])
    lists = pa.ListArray.from_arrays(pa.array(ends), pa.array(ids.view(np.int64)))
    return pa.RecordBatch.from_arrays([pa.array(nodes, pa.int64()), lists], schema=SHINGLES.arrow)


def map_shingles(path: Path) -> StoredShingles:
    """Map the file of a segment.

    Raises:
        OSError: if it is missing.
        ArrowException: if it is damaged, or rows lead outside.

    Cost: reads the nodes and the ends of the rows, some 12 bytes each, and no shingle.
    """
    nodes, batches = [np.empty(0, np.int64)], []
    with pa.ipc.open_file(pa.memory_map(str(path))) as reader:
        for number in range(reader.num_record_batches):
            table = pa.Table.from_batches([reader.get_batch(number)])
            if fault := find_fault_in_table(table, SHINGLES.arrow):
                raise pa.ArrowInvalid(fault)
            [lists] = table["shingles"].chunks
            nodes.append(table["node"].to_numpy())
            batches.append((lists.values.to_numpy().view(np.uint64), lists.offsets.to_numpy()))
    names = np.concatenate(nodes)
    if (names[1:] <= names[:-1]).any():
        raise pa.ArrowInvalid("node is not ascending")
    return StoredShingles(names, np.cumsum([len(part) for part in nodes]), batches)


def fingerprint_of(row: Row) -> bytes:
    """Return the BLAKE2b-128 of a row's ids, as its node has it."""
    return blake2b(row.values[row.low : row.high].tobytes(), digest_size=16).digest()


def file_of(name: str) -> str:
    """Return the name of a table's file in its segment."""
    return f"{name}.arrow" if name == "shingles" else f"{name}.parquet"


def write_segment(repo: Place, version: int, tables: Mapping[str, pa.Table], shingled: Shingled = ()) -> Segment:
    """Write a new segment; no reader sees it until a commit names it.

    Args:
        version: the version that will name it first.
        tables: some of `layout.SEGMENT`; the others have no rows.
        shingled: the rows of SHINGLES.

    Raises:
        OutputError: if it cannot be written; files already written are removed.
    """
    folder = repo.folder / SEGMENTS / f"v{version:06}-{token_hex(6)}"
    rows: dict[str, int] = {}
    files: dict[str, tuple[int, str]] = {}
    try:
        folder.mkdir(parents=True)
        for name, table in tables.items():
            if len(table):
                _write(folder / file_of(name), table.select(SEGMENT[name].names).cast(SEGMENT[name].arrow))
                rows[name] = len(table)
        if count := write_shingles(folder / file_of("shingles"), shingled):
            rows["shingles"] = count
        for path in sorted(folder.iterdir()):
            files[path.name] = (path.stat().st_size, digest_file(path))
        repo.publish(folder.name)
    except OSError as error:
        remove_segment(repo, folder.name)
        raise OutputError(f"{repo}: cannot be written ({error.strerror or error}); nothing was changed") from error
    except BaseException:
        remove_segment(repo, folder.name)
        raise
    return Segment(folder.name, rows, files)


def _write(path: Path, table: pa.Table) -> None:
    packed = {name: PACKED[name] for name in table.column_names if name in PACKED}
    with path.open("wb") as file:
        pq.write_table(
            table,
            file,
            compression="zstd",
            compression_level=1,
            write_page_checksum=True,
            row_group_size=ROWS,
            use_dictionary=[name for name in table.column_names if name not in packed and _repeats(table, name)],
            column_encoding=packed or None,
        )
        file.flush()
        os.fsync(file.fileno())


def _repeats(table: pa.Table, name: str) -> bool:
    return table.schema.field(name).type == pa.string() or name == "place"


def remove_segment(repo: Place, name: str) -> None:
    """Remove a segment that no commit names; if that fails, a later `compact` removes it."""
    with suppress(OSError):
        repo.remove_segment(name)


def require_stored(repo: Place, segments: Sequence[Segment]) -> None:
    """Check that segments that a commit will name are there, with all their files.

    Raises:
        OutputError: if one is not: a version without its files would be lost.
    """
    for segment in segments:
        there = repo.sizes(segment.name)
        missing = sorted(name for name, (size, _) in segment.files.items() if there.get(name) != size)
        if missing:
            lost = f"{SEGMENTS}/{segment.name}/{missing[0]}"
            raise OutputError(f"{repo}: {lost} is missing, or has another size than was written; nothing was changed")


def read_table(
    repo: Place, segment: Segment, name: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
) -> pa.Table:
    """Read a table of a segment: all rows, or those for which an expression of `pyarrow.dataset` holds.

    Raises:
        OutputError: if the file is missing, cannot be read, is not the one that was written, or holds other values than
            nddup writes.

    Cost: reads the file once more, for its SHA-256, and goes through the values once.
    """
    declared = SEGMENT[name].arrow
    chosen = list(columns or declared.names)
    if not segment.rows.get(name):
        return declared.empty_table().select(chosen)
    path = require_file(repo, segment, name)
    try:
        if digest_file(path) != segment.files[path.name][1]:
            raise not_as_written(repo, segment, name)
        require_small(path)
        table = ds.dataset(str(path), declared, format="parquet").to_table(columns=chosen, filter=where)
    except (OSError, ValueError, TypeError, LookupError, MemoryError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise OutputError(f"{repo}: {SEGMENTS}/{segment.name}/{path.name} cannot be read ({reason})") from error
    if where is None and len(table) != segment.rows[name]:
        raise not_sound(repo, segment, name, f"{len(table):,} rows, expected {segment.rows[name]:,}")
    if fault := find_fault_in_table(table, declared):
        raise not_sound(repo, segment, name, fault)
    return table


def require_small(path: Path) -> None:
    """Refuse a file of Parquet that expands to far more than it has: its digest is its writer's own.

    Raises:
        OSError: if it does; or what it is damaged by.
    """
    most = max(EXPANSION * path.stat().st_size, LEAST_EXPANSION)
    with path.open("rb") as file:
        if expanded_size(file, most) > most:
            raise OSError(f"it expands to more than {most:,} bytes")


def not_sound(repo: Place, segment: Segment, name: str, fault: str) -> OutputError:
    """Return the error for a file with values that nddup does not write."""
    where = f"{SEGMENTS}/{segment.name}/{file_of(name)}"
    return OutputError(f"{repo}: {where} holds what nddup does not write: {fault}")


def not_as_written(repo: Place, segment: Segment, name: str) -> OutputError:
    """Return the error for a file whose content is another than was written."""
    text = "is not the file that was written, bit for bit; `nddup index check` names all such files"
    return OutputError(f"{repo}: {SEGMENTS}/{segment.name}/{file_of(name)} {text}")


def open_shingles(repo: Place, segment: Segment) -> StoredShingles:
    """Map SHINGLES of a segment; its rows are not compared with their digests: the fingerprints of nodes prove them.

    Raises:
        OutputError: if the file is missing, or has another form or size than was written.
    """
    if not segment.rows.get("shingles"):
        return NO_SHINGLES
    path = require_file(repo, segment, "shingles")
    try:
        stored = map_shingles(path)
    except (OSError, ValueError, TypeError, LookupError, MemoryError, pa.ArrowException) as error:
        raise not_as_written(repo, segment, "shingles") from error
    if len(stored.nodes) != segment.rows["shingles"]:
        raise not_as_written(repo, segment, "shingles")
    return stored


def require_file(repo: Place, segment: Segment, name: str) -> Path:
    """Return the file of a table that has rows, on this machine; copied first where it lies elsewhere.

    Raises:
        OutputError: if it is missing, cannot be read, or has another size than was written.
    """
    file = f"{segment.name}/{file_of(name)}"
    if file_of(name) not in segment.files:
        raise OutputError(f"{repo}: {SEGMENTS}/{file} is not named by the version, but has rows; it is damaged")
    size, digest = segment.files[file_of(name)]
    try:
        path = repo.fetch(file, size, digest)
        is_whole = path.stat().st_size == size
    except FileNotFoundError as error:
        raise OutputError(f"{repo}: {SEGMENTS}/{file} is missing: it was removed, or compacted away") from error
    except OSError as error:
        raise OutputError(f"{repo}: {SEGMENTS}/{file} cannot be read ({error})") from error
    if not is_whole:
        raise OutputError(f"{repo}: {SEGMENTS}/{file} has another size than was written")
    return path


def read_all(
    repo: Place,
    segments: Sequence[Segment],
    name: str,
    columns: Sequence[str] | None = None,
    where: pc.Expression | None = None,
) -> pa.Table:
    """Read the rows of a table in several segments, one segment after another."""
    empty = SEGMENT[name].arrow.empty_table().select(list(columns or SEGMENT[name].names))
    return pa.concat_tables([empty, *(read_table(repo, segment, name, columns, where) for segment in segments)])


def among(column: str, keys: NDArray[np.int64]) -> pc.Expression:
    """Return the condition that a key is one of these (ascending); row groups outside their range are not read."""
    if not len(keys):
        return pc.scalar(value=False)
    field = pc.field(column)
    return (field >= int(keys[0])) & (field <= int(keys[-1])) & field.isin(pa.array(keys))
