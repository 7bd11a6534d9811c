"""Columns given to find_duplicates: any bytes are a document or a reject, and what is no text is refused in a line."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nddup
import nddup.repository
from nddup.cli import main
from nddup.embedded import read_records
from nddup.embedded.given_tables import Columns, as_table, to_arrow
from nddup.errors import ConfigError
from tests.samples_by_night import first

TEXTS = ["one two three four five six", "one two three four five six", "quite another text stands here now"]


def find(table: object) -> tuple[list[object], list[tuple[str, str]]]:
    """Return the ids of the documents, and the ids and reasons of the rejects."""
    run = nddup.find_duplicates(table, input={"max_rejects": None}, progress=False)
    keep, rejects = (one if isinstance(one, pa.Table) else pa.table(one) for one in (run.keep, run.rejects))
    told = rejects.select(["doc_id", "reason"]).to_pylist()
    return sorted(keep["doc_id"].to_pylist(), key=str), [(str(row["doc_id"]), row["reason"]) for row in told]


def test_bytes_are_read_as_their_text() -> None:
    """Bytes of UTF-8 are the text that they encode, in every library."""
    data = [text.encode() for text in TEXTS]
    for table in (
        pd.DataFrame({"id": ["a", "b", "c"], "text": data}),
        pa.table({"id": ["a", "b", "c"], "text": pa.array(data, pa.large_binary())}),
        pl.DataFrame({"id": ["a", "b", "c"], "text": data}),
        pa.table({"id": ["a", "b", "c"], "text": pa.array(TEXTS, pa.string_view())}),
    ):
        strings = to_arrow(table, Columns("id", None, "text")).select(["id", "text"])

        assert strings["text"].to_pylist() == TEXTS
        assert strings.schema.types == [pa.string(), pa.string()]


CHATS = [[{"role": "user", "content": text}, {"role": "assistant", "content": "yes"}] for text in TEXTS]
HIDDEN: dict[str, dict[str, list[Any]]] = {
    "content": {"content": ["", " ", None], "text": TEXTS},
    "headline": {"title": ["", "", ""], "headline": TEXTS, "text": ["x", "x", "x"]},
    "chats": {"text": [None, None, ""], "messages": CHATS},
    "bytes": {"content": [b"", b" ", None], "body": [text.encode() for text in TEXTS]},
    "lists": {"content": [[], [""], None], "text": TEXTS},
    "case": {"text": [None, "", None], "Text": TEXTS},
    "later": {"content": ["", "", TEXTS[0]], "text": TEXTS},
}
"""Columns, the first of which are empty, of which others hold the texts; but of the last all."""


@pytest.mark.parametrize("kind", HIDDEN)
def test_an_empty_column_hides_no_other(kind: str) -> None:
    """Of several columns with usual names the first that holds something is read, in tables of every library."""
    rows = {"id": ["a", "b", "c"], **HIDDEN[kind]}
    columns, expected = pa.table(rows), {"later": []}.get(kind, [("a", "b")])

    for table in (columns, columns.to_pandas(), pl.DataFrame(rows), columns.to_pylist(), columns.to_reader()):
        assert pairs_of(nddup.find_duplicates(table, progress=False)) == expected


@pytest.mark.parametrize("name", ["html", "raw_html", "content"])
def test_a_column_of_pages_has_no_scripts_as_in_a_file(name: str, tmp_path: Path) -> None:
    """A column that is called `html` holds markup, also in parts of pages; of another name each tag is judged alone."""
    pages = [f"<p>{text}</p><script>{number}</script>" for number, text in enumerate(TEXTS)]
    rows = pa.table({"id": ["a", "b", "c"], name: pages})
    pq.write_table(rows, tmp_path / "rows.parquet")
    given = pa.table(nddup.find_duplicates(rows, progress=False).documents)["n_tokens"].to_pylist()
    arguments = ["run", str(tmp_path / "rows.parquet"), "--output", str(tmp_path / "out"), "--engine", "local"]
    assert main([*arguments, "--set", "output.report=false"]) == 0
    assert pq.read_table(tmp_path / "out" / "documents")["n_tokens"].to_pylist() == given
    assert given == [6 + (name == "content")] * 3


def pairs_of(run: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - of any library
    pairs = run.pairs if isinstance(run.pairs, pa.Table) else pa.table(run.pairs)
    return list(zip(pairs["doc_a"].to_pylist(), pairs["doc_b"].to_pylist(), strict=True))


def test_what_is_no_unicode_is_a_reject() -> None:
    """Half a surrogate pair and bytes that are no UTF-8 are rejects, also in an id; the other rows are read."""
    ids, texts = ["a", "b", "c"], [TEXTS[0] + "\ud800", TEXTS[1], TEXTS[2]]
    assert find(pd.DataFrame({"id": ids, "text": texts})) == (["b", "c"], [("a", "malformed")])

    data = [TEXTS[0].encode() + b"\xff", TEXTS[1].encode(), TEXTS[2].encode()]
    assert find(pa.table({"id": ids, "text": data})) == (["b", "c"], [("a", "malformed")])
    assert find(pd.DataFrame({"id": ids, "text": data})) == (["b", "c"], [("a", "malformed")])

    documents, rejects = find(pd.DataFrame({"id": ["a\udcff", "b", "b"], "text": [*texts[1:], b"\xff"]}))
    assert documents == ["b"]
    assert sorted(reason for _, reason in rejects) == ["malformed", "malformed"]


def test_ids_are_the_values_that_a_library_shows() -> None:
    """UUIDs of every library are read as they are written, and integers that Arrow does not have in full."""
    ids = [UUID(int=number << 90) for number in (1, 2, 3)]
    of_arrow = pa.array([one.bytes for one in ids], pa.uuid())
    for column in (pd.Series(ids), pl.Series(ids, dtype=pl.Object), pa.chunked_array([of_arrow[:1], of_arrow[1:]])):
        make = (
            pd.DataFrame
            if isinstance(column, pd.Series)
            else pl.DataFrame
            if isinstance(column, pl.Series)
            else pa.table
        )
        assert find(make({"id": column, "text": TEXTS})) == (list(map(str, ids)), [])

    long = pl.DataFrame({"id": pl.Series([1 << 100, 5, None], dtype=pl.Int128), "text": TEXTS})
    assert find(long) == ([str(1 << 100), "5"], [("None", "no id")])


def test_columns_without_names_have_numbers() -> None:
    """The columns of a frame of pandas that is read without a header are named by their numbers, 0 too."""
    frame = pd.DataFrame([["a", TEXTS[0]], ["b", TEXTS[1]]])
    texts_first = pd.DataFrame([[TEXTS[0], "a"], [TEXTS[1], "b"]])

    due = nddup.find_duplicates(frame.rename(columns={0: "id", 1: "text"}), progress=False).keep
    for table, names in ((frame, (0, 1)), (texts_first, (1, 0))):
        found = nddup.find_duplicates(table, *names, progress=False)  # type: ignore[arg-type]
        assert found.keep.equals(due)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"id": [1, 2], "text": [1, 2]}),
        pd.DataFrame({"id": [1, 2], "text": ["a", 5]}),
        pd.DataFrame({"id": [1, 2], "text": [[1], [2]]}),
        pd.DataFrame({"id": [1, 2], "text": [1.5, None]}),
        pa.table({"id": [1, 2], "text": [{"a": 1}, {"a": 2}]}),
        pa.table({"text": ["a", "b"], "id": [[1], [2]]}),
        pl.DataFrame({"id": [1, 2], "text": [True, False]}),
    ],
)
def test_a_column_of_another_type_is_refused(table: object) -> None:
    """Numbers, lists and the like are no texts: one line names the column and what it holds."""
    with pytest.raises(ConfigError, match=r"^find_duplicates: column '(id|text)' holds [^\n]*; expected text$"):
        nddup.find_duplicates(table, progress=False)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.string_view()])
def test_long_columns_are_cut_into_arrays(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column with more text than one array of strings can hold becomes several, in the same order."""
    monkeypatch.setattr(read_records, "CHUNK_BYTES", 1000)
    texts = [f"text number {at} " * 3 for at in range(99, -1, -1)]
    column = pa.array([text.encode() for text in texts]).cast(pa.binary()).cast(kind)
    table = to_arrow(
        pa.table({"id": [f"{at:02}" for at in range(99, -1, -1)], "text": column}), Columns("id", None, "text")
    )

    numbered = read_records.number_texts(table, id="id", text="text")

    assert table["text"].to_pylist() == texts
    assert numbered["text"].to_pylist() == texts[::-1]
    assert numbered["text"].num_chunks > 3
    assert kind not in (pa.large_string(), pa.binary()) or table["text"].num_chunks > 3


