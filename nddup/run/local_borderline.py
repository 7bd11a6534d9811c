"""The pairs nearest to the threshold, whose texts are stored for the report; for the embedded engine."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nddup.report.borderline import EACH, SHOWN, Measure, measure_of, take_distinct
from nddup.run.stage import settings_of
from nddup.settings.schema import Config
from nddup.storage.local_folder import LocalFolder

ENDS = ("doc_a", "doc_b")
NEEDED = {"containment": ["containment_a", "containment_b"]}
"""Columns of `pairs` that a measure is computed from, if it is not a column itself."""


def list_borderline(folder: LocalFolder, documents: pa.Table, config: Config) -> list[dict[str, Any]]:
    """Return the pairs nearest to the threshold, as `text_choice.add_pairs` takes them.

    Args:
        folder: of the run, which holds `pairs`.
        documents: DOCUMENTS.
        config: all settings.

    Cost: a pass over two columns of ids and the measure.
    """
    measure = measure_of(settings_of(config))
    if measure is None:
        return []
    pairs = folder.read("pairs", columns=[*ENDS, *NEEDED.get(measure.name, [measure.name])])
    nearest = _select(pairs, measure)
    wanted = pa.chunked_array([*nearest["doc_a"].chunks, *nearest["doc_b"].chunks], pa.string()).unique()
    few = documents.filter(pc.is_in(documents["doc_id"], wanted))
    about = {row["doc_id"]: row for row in few.select(["doc_id", "group", "source", "content_fingerprint"]).to_pylist()}
    rows = [
        {"doc_a": a, "doc_b": b, "group_a": about[a]["group"], "group_b": about[b]["group"],
         "source_a": about[a]["source"], "source_b": about[b]["source"],
         "content_a": about[a]["content_fingerprint"], "content_b": about[b]["content_fingerprint"]}
        for a, b in zip(*(nearest[name].to_pylist() for name in ENDS), strict=True)
    ]  # fmt: skip
    return [dict(row) for row in take_distinct(rows, SHOWN)]


def _select(pairs: pa.Table, measure: Measure) -> pa.Table:
    """Return the first `EACH * SHOWN` rows by measure and ids, in this order."""
    if measure.name == "containment":
        measured = pc.max_element_wise(pairs["containment_a"], pairs["containment_b"])
    else:
        measured = pairs[measure.name]
    known = pairs.select(ENDS).append_column("measured", measured).filter(pc.is_valid(measured))
    keys = [(name, "ascending") for name in ("measured", *ENDS)]
    return known.take(pc.select_k_unstable(known, EACH * SHOWN, keys))
