"""The tasks of Spark called once over two sketches, so that the kernels that they need are compiled and loaded."""

import numpy as np
import pyarrow as pa

from nddup.ground.arrays import Ragged
from nddup.matching.elements import divide
from nddup.matching.overlap_join import LongLists
from nddup.matching.threshold import Threshold
from nddup.spark import scan
from nddup.spark.clustering import graph, mine_components
from nddup.spark.pairing import candidates, prefix_exchange
from nddup.spark.pairing.prefix_exchange import Pairing

__all__ = ["mine_components", "run_tasks", "scan"]


def run_tasks(rows: Ragged) -> None:
    """Run the tasks of pairs and of one graph one after another.

    Args:
        rows: two equal sketches.
    """
    threshold = Threshold("resemblance", 1, 2, is_count=False, size=3)
    pairing = Pairing(threshold, divide(6, 1), LongLists(10, 10), links=True, most_ids=3)
    lists = pa.array(np.split(rows.values.view(np.int64), 2), pa.list_(pa.int64()))
    sketches = pa.record_batch({"node": [0, 1], "sketch": lists, "n_features": pa.array([3, 3], pa.int32())})
    kept = list(prefix_exchange.gather_sketches([sketches], pairing=pairing))
    replies = list(prefix_exchange.reply_rarity(prefix_exchange.request_rarity(kept, pairing=pairing), pairing=pairing))
    postings = list(prefix_exchange.post_prefixes(kept, replies, pairing=pairing))
    wanted = list(candidates.ask_sketches(postings, pairing=pairing))
    sent = list(prefix_exchange.send_sketches(kept, wanted, pairing=pairing))
    list(candidates.drop_repeats(candidates.compare(postings, sent, pairing=pairing)))

    streamed = iter([pa.record_batch({"first": [0], "second": [1]})])
    solving = graph.Solving(2, graph.Assignment("pivot", 0, 1, 1), least=None)
    list(graph.solve_task(streamed, solving=solving))