def test_columns_of_rare_types() -> None:
    """Runs of equal values and tuples are read, numbers of numpy are numbers; what Arrow cannot spell is refused."""
    encoded = pa.RunEndEncodedArray.from_arrays([2, 3], [TEXTS[0], TEXTS[2]])
    ids = pa.RunEndEncodedArray.from_arrays([1, 2, 3], ["a", "b", "c"])
    found = nddup.find_duplicates(pa.table({"id": ids, "text": encoded}), progress=False)
    assert found.keep.filter(found.keep["kept"])["doc_id"].to_pylist() == ["a", "c"]

    found = nddup.find_duplicates(
        [{"id": np.int64(at), "text": (text,)} for at, text in enumerate(TEXTS)], progress=False
    )
    assert found.keep["doc_id"].to_pylist() == [0, 1, 2]

    spans = pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval())
    with pytest.raises(ConfigError, match="column 'id' holds month_day_nano_interval; expected text"):
        nddup.find_duplicates(pa.table({"id": spans, "text": TEXTS}), progress=False)


def test_nan_is_missing_and_whole_numbers_are_in_full() -> None:
    """An id of NaN is none, a value of NaN is the last in either direction; 16777216.0 is spelled as in a file."""
    nan, texts = float("nan"), [TEXTS[0], TEXTS[0], TEXTS[2]]
    rows: dict[str, list[float]] = {"id": [16777216.0, 2.5, nan], "score": [nan, 5.0, 1.0]}
    for table in (
        pa.table(rows | {"text": texts}),
        pl.DataFrame(rows | {"text": texts}),
        pa.table({name: pa.array(values, pa.float32()) for name, values in rows.items()} | {"text": texts}),
    ):
        run = nddup.find_duplicates(table, keep={"policy": ["-score"]}, progress=False)
        keep = run.keep if isinstance(run.keep, pa.Table) else run.keep.to_arrow()
        assert sorted(zip(keep["doc_id"].to_pylist(), keep["kept"].to_pylist(), strict=True)) == [
            ("16777216", False), ("2.5", True),
        ]  # fmt: skip
    given = [{"id": nan, "text": TEXTS[0]}, {"id": "a", "text": TEXTS[0]}]
    assert find(given) == (["a"], [("None", "no id")])


