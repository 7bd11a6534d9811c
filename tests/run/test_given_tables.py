"""`find_duplicates` on pandas and Arrow tables finds what a run over the same texts finds, without Spark."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nddup
from nddup.embedded.run import run_locally
from nddup.errors import ConfigError, NddupError
from nddup.settings.load import build_config, nest_settings
from nddup.storage.local_folder import LocalFolder
from tests.embedded.edited_texts import make_texts
from tests.finished_runs import write_texts
from tests.places import ROOT
from tests.samples_by_night import every, first


def test_an_arrow_table_gives_the_tables_of_a_run(tmp_path: Path) -> None:
    """An Arrow table gives the same pairs, clusters, members and keep-list as a file with the same texts."""
    texts = make_texts()
    table = pa.table({"name": list(texts), "body": list(texts.values())})
    pages = write_texts(tmp_path / "pages.jsonl", texts)
    run_locally([str(pages)], str(tmp_path / "run"), build_config({}, origin="test"))
    folder = LocalFolder(str(tmp_path / "run"))

    found = nddup.find_duplicates(table, id="name", text="body")

    for name in ("pairs", "clusters", "members", "keep", "false_components"):
        assert sorted(map(repr, getattr(found, name).to_pylist())) == sorted(map(repr, folder.read(name).to_pylist()))
    assert found.metrics["rows"]["documents"] == len(texts)
    assert "texts" not in found.metrics["stages"]


def test_a_frame_of_pandas_gives_frames() -> None:
    """A pandas frame gives pandas frames, with ids of its type; a row with a null text is a reject and frees its id."""
    frame = pd.DataFrame({"n": [3, 1, 2, 2], "body": ["a b c d e f", "a b c d e f", None, "x"]})

    found = nddup.find_duplicates(frame, id="n", text="body", pairs={"threshold": 0.9})

    assert found.keep[["doc_id", "kept", "reason"]].to_dict("records") == [
        {"doc_id": 1, "kept": True, "reason": None},
        {"doc_id": 2, "kept": True, "reason": None},
        {"doc_id": 3, "kept": False, "reason": "exact"},
    ]
    assert found.keep["duplicate_of"].tolist() == [pd.NA, pd.NA, 1]
    assert list(found.rejects["doc_id"]) == [2]


LARGE = 2**53


@pytest.mark.parametrize(
    "kind", first(4, ["Int64", "object", "large", "category", "UInt64", "arrow", "int64[pyarrow]"])
)
def test_integers_keep_their_value_and_join_back(kind: str) -> None:
    """Ids that a float cannot tell apart stay apart, beside a null too, and are integers in every table."""
    ids, texts = [LARGE, LARGE + 1, None, LARGE + 3], ["a b c d e f", "a b c d e f", "x", "g h i j k l"]
    table = pa.table({"n": pa.array(ids, pa.int64() if kind == "arrow" else pa.uint64()), "text": texts})
    frame: Any = table
    if kind not in {"arrow", "large"}:
        series = pd.Series(pd.array(ids, dtype="Int64"))
        frame = pd.DataFrame({"n": series.astype(kind), "text": texts})

    found = nddup.find_duplicates(frame, id="n")

    shown = {name: value if isinstance(value, pa.Table) else pa.Table.from_pandas(value) for name, value in (
        ("keep", found.keep), ("pairs", found.pairs), ("clusters", found.clusters), ("rejects", found.rejects),
        ("members", found.members), ("documents", found.documents))}  # fmt: skip
    assert shown["keep"]["doc_id"].to_pylist() == [LARGE, LARGE + 1, LARGE + 3]
    assert shown["keep"]["duplicate_of"].to_pylist() == [None, LARGE, None]
    assert [row["doc_a"] - row["doc_b"] for row in shown["pairs"].to_pylist()] == [-1]
    assert list(shown["clusters"]["members"].to_pylist()[0]) == shown["members"]["doc_id"].to_pylist() == ids[:2]
    assert shown["documents"]["group"].to_pylist() == [LARGE, LARGE, LARGE + 3]
    assert [(row["doc_id"], row["reason"]) for row in shown["rejects"].to_pylist()] == [(None, "no id")]
    assert found.document(LARGE + 1).duplicate_of == str(LARGE)
    assert found.sql("SELECT doc_id FROM keep WHERE NOT kept").to_pylist() == [{"doc_id": str(LARGE + 1)}]


def test_what_is_no_table_or_needs_spark_is_refused() -> None:
    """An unknown column, and options that need a Spark DataFrame, are refused."""
    table = pa.table({"id": ["a"], "text": ["b"]})
    twice = pa.Table.from_arrays([table["id"], table["id"], table["text"]], names=["id", "id", "text"])
    with pytest.raises(ConfigError, match="2 columns 'id'; there are id, id, text"):
        nddup.find_duplicates(twice)
    with pytest.raises(ConfigError, match="no column 'url'; there are id, text"):
        nddup.find_duplicates(table, id="url")
    with pytest.raises(ConfigError, match="checkpoint and engine=spark are for a DataFrame of Spark"):
        nddup.find_duplicates(table, checkpoint="/tmp/x")  # noqa: S108 - it is refused
    for policy in ("shortest-url", ["id", "-url_length"]):  # no address is read: its order would be that of ids
        with pytest.raises(ConfigError, match="addresses of a table are not read"):
            nddup.find_duplicates(table, keep={"policy": policy})


def test_rows_given_three_times_are_no_loss() -> None:
    """Repeated ids are rejects and fail nothing; rows that cannot be read do, beyond `input.max_rejects`."""
    ids, texts = ["a", "b"] * 3, ["a b c d e f", "g h i j k l"] * 3

    found = nddup.find_duplicates(pa.table({"id": ids, "text": texts}))

    assert (len(found.documents), len(found.rejects)) == (2, 4)
    with pytest.raises(NddupError, match=r"^4 of 6 records are rejects \(4 no text\); input.max_rejects=0.5 allows 3$"):
        nddup.find_duplicates(pa.table({"id": list("abcdef"), "text": ["x", "y", None, None, None, None]}))


def test_no_spark_is_loaded() -> None:
    """`find_duplicates` on an Arrow table does not load pyspark."""
    program = (
        "import sys, pyarrow as pa, nddup; nddup.find_duplicates(pa.table({'id': ['a', 'b'], 'text': ['c d', 'c d']}));"
        " sys.exit('pyspark' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


class Interchanged:
    """A table that other libraries see through the interchange protocol alone."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __dataframe__(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401
        """Return the table as the protocol does."""
        return self._table.__dataframe__(*given, **named)


