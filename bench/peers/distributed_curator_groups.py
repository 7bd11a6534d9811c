"""Groups by distributed-curator: `python distributed_curator_groups.py TEXTS OUTPUT CORES`, in its own environment.

It runs on Spark 3.5, for which its Scala functions are compiled. Its sketches are of 64 hashes of nine characters, in
16 bands, as its function takes them if nothing else is said.
"""

import os
import sys
from collections import defaultdict

from distributed_curator import get_jar_path, partition_aware_deduplicate
from pyspark.sql import SparkSession
from texts import THRESHOLD, write_groups

PARTITIONS = 16


def main() -> None:
    """Run it, then write the groups of two or more documents."""
    texts, output, cores = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": get_jar_path(),
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.ui.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    spark = SparkSession.builder.master(f"local[{cores}]").config(map=settings).getOrCreate()
    read = spark.read.schema("id string, text string").json(texts).withColumnRenamed("id", "doc_id")
    found = partition_aware_deduplicate(
        spark, read, similarity_threshold=THRESHOLD, num_partitions=PARTITIONS, is_input_doc_id_unique=True
    )
    groups: dict[str, list[str]] = defaultdict(list)
    for row in found.select("representative_id", "doc_id").toLocalIterator():
        groups[row[0]].append(row[1])
    write_groups(output, (group for group in groups.values() if len(group) > 1))


if __name__ == "__main__":
    main()
