"""Recompute a run with another threshold, from its documents alone.

The stored sketches and signatures do not depend on the threshold. The embedded engine recomputes everything after them:
pairs, stars, candidates of bands, components given by leaders, clusters, keep-list. So the tables equal those of a
fresh run, also for a threshold below the run's own.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from nddup.engines.engine import FinishedRun
from nddup.errors import ConfigError
from nddup.local.memory import Memory
from nddup.local.reading.workers import Workers
from nddup.metrics import RunMetrics
from nddup.mining.keep_verdicts import FORCED_NOTE, Forced
from nddup.run.engines import memory_of
from nddup.run.local_job import LocalJob
from nddup.settings.load import read_stored
from nddup.settings.plan import processes_of
from nddup.stages.inputs_found import read_forced
from nddup.stages.progress import Progress
from nddup.stages.run import decide
from nddup.stages.run_engine import Made
from nddup.stages.stage import metrics_of
from nddup.storage.local_folder import MemoryTables
from nddup.storage.local_storage import LocalStorage
from nddup.tables import DOCUMENTS, REJECTS


class Rethresholded(NamedTuple):
    """The tables of the recomputed run by name, and its metrics."""

    tables: Mapping[str, pa.Table]
    metrics: RunMetrics


def make_again(  # noqa: PLR0913 - the parts of a run
    documents: pa.Table,
    rejects: pa.Table,
    metrics: RunMetrics,
    threshold: float,
    pairs: pa.Table | None = None,
    *,
    forced: Forced | None = None,
) -> Rethresholded:
    """Recompute the tables of a run with another `pairs.threshold`.

    Args:
        documents: DOCUMENTS of the run, in any order.
        rejects: REJECTS of the run.
        metrics: metrics of the run.
        threshold: a share such as `0.9`, or a count such as `180`, as in `pairs.threshold`.
        pairs: PAIRS of the run, where the resemblance of all shingles decided them.
        forced: the documents of `keep.force`, as `forced_of` gives them.

    Returns:
        All tables except `texts`, and the new metrics.

    Raises:
        ConfigError: if the measure of the run does not take such a threshold, or texts would have to be compared again.
        NeedsSparkError: if it needs more than `local.memory`.

    Cost: that of a run after reading and sketching.
    """
    require_texts_told(metrics, threshold)
    settings = {**metrics.settings, "pairs": {**metrics.settings["pairs"], "threshold": threshold}}
    config = read_stored(settings, origin="rethreshold")

    store = MemoryTables()
    store.write("documents", documents.sort_by("doc_key").select(DOCUMENTS.names))
    store.write("rejects", rejects.select(REJECTS.names))
    memory = Memory(memory_of(config), advice="run it again with this threshold, on Spark")
    with Workers(processes_of(config), memory=memory) as workers:
        job = LocalJob(config, store, workers, Progress(is_quiet=True), forced=forced)
        sketched = Made(tables=dict(store.tables), rows={"documents": len(documents)}, counts={})
        found = decide(job, sketched, metrics.stages.sketch, None, pairs)
    return Rethresholded(store.tables, metrics_of(config, found.stages, found.unpaired))


def forced_of(run: FinishedRun, path: str | None) -> Forced | None:
    """Return the documents that `keep.force` named when a run was made; None for no path.

    Raises:
        ConfigError: for a run without a folder, if the file is gone or not what it should be.
    """
    if path is None:
        return None
    if not run.holds(FORCED_NOTE):
        return read_forced(LocalStorage(), path)
    told = json.loads(run.read_text(FORCED_NOTE))
    return Forced(tuple(told["kept"]), tuple(told["removed"]))


def require_texts_told(metrics: RunMetrics, threshold: float) -> None:
    """Refuse a run whose texts, which are not stored, would have to be compared again.

    Where the resemblance of all shingles decides, `pairs` has that of every pair at a higher threshold, if no component
    is given by leaders.

    Raises:
        ConfigError: if they would.
    """
    pairs = metrics.settings["pairs"]
    confirm = pairs.get("confirm", "none")
    is_told = confirm == "resemblance" and threshold >= pairs["threshold"]
    if confirm != "none" and not (is_told and not metrics.stages.clusters.led_components):
        lower = " for a lower threshold, or where leaders stand for a component" if confirm == "resemblance" else ""
        raise ConfigError(
            f"rethreshold: texts confirmed the pairs of this run (pairs.confirm {confirm}), and only sketches are"
            f" stored{lower}; run `nddup run` with the other pairs.threshold"
            + (" or pairs.edit_threshold" if confirm == "edit" else "")
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
