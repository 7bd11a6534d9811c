"""The state of documents before and after a change, and the table `changes` of the differences."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.local.columns import one_chunk
from nddup.repository.segments.layout import CHANGES, table_of
from nddup.tables import KEEP

KEPT, REMOVED, ABSENT = "kept", "removed", "absent"


@dataclass(frozen=True)
class Settled:
    """The state of n documents: those that stay, then the new ones.

    Attributes:
        keys: (n,), their numbers.
        ids: (n,), their ids.
        kept: (n,), whether each is kept.
        targets: (n,), the number of the kept near-duplicate; -1 where the document is kept.
        reasons: (n,), as in `keep`.
        n_stay: how many documents stay.
    """

    keys: NDArray[np.int64]
    ids: pa.Array
    kept: NDArray[np.bool_]
    targets: NDArray[np.int64]
    reasons: pa.Array
    n_stay: int

    @property
    def duplicate_of(self) -> pa.Array:
        """The id of each document's kept near-duplicate; null where it is kept."""
        order = np.argsort(self.keys)
        at = order[np.minimum(np.searchsorted(self.keys[order], self.targets), max(len(order) - 1, 0))]
        return self.ids.take(pa.array(at, pa.int64(), mask=self.targets < 0))

    @property
    def keep(self) -> pa.Table:
        """The state as rows of KEEP, in the order of the documents."""
        return pa.Table.from_arrays([self.ids, pa.array(self.kept), self.duplicate_of, self.reasons], schema=KEEP.arrow)

    def with_lasting(self, old: pa.Table) -> "Settled":
        """Return the same, but with the old `duplicate_of` wherever its target is still there.

        Args:
            old: STATE of the documents that stay, in their order.
        """
        before = pc.fill_null(old["duplicate_key"], -1).to_numpy().astype(np.int64)
        lasts = np.zeros(len(self.keys), np.bool_)
        lasts[: self.n_stay] = (before >= 0) & np.isin(before, self.keys)
        targets = self.targets.copy()
        targets[: self.n_stay] = np.where(lasts[: self.n_stay], before, targets[: self.n_stay])
        rest = pa.nulls(len(self.keys) - self.n_stay, pa.string())
        reasons = pa.concat_arrays([one_chunk(old["reason"]).cast(pa.string()), rest])
        return replace(self, targets=targets, reasons=pc.if_else(pa.array(lasts), reasons, self.reasons))


def list_changes(ids: pa.ChunkedArray, old: pa.Table, now: Settled, gone: NDArray[np.int64]) -> pa.Table:
    """Return CHANGES between a version and the next, ordered by id.

    Args:
        ids: the ids of the touched documents of the version before.
        old: STATE of these documents, in the same order.
        now: the state of the documents that stay and of new ones.
        gone: numbers of the removed documents.
    """
    names, going = ids.to_pylist(), set(gone.tolist())
    was = dict(zip(names, (KEPT if kept else REMOVED for kept in old["kept"].to_pylist()), strict=True))
    went = {doc_id for doc_id, key in zip(names, old["doc_key"].to_pylist(), strict=True) if key in going}

    rows = []
    after = zip(now.ids.to_pylist(), now.kept.tolist(), now.duplicate_of.to_pylist(), strict=True)
    for place, (doc_id, kept, duplicate_of) in enumerate(after):
        before, becomes = was.get(doc_id, ABSENT), KEPT if kept else REMOVED
        is_new = place >= now.n_stay
        if not is_new and before == becomes:
            continue
        cause = ("replaced" if doc_id in went else "added") if is_new else "promoted" if kept else "demoted"
        rows.append((doc_id, before, becomes, duplicate_of, cause))
        went.discard(doc_id)
    rows += [(doc_id, was[doc_id], ABSENT, None, "removed") for doc_id in went]
    rows.sort(key=lambda row: row[0].encode())
    return table_of(CHANGES, rows)


def count_changes(changes: pa.Table) -> dict[str, int]:
    """Count the documents added, removed, replaced, promoted and demoted."""
    found = Counter(changes["cause"].to_pylist())
    return {cause: found[cause] for cause in ("added", "removed", "replaced", "promoted", "demoted")}
