"""Random documents, sketches as arrays, and the definition of resemblance."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from nddup.ground.arrays import Ragged

Sketch = tuple[int, ...]


def resemblance(a: Sketch, b: Sketch, size: int) -> Fraction:
    """Return the estimate from MIN_s of the union; two sketches with fewer than s ids hold their whole documents."""
    union = sorted({*a, *b})
    if len(a) >= size or len(b) >= size:
        union = union[:size]
    return Fraction(len(set(union) & set(a) & set(b)), max(len(union), 1))


# Small documents: their sketches are short or full, and many are near each other.


documents = st.lists(st.frozensets(st.integers(0, 13), min_size=1), min_size=1, max_size=14)


def ragged(rows: Sequence[Sketch]) -> Ragged:
    ends = np.cumsum([0, *map(len, rows)])
    return Ragged(ends.astype(np.int64), np.array([value for row in rows for value in row], np.uint64))
