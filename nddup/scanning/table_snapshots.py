"""Delta and Iceberg tables as INPUT: one snapshot of each, copied by its own library to plain Parquet of this machine.

    find_table      INPUT path    -> the table that it names, with `@VERSION` or at its newest; None for all else
    copy_snapshot   a table       -> its rows as they are in that version: files in `tables` of the cache

The log of a table says which rows count: deleted ones are left out, partition columns are columns, and every row has
the columns of the version. What a library cannot read so, such as equality deletes, is refused. A version never
changes, so a copy is made once. Data files outside the folder of the table are not read.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from nddup.errors import ConfigError, NddupError, OutputError, first_line, is_full
from nddup.ground.own_files import make_own
from nddup.ground.start_up import CACHE_FOLDER, cache_folder
from nddup.scanning.input_files import split_version

PART_BYTES = 64 << 20
"""Bytes of rows in memory after which a copy goes on in another file, which another worker may read."""

UNUSED_SECONDS = 30 * 86_400
"""Seconds without use after which a copy is removed."""

LIBRARIES = {"Delta": ("delta", "deltalake"), "Iceberg": ("iceberg", "pyiceberg")}
"""The extra of the package, and the library, that reads each kind of table."""

VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}

_BY_LIBRARY = {"deletionVectors", "columnMapping"}
"""Features of Delta that only the engine of its library applies: then the order of rows is that of the copy."""


class TablePath(NamedTuple):
    """A table of this machine: `Delta` or `Iceberg`, its folder, and the version asked for; None for the newest."""

    kind: str
    folder: Path
    version: int | None


class Snapshot(NamedTuple):
    """A copy: the name of the table with its version, and the path and size of each file in order."""

    name: str
    files: list[tuple[str, int]]


class _Opened(NamedTuple):
    """A version of a table: its number, the paths of its files, its columns, and what reads its rows."""

    version: int
    paths: list[str]
    schema: Callable[[], pa.Schema]
    rows: Callable[[], Iterable[pa.RecordBatch]]


def find_table(path: str) -> TablePath | None:
    """Return the table that a path of this machine names; None if it is no table, or its library is not installed."""
    from importlib.util import find_spec  # noqa: PLC0415

    folder, version = split_version(path)
    kind = _kind_of(Path(folder))
    if kind is None or find_spec(LIBRARIES[kind][1]) is None:
        return None
    return TablePath(kind, Path(folder), version)


def pinned(path: str) -> str:
    """Return the path of a table with the version that it has now, if it names none; another path as it is."""
    table = find_table(path)
    if table is None or table.version is not None:
        return path
    with _as_refused(table):
        return f"{path.rstrip('/')}@{_open(table).version}"


def copy_snapshot(table: TablePath) -> Snapshot:
    """Return the copy of a version of a table, made if it is not there.

    Raises:
        ConfigError: if the library refuses the table or the version, or a data file lies elsewhere.
        OutputError: if the copy cannot be written.

    Cost: at the first time, reads the version once, and writes it.
    """
    base = cache_folder()
    if base is None:
        raise ConfigError(f"INPUT {table.folder}: needs a folder of your own for its copy; set {CACHE_FOLDER} to one")
    with _as_refused(table):
        opened = _open(table)
    key = sha256(json.dumps([str(table.folder), opened.version, sorted(opened.paths)]).encode()).hexdigest()[:32]
    copies = base / "tables"
    make_own(str(copies))
    _remove_unused(copies)
    target = copies / key
    with (copies / f"{key}.lock").open("ab") as lock:
        flock(lock, LOCK_EX)
        if not target.is_dir():
            draft = copies / f".{key}-{token_hex(4)}"
            try:
                draft.mkdir(mode=0o700)
                with _as_refused(table):
                    _write(opened, draft)
                draft.rename(target)
            except OSError as error:
                raise OutputError(f"{draft}: cannot be written ({error.strerror or error})") from error
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        os.utime(target)
    files = [(str(path), path.stat().st_size) for path in sorted(target.iterdir())]
    return Snapshot(f"{table.folder.name}@{opened.version}", files)


def _kind_of(folder: Path) -> str | None:
    if os.path.isdir(folder / "_delta_log"):  # noqa: PTH112 - false for a folder that may not be searched
        return "Delta"
    return "Iceberg" if _metadata_files(folder) else None


def _metadata_files(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted((folder / "metadata").glob("*.metadata.json"))
    return []


def _open(table: TablePath) -> _Opened:
    return _open_delta(table) if table.kind == "Delta" else _open_iceberg(table)


def _open_delta(table: TablePath) -> _Opened:
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra

    delta = DeltaTable(str(table.folder), version=table.version)
    _require_inside(table.folder, delta.file_uris())
    protocol = delta.protocol()
    features = set(protocol.reader_features or ())
    if features & _BY_LIBRARY or protocol.min_reader_version == 2:  # noqa: PLR2004 - that of columnMapping alone
        reader = pa.RecordBatchReader.from_stream(delta.scan())
        return _Opened(delta.version(), delta.file_uris(), lambda: reader.schema, lambda: reader)

    def rows() -> Iterator[pa.RecordBatch]:
        dataset = delta.to_pyarrow_dataset()
        for fragment in sorted(dataset.get_fragments(), key=lambda one: one.path):
            yield from fragment.to_batches(schema=dataset.schema)

    return _Opened(delta.version(), delta.file_uris(), lambda: delta.to_pyarrow_dataset().schema, rows)


def _open_iceberg(table: TablePath) -> _Opened:
    from pyiceberg.table import StaticTable  # noqa: PLC0415 - an extra

    iceberg = StaticTable.from_metadata(str(_newest_metadata(table.folder)))
    current = iceberg.current_snapshot()
    version = table.version if table.version is not None else current.snapshot_id if current else 0
    if table.version is not None and iceberg.snapshot_by_id(version) is None:
        raise ConfigError(f"has no snapshot {version}")
    snapshot = iceberg.snapshot_by_id(version)
    if snapshot is not None:  # no file is opened before its place is known
        _require_inside(table.folder, [snapshot.manifest_list])
        _require_inside(table.folder, [one.manifest_path for one in snapshot.manifests(iceberg.io)])
    scan = iceberg.scan(snapshot_id=version if current else None)
    tasks = list(scan.plan_files())
    paths = [file.file_path for task in tasks for file in (task.file, *task.delete_files)]
    _require_inside(table.folder, paths)
    reader: Any = scan.to_arrow_batch_reader
    return _Opened(version, paths, lambda: reader().schema, reader)


def _newest_metadata(folder: Path) -> Path:
    """Return the metadata of the newest version: that of `version-hint.text`, else the one with the highest number."""
    files = _metadata_files(folder)
    with suppress(OSError, ValueError):
        hint = int((folder / "metadata" / "version-hint.text").read_text(encoding="utf-8"))
        return next(path for path in files if path.name.startswith(f"v{hint}."))
    numbered: dict[int, list[Path]] = {}
    for path in files:
        digits = path.name.removeprefix("v").replace(".", "-").partition("-")[0]
        numbered.setdefault(int(digits) if digits.isascii() and digits.isdigit() else -1, []).append(path)
    newest = numbered[max(numbered)]
    if len(newest) > 1 or max(numbered) < 0:
        raise ConfigError(f"which metadata is the newest is not said by its names, such as {newest[0].name}")
    return newest[0]


def _require_inside(folder: Path, paths: Iterable[str]) -> None:
    """Refuse data files outside the folder of a table: its log may be anyone's."""
    real = os.path.realpath(folder)
    for path in paths:
        place = unquote(path.removeprefix("file:")) if path.startswith("file:") else path
        place = f"/{place.lstrip('/')}" if path.startswith("file:") else place
        candidates = {place, unquote(place)}
        if "://" in place or not all(os.path.realpath(one).startswith(f"{real}{os.sep}") for one in candidates):
            raise ConfigError(f"its data file {path} is not in its folder on this machine")


