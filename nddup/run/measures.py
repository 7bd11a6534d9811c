"""The metrics of a run, put together from the counts of its stages."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nddup.metrics import RunMetrics, SkippedFile, Stages
from nddup.run.limits import SilentFile
from nddup.run.stage import settings_of
from nddup.scanning.collection import Collection
from nddup.scanning.local_paths import is_utf8
from nddup.settings import derive
from nddup.settings.schema import Config
from nddup.storage.versions import versions
from nddup.tables import RESULTS

MOST_UNREAD = 100
"""Most files named in `unread_files`; every such file has a row in `rejects`."""


class Unpaired(NamedTuple):
    """Counts of the documents that pairing treats apart: those that can be in no pair, and those of equal sketches."""

    empty_sketches: int
    below_count: int
    equal_sketches: int


def measure_files(source: Any) -> dict[str, Any]:  # noqa: ANN401 - a table of either engine
    """Return what `SketchMetrics` says about the files of a collection before it is read; {} for a given table."""
    if not isinstance(source, Collection):
        return {}
    listing = source.listing
    skipped = [*listing.skipped, *((path, "given twice") for path in listing.repeated)]
    return {
        "bytes": sum(file.size for file in listing.files),
        "files": len(listing.files),
        "respelled_names": sum(not is_utf8(file.path) for file in listing.files),
        "skipped_files": [SkippedFile(path=path, why=why) for path, why in skipped],
    }


def name_unread(silent: Sequence[SilentFile]) -> list[SkippedFile]:
    """Return the first files that gave no document, each with the reason."""
    first = silent[:MOST_UNREAD]
    return [SkippedFile(path=file.source, why=file.detail if file.rejects == 1 else file.reason) for file in first]


def count_renamed(counts: Mapping[str, Any], reasons: Mapping[str, int]) -> int:
    """Count the documents whose id an earlier record has: of the later records of an id, those that are no rejects.

    Args:
        counts: as noted with the documents; an earlier version did not note `later_ids`, and rejected all of them.
        reasons: number of rejects by reason.
    """
    rejected = reasons.get("repeated id", 0)
    return int(counts.get("later_ids", rejected)) - rejected


def metrics_of(config: Config, stages: Stages, unpaired: Unpaired) -> RunMetrics:
    """Return the content of `metrics.json`. Only runs that leave a folder, and so have stage `texts`, have a recipe."""
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
