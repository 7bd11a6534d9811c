"""The embedded engine numbers given texts as Spark does."""

import pyarrow as pa
from pyspark.sql import SparkSession

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
