"""The tables of a segment as Parquet: written once, flushed to the disk, read whole or by a few keys.

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

from nddup.errors import OutputError
from nddup.local.pairing.confirm import Row
from nddup.repository.places.disk_place import digest_file
from nddup.repository.places.place import SEGMENTS, Place
from nddup.repository.segments.commits import Segment
from nddup.repository.segments.layout import SEGMENT, SHINGLES

TOGETHER = 1 << 19
"""Most ids of a batch, 4 MB, unless one text has more."""

Shingled = Iterable[tuple[int, Row]]
"""Nodes, ascending, each with the place of its shingle ids."""


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
    nodes, rows, held = list[int](), list[Row](), 0
    for node, row in shingled:
        if rows and held + row.high - row.low > TOGETHER:
            yield _batch(nodes, rows)
            nodes, rows, held = [], [], 0
        nodes.append(node)
        rows.append(row)
        held += row.high - row.low
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
        ArrowInvalid: if it is damaged.

    Cost: reads the nodes and the ends of the rows, some 12 bytes each, and no shingle.
    """
    nodes, batches = [np.empty(0, np.int64)], []
    with pa.ipc.open_file(pa.memory_map(str(path))) as reader:
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            batch.validate()
            lists = batch["shingles"]
            nodes.append(batch["node"].to_numpy())
            batches.append((lists.values.to_numpy().view(np.uint64), lists.offsets.to_numpy()))
    return StoredShingles(np.concatenate(nodes), np.cumsum([len(part) for part in nodes]), batches)


def fingerprint_of(row: Row) -> bytes:
    """Return the BLAKE2b-128 of a row's ids, as its node has it."""
    return blake2b(row.values[row.low : row.high].tobytes(), digest_size=16).digest()


ROWS = 1 << 16
"""Rows of a row group, which a look-up by key reads or skips as a whole."""

PACKED: dict[str, str] = {
    "feature": "DELTA_BINARY_PACKED", "row": "DELTA_BINARY_PACKED", "doc_key": "DELTA_BINARY_PACKED",
    "node": "DELTA_BINARY_PACKED", "component_key": "DELTA_BINARY_PACKED",
}  # fmt: skip
"""Encodings of columns whose successive numbers are close together."""


def file_of(name: str) -> str:
    """Return the name of a table's file in its segment."""
    return f"{name}.arrow" if name == "shingles" else f"{name}.parquet"


def write_segment(repo: Place, version: int, tables: Mapping[str, pa.Table], shingled: Shingled = ()) -> Segment:
    """Write a new segment; no reader sees it until a commit names it.

    Args:
        repo: the repository.
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
    repo: Place,
    segment: Segment,
    name: str,
    columns: Sequence[str] | None = None,
    where: Any = None,  # noqa: ANN401
) -> pa.Table:
    """Read a table of a segment: all rows, or those for which an expression of `pyarrow.dataset` holds.

    Raises:
        OutputError: if the file is missing, cannot be read, or is not the one that was written.

    Cost: reads the file once more, for its SHA-256.
    """
    declared = SEGMENT[name].arrow
    chosen = list(columns or declared.names)
    if not segment.rows.get(name):
        return declared.empty_table().select(chosen)
    path = require_file(repo, segment, name)
    try:
        if digest_file(path) == segment.files[path.name][1]:
            return ds.dataset(str(path), declared, format="parquet").to_table(columns=chosen, filter=where)
    except (OSError, pa.ArrowInvalid) as error:
        raise OutputError(f"{repo}: {SEGMENTS}/{segment.name}/{path.name} cannot be read ({error})") from error
    raise not_as_written(repo, segment, name)


def not_as_written(repo: Place, segment: Segment, name: str) -> OutputError:
    """Return the error for a file whose content is another than was written."""
    said = "is not the file that was written, bit for bit; `nddup index check` names all such files"
    return OutputError(f"{repo}: {SEGMENTS}/{segment.name}/{file_of(name)} {said}")


def open_shingles(repo: Place, segment: Segment) -> StoredShingles:
    """Map SHINGLES of a segment; its rows are not compared with what was written, the fingerprints of nodes tell that.

    Raises:
        OutputError: if the file is missing, or has another form or size than was written.
    """
    if not segment.rows.get("shingles"):
        return NO_SHINGLES
    path = require_file(repo, segment, "shingles")
    try:
        return map_shingles(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise not_as_written(repo, segment, "shingles") from error


def require_file(repo: Place, segment: Segment, name: str) -> Path:
    """Return the file of a table that has rows, on this machine; copied first where it lies elsewhere.

    Raises:
        OutputError: if it is missing, cannot be read, or has another size than was written.
    """
    file = f"{segment.name}/{file_of(name)}"
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
    where: Any = None,  # noqa: ANN401
) -> pa.Table:
    """Read the rows of a table in several segments, one segment after another."""
    empty = SEGMENT[name].arrow.empty_table().select(list(columns or SEGMENT[name].names))
    return pa.concat_tables([empty, *(read_table(repo, segment, name, columns, where) for segment in segments)])


def among(column: str, keys: NDArray[np.int64]) -> Any:  # noqa: ANN401 - an expression
    """Return the condition that a key is one of these (ascending); row groups outside their range are not read."""
    if not len(keys):
        return pc.scalar(value=False)
    field = pc.field(column)
    return (field >= int(keys[0])) & (field <= int(keys[-1])) & field.isin(pa.array(keys))
