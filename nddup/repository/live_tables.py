"""The tables of one version, as a run over its live documents would write them."""

import pyarrow as pa

from nddup.repository.lookup.keyed import distinct, is_among
from nddup.repository.make_change import as_of_run
from nddup.repository.segments.layout import NOT_STORED, RESULTS
from nddup.repository.segments.segment_files import read_all
from nddup.repository.snapshot import Snapshot
from nddup.tables import KEEP
from nddup.tables import RESULTS as RUN_RESULTS


def live_tables(snapshot: Snapshot) -> dict[str, pa.Table]:
    """Return `documents`, `keep`, `pairs`, `clusters`, `members` and `false_components`, all in memory."""
    keys = snapshot.live_keys
    state = snapshot.state_of(keys)
    documents = as_of_run(snapshot, snapshot.documents_of(keys))
    at = documents.schema.get_field_index("group")
    keep = state.append_column("doc_id", documents["doc_id"])
    live = distinct(state["component_key"].to_numpy())
    found = {
        "documents": documents.set_column(at, "group", state["group"]),
        "keep": keep.select(KEEP.names).cast(KEEP.arrow),
    }
    for name in RESULTS:
        rows = read_all(snapshot.repo, snapshot.commit.segments, name)
        alive = rows.filter(pa.array(is_among(rows["component_key"].to_numpy(), live)))
        if name == "pairs":
            alive = alive.append_column(NOT_STORED, pa.nulls(len(alive), pa.float64()))
        found[name] = alive.select(RUN_RESULTS[name].names)
    return found
