"""Few documents: pairs, clusters and keep-list in one task, by the functions of the embedded engine.

documents         --decide-->  the documents whose texts are needed      1 action, no shuffle
documents, texts  --decide-->  every table that follows, at the driver   1 action; the texts go to the task
tables            --write-->   the store                                 no action where this process sees the folder

The task reads the documents where they lie. Each Spark job costs some tenths of a second, whatever its rows; the steps
of `pairing` and `clustering` take twenty. If the task finds that it is too much for one, they do it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

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
from nddup.spark.schemas import frame_of_rows, local_table, map_lists, schema_of, table
from nddup.spark.session import given_partitions
from nddup.spark.steps.documents import Inputs, Sketched
from nddup.spark.steps.onto import stored_tokens
from nddup.spark.steps.pairing import scan_again
from nddup.spark.steps.state import Job
from nddup.stages import names
from nddup.stages.run_engine import Made, Saved
from nddup.tables import CANDIDATES, DOCUMENTS


@dataclass(frozen=True)
class Decided:
    """What one task decided: a `PairedRun` and a `ClusteredRun`, the step that was last asked for in `made`."""

    job: Job
    tables: Mapping[str, pa.Table]
    """Not yet written; none that an earlier attempt left."""
    stages: Mapping[str, Any]
    """The counts of each stage by its name."""
    made: Made

    @classmethod
    def of(cls, job: Job, tables: Mapping[str, pa.Table], stages: Mapping[str, Any]) -> Self:
        """Save the pairs."""
        decided = cls(job, tables, stages, Made(saved={}, counts={}))
        return replace(decided, made=Made(saved={"pairs": decided.save("pairs")}, counts=stages["pairs"]))

    def cluster(self) -> Self:
        """As `PairedRun.cluster`."""
        saved = {name: self.save(name) for name in names.COUNTS}
        return replace(self, made=Made(saved=saved, counts=self.stages["clusters"]))

    def keep(self) -> Made:
        """As `ClusteredRun.keep`. Its note, the last, has the counts of all stages."""
        kept = self.save("keep", stages=self.stages)
        return Made(saved={"keep": kept}, counts=self.stages["keep"])

    def save(self, name: str, **noted: JsonValue) -> Saved:
        """Find a table, or write and seal it with its counts."""
        of_stage = self.stages["keep" if name == "keep" else "clusters"]
        counts = names.COUNTS.get(name, {"kept": ""} if name == "keep" else {})
        counted = {key: of_stage[key] for key in counts}
        return self.job.find(name) or self.job.put_rows(name, self.tables[name], counted, **noted)

    def save_candidates(self, job: Job, before: DataFrame | None = None) -> None:
        """As `PairedOnSpark.save_candidates`."""
        rows = self.tables.get("candidates")
        if rows is None or job.find("candidates"):
            return  # all was found
        if before is None:
            job.put_rows("candidates", rows, {})
        else:
            made = frame_of_rows(job.spark, rows, schema_of(CANDIDATES))
            job.save("candidates", made.unionByName(before))


def decide_here(job: Job, sketched: Sketched, source: Collection | DataFrame | None) -> Decided | None:
    """Return pairs, clusters and keep-list, made by one task or found; None if one task is too little. Two actions.

    Raises:
        CapacityError: as of `nddup.embedded.steps.pair`.
        NddupError: if a text is not found again: the input changed meanwhile.
    """
    if not is_few(job, sketched.documents):
        return None
    if (stages := _found(job)) is not None:
        return Decided.of(job, {}, stages)

    again = sketched.inputs if isinstance(source, Collection) else source
    documents = sketched.documents.table.select(*DOCUMENTS.names)
    answers = _ask(job, documents.withColumn("tokens", F.lit(None).cast("array<long>")))
    if answers is not None and answers.wanted is not None:
        texts = _texts_of(job, documents, again, answers.wanted).repartition(1)
        both = documents.coalesce(1).unionByName(texts, allowMissingColumns=True)
        answers = _ask(job, both, answers.matches)
    return None if answers is None else Decided.of(job, answers.tables, answers.stages)


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
    deciding = Deciding(job.config, job.forced, job.task_memory, matches)
    task = partial(one_task.decide, deciding=deciding)
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
