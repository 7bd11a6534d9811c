"""Maximal and closed sets of plain contexts, against their definitions, a C miner, and that miner's recorded counts."""

import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import fim
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.ground.arrays import number_keys
from nddup.mining.fimi import Context, number_rows, read_fimi
from nddup.mining.frequent_sets import choose_columns, find_pairs, mine_context
from nddup.mining.itemsets import Itemsets, mine_component
from nddup.reading.markup import strip_markup
from nddup.sketching.min_s import sketch_texts
from tests.samples_by_night import examples, first

Transactions = Sequence[frozenset[int]]
Found = set[tuple[tuple[int, ...], int]]

REFERENCES = [
    ("chess.dat", 2877), ("chess.dat", 2397), ("mushroom.dat", 4062), ("mushroom.dat", 1625), ("mushroom.dat", 812),
    ("retail.dat", 882), ("T10I4D100K.dat", 1000), ("BMS1.dat", 596), ("BMS1.dat", 60), ("vote.dat", 218),
    ("vote.dat", 87), ("primary-tumor.dat", 67),
    # larger, or like one of these
    ("heart-cleveland.dat", 89), ("chess.dat", 1918), ("T10I4D100K.dat", 100), ("retail.dat", 8816),
]  # fmt: skip


def as_context(transactions: Transactions, n_items: int = 12) -> Context:
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in transactions]))).astype(np.int64)
    items = np.array([item for row in transactions for item in row], np.int32)
    return Context(offsets, items, n_items)


def as_set(itemsets: Itemsets) -> Found:
    """Return the sets with their supports; assert that they are in ascending order and that none repeats."""
    rows = np.split(itemsets.members, itemsets.offsets[1:-1]) if itemsets.supports.size else []
    found = [(tuple(row.tolist()), support) for row, support in zip(rows, itemsets.supports.tolist(), strict=True)]
    assert found == sorted(set(found))
    assert all(list(members) == sorted(set(members)) for members, _ in found)
    return set(found)


def frequent_sets(transactions: Transactions, support: int) -> dict[frozenset[int], int]:
    """Return all frequent sets with their counts, by counting every set of items."""
    items = sorted(frozenset().union(*transactions))
    counts = {
        frozenset(chosen): sum(row.issuperset(chosen) for row in transactions)
        for size in range(1, len(items) + 1)
        for chosen in combinations(items, size)
    }
    return {chosen: count for chosen, count in counts.items() if count >= support}


def define_maximal(transactions: Transactions, support: int) -> Found:
    frequent = frequent_sets(transactions, support)
    return {
        (tuple(sorted(chosen)), count)
        for chosen, count in frequent.items()
        if not any(chosen < other for other in frequent)
    }


def define_closed(transactions: Transactions, support: int) -> Found:
    """Return the frequent sets without a superset of the same count; a set in all transactions only if it is alone."""
    frequent = frequent_sets(transactions, support)
    closed = {
        (tuple(sorted(chosen)), count)
        for chosen, count in frequent.items()
        if not any(chosen < other and count == frequent[other] for other in frequent)
    }
    return closed if len(closed) == 1 else {row for row in closed if row[1] < len(transactions)}


contexts = st.one_of(
    st.lists(st.frozensets(st.integers(0, 7), min_size=1), min_size=1, max_size=10),
    st.lists(st.frozensets(st.integers(0, 5), min_size=3), min_size=1, max_size=8),
)


@settings(max_examples=400)
@given(transactions=contexts, support=st.integers(1, 6))
def test_maximal_sets_meet_the_definition(transactions: Transactions, support: int) -> None:
    """The miner returns exactly the maximal sets, also of single items, with their supports."""
    assert as_set(mine_context(as_context(transactions), support).itemsets) == define_maximal(transactions, support)


@settings(max_examples=examples(100, 400))
@given(transactions=contexts, support=st.integers(1, 6))
def test_closed_sets_meet_the_definition(transactions: Transactions, support: int) -> None:
    """The miner returns exactly the closed sets, with their supports."""
    mined = mine_context(as_context(transactions), support, closed=True)

    assert as_set(mined.itemsets) == define_closed(transactions, support)
    assert mined.is_complete


def test_maximal_is_not_closed() -> None:
    """
    An item with a higher support than every larger set is closed but not maximal.

    1 2 | 1 2 | 1 | 3: at a support of 2, {1} has support 3 and {1, 2} has 2.
    """
    context = as_context([frozenset({1, 2}), frozenset({1, 2}), frozenset({1}), frozenset({3})])

    assert as_set(mine_context(context, 2).itemsets) == {((1, 2), 2)}
    assert as_set(mine_context(context, 2, closed=True).itemsets) == {((1,), 3), ((1, 2), 2)}


def test_what_every_transaction_holds_is_no_closed_set_of_its_own() -> None:
    """An item in all transactions, the closure of the empty set, is a closed set only if there is no other."""
    context = as_context([frozenset({1, 2}), frozenset({1, 3})])

    assert as_set(mine_context(context, 1, closed=True).itemsets) == {((1, 2), 1), ((1, 3), 1)}
    assert as_set(mine_context(context, 2, closed=True).itemsets) == {((1,), 2)}
    assert as_set(mine_context(context, 2).itemsets) == {((1,), 2)}


