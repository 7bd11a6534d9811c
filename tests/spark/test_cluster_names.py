"""Clusters named from members read in order: the same names for any batches, and no row as long as a cluster."""

import hashlib
from collections.abc import Iterator

import pyarrow as pa
import pytest

from nddup.spark.clustering.cluster_names import COMING, COVERAGES, _name_task

MEMBERS = {
    b"one": [f"d{i:05}" for i in range(300)],
    b"two": ["a", "é", "\U0001f600", "\uffff"],
    b"alone": ["x"],
    b"three": ["p", "q"],
}
FIRST = {b"one": "d00007", b"two": "a", b"three": "q"}


def coming(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the sets of `MEMBERS` as a task gets them, `rows` rows a batch; `FIRST` has the least policy of its set."""
    kinds = (pa.binary(), pa.bool_(), pa.string(), pa.int64(), pa.int64())
    lines: list[tuple[object, ...]] = []
    for number, (name, ids) in enumerate(MEMBERS.items()):
        lines.append((name, False, f"c{number}", number, COVERAGES.index("pairs")))
        policies = [-1 if doc_id == FIRST.get(name) else 5 for doc_id in ids]
        ordered = sorted(zip(ids, policies, strict=True), key=lambda row: row[0].encode())
        lines += [(name, True, doc_id, 0, policy) for doc_id, policy in ordered]
    for start in range(0, len(lines), rows):
        columns = zip(*lines[start : start + rows], strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=list(COMING))


@pytest.mark.parametrize("rows", [1, 3, 100, 100_000])
def test_the_name_of_a_cluster_is_made_of_its_members_in_passing(rows: int) -> None:
    """Each set of two or more gets an id, size, first by policy and first ids; the members of all sets are returned."""
    found = pa.Table.from_batches(_name_task(coming(rows), max_listed=3))

    clusters = {row["set_id"]: row for row in found.to_pylist() if row["what"] == "cluster"}
    assert set(clusters) == {b"one", b"two", b"three"}
    for number, (name, ids) in enumerate(MEMBERS.items()):
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
    batches = list(_name_task(coming(10), max_listed=5))

    rows = [row for batch in batches for row in batch.to_pylist()]
    assert max(batch.num_rows for batch in batches) <= 10
    assert max(len(row["members"] or ()) for row in rows) == 5
    assert max(row["size"] or 0 for row in rows) == 300
