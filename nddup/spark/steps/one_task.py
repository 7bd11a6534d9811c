"""Few documents: pairs, clusters and keep-list in one task, by the functions of the embedded engine.

documents         --decide-->  the documents whose texts are needed      1 action, no shuffle
documents, texts  --decide-->  every table that follows, at the driver   1 action; the texts go to the task
tables            --write-->   the store                                 no action where this process sees the folder

The task reads the documents where they lie. Each Spark job costs some tenths of a second, whatever its rows; the steps
of `pairing` and `clustering` take twenty. If the task finds that it is too much for one, they do it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.embedded import one_task
from nddup.embedded.one_task import ANSWERS, MADE, NODE_TEXTS, Answers, Deciding, read_answers
from nddup.ground.shown import JsonValue
from nddup.matching.task_sizes import fits_one, volume_of
from nddup.scanning.collection import Collection
from nddup.settings.plan import tokens_of
from nddup.spark.scan import SentTokens
from nddup.spark.schemas import local_table, map_lists, schema_of, table
from nddup.spark.session import given_partitions
from nddup.spark.steps.documents import Inputs, Sources
from nddup.spark.steps.onto import stored_tokens
from nddup.spark.steps.pairing import scan_again
from nddup.spark.steps.state import Job
from nddup.stages import names
from nddup.stages.run_engine import Made, Saved
from nddup.tables import DOCUMENTS


@dataclass(frozen=True)
class Decided:
    """What one task decided: the tables not yet written, and the counts of each stage by its name."""

    tables: Mapping[str, pa.Table]
    stages: Mapping[str, Any]


def decide_here(job: Job, sketched: Made, source: Collection | DataFrame | None) -> Decided | None:
    """Return pairs, clusters and keep-list, made by one task or found; None if one task is too little. Two actions.

    Raises:
        CapacityError: as of `nddup.embedded.steps.pair`.
        NddupError: if a text is not found again: the input changed meanwhile.
    """
    sources: Sources = sketched.own
    if not is_few(job, sources.documents):
        return None
    if (stages := _found(job)) is not None:
        return Decided({}, stages)

    again = sources.inputs if isinstance(source, Collection) else source
    documents = sources.documents.table.select(*DOCUMENTS.names)
    found = _ask(job, documents.withColumn("tokens", F.lit(None).cast("array<long>")))
    if found is not None and found.wanted is not None:
        texts = _texts_of(job, documents, again, found.wanted).repartition(1)
        both = documents.coalesce(1).unionByName(texts, allowMissingColumns=True)
        found = _ask(job, both, found.matches)
    return None if found is None else Decided(found.tables, found.stages)


def is_few(job: Job, documents: Saved) -> bool:
    """Whether one task may take all documents, and nothing asks for more: a number of tasks, or FP-Growth."""
    counts = documents.counts
    volume = volume_of(counts["postings"], counts["distinct_sketches"], job.threshold)
    copies = documents.rows / max(counts["distinct_sketches"], 1)
    is_asked = given_partitions(job.config.spark) or job.config.clusters.miner == "fpgrowth"
    return not is_asked and fits_one(volume, job.task_memory, copies=copies)


def _found(job: Job) -> Mapping[str, Any] | None:
    """Return the counts that an earlier attempt, of either engine, noted with all tables; None if any is missing."""
    notes = {name: job.noted(name) for name in MADE}
    last = notes["keep"]
    return None if last is None or None in notes.values() else last["noted"].get("stages")


def _ask(job: Job, rows: DataFrame, matches: bytes = b"") -> Answers | None:
    job.progress.describe("pairs")
    how = Deciding(job.config, job.forced, job.task_memory, matches)
    task = partial(one_task.decide, how=how)
    answered = map_lists(rows.coalesce(1), task, one_task.ROWS, schema_of(ANSWERS)).toArrow()
    return read_answers(zip(*(column.to_pylist() for column in answered.columns), strict=True))


def _texts_of(job: Job, documents: DataFrame, source: Inputs | DataFrame | None, wanted: pa.Table) -> DataFrame:
    keys, contents, marks = (wanted[name].to_pylist() for name in one_task.WANTED_NAMES)
    tokens = tokens_of(job.config, frozenset(contents))
    nodes = dict(zip(marks, keys, strict=True))
    if job.shingles is None:
        return scan_again(job, source, SentTokens(tokens, nodes, one_task.lay_texts, NODE_TEXTS))
    named = local_table(job.spark, table("token_fingerprint binary, doc_key long"), list(nodes.items()))
    stored = stored_tokens(documents, job.shingles, job.config)
    return stored.join(F.broadcast(named), "token_fingerprint").select(*NODE_TEXTS.names)


def take_pairs(job: Job, decided: Decided) -> Made:
    """As `RunEngine.pair`. Returns `decided` in `own`."""
    return Made(saved={"pairs": _save(job, "pairs", decided)}, counts=decided.stages["pairs"], own=decided)


def take_clusters(job: Job, decided: Decided) -> Made:
    """As `RunEngine.cluster`."""
    saved = {name: _save(job, name, decided) for name in names.COUNTS}
    return Made(saved=saved, counts=decided.stages["clusters"])


def take_keep(job: Job, decided: Decided) -> Made:
    """As `RunEngine.keep`. Its note, the last, has the counts of all stages."""
    kept = _save(job, "keep", decided, stages=decided.stages)
    return Made(saved={"keep": kept}, counts=decided.stages["keep"])


def _save(job: Job, name: str, decided: Decided, **noted: JsonValue) -> Saved:
    of_stage = decided.stages["keep" if name == "keep" else "clusters"]
    counted = names.COUNTS.get(name, {"kept": ""} if name == "keep" else {})
    return job.find(name) or job.put_rows(name, decided.tables[name], {key: of_stage[key] for key in counted}, **noted)