def _write(opened: _Opened, folder: Path) -> None:
    """Write the rows of a version, in order, as files of some size."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - loads slowly, and few runs read a table

    columns = opened.schema()
    schema = pa.schema([pa.field(one.name, VIEWS.get(one.type, one.type), one.nullable) for one in columns])
    number, size, writer = 0, 0, None
    try:
        for batch in opened.rows():
            if writer is None:
                writer = pq.ParquetWriter(folder / f"part-{number:05}.parquet", schema, compression="zstd")
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
            size += batch.nbytes
            if size >= PART_BYTES:
                writer.close()
                number, size, writer = number + 1, 0, None
        if writer is None and not number:
            writer = pq.ParquetWriter(folder / "part-00000.parquet", schema)
    finally:
        if writer is not None:
            writer.close()


@contextmanager
def _as_refused(table: TablePath) -> Iterator[None]:
    """Turn an error of a library into one line that names the table."""
    name = f"INPUT {table.folder}" + (f"@{table.version}" if table.version is not None else "")
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    except NddupError:
        raise
    except Exception as error:
        if is_full(error):
            raise
        raise ConfigError(f"{name}: {LIBRARIES[table.kind][1]} does not read it ({first_line(error)})") from error


def _remove_unused(folder: Path) -> None:
    before = time.time() - UNUSED_SECONDS
    for path in folder.iterdir():
        with suppress(OSError):
            if path.stat().st_mtime < before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
