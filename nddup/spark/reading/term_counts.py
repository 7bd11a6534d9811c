"""From partial counts to a lexicon: the terms of a collection, and those in an interval of frequencies.

    files, texts    --scan with `count_words.Terms`-->  partial counts, a row per term and task    no shuffle
    partial counts  --sum_terms-->  TERMS                                                          1 shuffle, of these
    TERMS           --choose_terms-->  LEXICON                                                     no shuffle

The arithmetic is in `nddup.sketching.words.lexicon`.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.spark.schemas import LEXICON, TERMS, require


def sum_terms(counted: DataFrame) -> DataFrame:
    """Sum the partial counts of each term.

    Schema in/out:  TERMS
    Shuffles:  one, of a row per term and task.    Actions:  none.
    """
    require(counted, TERMS, stage="lexicon")
    return counted.groupBy("term", "feature").agg(
        F.sum("occurrences").alias("occurrences"), F.sum("documents").alias("documents")
    )


def choose_terms(terms: DataFrame, *, least: int, most: int) -> DataFrame:
    """Return the terms with at least `least` and at most `most` occurrences.

    Schema in:   TERMS
    Schema out:  LEXICON
    Shuffles:  none.    Actions:  none.
    """
    require(terms, TERMS, stage="lexicon")
    return terms.where(F.col("occurrences").between(least, most)).select(*LEXICON.fieldNames())
