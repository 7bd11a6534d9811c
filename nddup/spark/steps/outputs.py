"""What a run on Spark writes beside its tables: lists as text, kept and tagged documents, the texts of its report.

    clusters   --spell_clusters-->       lines     `duplicates.txt`: one cluster per line (`write_duplicates`)
    clusters, members --number_clusters, spell_members-->  pieces   where a cluster has more members than its row lists
    documents  --invert_sketches-->      pieces    `context.fimi`: one line per feature, the `doc_key`s that have it
    kept       --write_kept-->           files     read again from the inputs (`write_kept_documents`)
    verdicts   --rewrite_files-->        files     the inputs written again, tagged or cut
    documents  --read_texts-->           texts     of a bounded number of documents, for the report
    tables     --save_tables-->          a catalog: Spark's own, Hive's, Unity's, Iceberg's or Delta's

Lists are written by tasks, in order. Other texts that are wanted later are read again, once the inputs prove unchanged.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from nddup.embedded import outputs
from nddup.embedded.outputs import Reader
from nddup.errors import ConfigError, OutputError, first_line
from nddup.ground.shown import ESCAPED, ESCAPES, FIRST, LAST
from nddup.rewriting.rewrite_file import Rewritten
from nddup.scanning.collection import Collection, Group, ListedFile
from nddup.scanning.read_again import Contents
from nddup.settings.plan import record_limits, text_rule
from nddup.spark.scan import Ending, Rewriting, Written, ending_of, key_contents, rewrite
from nddup.spark.schemas import WHOLE, require
from nddup.spark.session import set_to
from nddup.spark.session_files import SessionFiles, files_at, files_of
from nddup.spark.session_tables import UNMARKED, SparkFolder
from nddup.spark.steps.documents import Inputs, Sketched, WorkersOnSpark
from nddup.spark.steps.state import Job, persisted
from nddup.stages.run_engine import Made, Saved
from nddup.stages.written_records import KeptFiles, added_fields
from nddup.storage.local_storage import LocalStorage
from nddup.tables import CLUSTERS, DOCUMENTS, MEMBERS, RESULTS, Table

Batches = Iterator[pa.RecordBatch]

OutputFiles = SessionFiles | LocalStorage
"""The files of the run's folder."""

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
"""Maximum number of bytes of a `doc_key` and the blank after it."""

FEW_MEMBERS, FEW_TEXTS = 100_000, 1_000
"""Maximum numbers of members of clusters that the driver lists, and of texts of the report that it gets."""


def spell_clusters(clusters: DataFrame) -> DataFrame:
    """Write one cluster per line: the member ids and then the support, separated by tabs.

    Schema in:   CLUSTERS, every row of which lists all members
    Schema out:  value string, in the order of the members
    Shuffles:  the clusters, to sort them.    Actions:  Spark samples the range.
    """
    require(clusters, CLUSTERS, stage="output")
    return clusters.orderBy("members", "cluster_id").select(_line().alias("value"))


def number_clusters(clusters: DataFrame) -> DataFrame:
    """Number the clusters in the order of their lines: by listed members, then by id.

    Schema in:   CLUSTERS
    Schema out:  CLUSTERS, line long: ascending, with gaps
    Shuffles:  the clusters, to sort them.    Actions:  Spark samples the range.
    """
    require(clusters, CLUSTERS, stage="output")
    return clusters.orderBy("members", "cluster_id").withColumn("line", F.monotonically_increasing_id())


def spell_members(numbered: DataFrame, members: DataFrame) -> DataFrame:
    """Write the lines of `spell_clusters` for clusters with any number of members, in pieces cut at tabs.

    Schema in:   as `number_clusters` gives, the same at each evaluation; MEMBERS
    Schema out:  value string
    Shuffles:  the lines, and the members of the clusters that do not list them, by range.
    Actions:   Spark samples the range.
    """
    require(members, MEMBERS, stage="output")
    no_id = F.lit(None).cast("string").alias("doc_id")
    is_cut = F.col("size") > F.size("members")
    whole = numbered.where(~is_cut).select("line", no_id, F.concat(_line(), F.lit("\n")).alias("text"))

    # A cluster that does not list all its members: one text per member, then the support.
    cut = numbered.where(is_cut)
    ids = members.join(F.broadcast(cut.select("cluster_id", "line")), "cluster_id")
    spelled = ids.select("line", "doc_id", F.concat(_escaped(F.col("doc_id")), F.lit("\t")).alias("text"))
    ends = cut.select("line", no_id, F.concat("support", F.lit("\n")).alias("text"))

    parts = whole.unionByName(spelled).unionByName(ends).repartitionByRange("line")
    in_order = parts.sortWithinPartitions("line", F.col("doc_id").asc_nulls_last())
    return in_order.select("text").mapInArrow(partial(_cut_texts, end="\t"), "value string")


