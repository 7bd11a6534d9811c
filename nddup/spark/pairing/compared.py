"""COMPARED, the one table that a pass over the candidates leaves, and the views that the run takes of it.

A task finds pairs, links heavy sketches and counts its work in one pass, so its rows are of three kinds.

    arrays    --lay_out-->         rows of COMPARED of one kind
    compared  --matches_of-->      MATCHES         the pairs
    compared  --connections_of-->  CONNECTIONS     pairs and links: what joins sketches to families
    compared  --heavy_of-->        nodes           the ends of links
    compared  --count_compared-->  numbers         the counters, summed while the table is written
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nddup import working_tables
from nddup.spark.schemas import COMPARED, CONNECTIONS, MATCHES, require

COUNTERS = ("candidates", "stopped")
"""What each task counts: sketches compared; the most holders of a feature that costs too much."""


def lay_out(what: Literal["pair", "link", "count"], columns: Mapping[str, NDArray[np.generic]]) -> pa.RecordBatch:
    """Rows of COMPARED of one kind.

    Args:
        what: the kind.
        columns: columns of COMPARED by name, arrays of one length, at least one; the other counters are 0, the other
            columns null.
    """
    rows = len(next(iter(columns.values())))
    laid = [pa.repeat(what, rows)]
    for name, kind in zip(working_tables.COMPARED.names[1:], working_tables.COMPARED.arrow.types[1:], strict=True):
        if name in columns:
            laid.append(pa.array(columns[name], kind))
        else:
            laid.append(pa.repeat(0, rows) if name in COUNTERS else pa.nulls(rows, kind))
    return working_tables.COMPARED.batch(laid)


def matches_of(compared: DataFrame) -> DataFrame:
    """The near-duplicate pairs.

    Schema in:   COMPARED
    Schema out:  MATCHES
    Shuffles:  none.    Actions:  none.
    """
    require(compared, COMPARED, stage="pairs")
    return compared.where("what = 'pair'").select(*MATCHES.fieldNames())


def connections_of(compared: DataFrame) -> DataFrame:
    """Pairs and links alike, read once.

    Schema in:   COMPARED
    Schema out:  CONNECTIONS
    Shuffles:  none.    Actions:  none.
    """
    require(compared, COMPARED, stage="pairs")
    is_link = (F.col("what") == "link").alias("is_link")
    return compared.where("what <> 'count'").select("node_a", "node_b", is_link).select(*CONNECTIONS.fieldNames())


def heavy_of(compared: DataFrame) -> DataFrame:
    """The heavy sketches: those that are linked.

    Schema in:   COMPARED
    Schema out:  node long
    Shuffles:  one, of nodes.    Actions:  none.
    """
    require(compared, COMPARED, stage="pairs")
    return compared.where("what = 'link'").select(F.explode(F.array("node_a", "node_b")).alias("node")).distinct()


def count_compared() -> dict[str, Column]:
    """What is counted of COMPARED in passing: its pairs (`edges`), its links, and the counters of all tasks."""
    kinds = {"edges": F.count_if(F.col("what") == "pair"), "links": F.count_if(F.col("what") == "link")}
    return kinds | {"candidates": F.sum("candidates"), "stopped": F.max("stopped")}
