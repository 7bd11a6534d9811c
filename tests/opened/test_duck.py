"""DuckDB on the folder of a run: declared columns and types, any path, bounded memory, and no network."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nddup.engines import duck as embedded
from nddup.engines.duck import DuckEngine, DuckRun, shared_database
from nddup.errors import ConfigError, NddupError
from nddup.tables import RESULTS
from tests.opened.made_runs import write_family, write_run
from tests.places import ROOT


def bare(field: pa.Field) -> pa.DataType:
    """Return the type of a column, without the names of list items."""
    return pa.list_(field.type.value_type) if pa.types.is_list(field.type) else field.type


@pytest.mark.parametrize("write", [write_run, write_family])
def test_tables_have_their_columns_and_types(write: object, tmp_path: Path) -> None:
    """Each table has its declared columns and types, with rows or without any file."""
    assert callable(write)
    run = DuckRun(str(write(tmp_path / "run")))

    for name, table in RESULTS.items():
        found = run.sql(f"SELECT * FROM {name}")  # noqa: S608
        assert found.column_names == table.names
        assert [bare(field) for field in found.schema] == [bare(field) for field in table.arrow], name


def test_a_column_that_was_not_written_is_null(tmp_path: Path) -> None:
    """A column missing from a file, as in runs of earlier versions, is null; an undeclared column is not visible."""
    folder = write_family(tmp_path / "run")
    pq.write_table(pa.table({"doc_id": ["a"], "more": [1]}), folder / "keep" / "part-0.parquet")

    rows = DuckRun(str(folder)).sql("SELECT * FROM keep").to_pylist()

    assert rows == [dict.fromkeys(RESULTS["keep"].names) | {"doc_id": "a"}]


@pytest.mark.parametrize("name", ["a*", "a[1]?", "it's\"", "роза %20"])
def test_a_path_is_literal(name: str, tmp_path: Path) -> None:
    """Wildcards, quotes and blanks in a folder's name are literal; a file URI is accepted as a path."""
    folder = write_family(tmp_path / name)
    write_family(tmp_path / "abc")
    write_family(tmp_path / "a1x")

    for path in (str(folder), f"{folder}/", folder.as_uri()):
        assert DuckRun(path).sql("SELECT count(*) AS n FROM documents").to_pylist() == [{"n": 4}]


def test_nulls_come_where_spark_puts_them(tmp_path: Path) -> None:
    """Nulls come first in ascending and last in descending order, as in Spark."""
    run = DuckRun(str(write_family(tmp_path / "run")))

    up = run.sql("SELECT resemblance AS r FROM pairs ORDER BY r")["r"].to_pylist()
    down = run.sql("SELECT resemblance AS r FROM pairs ORDER BY r DESC")["r"].to_pylist()

    assert up == [None, 0.29, 1.0]
    assert down == [1.0, 0.29, None]


def test_a_small_table_is_there_for_one_question(tmp_path: Path) -> None:
    """A small table, even an empty one, can be joined by its question and is unknown to the next."""
    run = DuckRun(str(write_family(tmp_path / "run")))
    text = "SELECT d.doc_id FROM documents AS d JOIN wanted AS w ON d.doc_id = w.id"

    for ids in (["c\"'", "a"], ["nobody"], []):
        found = run.sql(text, wanted=pa.table({"id": pa.array(ids, pa.string())}))
        assert sorted(found["doc_id"].to_pylist()) == sorted(set(ids) - {"nobody"})
    with pytest.raises(NddupError, match="wanted"):
        run.sql(text)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A damaged Parquet file, a missing table and a path of another file system are each named in an error."""
    folder = write_family(tmp_path / "run")
    (folder / "pairs" / "part-0.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(NddupError, match=r"run/pairs: cannot be read \(.*part-0.parquet") as found:
        DuckRun(str(folder))
    assert "\n" not in str(found.value)

    (folder / "pairs" / "part-0.parquet").unlink()
    (folder / "pairs" / "_SUCCESS").unlink()
    (folder / "pairs").rmdir()
    with pytest.raises(NddupError, match="pairs"):
        DuckRun(str(folder)).sql("SELECT * FROM pairs")
    with pytest.raises(ConfigError, match="not a path of this machine"):
        DuckRun("hdfs://host/run")


def test_questions_may_pass_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sort of 100 MB within 60 MB spills to a temporary folder, which is removed."""
    monkeypatch.setitem(embedded.SETTINGS, "memory_limit", "60MB")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spilled"))
    (tmp_path / "spilled").mkdir()
    run = DuckRun(str(write_run(tmp_path / "run")))

    text = "SELECT max(place) AS n FROM (SELECT row_number() OVER (ORDER BY md5(CAST(i AS VARCHAR))) AS place FROM (SELECT unnest(range(1500000)) AS i))"  # noqa: E501
    assert run.sql(text)["n"].to_pylist() == [1_500_000]

    del run
    assert list((tmp_path / "spilled").iterdir()) == []


