"""Graphs and components too large for one task: the same tables, or tables that keep every promise of the results."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from nddup.checking.check_run import check_run
from nddup.embedded.run import run_locally
from nddup.engines.duck import DuckRun
from nddup.ground.metrics import RunMetrics
from nddup.mining import cluster_modes
from nddup.mining.pair_graph import GRAPH_BITS
from nddup.report.summary import notes
from nddup.settings import plan
from nddup.settings.load import build_config
from nddup.spark.clustering import graph
from nddup.spark.schemas import local_table, schema_of
from nddup.spark.steps import clustering
from nddup.spark.steps.state import Job
from nddup.tables import PAIR_EDGES
from tests.finished_runs import run_over, run_until, sorted_tables, write_texts
from tests.samples_by_night import by_day_if_changed, first

Tables = dict[str, list[str]]
Run = Callable[..., tuple[Tables, dict[str, Any]]]
KEPT = {"records", "offsets", "nodes", "compared", "graph", "sets"}
"""All working tables that a run may leave."""

SETTINGS: dict[str, Any] = {
    "shingle": {"length": 1},
    "sketch": {"size": 20},
    "pairs": {"measure": "overlap", "threshold": 10},
    "output": {"report": False, "texts": 0},
}


@pytest.fixture(scope="module")
def chains_and_a_family(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A long chain of windows in random order, a family with many maximal sets, a short chain, equal texts, one alone.

    And a chain in the order of preference: each round of the keep-list decides only its first three.

    Beside it is `begun`, a run that ended before its third stage; the tests resume it from its documents and pairs.
    """
    random = np.random.default_rng(3)
    texts = [" ".join(f"w{word}" for word in range(5 * n, 5 * n + 20)) for n in random.permutation(70)]
    for member in range(26):
        kept = random.random(20) < 0.8
        texts.append(" ".join(f"slot{n}" if is_kept else f"own{member}x{n}" for n, is_kept in enumerate(kept)))
    texts += [" ".join(f"z{word}" for word in range(4 * n, 4 * n + 20)) for n in range(3)]
    texts += [texts[0], texts[75], "alone " * 3]
    texts += [" ".join(f"y{word}" for word in range(4 * n, 4 * n + 20)) for n in range(9)]  # d102 to d110
    pages = write_texts(tmp_path_factory.mktemp("large") / "a.jsonl", {f"d{n}": text for n, text in enumerate(texts)})
    run_until(spark, [pages], pages.parent / "begun", SETTINGS, "clusters")
    return pages


def tables_and_counts(spark: SparkSession, pages: Path, output: Path, **clusters: Any) -> tuple[Tables, dict[str, Any]]:  # noqa: ANN401
    """Resume a copy of `begun`; return the sorted rows of each table, and the counts of the clusters stage."""
    shutil.copytree(pages.parent / "begun", output)
    metrics = run_over(spark, [pages], output, {**SETTINGS, "clusters": clusters}, resume=True)
    assert {"documents", "pairs"} <= {name for stage in metrics["stages"].values() for name in stage["resumed"]}
    return sorted_tables(output), metrics["stages"]["clusters"]


