"""The embedded engine numbers given texts as Spark does."""

import json

import pyarrow as pa
from pyspark.sql import SparkSession

from nddup import find_duplicates
from nddup.embedded.read_records import number_texts
from nddup.spark import scan

ROWS = [
    *((name, f"text {n} " * n) for name in ("b", "a", "é", "B", "") for n in (1, 3, 40)),
    *((None, text) for text in ("x", None, "ы" * 33, "")),
    ("a", None), ("z", "alone"),
]  # fmt: skip


def test_texts_are_numbered_alike(spark: SparkSession) -> None:
    """Both engines order texts by id as bytes, nulls last, and texts of one id, or of none, by their bytes."""
    ids, texts = zip(*ROWS, strict=True)
    table = pa.table({"id": pa.array(ids, pa.string()), "body": pa.array(texts, pa.string())})

    ours = number_texts(table, id="id", text="body")
    theirs = scan.number_texts(spark.createDataFrame(table), id="id", text="body").toArrow()
    in_order = theirs.sort_by([("split", "ascending"), ("seq", "ascending")])

    assert list(zip(ours["doc_id"].to_pylist(), ours["text"].to_pylist(), strict=True)) == list(
        zip(in_order["doc_id"].to_pylist(), in_order["text"].to_pylist(), strict=True)
    )
    assert ours["seq"].to_pylist() == list(range(len(ROWS)))


def test_of_lists_with_one_id_both_engines_take_the_same(spark: SparkSession) -> None:
    """They order them by the same JSON, which a reject shows; half a character stays what cannot be read."""
    lists = [["z b", "c"], ["ж b", "c"], ['"\\ \n', "😀"]]
    given = pa.table({"id": ["x", "x", None], "text": pa.array(lists, pa.list_(pa.string()))})

    here = find_duplicates(given, progress=False)
    there = find_duplicates(spark.createDataFrame(given), progress=False)
    assert here.documents.to_pylist() == [row.asDict() for row in there.documents.collect()]
    rejects = sorted(here.rejects.to_pylist(), key=json.dumps)
    assert rejects == sorted((row.asDict() for row in there.rejects.collect()), key=json.dumps)

    half = find_duplicates([{"id": "x", "text": ["a \ud800 b"]}], progress=False)
    assert half.documents["unread_bytes"].to_pylist() == [1]
