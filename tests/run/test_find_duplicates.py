"""`find_duplicates` on a Spark DataFrame returns the tables of a run."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup import find_duplicates
from nddup.api.run_object import Run
from nddup.embedded.run import run_locally
from nddup.errors import ConfigError, NddupError
from nddup.settings.load import build_config
from nddup.spark.session import set_to
from tests.counted_rows import once_each
from tests.finished_runs import rows_of, write_texts

TEXT = [f"word{number}" for number in range(60)]
TEXTS = {
    "07": " ".join(TEXT),
    "7": " ".join(TEXT),
    "b": " ".join([*TEXT, "more"]),
    "a": " ".join(["less", *TEXT[:-1]]),
    "far": " ".join(reversed(TEXT)),
    "empty": "",
}
SETTINGS: dict[str, Any] = {"pairs": {"threshold": 0.7}}
SPARKS: dict[str, Any] = {"spark.sql.caseSensitive": "true", "spark.sql.shuffle.partitions": "3"}
BY_ID = {
    "documents": ["doc_id", "n_tokens", "n_features", "content_fingerprint", "group", "sketch"],
    "pairs": ["doc_a", "doc_b", "overlap", "resemblance", "star"],
    "clusters": ["cluster_id", "support", "size", "members", "component", "coverage"],
    "members": ["cluster_id", "doc_id", "representative"],
    "keep": ["doc_id", "kept", "duplicate_of", "reason"],
}


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    """The texts as a DataFrame, with an unused column."""
    return spark.createDataFrame(
        [(text, name, 1.5) for name, text in TEXTS.items()], "body string, name string, x double"
    )


@pytest.fixture(scope="module")
def found(frame: DataFrame) -> Run:
    """The run over these texts; it leaves the settings of the caller's session unchanged.

    `pairs={"measure": ...}`, `**{"pairs.threshold": ...}` and Spark's own settings may be given together.
    """
    spark = frame.sparkSession
    with set_to(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "77"}):
        before = dict(spark.conf.getAll)
        keys: dict[str, Any] = {"pairs.threshold": 0.7, "pairs": {"max_postings": 9_999}, **SPARKS}
        made = find_duplicates(frame, id="name", text="body", checkpoint=None, **keys)
        assert dict(spark.conf.getAll) == before
    return made


def shown(table: DataFrame, columns: list[str]) -> list[str]:
    """Return the rows of a table as sorted text."""
    return sorted(map(str, table.select(columns).collect()))


def test_tables_are_those_of_a_run_over_files(found: Run, tmp_path: Path) -> None:
    """The tables equal those of the embedded engine over JSON lines, except for the columns that locate a record."""
    output, pages = tmp_path / "out", write_texts(tmp_path / "a.jsonl", TEXTS)

    metrics = run_locally([str(pages)], str(output), build_config(SETTINGS, origin="test"))

    for name, columns in BY_ID.items():
        assert shown(getattr(found, name), columns) == rows_of(output, name, columns)
    assert found.metrics["rows"] == {name: rows for name, rows in metrics["rows"].items() if name != "texts"}
    assert metrics["rows"]["pairs"] == 6


def test_record_is_the_rank_of_the_id(found: Run) -> None:
    """Documents are numbered in the byte order of their ids, whatever the order of the rows."""
    rows = found.documents.orderBy("record").select("record", "doc_id", "source", "doc_key").collect()

    assert [row["doc_id"] for row in rows] == sorted(TEXTS)
    assert [row["record"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["doc_key"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert {row["source"] for row in rows} == {"dataframe"}


def test_the_input_is_left_as_it_was(frame: DataFrame, found: Run) -> None:
    """The input DataFrame is neither cached nor changed."""
    assert found.keep.count() == found.keep.count() == len(TEXTS)
    assert not frame.storageLevel.useDisk
    assert frame.columns == ["body", "name", "x"]
    assert frame.count() == len(TEXTS)


def test_integer_ids_stay_integers_and_bad_rows_become_rejects(spark: SparkSession) -> None:
    """Ids have their type again, and rows with null ids, null texts or repeated ids become rejects with a reason.

    Names of columns are literal, with dots, blanks and backticks, and some that differ in case alone.
    """
    rows = [(10, "ten"), (9, "nine"), (9, "nine"), (None, "nobody"), (3, None), (9, "another nine")]
    table = spark.createDataFrame(rows, "`Page.Text` int, `page.text` string").toDF("a `b`.c d", "page.text")
    table = table.selectExpr("1 AS `Page.Text`", "*")

    tables = find_duplicates(table, id="a `b`.c d", text="page.text")

    documents = once_each((row["doc_id"], row["record"]) for row in tables.documents.collect())
    rejects = sorted((str(row["doc_id"] or ""), row["reason"], row["detail"]) for row in tables.rejects.collect())
    assert set(documents) == {10, 9}
    assert documents[10] == 1
    assert table.join(tables.keep, table["`a ``b``.c d`"] == tables.keep["doc_id"]).count() == 4
    assert [(name, reason) for name, reason, _ in rejects] == [
        ("", "no id"),
        ("3", "no text"),
        ("9", "repeated id"),
        ("9", "repeated id"),
    ]
    assert rejects[2][2] == f"first seen as record {documents[9]} of dataframe"
    assert tables.metrics["records"] == 6
    assert sorted(row["doc_id"] for row in tables.keep.collect()) == [9, 10]


def test_strings_that_are_no_utf_8_are_rejects_of_their_rows(spark: SparkSession) -> None:
    """A row whose string is not UTF-8 is a reject, and the other rows of its batch are read."""
    rows = [(b"a", b"one two"), (b"b", b"caf\xe9"), (b"\xff", b"three"), (b"c", b"one two")]
    table = spark.createDataFrame(rows, "id binary, text binary").selectExpr(
        "cast(id as string) id", "cast(text as string) text"
    )

    tables = find_duplicates(table)

    rejects = sorted((row["doc_id"] or "", row["reason"], row["excerpt"]) for row in tables.rejects.collect())
    assert sorted(row["doc_id"] for row in tables.keep.collect()) == ["a", "c"]
    assert rejects == [("", "malformed", "three"), ("b", "malformed", "caf\ufffd")]
    assert tables.metrics["records"] == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"id": "name"}, "find_duplicates: no column 'name'; there are id, text"),
        ({"text": "body"}, "find_duplicates: no column 'body'; there are id, text"),
        ({"pears": {"threshold": 0.9}}, "find_duplicates: pears: unknown key; did you mean pairs?"),
        ({"pairs.threshold": 85}, "find_duplicates: pairs.threshold: an integer (85) is a count, which needs measure"),
    ],
)
def test_wrong_arguments_are_refused(spark: SparkSession, arguments: dict[str, Any], said: str) -> None:
    """A wrong column or setting is named, with the columns or settings that exist."""
    table = spark.createDataFrame([("a", "b")], "id string, text string")

    with pytest.raises(ConfigError) as caught:
        find_duplicates(table, **arguments)

    assert str(caught.value).startswith(said)


def test_the_settings_of_the_session_are_as_they_were(spark: SparkSession, frame: DataFrame, found: Run) -> None:
    """A run that fails leaves the settings of the caller's session unchanged too; those given are in the metrics."""
    with set_to(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "77"}):
        before = dict(spark.conf.getAll)
        empty = frame.withColumn("body", F.lit(None))
        with pytest.raises(NddupError):
            find_duplicates(empty, id="name", text="body", input={"max_rejects": 0.1}, **SPARKS)

        assert before == dict(spark.conf.getAll)
    settings = found.metrics["settings"]
    assert (settings["pairs"]["threshold"], settings["pairs"]["max_postings"]) == (0.7, 9_999)
    assert settings["spark"] == SPARKS


