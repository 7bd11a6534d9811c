"""Texts for the report: the choice of documents, the stored texts, and inputs that changed since the run."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from nddup.embedded.outputs import count_parts
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckEngine
from nddup.engines.engine import Engine
from nddup.errors import ConfigError, NddupError
from nddup.ground.metrics import RunMetrics
from nddup.reading.json_lines import PlainRecords, read_lines
from nddup.report.summary import notes
from nddup.scanning.read_again import CHARACTERS, choose_documents
from nddup.settings.load import build_config
from nddup.spark.engine import SparkEngine, frame_of, session_beside
from nddup.spark.run import run_job
from nddup.spark.session_tables import SparkFolder
from nddup.spark.steps.documents import reopen_inputs
from nddup.stages.report_texts import list_shown
from nddup.stages.stage import dependencies_of
from tests.counted_rows import once_each
from tests.run.accounts import run_that_adds_up
from tests.samples_by_night import first

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon"

shown_rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(1, 3), st.integers(0, 9)), max_size=30
).map(
    lambda drawn: [
        {
            "turn": cluster % 2,  # the same for all rows of a cluster, as is its size
            "cluster_id": f"c{cluster}",
            "size": cluster + 2,
            "place": place,
            "doc_id": f"d{doc}",
            "source": f"s{doc % 4}",
            "content_fingerprint": bytes([doc]),
        }
        for _, cluster, place, doc in drawn
    ]
)


@given(rows=shown_rows, most=st.integers(0, 12), most_bytes=st.integers(0, 40))
def test_a_choice_stays_inside_its_bounds_and_takes_whole_clusters(
    rows: list[dict[str, object]], most: int, most_bytes: int
) -> None:
    """Every chosen cluster is whole, both limits hold, and each cluster left out would exceed one of them."""
    sizes = {f"s{number}": 10 for number in range(4)}

    choice = choose_documents(rows, sizes, most=most, most_bytes=most_bytes)

    of = {name: {str(row["doc_id"]) for row in rows if row["cluster_id"] == name} for name in choice.clusters}
    files = {source for source, _ in choice.documents.values()}
    assert choice.documents.keys() == set().union(*of.values())
    assert len(choice.documents) <= most
    assert sum(sizes[source] for source in files) <= most_bytes
    for name in {str(row["cluster_id"]) for row in rows} - set(choice.clusters):
        docs = {str(row["doc_id"]): str(row["source"]) for row in rows if row["cluster_id"] == name}
        is_too_many = len(choice.documents.keys() | docs.keys()) > most
        assert is_too_many or sum(sizes[source] for source in files | set(docs.values())) > most_bytes


def test_large_clusters_come_first_then_the_sample() -> None:
    """Clusters of turn 0 come first, by size, then those of turn 1, by id; one that does not fit is skipped."""
    sizes = {"s": 10, "t": 50}
    rows = [
        {"turn": turn, "cluster_id": name, "size": size, "place": 1, "doc_id": name.upper(), "source": source,
         "content_fingerprint": b"x"}
        for turn, name, size, source in [
            (1, "b", 9, "s"), (1, "a", 2, "s"), (0, "z", 7, "s"), (0, "y", 8, "s"), (0, "x", 99, "t"),
        ]
    ]  # fmt: skip

    choice = choose_documents(rows, sizes, most=3, most_bytes=49)

    assert choice.clusters == ["y", "z", "a"]
    assert choice.beyond_files == 1


def test_the_preferred_documents_of_a_cluster_are_shown_first(session_or_none: SparkSession | None) -> None:
    """
    Of each cluster at most two documents are listed, the representative first; the cluster of lowest id is sampled.

    p: a b c*   q: d e*
    """
    given = {
        "clusters": pa.table({"cluster_id": ["q", "p"], "size": pa.array([2, 3], pa.int32())}),
        "members": pa.table(
            {"cluster_id": list("pppqq"), "doc_id": list("abcde"), "representative": [False, False, True, False, True]}
        ),
        "documents": pa.table(
            {
                "doc_id": list("abcde"),
                "source": ["f.xml"] * 5,
                "content_fingerprint": [bytes([n]) for n in range(5)],
                "record_type": pa.nulls(5, pa.string()),
            }
        ),
    }
    engine: Engine = DuckEngine("test") if session_or_none is None else SparkEngine(session_beside(session_or_none))
    for name, table in given.items():
        engine.see(name, table if session_or_none is None else frame_of(session_or_none, table))

    rows = list_shown(engine, sampled=1, each=2)

    found = once_each(
        ((row["cluster_id"], row["place"]), (row["doc_id"], bytes(row["content_fingerprint"]))) for row in rows
    )
    assert found == {("p", 1): ("c", b"\2"), ("p", 2): ("a", b"\0"), ("q", 1): ("e", b"\4"), ("q", 2): ("d", b"\3")}
    assert Counter((row["cluster_id"], row["turn"], row["size"]) for row in rows) == {("p", 0, 3): 2, ("q", 0, 2): 2}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain and a compressed file; 1 and 2 are equal, 3 is near them, 4 is alone, 5 and 6 are equal and long."""
    folder = tmp_path_factory.mktemp("texts") / "a folder with 100%20 # in it"
    folder.mkdir()
    plain = [("1", f"<p>{WORDS}</p>"), ("2", f"<p>{WORDS}</p>"), ("4", "<p>alone it stands in the world</p>")]
    packed = [("3", f"<p>{WORDS} phi</p>"), ("5", "five six " * 4_000), ("6", "five six " * 4_000)]
    lines = ["".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in rows) for rows in (plain, packed)]
    (folder / "a.jsonl").write_text(lines[0])
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(lines[1].encode()))
    return folder