def invert_sketches(documents: DataFrame, *, end: str = "\n") -> DataFrame:
    """Write the inverted table in the form that frequent-itemset programs read: one line per feature, of `doc_key`s.

    Schema in:   DOCUMENTS
    Schema out:  value string: ascending keys, separated by blanks; lines in the order of the features as signed
        numbers; cut at `end`: a line end, or a blank if a feature may be in millions of documents
    Shuffles:  every feature of every sketch once, by range.    Actions:  Spark samples the range.
    """
    require(documents, DOCUMENTS, stage="output")
    postings = documents.select(F.explode("sketch").alias("feature"), "doc_key")
    in_order = postings.repartitionByRange("feature").sortWithinPartitions("feature", "doc_key")
    return in_order.mapInArrow(partial(_spell_postings, end=end), "value string")


def _line() -> Column:
    """Return the line of a row of CLUSTERS: the listed members and the support, separated by tabs."""
    return F.concat_ws("\t", F.transform("members", _escaped), F.col("support").cast("string"))


def _escaped(doc_id: Column) -> Column:
    """Return an id with the characters of `ESCAPES` replaced.

    Folded over a list: a hundred nested calls are deeper than a message of Spark Connect may be.
    """
    each = F.array(*(F.array(F.lit(character), F.lit(escape)) for character, escape in ESCAPES))
    spelled = F.reduce(each, doc_id, lambda text, one: F.replace(text, one[0], one[1]))
    return F.when(doc_id.rlike(ESCAPED), spelled).otherwise(doc_id)


def _cut_texts(batches: Batches, *, end: str) -> Batches:
    yield from _cut(("".join(batch.column(0).to_pylist()) for batch in batches), end)


def _spell_postings(batches: Batches, *, end: str) -> Batches:
    yield from _cut(_join_postings(batches), end)


def _join_postings(batches: Batches) -> Iterator[str]:
    """Return the lines of the postings, one text per batch."""
    last = None
    for batch in batches:
        features = np.asarray(batch.column("feature"))
        if not len(features):
            continue

        # The separator before each key: a blank within a feature, a line end where the next feature begins.
        is_same = np.append(features[0] == last, features[1:] == features[:-1])
        between = np.where(is_same, " ", "\n").tolist()
        between[0] = "" if last is None else between[0]
        last = features[-1]
        yield "".join(f"{mark}{key}" for mark, key in zip(between, batch.column("doc_key").to_pylist(), strict=True))
    if last is not None:
        yield "\n"


def _cut(texts: Iterable[str], end: str) -> Batches:
    """Cut the text at `end` into rows, without the `end` after each row, which the writer adds."""
    rest = ""
    for text in texts:
        row, separator, rest = (rest + text).rpartition(end)
        if separator:
            yield _values([row])
    if rest:
        yield _values([rest])


def _spell_file(batches: Batches, *, form: str, added: Sequence[str]) -> Batches:
    """Return the lines of one file; the prolog of XML comes with the first batch that has documents."""
    has_any = False
    for batch in batches:
        lines = list(outputs.spell_kept(pa.Table.from_batches([batch]), form, added))
        if lines:
            yield _values([FIRST, *lines] if form == "xml" and not has_any else lines)
            has_any = True
    if has_any and form == "xml":
        yield _values([LAST])


def _values(lines: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(lines, pa.string())})


def write_duplicates(job: Job, clustered: Made) -> None:
    """As `RunEngine.write_duplicates`."""
    folder, clusters, members = job.folder, clustered.tables["clusters"], clustered.tables["members"]
    if folder.is_here and clustered.rows["members"] <= FEW_MEMBERS:
        listed = (folder.dataset(name).to_table() for name in ("clusters", "members"))
        folder.write_text("duplicates.txt", outputs.spell_clusters(*listed))
        return
    if not clustered.counts["cut_clusters"]:
        write_lines(folder, "duplicates.txt", spell_clusters(clusters), end="\n")
        return

    with persisted(number_clusters(clusters)) as numbered:
        write_lines(folder, "duplicates.txt", spell_members(numbered, members), end="\t")


def write_context(job: Job, sketched: Made) -> None:
    """As `RunEngine.write_context`."""
    end = "\n" if sketched.rows["documents"] * KEY_BYTES <= LONG_LINE else " "
    lines = invert_sketches(sketched.tables["documents"], end=end)
    write_lines(job.folder, "context.fimi", lines, end=end)