def test_nothing_is_fetched(tmp_path: Path) -> None:
    """A network address is refused, and SQL cannot change that."""
    run = DuckRun(str(write_run(tmp_path / "run")))

    with pytest.raises(NddupError, match="Permission Error"):
        run.sql("SELECT * FROM 'https://127.0.0.1:1/a.parquet'")
    with pytest.raises(NddupError, match="locked"):
        run.sql("SET autoload_known_extensions = true")


def count_catalogs() -> int:
    """Return the number of catalogs of the database that engines of this process share."""
    return len(shared_database().connect().sql("SELECT * FROM duckdb_databases()").fetchall())


def test_engines_of_a_process_share_a_database_and_no_table() -> None:
    """An engine sees its own tables alone, from other connections too; they are freed with it, also in a circle."""
    before = count_catalogs()
    engines = [DuckEngine("one"), DuckEngine("other")]
    for number, engine in enumerate(engines):
        engine.put("numbers", pa.table({"n": [number]}))
    engines[0].see("seen", pa.table({"n": [9]}))

    assert [engine.sql("SELECT n FROM numbers").to_pylist() for engine in engines] == [[{"n": 0}], [{"n": 1}]]
    assert [engine.sql("SELECT array_size([n]) AS k FROM numbers").to_pylist() for engine in engines] == [
        [{"k": 1}]
    ] * 2
    with pytest.raises(NddupError, match="seen does not exist"):
        engines[1].sql("SELECT * FROM seen")
    assert count_catalogs() == before + 2

    engines[0].itself = engine = engines[0]  # type: ignore[attr-defined]
    del engine, engines
    gc.collect()

    assert count_catalogs() == before


FORKED = """
import os, sys, pyarrow as pa
from pathlib import Path
from nddup.engines.duck import Database, DuckEngine

def numbers(value, database=None):
    engine = DuckEngine("numbers", database)
    engine.put("numbers", pa.table({"n": [value]}))
    return engine

def read(engine):
    return engine.sql("SELECT n FROM numbers")["n"][0].as_py()

engine = numbers(1, Database() if sys.argv[1] == "of its own" else None)
if sys.argv[1] == "none":
    engine = read(engine)  # nothing holds the database any more
child = os.fork()
if not child:
    del engine
    status = read(numbers(2))
    if sys.argv[1] != "none":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the bindings of DuckDB tell of what was not freed
    sys.exit(status)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), read(engine) if sys.argv[1] != "none" else engine)
print(len(list(Path(os.environ["TMPDIR"]).iterdir())))
"""


@pytest.mark.parametrize(("engine", "folders"), [("none", "0"), ("shared", "1"), ("of its own", "1")])
def test_a_forked_process_has_a_database_of_its_own(engine: str, folders: str, tmp_path: Path) -> None:
    """It leaves databases of the process before it, and temporary folders, as they are; it ends as others do.

    DuckDB alone crashes as a child drops a database of its parent, and where it ends with one.
    """
    done = subprocess.run(
        [sys.executable, "-c", FORKED, engine],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.split() == ["2", "1", folders], done.stderr
    assert not done.stderr
