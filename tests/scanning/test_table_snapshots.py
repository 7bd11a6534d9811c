"""Delta and Iceberg tables as INPUT: the rows of a version as their own libraries give them, or one line of refusal."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from nddup.cli import main
from nddup.errors import ConfigError
from nddup.remote.buckets import client_of
from nddup.storage.local_storage import LocalStorage
from tests.scanning.written_tables import IcebergFolder, rows_of, write_deletion_vector, write_delta

BRIEF = ("--set", "output.report=false", "--set", "input.min_tokens=1", "--set", "output.texts=0")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NDDUP_CACHE_DIR", str(tmp_path / "cache"))


def rows_read(path: str) -> pa.Table:
    """Return what nddup reads of a table, in the order of ids."""
    files = LocalStorage().list_inputs([path]).files
    return pa.concat_tables([pq.read_table(file.path) for file in files]).sort_by("id")


def same(table: pa.Table, other: pa.Table) -> bool:
    """Return whether two tables have equal names and values; a string may be of any kind."""
    ordered = other.sort_by("id").select(table.column_names)
    return set(table.column_names) == set(other.column_names) and table.to_pylist() == ordered.to_pylist()


def test_a_delta_table_is_read_as_by_its_library(tmp_path: Path) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra

    path = tmp_path / "pages"
    write_delta(path)
    for version in (None, 0, 1, 2, 3, 4):
        asked = str(path) if version is None else f"{path}@{version}"
        assert same(rows_read(asked), DeltaTable(str(path), version=version).to_pyarrow_table())
    newest = {row["id"]: row for row in rows_read(str(path)).to_pylist()}
    assert not {"d3", "d21"} & newest.keys()
    assert newest["d4"] == {"id": "d4", "text": "another text", "lang": "de/at b", "extra": None}

    output = tmp_path / "out"
    assert main(["run", str(path), "--output", str(output), *BRIEF]) == 0
    documents = pq.read_table(output / "documents")
    assert set(documents["doc_id"].to_pylist()) == newest.keys()
    assert json.loads((output / "metrics.json").read_text())["stages"]["sketch"]["snapshots"] == ["pages@4"]
    assert set(documents["source"].to_pylist()) == {"pages@4/part-00000.parquet"}
    DeltaTable(str(path)).delete("id = 'd5'")  # the run is of a version that does not change
    assert main(["check", str(output)]) == 0
    assert len(rows_read(f"{path}@5")) == len(newest) - 1


def test_rows_that_a_deletion_vector_marks_stay_deleted(tmp_path: Path) -> None:
    write_deletion_vector(tmp_path / "pages", [1, 5, 11])
    assert len(rows_read(f"{tmp_path}/pages@0")) == 12
    assert same(rows_read(f"{tmp_path}/pages"), rows_of([n for n in range(12) if n not in (1, 5, 11)]))


def test_an_iceberg_table_is_read_as_by_its_library(tmp_path: Path) -> None:
    pages = IcebergFolder(tmp_path / "pages")
    first = pages.fill()
    assert same(rows_read(str(pages.path)), pages.table.scan().to_arrow())
    assert same(rows_read(f"{pages.path}@{first}"), rows_of(range(12)))
    newest = {row["id"]: row for row in rows_read(str(pages.path)).to_pylist()}
    assert "d3" not in newest
    assert newest["d4"]["text"] == "another text"
    assert (newest["d5"]["extra"], newest["d22"]["extra"], newest["d22"]["lang"]) == (None, 7, "de/at b")
    gone = pages.write_deletes(by_equality=False)
    assert set(rows_read(str(pages.path))["id"].to_pylist()) == newest.keys() - {gone}


def test_rows_that_have_the_values_of_an_equality_delete_stay_deleted(tmp_path: Path) -> None:
    """Only those of earlier commits, and of its partition: what is written again is there."""
    pages = IcebergFolder(tmp_path / "pages")
    pages.fill()
    before = rows_read(str(pages.path))
    gone = pages.write_deletes(by_equality=True)
    language = next(row["lang"] for row in before.to_pylist() if row["id"] == gone)
    left = [row for row in before.to_pylist() if row["id"] != gone]
    assert rows_read(str(pages.path)).to_pylist() == left
    again = rows_of([int(gone[1:])])
    assert again["lang"][0].as_py() == language
    pages.table.append(again)
    assert rows_read(str(pages.path))["id"].equals(before["id"])


def refused(path: str) -> str:
    with pytest.raises(ConfigError) as told:
        rows_read(path)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_what_a_library_cannot_read_is_refused(tmp_path: Path) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415

    pages = IcebergFolder(tmp_path / "pages")
    pages.fill()
    assert "has no snapshot 7" in refused(f"{pages.path}@7")

    delta = tmp_path / "delta"
    write_delta(delta)
    assert "deltalake does not read it" in refused(f"{delta}@99")
    assert "and its own path as INPUT" in refused(str(tmp_path))
    assert "a Delta table" in refused(str(next(delta.glob("lang=*"))))
    data = Path(DeltaTable(str(delta), version=0).file_uris()[0])
    moved = tmp_path / "elsewhere.parquet"
    shutil.move(data, moved)
    data.symlink_to(moved)
    assert "is not in its folder" in refused(f"{delta}@0")


@pytest.mark.parametrize("lie", ["a list that is named", "a list that is a link", "a manifest that is a link"])
def test_manifests_elsewhere_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    """Iceberg's lists of data files lie in the folder of the table, by their names and by links."""
    pages = IcebergFolder(tmp_path / "pages")
    pages.fill()
    snapshot = pages.table.current_snapshot()
    place = snapshot.manifest_list if "list" in lie else snapshot.manifests(pages.io)[0].manifest_path
    listed = Path(place.removeprefix("file://"))
    moved = Path(shutil.move(listed, tmp_path / "elsewhere.avro"))
    if lie == "a list that is named":
        for file in (pages.path / "metadata").glob("*.metadata.json"):
            file.write_text(file.read_text().replace(str(listed), str(moved)))
    else:
        listed.symlink_to(moved)
    opened, read = list[str](), PyArrowFileIO.new_input

    def note(self: PyArrowFileIO, location: str) -> object:
        opened.append(str(Path(location.removeprefix("file://")).resolve()))
        return read(self, location)

    monkeypatch.setattr(PyArrowFileIO, "new_input", note)
    assert "is not in its folder" in refused(str(pages.path))
    assert opened
    assert str(moved) not in opened


