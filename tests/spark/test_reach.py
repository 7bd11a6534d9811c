"""What a session must offer before a stage begins."""

import pyspark
import pytest
from pyspark.sql import SparkSession

from nddup.errors import ConfigError
from nddup.spark.session_access import access_of


@pytest.mark.parametrize("version", ["3.5.6", "4.0.5"])
def test_an_old_spark_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """A Spark without `repartitionById` is refused in one line that names both versions, not at the first shuffle."""
    monkeypatch.setattr(pyspark, "__version__", version)

    with pytest.raises(ConfigError, match=rf"Spark {version}: nddup needs Spark 4\.1 or newer"):
        access_of(spark)
