"""The pairs stage without Spark: the same task functions, with their blocks moved between tasks in this process."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from nddup.ground.arrays import Ragged
from nddup.spark.pairing import candidates, prefix_exchange
from nddup.spark.pairing.prefix_exchange import Pairing
from nddup.tables import SKETCHES

Tasks = dict[int, list[pa.RecordBatch]]


def sketch_batches(sketches: Ragged, batch_rows: int = 10_000) -> Iterator[pa.RecordBatch]:
    """Yield batches of SKETCHES; the node of a sketch is its number."""
    for low in range(0, len(sketches.offsets) - 1, batch_rows):
        offsets = sketches.offsets[low : low + batch_rows + 1]
        values = sketches.values[offsets[0] : offsets[-1]].view(np.int64)
        lists = pa.ListArray.from_arrays((offsets - offsets[0]).astype(np.int32), pa.array(values))
        sizes = pa.array(np.diff(offsets).astype(np.int32))
        nodes = pa.array(np.arange(low, low + len(lists)))
        yield pa.RecordBatch.from_arrays([nodes, lists, sizes], names=SKETCHES.names)


def move(batches: Iterable[pa.RecordBatch]) -> tuple[Tasks, int]:
    """Return the blocks of each target task, and the bytes of all cells."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return {}, 0
    table = pa.Table.from_batches(held).combine_chunks()
    targets = np.asarray(table["target"])
    order = np.argsort(targets, kind="stable")
    table = table.take(order)
    present, starts = np.unique(targets[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    cells = [table[name] for name in table.column_names if table.schema.field(name).type == pa.binary()]
    moved = sum(int(pa.compute.sum(pa.compute.binary_length(column)).as_py() or 0) for column in cells)
    tasks = {
        int(target): table.slice(low, high - low).to_batches()
        for target, low, high in zip(present, starts, ends, strict=True)
    }
    return tasks, moved


Step = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]
TwoSided = Callable[[Iterable[pa.RecordBatch], Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def find_pairs(sketches: Ragged, pairing: Pairing) -> tuple[list[pa.RecordBatch], dict[str, int]]:
    """Return COMPARED of all tasks, and the bytes moved in each exchange."""
    moved: dict[str, int] = {}
    given = sketch_batches(sketches)
    held, moved["sketches"] = move(prefix_exchange.gather_sketches(given, pairing=pairing))

    def each(tasks: Tasks, step: Step) -> Iterator[pa.RecordBatch]:
        return (batch for blocks in tasks.values() for batch in step(blocks))

    def both(left: Tasks, right: Tasks, step: TwoSided) -> Iterator[pa.RecordBatch]:
        return (
            batch
            for target in left.keys() | right.keys()
            for batch in step(left.get(target, []), right.get(target, []))
        )

    if pairing.finder is None:
        requests, moved["requests"] = move(each(held, partial(prefix_exchange.request_rarity, pairing=pairing)))
        replies, moved["replies"] = move(each(requests, partial(prefix_exchange.reply_rarity, pairing=pairing)))
        posted = both(held, replies, partial(prefix_exchange.post_prefixes, pairing=pairing))
    else:
        posted = each(held, partial(prefix_exchange.post_keys, pairing=pairing))
    postings, moved["postings"] = move(posted)

    wanted, moved["wanted"] = move(each(postings, partial(candidates.ask_sketches, pairing=pairing)))
    sent, moved["sent"] = move(both(held, wanted, partial(prefix_exchange.send_sketches, pairing=pairing)))
    found, moved["found"] = move(both(postings, sent, partial(candidates.compare, pairing=pairing)))
    return list(each(found, partial(candidates.drop_repeats, most=pairing.most_listed))), moved


def rows_of(compared: list[pa.RecordBatch], what: str) -> list[dict[str, object]]:
    """Return the rows of COMPARED of one kind, in the order of their nodes."""
    rows = [row for batch in compared for row in batch.to_pylist() if row["what"] == what]
    return sorted(rows, key=lambda row: (row["node_a"] or 0, row["node_b"] or 0))