@pytest.fixture(scope="module")
def ordinary(chains_and_a_family: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The tables that the embedded engine makes, with every component in one piece."""
    output = tmp_path_factory.mktemp("ordinary") / "run"
    run_locally([str(chains_and_a_family)], str(output), build_config(SETTINGS, origin="test"))
    return sorted_tables(output)


@pytest.fixture(scope="module")
def supported(chains_and_a_family: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the embedded engine whose sets share 14 features or more."""
    output = tmp_path_factory.mktemp("supported") / "run"
    config = build_config({**SETTINGS, "clusters": {"support": 14}}, origin="test")
    run_locally([str(chains_and_a_family)], str(output), config)
    return output


@pytest.fixture
def spread_run(spark: SparkSession, chains_and_a_family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that makes a run with its components spread over shares, and checks its promises."""
    monkeypatch.setattr(plan, "SHARE_NODES", 9)

    def make(**clusters: Any) -> tuple[Tables, dict[str, Any]]:  # noqa: ANN401
        found = tables_and_counts(spark, chains_and_a_family, tmp_path / "run", **clusters)
        report = check_run(DuckRun(str(tmp_path / "run")))
        assert report.is_sound, report.text()
        return found

    return make


@pytest.mark.nightly  # by day `embedded/test_engines.py` streams two graphs, and `run/test_resume.py` has FP-Growth
def test_streamed_the_tables_are_the_same(
    spark: SparkSession, chains_and_a_family: Path, supported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A numbered graph whose edges stream through one task gives the same tables, small components by FP-Growth.

    Its sets reach `clusters.support`.
    """
    monkeypatch.setattr(clustering, "FEW_EDGES", 0)

    tables, counts = tables_and_counts(spark, chains_and_a_family, tmp_path / "run", support=14)

    assert tables == sorted_tables(supported)
    assert counts["components"] == 4
    assert counts["fpgrowth_components"] == counts["fpgrowth_fits"] == 1
    told = notes(RunMetrics.read(json.loads((tmp_path / "run" / "metrics.json").read_text())))
    assert any(note.startswith("FP-Growth mined 1 component, the pivot miner 3 that are larger") for note in told)
    assert {path.name for path in (tmp_path / "run" / "_stages").iterdir() if path.is_dir()} <= KEPT


def scatter_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the order of the nodes one part per node, and as many parts without a node."""
    order_nodes = graph.order_nodes

    def scattered(*tables: DataFrame, **how: Any) -> DataFrame:  # noqa: ANN401
        place = F.row_number().over(Window.orderBy("part", "row"))
        return order_nodes(*tables, **how).withColumn("part", 2 * place).withColumn("row", F.lit(0).cast("long"))

    monkeypatch.setattr(graph, "order_nodes", scattered)


@by_day_if_changed(
    "nddup/spark/clustering",
    "nddup/spark/steps",
    "nddup/spark/blocks.py",
    "nddup/mining",
    "nddup/stages",
    "nddup/settings/plan.py",
)
@pytest.mark.parametrize("max_postings", first(1, [4, 10_000]))
def test_in_rounds_and_shares_the_tables_are_the_same(
    spark: SparkSession, chains_and_a_family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_postings: int
) -> None:
    """Families and the graph in rounds, by stars, give the embedded engine's tables, with and without heavy sketches.

    The keep-list takes two rounds, and one task for the rest; a component is in shares of nine. Sets of shares reach
    `clusters.support`; pairs that share fewer features are counted.
    """
    limits = {"max_edges": 150, "max_postings": max_postings}
    settings = {**SETTINGS, "pairs": {**SETTINGS["pairs"], **limits}, "clusters": {"support": 14}}
    at_once = run_locally([str(chains_and_a_family)], str(tmp_path / "at once"), build_config(settings, origin="test"))
    monkeypatch.setattr(Job, "most_edges", lambda _job, _cost, _nodes: 100)
    monkeypatch.setattr(plan, "SHARE_NODES", 9)
    monkeypatch.setattr(clustering, "FEW_EDGES", 0)
    monkeypatch.setattr(Job, "most_nodes", lambda _job, bits: 0 if bits == GRAPH_BITS else 10_000)
    monkeypatch.setattr(clustering, "KEEP_ROUNDS", 2)
    scatter_nodes(monkeypatch)
    rest: list[int] = []
    decide_rest = graph.decide_rest

    def decide(undecided: DataFrame, nodes: int) -> DataFrame:
        rest.append(nodes)
        return decide_rest(undecided, nodes)

    monkeypatch.setattr(graph, "decide_rest", decide)

    shutil.copytree(chains_and_a_family.parent / "begun", tmp_path / "in rounds")
    in_rounds = run_over(spark, [chains_and_a_family], tmp_path / "in rounds", settings, resume=True)

    assert sorted_tables(tmp_path / "in rounds") == sorted_tables(tmp_path / "at once")
    whole, counts = (metrics["stages"]["clusters"] for metrics in (at_once, in_rounds))
    assert whole["led_components"] == counts["led_components"] > 0
    assert (at_once["stages"]["pairs"]["crowd"] > 0) == (max_postings == 4)
    assert counts["pairs_below_support"] == whole["pairs_below_support"] > 60
    assert (counts["spread_components"], len(rest)) == (1, 1)
    assert counts["shares"] > 5
    assert not list((tmp_path / "in rounds" / "_stages").glob("*-*/"))  # the tables of the rounds are dropped


@pytest.mark.nightly  # by day one component in shares is in the test above
def test_in_shares_the_tables_are_the_same(
    spark: SparkSession, chains_and_a_family: Path, supported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two components in shares of nine give the same tables, with the graph and the whole keep-list made in rounds."""
    scatter_nodes(monkeypatch)
    monkeypatch.setattr(plan, "SHARE_NODES", 9)
    monkeypatch.setattr(clustering, "FEW_EDGES", 0)
    monkeypatch.setattr(Job, "most_nodes", lambda _job, _bits: 0)

    tables, counts = tables_and_counts(spark, chains_and_a_family, tmp_path / "run", support=14)

    at_once = RunMetrics.read(json.loads((supported / "metrics.json").read_text()))
    assert tables == sorted_tables(supported)
    assert counts["pairs_below_support"] == at_once.stages.clusters.pairs_below_support > 60
    assert counts["spread_components"] == 2
    assert counts["shares"] > 5


@pytest.mark.nightly  # by day `embedded/test_shares.py` has the budget, and shares on Spark are in the rounds above
@pytest.mark.parametrize("coverage", ["documents", "pairs"])
def test_shares_past_their_budget_keep_their_promise(
    spread_run: Run, ordinary: Tables, monkeypatch: pytest.MonkeyPatch, coverage: str
) -> None:
    """The family exceeds its budget and is covered, or led if no cover is allowed; the chain's clusters stay."""
    if coverage == "documents":
        monkeypatch.setattr(cluster_modes, "COVER_SHARE", 0)

    tables, counts = spread_run(max_sets=1, max_members=1)

    assert counts["covered_clusters" if coverage == "pairs" else "led_clusters"] > 0
    assert {name: rows for name, rows in tables.items() if name not in {"clusters", "members"}} == {
        name: rows for name, rows in ordinary.items() if name not in {"clusters", "members"}
    }
    chain = [row for row in ordinary["clusters"] if "coverage='all'" in row]
    assert 60 < len(set(chain) & set(tables["clusters"])) < len(chain)


@pytest.mark.nightly  # by day shares are listed and led; `embedded/test_shares.py` has covers of shares
def test_a_cover_is_made_in_shares_too(spread_run: Run) -> None:
    """With `clusters.mode: cover`, spread components get covers too."""
    tables, _ = spread_run(mode="cover")

    assert all("coverage='pairs'" in row or "size=2" in row for row in tables["clusters"])


@pytest.mark.nightly  # by day the run in rounds contracts families and its graph
def test_stars_are_the_components(spark: SparkSession) -> None:
    """Contracting paths, stars and random edges gives SciPy's components, in few rounds even for a long path."""
    random = np.random.default_rng(5)
    names = random.permutation(300) * 1_000_003
    path = np.stack([np.arange(99), np.arange(1, 100)], axis=1)
    star = np.stack([np.full(50, 100), np.arange(101, 151)], axis=1)
    some = random.integers(151, 300, (100, 2))
    edges = np.concatenate([path, star, some[some[:, 0] != some[:, 1]]])
    count, labels = connected_components(coo_array((np.ones(len(edges)), edges.T), shape=(300, 300)), directed=False)
    least = np.array([names[labels == label].min() for label in range(count)])
    expected = {(int(least[labels[n]]), int(names[n])) for n in range(300) if names[n] != least[labels[n]]}
    ends = np.sort(names[edges], axis=1)
    stars = local_table(spark, schema_of(PAIR_EDGES), [(int(a), int(b), 1.0, None) for a, b in ends]).select(
        "first", "second"
    )

    found, before, rounds_taken = stars, None, 0
    while before != (before := sorted(map(tuple, found.collect()))) or rounds_taken < 1:
        found = local_table(spark, schema_of(PAIR_EDGES), [(*edge, 1.0, None) for edge in before]).select(
            "first", "second"
        )
        found = graph.contract(found)
        rounds_taken += 1

    assert set(before) == expected
    assert rounds_taken < 12
