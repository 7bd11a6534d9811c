"""The metrics of a run, put together from what its stages counted."""

from nddup.metrics import RunMetrics, TextsMetrics
from nddup.run.pipeline import Found
from nddup.run.state import settings_of
from nddup.settings import derive
from nddup.settings.schema import Config
from nddup.storage.versions import versions
from nddup.tables import RESULTS


def metrics_of(config: Config, found: Found, texts: TextsMetrics | None = None) -> RunMetrics:
    """What `metrics.json` holds. `texts` and the recipe are of runs that leave a folder."""
    stages = found.stages.model_copy(update={"texts": texts})
    rows = {name: count for stage in stages.by_name().values() for name, count in stage.rows_out.items()}
    documents = found.sketched.documents
    return RunMetrics(
        records=stages.sketch.rows_in["records"],
        rows={name: rows[name] for name in RESULTS if name in rows},
        empty_sketches=documents.empty_sketches,
        below_count=documents.below_count,
        equal_sketches=documents.equal_sketches,
        stages=stages,
        settings=settings_of(config),
        recipe=derive.recipe_of(config).key if texts else None,
        versions=versions(),
    )