def test_values_are_spelled_alike_whatever_the_library() -> None:
    """Numbers, truth values and times are those of Arrow: in pandas, its types of Arrow, objects, and dictionaries.

    As Python writes them, `10 days` came before `2 days`, and no `True` was the `true` of a policy. Of an autumn night
    the moments are told, as in Parquet files.
    """
    autumn = ZoneInfo("Europe/Berlin")
    columns = {
        "number": pa.array([16777216.0, 0.1, 1e-7], pa.float32()),
        "empty": pa.array([1.0, None, 3.0]),
        "truth": pa.array([True, False, True]),
        "span": pa.array([timedelta(days=10), timedelta(days=2), timedelta(seconds=0.5)]),
        "when": pa.array([datetime(2024, 10, 27, 2, 30, fold=fold, tzinfo=autumn) for fold in (1, 0)] + [None]),
    }
    table = pa.table(columns | {"text": TEXTS})
    frame = table.to_pandas(coerce_temporal_nanoseconds=False)
    of_arrow, rows = table.to_pandas(types_mapper=pd.ArrowDtype), table.to_pylist()
    double = table.set_column(0, "number", pa.array([row["number"] for row in rows]))  # as Python has them
    due = values_of(table), values_of(double)

    assert due[0] == [
        ["16777216", "1", "true", "864000000000", "2024-10-27 01:30:00.000000Z"],
        ["0.1", None, "false", "172800000000", "2024-10-27 00:30:00.000000Z"],
        ["1e-7", "3", "true", "500000", None],
    ]
    for given in (frame, frame.convert_dtypes(), frame.astype("category"), of_arrow, pl.DataFrame(table)):
        assert values_of(given) == due[0]
    for given in (double.to_pandas(coerce_temporal_nanoseconds=False).astype(object), rows):
        assert values_of(given) == due[1]


