"""Pairs by Daft: `python daft_pairs.py TEXTS OUTPUT`, with the interpreter of its environment.

Daft makes the signatures and groups them by bands; the estimates of pairs that share a band are computed here.
"""

import os
import sys
from collections.abc import Iterator
from functools import reduce
from itertools import combinations
from operator import eq

import daft
from daft.functions import hash as hashed
from daft.functions import list_agg, list_count, minhash, normalize
from daft.functions import slice as part_of
from texts import LENGTH, ROWS, SLOTS, write_pairs


def find_pairs(path: str) -> Iterator[tuple[str, str, float]]:
    """Yield the pairs that share a band, each with its share of equal slots."""
    words = normalize(daft.col("text"), remove_punct=True, lowercase=True, white_space=True)
    signature = minhash(words, num_hashes=SLOTS, ngram_size=LENGTH).cast(daft.DataType.list(daft.DataType.uint32()))
    signed = daft.read_json(path).select("id", signature.alias("slots")).collect()

    bands = [
        signed.select(
            "id", hashed(part_of(daft.col("slots"), low, low + ROWS)).alias("key"), daft.lit(low).alias("low")
        )
        for low in range(0, SLOTS, ROWS)
    ]
    rows = reduce(lambda above, below: above.concat(below), bands)
    groups = rows.groupby("low", "key").agg(list_agg(daft.col("id")).alias("ids"))
    together = groups.where(list_count(daft.col("ids")) > 1).select("ids").to_pydict()["ids"]

    slots = {row["id"]: row["slots"] for row in signed.iter_rows()}
    for a, b in {pair for ids in together for pair in combinations(sorted(ids), 2)}:
        yield a, b, sum(map(eq, slots[a], slots[b])) / SLOTS


if __name__ == "__main__":
    write_pairs(sys.argv[2], find_pairs(sys.argv[1]))
    os._exit(0)  # Daft's threads abort the interpreter at exit
