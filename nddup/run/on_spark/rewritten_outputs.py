"""The inputs written again on Spark: the kept collection, and the tagged one."""

from collections import defaultdict
from collections.abc import Iterator
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.errors import ConfigError
from nddup.metrics import StageMetrics
from nddup.rewriting.packing import end_of
from nddup.rewriting.rewrite_file import UNTAGGED
from nddup.run.lineage import made_of
from nddup.run.on_spark.listings import PLAIN_COMMIT
from nddup.run.on_spark.pipeline import Found
from nddup.run.on_spark.state import Job, persisted
from nddup.run.written_again import AS_INPUT, missing_outputs
from nddup.scanning.collection import Collection, Group, ListedFile
from nddup.settings.scan_rules import limits_of
from nddup.settings.schema import Config
from nddup.spark.reading.rewritten_files import Rewriting, Written, list_verdicts, rewrite
from nddup.storage.session_files import SessionFiles, files_of
from nddup.storage.spark_folder import SparkFolder


def require_no_pages(collection: Collection, config: Config) -> None:
    """Refuse to write pages and texts again: they may end with any byte, and Spark writes only files of a known end.

    Raises:
        ConfigError: naming the first such file.
    """
    if AS_INPUT not in (config.output.kept, config.output.tagged):
        return
    for group in collection.groups:
        if group.head.format.kind in UNTAGGED:
            source = group.files[0].file.source
            what = UNTAGGED[group.head.format.kind]
            raise ConfigError(f"output.kept: {source} is {what}; only the embedded engine copies it (--engine local)")


def write_again_once(job: Job, folder: SparkFolder, source: Collection, found: Found) -> None:
    """Write the inputs without the removed documents, or with tags, as asked for and not yet written."""
    waiting = missing_outputs(job.config, folder)
    if not waiting:
        return

    with job.stage("output", StageMetrics) as stage:
        sketched = found.sketched
        told = list_verdicts(sketched.documents.table, sketched.rejects, found.keep, found.clustered.members)
        with persisted(told) as verdicts:
            for name in waiting:
                job.progress.describe(name)
                _write(job, source, verdicts, folder.begin_apart(name), is_tagging=name == "tagged")
                folder.put(name)
                folder.seal(name, **made_of(name, job.config), counted={})
                stage.notes.append(f"{name}/: records as they came")


def _write(job: Job, source: Collection, verdicts: DataFrame, apart: str, *, is_tagging: bool) -> None:
    """Write all files into the folder `apart`, or none if it fails. One action for each byte that files end with."""
    storage, work = files_of(job.spark), f"{apart}.work"
    how = Rewriting(is_tagging, job.config.input.limit is not None, limits_of(job.config))
    try:
        for end, groups in _by_end(source).items():
            numbers = {one.file.source: at for at, one in enumerate(_files(groups))}
            written = Written(storage, end, numbers)
            parts = [rewrite(job.spark, group, verdicts, how, written) for group in groups]
            rows = reduce(DataFrame.unionByName, parts).select("file", F.col("value").cast("string").alias("value"))
            storage.remove(work)
            form = rows.write.options(lineSep=end.decode("latin-1"), compression="none").option(*PLAIN_COMMIT)
            form.partitionBy("file").text(work)
            _place(storage, work, apart, numbers)
        for file in () if how.may_go_on else source.foreign:
            target = _target(storage, apart, file.source)
            storage.copy_files([file.path], target)
    except BaseException:
        storage.remove(apart)
        raise
    finally:
        storage.remove(work)


def _by_end(source: Collection) -> dict[bytes, list[Group]]:
    """Return the files by the byte that ends them, in groups that share head and compression."""
    found: dict[bytes, list[Group]] = defaultdict(list)
    for group in source.groups:
        for compression in sorted({entry.compression for entry in group.files}):
            files = tuple(entry for entry in group.files if entry.compression == compression)
            found[end_of(group.head, compression)].append(Group(group.head, is_whole=True, files=files))
    return found


def _files(groups: list[Group]) -> Iterator[ListedFile]:
    return (entry for group in groups for entry in group.files)


def _place(storage: SessionFiles, work: str, apart: str, numbers: dict[str, int]) -> None:
    """Rename the files that Spark wrote to their sources' names; make the empty files, which Spark did not write."""
    there = set(storage.children(work))
    for source, number in numbers.items():
        target = _target(storage, apart, source)
        written = f"file={number}"
        parts = (
            [name for name in storage.children(f"{work}/{written}") if name.startswith("part-")]
            if written in there
            else []
        )
        if parts:
            storage.move(f"{work}/{written}/{parts[0]}", target)
        else:
            storage.write_text(target, "")


def _target(storage: SessionFiles, apart: str, source: str) -> str:
    """Return where a file is written, and make its folders."""
    target = f"{apart}/{source.replace('://', '/')}"
    storage.make_folder(target.rpartition("/")[0])
    return target
