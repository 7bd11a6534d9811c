"""A diff of small tables: documents and their causes, pairs, families and sets."""

from typing import Any

import pyarrow as pa
import pytest

from nddup.engines.duck import DuckEngine
from nddup.engines.engine import Engine
from nddup.matching.threshold import Threshold
from nddup.stages.diff_runs import DiffRule, diff_runs, join_runs, list_later, see_names
from nddup.tables import DOCUMENTS, KEEP, MEMBERS, NAMES, PAIRS
from tests.diffing.changed_runs import apply_diff
from tests.engine_rows import rows_of, see_rows, see_table

LIKE = Threshold("overlap", 2, 1, is_count=True, size=9)
RULE = DiffRule(LIKE, LIKE, same_settings=True, same_versions=True, columns=0, by_source=False)

BEFORE = {"a": None, "b": "a", "c": "a", "d": None, "e": "d", "f": "d", "x": None, "p": None, "q": "p"}
"""The earlier documents, each with the one that stands for it."""

AFTER = {"a": None, "c": "a", "b": None, "d": "n", "e": "n", "n": None, "f": None, "q": None, "p": "q"}
"""Later b and f have other texts, n came, x went, and p and q changed places."""


def keep_of(stood: dict[str, str | None]) -> list[dict[str, Any]]:
    return [{"doc_id": one, "kept": of is None, "duplicate_of": of, "leader": False} for one, of in stood.items()]


def pairs_of(stood: dict[str, str | None]) -> list[dict[str, Any]]:
    ends = [sorted((one, of)) for one, of in stood.items() if of is not None]
    return [{"doc_a": a, "doc_b": b, "overlap": 3, "resemblance": 0.9} for a, b in ends]


def documents_of(stood: dict[str, str | None], texts: dict[str, str]) -> list[dict[str, Any]]:
    return [{"doc_id": one, "doc_key": at, "source": "s", "record": 1, "group": one, "sketch": [],
             "content_fingerprint": texts.get(one, one).encode()} for at, one in enumerate(stood)]  # fmt: skip


def members_of(sets: list[str]) -> list[dict[str, Any]]:
    return [{"cluster_id": one, "doc_id": member, "representative": False} for one in sets for member in one]


def see_both(engine: Engine, rule: DiffRule = RULE) -> None:
    """Give an engine the tables of both runs."""
    see_rows(engine, DOCUMENTS, documents_of(AFTER, {"b": "other", "f": "another"}))
    see_rows(engine, DOCUMENTS, documents_of(BEFORE, {}), name="earlier_documents")
    engine.materialise("before_documents", rule.rows().replace("documents", "earlier_documents"))
    for table, rows in ((KEEP, keep_of), (PAIRS, pairs_of)):
        see_rows(engine, table, rows(AFTER))
        see_rows(engine, table, rows(BEFORE), name=f"before_{table.name}")
    see_rows(engine, MEMBERS, members_of(["ac", "den", "pq"]))
    see_rows(engine, MEMBERS, members_of(["abc", "def", "pq"]), name="before_members")
    see_table(engine, "reforced", pa.table({"doc_id": pa.array([], pa.string())}))
    join_runs(engine, rule)


def test_a_diff_of_every_kind() -> None:
    """Every kind of change, its cause, and what becomes of families and sets, which keep the names of most of them."""
    engine = DuckEngine("test")
    see_both(engine)
    see_names(engine, before=False, after=False)

    diff_runs(engine, RULE)

    assert rows_of(engine.sql("SELECT doc_id, change, cause FROM changes")) == {
        ("b", "text", "text"), ("d", "verdict", "neighbours"), ("e", "verdict", "neighbours"),
        ("f", "text", "text"), ("n", "added", None), ("x", "gone", None), ("p", "verdict", "order"),
        ("q", "verdict", "order"),
    }  # fmt: skip
    assert rows_of(engine.sql("SELECT doc_a, doc_b, change FROM pair_changes")) == {
        ("a", "b", "lost"), ("d", "e", "lost"), ("d", "f", "lost"), ("d", "n", "won"), ("e", "n", "won"),
    }  # fmt: skip
    assert rows_of(engine.sql("SELECT * FROM family_changes")) == {
        ("a", "split", 3, 2, 0, 1, 1, 2, "a"), ("b", "born", 0, 1, 1, 0, 1, 0, "b"),
        ("d", "split", 3, 3, 1, 1, 1, 2, "n"), ("f", "born", 0, 1, 1, 0, 1, 0, "f"),
        ("x", "gone", 1, 0, 0, 1, 0, 0, None), ("p", "changed", 2, 2, 0, 0, 1, 1, "q"),
    }  # fmt: skip
    assert rows_of(engine.sql("SELECT name, change, before, after, came, went, cluster_id FROM set_changes")) == {
        ("abc", "shrunk", 3, 2, 0, 1, "ac"), ("def", "changed", 3, 3, 1, 1, "den"),
    }  # fmt: skip
    assert rows_of(engine.sql(apply_diff("keep"))) == rows_of(engine.sql("SELECT * FROM keep"))


def test_sets_that_overlap_too_many_are_compared_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set whose document is in more sets of both runs than the limit is born or gone; all others are compared."""
    monkeypatch.setattr("nddup.stages.diff_runs.MOST_MEETINGS", 1)
    engine = DuckEngine("test")
    see_both(engine)
    see_rows(engine, MEMBERS, members_of(["abc", "ax", "def", "pq"]), name="before_members")
    see_names(engine, before=False, after=False)

    diff_runs(engine, RULE)

    assert rows_of(engine.sql("SELECT name, change, before, after, came, went, cluster_id FROM set_changes")) == {
        ("abc", "gone", 3, 0, 0, 3, None), ("ax", "gone", 2, 0, 0, 2, None), ("ac", "born", 0, 2, 2, 0, "ac"),
        ("def", "changed", 3, 3, 1, 1, "den"),
    }  # fmt: skip
    assert rows_of(engine.sql("SELECT * FROM crowded_sets")) == {("abc",), ("ax",), ("ac",)}


def test_sketches_are_compared_where_settings_differ() -> None:
    """Verdicts are then due to the settings, unless the text is another; equal sketches make no row."""
    rule = RULE._replace(same_settings=False)
    engine = DuckEngine("test")
    see_both(engine, rule)
    see_names(engine, before=False, after=False)

    diff_runs(engine, rule)

    assert rows_of(engine.sql("SELECT doc_id, cause FROM changes WHERE cause IS NOT NULL")) == {
        *((one, "text") for one in "bf"), *((one, "settings") for one in "depq"),
    }  # fmt: skip
    assert len(engine.sql(list_later("documents"))) == 3


def test_names_that_are_stored_stay() -> None:
    """A name that no family has any more is never given again, and a new family takes another id of its own."""
    engine = DuckEngine("test")
    see_both(engine)
    names = {"a": "a", "the old one": "d", "x": "x", "p": "p", "b": None, "n": None, "f": None, "f~2": None}
    see_rows(engine, NAMES, [{"name": name, "doc_id": one} for name, one in names.items()], name="before_names")

    see_names(engine, before=True, after=False)

    assert rows_of(engine.sql("SELECT name, doc_id FROM live_names")) == {
        ("a", "a"), ("b~2", "b"), ("the old one", "n"), ("f~3", "f"), ("p", "q"),
    }  # fmt: skip