def test_equal_items_stay_together() -> None:
    """Items of the same transactions are in the same sets, even if no other item shares enough with them."""
    context = as_context([frozenset({1, 2, 5})] * 3 + [frozenset({4, 6})] * 2 + [frozenset({4, 7, 6, 8})] * 2)

    assert as_set(mine_context(context, 2).itemsets) == {((1, 2, 5), 3), ((4, 6, 7, 8), 2)}
    assert as_set(mine_context(context, 3).itemsets) == {((1, 2, 5), 3), ((4, 6), 4)}


def test_small_sets_are_left_out() -> None:
    """Sets of fewer than `min_size` items are left out; nothing else changes."""
    context = as_context([frozenset({1, 2, 3})] * 2 + [frozenset({4, 5})] * 2 + [frozenset({6})] * 2)

    assert as_set(mine_context(context, 2).itemsets) == {((1, 2, 3), 2), ((4, 5), 2), ((6,), 2)}
    assert as_set(mine_context(context, 2, min_size=2).itemsets) == {((1, 2, 3), 2), ((4, 5), 2)}
    assert as_set(mine_context(context, 2, min_size=3, closed=True).itemsets) == {((1, 2, 3), 2)}
    assert as_set(mine_context(context, 2, min_size=4).itemsets) == set()


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_budget_gives_true_sets_and_says_so(seed: int, closed: bool) -> None:  # noqa: FBT001
    """Beyond a budget, as many true sets as it allows are returned, marked incomplete; at the budget, all sets."""
    rng = np.random.default_rng(seed)
    context = as_context([frozenset(np.flatnonzero(rng.random(12) < 0.6).tolist()) for _ in range(30)])
    whole = mine_context(context, 6, closed=closed)
    n_sets = whole.itemsets.supports.size

    exact = mine_context(context, 6, closed=closed, max_sets=n_sets)
    short = mine_context(context, 6, closed=closed, max_sets=n_sets // 2)

    assert n_sets > 4
    assert whole.is_complete
    assert exact.is_complete
    assert as_set(exact.itemsets) == as_set(whole.itemsets)
    assert not short.is_complete
    assert short.itemsets.supports.size == n_sets // 2
    assert as_set(short.itemsets) < as_set(whole.itemsets)


@pytest.mark.parametrize("support", [1, 3, 10**40])
@pytest.mark.parametrize("closed", [False, True])
def test_nothing_from_nothing(support: int, closed: bool) -> None:  # noqa: FBT001
    """A context without transactions has no sets, and a support above the number of transactions gives none."""
    empty = Context(np.zeros(1, np.int64), np.empty(0, np.int32), 0)

    assert as_set(mine_context(empty, support, closed=closed).itemsets) == set()
    assert as_set(mine_context(as_context([frozenset({3})] * 2), support + 2, closed=closed).itemsets) == set()


def test_support_is_at_least_one() -> None:
    """A support of 0, with which every set would be frequent, is refused."""
    with pytest.raises(ValueError, match="a support is at least 1, got 0"):
        mine_context(as_context([frozenset({1})]), 0)


@pytest.mark.parametrize(("n_items", "least"), [(40, 24), (40, 30), (200, 25)])
def test_pairs_are_those_that_meet_often_enough(n_items: int, least: int) -> None:
    """Pairs are counted correctly from long transactions as bits and short ones as lists together."""
    rng = np.random.default_rng(least)
    lengths = np.where(np.arange(300) < 70, 0.9, 0.02)
    held = rng.random((n_items, 300)) < lengths * rng.uniform(0.3, 1, (n_items, 1))
    offsets = np.concatenate(([0], np.cumsum(held.sum(axis=1)))).astype(np.int64)
    transactions = np.nonzero(held)[1].astype(np.int32)

    pairs = find_pairs(offsets, transactions, 300, least)

    expected = np.argwhere(np.triu(held.astype(np.int32) @ held.T >= least, 1)).tolist()
    assert 0 < choose_columns(held.sum(axis=0), n_items).size < 300
    assert 0 < len(expected) < n_items * (n_items - 1) / 2
    assert sorted(pairs.tolist()) == expected


@given(rows=st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=30))
def test_equal_rows_get_one_number(rows: list[list[int]]) -> None:
    """Rows are numbered by first appearance; only equal rows have the same number."""
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    groups, count = number_rows(offsets, np.array([i for row in rows for i in row], np.int32))

    distinct = list(dict.fromkeys(map(tuple, rows)))
    assert groups.tolist() == [distinct.index(tuple(row)) for row in rows]
    assert count == len(distinct)