def test_a_run_stores_the_texts_of_its_clusters(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    """A run stores the text of every document in a cluster, without markup and cut at the limit, and no other text."""
    config = build_config({}, origin="test")
    metrics = run_job(spark, [str(files)], str(tmp_path / "run"), config)

    folder = SparkFolder(spark, str(tmp_path / "run"))
    found = once_each(
        (row["doc_id"], row["text"].strip("\n")) for row in folder.table("texts").collect()
    )  # a block is lines of its own
    long = ("five six " * 4_000)[:CHARACTERS]
    assert found == {"1": WORDS, "2": WORDS, "3": f"{WORDS} phi", "5": long, "6": long}
    assert metrics["stages"]["texts"]["rows_out"] == {"texts": 5}
    assert metrics["stages"]["texts"]["clusters"] == 2

    again = reopen_inputs(spark, folder)
    row = folder.table("documents").where("doc_id = '4'").select("source", "content_fingerprint").collect()[0]
    texts = again.find_texts({"4": (row["source"], bytes(row["content_fingerprint"]))}).collect()
    assert [(one["doc_id"], one["text"]) for one in texts] == [("4", "\nalone it stands in the world\n")]

    (files / "a.jsonl").write_text("{}\n")
    with pytest.raises(NddupError, match=r"the inputs of .* changed since the run: a\.jsonl; run the job again"):
        reopen_inputs(spark, folder)
    for path in files.iterdir():
        path.unlink()
    files.rmdir()
    with pytest.raises(ConfigError, match="INPUT"):
        reopen_inputs(spark, folder)


@pytest.mark.parametrize("moved", first(2, [None, 1, 0]))
def test_texts_that_are_not_at_their_places_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, moved: int | None
) -> None:
    """A later pass reads records at their places; where one is elsewhere, or no place is known, it reads all."""
    words = [f"w{number}" for number in range(400)]
    lines = [json.dumps({"id": "x", "text": f"alone {number}"}) for number in range(5)] + [""]
    lines += [json.dumps({"id": name, "text": " ".join([*words, name])}) for name in "ab"]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    read = list[int]()

    def shift(records: pa.Table) -> pa.Table | None:
        parts = count_parts(records)
        return None if moved is None else parts.set_column(2, "before", pc.subtract(parts["before"], moved))

    def count(data: NDArray[np.uint8], ends: NDArray[np.int64], *how: Any) -> PlainRecords:  # noqa: ANN401
        read.append(ends.size)
        return read_lines(data, ends, *how)

    monkeypatch.setattr("nddup.embedded.steps.count_parts", shift)
    monkeypatch.setattr("nddup.scanning.record_blocks.read_lines", count)
    run_that_adds_up(tmp_path, tmp_path / "a.jsonl", output={"texts": 9, "report": True})

    assert pq.read_table(tmp_path / "out" / "pairs")["common"].to_pylist() == [396]
    assert pq.read_table(tmp_path / "out" / "texts")["doc_id"].to_pylist() == ["a", "b"]
    assert read == {None: [7, 7, 7], 0: [7, 2, 2], 1: [7, 1, 7, 1, 7]}[moved]


@pytest.mark.parametrize("output", [{"texts": 0}, {"report": False}])
def test_no_file_is_read_for_texts_that_nobody_sees(output: dict[str, Any], tmp_path: Path) -> None:
    """With `output.texts` 0 or without a report, the table `texts` exists, is empty, and chooses no cluster.

    Both hold of the runs on Spark in `run/test_resume.py`.
    """
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"id": i, "text": WORDS}) + "\n" for i in "12"))

    metrics = run_that_adds_up(tmp_path, tmp_path / "a.jsonl", output=output)

    assert pq.read_table(tmp_path / "out" / "texts").num_rows == 0
    assert metrics["stages"]["texts"]["clusters"] == 0
    assert metrics["rows"]["clusters"] == 1


def test_a_run_resumed_for_a_report_reads_the_texts_it_had_left_out() -> None:
    """The empty `texts` of a run without a report is not taken for that of a run with one."""
    without = build_config({"output": {"report": False}}, origin="test")

    assert dependencies_of("texts", without) != dependencies_of("texts", build_config({}, origin="test"))


def test_clusters_in_files_too_large_to_read_again_are_said(tmp_path: Path) -> None:
    """Clusters in files too large to read again get no texts, and the summary counts them."""
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"id": i, "text": WORDS}) + "\n" for i in "12"))
    settings = build_config({"output": {"texts_read": 1}}, origin="test")

    metrics = run_locally([str(tmp_path / "a.jsonl")], str(tmp_path / "run"), settings)

    assert pq.read_table(tmp_path / "run" / "texts").num_rows == 0
    said = "1 cluster chosen for the report, in files beyond output.texts_read: shown without texts"
    assert said in notes(RunMetrics.read(metrics))
