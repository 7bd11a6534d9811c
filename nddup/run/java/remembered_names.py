"""A cache of the classes and methods that PySpark looks up in Java again for every column.

`sc._jvm.functions.col("a")` sends three commands: what `functions` is, what its `col` is, and the call. For the first
one Java tries to load classes that are in no jar, from all jars: a tenth of the driver's time in a run over few
documents. The answers do not change while the JVM runs, so they are kept where PySpark looks first.
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
"""The names that PySpark asks for. A name that another version does not know costs one request."""


class _Remembered(JavaClass):  # type: ignore[misc] # py4j has no types
    """A Java class whose methods are looked up once."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method, or the value of a field
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            self.__dict__[name] = member
        return member


def remember_names(spark: SparkSession) -> None:
    """Keep the classes in `CLASSES`, and later their methods, in a classic session. Cost: one request a name, once.

    Only methods are kept, which do not change; a field is asked for each time.
    """
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark looks nowhere else
    for name in CLASSES:
        found = getattr(jvm, name)
        if type(found) is JavaClass:
            setattr(jvm, name, _Remembered(found._fqn, found._gateway_client))  # noqa: SLF001
