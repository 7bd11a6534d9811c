"""What only Spark does with the folder of a run: its tables are those of the embedded engine, written and read."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nddup.errors import NddupError
from nddup.spark.schemas import schema_of
from nddup.spark.session_tables import MemoryStore, SparkFolder
from nddup.storage.claim import PREFIX
from nddup.storage.local_folder import LocalFolder
from nddup.tables import KEEP
from tests.storage.saved_tables import INPUTS, ONE_KEPT


def test_a_table_of_spark_is_taken_again_by_either_engine(spark: SparkSession, tmp_path: Path) -> None:
    """It has its counts and its schema; a run that lost its folder writes nothing."""
    schema, path = schema_of(KEEP), str(tmp_path / "out")
    made: dict[str, Any] = {"settings": {}, "reads": ["input"]}
    rows = spark.createDataFrame([("a", True, None, None, None, None, False)], schema)
    with SparkFolder(spark, path) as folder:
        folder.start(settings={}, inputs=INPUTS)
        assert folder.find("keep", schema, **made) is None
        assert folder.write("keep", rows, schema).collect() == rows.collect()
        folder.seal("keep", **made, counted={"rows": {"keep": 1}})

    with LocalFolder(path) as here:
        here.start(settings={}, inputs=INPUTS, resume=True)
        assert here.note("keep", **made) == {"rows": {"keep": 1}}
        assert here.read("keep").equals(ONE_KEPT)
    with SparkFolder(spark, path) as again:
        again.start(settings={}, inputs=INPUTS, resume=True)
        found = again.find("keep", schema, **made)
        assert found is not None
        assert (found.counted, found.table.schema, found.table.count()) == ({"rows": {"keep": 1}}, schema, 1)
        assert again.find("keep", schema, settings={"size": 3}, reads=["input"]) is None

        next((tmp_path / "out").glob(f"{PREFIX}*")).unlink()
        with pytest.raises(NddupError, match="was taken over by another run"):
            again.write("keep", rows, schema)


def test_tables_in_memory_are_computed_once(spark: SparkSession) -> None:
    """A table kept in memory has the columns of its schema, is computed once, and its plan holds no source."""
    ids = spark.range(3).select(
        F.uuid().alias("doc_id"),
        F.lit(None).cast("boolean").alias("kept"),
        F.lit(None).cast("string").alias("duplicate_of"),
        F.lit(None).cast("string").alias("reason"),
        F.lit(None).cast("double").alias("resemblance"),
        F.lit(None).cast("double").alias("lost"),
        F.lit(None).cast("boolean").alias("leader"),
        "id",
    )

    table = MemoryStore(spark).write("keep", ids, schema_of(KEEP))

    assert table.columns == KEEP.names
    assert sorted(table.collect()) == sorted(table.collect())
    assert "Range" not in str(table._jdf.queryExecution().toString())  # noqa: SLF001
