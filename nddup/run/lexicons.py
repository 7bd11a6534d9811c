"""The lexicon of a run: counted from its collection, or taken from another run; saved with the run in either case.

    lexicon/        the terms, with how often they occur in the collection they were counted in
    lexicon.json    what they were made by, and out of what

A lexicon of other settings, or made by other versions of the libraries that stem, is refused.
"""

import json
from functools import reduce
from typing import Any

import numpy as np
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import CapacityError, ConfigError, NddupError
from nddup.run.collection import Collection, read_group, whole_files
from nddup.run.state import Job, settings_of
from nddup.settings.derive import words_of
from nddup.settings.schema import Config
from nddup.sketching.words.lexicon import LexiconRule
from nddup.sketching.words.word_sketches import WordRule
from nddup.spark import schemas
from nddup.spark.reading import term_counts
from nddup.spark.reading.sketch_scan import Rule
from nddup.storage.files import Storage

NOTE = "lexicon.json"
COUNTED = ("counted", "occurrences", "commonest")
"""What the note says of the collection: distinct terms, their occurrences, those of the commonest term."""

MOST_TERMS = 10_000_000
"""Terms of a lexicon: it travels to every task, 8 bytes a term."""


def find_lexicon(job: Job, source: Collection | DataFrame) -> None:
    """The words that describe a document, where the kind asks for them: counted in a pass of its own, or taken."""
    words, saved = job.rule.recipe.words, job.config.lexicon.saved
    if words is None or not words.needs_lexicon:
        return
    if saved is not None:
        found, note = take_saved(job.spark, saved, words)
        kept = job.save("lexicon", found, "lexicon", reads=("input",))
        job.metrics.counts |= {f"lexicon_{name}": int(note[name] or 0) for name in COUNTED}
    else:
        expansion = job.config.input.max_expansion
        counted = count_terms(job.spark, source, rule=job.rule, words=words.lexicon, max_expansion=expansion)
        terms = job.save("terms", counted, "input", "lexicon", reads=("input",), **count_in_passing())
        job.metrics.counts["lexicon_counted"] = job.metrics.rows["terms"]
        least, most = words.lexicon.interval(job.metrics.counts["lexicon_commonest"])
        kept = job.save("lexicon", term_counts.choose(terms, least=least, most=most), "lexicon", reads=("terms",))
        job.store.drop("terms")
    job.lexicon = ids_of(kept)


def count_terms(
    spark: SparkSession, source: Collection | DataFrame, *, rule: Rule, words: LexiconRule, max_expansion: int
) -> DataFrame:
    """TERMS of files or of TEXTS, lazily."""
    if isinstance(source, DataFrame):
        return term_counts.sum_terms(term_counts.count_frame(source, rule=rule, lexicon=words))
    parts = [
        term_counts.count_files(
            whole_files(spark, group, max_expansion=max_expansion), head=group.head, rule=rule, lexicon=words
        )
        if group.is_whole
        else term_counts.count_chunks(
            read_group(spark, group, max_record=rule.max_record), head=group.head, rule=rule, lexicon=words
        )
        for group in source.groups
    ]
    counted = reduce(DataFrame.unionByName, parts) if parts else schemas.local_table(spark, schemas.TERMS)
    return term_counts.sum_terms(counted)


def ids_of(kept: DataFrame) -> bytes:
    """The ids of a lexicon, ascending uint64, for the tasks that sketch. One action, of its rows.

    Raises:
        CapacityError: if they are too many.
    """
    ids = kept.select("feature").limit(MOST_TERMS + 1).toArrow().column("feature").to_numpy().view(np.uint64)
    if ids.size > MOST_TERMS:
        raise CapacityError(f"more than {MOST_TERMS:,} words in the lexicon; raise lexicon.low")
    return np.sort(ids).tobytes()


def take_saved(spark: SparkSession, path: str, words: WordRule | None) -> tuple[DataFrame, dict[str, Any]]:
    """The lexicon that another run left, and its note.

    Raises:
        ConfigError: in a line, if there is none, or if it was made by other settings: naming both.
    """
    where, ours = path.rstrip("/"), words.lexicon.key if words else ""
    try:
        note: dict[str, Any] = json.loads(Storage(spark).read_text(f"{where}/{NOTE}"))
    except (NddupError, ValueError) as error:
        raise ConfigError(f"lexicon.saved {path}: holds no lexicon: {NOTE} cannot be read") from error
    if note.get("made_by") != ours:
        raise ConfigError(f"lexicon.saved {path}: made by other settings, [{note.get('made_by')}]; not by [{ours}]")
    try:
        return spark.read.schema(schemas.LEXICON).parquet(f"{where}/lexicon"), note
    except AnalysisException as error:
        raise ConfigError(f"lexicon.saved {path}: holds no lexicon: its folder lexicon is missing") from error


def count_in_passing() -> dict[str, Column]:
    """What is counted of TERMS: the occurrences of the commonest, and of all."""
    return {"lexicon_commonest": F.max("occurrences"), "lexicon_occurrences": F.sum("occurrences")}


def note_of(config: Config, counted: dict[str, int]) -> str:
    """The text of `lexicon.json`: by what settings and versions it was made, and what was counted."""
    words = words_of(config)
    note = {"made_by": words and words.lexicon.key, **counted, "taken_from": settings_of(config)["lexicon"]["saved"]}
    return json.dumps(note, indent=2, ensure_ascii=False) + "\n"
