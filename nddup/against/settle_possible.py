"""From the shingles that a filter let pass to those that are shared: `find_hits` compares each with the known ones."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from nddup.against.against_tables import SHARED
from nddup.against.find_hits import find_hits
from nddup.against.lists import flatten, list_column
from nddup.against.share_records import cut_regions
from nddup.against.shingle_table import Known
from nddup.scanning.text_buffers import text_buffers

DOCUMENTS = 1_000
"""Documents whose shingles are compared in one call."""


def settle_possible(possible: pa.Table, known: Known) -> pa.Table:
    """Return the rows that a pass with the known shingles themselves would have given.

    Args:
        possible: SHARED, the documents of a pass with a filter that lets every known shingle pass.
        known: the shingles.

    Returns:
        SHARED with numbers, without the places and documents that have no known shingle.

    Cost: a slice of text per possible shingle, and its look-up by `find_hits`.
    """
    settled = [_settle(batch, known) for batch in possible.to_batches(max_chunksize=DOCUMENTS)]
    return pa.Table.from_batches(settled, SHARED.arrow)


def _settle(batch: pa.RecordBatch, known: Known) -> pa.RecordBatch:
    offsets, tokens = flatten(batch["tokens"])
    begins, ends = flatten(batch["begins"])[1], flatten(batch["ends"])[1]
    starts, regions = batch["region_starts"].to_pylist(), batch["regions"].to_pylist()

    # For each shingle, the piece of its document's text that holds it.
    bounds = list(pairwise(offsets.tolist()))
    pieces = np.concatenate(
        [
            np.searchsorted(starts[row], begins[low:high], "right") - 1
            for row, (low, high) in enumerate(bounds)
        ] or [np.empty(0, np.int64)]
    )  # fmt: skip
    texts = [
        regions[row][piece][begin - starts[row][piece] : end - starts[row][piece]]
        for row, (low, high) in enumerate(bounds)
        for piece, begin, end in zip(
            pieces[low:high].tolist(), begins[low:high].tolist(), ends[low:high].tolist(), strict=True
        )
    ]
    hits = find_hits(*text_buffers(texts), known)  # each text is one shingle: it has one hit or none
    is_hit = np.diff(hits.offsets) > 0

    cuts = []
    for row, (low, high) in enumerate(bounds):
        made: tuple[list[int], list[str]] = ([], [])
        for piece in np.unique(pieces[low:high][is_hit[low:high]]).tolist():
            here = np.flatnonzero(is_hit[low:high] & (pieces[low:high] == piece)) + low
            first = starts[row][piece]
            found = cut_regions(regions[row][piece], begins[here] - first, ends[here] - first)
            made[0].extend(start + first for start in found[0])
            made[1].extend(found[1])
        cuts.append(made)

    counts = np.append(0, np.cumsum(is_hit))[offsets].astype(np.int32)
    columns = {
        "tokens": list_column(counts, tokens[is_hit]),
        "numbers": list_column(counts, hits.numbers),
        "keys": pa.nulls(len(batch), SHARED.arrow.field("keys").type),
        "begins": list_column(counts, begins[is_hit]),
        "ends": list_column(counts, ends[is_hit]),
        "region_starts": pa.array([one[0] for one in cuts], SHARED.arrow.field("region_starts").type),
        "regions": pa.array([one[1] for one in cuts], SHARED.arrow.field("regions").type),
    }
    settled = SHARED.batch([columns.get(name, batch[name]) for name in SHARED.names])
    return settled.filter(pa.array(np.diff(counts) > 0))