def test_what_a_session_cannot_change_is_refused_in_one_line(frame: DataFrame) -> None:
    """A setting that a running session cannot change, such as its executors' memory, is refused in one line."""
    with pytest.raises(ConfigError, match=r"^spark\.executor\.memory=9g: .*$"):
        find_duplicates(frame, id="name", text="body", spark={"spark.executor.memory": "9g"})


def persisted(spark: SparkSession) -> dict[int, Any]:
    """Return the persisted RDDs of the session by number."""
    return dict(spark.sparkContext._jsc.getPersistentRDDs())  # noqa: SLF001


def test_tables_in_a_folder_outlive_the_executors(
    spark: SparkSession, frame: DataFrame, found: Run, tmp_path: Path
) -> None:
    """Tables with a checkpoint folder are unchanged when all blocks that executors hold are lost."""
    folder, others = tmp_path / "checkpoint", set(persisted(spark))

    tables = find_duplicates(frame, id="name", text="body", checkpoint=str(folder), **SETTINGS)
    for number, held in persisted(spark).items():
        if number not in others:
            held.unpersist(True)  # noqa: FBT003 - Java has no names

    for name in BY_ID:
        assert shown(getattr(tables, name), ["*"]) == shown(getattr(found, name), ["*"])
    [own] = folder.iterdir()
    assert {path.name for path in own.iterdir()} == set(BY_ID) | {"rejects", "false_components"}
