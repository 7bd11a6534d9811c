"""Both engines make the same tables, row for row, and the same counts, with limits exceeded and records rejected.

Kinds, measures, modes and formats are in `test_matrix`, heavy sketches and stars that texts confirm in
`run/test_families.py`.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nddup.embedded import steps as engine
from nddup.embedded.workers import Workers
from nddup.errors import CapacityError
from nddup.ground.metrics import RunMetrics
from nddup.scanning.collection import find_files
from nddup.settings import plan
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.spark.run import run_job
from nddup.spark.steps import clustering, documents, one_task
from nddup.spark.steps.state import Job
from nddup.storage.local_storage import LocalStorage
from nddup.tables import RESULTS
from tests.embedded.edited_texts import make_texts, write_lines
from tests.finished_runs import run_until
from tests.samples_by_night import by_day_if_changed

CHOICES: dict[str, dict[str, Any]] = {
    "count": {"pairs.measure": "overlap", "pairs.threshold": 85, "clusters.mode": "cover", "pairs.max_edges": 5},
    "share": {"pairs.measure": "overlap", "pairs.threshold": 0.6, "keep.policy": "first-id", "pairs.max_postings": 3},
    "bands, heavy": {
        "sketch.kind": "minhash", "sketch.size": 64, "pairs.max_postings": 4, "pairs.max_edges": 9,
        "keep.policy": "first",
    },
    "bands, unseen": {
        "sketch.kind": "minhash", "sketch.size": 64, "sketch.verify": False, "clusters.mode": "partition",
        "pairs.max_postings": 2,
    },
    "contained, long lists": {
        "sketch.kind": "mod-m", "sketch.modulus": 2, "pairs.measure": "containment", "pairs.threshold": 0.7,
        "clusters.mode": "partition", "pairs.max_postings": 4,
    },
    "levels, long lists": {"sketch.kind": "mod-pow2", "clusters.mode": "components", "pairs.max_postings": 2},
    "heavy, stars, frequent, dear": {
        "pairs.max_postings": 3, "pairs.threshold": 0.7, "pairs.expand_limit": 3, "pairs.max_edges": 1,
        "pairs.max_document_frequency": 10, "input.min_tokens": 2, "clusters.support": 60, "input.id_prefix": "source",
        "clusters.max_sets": 1, "clusters.max_members": 1, "clusters.max_nodes": 1, "clusters.max_listed": 2,
    },
}  # fmt: skip

BY_ONE_TASK = {"heavy, stars, frequent, dear"}
"""Choices that are also run with records numbered by the driver and one task for the rest, which `test_one_task` proves
against the embedded engine without Spark."""

STREAMED = {*BY_ONE_TASK, "contained, long lists"}
"""Choices whose graph is numbered by tables of its own, and streams through one task as that of a large run does."""

BY_NIGHT = {
    **dict.fromkeys(("count", "share", "bands, heavy", "bands, unseen", "levels, long lists"), pytest.mark.nightly),
    "contained, long lists": by_day_if_changed("nddup/spark", "nddup/matching", "nddup/mining"),
}
"""Choices whose limits others reach too, and whose measures and kinds are in `test_matrix`.
`run/test_large_clusters.py` has bands by day."""

OF_SPARK = {
    "fpgrowth_components", "fpgrowth_fits", "cut_clusters",
    "candidates", "crowd", "pruned_to", "later_ids",
}  # fmt: skip
"""Counts that depend on the search of an engine, or are not in `metrics.json`."""


def rows_of(table: pa.Table) -> list[str]:
    """Return the rows of a table as text, sorted."""
    return sorted(map(repr, table.to_pylist()))


def make_tables(source: Path, config: Config) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """Return the tables of the embedded engine by name, and its counts."""
    with Workers(2) as workers:
        collection = find_files(LocalStorage(), [str(source)], config.input)
        sketched = engine.sketch(collection, config, workers)
        paired = engine.pair(sketched.documents, config, workers, collection)
        clustered = engine.cluster(paired, config, workers)
        kept = engine.keep(paired, clustered, config)
    tables = {
        name: getattr(step, name)
        for name in RESULTS
        for step in (sketched, paired, clustered, kept)
        if name in type(step).__dataclass_fields__
    }
    counts = [sketched.counts, paired.counts, clustered.counts, kept.counts]
    counted: dict[str, Any] = {name: n for some in counts for name, n in some.items()}
    return tables, counted | {"rejected": sketched.reasons, "pruned_to": paired.pruned_to}


@pytest.mark.parametrize(
    "choice", [pytest.param(name, marks=[BY_NIGHT[name]] if name in BY_NIGHT else []) for name in CHOICES]
)
def test_the_engines_agree(spark: SparkSession, tmp_path: Path, choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and counts are equal for counts, shares, policies, bands, heavy sketches, frequent features and budgets.

    So they are where the driver numbers the records, and one task does the rest (`BY_ONE_TASK`), and where a graph is
    not small (`STREAMED`). By containment, more sketches than one task takes are an error.
    """
    settings: dict[str, dict[str, Any]] = {"output": {"texts": 0, "report": False}}
    for key, value in CHOICES[choice].items():
        section, _, name = key.partition(".")
        settings.setdefault(section, {})[name] = value
    config = build_config(settings, origin="test")
    source = write_lines(tmp_path / "pages.jsonl", make_texts())

    tables, counted = make_tables(source, config)
    is_stopped_too = config.pairs.measure == "containment"
    if choice in STREAMED:
        monkeypatch.setattr(clustering, "FEW_EDGES", 0)
    if is_stopped_too:
        run_until(spark, [source], tmp_path / "run", settings, "pairs")
        shutil.copytree(tmp_path / "run", tmp_path / "stopped")
        _require_refused(lambda: run_job(spark, [str(source)], str(tmp_path / "run"), config, resume=True))
    run_job(spark, [str(source)], str(tmp_path / "run"), config, resume=is_stopped_too)

    _require_equal(tmp_path / "run", tables, counted)
    assert set(tables) == set(RESULTS) - {"texts"}
    if choice in BY_ONE_TASK:
        assert counted["components"] > counted["led_components"] > 0
        assert any(tables["pairs"]["star"].to_pylist())
        assert len(counted["pruned_to"]) > 2
        assert min(counted["pairs_below_support"], counted["cut_clusters"], len(tables["clusters"])) > 0
    if plan.comparison_limits(config) is None:
        whole = make_tables(source, _with(config, max_postings=10_000))[0]["pairs"]
        assert rows_of(tables["pairs"]) == rows_of(whole)
        few = _with(config, max_comparisons=1)
        _require_stopped(lambda: make_tables(source, few))
        if is_stopped_too:
            _require_stopped(lambda: run_job(spark, [str(source)], str(tmp_path / "stopped"), few, resume=True))
    if choice in BY_ONE_TASK:
        monkeypatch.setattr(one_task, "fits_one", lambda *_, **__: True)
        monkeypatch.setattr(documents, "FEW_BYTES", 1 << 20)
        run_job(spark, [str(source)], str(tmp_path / "small"), config)
        assert not (tmp_path / "small/_stages/records.json").exists()
        assert not (tmp_path / "small/_stages/compared.json").exists()
        _require_equal(tmp_path / "small", tables, counted)


