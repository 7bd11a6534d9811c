"""Recompute a run with another threshold, from its documents alone.

The stored sketches and signatures do not depend on the threshold. The embedded engine recomputes everything after them:
pairs, stars, candidates of bands, components given by leaders, clusters, keep-list. So the tables equal those of a
fresh run, also for a threshold below the run's own.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from nddup.errors import ConfigError
from nddup.local.memory import Memory
from nddup.local.reading.workers import Workers
from nddup.metrics import RunMetrics, Stages
from nddup.run.engines import memory_of
from nddup.run.local_stages import LocalJob, Sketched, find_clusters
from nddup.run.progress import Progress
from nddup.run.stage import metrics_of
from nddup.settings.load import read_stored
from nddup.settings.plan import processes_of
from nddup.storage.local_folder import MemoryTables
from nddup.tables import DOCUMENTS, REJECTS


class Made(NamedTuple):
    """The tables of the recomputed run by name, and its metrics."""

    tables: Mapping[str, pa.Table]
    metrics: RunMetrics


def make_again(documents: pa.Table, rejects: pa.Table, metrics: RunMetrics, threshold: float) -> Made:
    """Recompute the tables of a run with another `pairs.threshold`.

    Args:
        documents: DOCUMENTS of the run, in any order.
        rejects: REJECTS of the run.
        metrics: metrics of the run.
        threshold: a share such as `0.9`, or a count such as `180`, as in `pairs.threshold`.

    Returns:
        All tables except `texts`, and the new metrics.

    Raises:
        ConfigError: if the measure of the run does not take such a threshold, or texts confirmed its pairs.
        NeedsSparkError: if it needs more than `local.memory`.

    Cost: that of a run after reading and sketching.
    """
    require_sketches_decide(metrics)
    settings = {**metrics.settings, "pairs": {**metrics.settings["pairs"], "threshold": threshold}}
    config = read_stored(settings, origin="rethreshold")

    store = MemoryTables()
    store.write("documents", documents.sort_by("doc_key").select(DOCUMENTS.names))
    store.write("rejects", rejects.select(REJECTS.names))
    memory = Memory(memory_of(config), advice="run it again with this threshold, on Spark")
    with Workers(processes_of(config), memory=memory) as workers:
        job = LocalJob(config, store, workers, Progress(is_quiet=True))
        found = find_clusters(job, Sketched(store.tables["documents"], None, metrics.stages.sketch))

    pairs, clusters, keep = found.stages
    stages = Stages(sketch=metrics.stages.sketch, pairs=pairs, clusters=clusters, keep=keep)
    return Made(store.tables, metrics_of(config, stages, found.unpaired))


def require_sketches_decide(metrics: RunMetrics) -> None:
    """Refuse a run whose pairs were confirmed by texts.

    Raises:
        ConfigError: if they were.
    """
    if metrics.settings["pairs"].get("confirm", "none") != "none":
        raise ConfigError(
            "rethreshold: texts confirmed the pairs of this run (pairs.confirm edit), and only sketches are stored;"
            " run `nddup run` with the other pairs.threshold or pairs.edit_threshold"
        )


def require_tellable(header: Mapping[str, Any], path: str) -> None:
    """Refuse a run whose keep-list does not follow from its documents.

    Args:
        header: content of the run's `_RUN.json`.
        path: folder of the run, for the message.

    Raises:
        ConfigError: if the run is a version of a repository.
    """
    if "repository" in header.get("inputs", {}):
        raise ConfigError(
            f"rethreshold: {path} is a version of a repository; what it keeps follows from all versions before it, not"
            " from its documents alone; run `nddup run` over the documents"
        )
