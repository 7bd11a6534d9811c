"""`nddup passages`: its speed, memory and growth, planted copies, and its covered tokens beside a suffix array's.

The texts are those of debdocs-dev. The suffix array is numpy's, by prefix doubling over tokens that Python's own
tokeniser numbered: after ranks by 50 tokens, neighbours in order share at least 50 tokens iff their ranks are equal.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.debdocs import load_pages, texts_of
from bench.processes import nddup
from bench.recording import drop, fresh, record, show
from nddup.sketching.tokens import tokenise

TOKENS = 50
GROWTH, SMALL_GROWTH = (10_000, 100_000, 1_000_000), (1_000, 10_000)
WORDS, SHARED = 60, 5
"""Words of a generated document, and one document in how many has a passage that others have."""

COPIES, CHANGED_EVERY = 200, 60
"""Planted copies of each kind, and words from one changed word to the next."""


class Measured(NamedTuple):
    """The CPU seconds and the peak memory in bytes of a command, and its last lines."""

    seconds: float
    peak: int
    said: str


def run(options: argparse.Namespace) -> None:
    """Measure, compare, plant and grow."""
    folder = fresh("passages")
    texts = texts_of(load_pages(options))
    _write(folder / "texts", texts)
    _write(folder / "one", ["alone"])
    _passages(folder / "one", folder / "compiled")
    nothing = _passages(folder / "one", folder / "out-one")
    rows = []
    for markup in ("text", "auto"):
        found = _passages(folder / "texts", folder / f"out-{markup}", f"input.markup={markup}")
        rows.append(_about(f"debdocs-dev, input.markup={markup}", texts, found, nothing))
    show("passages: one process, 50 tokens; in brackets without the start of the program",
         ["texts", "MB", "MB/CPU s", "(without start)", "bytes a token"], rows)  # fmt: skip
    differences = _compare(texts, folder / "out-text")
    show("passages: covered tokens", ["by", "tokens", "differences"], differences)
    planted = _plant(texts, folder, 20 if options.small else COPIES)
    show("passages: planted copies", ["kind", "copies", "found as they should"], planted)
    grown = _grow(folder, nothing, SMALL_GROWTH if options.small else GROWTH)
    show(
        "passages: growth", ["documents", "MB", "MB/CPU s", "(without start)", "bytes a token", "us a document"], grown
    )
    record("passages", options, speed=rows, covered=differences, planted=planted, growth=grown)
    drop(folder)


def _write(path: Path, texts: list[str]) -> None:
    path.mkdir()
    with (path / "texts.jsonl").open("w", encoding="utf-8") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": str(number), "text": text}, ensure_ascii=False) + "\n")


def _passages(source: Path, output: Path, *settings: str) -> Measured:
    """Find passages with one process."""
    command = [nddup(), "passages", str(source), "--output", str(output), "--engine", "local"]
    for setting in ("local.processes=1", f"passages.min_tokens={TOKENS}", *settings):
        command += ["--set", setting]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.append(process.stdout.read() if process.stdout else ""))
    reader.start()
    peak = 0
    while reader.is_alive():  # `ru_maxrss` would be that of this process, from before the program was loaded
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            peak = max(peak, next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")))
        reader.join(0.02)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: status {status}")
    return Measured(usage.ru_utime + usage.ru_stime, peak, said[0])


def _about(name: str, texts: list[str], found: Measured, nothing: Measured) -> list[object]:
    """Return a row: the texts, their MB, MB a CPU second with and without the start, bytes a token."""
    size = sum(len(text.encode()) for text in texts) / 1e6
    tokens = int(found.said.splitlines()[0].split(", ")[-1].split()[0].replace(",", ""))
    beside = max(found.seconds - nothing.seconds, 0.01)
    return [name, size, size / found.seconds, size / beside, (found.peak - nothing.peak) / tokens]


def _compare(texts: list[str], output: Path) -> list[list[object]]:
    """Count the tokens that repeated windows cover, by the tables and by a suffix array, and their differences."""
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(token, len(numbers)) for token in tokenise(text)] for text in texts]
    offsets = np.cumsum([0, *(len(row) + 1 for row in rows)])  # after each document a separator of its own
    tokens = np.empty(offsets[-1], np.int64)
    for number, row in enumerate(rows):
        tokens[offsets[number] : offsets[number + 1] - 1] = row
        tokens[offsets[number + 1] - 1] = len(numbers) + number
    by_array = _cover(*_repeated(tokens, offsets), len(tokens))

    table = pq.read_table(output / "occurrences", columns=["doc_id", "token", "token_end"]).to_pydict()
    home = offsets[np.array(table["doc_id"], object).astype(np.int64)]
    by_table = _cover(home + table["token"], home + table["token_end"], len(tokens))
    differs = int(np.count_nonzero(by_array != by_table))
    return [["tables", int(by_table.sum()), differs], ["suffix array", int(by_array.sum()), differs]]


def _repeated(tokens: NDArray[np.int64], offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the windows of `TOKENS` tokens that two documents have: where they begin and end.

    Cost: a sort of all suffixes by twice as many tokens each time.
    """
    ranks, size = tokens, 1
    while size < TOKENS:
        step = min(size, TOKENS - size)
        after = np.append(ranks[step:], np.full(step, -1))
        order = np.lexsort((after, ranks))
        is_new = np.append(True, (np.diff(ranks[order]) != 0) | (np.diff(after[order]) != 0))
        ranks, size = np.empty_like(ranks), size + step
        ranks[order] = np.cumsum(is_new)
    document = np.searchsorted(offsets, np.arange(len(tokens)), "right") - 1
    order = np.lexsort((document, ranks))
    group = np.append(0, np.cumsum(np.diff(ranks[order]) != 0))
    starts = np.flatnonzero(np.append(True, np.diff(group) != 0))
    ends = np.append(starts[1:], len(group)) - 1
    is_shared = document[order[starts]] != document[order[ends]]
    places = np.sort(order[is_shared[group]])
    return places, places + TOKENS


