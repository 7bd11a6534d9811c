"""The tables of a finished run in a catalog: Spark's own, Hive's, Unity's, Iceberg's or Delta's."""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nddup.errors import ConfigError
from nddup.storage.session_tables import SparkFolder
from nddup.tables import RESULTS, Table


def require_place(spark: SparkSession, place: str, *, overwrite: bool) -> None:
    """Refuse, before the run begins, a schema where its tables cannot be saved.

    Args:
        spark: the session.
        place: a schema, `schema` or `catalog.schema`.
        overwrite: whether existing tables may be replaced.

    Raises:
        ConfigError: if there is no such schema, or it already has a table of the run and `overwrite` is not set.
    """
    try:
        is_there = spark.catalog.databaseExists(place)
        held = [name for name in RESULTS if spark.catalog.tableExists(f"{place}.{name}")] if is_there else []
    except (PySparkException, Py4JJavaError) as error:  # a catalog's own exceptions may arrive unconverted
        said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ConfigError(f"--tables {place}: {said}") from error
    if not is_there:
        raise ConfigError(f"--tables {place}: there is no such schema; CREATE SCHEMA {place} makes it")
    if held and not overwrite:
        raise ConfigError(f"--tables {place}: has a table {held[0]} already; --overwrite replaces it")


def save_tables(spark: SparkSession, output: str, place: str) -> list[str]:
    """Save the tables of a finished run with `saveAsTable`; comments hold the meaning of each table and column.

    Args:
        spark: the session.
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
