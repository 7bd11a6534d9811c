"""Clusters with more members than a row lists, and keys of most documents, give the same results in bounded rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.checking import prove_documents
from nddup.checking.check_run import check_run
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.evaluating.evaluate import evaluate_run
from nddup.matching.preference import Order
from nddup.matching.threshold import Threshold
from nddup.report.gather import gather
from nddup.results.opening import open_here
from nddup.results.show import show_run
from nddup.settings.load import build_config
from nddup.spark import heavy_keys
from nddup.spark.clustering.graph import contract
from nddup.spark.engine import SparkEngine, session_beside
from nddup.spark.heavy_keys import join_found
from nddup.spark.pairing.collapse import name_nodes
from nddup.spark.pairing.confirm import with_unknown
from nddup.spark.run import run_job
from nddup.spark.schemas import schema_of
from nddup.spark.session_tables import SparkFolder
from nddup.spark.steps.outputs import invert_sketches, number_clusters, spell_clusters, spell_members, write_lines
from nddup.stages.expand import expand
from nddup.stages.keep import Replacing, list_kept
from nddup.stages.names import Naming, name_sets
from nddup.tables import DOCUMENTS, GRAPH, MATCHES, NODES, RESULTS, SETS, STARS
from tests.finished_runs import write_rows

LISTED = 3
Rows = list[dict[str, Any]]


def pages() -> Iterator[dict[str, str]]:
    """Yield 12 equal pages with near-duplicates, 9 without, small families, empty pages, and pages that share an id."""
    for family in range(3):
        words = [f"w{value}" for value in np.random.default_rng(family).integers(0, 10**6, 60)]
        for version in range(4):
            edited = list(words)
            edited[5 + 11 * version] = "edit"
            yield {"id": f"f{family}v{version}", "text": " ".join(edited)}
        copies = {0: 12, 2: 3}.get(family, 0)
        yield from ({"id": f"f{family}\tcopy\\{n}", "text": " ".join([*words[:-1], "end"])} for n in range(copies))
    yield from ({"id": f"same{n}", "text": "page not found here " * 9} for n in range(9))
    yield from ({"id": f"empty{n}", "text": ""} for n in range(7))
    yield from ({"id": "again", "text": f"number {n} " * 8} for n in range(6))


def run_over_pages(spark: SparkSession | None, folder: Path, **settings: dict[str, Any]) -> Path:
    """Run over the pages, by bands that miss some, without a session on the embedded engine; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    source = write_rows(folder / "pages.jsonl", pages())
    bands = {"sketch": {"kind": "minhash", "size": 64, "bands": 8, "rows": 8}}
    config = build_config(
        {"output": {"texts": 0, "context": True, "report": False}, **bands, **settings}, origin="test"
    )
    if spark is None:
        run_locally([str(source)], str(folder / "run"), config)
    else:
        run_job(spark, [str(source)], str(folder / "run"), config)
    return folder / "run"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the embedded engine whose rows list all members."""
    return run_over_pages(None, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def cut(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same run on Spark, with at most three ids per row and every key of four rows or more split into parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heavy_keys, "HEAVY", 4)
        yield run_over_pages(spark, tmp_path_factory.mktemp("cut"), clusters={"max_listed": LISTED})


def rows_of(folder: Path, name: str) -> Rows:
    """Return the rows of a table of a run, sorted."""
    return sorted(pq.read_table(folder / name).to_pylist(), key=str)


def test_only_the_listing_of_members_is_cut(whole: Path, cut: Path) -> None:
    """With `max_listed`, only listed members are cut: ids, sizes, other tables and both text files stay the same."""
    due = [{**row, "members": row["members"][:LISTED]} for row in rows_of(whole, "clusters")]
    assert max(row["size"] for row in due) > 12
    assert rows_of(cut, "clusters") == sorted(due, key=str)

    for name in sorted(RESULTS.keys() - {"clusters", "texts"}):
        assert rows_of(cut, name) == rows_of(whole, name), name
    lines, all_lines = ((folder / "duplicates.txt").read_text() for folder in (cut, whole))
    assert sorted(lines.splitlines()) == sorted(all_lines.splitlines())
    assert lines.endswith("\n")
    assert (cut / "context.fimi").read_bytes() == (whole / "context.fimi").read_bytes()


def test_the_lists_are_those_of_the_tables(whole: Path) -> None:
    """`duplicates.txt` has a line per cluster, ordered by members with ids escaped; `context.fimi` one per feature."""
    clusters = sorted(rows_of(whole, "clusters"), key=lambda row: [one.encode() for one in row["members"]])
    spelled = [[one.replace("\\", "\\\\").replace("\t", "\\t") for one in row["members"]] for row in clusters]
    lines = ["\t".join([*ids, str(row["support"])]) + "\n" for ids, row in zip(spelled, clusters, strict=True)]
    assert (whole / "duplicates.txt").read_text() == "".join(lines)

    holders: dict[int, list[int]] = {}
    for row in sorted(rows_of(whole, "documents"), key=lambda row: int(row["doc_key"])):
        for feature in row["sketch"]:
            holders.setdefault(feature, []).append(row["doc_key"])
    context = "".join(" ".join(map(str, holders[feature])) + "\n" for feature in sorted(holders))
    assert (whole / "context.fimi").read_text() == context


@pytest.mark.parametrize("mode", ["all", "partition"])
def test_every_promise_holds_of_cut_rows(cut: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """`check` goes by the table `members`, and finds nothing wrong in a run of either engine that lists few members."""
    monkeypatch.setattr(prove_documents, "HEAVY", 4)
    folder = cut if mode == "all" else run_over_pages(None, tmp_path, clusters={"max_listed": LISTED, "mode": mode})

    report = check_run(DuckRun(str(folder)))

    assert report.is_sound, report.text()
    assert {"duplicates.txt: the clusters, line by line", "clusters: id, size and order of members, none twice"} <= {
        finding.promise for finding in report.findings
    }


def test_readers_go_by_all_members(whole: Path, cut: Path, tmp_path: Path) -> None:
    """`show`, `evaluate` and the report use all members of a cluster, also those that its row does not list."""
    largest = max(rows_of(whole, "clusters"), key=lambda row: row["size"])
    hidden = largest["members"][-1]
    asked: list[dict[str, str | None]] = [
        {"cluster": largest["cluster_id"], "doc": None},
        {"cluster": None, "doc": hidden},
    ]
    (tmp_path / "truth.csv").write_text("same0,same8\nf1v0,f1v3\nf0v0,f1v0\n")

    for wanted in asked:
        said = [show_run(DuckRun(str(folder)), **wanted) for folder in (whole, cut)]
        assert said[0] == said[1]
        assert hidden in said[0]
    found = [evaluate_run(open_here(str(folder)), str(tmp_path / "truth.csv")) for folder in (whole, cut)]
    assert found[0]["clusters"] == found[1]["clusters"]
    shown = [gather(DuckRun(str(folder))) for folder in (whole, cut)]
    told = [one.clusters.select(["cluster_id", "size", "representative", "support"]) for one in shown]
    assert told[0].equals(told[1])
    assert shown[0].sizes == shown[1].sizes
    assert max(map(len, shown[1].clusters["members"].to_pylist())) == LISTED


@pytest.mark.parametrize("limit", [0, 100])
def test_parts_are_the_one_file_cut_between_lines(spark: SparkSession, whole: Path, cut: Path, limit: int) -> None:
    """Above the size limit, a list is written as sorted parts of whole lines, which together equal the one file."""
    folder = SparkFolder(spark, str(cut))
    numbered = number_clusters(folder.table("clusters")).persist()
    lists: dict[str, tuple[DataFrame, str, bytes]] = {
        "report/a.txt": (spell_clusters(SparkFolder(spark, str(whole)).table("clusters")), "\n",
                  (whole / "duplicates.txt").read_bytes()),
        "report/b.txt": (spell_members(numbered, folder.table("members")), "\t", (cut / "duplicates.txt").read_bytes()),
        "report/c.txt": (invert_sketches(folder.table("documents"), end=" "), " ", (cut / "context.fimi").read_bytes()),
    }  # fmt: skip
    for name, (lines, end, one_file) in lists.items():
        write_lines(folder, name, lines, end=end, one_file=limit)

        parts = [part.read_bytes() for part in sorted((cut / name).glob("part-*"))]
        assert len(parts) > 1
        assert all(part.endswith(b"\n") for part in parts)
        assert b"".join(parts) == one_file
        write_lines(folder, name, lines, end=end)
        assert (cut / name).read_bytes() == one_file
    numbered.unpersist()


def test_parts_are_checked_as_the_file_is(spark: SparkSession, cut: Path) -> None:
    """If `duplicates.txt` is a folder of parts, `check` still proves its lines and finds a changed one."""
    folder = SparkFolder(spark, str(cut))
    numbered = number_clusters(folder.table("clusters")).persist()
    before, marker = (cut / "duplicates.txt").read_bytes(), (cut / "_COMPLETE").read_bytes()
    (cut / "_COMPLETE").write_text("{}")  # no digests: the file is written again behind the run's back
    write_lines(folder, "duplicates.txt", spell_members(numbered, folder.table("members")), end="\t", one_file=0)
    assert check_run(DuckRun(str(cut)), steps=["duplicates.txt"]).is_sound

    part = min((cut / "duplicates.txt").glob("part-*"))
    (part.parent / f".{part.name}.crc").unlink(missing_ok=True)
    text = part.read_bytes()
    part.write_bytes(text[: text.rindex(b"\t")] + b"0" + text[text.rindex(b"\t") :])
    broken = check_run(DuckRun(str(cut)), steps=["duplicates.txt"]).findings[0].broken

    write_lines(folder, "duplicates.txt", spell_members(numbered, folder.table("members")), end="\t")
    (cut / "_COMPLETE").write_bytes(marker)
    assert broken == 2
    assert (cut / "duplicates.txt").read_bytes() == before


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_heavy_key_is_many_tasks(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """The 1,000 rows of one key are joined in several tasks, as in a plain join, and as with few groups beside them."""
    monkeypatch.setattr(heavy_keys, "HEAVY", 10)
    monkeypatch.setattr(heavy_keys, "WORTH", 5)
    rows = spark.range(1_100).withColumn("key", F.when(F.col("id") < 1_000, 0).otherwise(F.col("id")))
    groups = rows.groupBy("key").agg(F.count("*").alias("n"), F.min("id").alias("least")).where("key < 1050")

    joined = join_found(rows, groups.hint("merge"), "key", by="id", many=heavy_keys.HEAVY, how=how)

    plain = join_found(rows, groups, "key", by="id", many=0, how=how)
    beside = join_found(rows, groups, "key", by="id", many=9, how=how)
    assert sorted(joined.collect()) == sorted(plain.collect()) == sorted(beside.collect())
    tasks = joined.where("key = 0").groupBy(F.spark_partition_id()).count().collect()
    assert len(tasks) > 1


def test_no_window_gathers_the_rows_of_a_key(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """No plan has a window or `collect_list`, which would send all rows of a sketch or of a star to one task."""
    documents, nodes, matches, sets, graph, edges = (
        spark.createDataFrame(spark.sparkContext.emptyRDD(), schema_of(one))  # not known to be empty, unlike no rows
        for one in (DOCUMENTS, NODES, MATCHES, SETS, GRAPH, STARS)
    )
    threshold = Threshold("overlap", 7, 10, is_count=False, size=20)
    engine = SparkEngine(session_beside(spark))
    for name, table in (("nodes", nodes), ("graph", graph), ("sets", sets), ("matches", with_unknown(matches))):
        engine.see(name, table)
    plans = [
        name_nodes(documents, order=Order("longest")),
        expand(engine, threshold=threshold, expand_limit=10),
        list_kept(engine, Replacing(1)),
        name_sets(engine, Naming(1, max_listed=LISTED, heavy=10)),
        contract(edges),
    ]

    for plan in plans:
        plan.explain()
        said = capsys.readouterr().out
        assert "Exchange" in said
        assert "Window" not in said
        assert "collect_list" not in said