def test_what_opens_the_files_of_a_table_is_not_chosen_by_its_metadata(tmp_path: Path) -> None:
    """Iceberg's metadata may name a class for that, which would be any function: here a program would be started."""
    pages = IcebergFolder(tmp_path / "pages")
    pages.fill()
    before = rows_read(str(pages.path))
    shutil.rmtree(tmp_path / "cache")
    for file in (pages.path / "metadata").glob("*.metadata.json"):
        metadata = json.loads(file.read_text())
        properties = {"touch": "", str(tmp_path / "started"): "", "py-io-impl": "subprocess.Popen"}
        file.write_text(json.dumps(metadata | {"properties": properties | metadata["properties"]}))
    assert rows_read(str(pages.path)).equals(before)
    assert not (tmp_path / "started").exists()


def test_tables_in_a_bucket_are_read_as_those_of_this_machine(
    s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each version has the rows that its own library reads, and a run is of the version that it found."""
    for name, value in {"ENDPOINT_URL": s3_server, "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    box = f"s3://box/{tmp_path.name}"
    files = client_of(box)[0]
    write_delta(tmp_path / "delta")
    write_deletion_vector(tmp_path / "vector", [1, 5, 11])
    keys = {"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.region": "us-east-1"}
    pages = IcebergFolder(tmp_path / "ice", f"{box}/ice", **keys, **{"s3.endpoint": s3_server})
    first = pages.fill()
    for name in ("delta", "vector"):
        files.put(str(tmp_path / name), f"{box}/{name}", recursive=True)
    for version in ("", "@0", "@1", "@2", "@3", "@4"):
        assert rows_read(f"{box}/delta{version}").equals(rows_read(f"{tmp_path}/delta{version}"))
    assert rows_read(f"{box}/vector").equals(rows_read(f"{tmp_path}/vector"))
    assert same(rows_read(f"{box}/ice"), pages.table.scan().to_arrow())
    assert same(rows_read(f"{box}/ice@{first}"), rows_of(range(12)))
    assert "has no snapshot 7" in refused(f"{box}/ice@7")

    output = tmp_path / "out"
    assert main(["run", f"{box}/delta", "--output", str(output), *BRIEF]) == 0
    assert json.loads((output / "_RUN.json").read_text())["inputs"]["paths"] == [f"{box}/delta@4"]
    assert json.loads((output / "metrics.json").read_text())["stages"]["sketch"]["snapshots"] == ["delta@4"]
    assert main(["check", str(output)]) == 0
    files.rm(f"{box}/delta/_delta_log/{4:020}.json")
    assert len(rows_read(f"{box}/delta")) == len(rows_read(f"{tmp_path}/delta@3"))
