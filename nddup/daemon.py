"""The parent of Spark's Python workers, with the kernels loaded before it forks them.

Loading numba and its compiled kernels costs a process some 1.5 s of CPU. Workers are forked from one daemon an
executor, so it is paid once there, not in each worker. Workers collect garbage after each task; of what was loaded
there is none, but looking through it took a tenth of a second each time, so it is frozen. Spark starts this module
instead of its own daemon where `spark.python.daemon.module` names it; any job runs as well without.
"""

import gc

import numpy as np
from pyspark import daemon

from nddup.algorithms import banding, levelling, markup, overlap, recipes, sketching
from nddup.algorithms.counting import count_pairs
from nddup.algorithms.itemsets import cover_component, mine_component
from nddup.algorithms.leaders import follow_leaders
from nddup.algorithms.lexicon import LexiconRule, TermCounts
from nddup.algorithms.proofs import compare_all
from nddup.algorithms.thresholds import Threshold
from nddup.algorithms.word_sketches import WordRule, WordSketcher
from nddup.algorithms.words import grow_table
from nddup.stages import clusters, exchange, graph, sketch

__all__ = ["clusters", "compile_kernels", "graph", "load_kernels", "sketch"]


def compile_kernels() -> None:
    """Call every kernel once, those of rare paths too, so that later processes find them compiled on the disk."""
    load_kernels()
    offsets, ids, ones = np.array([0, 3, 6], np.int64), np.array([1, 2, 3, 1, 2, 3], np.uint64), np.ones(2, np.int32)
    cover_component(offsets, ids.view(np.int64), ones, np.array([[0, 1]], np.int32))
    text, sizes = np.frombuffer(b"a rose is a rose", np.uint8), np.array([0, 16], np.int64)
    for permutation in ("mix", "gf2", "affine", "datasketch"):
        recipes.make_sketches(text, sizes, recipes.Recipe("minhash", size=2, permutation=permutation))
    for permutation in ("gf2", "affine"):
        recipes.make_sketches(
            text, sizes, recipes.Recipe(unit="char", fingerprint="rabin", permutation=permutation, growth="linear")
        )
    rule = LexiconRule(("english",), stems=True, stops=True, low="0", high="1")
    TermCounts(rule).add(text, sizes)
    WordSketcher(WordRule("i-match", rule), ids).sketch(text, sizes)
    grow_table(np.zeros(2, np.uint64), np.full(2, -1, np.int32))
    for finder in (banding.Finder(1, 2), banding.Finder(0, 2)):
        finder.keys(overlap.Ragged(offsets, ids))
    levelling.spread_levels(np.array([1]), np.array([0]), overlap.Ragged(offsets[:2], ids[:3]), 1)
    for threshold in (Threshold("overlap", 2, 1, True, 3), Threshold("resemblance", 1, 2, False, 3)):  # noqa: FBT003
        follow_leaders(overlap.Ragged(offsets, ids), ones, np.array([0, 1]), threshold)
    count_pairs(np.array([0, 0, 1]), np.array([0, 1, 1]))
    compare_all(offsets, ids, np.array([0]), offsets, ids, np.array([1]), 3, np.zeros(1, np.uint64))


def load_kernels() -> None:
    """Call each kernel of the usual path once, on almost nothing and on the types the stages use."""
    offsets, ids = np.array([0, 3, 6], np.int64), np.array([1, 2, 3, 1, 2, 3], np.uint64)
    ones = np.ones(2, np.int32)
    text = np.frombuffer(b"a rose is a rose", np.uint8)
    sketching.sketch_texts(text, np.array([0, len(text)], np.int64))
    sketches = overlap.Ragged(offsets, ids)
    exchange.take_rows(sketches, np.array([1, 0]))
    overlap.keep_possible(ids, np.ones(len(ids), np.int32))
    overlap.order_by_rarity(offsets, ids, np.ones(len(ids), np.int32))
    holders, is_owned = np.ones(len(ids), np.int32), np.ones(len(ids), np.bool_)
    overlap.match_prefixes(
        sketches, sketches, holders, is_owned, ones, size=3, share=(1, 2), max_postings=10, crowd=np.ones(2, np.bool_)
    )
    markup.strip_markup("<div>" * (markup.MAX_DEPTH + 2))
    mine_component(offsets, ids.view(np.int64), ones, np.array([[0, 1]], np.int32), max_sets=9, max_members=9)


if __name__ == "__main__":
    load_kernels()
    gc.freeze()
    daemon.manager()
