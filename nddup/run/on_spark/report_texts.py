"""The texts of the documents that the report shows: chosen, read again from the inputs, stored with the run.

A run stores the texts of a bounded number of documents while its inputs are there, so that a report needs nothing but
the run's folder. What else is wanted later is read again from the inputs, after it is sure that they did not change.
"""

from nddup.metrics import TextsMetrics
from nddup.run.on_spark.pipeline import Found
from nddup.run.on_spark.state import Job, Saved
from nddup.scanning.text_choice import TextChoice, choose_documents
from nddup.spark.reading.shown_texts import list_shown


def store_texts(job: Job, found: Found) -> TextsMetrics:
    """Leave the table `texts` of a run over files. One small action to choose, one pass over the files to read."""
    texts = job.find("texts") or _read_chosen(job, found)
    return TextsMetrics(
        rows_in={"clusters": found.clustered.metrics.rows_out["clusters"]},
        rows_out={"texts": texts.rows},
        clusters=texts.noted["clusters"],
        beyond_files=texts.noted["beyond_files"],
    )


def _read_chosen(job: Job, found: Found) -> Saved:
    """STORED_TEXTS of the documents that are chosen."""
    options, inputs = job.config.output, found.sketched.inputs
    if inputs is None:
        raise ValueError("documents of a DataFrame are not read again")

    choice = TextChoice({}, [], 0)
    if options.texts:
        clustered, documents = found.clustered, found.sketched.documents.table
        shown = list_shown(clustered.clusters, clustered.members, documents, sampled=options.texts // 2)
        choice = choose_documents(shown.collect(), inputs.sizes, most=options.texts, most_bytes=int(options.texts_read))
    written = job.write("texts", inputs.find_texts(choice.documents))
    return job.seal("texts", written, clusters=len(choice.clusters), beyond_files=choice.beyond_files)
