"""Files that Spark rewrites: the same bytes as those of the embedded engine."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.reading.streams import PIECE
from nddup.settings.load import build_config
from nddup.spark.run import run_job
from nddup.spark.session import set_to
from nddup.stages import written_records
from tests.rewriting.written_shards import FORMS, write_parquet, write_shards
from tests.samples_by_night import by_day_if_changed, first

pytestmark = pytest.mark.spark
SETTINGS: dict[str, Any] = {
    "shingle": {"length": 2},
    "pairs": {"threshold": 0.9},
    "keep": {"ledger": ["nddup_source"]},
    "output": {"kept": "as-input", "tagged": "as-input", "texts": 0, "report": False, "weights": "log2",
               "columns": ["equal", "from=nddup_source", "first=nddup_source:least"]},
}  # fmt: skip


LOSING = {
    "spark.sql.files.maxRecordsPerFile": "2",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
}
"""Settings of a cluster under which Spark's own writers cut files, and its readers skip some."""


@by_day_if_changed("nddup/rewriting", "nddup/spark", "nddup/stages", "nddup/embedded")
def test_both_engines_write_the_same_bytes(spark: SparkSession, tmp_path: Path) -> None:
    """For every format, in some encodings and compressions, the names, shards and bytes of both engines are equal.

    Whatever the settings of the session, for files of several pieces, names with a colon, and an output given as a URI.
    """
    for name in ("jsonl", "jsonl.gz", "pairs", "xml.bz2", "xml.utf16", "trec", "warc.gz", "csv"):
        write_shards(FORMS[name], tmp_path / "in" / name, f"{name}-10:30-")
    write_parquet(tmp_path / "in" / "parquet", "parquet-")
    long = [" ".join(f"w{number}-{at}" for at in range(PIECE // 24)) for number in range(6)]
    lines = [f'{{"id": "long{number}", "text": "{text}"}}\n' for number, text in enumerate([*long, long[0]])]
    (tmp_path / "in" / "long.jsonl").write_text("".join(lines))
    config = build_config(SETTINGS, origin="test")
    run_locally([str(tmp_path / "in")], str(tmp_path / "local"), config)
    with set_to(spark, LOSING):
        run_job(spark, [str(tmp_path / "in")], (tmp_path / "on [1] spark").as_uri(), config)

    assert (tmp_path / "local" / "kept" / "long.jsonl").stat().st_size > 2 * PIECE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "local", "on [1] spark"]
    for name in ("kept", "tagged"):
        both = [
            {str(path.relative_to(tmp_path / at / name)): path.read_bytes()
             for path in (tmp_path / at / name).rglob("*") if path.is_file() and not path.name.endswith(".crc")}
            for at in ("local", "on [1] spark")
        ]  # fmt: skip
        assert both[0].keys() == both[1].keys()
        assert [name for name in both[0] if both[0][name] != both[1][name]] == []


def test_pages_texts_and_mail_end_as_they_did(spark: SparkSession, tmp_path: Path) -> None:
    """Files that end with any byte keep it, compressed or not; of a removed page or text there is no file."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name, end in (("a", b"\n"), ("b", b"\n\n"), ("c", b""), ("d", b" ")):
        page, text = (" ".join(f"{kind}{max(name, 'b')}{number}" for number in range(20)).encode() for kind in "pt")
        (folder / f"{name}.html").write_bytes(b"<html><p>" + page + b"</p></html>" + end)
        (folder / f"{name}.txt.gz").write_bytes(gzip.compress(text + end))
    mail = "From x@y Thu Jan  1 00:00:00 2026\nSubject: one\n\nnothing of the sort, and more words\n\n"
    (folder / "some.mbox").write_text(mail + mail.rstrip())
    inner = "Content-Type: message/rfc822\n\nSubject: two\n\n" + " ".join(f"inner{number}" for number in range(20))
    other = inner.replace("inner1", "other")
    outer = f'From x@y Thu Jan  1 00:00:00 2026\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n{other}\n--b--\n'
    (folder / "deep.mbox").write_text(outer + mail + outer.replace(other, inner + f"\n--b\n{inner}"))
    config = build_config(SETTINGS | {"output": {"kept": "as-input", "report": False}}, origin="test")
    run_locally([str(folder)], str(tmp_path / "local"), config)
    run_job(spark, [str(folder)], str(tmp_path / "spark"), config)

    here, there = (
        {path.name: path.read_bytes() for path in (tmp_path / at / "kept").iterdir() if path.suffix != ".crc"}
        for at in ("local", "spark")
    )
    assert here == there
    assert {"c.html", "d.html", "some.mbox"} < there.keys()
    assert len(there) < len(list(folder.iterdir()))


def rows_of(file: Path) -> tuple[list[dict[str, Any]], object]:
    """Return the rows of a Parquet file in their order, and its columns with their types and compressions."""
    table, told = pq.read_table(file), pq.ParquetFile(file).metadata
    kinds = {told.row_group(at).column(0).compression for at in range(told.num_row_groups) if len(table)}
    return table.to_pylist(), (table.schema.remove_metadata(), kinds)


@pytest.mark.parametrize("form", first(1, ["parquet", "xml", "jsonl"]))
def test_kept_documents_of_another_form_are_the_same_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Names, number, order, columns and compression of the files of `kept` are equal, and the lines byte for byte.

    Each file has the kept documents of its share of all records, in their order; only the first may be without any.
    """
    words = [" ".join(f"w{number}-{at}" for at in range(20)) for number in range(40)]
    lines = [json.dumps({"id": f"l{at}", "text": words[at], "more": [None, "é\u007f"]}) + "\n" for at in range(10)]
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text("broken\n" * 10 + "".join(lines))
    (folder / "b.csv").write_text("id,text\n" + "".join(f'c{at},"\x1f/ ""{words[at % 10]}"\n' for at in range(30)))
    for at in range(30, 40):
        (folder / f"c{at}.html").write_text(f"<html><p>\u2028<b>{words[at]}</b></p></html>")
    size = sum(path.stat().st_size for path in folder.iterdir())
    monkeypatch.setattr(written_records, "FILE_BYTES", -(-size // 6))
    given = SETTINGS | {"output": {**SETTINGS["output"], "kept": form, "tagged": "none"}}
    given |= {"keep": {**SETTINGS["keep"], "policy": "first"}, "input": {"max_rejects": 0.5}}
    config = build_config(given, origin="test")
    run_locally([str(folder)], str(tmp_path / "here"), config)
    with set_to(spark, LOSING):
        run_job(spark, [str(folder)], str(tmp_path / "there"), config)

    here, there = (sorted(path for path in (tmp_path / at / "kept").iterdir()) for at in ("here", "there"))
    assert [path.name for path in here] == [path.name for path in there]
    if form == "parquet":
        assert list(map(rows_of, here)) == list(map(rows_of, there))
    else:
        assert [path.read_bytes() for path in here] == [path.read_bytes() for path in there]
    # The oracle: the table of documents tells the number of each record, that of the kept ones who stays.
    kept = {row["doc_id"] for row in pq.read_table(tmp_path / "here/keep").to_pylist() if row["kept"]}
    keys = {row["doc_id"]: row["doc_key"] for row in pq.read_table(tmp_path / "here/documents").to_pylist()}
    due = {number: sorted((keys[name], name) for name in kept if keys[name] // 10 == number) for number in range(6)}
    ending = "zstd.parquet" if form == "parquet" else form
    assert [path.name for path in here] == [f"part-{at:05}.{ending}" for at in due if due[at] or not at]
    assert [len(due[at]) for at in due] == [0, 10, 0, 0, 0, 10]
    if form == "parquet":
        assert [[row["doc_id"] for row in rows_of(path)[0]] for path in here] == [
            [name for _, name in due[at]] for at in due if due[at] or not at
        ]
