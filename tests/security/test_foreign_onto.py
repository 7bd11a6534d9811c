"""A run onto the folder of someone else: whatever its tables and notes say, one line refuses them on both engines."""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.errors import NddupError
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.spark.run import run_job
from nddup.spark.steps import onto
from nddup.storage.run_folder import digest
from scripts.try_foreign_run import renew_digests
from tests.finished_runs import sorted_tables, write_rows
from tests.samples_by_night import first as first_by_night

CONFIG = build_config(
    {
        "output": {"report": False, "onto": True, "texts": 0},
        "keep": {"same": ["lang"]},
        "shingle": {"length": 2},
        "sketch": {"size": 16},
        "local": {"processes": 1},
        "input": {"max_rejects": None},
    },
    origin="test",
)

Change = Callable[[pa.Table], pa.Table]


def exchange(table: pa.Table, column: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(column), column, values)


def first(column: str, value: object) -> Change:
    """Return what exchanges the value of the first row."""
    return lambda table: exchange(table, column, pa.array([value, *table[column].to_pylist()[1:]], table[column].type))


def each(column: str, change: Callable[[list[object]], list[object]]) -> Change:
    """Return what changes each list of a column."""
    return lambda table: exchange(
        table, column, pa.array([one and change(one) for one in table[column].to_pylist()], table[column].type)
    )


def lacking(values: list[object]) -> list[object]:
    return [None, *values]


def as_text(column: str) -> Change:
    return lambda table: exchange(table, column, pc.cast(table[column], pa.string()))


LIES: dict[str, tuple[str, Change]] = {
    "an id is null": ("documents", first("doc_id", None)),
    "a sketch holds a null": ("documents", each("sketch", lacking)),
    "no column": ("documents", lambda table: table.drop_columns(["n_features"])),
    "a number as text": ("documents", as_text("record")),
    "a number is negative": ("documents", first("n_tokens", -7)),
    "a fingerprint is short": ("documents", first("content_fingerprint", b"short")),
    "a list of values is shorter": ("documents", each("policy", lambda values: values[:-1])),
    "no date": ("documents", first("date", "yesterday")),
    "no text": ("documents", lambda table: exchange(table, "url", pa.array([b"\xff"] * len(table)).view(pa.string()))),
    "a key beyond all records": ("documents", first("doc_key", 1 << 50)),
    "records are there twice": ("given", lambda table: pa.concat_tables([table, table])),
    "a record without number": ("given", first("doc_key", None)),
    "a candidate is null": ("candidates", first("node_a", None)),
    "shingles hold a null": ("shingles", each("shingles", lacking)),
    "shingles are numbers": ("shingles", lambda table: exchange(table, "shingles", table["node"])),
    "an end is null": ("pairs", first("doc_b", None)),
    "an overlap is a text": ("pairs", as_text("overlap")),
    "members hold a null": ("clusters", each("members", lacking)),
    "a member is null": ("members", first("doc_id", None)),
    "a verdict is null": ("keep", first("kept", None)),
    "a resemblance is infinite": ("pairs", first("resemblance", float("inf"))),
    "a share is no number": ("keep", first("lost", float("nan"))),
    "a size is null": ("clusters", first("size", None)),
    "a reject has no file": ("rejects", first("source", None)),
}  # fmt: skip

DEEP: dict[str, tuple[str, Change]] = {
    "a group that no document names": ("documents", first("group", "../x")),
    "shingles of no text": ("shingles", lambda table: table.slice(0, 0)),
}
"""Found where what changed is made anew, not when the folder is opened."""

SPARK = ["members hold a null", "an overlap is a text", "records are there twice", "a list of values is shorter", *LIES]
"""The first show that Spark asks what the embedded engine asks, and how it tells of a table that it cannot read."""

