"""A flipped bit in any file of a run or a repository is found, or changes nothing: no answer is wrong and silent."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import nddup
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.errors import NddupError, OutputError
from nddup.repository.bucket_place import find_place
from nddup.repository.close_components import tables_totals
from nddup.settings.load import build_config
from nddup.stages.inputs_found import config_of
from nddup.storage.local_folder import LocalFolder
from nddup.tables import RESULTS
from tests.finished_runs import write_texts
from tests.results.kind_runs import texts
from tests.samples_by_night import first
from tests.security.bit_flips import files_of, try_flips

EVERY = 3
"""Of so many files one is tried in each case; the nightly cases try the others."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `a.jsonl`, the run `run` over it, and the repository `repo` of two segments."""
    place = tmp_path_factory.mktemp("bits")
    write_texts(place / "a.jsonl", texts())
    settings: dict[str, Any] = {"sketch": {"size": 30}, "shingle": {"length": 2}, "pairs": {"threshold": 0.6}}
    config = build_config({**settings, "output": {"report": False}}, origin="test")
    run_locally([str(place / "a.jsonl")], str(place / "run"), config)
    repo = nddup.repository.create(str(place / "repo"), local={"processes": 1}, **settings)
    repo.add(texts())
    repo.add({"x": "a text alone"})
    return place


def read_run(folder: Path) -> object:
    """Return the settings, metrics and all rows of a run, as its readers see them."""
    run = DuckRun(str(folder))
    rows = {name: sorted(map(repr, run.sql(f"SELECT * FROM {name}").to_pylist())) for name in RESULTS}  # noqa: S608
    files = LocalFolder(str(folder))
    whole = {name: sorted(map(repr, files.read(name).to_pylist())) for name in RESULTS}
    files.open()
    return rows, whole, run.metrics.dump(), config_of(files).model_dump(), files.read_text("duplicates.txt")


def read_mapped(folder: Path) -> object:
    """Return a query's answer, and the totals of all tables."""
    repo = nddup.repository.open(str(folder), local={"processes": 1})
    found = repo.query(texts()).to_pylist()
    for row in found:
        row.pop("repository")
    return found, tables_totals(repo.tables()), repo.snapshot.commit.digests


def read_repository(folder: Path) -> object:
    """Return what `read_mapped` does, and the tables of a compacted copy, which has no mapped files."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("mapped-*"))
    again = nddup.repository.open(str(copy), local={"processes": 1})
    again.compact(days=0)
    return read_mapped(folder), tables_totals(again.tables())


@pytest.mark.parametrize("seed", first(1, range(1, 7)))
def test_flips_in_a_run(made: Path, seed: int) -> None:
    """Of bits in every file of a run, none changes an answer silently, and none gives a raw error."""
    folder = made / "run"
    files = files_of(folder)
    files = files[seed % EVERY :: EVERY]
    found = list(try_flips(folder, files, lambda: read_run(folder), flips=len(files), seed=seed))

    assert [flip for flip in found if flip.result not in ("right", "refused")] == []
    tables = [flip for flip in found if flip.file.endswith(".parquet") and not flip.file.startswith("_")]
    assert {flip.result for flip in tables} == {"refused"}


@pytest.mark.parametrize("part", first(1, range(2 * EVERY)))
def test_flips_in_a_repository(made: Path, part: int) -> None:
    """Of bits in every kind of file of a repository, none changes an answer silently, and none gives a raw error."""
    folder = made / "repo"
    share, segment = divmod(part, 2)
    segments = nddup.repository.open(str(folder)).snapshot.commit.segments
    other = segments[1 - segment].name
    files = [file for file in files_of(folder) if file.name not in ("1.json", "2.json") and other not in file.parts]
    files = files[share::EVERY]
    mapped = [file for file in files if file.parent.name.startswith("mapped-")]
    others = [file for file in files if file not in mapped]
    found = [*try_flips(folder, mapped, lambda: read_mapped(folder), flips=len(mapped))]
    found += try_flips(folder, others, lambda: read_repository(folder), flips=len(others))

    assert mapped
    assert [flip for flip in found if flip.result not in ("right", "refused")] == []


def test_check_names_the_file(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`check` counts each file that differs, names it and what mends it, and `--resume` then mends it."""
    folder = shutil.copytree(made / "run", tmp_path / "run")
    [file] = (folder / "documents").glob("*.parquet")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))

    assert main(["check", str(folder)]) == 1
    said = capsys.readouterr().out
    assert "BROKEN 1   files: those that were written, bit for bit" in said
    assert f"documents/{file.name}: is not the file that was written, bit for bit; `nddup run` with" in said
    with pytest.raises(NddupError, match="bit for bit"):
        nddup.open(str(folder)).documents.to_table()
    assert nddup.open(str(folder)).keep.to_table().num_rows

    run_locally([str(made / "a.jsonl")], str(folder), config_of(LocalFolder(str(made / "run"))), resume=True)
    assert main(["check", str(folder)]) == 0
    assert "ok         files: those that were written, bit for bit (all)" in capsys.readouterr().out


