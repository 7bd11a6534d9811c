"""`python -m bench.papers.mllib_fpgrowth CONTEXT.npz K`: seconds of MLlib's FP-Growth, and the number of its sets."""

import sys
import time

import numpy as np
import pandas as pd
from pyspark.ml.fpm import FPGrowth
from pyspark.sql import SparkSession


def main() -> None:
    """Load the context, warm up, and list the frequent sets."""
    loaded = np.load(sys.argv[1])
    support = int(sys.argv[2])
    rows = [row.tolist() for row in np.split(loaded["items"], loaded["offsets"][1:-1])]
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g")
    # A shingle in thousands of pages makes a tree of that depth, which Java serialises by recursion.
    spark = builder.config("spark.driver.extraJavaOptions", "-Xss512m").getOrCreate()
    frame = spark.createDataFrame(pd.DataFrame({"items": rows})).cache()
    frame.count()

    # MLlib computes ceil(minSupport * n): half a transaction less avoids rounding up by one.
    model = FPGrowth(itemsCol="items", minSupport=(support - 0.5) / len(rows))
    started = time.perf_counter()
    sets = model.fit(frame).freqItemsets.count()
    print(round(time.perf_counter() - started, 2), sets)
    spark.stop()


if __name__ == "__main__":
    main()
