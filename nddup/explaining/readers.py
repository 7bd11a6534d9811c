"""The judgements of readers compared with the settings: two sets of pairs of web pages that people judged.

The sets have 358 and 374 pairs. Resemblance is that of all 5-word shingles; a sketch of 200 ids costs .001 to .004 of
average precision. The judges contradict each other on templates filled with another subject, and on revisions of one
article.
"""

from typing import NamedTuple

from nddup.explaining.curves import table
from nddup.settings.schema import Config


class Judged(NamedTuple):
    """A threshold on the resemblance, and its precision and recall on each of the two sets."""

    threshold: float
    first: tuple[float, float]
    second: tuple[float, float]


BY_RESEMBLANCE = (
    Judged(0.5, (0.83, 0.94), (0.68, 0.90)),
    Judged(0.6, (0.90, 0.83), (0.78, 0.82)),
    Judged(0.7, (0.95, 0.70), (0.86, 0.67)),
    Judged(0.8, (0.99, 0.56), (0.93, 0.48)),
)

AVERAGE_PRECISION = {
    "token edit similarity": (0.960, 0.920),
    "resemblance, 5 words": (0.956, 0.890),
    "resemblance, 2 words": (0.957, 0.900),
    "resemblance weighted by rarity": (0.955, 0.884),
    "containment of the smaller": (0.938, 0.749),
    "shingles of at most 5 others": (0.916, 0.867),
}
"""Average precision on the two sets, by the quantity that a threshold may apply to."""

AT_EDIT = "F1 .83 on the second set, which was not used to choose it; resemblance reaches .80 at its best, .75 at 0.7"


def say_what_readers_judged(config: Config) -> list[str]:
    """Return lines of `nddup explain`: the figures, and which of the settings move away from a reader's judgement."""
    rows = [
        [f"{row.threshold:g}".lstrip("0"), *(f"{share:.2f}" for share in (*row.first, *row.second))]
        for row in BY_RESEMBLANCE
    ]
    lines = [
        "",
        "What readers judged: two sets of web pages (358 and 374 pairs), resemblance of 5-word shingles.",
        *table(("resemblance", "precision", "recall", "precision", "recall"), rows),
        "  (the first two columns are of the first set)",
    ]
    if config.pairs.confirm == "edit":
        lines.append(f"Confirmed by their texts at edit similarity 0.77: {AT_EDIT}.")
    else:
        lines.append(f"conf/reader.yaml confirms pairs by their texts: {AT_EDIT}.")
    return [*lines, *_warnings(config)]


def _warnings(config: Config) -> list[str]:
    """Return warnings on settings that agree less with the readers."""
    found = []
    if config.pairs.measure == "containment":
        found.append(
            "pairs.measure containment moves away from a reader's judgement: average precision .938 and .749, where"
            " resemblance has .956 and .890."
        )
    if config.pairs.max_document_frequency is not None:
        found.append(
            "A low pairs.max_document_frequency does too: with shingles of at most 5 other documents only, .916 and"
            " .867."
        )
    return found
