"""A program that `bench spark` measures: python -m bench.spark_run SYSTEM TEXTS OUTPUT CORES SAID [SETTING …].

The systems: `nddup` as its command runs, and two programs of usual shape. Both shingle in SQL, five words at a time.

| system | candidates | kept if |
|---|---|---|
| sql | share one of 25 bands of 5 of 125 slots | at least 0.7 of the slots are equal |
| mllib | `MinHashLSH` with 5 hash tables over 2^20 hashed shingles | its resemblance, of all hashes, is at least 0.7 |
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.ml.feature import HashingTF, MinHashLSH
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.peers.texts import LENGTH, THRESHOLD

BANDS, ROWS = 25, 5
PRIME = (1 << 31) - 1
TOGETHER = 25
"""Slots of one aggregate: that of all slots is more code than Java compiles."""

TABLES = 5
PAIRS = "doc_a string, doc_b string"


def main(system: str, texts: str, output: str, cores: str, said: str, *settings: str) -> None:
    """Run a system; leave its pairs in OUTPUT/pairs, and the jobs and bytes of its session in the file `said`."""
    if system == "nddup":
        _run_nddup(texts, output, cores, settings)
    else:
        spark = _session(cores)
        shingled = _shingle(spark.read.schema("id string, text string").json(texts))
        PROGRAMS[system](shingled).write.parquet(f"{output}/pairs")
    session = SparkSession.getActiveSession()
    if session is None:
        raise SystemExit(f"{system}: no session is left to ask")
    Path(said).write_text(json.dumps(_costs(session)), encoding="utf-8")


def _run_nddup(texts: str, output: str, cores: str, settings: tuple[str, ...]) -> None:
    from nddup.cli import main as nddup  # noqa: PLC0415 - the other systems run without it

    given = [f"--set={setting}" for setting in settings]
    sys.argv[1:] = ["run", texts, "--output", output, "--engine", "spark", "--master", f"local[{cores}]", *given]
    if status := nddup():
        raise SystemExit(status)


def _session(cores: str) -> SparkSession:
    settings: dict[str, Any] = {
        "spark.driver.memory": "4g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "16",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").config(map=settings)
    spark: SparkSession = builder.getOrCreate()
    return spark


def _shingle(texts: DataFrame) -> DataFrame:
    """Return id string, shingles array<string>: the distinct ones of LENGTH words; a shorter text is one shingle."""
    words = texts.select("id", F.regexp_extract_all(F.lower("text"), F.lit(r"([\p{L}\p{N}_]+)"), 1).alias("words"))
    last = F.greatest(F.size("words") - F.lit(LENGTH - 1), F.lit(1))

    def shingle(start: Column) -> Column:
        return F.array_join(F.slice("words", start, LENGTH), " ")

    made = F.array_distinct(F.transform(F.sequence(F.lit(1), last), shingle))
    return words.where(F.size("words") > 0).select("id", made.alias("shingles"))


def find_by_sql(shingled: DataFrame) -> DataFrame:
    """Return PAIRS by bands of MinHash, and the share of equal slots."""
    random = np.random.default_rng(1)
    factors, terms = (random.integers(1, PRIME, BANDS * ROWS).tolist() for _ in range(2))
    hashes = shingled.select(
        "id", F.transform("shingles", lambda one: F.pmod(F.xxhash64(one), F.lit(PRIME))).alias("h")
    )
    hashed = hashes.persist().select("id", F.explode("h").alias("h"))
    signed = hashes.select("id")
    for low in range(0, BANDS * ROWS, TOGETHER):
        mixed = zip(factors[low : low + TOGETHER], terms[low : low + TOGETHER], strict=True)
        slots = F.array(*(F.min((F.col("h") * a + b) % PRIME) for a, b in mixed))
        signed = signed.join(hashed.groupBy("id").agg(slots.alias(f"s{low}")), "id")
    slots = F.concat(*(f"s{low}" for low in range(0, BANDS * ROWS, TOGETHER)))
    bands = F.array(*(F.xxhash64(F.lit(at), F.slice("slots", at * ROWS + 1, ROWS)) for at in range(BANDS)))
    signed = signed.select("id", slots.alias("slots")).select("id", "slots", bands.alias("bands")).persist()

    banded = signed.select("id", F.explode("bands").alias("band"))
    pairs = banded.alias("a").join(banded.alias("b"), "band").where("a.id < b.id")
    pairs = pairs.select(F.col("a.id").alias("doc_a"), F.col("b.id").alias("doc_b")).distinct()
    left, right = (signed.select(F.col("id").alias(f"doc_{end}"), F.col("slots").alias(f"slots_{end}")) for end in "ab")
    equal = F.zip_with("slots_a", "slots_b", lambda a, b: (a == b).cast("int"))
    count = F.aggregate(equal, F.lit(0), lambda total, one: total + one)
    met = pairs.join(left, "doc_a").join(right, "doc_b").where(count >= THRESHOLD * BANDS * ROWS)
    return met.select("doc_a", "doc_b")


def find_by_mllib(shingled: DataFrame) -> DataFrame:
    """Return PAIRS by `MinHashLSH` of MLlib."""
    counted = HashingTF(numFeatures=1 << 20, binary=True, inputCol="shingles", outputCol="features").transform(shingled)
    vectors = counted.select("id", "features").persist()
    model = MinHashLSH(inputCol="features", outputCol="hashes", numHashTables=TABLES, seed=1).fit(vectors)
    joined = model.approxSimilarityJoin(vectors, vectors, 1 - THRESHOLD + 1e-9)
    return joined.select(F.col("datasetA.id").alias("doc_a"), F.col("datasetB.id").alias("doc_b")).where(
        "doc_a < doc_b"
    )


PROGRAMS = {"sql": find_by_sql, "mllib": find_by_mllib}


def _costs(spark: SparkSession) -> dict[str, Any]:
    """Return the number of jobs, the bytes shuffled, and for each description the tasks, seconds and bytes."""
    context = spark.sparkContext
    store = context._jsc.sc().statusStore()  # noqa: SLF001 - the only counts without the web UI
    gateway: Any = context._gateway  # noqa: SLF001
    none, quantiles = gateway.jvm.java.util.ArrayList(), gateway.new_array(gateway.jvm.double, 0)
    listed = store.stageList(none, False, False, quantiles, none)  # noqa: FBT003
    stages = [listed.apply(at) for at in range(listed.size())]
    groups: dict[str, list[float]] = {}
    for stage in stages:
        said = stage.description()
        name = said.get() if said.isDefined() else stage.name()
        used = (1, stage.numTasks(), stage.executorRunTime() / 1e3, stage.shuffleWriteBytes())
        groups[name] = [a + b for a, b in zip(groups.get(name, [0] * len(used)), used, strict=True)]
    return {
        "jobs": store.jobsList(None).size(),
        "shuffled": sum(int(stage.shuffleWriteBytes()) for stage in stages),
        "largest_task": max(_longest(store, stage) for stage in stages),
        "stages": groups,
    }


def _longest(store: Any, stage: Any) -> float:  # noqa: ANN401 - Java objects
    """Return the seconds of the longest task of a stage."""
    tasks = store.taskList(stage.stageId(), stage.attemptId(), 1 << 16)
    taken = [tasks.apply(at).duration() for at in range(tasks.size())]
    return max((float(one.get()) / 1e3 for one in taken if one.isDefined()), default=0.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
