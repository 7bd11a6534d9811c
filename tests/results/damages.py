"""Damages to the tables of a finished run, each with the promise that it breaks."""

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.results.checked_run import Row

Damage = Callable[[list[Row]], None]


def rewrite(folder: Path, name: str, damage: Damage) -> None:
    """Change the rows of one table, and forget the digests of its files, as if the run had written it so."""
    (folder / "_stages" / f"{name}.json").unlink(missing_ok=True)
    table = pq.ParquetDataset(folder / name).read()
    rows = table.to_pylist()
    damage(rows)
    shutil.rmtree(folder / name)
    (folder / name).mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), folder / name / "part-0.parquet")


def of(rows: list[Row], **values: object) -> Row:
    """Return the first row with these values; the order is that of the whole rows as text."""
    return next(row for row in sorted(rows, key=str) if all(row[key] == value for key, value in values.items()))


def change(column: str, value: object, **where: object) -> Damage:
    """Set one column of the first row that matches; a callable `value` receives the old value."""

    def damage(rows: list[Row]) -> None:
        row = of(rows, **where)
        row[column] = value(row[column]) if callable(value) else value

    return damage


def drop(**where: object) -> Damage:
    """Remove the first row that matches."""
    return lambda rows: rows.remove(of(rows, **where))


def repeat(**where: object) -> Damage:
    """Write the first row that matches a second time."""
    return lambda rows: rows.append(dict(of(rows, **where)))


def both_kept(rows: list[Row]) -> None:
    """Keep a document that was removed as a near-duplicate."""
    of(rows, kept=False, reason="near").update(kept=True, duplicate_of=None, reason=None)


def lost_member(rows: list[Row]) -> None:
    """Take the last member out of the largest cluster; the cluster's id and size fit the remaining members."""
    row = max(rows, key=lambda row: (row["size"], row["cluster_id"]))
    rename(row, row["members"][:-1])


def foreign_member(rows: list[Row]) -> None:
    """Add a document without near-duplicates to a cluster; the cluster's id and size fit the new members."""
    rename(rows[0], [*rows[0]["members"], "lone1"])


def inner_cluster(rows: list[Row]) -> None:
    """Add a cluster of two members of the largest cluster."""
    row = dict(max(rows, key=lambda row: (row["size"], row["cluster_id"])))
    rename(row, row["members"][:2])
    rows.append(row)


def rename(row: Row, members: list[str]) -> None:
    """Give a cluster other members, with the id and size that follow from them."""
    row["members"] = sorted(members)
    ended = "".join(f"{member}\0" for member in row["members"]).encode()
    row.update(size=len(members), cluster_id=hashlib.sha256(ended).hexdigest()[:16])


def list_again(folder: Path) -> None:
    """Rebuild the table `members` from `clusters`."""
    clusters = pq.ParquetDataset(folder / "clusters").read().to_pylist()

    def listed(rows: list[Row]) -> None:
        rows[:] = [{"cluster_id": row["cluster_id"], "doc_id": doc_id, "representative": doc_id == row["members"][0]}
                   for row in clusters for doc_id in row["members"]]  # fmt: skip

    rewrite(folder, "members", listed)


def swap_ends(rows: list[Row]) -> None:
    """Write a pair with its larger id first."""
    row = of(rows)
    row["doc_a"], row["doc_b"] = row["doc_b"], row["doc_a"]


def invent_pair(rows: list[Row]) -> None:
    """Add a pair of documents that share nothing."""
    rows.append({**of(rows), "doc_a": "lone0", "doc_b": "lone1"})


def other_representative(rows: list[Row]) -> None:
    """Mark another member of a cluster as its representative."""
    old = of(rows, representative=True)
    old["representative"] = False
    of(rows, cluster_id=old["cluster_id"], representative=False)["representative"] = True
    second = [row for row in rows if row["cluster_id"] == old["cluster_id"] and row is not old]
    for row in second:
        row["representative"] = row is second[-1]


