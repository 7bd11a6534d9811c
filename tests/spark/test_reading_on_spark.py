"""From files to numbered records: every record once, whatever the splits, file names and encodings."""

import bz2
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from nddup.scanning.collection import find_files
from nddup.scanning.sketch_records import SketchRecords
from nddup.settings.load import build_config
from nddup.settings.plan import record_limits, sketch_rule
from nddup.spark import heavy_keys
from nddup.spark.heavy_keys import MOST_BROADCAST, in_parts
from nddup.spark.pairing import collapse
from nddup.spark.scan import scan
from nddup.spark.session_files import Storage

SPLIT_BYTES = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
WORDS = ["яблоко", "груша", "слива", "вишня", "малина", "клюква", "рябина", "калина", "смородина", "крыжовник"]


@pytest.fixture
def small_splits(spark: SparkSession) -> Iterator[None]:
    """Set splits of 2,000 bytes, so that records of some hundred bytes lie across their ends."""
    before = {key: spark.conf.get(key) for key in SPLIT_BYTES}
    for key in SPLIT_BYTES:
        spark.conf.set(key, "2000")
    yield
    for key, value in before.items():
        spark.conf.set(key, str(value))


def read(spark: SparkSession, *inputs: Path, splits: int = 0, **settings: dict[str, Any]) -> DataFrame:
    """Return the numbered records of these inputs, as the job reads them."""
    config = build_config(settings, origin="test")
    files = Storage(spark)
    found = find_files(files, [str(path) for path in inputs], config.input)
    records = scan(spark, found, SketchRecords(sketch_rule(config)), files=files, limits=record_limits(config))
    return collapse.number(records, collapse.split_offsets(records), splits)


@pytest.mark.usefixtures("small_splits")
def test_splits_too_many_to_broadcast_give_the_same_numbers(spark: SparkSession, tmp_path: Path) -> None:
    """With too many splits to broadcast, records and offsets are merged by a shuffle, and records get the same keys."""
    for name in ("a", "b"):
        lines = (f'{{"id": "{name}{number}", "text": "{"word " * 20}{number}"}}\n' for number in range(100))
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    numbered = read(spark, tmp_path)
    shuffled = read(spark, tmp_path, splits=MOST_BROADCAST + 1)

    assert shuffled.select("source", "split").distinct().count() > 10
    assert rows(shuffled.select("doc_key", "record", "doc_id")) == rows(numbered.select("doc_key", "record", "doc_id"))
    plans = [table._jdf.queryExecution().optimizedPlan().toString() for table in (numbered, shuffled)]  # noqa: SLF001
    assert ["strategy=merge" in plan for plan in plans] == [False, True]


