"""`python -m bench.papers.bisecting TEXTS.parquet K OUT.json`: repeated bisection of TF-IDF vectors by MLlib."""

import json
import sys
import time
from pathlib import Path

from pyspark.ml.clustering import BisectingKMeans
from pyspark.ml.feature import IDF, HashingTF, RegexTokenizer
from pyspark.sql import SparkSession

FEATURES = 1 << 16


def main() -> None:
    """Read `doc_id` and `text`, make vectors, and cluster them; the seconds are those of clustering."""
    texts, clusters, out = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    spark = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    frame = spark.read.parquet(texts)

    # A vector of zeros has no cosine: texts without words are left out.
    words = (
        RegexTokenizer(inputCol="text", outputCol="words", pattern=r"\W+").transform(frame).filter("size(words) > 0")
    )
    counted = HashingTF(inputCol="words", outputCol="counts", numFeatures=FEATURES).transform(words)
    weighed = IDF(inputCol="counts", outputCol="features").fit(counted).transform(counted)
    vectors = weighed.select("doc_id", "features").cache()
    vectors.count()

    started = time.perf_counter()
    model = BisectingKMeans(k=clusters, distanceMeasure="cosine", seed=1).fit(vectors)
    seconds = round(time.perf_counter() - started, 1)
    rows = model.transform(vectors).select("doc_id", "prediction").collect()
    made = {"seconds": seconds, "clusters": {row["doc_id"]: row["prediction"] for row in rows}}
    out.write_text(json.dumps(made), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