def test_pages_have_checksums(made: Path) -> None:
    """Other readers can check the pages of every Parquet file that this engine writes."""
    for file in [*(made / "run").rglob("*.parquet"), *(made / "repo").rglob("*.parquet")]:
        pq.read_table(file, page_checksum_verification=True)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("metrics.json", b""), ("metrics.json", b"[1]"), ("metrics.json", b'{"versions": 3}'), ("_RUN.json", b""),
        ("_COMPLETE", b""), ("_stages/documents.json", b"[" * 99_999), ("documents", b""), ("duplicates.txt", b""),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (
                ("metrics.json", b"{}"), ("metrics.json", b"\xff\xfe"), ("_COMPLETE", b"[]"),
                ("_stages/documents.json", b""), ("pairs", b"PAR1"),
            )
        ),
    ],
)  # fmt: skip
def test_a_damaged_file_of_a_run_is_one_line(
    name: str, data: bytes, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty or cut file of a run is named in one line that says what mends it, and is mended so."""
    folder = shutil.copytree(made / "run", tmp_path / "run")
    file = folder / name
    if file.is_dir():
        [file] = file.glob("*.parquet")
    file.write_bytes(data)

    for command in ("check", "show", "report"):
        status = main([command, str(folder)])
        said = capsys.readouterr()
        assert status in (0, 1, 2)
        assert "Error" not in said.err
        assert "NDDUP_DEBUG" not in said.err
        if status == 2:
            assert said.err.count("\n") == 1
            assert file.name in said.err
            assert "--resume makes again what is damaged" in said.err
    config = config_of(LocalFolder(str(made / "run")))
    run_locally([str(made / "a.jsonl")], str(folder), config, resume=True)
    assert read_run(folder) is not None


def test_damaged_mapped_files_are_made_again(made: Path, tmp_path: Path) -> None:
    """Mapped files of 0 bytes, missing ones and a folder without its digests are made again from the Parquet files."""
    repo = shutil.copytree(made / "repo", tmp_path / "repo")
    due = read_repository(repo)
    for number, segment in enumerate(find_place(repo).segments()):
        [mapped] = (repo / "segments" / segment).glob("mapped-*")
        files = sorted(mapped.iterdir())
        files[0].write_bytes(b"")
        if number:
            files[1].unlink()
            (mapped / "digests.json").write_text("[")
        os.utime(mapped)
    assert read_repository(repo) == due


def test_a_report_that_was_not_finished_is_finished(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run killed during its report is finished by `--resume`, which names a file that exists."""
    arguments = ["run", str(made / "a.jsonl"), "--output", f"{tmp_path}/run", "--resume"]
    assert main(arguments) == 0
    page = tmp_path / "run" / "report" / "index.html"
    page.unlink()
    capsys.readouterr()

    assert main(arguments) == 0
    assert f"report: {page}" in capsys.readouterr().out
    assert page.exists()
    written = page.stat().st_mtime_ns
    assert main(arguments) == 0
    assert page.stat().st_mtime_ns == written


def test_a_commit_with_a_wrong_bit_is_refused(made: Path, tmp_path: Path) -> None:
    """A commit says the digest of itself; one that differs is refused in one line."""
    repo = shutil.copytree(made / "repo", tmp_path / "repo")
    newest = max((repo / "commits").glob("*.json"), key=lambda file: int(file.stem))
    said = json.loads(newest.read_text())
    newest.write_text(
        newest.read_text().replace(f'"next_key": {said["next_key"]}', f'"next_key": {said["next_key"] + 1}')
    )

    with pytest.raises(OutputError, match=rf"commits/{newest.name} is damaged"):
        nddup.repository.open(str(repo))
