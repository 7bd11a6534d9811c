"""What PySpark asks of Java again for every column: which class has Spark's functions, and whether this is one of them.

`sc._jvm.functions.col("a")` sends three commands: what `functions` is, what `col` is of it, and the call. For the first
Java tries to load classes that are in no jar, from all jars: a tenth of the driver's time in a run over few documents.
The answers are the same as long as the Java machine runs, so they are kept where PySpark looks first.
"""

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from pyspark.sql import SparkSession

CLASSES = (
    "functions",
    "org.apache.spark.sql.functions",
    "PythonUtils",
    "PythonSQLUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.Observation",
    "SimplePythonFunction",
    "org.apache.spark.sql.execution.python.UserDefinedPythonFunction",
)
"""As PySpark asks for them. A name that another version does not know costs one question."""


class _Remembered(JavaClass):  # type: ignore[misc] # py4j has no types
    """A class whose methods are asked for once."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method, or the value of a field
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            self.__dict__[name] = member
        return member


def remember_names(spark: SparkSession) -> None:
    """Keep the answers for the names of `CLASSES` in a classic session. Cost: a question each, the first time.

    Nothing that is found this way changes: a field that is no method is asked for each time.
    """
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark looks nowhere else
    for name in CLASSES:
        found = getattr(jvm, name)
        if type(found) is JavaClass:
            setattr(jvm, name, _Remembered(found._fqn, found._gateway_client))  # noqa: SLF001
