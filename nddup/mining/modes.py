"""The modes of clusters, each declared once: what its sets are, and what follows for all who make, name and check them.

All code that depends on the mode reads this table; `cluster_modes.find_sets` makes the sets of each (those of a mode
that mines none are a row of `DIVIDED` there), but for those of the keep-list, which `nddup.stages.names` makes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

SHARE_NODES: Final = 20_000
"""A component of more distinct sketches than this is mined in shares of about this size, each with its own budget."""

COVERAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "all": "all maximal sets of its component are listed",
        "pairs": "its component is covered by as many maximal sets as hold every pair",
        "documents": "its component is given by clusters around kept documents",
    }
)
"""What each value of the column `coverage` says of a cluster in a mode that mines maximal sets."""


@dataclass(frozen=True)
class ClusterMode:
    """One mode of clusters.

    Attributes:
        name: as in `clusters.mode`.
        says: its sets, for the description of the setting.
        means: what one cluster is; empty where `COVERAGES` says it, or where there are no clusters.
        is_mined: whether its sets are maximal sets, which a search finds within a budget. Else the sets are disjoint.
        promises: what `nddup check` may rely on. `pairs`: every pair of near-duplicates is in a set. `stars`: the sets
            are those of the keep-list, each represented by its kept document. `sets`: neither.
        is_joint: whether every two members are near-duplicates, which have a feature in common that all have.
    """

    name: str
    says: str
    means: str = ""
    is_mined: bool = False
    promises: Literal["pairs", "stars", "sets"] = "pairs"
    is_joint: bool = False

    @property
    def follows_keep(self) -> bool:
        """Whether its sets are those of the keep-list."""
        return self.promises == "stars"

    @property
    def coverage(self) -> str:
        """The value of the column `coverage` where no search within a budget decides it."""
        return "all" if self.is_mined else self.name

    @property
    def has_clusters(self) -> bool:
        """Whether there are clusters at all."""
        return self.is_mined or bool(self.means)


_DECLARED = (
    ClusterMode("all", "all maximal sets", is_mined=True, is_joint=True),
    ClusterMode("cover", "a few that hold every pair", is_mined=True, is_joint=True),
    ClusterMode("partition", "each kept document with its duplicates", "a kept document and its duplicates",
                promises="stars"),
    ClusterMode("components", "connected components",
                "a connected component: two of its members need not be near-duplicates"),
    ClusterMode("none", "pairs and keep-list only", promises="sets"),
)  # fmt: skip

MODES: Final[Mapping[str, ClusterMode]] = MappingProxyType({mode.name: mode for mode in _DECLARED})
"""Every mode, by name."""

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {**COVERAGES, **{mode.name: mode.means for mode in MODES.values() if mode.means}}
)
"""What a cluster is, by each value of the column `coverage`."""

DIVIDING: Final = tuple(mode.name for mode in MODES.values() if not mode.is_mined)
"""The modes that mine no maximal sets: they work with every kind and measure."""