TABLES: dict[str, Callable[[pa.Table], Any]] = {
    "a list of dictionaries": lambda table: table.to_pylist(),
    "a reader of batches": lambda table: table.to_reader(max_chunksize=2),
    "one batch": lambda table: table.to_batches()[0],
    "a relation of DuckDB": lambda table: duckdb.connect().from_arrow(table),
    "a lazy frame of Polars": lambda table: pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "the interchange protocol": Interchanged,
}


@pytest.mark.parametrize("kind", every(2, TABLES))
def test_any_table_gives_the_same_rows(kind: str) -> None:
    """Whatever gives its rows to Arrow is read, with integers as ids; without a column of ids a row has its number."""
    texts = list(make_texts().values())[:10]
    table = pa.table({"n": range(100, 100 + len(texts)), "text": texts, "other": [1.5] * len(texts)})
    due = nddup.find_duplicates(table, id="n").keep.to_pylist()

    by_name = pa.Table.from_pylist(pa.table(nddup.find_duplicates(TABLES[kind](table), id="n").keep).to_pylist())
    numbered = pa.table(nddup.find_duplicates(TABLES[kind](table)).keep).to_pylist()

    assert by_name.to_pylist() == due
    assert [row["doc_id"] for row in numbered] == [row["doc_id"] - 100 for row in due]
    assert [row["kept"] for row in numbered] == [row["kept"] for row in due]


@pytest.mark.parametrize(
    ("given", "way"),
    [
        ("a.jsonl", "`nddup run` finds them"),
        ({"text": ["a"]}, "pyarrow.table"),
        (["a", "b"], "give a list of dictionaries"),
        (pl.Series("text", ["a"]), "give a list of dictionaries"),
        (3, "pandas.DataFrame"),
    ],
)
def test_what_is_no_table_is_refused_with_a_way_to_make_one(given: object, way: str) -> None:
    """One line says what was expected, what came, and how to convert it."""
    with pytest.raises(ConfigError, match=r"^find_duplicates: expected a table of [^\n]+$") as refused:
        nddup.find_duplicates(given)
    assert way in str(refused.value)