def values_of(table: object) -> list[list[str | None]]:
    """Return the values of each row as a policy of all columns reads them."""
    read = to_arrow(as_table(table, list), Columns(None, None, "text", ("number", "empty", "truth", "span", "when")))
    return list(read["policy"].to_pylist())


def test_whole_floats_are_ids_as_the_integers_they_are() -> None:
    """Integers with a missing one are floats in pandas; what a run keeps is found among them again."""
    pages = pd.DataFrame({"id": [3, None, 1], "text": [TEXTS[2], TEXTS[0], TEXTS[0]]})
    keep = nddup.find_duplicates(pages, progress=False).keep

    assert pages[pages["id"].isin(keep.query("kept")["doc_id"])]["text"].tolist() == [TEXTS[2], TEXTS[0]]


def test_the_first_row_is_kept_where_the_first_is_asked_for(tmp_path: Path) -> None:
    """Not that of the smallest id as text, of which 10 comes before 9; also as a column, backwards and without ids."""
    texts = [*(f"row {at} says {at} in its own words" for at in range(9)), TEXTS[0], TEXTS[0]]
    frame = pd.DataFrame({"text": texts, "id": [f"d{at}" for at in range(11)], "rank": 1})
    first: list[tuple[dict[str, Any], str]] = [({"policy": "first"}, "d9"), ({"policy": ["rank", "first"]}, "d9")]
    for keep, due in [*first, ({"policy": ["-first"]}, "d10"), ({"policy": "first-id"}, "d10")]:
        for table in (frame, pl.DataFrame(frame), pa.table(frame), frame.to_dict("records"), frame.drop(columns="id")):
            given = nddup.find_duplicates(table, keep=keep, progress=False).keep
            rows = (given if isinstance(given, pa.Table) else pa.table(given)).to_pylist()
            kept = {str(row["doc_id"]).removeprefix("d") for row in rows if row["kept"]}
            assert kept & {"9", "10"} == {due[1:]}
    repo = nddup.repository.create(tmp_path / "repo", keep={"policy": "first"})
    repo.add([{"id": "d9", "text": TEXTS[0]}, {"id": "d10", "text": TEXTS[0]}])
    assert repo.tables()["keep"].filter(pc.field("kept"))["doc_id"].to_pylist() == ["d9"]


@pytest.mark.spark
def test_rows_of_spark_have_no_first(spark: SparkSession) -> None:
    """They have no order."""
    rows = spark.sql("SELECT 1 AS id, 'a' AS text")
    for policy in ("first", ["-first"]):
        with pytest.raises(ConfigError, match=r"rows on Spark have no order; name a column, or first-id"):
            nddup.find_duplicates(rows, keep={"policy": policy}, progress=False)


ODD_FLOATS = [
    float("inf"), -float("inf"), -0.0, 0.001, 0.0005, -0.00012345678901234567, 0.000001, 1.5e-06, 9.9e-07, 1e-7, 1e-300,
    12345678.5, 9999999999.5, 12345678901.5, -123456789012345.25, 1e18, 2e19, 1.5e300, 1e22, -1234567.5, 1e-5,
]  # fmt: skip


@pytest.mark.spark
def test_floats_and_times_are_named_alike_on_both_engines(spark: SparkSession) -> None:
    """Also where the zone of the session gives two times of one night one name; values of the policy are the same."""
    times = [1_729_989_000_000_000, 1_729_992_600_000_000, -100]  # 00:30 and 01:30 of an autumn night, UTC
    columns = {
        "when": pa.array(times, pa.timestamp("us", "UTC")),
        "plain": pa.array(times, pa.timestamp("us")),
        "number": pa.array([1.0, 2.5, 1e15]),
        "short": pa.array([float("nan"), 0.1, 16777216.0], pa.float32()),
        "title": pa.array([2e7, 0.1, 1e15]),
        **dict(zip("abcdefg", (pa.array(ODD_FLOATS[at : at + 3]) for at in range(0, 21, 3)), strict=True)),
    }
    table = pa.table(columns | {"text": TEXTS})
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        found = []
        for frame in (table, spark.createDataFrame(table).withColumn("plain", F.col("plain").cast("timestamp_ntz"))):
            run = nddup.find_duplicates(
                frame, id="when", keep={"policy": ["plain", "number", "short", *"abcdefg"]}, progress=False
            )
            rows = run.documents if isinstance(run.documents, pa.Table) else run.documents.toArrow()
            found.append(sorted(map(str, rows.select(["doc_id", "policy", "content_fingerprint"]).to_pylist())))
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    assert found[0] == found[1]
    assert len(set(found[0])) == len(TEXTS)


