"""Pairs by datasketch: `python datasketch_pairs.py TEXTS OUTPUT`, with the interpreter of its environment."""

import sys
from collections.abc import Iterator

from datasketch import MinHash, MinHashLSH
from texts import BANDS, ROWS, SLOTS, read_shingles, write_pairs


def find_pairs(path: str) -> Iterator[tuple[str, str, float]]:
    """Yield the pairs that share a band, each with the estimate of datasketch."""
    index = MinHashLSH(num_perm=SLOTS, params=(BANDS, ROWS))
    made: dict[str, MinHash] = {}
    for doc_id, shingles in read_shingles(path):
        signature = MinHash(num_perm=SLOTS)
        signature.update_batch([shingle.encode() for shingle in shingles])
        for other in index.query(signature):
            yield other, doc_id, signature.jaccard(made[other])
        index.insert(doc_id, signature)
        made[doc_id] = signature


if __name__ == "__main__":
    write_pairs(sys.argv[2], find_pairs(sys.argv[1]))
