"""Pairs by rensa: `python rensa_pairs.py TEXTS OUTPUT`, with the interpreter of rensa's environment."""

import sys
from collections.abc import Iterator

from rensa import RMinHash, RMinHashLSH
from texts import BANDS, SLOTS, THRESHOLD, read_shingles, write_pairs


def find_pairs(path: str) -> Iterator[tuple[str, str, float]]:
    """Yield the pairs that share a band, each with the estimate of rensa."""
    index = RMinHashLSH(THRESHOLD, SLOTS, BANDS)
    ids: list[str] = []
    made: list[RMinHash] = []
    for doc_id, shingles in read_shingles(path):
        signature = RMinHash(SLOTS, 1)
        signature.update(shingles)
        for other in index.query(signature):
            yield ids[other], doc_id, signature.jaccard(made[other])
        index.insert(len(ids), signature)
        ids.append(doc_id)
        made.append(signature)


if __name__ == "__main__":
    write_pairs(sys.argv[2], find_pairs(sys.argv[1]))
