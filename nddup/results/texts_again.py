"""Texts that a run did not store, read again from its inputs."""

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import SparkSession

from nddup.run.on_spark.inputs import reopen_inputs
from nddup.storage.spark_folder import SparkFolder


def read_texts(spark: SparkSession, path: str, documents: Mapping[str, tuple[str, bytes]]) -> pa.Table:
    """STORED_TEXTS of these documents (doc_id -> source, fingerprint). One action.

    Raises:
        ConfigError: if an input of the run is not there any more.
        NddupError: if a file changed, came or went since the run.
    """
    return reopen_inputs(spark, SparkFolder(spark, path)).find_texts(documents).toArrow()
