"""The output of `nddup inspect` for files of each format."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.results.preview import preview
from nddup.settings.load import build_config
from nddup.storage.local_storage import LocalStorage

ROW = {"url": "u1", "title": "one", "text": "two three"}


def show(*inputs: Path) -> list[str]:
    """Return the lines of the preview."""
    return preview(LocalStorage(), [str(path) for path in inputs], build_config({}, origin="test")).splitlines()


def write(folder: Path, name: str) -> Path:
    """Write one record, in the format given by the file's ending."""
    path = folder / name
    match path.suffix:
        case ".parquet":
            pq.write_table(pa.Table.from_pylist([ROW]), path)
        case ".csv":
            path.write_text(f"{','.join(ROW)}\n{','.join(ROW.values())}\n", encoding="utf-8")
        case _:
            path.write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "fields", "reading"),
    [
        ("a.parquet", "url=url  content=title+text", "read from its start to its end"),
        ("a.csv", "url=url  content=title+text", "read from its start to its end"),
        ("a.jsonl", "url=url  content=title+text", "can be read in parts, at the same time"),
    ],
)
def test_one_file(name: str, fields: str, reading: str, tmp_path: Path) -> None:
    """The preview names the fields that are read and a possible id field; counts of one are in the singular."""
    path = write(tmp_path, name)

    lines = show(path)

    size = path.stat().st_size
    stored = f"{size} bytes" if size < 1000 else f"{size / 1000:.0f} kB"
    assert lines[0] == f"1 file, {stored}: 1 {name.partition('.')[2]}"
    assert f"  fields     {fields}" in lines
    assert f"  stored     {stored}; {reading}" in lines
    assert "  looked at  1 record, all there are: 1 document" in lines
    assert f"{name}: no id found, using file#record; perhaps input.id=url, if no two records share it" in lines


def test_files_that_are_read_alike_are_one_paragraph(tmp_path: Path) -> None:
    """Forty shards take one screen; one with other fields, and one with a reject, stand alone."""
    for number in range(40):
        write(tmp_path, f"part-{number:02}.jsonl")
    (tmp_path / "part-07.jsonl").write_text('{"id": 1, "content": "x"}\n', encoding="utf-8")
    (tmp_path / "part-09.jsonl").write_text(json.dumps(ROW) + "\n{\n", encoding="utf-8")

    lines = show(tmp_path)

    assert len(lines) < 40
    assert "  like it    17 files, 17 records looked at: part-01.jsonl to part-19.jsonl" in lines
    assert [line for line in lines if line.endswith(("part-07.jsonl", "part-09.jsonl"))]
    assert sum(line.startswith("  format") for line in lines) == 3
    assert "… and 20 more files: jsonl" in lines


def test_files_without_fields(tmp_path: Path) -> None:
    """A page is read whole and its path is its id, so the preview suggests no id field."""
    (tmp_path / "a.html").write_text("<html><body>one two</body></html>", encoding="utf-8")
    (tmp_path / "NOTICE").write_text("a notice", encoding="utf-8")

    lines = show(tmp_path)

    assert "  fields     the whole file" in lines
    assert not any("no id" in line for line in lines)
    why = "named as a readme, licence, notice or changelog; such a file is read if it is itself an INPUT"
    assert lines[-2:] == [str(tmp_path / "NOTICE"), f"  skipped    {why}"]