DAMAGES: list[tuple[str, str, str, Damage]] = [
    ("accounting", "records = documents", "rejects", drop(reason="malformed")),
    ("accounting", "record ordinals", "documents", change("record", 99, doc_id="lone0")),
    ("accounting", "doc_id unique", "documents", change("doc_id", "lone1", doc_id="lone0")),
    ("accounting", "doc_key", "documents", change("doc_key", 0, doc_id="lone0")),
    ("accounting", "once in keep", "keep", repeat(doc_id="lone0")),
    ("accounting", "sketches", "documents", change("sketch", lambda ids: [ids[1], ids[0], *ids[2:]], doc_id="lone0")),
    ("accounting", "sketches", "documents", change("sketch", lambda ids: ids[1:], doc_id="lone0")),
    ("records", "as read again", "documents", change("n_tokens", lambda value: value + 1, doc_id="lone0")),
    ("records", "as read again", "documents", change("url", "http://y/", doc_id="lone0")),
    ("records", "as read again", "documents", change("content_fingerprint", b"0" * 16, doc_id="lone0")),
    ("records", "as read again", "documents", change("token_fingerprint", b"0" * 16, doc_id="lone0")),
    ("records", "as read again", "documents", change("unread_bytes", 1, doc_id="lone0")),
    ("records", "as read again", "documents", change("unread_parts", 1, doc_id="lone0")),
    ("records", "as read again", "documents", change("parent", "lone1", doc_id="lone0")),
    ("accounting", "each parent", "documents", change("parent", "nobody", doc_id="lone0")),
    ("records", "as read again", "documents", change("date", "x", doc_id="lone0")),
    ("records", "as read again", "documents", change("record_type", "revisit", doc_id="lone0")),
    ("records", "as read again", "documents", change("n_features", lambda value: value - 1, doc_id="lone0")),
    ("records", "as read again", "documents", change("sketch", lambda ids: [*ids[:-1], ids[-1] + 1], doc_id="lone0")),
    ("records", "texts: those", "texts", change("text", "another", doc_id="f0v0")),
    ("records", "texts: those", "texts", change("doc_id", "nobody", doc_id="f0v0")),
    ("records", "as read again", "rejects", change("reason", "short")),
    ("records", "as read again", "rejects", change("detail", "otherwise")),
    ("records", "as read again", "rejects", change("doc_id", "torn")),
    ("pairs", "texts are those", "documents", change("content_fingerprint", b"0" * 16, doc_id="f2v0")),
    ("groups", "groups", "documents", change("group", "f0v0", doc_id="copy1")),
    ("groups", "groups", "documents", change("group", "empty2", doc_id="empty2")),
    ("pairs", "ids in order", "pairs", swap_ends),
    ("pairs", "ids in order", "pairs", repeat()),
    ("pairs", "all and only", "pairs", drop()),
    ("pairs", "all and only", "pairs", invent_pair),
    ("pairs", "all and only", "pairs", change("overlap", lambda value: value + 1)),
    ("pairs", "all and only", "pairs", change("resemblance", lambda value: value - 1e-9)),
    ("pairs", "all and only", "pairs", change("star", value=True)),
    ("pairs", "numbers of shingles", "pairs", change("edit", 0.5)),
    ("clusters", "id, size", "clusters", change("cluster_id", "0123456789abcdef")),
    ("clusters", "id, size", "clusters", change("members", lambda members: members[::-1])),
    ("clusters", "id, size", "clusters", repeat()),
    ("clusters", "support is as stated", "clusters", change("support", lambda value: value + 1)),
    ("clusters", "support is as stated", "clusters", foreign_member),
    ("clusters", "can be added", "clusters", lost_member),
    ("clusters", "inside another", "clusters", inner_cluster),
    ("clusters", "every pair", "clusters", drop()),
    ("clusters", "component", "clusters", change("component", "f9")),
    ("clusters", "coverage", "clusters", change("coverage", "pairs")),
    ("clusters", "coverage", "clusters", change("coverage", None)),
    ("clusters", "id, size", "members", drop()),
    ("clusters", "id, size", "clusters", change("members", lambda members: members[:-1])),
    ("members", "row by row", "members", drop()),
    ("members", "row by row", "members", repeat()),
    ("members", "row by row", "clusters", change("members", lambda members: [*members, "lone0"])),
    ("members", "one representative", "members", other_representative),
    ("members", "one representative", "members", change("representative", value=False, representative=True)),
    ("keep", "fit", "keep", change("reason", "near", reason="exact")),
    ("keep", "fit", "keep", change("duplicate_of", "lone0", kept=True)),
    ("keep", "no two kept", "keep", both_kept),
    ("keep", "every removed", "keep", change("duplicate_of", "lone0", kept=False)),
]


def plant(sound: Path, folder: Path, damage: tuple[str, str, str, Damage]) -> Path:
    """Copy a run and damage the copy; return its folder."""
    _, _, table, change_rows = damage
    shutil.copytree(sound, folder)
    rewrite(folder, table, change_rows)
    if change_rows in (lost_member, foreign_member, inner_cluster):
        list_again(folder)
    return folder


def by_day(damages: list[tuple[str, str, str, Damage]], each: int) -> list[Any]:
    """Return all damages, those after the first ones of a promise marked as nightly."""
    seen = Counter[str]()
    cases = list[Any]()
    for damage in damages:
        seen[damage[1]] += 1
        cases.append(pytest.param(damage, marks=[pytest.mark.nightly] * (seen[damage[1]] > each)))
    return cases


def named(damages: list[tuple[str, str, str, Damage]]) -> list[str]:
    """Return the test ids of damages: the broken promise and a number."""
    return [f"{promise}-{i}".replace(" ", "-") for i, (_, promise, _, _) in enumerate(damages)]
