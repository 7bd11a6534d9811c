"""From files or texts to RECORDS, in one pass unless the settings need another.

lexicon      a pass that counts the words, then one that sketches with those of the lexicon
left out     a pass that sketches, then one without the shingles that too many documents have
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.local.columns import ragged_of
from nddup.local.plan import Plan
from nddup.local.reading.scan import in_collection_order
from nddup.local.reading.term_counts import find_lexicon
from nddup.local.reading.workers import Workers
from nddup.scanning.collection import Collection
from nddup.scanning.sketch_records import SketchRecords
from nddup.settings.schema import Config
from nddup.tables import REJECTS


class Read(NamedTuple):
    """All records in collection order, rejects of files without any, the lexicon, and the counts."""

    records: pa.Table
    silent: pa.Table
    lexicon: pa.Table | None
    counts: dict[str, int]


def read_records(source: Collection | pa.Table, config: Config, workers: Workers) -> Read:
    """Make RECORDS of files or of TEXTS.

    Raises:
        ConfigError: for a saved lexicon that cannot be used.
        CapacityError: for a lexicon of too many words.
        NddupError: if a worker fails or dies, naming what it read.
    """
    plan = Plan(config)
    lexicon = find_lexicon(source, plan, workers)
    ids = lexicon.ids if lexicon else b""
    rule = plan.sketching(lexicon=ids)
    records = workers.scan(source, SketchRecords(rule), plan.limits)
    counts = {"files_read_again": 0, "left_out_shingles": 0}
    if (common := find_common(records, config)) is not None:
        counts["left_out_shingles"] = len(common)
        if len(common):
            rule = plan.sketching(lexicon=ids, left_out=common.tobytes())
            records = workers.scan(source, SketchRecords(rule), plan.limits)
    if isinstance(source, Collection):
        records = in_collection_order(records, source)
    replaced = records["n_replaced"].to_numpy()
    counts |= {"undecodable_records": int(np.count_nonzero(replaced)), "undecodable_places": int(replaced.sum())}
    counts["stripped_records"] = int(np.count_nonzero(records["n_stripped"].to_numpy()))
    counts["made_up_ids"] = pc.sum(pc.and_(pc.is_null(records["reason"]), pc.is_null(records["doc_id"]))).as_py() or 0
    counts |= lexicon.counts if lexicon else {}
    silent = list_silent(source, records) if isinstance(source, Collection) else REJECTS.arrow.empty_table()
    return Read(records, silent, lexicon.table if lexicon else None, counts)


def find_common(records: pa.Table, config: Config) -> np.ndarray[tuple[int], np.dtype[np.uint64]] | None:
    """Return the shingles that are in the sketches of more documents than `pairs.max_document_frequency`, ascending.

    Returns None where there is no limit. The shingles that then take their place in the sketches stay, however common.
    """
    limit = config.pairs.max_document_frequency
    if limit is None:
        return None
    good = records.filter(pc.is_null(records["reason"]))
    if isinstance(limit, float):
        limit = math.floor(Fraction(repr(limit)) * len(good))
    ids, documents = np.unique(ragged_of(good["sketch"]).values, return_counts=True)
    return ids[documents > limit]


def list_silent(collection: Collection, records: pa.Table) -> pa.Table:
    """Return REJECTS of whole files: those already refused by their head, and those in which no record was found."""
    known = {source for source, _, _ in collection.unread}
    seen = set(pc.unique(records["source"]).to_pylist())
    rows = list(collection.unread)
    rows += [
        (file.source, "no records", "no record was found in the file")
        for file in collection.listing.files
        if file.source not in known
    ]
    rejects = [
        {"source": source, "record": 1, "doc_id": None, "reason": reason, "detail": detail, "excerpt": ""}
        for source, reason, detail in rows
        if source not in seen
    ]
    return pa.Table.from_pylist(rejects, REJECTS.arrow)
