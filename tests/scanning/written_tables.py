"""Delta and Iceberg tables as their libraries write them, and the deletes that these can read but not write."""

import json
import struct
from base64 import b85encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

RFC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
"""Alphabets of base 85: that of Python, and that of Delta."""


def rows_of(numbers: Sequence[int], **columns: Any) -> pa.Table:  # noqa: ANN401
    """Return rows with an id, a text and a language, and further columns."""
    table = {
        "id": [f"d{number}" for number in numbers],
        "text": [f"the text of number {number}" for number in numbers],
        "lang": ["en" if number % 2 else "de/at b" for number in numbers],
    }
    return pa.table(table | {name: [value] * len(numbers) for name, value in columns.items()})


def write_delta(path: Path) -> None:
    """Write a table of five versions: deletes, an update, another column, partitions by language."""
    from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 - an extra

    write_deltalake(str(path), rows_of(range(12)), partition_by=["lang"])
    DeltaTable(str(path)).delete("id = 'd3'")
    DeltaTable(str(path)).update(updates={"text": "'another text'"}, predicate="id = 'd4'")
    write_deltalake(str(path), rows_of(range(20, 23), extra=7), mode="append", schema_mode="merge")
    DeltaTable(str(path)).delete("id = 'd21'")


def write_deletion_vector(path: Path, deleted: Sequence[int]) -> None:
    """Write a table of twelve rows in one file, then a version whose log marks these rows of it as deleted."""
    from deltalake import write_deltalake  # noqa: PLC0415

    write_deltalake(str(path), rows_of(range(12)), configuration={"delta.enableDeletionVectors": "true"})
    log = path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    add = next(one["add"] for one in actions if "add" in one)
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(deleted) - 1, 16)
    bitmap += b"".join(struct.pack("<H", row) for row in deleted)
    data = struct.pack("<iqi", 1681511377, 1, 0) + bitmap
    padded = data + b"\0" * (-len(data) % 4)
    inline = b85encode(padded).decode().translate(str.maketrans(RFC, Z85))
    vector = {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": len(data), "cardinality": len(deleted)}
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True, "size": add["size"]}
    remove |= {"extendedFileMetadata": True, "partitionValues": {}}
    lines = [{"remove": remove}, {"add": add | {"deletionVector": vector}}]
    (path / "_delta_log" / f"{1:020}.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


class IcebergFolder:
    """A table of Iceberg in a folder, or below an address, without a catalog: each commit writes the next metadata."""

    def __init__(self, path: Path, address: str = "", **properties: str) -> None:
        from pyiceberg.catalog.noop import NoopCatalog  # noqa: PLC0415 - an extra
        from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415
        from pyiceberg.partitioning import PartitionField, PartitionSpec  # noqa: PLC0415
        from pyiceberg.schema import Schema  # noqa: PLC0415
        from pyiceberg.table import CommitTableResponse, Table  # noqa: PLC0415
        from pyiceberg.table.metadata import new_table_metadata  # noqa: PLC0415
        from pyiceberg.table.sorting import UNSORTED_SORT_ORDER  # noqa: PLC0415
        from pyiceberg.table.update import update_table_metadata  # noqa: PLC0415
        from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415
        from pyiceberg.types import NestedField, StringType  # noqa: PLC0415

        self.path, self.io, self.number = path, PyArrowFileIO(properties), 0
        self.address = address or f"file://{path}"
        folder = self

        class Catalog(NoopCatalog):
            def commit_table(self, table: Any, requirements: Any, updates: Any) -> Any:  # noqa: ANN401
                del requirements
                metadata = update_table_metadata(table.metadata, updates)
                return CommitTableResponse(metadata=metadata, metadata_location=folder.write(metadata))

        names = enumerate(("id", "text", "lang"), 1)
        schema = Schema(*(NestedField(number, name, StringType(), required=False) for number, name in names))
        spec = PartitionSpec(PartitionField(source_id=3, field_id=1000, transform=IdentityTransform(), name="lang"))
        metadata = new_table_metadata(schema, spec, UNSORTED_SORT_ORDER, self.address, {"format-version": "2"})
        self.table: Any = Table(("t",), metadata, self.write(metadata), self.io, Catalog("here"))

    def write(self, metadata: Any) -> str:  # noqa: ANN401
        """Write the next metadata, and return its place."""
        from pyiceberg.serializers import ToOutputFile  # noqa: PLC0415

        (self.path / "metadata").mkdir(parents=True, exist_ok=True)
        place = f"{self.address}/metadata/{self.number:05}-a.metadata.json"
        ToOutputFile.table_metadata(metadata, self.io.new_output(place))
        self.number += 1
        return place

    def fill(self) -> int:
        """Append, delete, update and add a column; return the first snapshot."""
        from pyiceberg.types import LongType  # noqa: PLC0415

        self.table.append(rows_of(range(12)))
        first = int(self.table.current_snapshot().snapshot_id)
        self.table.delete("id == 'd3'")
        self.table.overwrite(rows_of([4]).set_column(1, "text", pa.array(["another text"])), "id == 'd4'")
        with self.table.update_schema() as update:
            update.add_column("extra", LongType())
        self.table.append(rows_of(range(20, 23), extra=7))
        return first

    def write_deletes(self, *, by_equality: bool) -> str:
        """Commit a snapshot in which the first row of a data file is deleted, by its place or id; return the id."""
        from pyiceberg import manifest as m  # noqa: PLC0415
        from pyiceberg.serializers import FromInputFile  # noqa: PLC0415

        class Deletes(m.ManifestWriterV2):
            def content(self) -> Any:  # noqa: ANN401
                return m.ManifestContent.DELETES

            @property
            def _meta(self) -> dict[str, str]:
                return {**super()._meta, "content": "deletes"}

        metadata, before = self.table.metadata, self.table.current_snapshot()
        file = min((task.file for task in self.table.scan().plan_files()), key=lambda one: str(one.file_path))
        place = f"{self.path}/data/deletes.parquet"
        first = str(pq.read_table(file.file_path.removeprefix("file://"))["id"][0])
        if by_equality:
            rows = pa.table({"id": [first]})
            fields = [pa.field("id", pa.string(), metadata={"PARQUET:field_id": "1"})]
        else:
            rows = pa.table({"file_path": [file.file_path], "pos": [0]})
            fields = [
                pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"}),
                pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"}),
            ]
        pq.write_table(rows.cast(pa.schema(fields)), place)
        snapshot_id, sequence = before.snapshot_id + 1, metadata.last_sequence_number + 1
        kind = m.DataFileContent.EQUALITY_DELETES if by_equality else m.DataFileContent.POSITION_DELETES
        data = m.DataFile.from_args(
            content=kind, file_path=f"file://{place}", file_format=m.FileFormat.PARQUET, partition=file.partition,
            record_count=1, file_size_in_bytes=Path(place).stat().st_size, equality_ids=[1] if by_equality else None,
        )  # fmt: skip
        data.spec_id = metadata.default_spec_id
        codec: Any
        schema, spec, codec = self.table.schema(), self.table.spec(), "null"
        output = self.io.new_output(f"file://{self.path}/metadata/deletes.avro")
        with Deletes(spec, schema, output, snapshot_id, codec) as writer:
            added = m.ManifestEntryStatus.ADDED
            writer.add_entry(m.ManifestEntry.from_args(status=added, snapshot_id=snapshot_id, data_file=data))
        manifests = [*before.manifests(self.io), writer.to_manifest_file()]
        listed = f"file://{self.path}/metadata/snap-deletes.avro"
        output = self.io.new_output(listed)
        with m.write_manifest_list(2, output, snapshot_id, before.snapshot_id, sequence, codec) as lister:
            lister.add_manifests(manifests)
        newest = max((self.path / "metadata").glob("*.metadata.json"))
        values = json.loads(newest.read_text())
        snapshot = values["snapshots"][-1] | {"snapshot-id": snapshot_id, "parent-snapshot-id": before.snapshot_id}
        values["snapshots"].append(snapshot | {"sequence-number": sequence, "manifest-list": listed})
        values |= {"current-snapshot-id": snapshot_id, "last-sequence-number": sequence}
        values["refs"]["main"]["snapshot-id"] = snapshot_id
        newest = self.path / "metadata" / f"{self.number:05}-a.metadata.json"
        newest.write_text(json.dumps(values))
        self.table.metadata = FromInputFile.table_metadata(self.io.new_input(f"file://{newest}"))
        self.number += 1
        return first
