"""The promises of a run, read from its metrics and settings alone."""

from functools import cached_property

from nddup.metrics import RunMetrics
from nddup.settings.derive import MODULUS, bands_of, kind_of
from nddup.settings.load import read_stored
from nddup.sketching.kinds import Kind
from nddup.sketching.lsh_bands import Bands
from nddup.verifying.definitions import Rule, Sample
from nddup.verifying.sketch_forms import Form


class Promised:
    """The promises of a run.

    Args:
        metrics: metrics of the run.
    """

    def __init__(self, metrics: RunMetrics) -> None:
        self.metrics = metrics
        self.config = read_stored(metrics.settings, origin="metrics.json")

    @cached_property
    def kind(self) -> Kind:
        """The kind of the sketches."""
        return kind_of(self.config.sketch)

    @cached_property
    def rule(self) -> Rule:
        """The definition of a near-duplicate, with the threshold as the exact decimal that was written."""
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
        """The form that a sketch must have."""
        sketch = self.config.sketch
        size = self.config.lexicon.copies + 1 if sketch.kind == "i-match" else sketch.size
        return Form(sketch.kind, size, sketch.modulus or MODULUS, sketch.growth, sketch.tagged)

    @property
    def levels(self) -> int:
        """The parameter s of a kind whose modulus depends on the number of features; 0 for other kinds."""
        return self.config.sketch.size if self.kind.estimate == "levels" else 0

    @property
    def is_cut(self) -> bool:
        """Whether candidates were found by chance: the run then makes promises about the pairs found only."""
        return not self.kind.is_exact and self.config.sketch.verify

    @property
    def by_text(self) -> bool:
        """Whether texts confirm the pairs: the sketches alone then do not decide which are near-duplicates."""
        return self.config.pairs.confirm != "none"

    @property
    def support(self) -> int:
        """`clusters.support`, the least number of features common to a cluster; 0: the threshold's bound alone."""
        return int(self.metrics.settings["clusters"]["support"] or 0)

    @property
    def is_led(self) -> bool:
        """Whether some components are given by leaders: their pairs of two removed documents are not listed."""
        return self.metrics.stages.clusters.led_components > 0

    @property
    def mode(self) -> str:
        """`clusters.mode`, the kind of clusters."""
        return str(self.metrics.settings["clusters"]["mode"])

    @property
    def max_edges(self) -> int:
        """Number of pairs above which a component is given by leaders."""
        return self.config.pairs.max_edges

    @property
    def expand_limit(self) -> int:
        """Number of document pairs of two sketches above which a star stands for them."""
        return int(self.metrics.settings["pairs"]["expand_limit"])