def by_fpgrowth(context: Context, support: int, *, target: str = "m") -> Found:
    """
    Mine with a C implementation.

    It never returns the set of items that are in every transaction, maximal or not. So a transaction with an item of
    its own is added, which a support of two or more leaves out: then no item is in every transaction.
    """
    rows = [row.tolist() for row in np.split(context.items, context.offsets[1:-1])]
    listed = fim.fpgrowth([*rows, [context.n_items]], target=target, supp=-support, zmin=1, report="a")
    return {(tuple(sorted(items)), int(count)) for items, count in listed}


@pytest.mark.parametrize("seed", range(30))
def test_random_families_agree_with_a_c_miner(seed: int) -> None:
    """The C miner finds the same sets in random families that lost features, at supports that split them."""
    rng = np.random.default_rng(seed)
    n_items, n_slots = int(rng.integers(10, 60)), int(rng.integers(20, 200))
    held = rng.random((n_slots, n_items)) < rng.uniform(0.7, 0.97)
    held &= rng.random((n_slots, n_items)) < rng.choice([0.2, 1.0], (n_slots, 1), p=[0.3, 0.7])
    context = as_context([frozenset(np.flatnonzero(row).tolist()) for row in held], n_items)
    support = max(2, int(n_slots * rng.uniform(0.45, 0.8)))

    assert as_set(mine_context(context, support).itemsets) == by_fpgrowth(context, support)
    extended = Context(np.append(context.offsets, context.items.size), context.items, n_items)  # as the C miner sees it
    assert as_set(mine_context(extended, support, closed=True).itemsets) == by_fpgrowth(context, support, target="c")


@pytest.fixture(scope="module")
def pages(shared: Path) -> Context:
    """A fifteenth of the real pages, with all their versions; each shingle of the sketches is a transaction."""
    table = pq.read_table(shared / "debdocs-dev" / "docs.parquet", columns=["page_key", "html"]).to_pandas()
    chosen = table[pd.util.hash_array(table["page_key"].to_numpy()) % 15 == 0]
    texts = [strip_markup(html.decode("utf-8", "replace")).encode() for html in chosen["html"]]
    offsets = np.concatenate(([0], np.cumsum([len(text) for text in texts]))).astype(np.int64)
    made = sketch_texts(np.frombuffer(b"".join(texts), np.uint8), offsets, length=5, size=100)
    numbers, count = number_keys(made.ids)
    starts = np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=count)))).astype(np.int64)
    owners = np.repeat(np.arange(len(texts), dtype=np.int32), np.diff(made.offsets))
    return Context(starts, owners[np.argsort(numbers, kind="stable")], len(texts))


@pytest.mark.parametrize("support", [95, 85, 70, 60, 50])
def test_real_pages_agree_with_a_c_miner(pages: Context, support: int) -> None:
    """Sketches of real pages give the C miner's sets, both as a context and as one component with given pairs."""
    expected = by_fpgrowth(pages, support)
    documents = np.repeat(np.arange(pages.offsets.size - 1), np.diff(pages.offsets))[
        np.argsort(pages.items, kind="stable")
    ]
    offsets = np.concatenate(([0], np.cumsum(np.bincount(pages.items, minlength=pages.n_items)))).astype(np.int64)
    pairs = find_pairs(offsets, documents.astype(np.int32), pages.offsets.size - 1, support)
    bounds = np.full(pages.n_items, support, np.int32)

    mined = mine_component(offsets, documents, bounds, pairs, max_sets=10**6, max_members=10**8, max_nodes=10**9)

    assert len(expected) > 200
    assert as_set(mine_context(pages, support).itemsets) == expected
    assert as_set(mined) == {row for row in expected if len(row[0]) > 1}


def canonical(itemsets: Itemsets, names: list[bytes]) -> tuple[int, str]:
    """Count the sets, and hash them as the reference was: a line `1 2 3 (87)` per set, items as numbers."""

    def lines() -> Iterator[tuple[tuple[int, ...], int]]:
        for start, end, support in zip(itemsets.offsets, itemsets.offsets[1:], itemsets.supports, strict=False):
            yield tuple(sorted(int(names[item]) for item in itemsets.members[start:end])), int(support)

    text = "".join(f"{' '.join(map(str, members))} ({support})\n" for members, support in sorted(lines()))
    return itemsets.supports.size, hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("reference", first(12, REFERENCES), ids=lambda one: f"{one[0]}-{one[1]}")
def test_sets_are_those_of_a_c_miner(shared: Path, reference: tuple[str, int]) -> None:
    """Number and hash of all maximal and all closed sets of benchmark files are as recorded."""
    name, support = reference
    lines = (shared / "fimi" / "reference_counts.jsonl").read_text().splitlines()
    expected = {(row["file"], row["minsup_abs"]): row for row in map(json.loads, lines)}
    context, names = read_fimi([gzip.decompress((shared / "fimi" / f"{name}.gz").read_bytes())])

    maximal, closed = (mine_context(context, support, closed=closed).itemsets for closed in (False, True))

    assert set(expected) == set(REFERENCES)
    row = expected[name, support]
    assert canonical(maximal, names) == (row["m"]["count"], row["m"]["sha"])
    assert canonical(closed, names) == (row["c"]["count"], row["c"]["sha"])