def write_lines(folder: SparkFolder, name: str, lines: DataFrame, *, end: str, one_file: int | None = None) -> None:
    """Write the text of `lines` to the run's folder.

    If the parts have at most `one_file` bytes together, the driver copies them into one file. Otherwise they stay in a
    folder of this name, `part-00000`, `part-00001`, …: whole lines, in the order of the parts.

    A line may be longer than a row can be. So the text of a partition is cut into pieces, one per row, at occurrences
    of a one-byte character `end`. The writer puts `end` after each row. If `end` is not a line end, the file has one
    `end` too many, its last byte.

    Args:
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
    seen = Observation("lines")
    counted = lines.observe(seen, _bytes_written(F.col("value").cast("binary")))
    counted.write.options(lineSep=end, **WHOLE, **UNMARKED).option(*PLAIN_COMMIT).text(storage.spelled(work))

    sizes = {part: size for part, size in storage.sizes(work).items() if size}
    _require_bytes(name, seen, sum(sizes.values()))
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


def _bytes_written(value: Column) -> Column:
    """Return the bytes of all rows as Spark's text source writes them, each with the byte after it."""
    return F.coalesce(F.sum(F.length(value) + 1), F.lit(0)).alias("bytes")


def _require_bytes(name: str, seen: Observation, there: int) -> None:
    """Stop if the files that Spark wrote have other than the bytes that were counted while it wrote them."""
    if (expected := int(seen.get["bytes"] or 0)) != there:
        raise OutputError(f"{name}: {there:,} of {expected:,} bytes are in the files that Spark wrote")


def _number(part: str) -> tuple[int, str]:
    """Return the sort key of a file that Spark wrote, `part-00012-….c000.txt`."""
    return int(part.split("-")[1]), part


def place_parts(storage: OutputFiles, work: str, folder: str, name: Callable[[int], str]) -> None:
    """Move the files that the tasks of a write left in `work` to a folder, under the names of their numbers."""
    storage.make_folder(folder)
    for part in storage.sizes(work):
        storage.move(f"{work}/{part}", f"{folder}/{name(_number(part)[0])}")
    storage.remove(work)


def write_kept_documents(job: Job, source: Collection, sketched: Sketched, chosen: DataFrame) -> int:
    """As `SketchedRun.write_kept`. One action."""
    folder, (inputs, offsets) = job.folder, _read_again(sketched)
    if offsets is None:
        raise ValueError("the offsets of records are needed")
    files = KeptFiles.of(source, sum(sketched.made.rows.values()), job.config.output.kept)
    work, storage = folder.stage_output("kept"), files_at(job.spark, folder.path)
    with set_to(job.spark, inputs.splitting):
        found_again = inputs.scan(Contents(text_rule(job.config), files.form))
        contents = key_contents(found_again, offsets.table, offsets.rows)
        documents = sketched.documents.table
        rows = documents.select(*outputs.KEPT_COLUMNS, F.col("doc_key").alias("own_key"))
        if sketched.made.counts.get("revisits", 1):
            rows = _with_holders(rows, documents)
        kept, seen = rows.join(chosen, "doc_id").join(contents, "doc_key"), Observation("written")
        counted = kept.observe(seen, F.count(F.lit(1)).alias("rows"))
        write_kept(counted, folder.spelled(work), files, added_fields(job.config).names)
    place_parts(storage, work, f"{folder.path}/kept", files.name)
    return int(seen.get["rows"] or 0)


def _with_holders(rows: DataFrame, documents: DataFrame) -> DataFrame:
    """Return rows of documents with the `doc_key` of the record that holds their content: as `holders_of`.

    Shuffles:  revisits, and the other documents of their contents; narrow rows.    Actions:  none.
    """
    is_revisit = F.col("record_type") == "revisit"
    copies = documents.where(is_revisit).select(F.col("doc_key").alias("own_key"), "content_fingerprint")
    others = documents.where(~F.coalesce(is_revisit, F.lit(False))).select("content_fingerprint", "doc_key")
    firsts = others.join(copies, "content_fingerprint", "left_semi").groupBy("content_fingerprint")
    holders = copies.join(firsts.agg(F.min("doc_key").alias("holder")), "content_fingerprint").drop(
        "content_fingerprint"
    )
    return rows.join(holders, "own_key", "left").withColumn("doc_key", F.coalesce("holder", "doc_key"))


def _read_again(sketched: Sketched) -> tuple[Inputs, Saved | None]:
    """Return the files of the documents, and how many records come before each split of one."""
    if sketched.inputs is None:
        raise ValueError("documents of a DataFrame are not read again")
    return sketched.inputs, sketched.offsets