def test_a_dictionary_without_a_text_is_a_reject_and_another_value_an_error() -> None:
    """A missing key is a null; a value that is no text is named with its row."""
    words = "one two three four five six"
    found = nddup.find_duplicates([{"id": "a", "text": words}, {"id": "b", "text": words}, {"id": "c"}])

    assert found.rejects["doc_id"].to_pylist() == ["c"]
    with pytest.raises(ConfigError, match=r"^find_duplicates: column 'text' holds int in row 1; expected text$"):
        nddup.find_duplicates([{"text": words}, {"text": 1}])
    with pytest.raises(ConfigError, match=r"^find_duplicates: no column 'text'; there are id, body$"):
        nddup.find_duplicates([{"id": 1, "body": words}], text="text")
    with pytest.raises(ConfigError, match=r"^find_duplicates: no column of texts; there are id, words; name it with"):
        nddup.find_duplicates([{"id": 1, "words": words}])


TURNS = [{"role": "user", "content": "one two three four"}, {"role": "assistant", "content": "five six seven"}]
TITLED = [{"id": "a", "Title": "a title of it", "body": "one two three four five"},
          {"id": "b", "Title": "", "body": "<html><body><p>some page of words</p></body></html>"},
          {"id": "c", "Title": None, "body": "a title of it one two three four five"},
          {"id": "d", "Title": "a title of it", "body": None}, {"id": "e", "Title": None, "body": None}]  # fmt: skip
CHATS = [{"id": "a", "messages": TURNS, "description": "x"}, {"id": "b", "messages": TURNS[:1], "description": "x"},
         {"id": "c", "messages": None, "description": "x"}, {"id": "d", "messages": []}]  # fmt: skip
PARTS = [{"type": "text", "text": "one two three four"}, {"type": "image", "text": None}]
PARTED = [{"id": "a", "messages": [{"role": "user", "content": PARTS}]}]
GIVEN: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "dictionaries": lambda rows: rows,
    "arrow": pa.Table.from_pylist,
    "pandas": lambda rows: pa.Table.from_pylist(rows).to_pandas(),
    "pandas of lists": pd.DataFrame,
    "polars": lambda rows: pl.from_arrow(pa.Table.from_pylist(rows)),
    "a reader": lambda rows: pa.Table.from_pylist(rows).to_reader(),
}
SHORT: dict[str, Any] = {"input.min_tokens": 1, "input.max_rejects": 1.0, "shingle.length": 2}


def documents_of(run: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """Return what the reading of a run made of each document."""
    found = run.documents.toArrow() if hasattr(run.documents, "toArrow") else pa.table(run.documents)
    names = ("doc_id", "content_fingerprint", "sketch", "n_tokens", "unread_parts")
    return sorted(tuple(str(row[name]) for name in names) for row in found.to_pylist())


@pytest.mark.parametrize("rows", first(1, [TITLED, CHATS, PARTED]), ids=["titles", "chats", "parts"])
def test_a_table_is_read_as_the_same_lines_of_json(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    """Title and text by their usual names, and chats: of each library the same fingerprints, texts and rejects."""
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    config = build_config(nest_settings(SHORT, origin="test"), origin="test")
    run_locally([str(path)], str(tmp_path / "run"), config)
    due = documents_of(nddup.open(str(tmp_path / "run")))

    assert len(due) == {5: 4, 4: 2, 1: 1}[len(rows)]
    for kind, make in GIVEN.items():
        assert documents_of(nddup.find_duplicates(make(rows), **SHORT)) == due, kind


@pytest.mark.spark
def test_a_frame_of_spark_is_read_as_the_same_table(spark: SparkSession) -> None:
    """Title and text, and chats with parts that are no text."""
    for rows in (TITLED, CHATS, PARTED):
        table = pa.Table.from_pylist(rows)
        due = documents_of(nddup.find_duplicates(table, **SHORT))
        with nddup.find_duplicates(spark.createDataFrame(table), **SHORT) as found:
            assert documents_of(found) == due


def test_a_terminal_shows_rows(tmp_path: Path) -> None:
    """A table prints its rows, aligned."""
    run_locally([str(write_texts(tmp_path / "a.jsonl", {"a": "x y", "b": "x y"}))], str(tmp_path / "run"),
                build_config({}, origin="test"))  # fmt: skip

    rows = repr(nddup.open(str(tmp_path / "run")).keep).splitlines()

    assert rows[0] == "keep: 2 rows"
    assert rows[1].startswith("doc_id  kept   duplicate_of  reason  ")
    assert rows[2].startswith("a       True   –             –       ")
    assert rows[3].startswith("b       False  a             exact   ")


def test_a_run_prints_its_summary() -> None:
    """The main numbers, aligned; of a table nothing is told of files."""
    table = pa.table({"id": ["a", "b"], "text": ["one two three four five six"] * 2})

    said = repr(nddup.find_duplicates(table)).splitlines()

    assert said[:2] == ["run in memory", "records read                     2   rows of a table"]
