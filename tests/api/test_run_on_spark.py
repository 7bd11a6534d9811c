"""A run over Spark's DataFrames: SQL, documents, pairs and another threshold, as for the same rows in pandas."""

import threading
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nddup
from nddup.api.run_object import Run
from nddup.errors import ConfigError
from nddup.tables import RESULTS
from tests.results.kind_runs import texts
from tests.spark_holdings import checkpoints, files_of, left_by, shuffles_left

SETTINGS: dict[str, Any] = {"sketch": {"size": 30}, "shingle": {"length": 2}, "pairs": {"threshold": 0.6}}
PAGES = pd.DataFrame({"id": list(texts()), "text": list(texts().values())})


@pytest.fixture(scope="module")
def here() -> Run:
    """Make the run in memory."""
    return nddup.find_duplicates(PAGES, **SETTINGS)


@pytest.fixture(scope="module")
def there(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Make the run on Spark, over files of two formats and a table of Derby, which Spark brings, together.

    A third of the rows is read from each: whatever Spark reads is a collection.
    """
    folder = tmp_path_factory.mktemp("sources")
    options = {"url": "jdbc:derby:memory:pages;create=true", "dbtable": "pages",
               "driver": "org.apache.derby.jdbc.EmbeddedDriver"}  # fmt: skip
    collection: DataFrame | None = None
    for place, form in enumerate(("orc", "parquet", "jdbc")):
        written = spark.createDataFrame(PAGES[place::3]).write.format(form)
        reader = spark.read.format(form)
        if form == "jdbc":
            written.options(**options).option("createTableColumnTypes", "id varchar(99), text varchar(9999)").save()
            pages = reader.options(**options).load()
        else:
            written.save(str(folder / form))
            pages = reader.load(str(folder / form))
        collection = pages if collection is None else collection.union(pages)
    assert collection is not None
    return nddup.find_duplicates(collection, id=collection.columns[0], text=collection.columns[1], **SETTINGS)


def test_a_run_on_spark_answers_as_one_in_memory(spark: SparkSession, here: Run, there: Run) -> None:
    """SQL returns a DataFrame, accepts the caller's tables, leaves the caller's views alone and names errors."""
    spark.createDataFrame([(1,)], "n int").createOrReplaceTempView("pairs")
    question = "SELECT size, count(*) AS clusters FROM clusters GROUP BY size ORDER BY size"

    answer = there.sql(question)

    assert isinstance(answer, DataFrame)
    assert [row.asDict() for row in answer.collect()] == here.sql(question).to_pylist()
    within = "WITH k AS (SELECT doc_id, ')' FROM keep WHERE kept) SELECT count(*) AS n FROM documents AS d, k"
    within += " WHERE d.doc_id = k.doc_id"
    assert [row.asDict() for row in there.sql(within).collect()] == here.sql(within).to_pylist()
    mine = spark.createDataFrame([("f0v0",)], "mine string")
    joined = there.sql("SELECT k.kept FROM keep AS k JOIN marked AS m ON k.doc_id = m.mine", marked=mine)
    assert joined.count() == 1
    assert spark.table("pairs").columns == ["n"]
    with pytest.raises(ConfigError, match=r"^sql: .*nothing_there"):
        there.sql("SELECT * FROM nothing_there")
    with pytest.raises(ConfigError, match=r"^sql: .*Syntax error at or near 'keep'"):
        there.sql("SELECT doc_id FORM keep WHERE kept")


def test_decisions_are_told_as_in_memory(here: Run, there: Run) -> None:
    """Documents, clusters, verdicts, close calls and another threshold give the same as in memory."""
    pair = here.pairs.iloc[0]
    for name in (pair["doc_a"], pair["doc_b"]):
        assert there.document(name).why == here.document(name).why
    assert there.explain_pair(pair["doc_a"], pair["doc_b"]) == here.explain_pair(pair["doc_a"], pair["doc_b"])
    cluster = here.clusters.iloc[0]["cluster_id"]
    assert there.cluster(cluster).members.to_pylist() == here.cluster(cluster).members.to_pylist()
    assert there.closest_calls(5).to_pylist() == here.closest_calls(5).to_pylist()
    kept = [sorted(map(str, run.rethreshold(0.8).keep.to_pylist())) for run in (here, there)]
    assert kept[0] == kept[1]
    with pytest.raises(ConfigError, match="one of each"):
        there.diff(here)


def test_a_call_leaves_its_results_alone_and_close_frees_them(spark: SparkSession) -> None:
    """A call frees its working tables, a failed or killed one all it made; `close` frees the results and no more.

    No file of a shuffle stays that the collection of garbage does not remove.
    """
    mine = spark.range(3).localCheckpoint()
    before, seen = checkpoints(spark), left_by(spark, set())[2]  # another run of this module is still open
    shuffles = files_of(spark, "shuffle")
    pages = spark.createDataFrame(PAGES)
    with nddup.find_duplicates(pages, **SETTINGS) as run:
        held, files, views = left_by(spark, before)
        kept = run.keep.where("kept")
        assert kept.count() == run.sql("SELECT * FROM keep WHERE kept").count() > 0
    freed = left_by(spark, before)

    assert 0 < held <= len(RESULTS)
    assert files
    assert views == seen
    assert freed == (0, [], seen)
    failing = pages.withColumn("text", F.expr("if(id = 'f0v0', raise_error('no such text'), text)"))
    with pytest.raises(PySparkException, match="no such text"):
        nddup.find_duplicates(failing, **SETTINGS)
    assert left_by(spark, before) == freed

    is_over = threading.Event()
    killer = threading.Thread(target=kill_jobs, args=(spark, before, is_over))
    killer.start()
    with pytest.raises(Exception, match="cancelled"):
        nddup.find_duplicates(pages, **SETTINGS)
    is_over.set()
    killer.join()
    assert left_by(spark, before) == freed
    assert mine.count() == 3
    del run, kept
    assert shuffles_left(spark, shuffles) == set()


def kill_jobs(spark: SparkSession, before: set[int], is_over: threading.Event) -> None:
    """Kill each job of a session, from the one that makes the first table since `before`."""
    while not is_over.wait(0.01):
        if checkpoints(spark) - before:
            spark.sparkContext.cancelAllJobs()


def test_a_streaming_table_is_refused(spark: SparkSession) -> None:
    """A DataFrame without an end is refused in one line, before anything starts."""
    with pytest.raises(ConfigError, match=r"^find_duplicates: a streaming DataFrame never ends: give a table"):
        nddup.find_duplicates(spark.readStream.format("rate").load(), id="timestamp", text="value")


def test_whatever_spark_reads_is_a_collection(here: Run, there: Run) -> None:
    """A run over rows of several sources keeps what a run over the same rows in memory keeps."""
    kept = [row.doc_id for row in there.keep.where("kept").collect()]
    assert sorted(kept) == sorted(here.keep.loc[here.keep["kept"], "doc_id"])
