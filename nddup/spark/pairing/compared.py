"""COMPARED, the one table that a pass over the candidates writes, and the views that the run takes of it.

In one pass, a task finds pairs, links heavy sketches and counts its work, so the table has three kinds of rows.

    arrays    --lay_out-->         rows of COMPARED of one kind
    compared  --matches_of-->      MATCHES         the pairs
    compared  --connections_of-->  CONNECTIONS     pairs and links, which join sketches into families
    compared  --heavy_of-->        nodes           the ends of links
    compared  --count_compared-->  numbers         the counters, aggregated while the table is written
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
"""What each task counts: the candidates compared; the most holders of a feature that costs too much to compare."""


def lay_out(what: Literal["pair", "link", "count"], columns: Mapping[str, NDArray[np.generic]]) -> pa.RecordBatch:
    """Return rows of COMPARED of one kind.

    Args:
        what: the kind.
        columns: at least one column of COMPARED by name, arrays of one length; counters not given are 0, other columns
            null.
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
    """Return the near-duplicate pairs.

    Schema in:   COMPARED
    Schema out:  MATCHES
    Shuffles:  none.    Actions:  none.
    """
    require(compared, COMPARED, stage="pairs")
    return compared.where("what = 'pair'").select(*MATCHES.fieldNames())


def connections_of(compared: DataFrame) -> DataFrame:
    """Return pairs and links together, in one read.

    Schema in:   COMPARED
    Schema out:  CONNECTIONS
    Shuffles:  none.    Actions:  none.
    """
    require(compared, COMPARED, stage="pairs")
    is_link = (F.col("what") == "link").alias("is_link")
    return compared.where("what <> 'count'").select("node_a", "node_b", is_link).select(*CONNECTIONS.fieldNames())


def heavy_of(compared: DataFrame) -> DataFrame:
    """Return the heavy sketches that are linked.

    Schema in:   COMPARED
    Schema out:  node long
    Shuffles:  one, of nodes.    Actions:  none.
    """
    require(compared, COMPARED, stage="pairs")
    return compared.where("what = 'link'").select(F.explode(F.array("node_a", "node_b")).alias("node")).distinct()


def count_compared() -> dict[str, Column]:
    """Return the counts taken while COMPARED is written: pairs (`edges`), links, and the counters of all tasks."""
    kinds = {"edges": F.count_if(F.col("what") == "pair"), "links": F.count_if(F.col("what") == "link")}
    return kinds | {"candidates": F.sum("candidates"), "stopped": F.max("stopped")}
