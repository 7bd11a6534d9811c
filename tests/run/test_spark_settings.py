"""Spark's own settings: whatever the value of those that affect Arrow or SQL, the tables are the same."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import Row, SparkSession

from nddup import find_duplicates
from nddup.spark.session import PINNED, set_to
from nddup.tables import RESULTS

WORDS = [f"word{number}" for number in range(60)]
SETTINGS: dict[str, Any] = {"pairs.threshold": 0.7}
NAMES = [name for name in RESULTS if name != "texts"]
TEXTS = {"a": WORDS, "b": WORDS, "c": [*WORDS, "more"], "d": ["less", *WORDS[:-1]], "e": WORDS[::-1], "f": []}

ANSI = "spark.sql.ansi.enabled"
READ = (
    *(f"spark.sql.{group}." for group in ("execution.arrow", "execution.pythonUDF", "execution.pandas", "ansi")),
    "spark.sql.files.ignore", "spark.sql.files.maxRecordsPerFile", *PINNED,
)  # fmt: skip
"""Prefixes of the settings that are tried, including settings that a later Spark adds."""

APART = "spark.sql.execution.arrow.maxBytesPerOutputBatch"
"""Tried in the other run, since Spark refuses it together with `maxRecordsPerOutputBatch`."""

OTHER = {
    "spark.sql.execution.arrow.compression.codec": "zstd",
    "spark.sql.execution.pandas.structHandlingMode": "dict",
    "spark.sql.execution.pandas.udf.buffer.size": "4096",
    "spark.sql.execution.pythonUDF.arrow.concurrency.level": "2",
    "spark.sql.files.ignoredPathSegmentRegex": "^[a-z]",
}
"""The other values of settings for which none can be derived from the default."""

BESIDE = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.pyspark.binaryAsBytes": "false",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
}
"""Settings with other prefixes that change the meaning of an expression."""


def registered(spark: SparkSession) -> dict[str, str]:
    """Return every SQL setting of this Spark, internal ones included, with its default."""
    registry = getattr(spark._jvm.org.apache.spark.sql.internal, "SQLConf$")  # type: ignore[union-attr] # noqa: SLF001
    entries = {entry.key(): entry for entry in registry.__getattr__("MODULE$").getConfigEntries().toArray()}
    return {key: str(entry.defaultValueString()) for key, entry in entries.items()}


def other_value(key: str, defaults: Mapping[str, str]) -> str:
    """Return a value other than the default: the opposite of a switch, or 2 for a number."""
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
    """Return the rows of all tables of the collection under these settings, which override nddup's own."""
    frame = spark.createDataFrame([(name, " ".join(words)) for name, words in TEXTS.items()], "id string, text string")
    found = find_duplicates(frame, **SETTINGS, spark=dict(settings))
    return {name: sorted(map(shown, getattr(found, name).toLocalIterator())) for name in NAMES}


def tables_in_memory() -> dict[str, list[str]]:
    """Return the rows of all tables by the embedded engine, which Spark's settings do not affect."""
    frame = pd.DataFrame({"id": list(TEXTS), "text": [" ".join(words) for words in TEXTS.values()]})
    found = find_duplicates(frame, **SETTINGS)
    return {name: sorted(map(str, found.sql(f"SELECT * FROM {name}").to_pylist())) for name in NAMES}  # noqa: S608


def shown(row: Row) -> str:
    """Return a row as text, the same for bytes and bytearrays."""
    return str({name: bytes(cell) if isinstance(cell, bytearray) else cell for name, cell in row.asDict().items()})


def test_any_setting_of_arrow_and_ansi_gives_the_same_tables(spark: SparkSession) -> None:
    """Tables do not change with other values, tried in two runs: without ANSI SQL its other settings have no effect."""
    defaults = registered(spark)
    tried = {key: other_value(key, defaults) for key in defaults if key.startswith(READ)}
    assert {ANSI, "spark.sql.execution.arrow.useLargeVarTypes", *PINNED} <= set(tried)
    assert {key for key in tried if not spark.conf.isModifiable(key)} == set()
    pinned = {key: tried.pop(key) for key in PINNED}
    apart = {key: tried.pop(key) for key in (ANSI, APART)}

    expected = tables_in_memory()
    with set_to(spark, pinned):  # set on the session; given as a setting it would be refused, see test_session.py
        by_arrow = tables(spark, {**tried, ANSI: "true"})
        by_sql = tables(spark, {**BESIDE, **apart})

    assert [len(rows) for rows in expected.values()] == [6, 0, 6, 1, 4, 6, 0]
    assert by_arrow == expected
    assert by_sql == expected
