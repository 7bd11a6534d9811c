"""Files written again, kept and tagged: every byte of them is known, and they are read back."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nddup.run.local_job import run_locally
from nddup.settings.load import build_config
from tests.rewriting.written_shards import FORMS, lay_out, shards, write_shards

BOTH = {"kept": "as-input", "tagged": "as-input"}


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """A table of a run."""
    found: list[dict[str, Any]] = pq.read_table(folder / table).to_pylist()
    return found


def run(source: Path, output: Path, writes: Mapping[str, str] = BOTH) -> None:
    """A run of the embedded engine."""
    settings = {"shingle": {"length": 2}, "pairs": {"threshold": 0.6}, "output": {"report": False, **writes}}
    run_locally([str(source)], str(output), build_config(settings, origin="test"))


def removed(folder: Path) -> set[str]:
    """The removed documents of a run."""
    return {row["doc_id"] for row in rows(folder, "keep") if not row["kept"]}


def files_of(folder: Path) -> set[str]:
    """All files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", FORMS)
def test_the_kept_are_the_bytes_of_the_input(name: str, tmp_path: Path) -> None:
    """Each shard has what stands around the records, and of these the kept ones, to the byte; nothing else is there."""
    form = FORMS[name]
    source = write_shards(form, tmp_path / "in")
    run(source, tmp_path / "out")

    gone, written = removed(tmp_path / "out"), tmp_path / "out" / "kept"
    assert len(gone) > 5
    assert files_of(written) == files_of(source) == files_of(tmp_path / "out" / "tagged")
    for shard, placed in shards().items():
        due = [form.spell(*one) for one in placed if one[0] not in gone]
        if form.ending.startswith("warc"):  # what is no document stays
            due = [without_page(form.spell(*one), one[0]) if one[0] in gone else form.spell(*one) for one in placed]
        data = form.unpack((written / f"{shard}.{form.ending}").read_bytes())
        assert data == lay_out(form, due)


def without_page(records: bytes, name: str) -> bytes:
    """WARC records without the one of this name."""
    parts = re.split(rb"(?=WARC/1\.0\r\n)", records)
    return b"".join(part for part in parts if f"<{name}>".encode() not in part)


@pytest.mark.parametrize("name", FORMS)
def test_both_are_read_back(name: str, tmp_path: Path) -> None:
    """The kept collection has the kept documents and no duplicates; the tagged one all, with the same sketches."""
    form = FORMS[name]
    run(write_shards(form, tmp_path / "in"), tmp_path / "out")
    columns = ("doc_id", "source", "n_tokens", "content_fingerprint", "sketch")
    for at in ("kept", "tagged"):
        run(tmp_path / "out" / at, tmp_path / at, writes={})

    read = {at: [{key: row[key] for key in columns} for row in rows(tmp_path / at, "documents")]
            for at in ("out", "kept", "tagged")}  # fmt: skip
    gone = removed(tmp_path / "out")
    assert read["tagged"] == read["out"]
    assert read["kept"] == [row for row in read["out"] if row["doc_id"] not in gone]
    assert not removed(tmp_path / "kept")
    reasons = [[row["reason"] for row in rows(tmp_path / at, "rejects")] for at in read]
    assert reasons[0] == reasons[1] == reasons[2]
