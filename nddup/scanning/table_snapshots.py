"""Delta and Iceberg tables as INPUT: one snapshot of each, copied by its own library to plain Parquet of this machine.

    find_table      INPUT path      -> the table that it names, with `@VERSION` or at its newest; None for all else
    find_bucket_table   an address  -> the same for a table in a bucket
    copy_snapshot   a table         -> its rows as they are in that version: files in `tables` of the cache

The log of a table says which rows count: deleted ones are left out, partition columns are columns, and every row has
the columns of the version. What a library cannot read so is refused. A version never changes, so a copy is made once.
Data files outside the folder of the table are not read.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from nddup.errors import ConfigError, NddupError, OutputError, first_line, is_full
from nddup.remote.addresses import RemoteFile, is_remote, spell_bare
from nddup.remote.buckets import client_of, list_bucket
from nddup.remote.fetch import read_remote
from nddup.remote.kept_copies import locked, own_folder, remove_unused
from nddup.scanning.input_files import Placed, percent_spelled, split_version

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestEntry
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.table import DataScan, FileScanTask

Columns = tuple[str, ...]

Rows = set[tuple[Any, ...]]

PART_BYTES = 64 << 20
"""Bytes of rows in memory after which a copy goes on in another file, which another worker may read."""

LIBRARIES = {"Delta": ("delta", "deltalake"), "Iceberg": ("iceberg", "pyiceberg")}
"""The extra of the package, and the library, that reads each kind of table."""

METADATA = ".metadata.json"

_HADOOP = re.compile(r"^s3[an]://")
"""How Hadoop's programs spell an address of S3."""

_pinned: dict[str, str] = {}
"""The addresses of tables in buckets with the version that was found."""

VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}

_BY_LIBRARY = {"deletionVectors", "columnMapping"}
"""Features of Delta that only the engine of its library applies: then the order of rows is that of the copy."""


class TablePath(NamedTuple):
    """A table: `Delta` or `Iceberg`, its folder or address, and the version asked for; None for the newest."""

    kind: str
    folder: str
    version: int | None


class Snapshot(NamedTuple):
    """A copy: the name of the table with its version, and the path and size of each file in order."""

    name: str
    files: list[tuple[str, int]]

    def placed(self, above: str) -> dict[str, Placed]:
        """Return the files by their paths, named as if they were in a folder of that name below `above`."""
        return {
            os.path.realpath(path): Placed(
                percent_spelled(above), percent_spelled(f"{above}/{self.name}/{path.rpartition('/')[2]}"), size, 0,
                version=self.name,
            )
            for path, size in self.files
        }  # fmt: skip


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
    return TablePath(kind, str(Path(folder)), version)


def find_bucket_table(url: str) -> TablePath | None:
    """Return the table that an address in a bucket names, as `find_table`.

    Raises OSError and ConfigError, as `list_bucket`. Cost: two listings, three where the address ends like a version.
    """
    from importlib.util import find_spec  # noqa: PLC0415

    above, mark, version = url.rstrip("/").rpartition("@")
    is_version = bool(mark) and version.isascii() and version.isdigit() and not list_bucket(url)
    folder = above if is_version else url.rstrip("/")
    kind = "Delta" if list_bucket(f"{folder}/_delta_log") else None
    if kind is None and any(name.endswith(METADATA) for name in list_bucket(f"{folder}/metadata")):
        kind = "Iceberg"
    if kind is None or find_spec(LIBRARIES[kind][1]) is None:
        return None
    return TablePath(kind, folder, int(version) if is_version else None)


def pinned(path: str) -> str:
    """Return the path of a table with the version that it has now, if it names none; another path as it is.

    Of a table in a bucket, with the version that was found last.
    """
    if is_remote(path):
        return _pinned.get(path.rstrip("/"), path)
    table = find_table(path)
    if table is None or table.version is not None:
        return path
    with _as_refused(table), _draft(_copies()) as mirror:
        return f"{path.rstrip('/')}@{_open(table, mirror).version}"


