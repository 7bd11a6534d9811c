"""The tasks of `confirm` and `family_pairs` that confirm pairs by text, without Spark: Arrow batches in and out."""

import numpy as np
import pyarrow as pa
import pytest

from nddup.matching.confirm_texts import EditRule
from nddup.matching.overlap_join import ComparisonLimits
from nddup.matching.threshold import Threshold
from nddup.mining.family_pairs import FamilyRule, search_families
from nddup.spark.blocks import Layout
from nddup.spark.pairing import confirm
from tests.counted_rows import once
from tests.embedded.confirmed_texts import longest_common

RULE = EditRule(1, 2)
LISTS = pa.list_(pa.int64())


def draw_texts(seed: int) -> dict[int, list[int]]:
    """Draw the token numbers of six nodes."""
    random = np.random.default_rng(seed)
    return {node: random.integers(0, 5, random.integers(4, 20)).tolist() for node in (5, 1, 2, 9, 4, 7)}


def edit(first: list[int], second: list[int]) -> float:
    common = longest_common([*map(str, first)], [*map(str, second)])
    return 2 * common / (len(first) + len(second))


def together(batches: list[pa.RecordBatch], *layouts: Layout) -> list[pa.RecordBatch]:
    """Return the blocks as a task receives them: with null cells in the columns of the other layouts."""
    schema = pa.schema([("target", pa.int32()), *((name, pa.binary()) for layout in layouts for name in layout)])
    return [
        pa.RecordBatch.from_arrays(
            [batch.column(field.name) if field.name in batch.schema.names else pa.nulls(len(batch), field.type)
             for field in schema], schema=schema)
        for batch in batches
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_a_task_confirms_its_candidates(seed: int) -> None:
    """A task confirms each candidate by the texts of its nodes, and marks one whose text is missing as lost."""
    texts, ends = draw_texts(seed), [(1, 5), (2, 4), (1, 8), (4, 9)]
    rows = {
        "bucket": pa.array([0] * 6, pa.int32()),
        "node": list(texts),
        "sketch": pa.array(list(texts.values()), LISTS),
    }
    sent = list(confirm.post_texts(iter([pa.RecordBatch.from_pydict(rows)]), partitions=1))
    pairs = {
        "node_a": [a for a, _ in ends], "node_b": [b for _, b in ends], "overlap": pa.array([1, 2, 3, 4], pa.int32()),
        "resemblance": [0.4, 0.5, 0.6, 0.7], "containment_a": pa.array([None, 0.1, None, None], pa.float64()),
        "containment_b": pa.array([None, 0.2, None, None], pa.float64()), "bucket": pa.array([0] * 4, pa.int32()),
    }  # fmt: skip
    sent += confirm.post_pairs(iter([pa.RecordBatch.from_pydict(pairs)]), partitions=1)

    received = iter(together(sent, confirm.TEXT_LAYOUT, confirm.PAIR_LAYOUT))
    found = {(row["node_a"], row["node_b"]): row for batch in confirm.confirm_task(received, rule=RULE)
             for row in batch.to_pylist()}  # fmt: skip

    assert found.keys() == set(ends)
    assert {pair for pair, row in found.items() if row["is_lost"]} == {(1, 8)}
    for a, b in {(1, 5), (2, 4), (4, 9)}:
        share = edit(texts[a], texts[b])
        assert found[a, b]["edit"] == (share if share >= 0.5 else None)
    assert (found[2, 4]["containment_a"], found[2, 4]["containment_b"]) == (0.1, 0.2)
    assert found[1, 5]["containment_a"] is None


@pytest.mark.parametrize("seed", range(10))
def test_a_task_keeps_what_no_kept_text_confirms(seed: int) -> None:
    """In a large family where all sketches reach the threshold, each kept node is paired with each removed one."""
    texts = draw_texts(seed)
    sketches = {node: [1, 2, 100 + node] for node in texts}
    rows = {
        "node": list(texts), "family": [0] * 6, "is_large": [True] * 6,
        "sketch": pa.array(list(sketches.values()), LISTS), "tokens": pa.array(list(texts.values()), LISTS),
        "most": [3] * 6, "least": [3] * 6, "n": [1] * 6, "shingles": [3] * 6, "guard": [0] * 6,
    }  # fmt: skip
    threshold = Threshold("overlap", 2, 1, is_count=True, size=3, by_text=True)
    rule = FamilyRule(threshold, None, ComparisonLimits(1, 10**6), RULE)
    whole = pa.RecordBatch.from_pydict(rows)

    found = [row for batch in search_families(iter([whole[:2], whole[2:]]), rule=rule) for row in batch.to_pylist()]

    kept: list[int] = []
    for node in texts:
        if not any(edit(texts[node], texts[other]) >= 0.5 for other in kept):
            kept.append(node)
    due = {(min(a, b), max(a, b)) for a in kept for b in texts if b not in kept}
    assert once((row["node_a"], row["node_b"]) for row in found if row["what"] == "pair") == due
    assert {row["node_a"] for row in found if row["what"] == "leaders"} == set(texts)
