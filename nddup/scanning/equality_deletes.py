"""Equality deletes of Iceberg, which its Python library does not apply: rows are deleted by the values of some columns.

    plan_rows    a scan of a version -> the files that it reads, and its rows without those that are deleted

A delete file holds rows of some columns. A row of a data file is deleted if it has the same values in these, null being
equal to null, if the delete is of a later commit, and if both are of one partition, or the delete file of none.
Source: https://iceberg.apache.org/spec/#scan-planning
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nddup.errors import ConfigError

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestEntry
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.table import DataScan, FileScanTask

Columns = tuple[str, ...]

Rows = set[tuple[Any, ...]]


def plan_rows(scan: "DataScan") -> tuple[list[str], Callable[[], Iterable[pa.RecordBatch]]]:
    """Return the paths of all files that a scan reads, and what yields its rows.

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
        own = [at for at, one in enumerate(deletes) if _applies(one, task, sequences, metadata.specs())]
        for batch in read(task, schema):
            rows = batch.select(target.names).cast(target)
            for names, gone in map(values_of, own):
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
