"""A repository of somebody else: its names, links and values lead to no file outside, and to no memory."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from nddup.cli import main
from nddup.ground.array_files import map_array, write_array
from nddup.repository import segment_files
from nddup.repository.segment_files import SHINGLES, map_shingles, require_small
from nddup.storage.run_folder import digest
from scripts.try_foreign_repository import ask_query, ask_tables, in_child, make_repository, renew_digests
from tests.finished_runs import write_texts
from tests.samples_by_night import every

Change = Callable[[Path, Path], None]
"""Changes a repository, given its folder and that of its owner's files outside."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of two segments."""
    folder = tmp_path_factory.mktemp("foreign") / "repo"
    make_repository(folder, "estimated")
    return folder


def newest_in(repo: Path) -> Path:
    return max((repo / "commits").glob("*.json"), key=lambda file: int(file.stem))


def rewrite(repo: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the newest version, with the digest that fits."""
    file = newest_in(repo)
    value = json.loads(file.read_bytes())
    value.pop("digest")
    change(value)
    file.write_text(json.dumps({**value, "digest": digest(value)}))


def segment_of(repo: Path) -> Path:
    name: str = json.loads(newest_in(repo).read_bytes())["segments"][0]["name"]
    return repo / "segments" / name


def replace_by_link(path: Path, target: Path) -> None:
    """Move a file or folder to the owner's files, and link it from there."""
    path.rename(target)
    path.symlink_to(target)


def name_outside(repo: Path, outside: Path, name: str) -> None:
    """Copy a segment to the owner's files, and name it there."""
    shutil.copytree(segment_of(repo), outside / "moved")
    rewrite(repo, lambda value: value["segments"][0].update(name=name))


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


LINKS: dict[str, Change] = {
    "segments": lambda repo, outside: replace_by_link(repo / "segments", outside / "moved"),
    "commits": lambda repo, outside: replace_by_link(repo / "commits", outside / "moved"),
    "a segment": lambda repo, outside: replace_by_link(segment_of(repo), outside / "moved"),
    "a table": lambda repo, outside: replace_by_link(segment_of(repo) / "state.parquet", outside / "moved"),
    "a version": lambda repo, outside: replace_by_link(newest_in(repo), outside / "moved"),
    "mapped files": lambda repo, outside: replace_by_link(next(segment_of(repo).glob("mapped-*")), outside / "moved"),
    "a mapped file": lambda repo, outside: replace_by_link(
        next(segment_of(repo).glob("mapped-*/holders.array")), outside / "moved"
    ),
    "a name of another folder": lambda repo, outside: name_outside(repo, outside, f"../../{outside.name}/moved"),
    "an absolute name": lambda repo, outside: name_outside(repo, outside, f"{outside}/moved"),
    "a pipe": lambda repo, _: replace_by_pipe(segment_of(repo) / "state.parquet"),
    "a mapped pipe": lambda repo, _: replace_by_pipe(next(segment_of(repo).glob("mapped-*")) / "digests.json"),
}


@pytest.mark.parametrize("link", LINKS)
def test_nothing_outside_is_read_written_or_removed(
    whole: Path, tmp_path: Path, link: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Links, special files and names that lead outside are refused in one line, or passed over; all outside stays."""
    repo, outside = shutil.copytree(whole, tmp_path / "repo"), tmp_path / "outside"
    outside.mkdir()
    pages = write_texts(tmp_path / "a.jsonl", {"new": "a text that is new"})
    ids = tmp_path / "ids.txt"
    ids.write_text("d00\n")
    LINKS[link](repo, outside)
    before = {file: file.lstat().st_mtime_ns for file in outside.rglob("*") if not file.is_dir()}
    is_harmless = "mapped" in link

    commands = [["check", str(repo)], ["add", str(repo), str(pages)], ["remove", str(repo), "--ids", str(ids)]]
    always = [["query", str(repo), str(pages)], ["compact", str(repo), "--days", "0"]]
    for command in always if is_harmless else [*commands, *always]:
        status = main(["index", *command])
        printed = capsys.readouterr()
        assert status in ((0,) if is_harmless else (1, 2)), (command, printed)
        assert printed.err.count("\n") == (not is_harmless and "BROKEN" not in printed.out)
    assert {file: file.lstat().st_mtime_ns for file in outside.rglob("*") if not file.is_dir()} == before


@pytest.mark.parametrize("scheme", ["local://", "local:", "simplecache::file://", "zip://a::file://"])
def test_a_folder_of_this_machine_has_no_other_way_in(
    whole: Path, tmp_path: Path, scheme: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A URL of `fsspec` that leads to this machine, where its client would follow links, is refused in one line."""
    repo = shutil.copytree(whole, tmp_path / "repo")
    LINKS["a table"](repo, tmp_path)
    assert main(["index", "check", f"{scheme}{repo}"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


WRONG: dict[str, Any] = {
    "version": "1", "segments": [7], "parent": -1, "next_key": 1 << 80, "next_component": None, "counts": {"a": {}},
    "digests": {"documents": [1, "x"]}, "repository": {}, "what": "\x1b[2J", "time": "now\nand then", "more": 1,
    "changes": ["a"],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_version_with_wrong_values_is_refused(
    whole: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each value of a version has its type and range; one line says that it is damaged."""
    repo = shutil.copytree(whole, tmp_path / "repo")
    rewrite(repo, lambda value: value.update({name: WRONG[name]}))
    for command in ("list", "check"):
        assert main(["index", command, str(repo)]) in (1, 2)
        assert f"{newest_in(repo).name} is damaged" in capsys.readouterr().err


LIES = {"holders": 1 << 28, "sketch_offsets": 1 << 40, "by_id-rows": -(1 << 28), "prints-rows": 1 << 20, "places": -1,
        "features": 1 << 31, "nodes": 1 << 62}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_mapped_files_that_lie_are_made_again(whole: Path, tmp_path: Path, name: str) -> None:
    """An array that leads outside of another, with a digest that fits, is not used: the answer is as before.

    `scripts.try_foreign_repository` changes any value of any file so.
    """
    repo = shutil.copytree(whole, tmp_path / "repo")
    file = next(segment_of(repo).glob(f"mapped-*/{name}.array"))
    array = map_array(file).copy()
    array[0] = LIES[name]
    file.unlink()
    write_array(file, array)
    renew_digests(repo)
    before = file.read_bytes()

    assert in_child(lambda: "same" if ask_query(repo) == ask_query(whole) else "another answer") == "same"
    assert file.read_bytes() != before


def change_table(repo: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change a table in the first segment that has it, with right digests; the mapped files are made anew."""
    file = min((repo / "segments").glob(f"*/{name}"))
    table = pq.read_table(file)
    file.unlink()
    pq.write_table(change(table), file)
    for mapped in (repo / "segments").glob("*/mapped-*"):
        shutil.rmtree(mapped)
    renew_digests(repo)


def with_first(table: pa.Table, column: str, value: object, row: int = 0) -> pa.Table:
    """Return a table with another value in a column of a row."""
    values = table[column].to_pylist()
    values[row] = value
    at = table.schema.get_field_index(column)
    return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))


TABLES: dict[str, tuple[str, Callable[[pa.Table], pa.Table]]] = {
    "an overlap": ("pairs.parquet", lambda table: with_first(table, "overlap", 3, row=-1)),
    "a pair less": ("pairs.parquet", lambda table: table.slice(0, len(table) - 1)),
    "a leader": ("state.parquet", lambda table: with_first(table, "leader", value=True, row=-1)),
    "a component": ("false_components.parquet", lambda table: with_first(table, "component_key", 1)),
    "a document twice": ("documents.parquet", lambda table: with_first(table, "doc_key", 4, row=3)),
    "a sketch twice": ("sketches.parquet", lambda table: with_first(table, "node", 3, row=2)),
    "the print of another sketch": (
        "sketches.parquet",
        lambda table: with_first(table, "sketch_fingerprint", table["sketch_fingerprint"][1].as_py()[::-1]),
    ),
    "no document": ("pairs.parquet", lambda table: with_first(table, "doc_a", "none", row=-1)),
}


@pytest.mark.parametrize("lie", TABLES)
def test_tables_that_lie_are_refused_or_found(
    whole: Path, tmp_path: Path, lie: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables with right digests and wrong values: `index check` says so, or one line does."""
    repo = shutil.copytree(whole, tmp_path / "repo")
    change_table(repo, *TABLES[lie])

    assert main(["index", "check", str(repo)]) in (1, 2)
    printed = capsys.readouterr()
    assert "BROKEN" in printed.out or printed.err.count("\n") == 1


def test_documents_that_no_pair_removes(tmp_path: Path) -> None:
    """`duplicate_of` may name any document: its tables are then others than were committed, or it is refused."""
    make_repository(tmp_path / "repo", "mod")
    due = ask_tables(tmp_path / "repo")
    file = max((tmp_path / "repo" / "segments").glob("*/state.parquet")).relative_to(tmp_path / "repo")
    table = pq.read_table(tmp_path / "repo" / file)
    for row in np.flatnonzero(pc.is_null(table["duplicate_of"]).to_numpy()).tolist():
        repo = shutil.copytree(tmp_path / "repo", tmp_path / f"repo{row}")
        pq.write_table(with_first(table, "duplicate_of", "late", row=row), repo / file)
        for mapped in repo.rglob("mapped-*"):
            shutil.rmtree(mapped)
        renew_digests(repo)
        assert ask_tables(repo) != due


EXACT: dict[str, tuple[str, Callable[[pa.Table], pa.Table]]] = {
    "an id that is no shingle": (
        "sketches.parquet",
        lambda table: with_first(table, "sketch", [*table["sketch"][0].as_py()[:-1], -1]),
    ),
    "a containment": ("pairs.parquet", lambda table: with_first(table, "containment_b", 0.123, row=-1)),
    "an overlap": ("pairs.parquet", lambda table: with_first(table, "overlap", 2, row=-1)),
    "a resemblance": ("pairs.parquet", lambda table: with_first(table, "resemblance", 0.5, row=-1)),
    "common shingles": ("pairs.parquet", lambda table: with_first(table, "common", 1, row=-1)),
    "another sketch": ("documents.parquet", lambda table: with_first(table, "node", 3, row=1)),
}
"""Lies in a repository where shingles decide, of which a query, or a later batch, would make other rows."""


@pytest.mark.parametrize("lie", every(3, EXACT))
def test_sketches_and_their_pairs_are_those_of_the_shingles(
    tmp_path: Path, lie: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where shingles decide, `index check` compares all that pairs are found by with them."""
    repo = tmp_path / "repo"
    make_repository(repo, "exact")
    change_table(repo, *EXACT[lie])
    assert main(["index", "check", str(repo)]) == 1
    assert "BROKEN" in capsys.readouterr().out


BOMBS: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "a dictionary": (pa.DictionaryArray.from_arrays(np.zeros(300, np.int32), ["x" * 500_000]), {}),
    "shared starts": (pa.array(["x" * 9_000 + str(i) for i in range(9)]), {"column_encoding": "DELTA_BYTE_ARRAY"}),
    "runs": (pa.nulls(15_000_000, pa.int64()), {}),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_tables_that_expand_are_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of some KB that expands to 100 MB is refused by the headers of its pages, before it is read.

    The bound is a tenth of what it is in use, where a GB is due.
    """
    monkeypatch.setattr(segment_files, "LEAST_EXPANSION", segment_files.LEAST_EXPANSION // 10)
    values, how = BOMBS[kind]
    pq.write_table(pa.table({"a": values}), tmp_path / "a.parquet", use_dictionary=not how, compression="zstd", **how)
    assert (tmp_path / "a.parquet").stat().st_size < 500_000
    with pytest.raises(OSError, match="expands to more than"):
        require_small(tmp_path / "a.parquet")


def test_shingles_that_lead_outside_are_refused(tmp_path: Path) -> None:
    """Row ends beyond the values, in the one Arrow file that is not read whole."""
    values, ends = pa.array([1, 2, 3], pa.int64()), pa.array([0, 1 << 28, 3], pa.int32())
    lists = pa.ListArray.from_buffers(pa.list_(pa.int64()), 2, [None, ends.buffers()[1]], children=[values])
    batch = pa.RecordBatch.from_arrays([pa.array([7, 8], pa.int64()), lists], schema=SHINGLES.arrow)
    file = tmp_path / "shingles.arrow"
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises((pa.ArrowException, OSError)):
        map_shingles(file)
