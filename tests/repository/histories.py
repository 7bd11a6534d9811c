"""Random histories of a repository, and the fresh run that its tables must equal."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.embedded import steps as engine
from nddup.embedded.read_records import number_texts
from nddup.embedded.workers import Workers
from nddup.repository.close_components import COLUMNS
from nddup.repository.opened_repository import Repository
from nddup.settings.schema import Config

WORDS = 40
"""Words in the text of a family."""


@dataclass(frozen=True)
class Batch:
    """A step of a history: texts that are added or replaced, or ids that are removed."""

    texts: Mapping[str, str]
    removed: Sequence[str] = ()


def draw_text(random: np.random.Generator, families: int = 3) -> str:
    """Draw a text of one of a few families, with a few edits; some are short, empty, or copies of another."""
    family = int(random.integers(families))
    words = [f"f{family}w{i}" for i in range(WORDS)]
    for _ in range(int(random.integers(0, 5))):
        words[int(random.integers(WORDS))] = f"e{random.integers(4)}"
    kind = random.random()
    if kind < 0.1:
        return ""
    if kind < 0.25:  # often equal, and too short to reach a count threshold
        return " ".join(f"f{family}w{i}" for i in range(8 + int(random.integers(3))))
    if kind < 0.35:
        return " ".join(f"f{family}w{i}" for i in range(WORDS))
    return " ".join(words[: int(random.integers(WORDS - 6, WORDS + 1))])


def draw_history(seed: int, steps: int = 4, most: int = 9) -> list[Batch]:
    """Draw a few steps over few ids: ids come again, with the same text and with others."""
    random = np.random.default_rng(seed)
    history, known = [], list[str]()
    for _ in range(steps):
        if known and random.random() < 0.35:
            count = int(random.integers(1, min(len(known), 5) + 1))
            history.append(Batch({}, random.choice(known, count, replace=False).tolist()))
            continue
        texts = {f"d{random.integers(16):02}": draw_text(random) for _ in range(int(random.integers(1, most)))}
        known = sorted({*known, *texts})
        history.append(Batch(texts))
    return history


def draw_chain(seed: int, steps: int = 8) -> list[Batch]:
    """Draw a history of windows on one long text: each resembles its neighbours, the nearer the more.

    So documents arrive that are kept and resemble an earlier removed one more than the document that removed it.
    """
    random = np.random.default_rng(seed)
    words, known, history = [f"c{i}" for i in range(2 * WORDS)], list[str](), list[Batch]()
    for step in range(steps):
        if len(known) > 1 and random.random() < 0.25:
            history.append(Batch({}, random.choice(known, int(random.integers(1, 3)), replace=False).tolist()))
            continue
        starts = (3 * random.integers(0, 12, int(random.integers(1, 4)))).tolist()
        texts = {f"s{step}n{i}": " ".join(words[start : start + WORDS]) for i, start in enumerate(starts)}
        known += texts
        history.append(Batch(texts))
    return history


Add = Callable[[Repository, Mapping[str, str]], object]


def add_here(repo: Repository, texts: Mapping[str, str]) -> None:
    """Add texts directly."""
    repo.add(texts, replace=True)


def adder_on_spark(folder: Path) -> Add:
    """Return a function that adds texts through a file in a new folder, which Spark reads and sketches."""

    def add(repo: Repository, texts: Mapping[str, str]) -> None:
        path = folder / f"{repo.version}.jsonl"
        path.write_text("".join(json.dumps({"id": name, "text": texts[name]}) + "\n" for name in sorted(texts)))
        repo.add([str(path)], replace=True, engine="spark")

    folder.mkdir()
    return add


def play(repo: Repository, history: Sequence[Batch], add: Add = add_here) -> dict[str, str]:
    """Apply a history; return the texts that are live at its end, in the order of arrival."""
    live: dict[str, str] = {}
    for batch in history:
        if batch.removed:
            repo.remove(batch.removed)
            for doc_id in batch.removed:
                live.pop(doc_id, None)
        else:
            add(repo, batch.texts)
            for doc_id in sorted(batch.texts):
                if live.get(doc_id) != batch.texts[doc_id]:
                    live.pop(doc_id, None)
                    live[doc_id] = batch.texts[doc_id]
    return live


def run_fresh(live: Mapping[str, str], config: Config) -> dict[str, pa.Table]:
    """Return the tables of a fresh run over texts, given in the order of arrival."""
    given = pa.table({"id": pa.array(live.keys(), pa.string()), "text": pa.array(live.values(), pa.string())})
    source = number_texts(given, id="id", text="text")
    with Workers(1) as workers:
        documents = engine.sketch(source, config, workers).documents
        arrival = pc.index_in(documents["doc_id"], value_set=pa.array(live.keys(), pa.string())).cast(pa.int64())
        at = documents.schema.get_field_index("doc_key")
        documents = documents.set_column(at, "doc_key", arrival).sort_by("doc_key")
        paired = engine.pair(documents, config, workers, source)
        clustered = engine.cluster(paired, config, workers)
        kept = engine.keep(paired, clustered, config)
    tables: dict[str, Any] = {"documents": documents, "pairs": paired.pairs, "keep": kept.keep}
    return tables | {name: getattr(clustered, name) for name in ("clusters", "members", "false_components")}


def rows_of(tables: Mapping[str, pa.Table]) -> dict[str, list[str]]:
    """Return the rows of each table as sorted text, with the columns that a repository guarantees."""
    return {name: sorted(map(repr, tables[name].select(COLUMNS[name]).to_pylist())) for name in COLUMNS}
