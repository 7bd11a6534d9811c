"""Spark's own settings: at any value of those that reach Arrow or SQL the tables are the same, or a line says no."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import Row, SparkSession

from nddup import find_duplicates
from nddup.run.session import PINNED, set_to
from nddup.tables import RESULTS

WORDS = [f"word{number}" for number in range(60)]
SETTINGS: dict[str, Any] = {"pairs.threshold": 0.7}
NAMES = [name for name in RESULTS if name != "texts"]
TEXTS = {"a": WORDS, "b": WORDS, "c": [*WORDS, "more"], "d": ["less", *WORDS[:-1]], "e": WORDS[::-1], "f": []}

ANSI = "spark.sql.ansi.enabled"
READ = tuple(f"spark.sql.{group}." for group in ("execution.arrow", "execution.pythonUDF", "execution.pandas", "ansi"))
"""Every setting of these names, also one that a later Spark has and this page does not know, is tried."""

APART = "spark.sql.execution.arrow.maxBytesPerOutputBatch"
"""Spark refuses it together with `maxRecordsPerOutputBatch`."""

OTHER = {
    "spark.sql.execution.arrow.compression.codec": "zstd",
    "spark.sql.execution.pandas.structHandlingMode": "dict",
    "spark.sql.execution.pandas.udf.buffer.size": "4096",
    "spark.sql.execution.pythonUDF.arrow.concurrency.level": "2",
}
"""The other value where it cannot be told from the first."""

BESIDE = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.pyspark.binaryAsBytes": "false",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
}
"""Settings with other names by which an expression comes to mean something else."""


def registered(spark: SparkSession) -> dict[str, str]:
    """Every setting of SQL that this Spark knows, also those it does not tell of, with its default."""
    registry = getattr(spark._jvm.org.apache.spark.sql.internal, "SQLConf$")  # type: ignore[union-attr] # noqa: SLF001
    entries = {entry.key(): entry for entry in registry.__getattr__("MODULE$").getConfigEntries().toArray()}
    return {key: str(entry.defaultValueString()) for key, entry in entries.items()}


def other_value(key: str, defaults: Mapping[str, str]) -> str:
    """A value that is not the default: what is off is on, and sizes are the least that can be."""
    default = defaults[key]
    while default.startswith("<value of ") and default[10:-1] in defaults:
        default = defaults[default[10:-1]]
    if key in OTHER:
        return OTHER[key]
    if default in ("true", "false"):
        return "false" if default == "true" else "true"
    if default.removeprefix("-").rstrip("bBkKmMgG").isdigit():
        return "2"
    pytest.fail(f"{key} (default {default}) is new: say in OTHER what its other value is")


def tables(spark: SparkSession, settings: Mapping[str, str]) -> dict[str, list[str]]:
    """The rows of all tables of the collection under these settings, which win over nddup's own."""
    frame = spark.createDataFrame([(name, " ".join(words)) for name, words in TEXTS.items()], "id string, text string")
    found = find_duplicates(frame, **SETTINGS, spark=dict(settings))
    return {name: sorted(map(shown, getattr(found, name).toLocalIterator())) for name in NAMES}


def tables_in_memory() -> dict[str, list[str]]:
    """The same of the embedded engine, which no setting of Spark reaches."""
    frame = pd.DataFrame({"id": list(TEXTS), "text": [" ".join(words) for words in TEXTS.values()]})
    found = find_duplicates(frame, **SETTINGS)
    return {name: sorted(map(str, found.sql(f"SELECT * FROM {name}").to_pylist())) for name in NAMES}  # noqa: S608


def shown(row: Row) -> str:
    """A row as text, whether its bytes come as such or as a bytearray."""
    return str({name: bytes(cell) if isinstance(cell, bytearray) else cell for name, cell in row.asDict().items()})


def test_any_setting_of_arrow_and_ansi_gives_the_same_tables(spark: SparkSession) -> None:
    """All are at their other value at once, in two runs: where ANSI SQL is off, its other settings mean nothing."""
    defaults = registered(spark)
    tried = {key: other_value(key, defaults) for key in defaults if key.startswith(READ)}
    assert {ANSI, "spark.sql.execution.arrow.useLargeVarTypes", *PINNED} <= set(tried)
    assert {key for key in tried if not spark.conf.isModifiable(key)} == set()
    pinned = {key: tried.pop(key) for key in PINNED}
    apart = {key: tried.pop(key) for key in (ANSI, APART)}

    expected = tables_in_memory()
    with set_to(spark, pinned):  # the caller's; what he asks for in so many words is refused: test_session.py
        by_arrow = tables(spark, {**tried, ANSI: "true"})
        by_sql = tables(spark, {**BESIDE, **apart})

    assert [len(rows) for rows in expected.values()] == [6, 0, 6, 1, 4, 6, 0]
    assert by_arrow == expected
    assert by_sql == expected
