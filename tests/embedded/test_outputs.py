"""Kept documents whose file cannot be written."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from nddup.embedded.outputs import write_kept
from nddup.errors import OutputError
from nddup.stages.written_records import KeptFiles

KEPT = {
    "doc_key": [0],
    "doc_id": ["a"],
    "url": [None],
    "source": ["a.jsonl"],
    "record": [1],
    "content": ["word " * 10_000],
    "line": [None],
}
TYPES = [("doc_key", pa.int64()), ("doc_id", pa.string()), ("url", pa.string()), ("source", pa.string()),
         ("record", pa.int64()), ("content", pa.string()), ("line", pa.string())]  # fmt: skip


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Let no file of this process grow past 1 kB."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("form", ["jsonl", "xml"])
def test_a_write_that_fails_names_the_output(tmp_path: Path, form: str) -> None:
    """It is no error of the input, nor one that nobody understands."""
    kept = pa.table(KEPT, schema=pa.schema(TYPES))

    with pytest.raises(OutputError, match=rf"kept/part-00000.{form}: cannot be written \(File too large\)"):
        write_kept([kept], tmp_path / "kept", KeptFiles(1, 1, form))
