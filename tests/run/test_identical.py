"""No result depends on partitions, splits, the order of the inputs, or chance."""

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from nddup import find_duplicates
from nddup.embedded.run import run_locally
from nddup.ground.metrics import ENGINES_OWN
from nddup.reading.detect import read_head
from nddup.reading.records import Record, parse_record, record_text
from nddup.settings.load import build_config
from nddup.spark.steps import documents, one_task
from tests.finished_runs import run_over, sorted_tables
from tests.places import ROOT

SAMPLE = ROOT / "samples" / "debdocs"
PAGES = 90
LONGEST = 12_000
"""Bytes below which a record is taken into the collection: short pages keep the runs short."""

PARTITIONS, SPLITS = "spark.sql.shuffle.partitions", "spark.sql.files.maxPartitionBytes"
SETTINGS: dict[str, Any] = {"pairs": {"threshold": 0.7}, "output": {"report": False}}
Rows = dict[str, list[str]]
Run = tuple[Rows, dict[str, Any]]


@pytest.fixture(scope="module")
def three_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three files of some 50 real pages with near-duplicates across them; one is compressed, one has a bad record."""
    folder = tmp_path_factory.mktemp("collection")
    likes = [
        line.split("\t")[:2] for line in (SAMPLE.with_name("debdocs_truth_w5_j070.tsv")).read_text().splitlines()[1:]
    ]
    paths = []
    for number, name in enumerate(("debdocs.0.xml", "debdocs.1.xml", "debdocs.2.xml.gz")):
        data = (SAMPLE / name).read_bytes()
        text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
        head, rest = text.split("<document>", 1)
        found = re.findall(r"<document>.*?</document>\n?", "<document>" + rest, re.DOTALL)
        ids = re.findall(r"<docID>(\d+)</docID>", rest)
        short = {doc_id: record for doc_id, record in zip(ids, found, strict=True) if len(record) < LONGEST}
        wanted = [doc_id for pair in likes for doc_id in pair if doc_id in short]
        chosen = list(dict.fromkeys(wanted + sorted(short)))[: PAGES // 3]
        records = [short[doc_id] for doc_id in sorted(chosen, key=int)]
        if number == 1:
            records.insert(20, "<document><docID>bad</docID><content encoding='base64'>?</wrong></document>\n")
        whole = (head + "".join(records) + "</romip:dataset>\n").encode()
        path = folder / name
        path.write_bytes(gzip.compress(whole, mtime=0) if name.endswith(".gz") else whole)
        paths.append(path)
    return paths


@contextmanager
def set_to(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Change settings of the session within a block, and restore them after it."""
    before = {key: str(spark.conf.get(key)) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def tables_and_counts(spark: SparkSession, inputs: list[Path], output: Path, **settings: str) -> Run:
    """Run the whole job; returns its tables as sorted rows, and its counts."""
    with set_to(spark, settings):
        metrics = run_over(spark, inputs, output, {**SETTINGS, "spark": settings})
    return tables_of(output), counts_of(metrics)


def tables_of(output: Path) -> Rows:
    """Return the tables of a run as sorted rows, and the lines of duplicates.txt."""
    lines = (output / "duplicates.txt").read_text(encoding="utf-8").splitlines()
    return sorted_tables(output) | {"duplicates.txt": lines}


def counts_of(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of rows, records and sets, without bytes, settings, versions and `ENGINES_OWN`."""
    left_out = ENGINES_OWN | {"bytes", "settings", "versions"}
    return {
        key: counts_of(value) if isinstance(value, dict) else value
        for key, value in metrics.items()
        if key not in left_out
    }


@pytest.fixture(scope="module")
def first(three_files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The embedded engine's tables and counts, with which the runs on Spark are compared."""
    output = tmp_path_factory.mktemp("first") / "run"
    metrics = run_locally([str(path) for path in three_files], str(output), build_config(SETTINGS, origin="test"))
    return tables_of(output), counts_of(metrics)


def test_the_collection_has_something_of_everything(first: Run) -> None:
    """The collection gives a reject, pairs, clusters and removed documents, so that the comparison means something."""
    tables, metrics = first

    assert {name for name, rows in tables.items() if not rows} <= {"false_components", "texts"}
    assert len(tables["documents"]) == PAGES
    assert len(tables["rejects"]) == 1
    assert len(tables["pairs"]) > 50
    assert len(tables["clusters"]) > 15
    assert metrics["records"] == PAGES + 1
    assert metrics["stages"]["keep"]["removed"] > 20


@pytest.mark.nightly  # by day `test_families.py` has other partitions, splits and another order
def test_another_machine_and_another_order_change_nothing(
    spark: SparkSession, three_files: list[Path], first: Run, tmp_path: Path
) -> None:
    """
    A run with other partitions, other splits and the input files in another order gives the same tables.

    All of these are changed at once, so a dependence on any of them, or on chance, shows as a difference. The run is
    compared with the embedded engine, which has no partitions and splits no file; `test_resume` compares it with runs
    in one partition.
    """
    inputs = [three_files[number] for number in (2, 0, 1)]

    tables, metrics = tables_and_counts(spark, inputs, tmp_path / "run", **{PARTITIONS: "3", SPLITS: str(32 << 10)})

    assert tables == first[0]
    assert metrics == first[1]


def test_where_tasks_find_too_many_records_the_driver_gets_none(
    spark: SparkSession, three_files: list[Path], first: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files of many records: the tables are the same, made by Spark; the tasks that looked stopped early."""
    monkeypatch.setattr(documents, "FEW_RECORDS", 24)

    metrics = run_over(spark, three_files, tmp_path / "run", SETTINGS)

    assert (tmp_path / "run/_stages/records.json").exists()
    assert (tables_of(tmp_path / "run"), counts_of(metrics)) == first


def read_texts(path: Path) -> list[tuple[str, str]]:
    """Return the id and decoded content of every record of a file, read without Spark."""
    data = path.read_bytes()
    data = gzip.decompress(data) if path.name.endswith(".gz") else data
    head = read_head(data[:65_536])
    chunks = data.split(head.separator)
    found = (parse_record(chunk, head, is_last=n == len(chunks)) for n, chunk in enumerate(chunks, start=1))
    return [(str(one.doc_id), record_text(one, markup="text")) for one in found if isinstance(one, Record)]


@pytest.mark.parametrize(
    "tasks",  # by day `test_find_duplicates.py` has a frame in several tasks
    ["one task", pytest.param("several", marks=pytest.mark.nightly)],
)
def test_texts_in_a_frame_give_the_same_pairs_clusters_and_keep_list(
    spark: SparkSession, three_files: list[Path], first: Run, tasks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same documents in a shuffled DataFrame give the same rows, by one task or by several."""
    monkeypatch.setattr(one_task, "fits_one", lambda *_, **__: tasks == "one task")
    texts = [row for path in three_files for row in read_texts(path)]
    frame = spark.createDataFrame(texts, "page string, body string").repartition(3)

    tables = find_duplicates(frame, id="page", text="body", pairs=SETTINGS["pairs"])

    assert len(texts) == PAGES
    for name in ("pairs", "clusters", "members", "keep"):
        assert sorted(map(repr, getattr(tables, name).collect())) == first[0][name]
