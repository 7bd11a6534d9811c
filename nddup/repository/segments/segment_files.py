"""The tables of a segment as Parquet: written once, flushed to the disk, read whole or by a few keys."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nddup.errors import OutputError
from nddup.repository.places.disk_place import digest_file
from nddup.repository.places.place import SEGMENTS, Place
from nddup.repository.segments.commits import Segment
from nddup.repository.segments.layout import SEGMENT
from nddup.repository.segments.stored_shingles import (
    NO_SHINGLES,
    Shingled,
    StoredShingles,
    map_shingles,
    write_shingles,
)

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
