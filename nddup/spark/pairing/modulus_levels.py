"""Sketches whose modulus follows the document's length (`mod-pow2`), compared at the coarser of their two moduli.

    sketches  --coarsen-->            each at its own level i and reduced to every coarser one     no shuffle
    ... compared as any sketches; sketches of different levels share no ids ...
    compared  --keep_common_level-->  the pairs at the higher of the two own levels                no shuffle

V_{i+1} consists of the ids of V_i that 2**(i+1) divides. All reduced sketches of a document together have at most twice
the ids of its own sketch. At each level, every rule of `nddup.matching.prefix_filter` holds, with the bound of the size
at that level.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nddup.sketching.moduli import LEVEL_BITS, spread_levels
from nddup.spark.blocks import list_column
from nddup.spark.schemas import COMPARED, SKETCHES, require

Batches = Iterator[pa.RecordBatch]
LEVEL_MASK: Final = (1 << LEVEL_BITS) - 1


def coarsen(sketches: DataFrame, *, most: int) -> DataFrame:
    """Return each sketch at its own level and at each coarser level up to `most`, without the empty ones.

    The steps between this one and `keep_common_level` identify a sketch by one number. So `node` packs three numbers
    here: the node, its own level, and the level of this row, the last two in `LEVEL_BITS` bits each.

    Schema in:   SKETCHES, level long
    Schema out:  SKETCHES
    Shuffles:  none.    Actions:  none.
    """
    require(sketches, SKETCHES, stage="pairs")
    return sketches.select("node", "sketch", "level").mapInArrow(partial(_coarsen_task, most=most), SKETCHES)


def keep_common_level(compared: DataFrame) -> DataFrame:
    """Return what was found among coarsened sketches, under their nodes: each pair only at the coarser own level.

    Schema in/out:  COMPARED
    Shuffles:  none.    Actions:  none.
    """
    own_a, own_b = (F.shiftright(end, LEVEL_BITS).bitwiseAND(LEVEL_MASK) for end in ("node_a", "node_b"))
    is_here = F.col("node_a").bitwiseAND(LEVEL_MASK) == F.greatest(own_a, own_b)
    nodes = {end: F.shiftright(end, 2 * LEVEL_BITS) for end in ("node_a", "node_b")}

    chosen = compared.where((F.col("what") != "pair") | is_here)
    return chosen.withColumns(nodes).select(*COMPARED.fieldNames())


def _coarsen_task(batches: Batches, *, most: int) -> Batches:
    for batch in batches:
        own, levels = (np.asarray(batch.column(name)) for name in ("node", "level"))
        nodes, rows = spread_levels(own, levels, list_column(batch.column("sketch")), most)

        lists = pa.ListArray.from_arrays(rows.offsets.astype(np.int32), pa.array(rows.values.view(np.int64)))
        yield pa.RecordBatch.from_arrays([pa.array(nodes), lists], names=SKETCHES.fieldNames())
