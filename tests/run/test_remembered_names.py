"""The Java names that PySpark looks up for each column are looked up once, with the same results."""

from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nddup.spark.java import CLASSES, remember_names


def test_a_column_asks_for_no_class_and_for_no_method(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """With remembered names, building a column looks up no name in Java (a py4j command that begins with `r`)."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    client, asked = jvm._gateway_client, list[str]()  # noqa: SLF001
    send = client.send_command

    def note(command: str, *given: Any, **how: Any) -> Any:  # noqa: ANN401 - as py4j has it
        asked.extend([command] * command.startswith("r\n"))
        return send(command, *given, **how)

    def looked_up() -> tuple[str, int]:
        asked.clear()
        column = F.coalesce(F.col("a"), F.greatest(F.lit(1), F.col("b")))
        return str(column), len(asked)

    monkeypatch.setattr(client, "send_command", note)
    remember_names(spark)
    first, _ = looked_up()
    again, lookups = looked_up()
    for name in CLASSES:
        vars(jvm).pop(name, None)
    forgotten, many = looked_up()
    remember_names(spark)

    assert first == again == forgotten == "Column<'coalesce(a, greatest(1, b))'>"
    assert lookups == 0
    assert many >= 8


def test_a_name_that_is_not_there_fails_as_before(spark: SparkSession) -> None:
    remember_names(spark)
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001

    with pytest.raises(Py4JError, match="no_such_function"):
        jvm.functions.no_such_function()
