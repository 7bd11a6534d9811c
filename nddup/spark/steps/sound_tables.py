"""Checks of the tables of a run that anyone may have written, as `nddup.storage.sound_tables` makes them, on Spark."""

from collections.abc import Iterator, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup.errors import OutputError
from nddup.storage.sound_tables import FINGERPRINT, NEVER_NEGATIVE
from nddup.tables import table_called


def require_sound(tables: Mapping[str, DataFrame], path: str, *, values: int) -> None:
    """Refuse tables of a run in `path` that no run writes, by their names; types are those with which they are read.

    Args:
        values: the length of each list in `policy`.

    Raises:
        OutputError: one line with a fault.

    Shuffles: none.    Actions: one, which reads all tables; nothing of them leaves the JVM.
    """
    checked = []
    for name, rows in tables.items():
        faults = [F.when(F.bool_or(is_bad), F.lit(f"{name}.{fault}")) for fault, is_bad in _faults_of(name, values)]
        checked.append(rows.agg(F.coalesce(*faults).alias("fault")))
    for row in reduce(DataFrame.unionByName, checked).where("fault IS NOT NULL").take(1):
        raise OutputError(f"{path}: holds what nddup does not write: {row.fault}")


def _faults_of(name: str, values: int) -> Iterator[tuple[str, Column]]:
    """Yield what may be wrong in a row, and the condition under which it is."""
    for column in table_called(name).columns:
        value, is_list = F.col(column.name), column.type.startswith("array")
        if not column.may_lack:
            yield f"{column.name} holds a null", value.isNull()
        if column.name == "policy":
            lacks = value.isNotNull() & (F.size(value) != values)
            yield f"policy holds lists of another length than {values}", lacks
        elif is_list:
            yield f"{column.name} holds a null", F.exists(value, lambda one: one.isNull())
        if column.type == "binary":
            yield f"{column.name} holds a value of another length", F.length(value) != FINGERPRINT
        if column.type == "double":
            yield f"{column.name} holds no number", F.isnan(value) | (F.abs(value) == float("inf"))
        if column.type == "string":
            yield f"{column.name} holds what is no text", ~F.is_valid_utf8(value)
        if column.name == "date":
            yield "date holds none", value.isNotNull() & F.try_to_timestamp(value).isNull()
        if column.name in NEVER_NEGATIVE:
            yield f"{column.name} holds a negative number", value < 0