def _cover(begins: NDArray[np.int64], ends: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    steps = np.zeros(size + 1, np.int64)
    np.add.at(steps, begins, 1)
    np.add.at(steps, ends, -1)
    return np.asarray(np.cumsum(steps[:-1]) > 0)


def _plant(texts: list[str], folder: Path, copies: int) -> list[list[object]]:
    """Plant copies of a text in others: whole, with a word changed now and then, in parts in another order, nested."""
    chance = random.Random(1)  # noqa: S311 - planted copies are no secret
    words = sorted({token for text in texts[:500] for token in tokenise(text)})
    made: list[str] = []
    wanted: list[list[tuple[int, int]]] = []

    def other(count: int) -> list[str]:
        return [f"{chance.choice(words)}{chance.randrange(10**9)}x" for _ in range(count)]

    kinds = ("whole", f"a word changed every {CHANGED_EVERY}", "moved", "nested")
    for kind in range(len(kinds)):
        for _ in range(copies):
            origin = other(600)
            copy, parts = list(origin), [(0, 600)]
            if kind == 1:
                for at in range(CHANGED_EVERY - 1, 600, CHANGED_EVERY):
                    copy[at] = other(1)[0]
                parts = [(at, at + CHANGED_EVERY - 1) for at in range(0, 600, CHANGED_EVERY)]
            if kind == 2:  # noqa: PLR2004 - moved
                copy = origin[400:] + origin[200:400] + origin[:200]
                parts = [(0, 200), (200, 400), (400, 600)]
            if kind == 3:  # noqa: PLR2004 - nested
                made.append(" ".join(other(30) + origin[200:300]))
                wanted.append([(30, 130)])
            made.append(" ".join(other(40) + copy + other(40)))
            wanted.append([(40 + low, 40 + high) for low, high in parts])
            made.append(" ".join(origin))
            wanted.append([])
    _write(folder / "planted", made)
    _passages(folder / "planted", folder / "out-planted", "input.markup=text")
    covered: dict[int, set[int]] = {}
    for row in pq.read_table(folder / "out-planted" / "occurrences").to_pylist():
        covered.setdefault(int(row["doc_id"]), set()).update(range(row["token"], row["token_end"]))
    right = [
        covered.get(number, set()) == {token for low, high in parts for token in range(low, high)}
        for number, parts in enumerate(wanted) if parts
    ]  # fmt: skip
    groups = np.split(np.array(right), [copies, 2 * copies, 3 * copies])
    return [[kind, len(group), int(group.sum())] for kind, group in zip(kinds, groups, strict=True)]


def _grow(folder: Path, nothing: Measured, counts: tuple[int, ...]) -> list[list[object]]:
    """Measure collections of generated documents, a fifth of which share a passage with some four others."""
    rows = []
    for count in counts:
        chance = np.random.default_rng(count)
        numbers = chance.zipf(1.3, (count, WORDS)) % 1_000_000
        shared = chance.integers(0, 1_000_000_000, (max(count // (SHARED * 5), 1), TOKENS + 5))
        texts = []
        for number, row in enumerate(numbers.tolist()):
            text = " ".join(f"w{word}" for word in row)
            if number % SHARED == 0:
                text += " " + " ".join(f"s{word}" for word in shared[number // SHARED % len(shared)].tolist())
            texts.append(text)
        source = folder / f"grown-{count}"
        _write(source, texts)
        found = _passages(source, folder / f"out-{count}", "input.markup=text", "output.report=false")
        about = _about(f"{count:,}", texts, found, nothing)
        rows.append([*about, 1e6 * (found.seconds - nothing.seconds) / count])
        (source / "texts.jsonl").unlink()
    return rows
