"""Pieces that a Spark task makes of verdicts and files: the embedded engine's bytes, split at a byte. Without a JVM."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nddup.embedded.rewrite import in_order
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckEngine
from nddup.rewriting.rewrite_file import end_of
from nddup.scanning.collection import ListedFile, find_files
from nddup.settings.load import build_config
from nddup.settings.plan import record_limits
from nddup.settings.schema import InputConfig
from nddup.spark.scan import Ending, Rewriting, _rewrite_files
from nddup.stages.written_records import judge_records
from nddup.storage.local_folder import LocalFolder
from nddup.storage.local_storage import LocalStorage
from nddup.tables import FILES, VERDICTS
from tests.rewriting.written_shards import FORMS, write_parquet, write_shards
from tests.samples_by_night import every


@pytest.mark.parametrize("name", every(3, ["parquet", *FORMS]))
def test_the_pieces_are_the_file(name: str, tmp_path: Path) -> None:
    """The pieces, each ended by the file's end byte as Spark's text source does, are the embedded engine's file."""
    source = tmp_path / "in"
    if name == "parquet":
        write_parquet(source)
    else:
        write_shards(FORMS[name], source)
    settings = {"shingle": {"length": 2}, "pairs": {"threshold": 0.6}}
    config = build_config(
        {**settings, "output": {"kept": "as-input", "tagged": "as-input", "report": False}}, origin="t"
    )
    run_locally([str(source)], str(tmp_path / "out"), config)

    folder = LocalFolder(str(tmp_path / "out"))
    tables = {table: folder.read(table) for table in ("documents", "rejects", "keep", "members")}
    verdicts = in_order(judge_records(DuckEngine.over("test", **tables), config))
    [group] = find_files(LocalStorage(), [str(source)], InputConfig()).groups
    numbers = {entry.file.source: at for at, entry in enumerate(group.files)}
    end = end_of(group.head, group.files[0].compression)
    for at in ("kept", "tagged"):
        how = Rewriting(at == "tagged", may_go_on=False, limits=record_limits(config))
        given: dict[str, Any] = {"head": group.head, "rewriting": how, "end": Ending(end), "numbers": numbers}
        rows = list(_rewrite_files(task(group.files, verdicts), **given))
        found: dict[int, bytes] = {}
        for row in pa.Table.from_batches(rows).to_pylist():
            found[row["file"]] = found.get(row["file"], b"") + row["value"] + end
        due = {number: (tmp_path / "out" / at / path).read_bytes() for path, number in numbers.items()}
        assert found == due


def task(files: Iterable[ListedFile], verdicts: pa.Table) -> Iterator[pa.RecordBatch]:
    """Return the rows of a task: for each source its verdicts, in two batches, then its file."""
    schema = pa.schema(
        [*FILES.arrow, ("what", pa.int32()), *(field for field in VERDICTS.arrow if field.name != "source")]
    )
    for entry in files:
        mine = [row for row in verdicts.to_pylist() if row["source"] == entry.file.source]
        given = [row | {"what": 0} for row in mine]
        file = {"path": f"file:{entry.file.path}", "source": entry.file.source, "compression": entry.compression,
                "most": 1 << 30, "size": entry.file.size, "what": 1}  # fmt: skip
        for some in (given[:3], [*given[3:], file]):
            yield pa.RecordBatch.from_pylist(some, schema)