def test_files_too_many_for_one_broadcast_give_the_same_records(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many files for one broadcast are read in parts, each with its own, and give the same records."""
    for name in "abcdefg":
        (tmp_path / f"{name}.jsonl").write_text(f'{{"id": "{name}", "text": "one"}}\n{{"text": "{name}"}}')
    expected = rows(read(spark, tmp_path))
    monkeypatch.setattr(heavy_keys, "MOST_BROADCAST", 3)

    found = read(spark, tmp_path)

    assert rows(found) == expected
    assert len(expected) == 14
    assert len(in_parts(range(7))) == 3


def rows(table: DataFrame) -> list[Row]:
    """Return all rows in collection order."""
    return table.orderBy("doc_key").collect()


def text_of(number: int) -> str:
    """Return a distinct text for each number, some dozen to some hundred bytes long."""
    return " ".join([*(WORDS[(number + i) % len(WORDS)] for i in range(3 + number % 17)), str(number)])


def xml_of(count: int) -> str:
    """Return a collection of plain XML documents."""
    documents = "\n".join(f"<doc><id>{n:03}</id><text>{text_of(n)}</text></doc>" for n in range(count))
    return f"<?xml version='1.0'?>\n<docs>\n{documents}\n</docs>\n"


def lines_of(count: int) -> str:
    """Return the same collection as JSON lines."""
    return "".join(json.dumps({"id": f"{n:03}", "text": text_of(n)}, ensure_ascii=False) + "\n" for n in range(count))


def test_fixtures_give_the_documents_they_are_documented_to_hold(spark: SparkSession, shared: Path) -> None:
    """Each fixture gives 30 documents with their ids in order; the cut one gives 29 and a reject."""
    fixtures = shared / "ruweb" / "fixtures"
    expected = json.loads((fixtures / "expected.json").read_text())
    files = sorted(fixtures.glob("*.xml"))

    found = rows(read(spark, *files))

    for file in files:
        mine = [row for row in found if row["source"] == file.name]
        is_cut = file.name == "romip_broken_truncated.xml"
        assert [row["record"] for row in mine] == list(range(1, 31))
        assert [row["reason"] for row in mine] == [None] * 29 + ["truncated" if is_cut else None]
        prefix = "040404-" if file.name == "romip_news.xml" else ""
        ids = [f"{prefix}{document['doc_id']}" for document in expected]
        assert [row["doc_id"] for row in mine][:29] == ids[:29]
    assert [row["doc_key"] for row in found] == list(range(30 * len(files)))


def test_shapes_of_one_collection_have_the_same_sketches(spark: SparkSession, shared: Path) -> None:
    """The XML form of a collection does not change the sketches."""
    names = ("romip_prefixed_root.xml", "romip_default_ns_cp1251.xml", "romip_xml11.xml")

    found = rows(read(spark, *(shared / "ruweb" / "fixtures" / name for name in names)))

    sketches = [[row["sketch"] for row in found if row["source"] == name] for name in names]
    assert sketches[0] == sketches[1] == sketches[2]


@pytest.mark.usefixtures("small_splits")
@pytest.mark.parametrize("form", ["xml", "jsonl"])
def test_every_record_is_read_once_however_a_file_is_split(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """Records that lie across the ends of splits are neither lost nor read twice, and keep their numbers."""
    text = (xml_of if form == "xml" else lines_of)(100)
    (tmp_path / f"a.{form}").write_text(text, encoding="utf-8")
    (tmp_path / f"b.{form}.bz2").write_bytes(bz2.compress(text.encode(), 1))
    (tmp_path / f"c.{form}.gz").write_bytes(gzip.compress(text.encode()))

    found = rows(read(spark, tmp_path))

    assert [row["doc_id"] for row in found] == [f"{n:03}" for n in range(100)] * 3
    assert [row["record"] for row in found] == list(range(1, 101)) * 3
    assert {row["reason"] for row in found} == {None}
    assert len({row["split"] for row in found if row["source"] == f"a.{form}"}) > 4


def test_files_of_any_name_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """A file whose name looks like a pattern or an escape is read under its literal name."""
    names = ["a b.xml", "кот.xml", "a#b.xml", "a%20b.xml", "c[1].xml", "c{1,2}.xml", "q?x.xml", "s*.xml", "é;&+.xml"]
    for name in [*names, "c1.xml"]:
        (tmp_path / name).write_text(
            xml_of(2).replace("<id>", f"<id>{names.index(name)}-" if name in names else "<id>")
        )

    found = rows(read(spark, *(tmp_path / name for name in names)))

    assert sorted(row["source"] for row in found) == sorted([*names, *names])
    assert {row["reason"] for row in found} == {None}


def test_folders_named_like_partitions_are_plain_folders(spark: SparkSession, tmp_path: Path) -> None:
    """A folder `year=2020` beside others adds no column and hides no file."""
    for name in ("year=2020/a.xml", "other/b.xml", "c.xml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(xml_of(1), encoding="utf-8")

    assert [row["source"] for row in rows(read(spark, tmp_path))] == ["c.xml", "other/b.xml", "year=2020/a.xml"]


@pytest.mark.parametrize("encoding", ["windows-1251", "koi8-r", "utf-16"])
def test_a_file_in_another_encoding_gives_the_same_sketches(spark: SparkSession, tmp_path: Path, encoding: str) -> None:
    """The encoding of a file does not change the sketches."""
    (tmp_path / "a.xml").write_text(xml_of(20), encoding="utf-8")
    declared = xml_of(20).replace("<?xml version='1.0'?>", f"<?xml version='1.0' encoding='{encoding}'?>")
    (tmp_path / "b.xml").write_bytes(declared.encode(encoding))

    found = rows(read(spark, tmp_path))

    assert [row["reason"] for row in found] == [None] * 40
    assert [row["sketch"] for row in found[:20]] == [row["sketch"] for row in found[20:]]
    assert [row["doc_id"] for row in found[:20]] == [row["doc_id"] for row in found[20:]]


def test_json_lines_in_another_encoding_need_the_setting(spark: SparkSession, tmp_path: Path) -> None:
    """JSON lines declare no encoding; `input.charset` sets it."""
    (tmp_path / "a.jsonl").write_bytes(lines_of(20).encode("koi8-r"))
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "b.jsonl").write_text(lines_of(20), encoding="utf-8")

    given = rows(read(spark, tmp_path / "a.jsonl", input={"charset": "koi8-r"}))
    plain = rows(read(spark, tmp_path / "u"))

    assert [row["sketch"] for row in given] == [row["sketch"] for row in plain]


@pytest.mark.parametrize("form", ["xml", "jsonl"])
def test_ids_stay_as_they_are_written_or_are_made_of_the_place(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """The id `007` does not become 7; a document without an id gets one from its source and record."""
    if form == "xml":
        text = "<docs><doc><id> 007 </id><text>a</text></doc><doc><text>b</text></doc></docs>"
    else:
        text = '{"id": "007", "text": "a"}\n\n{"text": "b"}\n'
    (tmp_path / f"a.{form}").write_text(text)

    assert [row["doc_id"] for row in rows(read(spark, tmp_path))] == ["007", f"a.{form}#2"]


def test_files_of_equal_names_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Files of the same name in two inputs give distinct ids to documents without ids."""
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')

    found = rows(read(spark, tmp_path / "y", tmp_path / "x"))

    assert [row["doc_id"] for row in found] == ["x/a.jsonl#1", "x/a.jsonl#2", "y/a.jsonl#1", "y/a.jsonl#2"]


def test_files_of_several_formats_are_read_together(spark: SparkSession, tmp_path: Path) -> None:
    """The format of each file is detected from its own head; keys follow the order of the sources."""
    (tmp_path / "b.jsonl").write_text(lines_of(2), encoding="utf-8")
    (tmp_path / "a.xml").write_text(xml_of(2), encoding="utf-8")

    found = rows(read(spark, tmp_path))

    assert [(row["doc_key"], row["source"], row["record"]) for row in found] == [
        (0, "a.xml", 1),
        (1, "a.xml", 2),
        (2, "b.jsonl", 1),
        (3, "b.jsonl", 2),
    ]
    assert found[0]["sketch"] == found[2]["sketch"]