def copy_snapshot(table: TablePath) -> Snapshot:
    """Return the copy of a version of a table, made if it is not there.

    Raises:
        ConfigError: if the library refuses the table or the version, or a data file lies elsewhere.
        OutputError: if the copy cannot be written.

    Cost: at the first time, reads the version once, and writes it.
    """
    copies = _copies()
    remove_unused(copies)
    with _as_refused(table), _draft(copies) as mirror:
        opened = _open(table, mirror)
        key = sha256(json.dumps([table.folder, opened.version, sorted(opened.paths)]).encode()).hexdigest()[:32]
        target = copies / key
        if is_remote(table.folder):
            _pinned[table.folder] = f"{table.folder}@{opened.version}"
        with locked(copies / f"{key}.lock"):
            if not target.is_dir():
                with _draft(copies) as draft:
                    _write(opened, draft)
                    draft.rename(target)
            os.utime(target)
    files = [(str(path), path.stat().st_size) for path in sorted(target.iterdir())]
    return Snapshot(f"{table.folder.rpartition('/')[2]}@{opened.version}", files)


def _copies() -> Path:
    return own_folder("tables", "a table needs a folder of your own for its copy")


@contextmanager
def _draft(copies: Path) -> Iterator[Path]:
    """Make a folder that is removed again, unless it was renamed. Raises OutputError, if it cannot be written."""
    draft = copies / f".{token_hex(8)}"
    try:
        draft.mkdir(mode=0o700)
        yield draft
    except OSError as error:
        if isinstance(error, NddupError) or not (is_full(error) or str(draft) in str(error)):
            raise
        raise OutputError(f"{draft}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _kind_of(folder: Path) -> str | None:
    if os.path.isdir(folder / "_delta_log"):  # noqa: PTH112 - false for a folder that may not be searched
        return "Delta"
    with suppress(OSError):
        return "Iceberg" if next((folder / "metadata").glob(f"*{METADATA}"), None) else None
    return None


def _open(table: TablePath, mirror: Path) -> _Opened:
    """Open a version; what must be on this machine of a table in a bucket is fetched into the empty folder `mirror`."""
    if table.kind == "Iceberg":
        return _open_iceberg(table)
    return _open_bucket_delta(table, mirror) if is_remote(table.folder) else _open_delta(table)


def _open_delta(table: TablePath) -> _Opened:
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra

    delta = DeltaTable(table.folder, version=table.version)
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


def _open_bucket_delta(table: TablePath, mirror: Path) -> _Opened:
    """Open a version by its log, which is fetched at once; its data files are when the rows are read."""
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra

    listed = list_bucket(table.folder)
    _fetch(listed, [name for name in listed if name.startswith("_delta_log/")], mirror)
    delta = DeltaTable(str(mirror), version=table.version)
    uris = delta.file_uris()
    _require_inside(str(mirror), uris)
    below = [path.removeprefix("file://").removeprefix(f"{mirror}/") for path in uris]
    names = [name if name in listed else unquote(name) for name in below]
    vectors = [name for name in listed if name.endswith(".bin")]

    @cache
    def whole() -> _Opened:
        _fetch(listed, [*names, *vectors], mirror)
        return _open_delta(TablePath(table.kind, str(mirror), delta.version()))

    return _Opened(delta.version(), names, lambda: whole().schema(), lambda: whole().rows())


def _fetch(listed: Mapping[str, RemoteFile], names: Iterable[str], folder: Path) -> None:
    """Write files of a bucket below a folder under their names; each is as it was listed, or there is an error."""
    for name in names:
        if name not in listed:
            raise ConfigError(f"its file {name} is not there")
        target = folder / name
        if not target.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(f"its file {name} is not in its folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.writelines(read_remote(listed[name]))


def _open_iceberg(table: TablePath) -> _Opened:
    from pyiceberg.catalog.noop import NoopCatalog  # noqa: PLC0415 - an extra
    from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415
    from pyiceberg.serializers import FromInputFile  # noqa: PLC0415
    from pyiceberg.table import StaticTable  # noqa: PLC0415

    io, where = _iceberg_files(table.folder), f"{table.folder}/metadata/{_newest_metadata(table.folder)}"
    metadata = FromInputFile.table_metadata(io.new_input(where))
    # By its own class, what opens its files would be chosen by the metadata: any function that can be imported.
    iceberg = StaticTable(("table",), metadata, where, io, NoopCatalog("none"))
    current = iceberg.current_snapshot()
    version = table.version if table.version is not None else current.snapshot_id if current else 0
    if table.version is not None and table.version and iceberg.snapshot_by_id(version) is None:
        raise ConfigError(f"has no snapshot {version}")
    snapshot = iceberg.snapshot_by_id(version)
    if snapshot is not None:  # no file is opened before its place is known
        _require_inside(table.folder, [snapshot.manifest_list])
        _require_inside(table.folder, [one.manifest_path for one in snapshot.manifests(iceberg.io)])
    scan = iceberg.scan(snapshot_id=version if current else None)
    paths, rows = plan_rows(scan)
    _require_inside(table.folder, paths)
    return _Opened(version, paths, lambda: schema_to_pyarrow(scan.projection()), rows)


def _iceberg_files(folder: str) -> "FileIO":
    """Return what opens the files of an Iceberg table: those of this machine, or the client of its bucket."""
    if not is_remote(folder):
        from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415 - an extra

        return PyArrowFileIO({})
    from pyiceberg.io.fsspec import FsspecFileIO  # noqa: PLC0415

    class BucketFiles(FsspecFileIO):
        def get_fs(self, scheme: str, hostname: str | None = None) -> object:
            del scheme, hostname
            return client_of(folder)[0]

    return BucketFiles({})


def _newest_metadata(folder: str) -> str:
    """Return the metadata of the newest version: that of `version-hint.text`, else the one with the highest number."""
    where = f"{folder}/metadata"
    listed = list_bucket(where) if is_remote(folder) else {}
    names = sorted(listed) if listed else sorted(os.listdir(where))  # noqa: PTH208
    files = [name for name in names if name.endswith(METADATA)]
    with suppress(OSError, ValueError, KeyError):
        hint = "version-hint.text"
        text = b"".join(read_remote(listed[hint])) if listed else Path(where, hint).read_bytes()
        return next(name for name in files if name.startswith(f"v{int(text)}."))
    numbered: dict[int, list[str]] = {}
    for name in files:
        digits = name.removeprefix("v").replace(".", "-").partition("-")[0]
        numbered.setdefault(int(digits) if digits.isascii() and digits.isdigit() else -1, []).append(name)
    newest = numbered[max(numbered)]
    if len(newest) > 1 or max(numbered) < 0:
        raise ConfigError(f"which metadata is the newest is not said by its names, such as {newest[0]}")
    return newest[0]


def _require_inside(folder: str, paths: Iterable[str]) -> None:
    """Refuse data files outside the folder of a table: its log may be anyone's."""
    if is_remote(folder):
        for path in paths:
            place = _HADOOP.sub("s3://", path)
            if not place.startswith(f"{folder}/") or {"..", "."} & set(place.split("/")):
                raise ConfigError(f"its data file {path} is not in its folder")
        return
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
    name = f"INPUT {spell_bare(table.folder)}" + (f"@{table.version}" if table.version is not None else "")
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


def plan_rows(scan: "DataScan") -> tuple[list[str], Callable[[], Iterable[pa.RecordBatch]]]:
    """Return the paths of all files that a scan reads, and what yields its rows, without those deleted by their values.

    Equality deletes, which the library does not apply, are files with rows of some columns. A row of a data file is
    deleted if it has the same values in these, null being equal to null, if the delete is of a later commit, and if
    both are of one partition, or the delete file of none.

    Source: https://iceberg.apache.org/spec/#scan-planning

    Raises:
        ConfigError: when rows are read, if a delete is by a column that the version no longer has.

    Cost: reads the manifests; then memory for the values of all delete files.
    """
    from pyiceberg.manifest import DataFileContent  # noqa: PLC0415 - an extra
    from pyiceberg.table import ManifestGroupPlanner  # noqa: PLC0415

    snapshot = scan.snapshot()
    if snapshot is None:
        return [], scan.to_arrow_batch_reader
    planner, manifests = ManifestGroupPlanner(scan.table_metadata, scan.io), snapshot.manifests(scan.io)
    entries = list(chain.from_iterable(planner.plan_manifest_entries(manifests)))
    deletes = [one for one in entries if one.data_file.content == DataFileContent.EQUALITY_DELETES]
    plain = DataFileContent.EQUALITY_DELETES
    tasks = list(planner.plan_files(manifests, lambda one: one.data_file.content != plain))
    files = chain.from_iterable((task.file, *task.delete_files) for task in tasks)
    paths = [file.file_path for file in (*files, *(one.data_file for one in deletes))]
    if not deletes:
        return paths, scan.to_arrow_batch_reader
    sequences = {one.data_file.file_path: one.sequence_number or 0 for one in entries}
    return paths, lambda: _rows_left(scan, tasks, deletes, sequences)


def _rows_left(
    scan: "DataScan", tasks: "list[FileScanTask]", deletes: "list[ManifestEntry]", sequences: dict[str, int]
) -> Iterator[pa.RecordBatch]:
    from pyiceberg.expressions import AlwaysTrue  # noqa: PLC0415
    from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow  # noqa: PLC0415
    from pyiceberg.schema import Schema  # noqa: PLC0415
    from pyiceberg.table import FileScanTask  # noqa: PLC0415

    metadata, schema = scan.table_metadata, scan.projection()
    target = schema_to_pyarrow(schema)

    def read(task: "FileScanTask", columns: Schema) -> Iterator[pa.RecordBatch]:
        yield from ArrowScan(metadata, scan.io, columns, AlwaysTrue()).to_record_batches([task])

    @cache
    def values_of(at: int) -> tuple[Columns, Rows]:
        file = deletes[at].data_file
        fields = [field for field in schema.fields if field.field_id in (file.equality_ids or ())]
        if not fields or len(fields) < len(file.equality_ids or ()):
            raise ConfigError(f"its equality deletes in {file.file_path} are by a column that this version has not")
        batches = read(FileScanTask(file), Schema(*fields))
        names = tuple(field.name for field in fields)
        return names, {row for batch in batches for row in zip(*_lists(batch, names), strict=True)}

    for task in tasks:
        applied = [at for at, one in enumerate(deletes) if _applies(one, task, sequences, metadata.specs())]
        for batch in read(task, schema):
            rows = batch.select(target.names).cast(target)
            for names, gone in map(values_of, applied):
                stays = [row not in gone for row in zip(*_lists(rows, names), strict=True)]
                rows = rows.filter(pa.array(stays, pa.bool_()))
            yield rows


def _lists(batch: pa.RecordBatch, names: Columns) -> list[list[Any]]:
    return [batch.column(name).to_pylist() for name in names]


def _applies(
    delete: "ManifestEntry", task: "FileScanTask", sequences: dict[str, int], specs: "dict[int, PartitionSpec]"
) -> bool:
    file, data = delete.data_file, task.file
    if (delete.sequence_number or 0) <= sequences[data.file_path]:
        return False
    of_none = specs[file.spec_id].is_unpartitioned()
    return of_none or (file.spec_id == data.spec_id and file.partition == data.partition)
