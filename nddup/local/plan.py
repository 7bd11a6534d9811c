"""The arguments of each step, derived from the settings."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nddup.matching.threshold import Threshold
from nddup.mining.modes import MODES, SHARE_NODES
from nddup.settings import plan
from nddup.settings.schema import Config
from nddup.sketching.kinds import Kind

if TYPE_CHECKING:
    from nddup.local.clustering.mine_components import MiningRule
    from nddup.local.pairing.match import PairingOptions
    from nddup.stages.names import Naming


@dataclass(frozen=True)
class Plan:
    """The arguments of the steps of a run with these settings."""

    config: Config

    @property
    def threshold(self) -> Threshold:
        """The threshold of the run, in exact numbers."""
        return plan.threshold_of(self.config)

    @property
    def kind(self) -> Kind:
        """The kind of the sketches."""
        return plan.kind_of(self.config.sketch)

    @property
    def levels(self) -> int:
        """Sketch size s where the modulus depends on the document's length, else 0."""
        return plan.levels_of(self.config)

    @property
    def matching(self) -> "PairingOptions":
        """The rule by which pairs are found."""
        from nddup.local.pairing.match import PairingOptions  # noqa: PLC0415 - a query pairs nothing

        config, levels = self.config, self.levels
        limits, finder, pairs = plan.comparison_limits(config), plan.finder_of(config), config.pairs
        return PairingOptions(self.threshold, finder, pairs.max_postings, limits, levels, pairs.max_comparisons)

    @property
    def graph(self) -> dict[str, Any]:
        """Arguments of `build_graph`."""
        is_listing = MODES[self.config.clusters.mode].is_mined
        least = float(self.config.pairs.share) if self.threshold.is_containment else None
        lost = self.config.keep.most_lost
        return {"share_nodes": SHARE_NODES if is_listing else None, "least_containment": least, "max_lost": lost}

    @property
    def mining(self) -> "MiningRule":
        """Which sets are mined in a component, and their budget."""
        from nddup.local.clustering.mine_components import MiningRule  # noqa: PLC0415 - a query mines nothing
        from nddup.mining.cluster_modes import Budget  # noqa: PLC0415

        clusters = self.config.clusters
        budget = Budget(clusters.max_sets, clusters.max_members, clusters.max_nodes, clusters.support or 0)
        return MiningRule(self.threshold, clusters.mode, budget)

    @property
    def naming(self) -> "Naming":
        """How sets become clusters."""
        from nddup.stages.names import Naming  # noqa: PLC0415 - a query names nothing

        clusters, threshold = self.config.clusters, self.threshold
        least_size = max(threshold.least_size, clusters.support or 0)
        return Naming(least_size, clusters.max_listed, clusters.mode, by_weight=threshold.is_containment)