def _require_equal(run: Path, tables: dict[str, pa.Table], counted: dict[str, Any]) -> None:
    """Assert that a finished run has these tables and counts."""
    for name, table in tables.items():
        theirs = pq.read_table(run / name)
        assert [(field.name, field.type) for field in table.schema] == [(f.name, f.type) for f in theirs.schema]
        assert rows_of(table) == rows_of(theirs), name
    metrics = RunMetrics.read((run / "metrics.json").read_text())
    told = metrics.model_dump() | {f"lexicon_{name}": n for name, n in _lexicon_of(metrics).items()}
    for stage in metrics.stages.by_name().values():
        told |= stage.model_dump()
    compared = counted.keys() - OF_SPARK
    assert {name: counted[name] for name in compared} == {name: told[name] for name in compared}


def _with(config: Config, **pairs: int) -> Config:
    return config.model_copy(update={"pairs": config.pairs.model_copy(update=pairs)})


def _require_stopped(run: Callable[[], object]) -> None:
    """Assert that without leaders, a list too long to compare in full fails the run."""
    with pytest.raises(CapacityError, match=r"more than pairs\.max_comparisons \(1\) comparisons"):
        run()


def _require_refused(run: Callable[[], object]) -> None:
    """Assert that a graph by containment of more sketches than one task takes fails the run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "most_nodes", lambda _job, _bits: 5)
        with pytest.raises(CapacityError, match=r"^\d+ distinct sketches, more than the 5 that one task takes"):
            run()


def _lexicon_of(metrics: RunMetrics) -> dict[str, int]:
    lexicon = metrics.stages.sketch.lexicon
    return {} if lexicon is None else lexicon.model_dump()
