"""The task of few documents, called as Spark calls it, gives what the embedded engine gives for the same texts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nddup.embedded import one_task
from nddup.embedded import steps as engine
from nddup.embedded.one_task import MADE, NODE_TEXTS, ROWS, Answers, Deciding, read_answers
from nddup.embedded.workers import Workers, scan_texts
from nddup.errors import CapacityError, NddupError
from nddup.mining.keep_verdicts import Forced
from nddup.settings.load import build_config
from nddup.settings.plan import tokens_of
from nddup.settings.schema import Config
from nddup.tables import TEXTS
from tests.embedded.confirmed_texts import draw_together
from tests.embedded.edited_texts import make_texts
from tests.samples_by_night import every, examples

MEMORY = 4 << 30


def texts_of(texts: dict[str, str]) -> pa.Table:
    """Return TEXTS in the order of the ids."""
    names = sorted(texts)
    columns: dict[str, Any] = {"doc_id": names, "url": None, "text": [texts[name] for name in names]}
    columns |= {"title": None, "turns": None, "policy": None}
    columns |= {"source": "dataframe", "split": 0, "seq": np.arange(len(names))}
    return pa.table(
        {
            name: pa.array(columns[name], kind)
            if name in ("doc_id", "text", "seq")
            else pa.array([columns[name]] * len(names), kind)
            for name, kind in zip(TEXTS.names, TEXTS.arrow.types, strict=True)
        }
    )


def rows_of(table: pa.Table, **more: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
    """Yield the rows of a table as a task gets them, in small batches, columns that it lacks null."""
    del more
    columns = [
        table[name] if name in table.column_names else pa.nulls(len(table), ROWS.field(name).type)
        for name in ROWS.names
    ]
    yield from pa.table(columns, schema=ROWS).to_batches(max_chunksize=7)


def ask(
    documents: pa.Table, texts: pa.Table, config: Config, forced: Forced | None = None, memory: int = MEMORY
) -> Answers | None:
    """Ask as the driver does: once, and once more with the texts that are wanted."""

    def asked(batches: list[pa.RecordBatch], matches: bytes = b"") -> Answers | None:
        how = Deciding(config, forced, memory, matches)
        answers = pa.Table.from_batches(one_task.decide(batches, deciding=how))
        return read_answers(zip(*(column.to_pylist() for column in answers.columns), strict=True))

    rows = list(rows_of(documents))
    found = asked(rows[::-1])
    if found is None or found.wanted is None:
        return found
    keys, contents, marks = (found.wanted[name].to_pylist() for name in one_task.WANTED_NAMES)
    tokens = pa.Table.from_batches(scan_texts(texts, tokens_of(config, frozenset(contents))))
    place = dict(zip(marks, keys, strict=True))
    known = [
        (place[mark], row)
        for mark, row in zip(*(column.to_pylist() for column in tokens.columns), strict=True)
        if mark in place
    ]
    sent = pa.table([[key for key, _ in known], [row for _, row in known]], schema=NODE_TEXTS.arrow)
    return asked([*rows_of(sent), *rows], found.matches)


def make(
    texts: pa.Table, config: Config, forced: Forced | None = None
) -> tuple[pa.Table, dict[str, pa.Table], list[dict[str, Any]]]:
    """Return DOCUMENTS, the tables that follow and the counts of the stages, as the embedded engine makes them."""
    with Workers(2) as workers:
        documents = engine.sketch(texts, config, workers).documents
        paired = engine.pair(documents, config, workers, texts, forced=forced)
        clustered = engine.cluster(paired, config, workers)
        kept = engine.keep(paired, clustered, config)
        counts = engine.count_choices(documents, paired, clustered, kept, config, forced)
    tables = {name: getattr(step, name) for name in MADE for step in (paired, clustered, kept) if hasattr(step, name)}
    return documents, tables, [paired.stage_counts, clustered.counts, counts]


CHOICES: list[dict[str, dict[str, Any]]] = [
    {},
    {"pairs": {"confirm": "edit"}, "keep": {"policy": "first-id"}},
    {"pairs": {"confirm": "none"}, "clusters": {"mode": "partition"}},
    {"pairs": {"max_postings": 3, "max_edges": 4}, "keep": {"max_lost": 0.2}},
    {"sketch": {"kind": "minhash", "size": 64}, "clusters": {"max_sets": 1}},
]


@pytest.mark.parametrize("choice", every(2, CHOICES))
def test_the_task_gives_what_the_engine_gives(choice: dict[str, dict[str, Any]]) -> None:
    """Texts that confirm, edits, no texts, leaders and losses, keys and budgets; ids forced."""
    config, texts = build_config(choice, origin="test"), texts_of(make_texts(1))
    forced = Forced(("f0v1",), ("f1v0", "unknown"))
    documents, tables, stages = make(texts, config, forced)

    found = ask(documents, texts, config, forced)

    assert found is not None
    assert {name: table.to_pylist() for name, table in found.tables.items()} == {
        name: table.to_pylist() for name, table in tables.items()
    }
    for counts in (stages[0], found.stages["pairs"]):
        counts["candidates"] = 0  # depends on the threads where a component is large
    assert list(found.stages.values()) == stages


@settings(max_examples=examples(6, 15))
@given(st.integers(0, 10**6), st.sampled_from(["edit", "resemblance"]))
def test_drawn_collections(seed: int, confirm: str) -> None:
    """Random families, whatever the order of the rows."""
    case = draw_together(range(seed, seed + 2))
    config, texts = (
        build_config({**case.settings, "pairs": {"threshold": 0.4, "confirm": confirm}}, origin="test"),
        texts_of(case.texts),
    )
    documents, tables, _ = make(texts, config)

    found = ask(documents, texts, config)

    assert found is not None
    assert {name: table.to_pylist() for name, table in found.tables.items()} == {
        name: table.to_pylist() for name, table in tables.items()
    }


def test_what_is_too_much_for_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory is short, or more pairs meet than is stated, there is no answer; other limits fail as ever."""
    config, texts = build_config({}, origin="test"), texts_of(make_texts(2))
    documents, _, _ = make(texts, config)
    few = build_config(
        {
            "sketch": {"kind": "mod-m"},
            "pairs": {"measure": "containment", "threshold": 0.7, "max_postings": 2, "max_comparisons": 1},
            "clusters": {"mode": "partition"},
        },
        origin="test",
    )
    of_few = make(texts, build_config({"sketch": {"kind": "mod-m"}}, origin="test"))[0]

    assert ask(documents, texts, config, memory=600 << 20) is not None
    assert ask(documents, texts, config, memory=500 << 20) is None
    with pytest.raises(CapacityError, match=r"pairs\.max_comparisons \(1\)"):
        ask(of_few, texts, few)
    with pytest.raises(NddupError, match="the input changed meanwhile"):
        ask(documents, texts.slice(0, 2), config)
    monkeypatch.setattr(one_task, "MOST_COMPARED", 3)
    assert ask(documents, texts, config) is None


def test_large_tables_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of many cells is the table of one; a table without rows comes too."""
    config, texts = build_config({}, origin="test"), texts_of(make_texts(3))
    documents, tables, _ = make(texts, config)
    alone = documents.slice(0, 1)

    monkeypatch.setattr(one_task, "CELL_BYTES", 300)
    found, nothing = ask(documents, texts, config), ask(alone, texts, config)

    assert found is not None
    assert nothing is not None
    assert {name: table.to_pylist() for name, table in found.tables.items()} == {
        name: table.to_pylist() for name, table in tables.items()
    }
    assert {name: len(table) for name, table in nothing.tables.items()} == {**dict.fromkeys(MADE, 0), "keep": 1}
