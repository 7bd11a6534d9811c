"""The measures of two documents, each declared once: what a threshold applies to, and how `pairs` shows it.

All code that depends on the measure reads this table; `threshold` decides by it, and `verifying.definitions` proves it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class Measure:
    """One measure.

    Attributes:
        name: as in `pairs.measure`.
        threshold: the default of `pairs.threshold`.
        value: SQL of its value in a row `p` of `pairs`, for DuckDB and Spark; None if it depends on the sketches too.
        words: what is compared with a share, in a sentence about two sketches.
        takes_count: whether the threshold may be a number of common features, `p.overlap`.
        is_estimated: whether it is a resemblance, for which a kind has an estimate; else a share of common features.
        is_directed: whether it says what one document holds of the other. Near-duplicates then have no leaders.
    """

    name: str
    threshold: float
    value: str | None
    words: str
    takes_count: bool = False
    is_estimated: bool = False
    is_directed: bool = False


_DECLARED = (
    # Mean F1 over six labelled or versioned collections, 5 words: .771 at 0.8, .853 at 0.7, .877 at 0.6. Of the
    # pairs found at 0.7 readers call .86 to .95 the same. For the others it is a share of something else.
    Measure("resemblance", 0.7, "p.resemblance", "resemblance", is_estimated=True),
    Measure("overlap", 0.8, None, "the common part of the larger sketch", takes_count=True),
    Measure("containment", 0.8, "greatest(p.containment_a, p.containment_b)", "the common part of the smaller sketch",
            is_directed=True),
)  # fmt: skip

MEASURES: Final[Mapping[str, Measure]] = MappingProxyType({measure.name: measure for measure in _DECLARED})
"""Every measure, by name."""
