"""Matching: from distinct sketches to every pair of near-duplicates, without loss.

    sketches         --keep_sketches-->  homes       1 shuffle
    homes            --post-->           postings    3 shuffles; 1 if sketches meet by keys
    homes, postings  --match-->          compared    3 shuffles

All shuffles move blocks. `nddup.run.on_spark.pairing` persists the homes and the postings between the steps, for each
is read more than once. A whole sketch is sent once to its home, and then only to tasks that have it in a candidate
pair, so the bytes sent per sketch do not grow with the number of tasks. `nddup.matching` has the arithmetic and why it
is exact; `plan` lists what each exchange moves.
"""

from functools import partial

from pyspark.sql import DataFrame

from nddup.spark.blocks import block_schema, cogroup, exchange
from nddup.spark.pairing import homes as home_tasks
from nddup.spark.pairing import meet
from nddup.spark.pairing.plan import PAIR_LAYOUT, SKETCH_LAYOUT, Pairing
from nddup.spark.schemas import COMPARED, SKETCHES, require, table

REQUESTS = table("target int, rest binary, many binary, home int, question int")
REPLIES = table("target int, classes binary, owner int")
WANTED = table("target int, node binary, owner int")


def keep_sketches(sketches: DataFrame, pairing: Pairing) -> DataFrame:
    """Send each sketch that can be in a pair to its home.

    Schema in:   SKETCHES, each node once
    Schema out:  blocks of SKETCH_LAYOUT
    Shuffles:  one, of blocks.    Actions:  none.
    """
    require(sketches, SKETCHES, stage="pairs")
    sent = sketches.select("node", "sketch").mapInArrow(
        partial(home_tasks.gather_sketches, pairing=pairing), block_schema(SKETCH_LAYOUT)
    )
    return exchange(sent, partitions=pairing.partitions)


def post(homes: DataFrame, pairing: Pairing) -> DataFrame:
    """Send the prefixes of the sketches, or their keys, to the owners of their elements.

    Schema in:   as `keep_sketches` gives
    Schema out:  blocks of the posting layout of `pairing`
    Shuffles:  three, of blocks: requests, replies and postings; for keys only the last.    Actions:  none.
    """
    schema = block_schema(pairing.posting_layout)
    if pairing.finder is not None:
        posted = homes.mapInArrow(partial(home_tasks.post_keys, pairing=pairing), schema)
        return exchange(posted, partitions=pairing.partitions)

    requests = homes.mapInArrow(partial(home_tasks.ask, pairing=pairing), REQUESTS)
    asked = exchange(requests, partitions=pairing.partitions)
    replies = exchange(
        asked.mapInArrow(partial(home_tasks.answer, pairing=pairing), REPLIES), partitions=pairing.partitions
    )
    posted = cogroup(homes, replies, partial(home_tasks.post_prefixes, pairing=pairing), schema)
    return exchange(posted, partitions=pairing.partitions)


def match(homes: DataFrame, postings: DataFrame, pairing: Pairing) -> DataFrame:
    """Find the candidates, fetch their sketches and compare them.

    Schema in:   as `keep_sketches` and `post` give
    Schema out:  COMPARED
    Shuffles:  three, of blocks: the nodes wanted, their sketches, and the pairs found.    Actions:  none.
    """
    wanted = postings.mapInArrow(partial(meet.ask_sketches, pairing=pairing), WANTED)
    sent = cogroup(
        homes,
        exchange(wanted, partitions=pairing.partitions),
        partial(home_tasks.send_sketches, pairing=pairing),
        block_schema(SKETCH_LAYOUT),
    )
    found = cogroup(
        postings,
        exchange(sent, partitions=pairing.partitions),
        partial(meet.compare, pairing=pairing),
        block_schema(PAIR_LAYOUT),
    )
    return exchange(found, partitions=pairing.partitions).mapInArrow(meet.drop_repeats, COMPARED)
