"""Clusters named from members read in order, on both engines; the same for any batches, no row as long as a cluster."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from nddup.engines.engine import Engine
from nddup.stages.names import COVERAGES, MEMBERS, PLACES, Naming, count_support, name_batches, name_sets
from nddup.tables import GRAPH, NODES, SETS
from tests.engine_rows import rows_of, see_rows

IDS = {
    b"one": [f"d{i:05}" for i in range(300)],
    b"two": ["a", "é", "\U0001f600", "\uffff"],
    b"alone": ["x"],
    b"three": ["p", "q"],
}
FIRST = {b"one": "d00007", b"two": "a", b"three": "q"}


def coming(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the sets of `IDS` as a task gets them, `rows` rows a batch; `FIRST` has the least policy of its set."""
    kinds = (pa.binary(), pa.bool_(), pa.string(), pa.int64(), pa.int64())
    lines: list[tuple[object, ...]] = []
    for number, (name, ids) in enumerate(IDS.items()):
        lines.append((name, False, f"c{number}", number, COVERAGES.index("pairs")))
        policies = [-1 if doc_id == FIRST.get(name) else 5 for doc_id in ids]
        ordered = sorted(zip(ids, policies, strict=True), key=lambda row: row[0].encode())
        lines += [(name, True, doc_id, 0, policy) for doc_id, policy in ordered]
    for start in range(0, len(lines), rows):
        columns = zip(*lines[start : start + rows], strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=["set_id", "is_member", "name", "before", "policy"])


@pytest.mark.parametrize("rows", [1, 3, 100, 100_000])
def test_the_name_of_a_cluster_is_made_of_its_members_in_passing(rows: int) -> None:
    """Each set of two or more gets an id, size, first by policy and first ids; the members of all sets are returned."""
    found = pa.Table.from_batches(name_batches(coming(rows), max_listed=3))

    clusters = {row["set_id"]: row for row in found.to_pylist() if row["what"] == "cluster"}
    assert set(clusters) == {b"one", b"two", b"three"}
    for number, (name, ids) in enumerate(IDS.items()):
        listed = [row["doc_id"] for row in found.to_pylist() if row["set_id"] == name and row["what"] == "member"]
        assert sorted(listed) == sorted(ids)
        if name in clusters:
            digest = hashlib.sha256(b"".join(doc_id.encode() + b"\0" for doc_id in sorted(ids))).hexdigest()
            assert clusters[name] == {
                "what": "cluster", "set_id": name, "doc_id": None, "cluster_id": digest[:16],
                "first_id": FIRST[name], "support": number, "size": len(ids), "members": sorted(ids)[:3],
                "component": f"c{number}", "coverage": "pairs",
            }  # fmt: skip


def test_no_row_is_as_long_as_a_cluster() -> None:
    """For a set of 300 members, no batch has more rows than an input batch, and no row lists more than `max_listed`."""
    batches = list(name_batches(coming(10), max_listed=5))

    rows = [row for batch in batches for row in batch.to_pylist()]
    assert max(batch.num_rows for batch in batches) <= 10
    assert max(len(row["members"] or ()) for row in rows) == 5
    assert max(row["size"] or 0 for row in rows) == 300


def test_the_representative_is_first_by_policy(engine: Engine) -> None:
    """One member of each cluster is marked: the one with the smallest `policy`, among equals the smallest id."""
    rows = [("a", 0, 2, 3), ("b", 0, 1, 3), ("c", 0, 1, 3), ("d", 3, 3, 2), ("e", 3, 3, 2)]
    names = ("doc_id", "node", "policy", "n")
    nodes = [dict(zip(names, row, strict=True), doc_key=key, size=9, weight=9) for key, row in enumerate(rows)]
    see_rows(engine, NODES, nodes)
    see_rows(engine, SETS, [])
    see_rows(engine, GRAPH, [])
    engine.see("named", name_sets(engine, Naming(9, max_listed=2)))

    members = rows_of(engine.answer(MEMBERS))

    assert len(members) == len(rows)
    assert {row[:2] for row in members if row[2]} == {(name_of("abc"), "b"), (name_of("de"), "d")}


def test_a_heavy_node_gives_the_same_members(engine: Engine) -> None:
    """A set of two nodes, one of them heavy; what decides before the policy is the weight."""
    see_rows(engine, NODES, [
        {"doc_key": key, "doc_id": doc_id, "node": key // 2 * 2, "size": 9, "weight": 9 + key, "policy": 0, "n": 2}
        for key, doc_id in enumerate("abcd")
    ])  # fmt: skip
    see_rows(engine, SETS, [{"ordinal": 0, "positions": [0, 1], "support": 7, "coverage": "all"}])
    graph = [{"node": at, "component": "a", "ordinal": 0, "position": at // 2, "kept": at == 0} for at in (0, 2)]
    see_rows(engine, GRAPH, graph)

    for heavy in (None, 2):
        engine.see("named", name_sets(engine, Naming(9, max_listed=3, by_weight=True, heavy=heavy)))

        assert rows_of(engine.answer(MEMBERS)) == {(name_of("abcd"), doc_id, doc_id == "d") for doc_id in "abcd"}
        clusters = rows_of(engine.answer("SELECT support, size, members FROM named WHERE what = 'cluster'"))
        assert clusters == {(7, 4, ("a", "b", "c"))}


def test_a_row_on_its_way_to_a_cluster_is_short(engine: Engine) -> None:
    """No row holds the positions of its set: with them, a set of 100,000 nodes would take 40 GB."""
    sets = [(0, [0, 2, 5]), (0, [0, 25]), (1, [0, 25])]
    see_rows(engine, SETS, [{"ordinal": ordinal, "positions": positions} for ordinal, positions in sets])

    rows = rows_of(engine.answer(PLACES))

    assert len({set_id for set_id, *_ in rows}) == len(sets)
    assert sorted(row[1:] for row in rows) == [(0, 0), (0, 0), (0, 2), (0, 5), (0, 25), (1, 0), (1, 25)]


def name_of(ids: str) -> str:
    """Return the id of the cluster of documents whose ids have one letter each."""
    return hashlib.sha256(b"".join(doc_id.encode() + b"\0" for doc_id in ids)).hexdigest()[:16]


def test_the_support_of_a_star_counts_what_all_its_sketches_share() -> None:
    """However its rows are cut into batches: ids are compared as unsigned numbers, and a star may share none."""
    stars: dict[str, list[set[int]]] = {
        "a": [{1, 2, 3, -1}, {2, 3, -1}, {0, 2, 3, -1}],
        "b": [{5, 6}, {7}, {5}],
        "c": [{-2, 4}, {-2, 4}],
    }
    rows: list[dict[str, Any]] = [
        {"star": star, "sketch": sorted(ids, key=lambda one: (one < 0, one))} for star, sets in stars.items()
        for ids in sets
    ]  # fmt: skip
    whole = pa.RecordBatch.from_pylist(rows, pa.schema({"star": pa.string(), "sketch": pa.list_(pa.int64())}))
    due = {star: len(set.intersection(*sets)) for star, sets in stars.items()}
    for cut in range(len(rows) + 1):
        found = pa.Table.from_batches(count_support(iter([whole[:cut], whole[cut:]]))).to_pylist()
        assert [(row["star"], row["support"]) for row in found] == list(due.items())
    assert list(count_support(iter([whole[:0]]))) == []
