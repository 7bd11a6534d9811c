"""What a run promises, read from its metrics and settings alone."""

from functools import cached_property

from nddup.metrics import RunMetrics
from nddup.settings.derive import MODULUS, bands_of, kind_of
from nddup.settings.schema import Config
from nddup.sketching.kinds import Kind
from nddup.sketching.lsh_bands import Bands
from nddup.verifying.definitions import Rule, Sample
from nddup.verifying.sketch_forms import Form


class Promised:
    """The promises of a run.

    Args:
        metrics: of the run.
    """

    def __init__(self, metrics: RunMetrics) -> None:
        self.metrics = metrics
        self.config = Config.model_validate(metrics.settings)

    @cached_property
    def kind(self) -> Kind:
        """What the sketches are."""
        return kind_of(self.config.sketch)

    @cached_property
    def rule(self) -> Rule:
        """What a near-duplicate is, the threshold as the exact decimal that was written."""
        pairs, sketch = self.config.pairs, self.config.sketch
        bands = Bands(0, 0) if sketch.verify else bands_of(self.config)
        return Rule(
            pairs.share.numerator if sketch.verify else bands.rows,
            pairs.share.denominator if sketch.verify else 1,
            isinstance(pairs.threshold, int) or not sketch.verify,
            pairs.measure == "resemblance" and sketch.verify,
            Sample(self.kind.sample(sketch.size), self.kind.by_slots),
            pairs.measure == "containment",
            self.kind.shows_containment,
            *bands,
        )

    @cached_property
    def form(self) -> Form:
        """What a sketch must look like."""
        sketch = self.config.sketch
        size = self.config.lexicon.copies + 1 if sketch.kind == "i-match" else sketch.size
        return Form(sketch.kind, size, sketch.modulus or MODULUS, sketch.growth, sketch.tagged)

    @property
    def levels(self) -> int:
        """s, where the modulus of a sketch follows the number of features; else 0."""
        return self.config.sketch.size if self.kind.estimate == "levels" else 0

    @property
    def is_cut(self) -> bool:
        """Whether candidates were found by chance: then the run's promises are about the pairs found."""
        return not self.kind.is_exact and self.config.sketch.verify

    @property
    def by_text(self) -> bool:
        """Whether texts confirm the pairs: the sketches alone do not say who are near-duplicates."""
        return self.config.pairs.confirm != "none"

    @property
    def support(self) -> int:
        """Features that all members of a cluster must share, beyond what the threshold asks; 0: no more."""
        return int(self.metrics.settings["clusters"]["support"] or 0)

    @property
    def is_led(self) -> bool:
        """Whether components are given by leaders: pairs of two removed documents of these are not listed."""
        return self.metrics.stages.clusters.led_components > 0

    @property
    def mode(self) -> str:
        """What the clusters are."""
        return str(self.metrics.settings["clusters"]["mode"])

    @property
    def max_edges(self) -> int:
        """Pairs of a component above which it is given by leaders."""
        return self.config.pairs.max_edges

    @property
    def expand_limit(self) -> int:
        """Pairs of documents of two sketches above which there are stars."""
        return int(self.metrics.settings["pairs"]["expand_limit"])
