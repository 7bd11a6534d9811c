"""The lists of a run as text: `duplicates.txt` and `context.fimi`, written by tasks, in order.

Each task writes a part. If the parts have at most `ONE_FILE` bytes together, the driver copies them into one file.
Otherwise they stay in a folder of this name, `part-00000`, `part-00001`, …: whole lines, in the order of the parts.
"""

from pyspark.sql import DataFrame

from nddup.run.on_spark.clustering import Clustered
from nddup.run.on_spark.documents import Documents
from nddup.run.on_spark.state import persisted
from nddup.spark import exports
from nddup.storage.session_files import files_at
from nddup.storage.session_tables import UNMARKED
from nddup.storage.spark_folder import SparkFolder

ONE_FILE = 1 << 30
"""Bytes up to which a list is one file: some ten seconds of copying, and any tool on one machine can read it."""

LONG_LINE = 64 << 20
"""Bytes up to which a line of `context.fimi` is one row."""

PLAIN_COMMIT = (
    "mapreduce.outputcommitter.factory.class",
    "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory",
)
"""The committer of the tasks' parts: Hadoop's own, which works on every file system; the parts are copied anyway."""

KEY_BYTES = 20
"""Most bytes of a `doc_key` and the blank after it."""


def write_duplicates(folder: SparkFolder, clustered: Clustered) -> None:
    """Write `duplicates.txt`: a cluster a line, its ids separated by tabs, then the number of common features."""
    clusters = clustered.clusters
    if not clustered.is_cut:
        write_lines(folder, "duplicates.txt", exports.spell_clusters(clusters), end="\n")
        return

    with persisted(exports.number_clusters(clusters)) as numbered:
        write_lines(folder, "duplicates.txt", exports.spell_members(numbered, clustered.members), end="\t")


def write_context(folder: SparkFolder, documents: Documents) -> None:
    """Write `context.fimi`: a feature a line, the `doc_key`s of the documents that hold it."""
    end = "\n" if documents.rows * KEY_BYTES <= LONG_LINE else " "
    write_lines(folder, "context.fimi", exports.invert_sketches(documents.table, end=end), end=end)


def write_lines(folder: SparkFolder, name: str, lines: DataFrame, *, end: str, one_file: int | None = None) -> None:
    """Write the text of `lines` to the run's folder.

    Args:
        folder: the run's.
        name: of the file, or of the folder of parts.
        lines: value string, in order within and among its partitions.
        end: the character written after each row; unless it is a line feed, the last one of each part is dropped.
        one_file: bytes up to which it is one file; None: `ONE_FILE`.

    Raises:
        OutputError: if it cannot be written.
    """
    target, work = folder.begin_output(name), folder.aside(name)
    storage = files_at(lines.sparkSession, folder.path)
    for path in (target, work):
        storage.remove(path)
    lines.write.options(lineSep=end, compression="none", **UNMARKED).option(*PLAIN_COMMIT).text(work)

    sizes = {part: size for part, size in storage.sizes(work).items() if size}
    parts = [f"{work}/{part}" for part in sorted(sizes, key=_number)]
    without = 0 if end == "\n" else 1
    if sum(sizes.values()) <= (ONE_FILE if one_file is None else one_file):
        storage.copy_files(parts, target, without=without)
    else:
        storage.make_folder(target)
        for number, part in enumerate(parts):
            place = f"{target}/part-{number:05}"
            if without:
                storage.copy_files([part], place, without=without)
            else:
                storage.move(part, place)
    storage.remove(work)


def _number(part: str) -> tuple[int, str]:
    """Return the sort key of a file that Spark wrote, `part-00012-….c000.txt`."""
    return int(part.split("-")[1]), part
