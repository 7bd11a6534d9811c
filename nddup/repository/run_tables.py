"""Write a version as a run's folder, which `show`, `report`, `evaluate` and `check` read like any run."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nddup.local import outputs
from nddup.local.clustering.false_components import count_false_components
from nddup.local.pairing.collapse import name_nodes
from nddup.matching.preference import Order
from nddup.metrics import ClustersMetrics, KeepMetrics, PairsMetrics, SketchMetrics, Stages, TextsMetrics
from nddup.opened.duck import DuckRun
from nddup.report.folder import report_run
from nddup.repository.live_tables import live_tables
from nddup.repository.snapshot import Snapshot
from nddup.repository.stored_texts import shown_texts
from nddup.run.lineage import made_of
from nddup.run.measures import Unpaired, metrics_of
from nddup.run.stage import settings_of
from nddup.storage.local_folder import LocalFolder
from nddup.tables import REJECTS

ORDER = ("documents", "rejects", "pairs", "false_components", "clusters", "members", "keep", "texts")
"""The tables in writing order, each after those it is made from."""


def write_run(snapshot: Snapshot, output: str) -> dict[str, Any]:
    """Write the tables of a version as a finished run; return its metrics.

    Raises:
        OutputError: if the folder holds anything, or cannot be written.
    """
    config = snapshot.identity.config
    folder = LocalFolder(output)
    repo = snapshot.repo.full_name()
    inputs = {"paths": [repo], "files": {}, "repository": repo, "version": snapshot.commit.version}
    with folder:
        folder.start(settings=settings_of(config), inputs=inputs)
        tables = live_tables(snapshot)
        tables |= {"rejects": REJECTS.arrow.empty_table(), "texts": shown_texts(snapshot, tables)}
        for name in ORDER:
            folder.write(name, tables[name])
            folder.seal(name, **made_of(name, config), counted={"rows": len(tables[name]), "counts": {}, "noted": {}})
        folder.write_text("duplicates.txt", outputs.spell_clusters(tables["clusters"], tables["members"]))
        metrics = _count(snapshot, tables)
        folder.finish(metrics)
        if config.output.report:
            report_run(DuckRun(folder.path), folder)
    return metrics


def _count(snapshot: Snapshot, tables: dict[str, pa.Table]) -> dict[str, Any]:
    """Return the content of `metrics.json` for tables that were made over several versions."""
    identity = snapshot.identity
    rows = {name: len(table) for name, table in tables.items()}
    nodes = name_nodes(tables["documents"], order=Order("first-id"), levels=identity.plan.levels)
    counts = nodes.counts(identity.plan.threshold.least_size)
    kept = pc.sum(tables["keep"]["kept"]).as_py() or 0
    clusters, coverage = tables["clusters"], tables["clusters"]["coverage"]
    stages = Stages(
        sketch=SketchMetrics(
            rows_in={"records": rows["documents"]}, rows_out={"documents": rows["documents"], "rejects": 0}
        ),
        pairs=PairsMetrics(
            rows_in={"documents": rows["documents"]},
            rows_out={"pairs": rows["pairs"]},
            distinct_sketches=counts["distinct_sketches"],
        ),
        clusters=ClustersMetrics(
            rows_in={"pairs": rows["pairs"]},
            rows_out={name: rows[name] for name in ("clusters", "members", "false_components")},
            components=pc.count_distinct(clusters["component"]).as_py(),
            covered_clusters=pc.sum(pc.equal(coverage, "pairs")).as_py() or 0,
            led_clusters=pc.sum(pc.equal(coverage, "documents")).as_py() or 0,
            **count_false_components(tables["false_components"]),
        ),
        keep=KeepMetrics(
            rows_in={"documents": rows["documents"]}, rows_out={"keep": rows["keep"]}, kept=kept,
            removed=rows["keep"] - kept,
        ),
        texts=TextsMetrics(rows_in={"clusters": rows["clusters"]}, rows_out={"texts": rows["texts"]}),
    )  # fmt: skip
    return metrics_of(identity.config, stages, Unpaired(*(counts[name] for name in Unpaired._fields))).dump()