def write_kept(kept: DataFrame, path: str, files: KeptFiles, added: Sequence[str] = ()) -> None:
    """Write the kept documents to a new folder: each of `files` by the task of its number, in the order of records.

    Args:
        kept: `KEPT_COLUMNS`, own_key, content, line and `added`.
        path: as `Storage.spelled` gives it.
        files: in which form, and which document in which file.
        added: columns that each gets beside its own.

    Cost: one shuffle of the contents, and no sample of their range: the numbers of records have hardly any gaps.
    """
    number = F.least(F.floor(F.col("doc_key") / files.records), F.lit(files.files - 1)).cast("int")
    placed = kept.repartitionById(files.files, number).sortWithinPartitions("doc_key", "own_key")
    columns = [*outputs.KEPT_COLUMNS[1:], "content"]
    if files.is_table:
        table = placed.select(*columns, *added)
        table.write.options(**UNMARKED, **(WHOLE | {"compression": "zstd"})).parquet(path)
    else:
        spell = partial(_spell_file, form=files.form, added=tuple(added))
        lines = placed.select(*columns, "line", *added).mapInArrow(spell, "value string")
        lines.write.options(**UNMARKED, **WHOLE).text(path)


def rewrite_inputs(job: Job, source: Collection, verdicts: DataFrame, apart: str, *, is_tagging: bool) -> int:
    """As `RunEngine.rewrite`."""
    is_first = job.config.input.limit is not None
    rewriting = Rewriting(is_tagging, is_first, record_limits(job.config), added=added_fields(job.config))
    return rewrite_files(job.spark, source, verdicts, apart, rewriting).records


def rewrite_files(
    spark: SparkSession, source: Collection, verdicts: DataFrame, apart: str, rewriting: Rewriting
) -> Rewritten:
    """Write the files of a collection again, into a new folder. One action for each byte that files end with.

    Pages, texts and mail are copied once more, by the driver: see `nddup.spark.scan`.

    Args:
        verdicts: VERDICTS of all their records, or `SPANS` as JSON where `rewriting` has `cutting`.
        apart: the folder; after an error nothing is left there.

    Raises:
        NddupError: if a file cannot be read as before, or has no place for the change.
        OutputError: if the folder cannot be written.
    """
    storage, work, written = files_at(spark, apart), f"{apart}.work", Rewritten(0, 0, 0)
    try:
        storage.make_folder(apart)
        for end, groups in _by_end(source).items():
            numbers = {one.file.source: at for at, one in enumerate(_files(groups))}
            by = Written(files_of(spark), end, numbers)
            parts = [rewrite(spark, group, verdicts, rewriting, by) for group in groups]
            # Sorted after the union: else Spark would sort by the file alone, and could mix up the pieces of a file.
            pieces = reduce(DataFrame.unionByName, parts).sortWithinPartitions("file", "place")
            seen = Observation("rewritten")
            counts = (F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in Rewritten._fields)
            rows = pieces.observe(seen, _bytes_written(F.col("value")), *counts)
            storage.remove(work)
            form = rows.select("file", F.col("value").cast("string").alias("value")).write
            form = form.options(lineSep=end.byte.decode("latin-1"), **WHOLE).option(*PLAIN_COMMIT)
            form.partitionBy("file").text(storage.spelled(work))
            _require_bytes(apart, seen, _place(storage, work, apart, by))
            written = Rewritten(*(count + int(seen.get[name]) for name, count in written._asdict().items()))
        for file in () if rewriting.may_go_on else source.foreign:
            target = _target(storage, apart, file.source)
            files_of(spark).copy_files([file.path], target)
    except BaseException:
        storage.remove(apart)
        raise
    finally:
        storage.remove(work)
    return written


def _by_end(source: Collection) -> dict[Ending, list[Group]]:
    """Return the files by how they end, in groups that share head and compression."""
    groups: dict[Ending, list[Group]] = defaultdict(list)
    for group in source.groups:
        for compression in sorted({entry.compression for entry in group.files}):
            files = tuple(entry for entry in group.files if entry.compression == compression)
            groups[ending_of(group.head, compression)].append(Group(group.head, is_whole=True, files=files))
    return groups


def _files(groups: list[Group]) -> Iterator[ListedFile]:
    return (entry for group in groups for entry in group.files)


