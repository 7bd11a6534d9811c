"""Which records become documents, on both engines: repeated, missing and made-up ids, and equal sketches."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st

from nddup.engines.duck import DuckEngine
from nddup.engines.engine import Engine
from nddup.stages.settle import REJECTED, REPEATS, TAKEN, list_documents, settle
from nddup.tables import working
from tests.engine_rows import rows_of, see_rows
from tests.samples_by_night import examples

GOOD = working(
    "good",
    "doc_key long, doc_id string, source string, record long, content_fingerprint binary, sketch_fingerprint binary,"
    " parent string, is_made boolean",
    "Numbered records that are no rejects.",
)

Given = list[tuple[str | None, str]]
"""The id and the content of each record, in order."""


def see_good(engine: Engine, given: Given, parents: dict[int, str] | None = None) -> None:
    """Let the engine see the records of a file `f`; records of one content have one sketch; `parents` by record."""
    rows = [
        {"doc_key": key, "doc_id": name, "source": "f", "record": key + 1, "content_fingerprint": content.encode(),
         "sketch_fingerprint": content.encode(), "parent": (parents or {}).get(key), "is_made": name is None}
        for key, (name, content) in enumerate(given)
    ]  # fmt: skip
    see_rows(engine, GOOD, rows)
    for name, query in (("repeats", REPEATS), ("taken", TAKEN)):
        engine.see(name, engine.answer(query))


def settled(engine: Engine, given: Given, *, renames: bool, many: int) -> dict[str, Any]:
    """Return the documents, {key: (id, group)}, and the rejects, {record: detail}."""
    see_good(engine, given)
    settle(engine, renames=renames, many=many)
    engine.see("documents", list_documents(engine, many=many))
    documents = rows_of(engine.answer("SELECT doc_key, final_id, first_id FROM documents"))
    rejects = rows_of(engine.answer(REJECTED))
    return {
        "documents": {key: (name, group) for key, name, group in documents},
        "rejects": {record: (reason, detail) for _, record, _, reason, detail, _ in rejects},
    }


@pytest.mark.parametrize("many", [10, 10_000, 1_000_000], ids=["few", "beside", "heavy"])
def test_the_first_record_keeps_the_id(engine: Engine, many: int) -> None:
    """A later one of the same content is a reject that names it; one of other content is renamed, if that is asked."""
    given: Given = [("a", "x"), ("b", "y"), ("a", "y"), ("a", "x"), (None, "y")]

    repeated = ("repeated id", "first seen as record 1 of f")
    found = settled(engine, given, renames=True, many=many)
    assert found["documents"] == {0: ("a", "a"), 1: ("b", "b"), 2: ("f#3", "b"), 4: ("f#5", "b")}
    assert found["rejects"] == {4: repeated}


@pytest.mark.parametrize("many", [10, 1_000_000], ids=["few", "heavy"])
def test_the_parent_of_a_record_is_the_last_one_of_its_id_before_it(engine: Engine, many: int) -> None:
    """So a record inside one that was renamed, or had no id, names it by its new name; `f#8` is an id in this file."""
    given: Given = [
        ("a", "1"), ("a/1", "2"), ("a", "3"), ("a/1", "4"), ("b", "5"), ("a/1/1", "6"), ("f#8", "7"), (None, "8"),
        ("f#8/1", "9"),
    ]  # fmt: skip
    see_good(engine, given, {1: "a", 3: "a", 5: "a/1", 8: "f#8", 4: "lost"})
    settle(engine, renames=True, many=many)

    engine.see("documents", list_documents(engine, many=many, nested=5))
    parents = {key: held for key, held in rows_of(engine.answer("SELECT doc_key, final_parent FROM documents")) if held}
    assert parents == {1: "a", 3: "f#3", 5: "f#4", 8: "f#8+", 4: "lost"}


def test_without_renaming_every_later_record_is_rejected(engine: Engine) -> None:
    """As where texts are given, or a repository is written."""
    found = settled(engine, [("a", "x"), ("a", "y"), ("a", "x")], renames=False, many=3)

    assert found["documents"] == {0: ("a", "a")}
    assert set(found["rejects"]) == {2, 3}


def test_a_made_up_name_takes_no_id(engine: Engine) -> None:
    """It gets the fewest `+` that make it new; a line end after an id makes it another id."""
    given: Given = [
        (None, "1"),
        ("f#1", "2"),
        ("f#1+", "3"),
        ("f#1+++", "4"),
        (None, "5"),
        ("f#5\n", "6"),
        ("f#7", "7"),
    ]

    found = settled(engine, given, renames=True, many=7)

    assert {key: name for key, (name, _) in found["documents"].items()} == {
        0: "f#1++", 1: "f#1", 2: "f#1+", 3: "f#1+++", 4: "f#5", 5: "f#5\n", 6: "f#7",
    }  # fmt: skip


IDS = st.one_of(st.none(), st.sampled_from(["a", "f#1", "f#2", "f#2+", "f#1++", "f#3", "f#3\n", "+"]))


@trying(max_examples=examples(15, 40))
@given(st.lists(st.tuples(IDS, st.sampled_from("xyz")), max_size=8), st.booleans())
def test_the_rules_are_those_of_a_loop(given: Given, renames: bool) -> None:  # noqa: FBT001 - drawn
    """Every record is a document or a reject, ids are distinct where records are renamed, and a loop gives the same."""
    first: dict[str, int] = {}
    for key, (name, _) in enumerate(given):
        if name is not None:
            first.setdefault(name, key)
    due: dict[int, str] = {}
    for key, (name, content) in enumerate(given):
        is_later = name is not None and first[name] != key
        if name is not None and not is_later:
            due[key] = name
        elif name is None or (renames and content != given[first[name]][1]):
            made = f"f#{key + 1}"
            while made in first:
                made += "+"
            due[key] = made
    groups = {content: min(name for key, name in due.items() if given[key][1] == content) for content in "xyz"
              if any(given[key][1] == content for key in due)}  # fmt: skip

    found = settled(DuckEngine("drawn"), given, renames=renames, many=8)

    assert found["documents"] == {key: (name, groups[given[key][1]]) for key, name in due.items()}
    assert {record - 1 for record in found["rejects"]} == set(range(len(given))) - set(due)
