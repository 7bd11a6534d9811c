"""The candidates that their texts confirm: a step of the pairs stage, if `pairs.confirm` asks for it."""

from dataclasses import replace
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.errors import NddupError
from nddup.metrics import EditMetrics
from nddup.run.on_spark.documents import Documents
from nddup.run.on_spark.inputs import Inputs
from nddup.run.on_spark.rounds import Matches
from nddup.run.on_spark.state import Job, Saved
from nddup.scanning.read_again import Tokens
from nddup.settings.confirmation import edit_rule_of
from nddup.settings.scan_rules import text_rule
from nddup.spark.pairing import confirm
from nddup.spark.reading.scan import scan_texts


class Confirmed(NamedTuple):
    """The pairs that texts confirm."""

    pairs: DataFrame
    """The pairs as `expand` takes them."""

    matches: Matches
    """The same pairs for later stages: their `resemblance` is the edit similarity, which decides between several."""

    metrics: EditMetrics | None


def confirm_matches(job: Job, documents: Documents, matches: Matches, source: Inputs | DataFrame | None) -> Confirmed:
    """Return the pairs that the texts confirm; all of them if the sketches decide.

    Args:
        job: the run.
        documents: of the run.
        matches: candidates.
        source: the files of the documents, or TEXTS.

    Raises:
        NddupError: if a text is not found again: the input changed meanwhile.
    """
    rule = edit_rule_of(job.config)
    if rule is None:
        return Confirmed(matches.table, matches, None)

    found = job.find("confirmed")
    if found is None:
        tokens = _read_tokens(job, source)
        placed = confirm.place_pairs(matches.table, partitions=matches.partitions)
        compared = confirm.confirm_pairs(placed, documents.table, tokens, rule, partitions=matches.partitions)
        written = job.write("confirmed", compared, **confirm.count_confirmed())
        _require_all(written)
        found = job.seal("confirmed", written)

    pairs = found.table.where("edit is not null")
    counts = found.counts
    chosen = replace(matches, table=pairs.withColumn("resemblance", F.col("edit")), edges=counts["confirmed"])
    names = ("confirmed", "bounded", "bounded_unconfirmed")
    return Confirmed(pairs, chosen, EditMetrics(compared=found.rows, **{name: counts[name] for name in names}))


def list_family_texts(
    job: Job, documents: Documents, families: DataFrame, source: Inputs | DataFrame | None
) -> DataFrame | None:
    """Return the tokens of families whose pairs are made anew, lazily; None if the sketches decide."""
    if edit_rule_of(job.config) is None:
        return None
    return confirm.list_texts(families, documents.table, _read_tokens(job, source))


def _read_tokens(job: Job, source: Inputs | DataFrame | None) -> DataFrame:
    """Return TOKENS of all records, lazily."""
    if source is None:
        raise ValueError("pairs.confirm edit: the texts are needed")
    consumer = Tokens(text_rule(job.config))
    return source.scan(consumer) if isinstance(source, Inputs) else scan_texts(source, consumer)


def _require_all(found: Saved) -> None:
    """Stop if a text was not found again."""
    if lost := found.counts["lost"]:
        raise NddupError(
            f"pairs.confirm: a text of {lost:,} of {found.rows:,} pairs was not found again: the input changed"
            " meanwhile"
        )
