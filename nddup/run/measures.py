"""The metrics of a run, put together from what its stages counted."""

from typing import NamedTuple

from nddup.metrics import RunMetrics, SkippedFile, Stages
from nddup.run.stage import settings_of
from nddup.scanning.input_files import Listing
from nddup.settings import derive
from nddup.settings.schema import Config
from nddup.storage.versions import versions
from nddup.tables import RESULTS


class Unpaired(NamedTuple):
    """Documents that pairing treats apart: those that can be in no pair, and those of equal sketches."""

    empty_sketches: int
    below_count: int
    equal_sketches: int


def skipped_files(listing: Listing) -> list[SkippedFile]:
    """The files that were not read, each with the reason."""
    skipped = [*listing.skipped, *((path, "given twice") for path in listing.repeated)]
    return [SkippedFile(path=path, why=why) for path, why in skipped]


def metrics_of(config: Config, stages: Stages, unpaired: Unpaired) -> RunMetrics:
    """What `metrics.json` holds. The recipe is of runs that leave a folder: they have the stage `texts`."""
    rows = {name: count for stage in stages.by_name().values() for name, count in stage.rows_out.items()}
    return RunMetrics(
        records=stages.sketch.rows_in["records"],
        rows={name: rows[name] for name in RESULTS if name in rows},
        **unpaired._asdict(),
        stages=stages,
        settings=settings_of(config),
        recipe=derive.recipe_of(config).key if stages.texts else None,
        versions=versions(),
    )