def _place(storage: OutputFiles, work: str, apart: str, written: Written) -> int:
    """Give the files that Spark wrote the names of their sources.

    Files of which nothing is left, which Spark did not write, are made empty; pages and texts are not made.

    Returns:
        The bytes of the files that Spark wrote.
    """
    there, total = set(storage.children(work)), 0
    for source, number in written.numbers.items():
        name = f"file={number}"
        sizes = storage.sizes(f"{work}/{name}") if name in there else {}
        if not sizes and written.end.may_vanish:
            continue
        target = _target(storage, apart, source)
        if len(sizes) > 1:
            raise OutputError(f"{target}: Spark wrote it in {len(sizes)} parts; it must be one file")
        for part, size in sizes.items():
            if written.end.is_added:
                storage.copy_files([f"{work}/{name}/{part}"], target, without=len(written.end.byte))
            else:
                storage.move(f"{work}/{name}/{part}", target)
            total += size
        if not sizes:
            storage.write_text(target, "")
    return total


def _target(storage: OutputFiles, apart: str, source: str) -> str:
    target = f"{apart}/{source.replace('://', '/')}"
    storage.make_folder(target.rpartition("/")[0])
    return target


def read_texts(job: Job, sketched: Sketched, documents: Mapping[str, tuple[str, bytes]]) -> DataFrame | pa.Table:
    """As `SketchedRun.read_texts`: lazily, or, where they are few, at once."""
    inputs = _read_again(sketched)[0]
    if len(documents) > FEW_TEXTS:
        return inputs.find_texts(documents)
    with WorkersOnSpark(1, spark=job.spark) as workers:
        return Reader(inputs.collection, inputs.text, inputs.limits, workers).find_texts(documents)


def require_place(spark: SparkSession, place: str, *, overwrite: bool) -> None:
    """Refuse, before the run begins, a schema where its tables cannot be saved.

    Args:
        place: a schema, `schema` or `catalog.schema`.
        overwrite: whether existing tables may be replaced.

    Raises:
        ConfigError: if there is no such schema, or it already has a table of the run and `overwrite` is not set.
    """
    try:
        is_there = spark.catalog.databaseExists(place)
        tables = [name for name in RESULTS if spark.catalog.tableExists(f"{place}.{name}")] if is_there else []
    except (PySparkException, Py4JJavaError) as error:  # a catalog's own exceptions may arrive unconverted
        raise ConfigError(f"--tables {place}: {first_line(error)}") from error
    if not is_there:
        raise ConfigError(f"--tables {place}: there is no such schema; CREATE SCHEMA {place} makes it")
    if tables and not overwrite:
        raise ConfigError(f"--tables {place}: has a table {tables[0]} already; --overwrite replaces it")


def copy_table(spark: SparkSession, name: str, output: str, *, overwrite: bool, resume: bool) -> str:
    """Copy a table of a catalog to Parquet beside a run, and return that folder: what the run reads is one snapshot.

    Args:
        name: `schema.table` or `catalog.schema.table`.
        output: the folder of the run; the copy is OUTPUT.table.
        overwrite: whether a copy that is there is replaced.
        resume: whether one that is whole is taken.

    Raises:
        ConfigError: if there is no such table, or a copy that may not be replaced.

    Cost: the table is read and written once.
    """
    where = f"{output.rstrip('/')}.table"
    files = files_at(spark, where)
    if resume and files.exists(f"{where}/_SUCCESS"):
        return where
    if not (overwrite or resume) and files.exists(where):
        raise ConfigError(f"--table {name}: {where} exists already; give another --output, or --overwrite")
    try:
        spark.table(name).write.mode("overwrite").parquet(files.spelled(where))
    except (PySparkException, Py4JJavaError) as error:
        raise ConfigError(f"--table {name}: {first_line(error)}") from error
    return where


def save_tables(spark: SparkSession, output: str, place: str) -> list[str]:
    """Save the tables of a finished run with `saveAsTable`; comments hold the meaning of each table and column.

    Args:
        output: the folder of the run.
        place: a schema, `schema` or `catalog.schema`. Existing tables are replaced, one after another.

    Returns:
        The full names of the tables.

    Cost: each table is read and written once.
    """
    folder = SparkFolder(spark, output)
    saved = []
    for name, table in RESULTS.items():
        if folder.holds(name):
            rows = _with_comments(folder.table(name), table)
            rows.write.mode("overwrite").saveAsTable(f"{place}.{name}")
            spark.sql(f"COMMENT ON TABLE {place}.{name} IS {_literal(table.meaning)}")
            saved.append(f"{place}.{name}")
    return saved


def _with_comments(rows: DataFrame, table: Table) -> DataFrame:
    meanings = {column.name: column.meaning for column in table.columns}
    return rows.select(
        *(F.col(f"`{name}`").alias(name, metadata={"comment": meanings.get(name, "")}) for name in rows.columns)
    )


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