@pytest.mark.spark
def test_a_column_of_another_type_is_refused_on_spark(spark: SparkSession) -> None:
    """A DataFrame of Spark whose texts are numbers, or whose ids are lists, is refused in the same words."""
    for columns, kind in (("1 AS id, 2 AS text", "int"), ("array(1) AS id, 'a' AS text", "array<int>")):
        with pytest.raises(ConfigError, match=f"holds {kind}; expected text"):
            nddup.find_duplicates(spark.sql(f"SELECT {columns}"), progress=False)


def test_settings_of_numpy_and_tuples_are_those_of_python() -> None:
    """A program computes its settings: numbers of numpy, tuples, sets and paths mean what Python's own values do."""
    rows = [{"id": at, "text": text, "score": at} for at, text in enumerate(TEXTS)]
    given: dict[str, object] = {"sketch": {"size": np.int64(100)}, "pairs": {"threshold": np.float32(0.9)}}
    given |= {"keep": {"policy": ("-score",)}, "tokens": {"ignore": {"numbers"}}}
    found = nddup.find_duplicates(rows, progress=False, **given)  # type: ignore[arg-type]
    settings = found.settings
    assert (settings.sketch.size, settings.pairs.threshold, settings.keep.policy, settings.tokens.ignore) == (
        100, 0.9, ["-score"], ["numbers"],
    )  # fmt: skip
    assert nddup.find_duplicates(rows, keep={"policy": np.array(["-score"])}, progress=False).settings.keep.policy == [
        "-score"
    ]


def test_no_rows_are_a_run_without_documents() -> None:
    """An empty list is a table without rows, as those of the libraries are."""
    found = nddup.find_duplicates([], id="url", text="body", keep={"policy": ["-score"]}, progress=False)
    assert len(found.keep) == len(found.documents) == len(found.rejects) == 0


