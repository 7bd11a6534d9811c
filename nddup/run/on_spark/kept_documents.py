"""The kept documents, read again from the inputs and written in the form that is asked for."""

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from nddup.errors import NddupError
from nddup.metrics import StageMetrics
from nddup.run.lineage import made_of
from nddup.run.on_spark.pipeline import Found
from nddup.run.on_spark.state import Job
from nddup.run.session import set_to
from nddup.run.written_again import AS_INPUT
from nddup.scanning.read_again import Contents
from nddup.spark.exports import as_xml
from nddup.spark.reach import is_connect
from nddup.spark.reading.scan import key_contents
from nddup.storage.session_files import SessionFiles, files_of
from nddup.storage.spark_folder import SparkFolder


def write_kept_once(job: Job, folder: SparkFolder, found: Found) -> None:
    """Write the kept documents, if they are asked for and no earlier attempt has finished them."""
    form, sketched = job.config.output.kept, found.sketched
    inputs, offsets = sketched.inputs, sketched.offsets
    if form == AS_INPUT:
        return
    if form == "none" or inputs is None or offsets is None:
        folder.clear("kept")
        return

    made = made_of("kept", job.config)
    if folder.has("kept", **made):
        return

    with job.stage("output", StageMetrics) as stage:
        job.progress.describe("kept")
        folder.clear("kept")
        where = folder.begin_apart("kept") if is_connect(job.spark) else f"{folder.path}/kept"
        with set_to(job.spark, inputs.splitting):
            found_again = inputs.scan(Contents(job.config.input.charset))
            contents = key_contents(found_again, offsets.table, offsets.rows)
            _write_all(_choose_kept(contents, found), where, form, expected=found.kept)
        _name_parts(files_of(job.spark), where, form)
        if is_connect(job.spark):
            folder.put("kept")
        folder.seal("kept", **made, counted={})
        stage.notes.append(f"kept documents as {form}")


def _name_parts(storage: SessionFiles, path: str, form: str) -> None:
    """Give the files that Spark calls `.txt` the ending of their format. One rename a file."""
    for name in storage.children(path):
        if name.endswith(".txt"):
            storage.move(f"{path}/{name}", f"{path}/{name.removesuffix('txt')}{form}")


def _choose_kept(contents: DataFrame, found: Found) -> DataFrame:
    """Return the kept documents, read again: doc_key, doc_id, url, source, record, content, line."""
    kept = found.keep.where("kept").select("doc_id")
    columns = ["doc_key", "doc_id", "url", "source", "record"]
    documents = found.sketched.documents.table.join(kept, "doc_id").select(*columns)
    return documents.join(contents, "doc_key")


def _write_all(kept: DataFrame, path: str, form: str, *, expected: int) -> None:
    """Write the kept documents and verify their count."""
    seen = Observation("written")
    write_kept(kept.observe(seen, F.count(F.lit(1)).alias("rows")), path, form)
    if (written := int(seen.get["rows"] or 0)) != expected:
        raise NddupError(f"{written} of {expected} kept documents were found again: the input changed meanwhile")


def write_kept(kept: DataFrame, path: str, form: str) -> None:
    """Write the kept documents to a folder: Parquet, JSON lines, or ROMIP XML.

    A document that was read from JSON lines is written to JSON lines as its original line, with all fields; any other
    as `doc_id`, `url`, `source`, `record` and `content` (decoded, with its markup).
    """
    columns = ["doc_id", "url", "source", "record", "content"]
    if form == "parquet":
        kept.select(*columns).write.parquet(path)
    elif form == "xml":
        as_xml(kept).write.text(path)
    else:
        line = F.coalesce("line", F.to_json(F.struct(*columns)))
        kept.select(line.alias("value")).write.text(path)
