"""Checks of the values of a segment, so that no look-up reads outside an array, whoever wrote it.

A digest proves that a file is the one that was written, not that its writer meant well: a repository may be
anyone's. So all that is used as a place, an offset or an order is compared with its range when a segment is mapped,
before a kernel sees it. That is one pass over the arrays, about 1 ns an entry; the ids of sketches, by far the most
values, are only compared with each other, and need none. That the values are also those of the tables, `index check`
proves.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.storage import sound_tables
from nddup.tables import DOCUMENTS

MAY_LACK = frozenset(
    ["duplicate_of", "duplicate_key", "reason", "resemblance", "containment_a", "containment_b", "common",
     "shingles_a", "shingles_b", "edit", *DOCUMENTS.named("may_lack")]
)  # fmt: skip
"""The columns that may hold nulls: where nothing is to be said, or an earlier version stored none."""

DIGESTED = frozenset(["documents", "pairs", "clusters", "members", "keep", "false_components"])
"""The tables of a run that have digests: the values of the column `name`."""

ORDERED = {"documents": "doc_key", "state": "component_key", "digests": "component_key"}
"""The tables whose rows are looked up, and the column by which they are ordered."""

DTYPES: dict[str, Any] = {
    "nodes": np.int64, "n_features": np.int32, "sketch_offsets": np.int64, "sketch_ids": np.uint64,
    "features": np.uint32, "holders": np.int32, "places": np.int32, "common": np.uint32, "common_holders": np.int32,
    "print_ends": np.uint64, "gone": np.int64, "replaced": np.int64,
    "prints-keys": np.uint64, "by_id-keys": np.uint64, "by_node-keys": np.int64, "by_document-keys": np.int64,
    "prints-rows": np.int32, "by_id-rows": np.int32, "by_node-rows": np.int32, "by_document-rows": np.int32,
}  # fmt: skip
"""The arrays of a mapped segment; where the modulus varies, also those of `LEVELLED`."""

LEVELLED: dict[str, Any] = {"row_names": np.int64, "row_offsets": np.int64, "row_ids": np.uint64}


def find_fault_in_table(table: pa.Table, declared: pa.Schema) -> str | None:
    """Return in words why a table of a segment, or some columns of it, cannot be what was written; None if it can."""
    fault = sound_tables.find_fault_in_table(table, declared, may_lack=MAY_LACK)
    if fault or "name" not in table.column_names or DIGESTED.issuperset(table["name"].unique().to_pylist()):
        return fault
    return "name holds that of no table"


def find_fault(arrays: Mapping[str, NDArray[Any]], tables: Mapping[str, pa.Table], *, is_levelled: bool) -> str | None:
    """Return in words which arrays of a mapped segment cannot be what was made of its tables; None if all can.

    Args:
        arrays: by name, as `mapped` stores them.
        tables: `ORDERED`, each without a fault of its own.
        is_levelled: whether there are rows for each level of the modulus.
    """
    dtypes = DTYPES | LEVELLED if is_levelled else DTYPES
    if arrays.keys() != dtypes.keys() or any(arrays[name].dtype != dtype for name, dtype in dtypes.items()):
        return "other arrays than expected"
    return next(_list_faults(arrays, tables, is_levelled=is_levelled), None)


def hold_common(parts: Sequence[NDArray[np.int64]]) -> bool:
    """Return whether two of some ascending arrays hold the same number. Their ranges tell it where these are apart."""
    filled = sorted((part for part in parts if len(part)), key=lambda part: int(part[0]))
    if all(before[-1] < after[0] for before, after in pairwise(filled)):
        return False
    return bool((np.diff(np.sort(np.concatenate(filled))) == 0).any())


def _list_faults(
    arrays: Mapping[str, NDArray[Any]], tables: Mapping[str, pa.Table], *, is_levelled: bool
) -> Iterator[str]:
    n_nodes, n_documents, n_states = len(arrays["nodes"]), len(tables["documents"]), len(tables["state"])
    ends = arrays["row_offsets" if is_levelled else "sketch_offsets"]
    n_rows = len(arrays["row_names"]) if is_levelled else n_nodes
    lengths = {
        "n_features": n_nodes, "print_ends": n_nodes, "sketch_offsets": n_nodes + 1,
        "holders": len(arrays["features"]), "places": len(arrays["features"]), "common_holders": len(arrays["common"]),
    }  # fmt: skip
    keyed = {"prints": n_nodes, "by_id": n_documents, "by_node": n_documents, "by_document": n_states}
    lengths |= {f"{name}-{part}": count for name, count in keyed.items() for part in ("keys", "rows")}
    yield from (f"{name} has another length" for name, length in lengths.items() if len(arrays[name]) != length)

    ragged = [("sketch_offsets", "sketch_ids"), *([("row_offsets", "row_ids")] if is_levelled else [])]
    for offsets, values in ragged:
        if not _are_offsets(arrays[offsets], len(arrays[values])):
            yield f"{offsets} leads outside"
    if len(ends) != n_rows + 1:
        yield "row_offsets has another length"
    for name, count in {"holders": n_rows, **{f"{name}-rows": count for name, count in keyed.items()}}.items():
        if not _are_within(arrays[name], count):
            yield f"{name} leads outside"
    if len(arrays["places"]) and (arrays["places"] < 0).any():
        yield "places leads outside"
    named = {"nodes": arrays["nodes"], "documents": tables["documents"]["doc_key"].to_numpy()}
    yield from (f"{name} holds one twice" for name, keys in named.items() if (keys[1:] == keys[:-1]).any())
    ascending = ("nodes", "features", "common", "gone", "replaced", *(f"{name}-keys" for name in keyed))
    yield from (f"{name} is not ascending" for name in ascending if not _is_ascending(arrays[name]))
    for name, key in ORDERED.items():
        if not _is_ascending(tables[name][key].to_numpy()):
            yield f"{name} is not ascending"


def _are_offsets(offsets: NDArray[np.int64], count: int) -> bool:
    return len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == count and _is_ascending(offsets)


def _are_within(places: NDArray[np.integer], count: int) -> bool:
    return not len(places) or (places.min() >= 0 and places.max() < count)


def _is_ascending(values: NDArray[Any]) -> bool:
    return bool((values[1:] >= values[:-1]).all())
