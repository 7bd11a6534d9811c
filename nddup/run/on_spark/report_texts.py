"""The texts of the documents that the report shows: chosen, read again from the inputs, stored with the run.

A run stores the texts of a bounded number of documents while its inputs are there, so a report needs only the run's
folder. Other texts that are wanted later are read again from the inputs, once these prove unchanged.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import functions as F

from nddup.metrics import TextsMetrics
from nddup.report.borderline import EACH, SHOWN, measure_of, take_distinct
from nddup.run.on_spark.pipeline import Found
from nddup.run.on_spark.state import Job, Saved
from nddup.run.stage import settings_of
from nddup.scanning.text_choice import TextChoice, add_pairs, choose_documents
from nddup.spark.reading.shown_texts import list_shown


def store_texts(job: Job, found: Found) -> TextsMetrics:
    """Make the table `texts` of a run over files, unless it is there; return its counts.

    Cost: two small actions to choose documents, and a pass over their files.
    """
    texts = job.find("texts") or _read_chosen(job, found)
    return TextsMetrics(
        rows_in={"clusters": found.clustered.metrics.rows_out["clusters"]},
        rows_out={"texts": texts.rows},
        clusters=texts.noted["clusters"],
        beyond_files=texts.noted["beyond_files"],
    )


def _read_chosen(job: Job, found: Found) -> Saved:
    """Choose the documents and save their STORED_TEXTS."""
    options, inputs = job.config.output, found.sketched.inputs
    if inputs is None:
        raise ValueError("documents of a DataFrame are not read again")

    choice = TextChoice({}, [], 0)
    if options.texts:
        clustered, documents = found.clustered, found.sketched.documents.table
        shown = list_shown(clustered.clusters, clustered.members, documents, sampled=options.texts // 2)
        choice = choose_documents(shown.collect(), inputs.sizes, most=options.texts, most_bytes=int(options.texts_read))
        nearest = _list_borderline(job, found)
        choice = add_pairs(choice, nearest, inputs.sizes, most_bytes=int(options.texts_read))
    written = job.write("texts", inputs.find_texts(choice.documents))
    return job.seal("texts", written, clusters=len(choice.clusters), beyond_files=choice.beyond_files)


def _list_borderline(job: Job, found: Found) -> list[Mapping[str, Any]]:
    """Return the pairs nearest to the threshold, as `add_pairs` takes them. One action."""
    measure = measure_of(settings_of(job.config))
    if measure is None:
        return []
    measured = F.expr(measure.value).cast("double").alias("measured")
    pairs = found.paired.pairs.alias("p").select("doc_a", "doc_b", measured).where("measured IS NOT NULL")
    nearest = pairs.orderBy("measured", "doc_a", "doc_b").limit(EACH * SHOWN)
    for end in "ab":
        about = {"doc_id": "doc", "group": "group", "source": "source", "content_fingerprint": "content"}
        columns = [F.col(name).alias(f"{alias}_{end}") for name, alias in about.items()]
        nearest = found.sketched.documents.table.select(*columns).join(F.broadcast(nearest), f"doc_{end}")
    return take_distinct((row.asDict() for row in nearest.orderBy("measured", "doc_a", "doc_b").collect()), SHOWN)