@pytest.mark.spark
@pytest.mark.parametrize("kind", first(1, ["chats", "content", "bytes", "later"]))
def test_an_empty_column_hides_no_other_on_spark(kind: str, spark: SparkSession) -> None:
    """As of other tables, bytes and chats too."""
    columns = {"id": ["a", "b", "c"], **HIDDEN[kind]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    chat = "array<struct<role: string, content: string>>"
    kinds = {"chats": f"text string, messages {chat}", "bytes": "content binary, body binary"}
    df = spark.createDataFrame(rows, f"id string, {kinds.get(kind, 'content string, text string')}")

    with nddup.find_duplicates(df, progress=False) as run:
        found = [(row.doc_a, row.doc_b) for row in run.pairs.collect()]

    assert found == ([] if kind == "later" else [("a", "b")])


@pytest.mark.spark
def test_a_stream_of_spark_is_refused(spark: SparkSession) -> None:
    """In a line: it never ends."""
    rates = spark.readStream.format("rate").load().selectExpr("value id", "'' content", "'a' text")
    with pytest.raises(ConfigError, match="a streaming DataFrame never ends"):
        nddup.find_duplicates(rates)


SPACED = [" a", "a ", "a", "b\tc", "b c", "\ufeffd", "  "]
"""Ids as a table may have them, such as those of a column CHAR(2): they are joined with the answer as they are."""


def test_ids_stay_as_they_are() -> None:
    """The ids of a table are those of the answer, with all their blanks, so that a join finds each."""
    table = pa.table({"id": SPACED, "text": [TEXTS[0]] * len(SPACED)})

    assert find(table) == (sorted(SPACED), [])


@pytest.mark.spark
def test_ids_stay_as_they_are_on_spark(spark: SparkSession) -> None:
    """Those of a DataFrame of Spark likewise."""
    df = spark.createDataFrame([(one, TEXTS[0]) for one in SPACED], "id string, text string")

    with nddup.find_duplicates(df, progress=False) as run:
        assert df.join(run.keep, df.id == run.keep.doc_id).count() == len(SPACED)


def test_an_index_with_a_name_is_a_column() -> None:
    """Where pandas has the ids as the index, by the usual name or a given one, these are read; a column comes first."""
    named = pd.DataFrame({"text": TEXTS}, index=pd.Index(["x", "y", "z"], name="id"))
    several = named.rename_axis("url").set_index(pd.Index([7, 8, 9], name="n"), append=True)
    both = named.assign(id=["a", "b", "c"])

    assert find(named)[0] == ["x", "y", "z"]
    assert list(named.columns) == ["text"]
    assert nddup.find_duplicates(several, id="n", progress=False).keep["doc_id"].tolist() == [7, 8, 9]
    assert find(both)[0] == ["a", "b", "c"]


@pytest.mark.spark
def test_of_lists_with_one_id_both_engines_take_the_same(spark: SparkSession) -> None:
    """They order them by the same JSON, which a reject shows; half a character stays what cannot be read."""
    lists = [["z b", "c"], ["ж b", "c"], ['"\\ \n', "😀"]]
    given = pa.table({"id": ["x", "x", None], "text": pa.array(lists, pa.list_(pa.string()))})

    here = nddup.find_duplicates(given, progress=False)
    there = nddup.find_duplicates(spark.createDataFrame(given), progress=False)
    assert here.documents.to_pylist() == [row.asDict() for row in there.documents.collect()]
    rejects = sorted(here.rejects.to_pylist(), key=json.dumps)
    assert rejects == sorted((row.asDict() for row in there.rejects.collect()), key=json.dumps)

    half = nddup.find_duplicates([{"id": "x", "text": ["a \ud800 b"]}], progress=False)
    assert half.documents["unread_bytes"].to_pylist() == [1]


OBJECTS: list[dict[str, Any]] = [
    {"a": {"key": 7, "in": {"text": TEXTS[0]}, "x.y": 3.0}},
    {"a": {"key": 8, "in": {"text": TEXTS[1]}, "x.y": 9.5}},
    {"a": {"key": 9, "in": None, "x.y": None}},
    {"a": None},
]
LIBRARIES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "stream": lambda table: table.to_reader(),
    "polars": pl.DataFrame,
    "lazy": lambda table: pl.DataFrame(table).lazy(),
    "dictionaries": lambda table: table.to_pylist(),
    "pandas": lambda table: pd.DataFrame(table.to_pylist()),
    "pandas of arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "spark": lambda table: SparkSession.active().createDataFrame(table),
}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("library", LIBRARIES)
def test_fields_of_objects_are_named_with_dots(library: str) -> None:
    """As in files: the id keeps its type, and a missing object is a missing value."""
    given = LIBRARIES[library](pa.Table.from_pylist(OBJECTS))

    run = nddup.find_duplicates(
        given, id="a.key", text="a.in.text", keep={"policy": ["-a.x.y:number"]}, progress=False,
        input={"max_rejects": None},
    )  # fmt: skip

    keep, rejects = (one.toArrow() if hasattr(one, "toArrow") else pa.table(one) for one in (run.keep, run.rejects))
    told = zip(*(keep[name].to_pylist() for name in ("doc_id", "kept", "duplicate_of")), strict=True)
    assert sorted(told) == [(7, False, 8), (8, True, None)]
    assert rejects.num_rows == 2


def test_a_column_of_the_whole_name_precedes_a_field() -> None:
    """A column `a.text` is read, not the field `text` of `a`; a field that is not there is refused with the columns."""
    rows = [{"a": {"text": "x"}, "a.text": TEXTS[0]}, {"a": {"text": "y"}, "a.text": TEXTS[1]}]

    for table in (rows, pa.Table.from_pylist(rows), pd.DataFrame(rows)):
        run = nddup.find_duplicates(table, text="a.text", progress=False)
        assert pa.table(run.pairs).num_rows == 1
        with pytest.raises(ConfigError, match=r"no column 'a\.other'; there are a, a\.text"):
            nddup.find_duplicates(table, text="a.other", progress=False)
