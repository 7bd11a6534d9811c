"""The resemblance of pairs of stored sketches by definition, one batch of pairs at a time."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.verifying.definitions import Sample, compare_all, sketch_rows

USED = ("sketch_a", "sketch_b", "features_a", "features_b")
"""The columns of a batch that an estimate uses: list<int64> twice, int32 twice."""


def estimate_pairs(batches: Iterator[pa.RecordBatch], *, sample: Sample, levelled: int) -> Iterator[pa.RecordBatch]:
    """Replace the columns `USED` by a last one, `estimate`, double: the resemblance of both; null if either is null.

    Args:
        batches: pairs with the columns `USED`; other columns stay as they are.
        sample: how a resemblance is estimated.
        levelled: s, if the modulus of a sketch depends on the document's length; else 0.

    Cost: linear in the ids of all pairs; one batch is in memory.
    """
    for batch in batches:
        first, second = (batch.column(name) for name in USED[:2])
        a, b = sketch_rows(first), sketch_rows(second)

        # Sketches with different moduli are compared at the larger one: ids that it does not divide are masked out.
        levels = [_levels(batch.column(name), levelled) for name in USED[2:]]
        masks = (np.uint64(1) << np.maximum(*levels).astype(np.uint64)) - np.uint64(1)
        places = np.arange(len(batch))
        measured = compare_all(a.offsets, a.ids, places, b.offsets, b.ids, places, sample, masks)

        is_unknown = ~(first.is_valid().to_numpy(False) & second.is_valid().to_numpy(False))  # noqa: FBT003
        shares = pa.array(measured[:, 1] / np.maximum(measured[:, 2], 1), mask=is_unknown)
        yield batch.drop_columns(list(USED)).append_column("estimate", shares)


def _levels(n_features: pa.Array, size: int) -> NDArray[np.int64]:
    """Return the least i with n_features / 2**i <= size: the binary digits of (n_features - 1) div size; (n,)."""
    if not size:
        return np.zeros(len(n_features), np.int64)
    above = np.maximum(n_features.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64) - 1, 0) // size
    return np.asarray(np.frexp(above.astype(np.float64))[1], np.int64)