NOTES: dict[str, Callable[[dict[str, object]], None]] = {
    "documents.json": lambda note: note["counted"].update(noted={"later_ids": ["x"]}),  # type: ignore[attr-defined]
    "rejects.json": lambda note: note["counted"].update(noted={"reasons": [7]}),  # type: ignore[attr-defined]
}


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two batches, whose texts are like each other, and a run over the first."""
    place = tmp_path_factory.mktemp("nights")
    words = [f"word{n}" for n in range(40)]
    for night, shift in (("a", 0), ("b", 6)):
        rows: list[dict[str, str | None]] = [
            {"id": f"{night}{n}", "text": " ".join([*words[n % 3 :], f"x{n}", f"y{n // 2}"]), "lang": "ab"[n % 2]}
            for n in range(shift, shift + 6)
        ]
        rows += [{"text": f"without id {night}", "lang": "a"}]
        (place / night).mkdir()
        (place / night / "none.jsonl").write_text("{\n", encoding="utf-8")
        write_rows(place / night / "rows.jsonl", rows)
    run_locally([str(place / "a")], str(place / "old"), CONFIG, batch="a")
    return place


def foreign(nights: Path, folder: Path, name: str, change: Change) -> Path:
    """Copy the run with a table changed, and right digests."""
    old = Path(shutil.copytree(nights / "old", folder))
    [file] = (file for file in old.rglob("*.parquet") if file.parent.name == name)
    table = pq.read_table(file)
    assert len(table), name
    file.unlink()
    pq.write_table(change(table), file)
    renew_digests(old)
    return old


def go_on(nights: Path, old: Path, output: Path, make: Callable[..., object] = run_locally) -> None:
    config: Config = CONFIG
    make([str(nights / "b")], str(output), config, batch="b", onto=str(old))


def refusals(
    nights: Path, place: Path, make: Callable[..., object], lies: dict[str, tuple[str, Change]]
) -> Iterator[str]:
    """Yield what is wrong with how each lie ends: each with one line."""
    for number, (what, (name, change)) in enumerate(lies.items()):
        old = foreign(nights, place / f"old{number}", name, change)
        try:
            go_on(nights, old, place / f"new{number}", make)
        except NddupError as error:
            if "\n" in str(error):
                yield f"{what}: {error}"
        except Exception as error:  # noqa: BLE001 - what a command would show raw
            yield f"{what}: raw {error!r}"
        else:
            yield f"{what}: is taken"


def test_tables_that_no_run_writes_are_refused(nights: Path, tmp_path: Path) -> None:
    assert not list(refusals(nights, tmp_path, run_locally, LIES | DEEP))


@pytest.mark.parametrize("what", first_by_night(2, SPARK))
def test_spark_refuses_the_same(
    spark: SparkSession, nights: Path, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its tasks as in the driver, which reads small tables itself."""
    assert not list(refusals(nights, tmp_path, partial(run_job, spark), {what: LIES[what]}))
    monkeypatch.setattr(onto, "SMALL", -1)
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    assert not list(refusals(nights, tmp_path, partial(run_job, spark), {what: LIES[what]}))


@pytest.mark.parametrize("name", NOTES)
def test_notes_that_no_run_writes_are_refused(nights: Path, tmp_path: Path, name: str) -> None:
    old = Path(shutil.copytree(nights / "old", tmp_path / "old"))
    file = old / "_stages" / name
    note = json.loads(file.read_text())
    note.pop("digest")
    NOTES[name](note)
    file.write_text(json.dumps({**note, "digest": digest(note)}))
    with pytest.raises(NddupError, match="a note of documents or rejects"):
        go_on(nights, old, tmp_path / "new")


def test_an_unchanged_copy_is_taken(nights: Path, tmp_path: Path) -> None:
    """The refusals are not those of a copy, or of a file written again."""
    old = foreign(nights, tmp_path / "old", "documents", lambda table: table)
    go_on(nights, nights / "old", tmp_path / "due")
    go_on(nights, old, tmp_path / "new")
    assert sorted_tables(tmp_path / "new") == sorted_tables(tmp_path / "due")
