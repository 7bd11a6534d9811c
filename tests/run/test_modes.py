"""Components given by leaders, and the cluster modes, keep the promises that `check` proves.

Leaders are found on Spark. Whole graphs and modes, whose engines `embedded/test_matrix.py` compares, are computed by
the embedded engine.
"""

import itertools
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.checking.check_run import check_run
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.settings.load import build_config
from nddup.tables import RESULTS
from tests.counted_rows import once
from tests.finished_runs import run_over, run_until, write_texts
from tests.samples_by_night import first

SLOTS = 30
PARTITIONS = "spark.sql.shuffle.partitions"
PLAIN: dict[str, Any] = {"output": {"report": False, "texts": 0, "kept": "none"}}
"""Settings that leave out all outputs but the tables, as these tests read no others."""

COUNT = {"shingle": {"length": 1}, "sketch": {"size": SLOTS}, "pairs": {"measure": "overlap", "threshold": 24}, **PLAIN}
LIKE = {**COUNT, "pairs": {"threshold": 0.8, "confirm": "none"}}


def texts() -> dict[str, str]:
    """Return a family of 60 near-equal documents, two smaller families, pairs, two equal texts and an unrelated one."""
    random = np.random.default_rng(7)
    found: dict[str, str] = {}
    for family, (size, share) in enumerate([(60, 0.95), (12, 0.9), (7, 0.97)]):
        for member in range(size):
            kept = np.flatnonzero(random.random(SLOTS) < share)
            found[f"f{family}-{member}"] = " ".join(f"w{family}x{slot}" for slot in kept)
    for number in range(10):
        words = [f"p{number}x{slot}" for slot in range(SLOTS - 2)]
        found[f"p{number}-0"], found[f"p{number}-1"] = " ".join(words), " ".join([*words, "more"])
    found["twin"] = found["f0-3"]
    found["alone"] = " ".join(f"alone{slot}" for slot in range(SLOTS))
    return found


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The texts as JSON lines."""
    return write_texts(tmp_path_factory.mktemp("families") / "a.jsonl", texts())


Rows = list[dict[str, Any]]
TablesOf = Callable[..., dict[str, Rows]]


@pytest.fixture(scope="module")
def tables_of(families: Path, tmp_path_factory: pytest.TempPathFactory) -> TablesOf:
    """A function from settings and session to the tables of a run that `check` finds sound; each run is made once.

    All settings give the same documents: on Spark they are made once, and reused as `--resume` does.
    """

    @cache
    def sketched(spark: SparkSession) -> Path:
        output = tmp_path_factory.mktemp("sketched") / "out"
        run_until(spark, [families], output, COUNT, "pairs")
        return output

    @cache
    def tables(settings: str, spark: SparkSession | None) -> dict[str, Rows]:
        output = tmp_path_factory.mktemp("run") / "out"
        if spark is None:
            run_locally([str(families)], str(output), build_config(json.loads(settings), origin="test"))
        else:
            shutil.copytree(sketched(spark), output)
            run_over(spark, [families], output, json.loads(settings), resume=True)
        report = check_run(DuckRun(str(output)))
        assert report.is_sound, report.text()
        return {name: pq.read_table(output / name).to_pylist() for name in RESULTS}

    return lambda settings, spark=None: tables(json.dumps(settings), spark)


def around_leaders(settings: dict[str, Any], **more: int) -> dict[str, Any]:
    """Limit the pairs of a component to 100, so that only the largest family is given by leaders; returns settings."""
    return {**settings, "pairs": {**settings["pairs"], "max_edges": 100, **more}}


def pairs_of(table: Rows) -> set[tuple[str, str]]:
    """Return the pairs of ids."""
    return once((row["doc_a"], row["doc_b"]) for row in table)


def rows_of(table: Rows) -> list[str]:
    """Return all rows as sorted text."""
    return sorted(map(repr, table))


@pytest.mark.parametrize("settings", [COUNT, LIKE], ids=["count", "resemblance"])
def test_leaders_are_what_the_whole_graph_keeps(
    spark: SparkSession, tables_of: TablesOf, settings: dict[str, Any]
) -> None:
    """Leaders give the keep-list of the whole graph, and its pairs except those of two removed texts of a family.

    The kept documents of that family, but none of the whole graph, are its leaders.
    """
    whole, leading = tables_of(settings), tables_of(around_leaders(settings, max_postings=20), spark)

    assert rows_of([row | {"leader": False} for row in leading["keep"]]) == rows_of(whole["keep"])
    text = texts()
    kept = {text[row["doc_id"]] for row in whole["keep"] if row["kept"]}
    members = {member for row in leading["clusters"] if row["coverage"] == "documents" for member in row["members"]}
    assert {name for name in members if name.startswith("f0-")} == {f"f0-{n}" for n in range(60)} & members
    assert len(members) > 50
    assert once(row["doc_id"] for row in leading["keep"] if row["leader"]) == {
        row["doc_id"] for row in whole["keep"] if row["kept"] and row["doc_id"] in members
    }
    expected = {
        pair
        for pair in pairs_of(whole["pairs"])
        if not members.issuperset(pair) or kept & {text[name] for name in pair} or text[pair[0]] == text[pair[1]]
    }
    assert pairs_of(leading["pairs"]) == expected
    assert len(expected) < len(whole["pairs"])


@pytest.mark.parametrize(
    "partitions",
    ["0", pytest.param("3", marks=pytest.mark.nightly)],  # by day `test_families.py` has three
)
def test_heavy_lists_and_partitions_change_nothing(spark: SparkSession, tables_of: TablesOf, partitions: str) -> None:
    """With leaders, the tables do not depend on the number of partitions or on which posting lists are heavy.

    The embedded engine (`0`) has no heavy lists; `spark/test_large_graph.py` tests families without heavy sketches on
    Spark.
    """
    one = tables_of(around_leaders(COUNT, max_postings=20), spark)
    divided = (
        tables_of({**around_leaders(COUNT, max_postings=3), "spark": {PARTITIONS: partitions}}, spark)
        if int(partitions)
        else tables_of(around_leaders(COUNT))
    )
    for name in ("pairs", "clusters", "members", "keep", "false_components"):
        assert rows_of(one[name]) == rows_of(divided[name])


def test_a_heavy_family_of_few_pairs_has_all_of_them(spark: SparkSession, tables_of: TablesOf) -> None:
    """A heavy family of few pairs has all of them: the tables do not show which sketches are heavy."""
    whole, heavy = tables_of(LIKE), tables_of({**LIKE, "pairs": {**LIKE["pairs"], "max_postings": 4}}, spark)
    for name in RESULTS:
        if name != "texts":
            assert rows_of(whole[name]) == rows_of(heavy[name]), name


@pytest.mark.parametrize("mode", first(1, ["cover", "partition", "components"]))
def test_modes(tables_of: TablesOf, mode: str) -> None:
    """The clusters of each mode follow its definition, applied to the pairs and the keep-list."""
    tables = tables_of({**COUNT, "clusters": {"mode": mode}})

    sets = [frozenset(row["members"]) for row in tables["clusters"]]
    pairs = pairs_of(tables["pairs"])
    if mode == "cover":
        held = {pair for members in sets for pair in itertools.combinations(sorted(members), 2)}
        assert held == pairs
        assert {row["coverage"] for row in tables["clusters"]} <= {"pairs", "all"}
        return
    assert {row["coverage"] for row in tables["clusters"]} == {mode}
    assert sum(map(len, sets)) == len(frozenset().union(*sets))
    if mode == "partition":
        stars: dict[str, set[str]] = {}
        for row in tables["keep"]:
            stars.setdefault(row["duplicate_of"] or row["doc_id"], set()).add(row["doc_id"])
        assert once(sets) == {frozenset(star) for star in stars.values() if len(star) > 1}
    else:
        label = {name: name for name in texts()}
        for _ in label:
            for first, second in pairs:
                label[first] = label[second] = min(label[first], label[second])
        whole = {frozenset(n for n in label if label[n] == low) for low in label.values()}
        assert once(sets) == {members for members in whole if len(members) > 1}
