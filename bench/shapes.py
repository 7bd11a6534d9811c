"""Shapes: collections whose texts are much alike but hardly pairs, three sizes of each: a run, and its `check`."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice, pairwise

import numpy as np
import pyarrow.parquet as pq

from bench.processes import ProgramFailedError, Usage, nddup, run_measured
from bench.recording import drop, fresh, record, show

SIZES = 2_000, 6_000, 18_000
SMALL = 200, 600

Random = np.random.Generator
Texts = Iterator[str]


def run(options: argparse.Namespace) -> None:
    """Measure a run and its check for every shape, size and threshold; print the table, and the growth of the cost."""
    thresholds = [float(one) for one in (options.thresholds or "0.7").split(",")]
    wanted = options.systems.split(",") if options.systems else list(SHAPES)
    sizes = [int(size) for size in options.records.split(",")] if options.records else SMALL if options.small else SIZES
    rows = []
    for threshold in thresholds:
        for name in wanted:
            costs = [_measure(name, count, threshold, options) for count in sizes]
            growth = [_ratio(more, less) for (less, *_), (more, *_) in pairwise(costs)]
            for count, cost, factor in zip(sizes, costs, ["", *growth], strict=True):
                rows.append([f"{name}, {count:,}", threshold, *cost, factor])
    headings = ["shape, texts", "threshold", "CPU s", "MB", "pairs", "check CPU s", "check MB", "growth"]
    show("shapes: a run and its check, report included; growth: CPU s beside those of the size before", headings, rows)
    record("shapes", options, rows=rows)


def _ratio(more: float | str, less: float | str) -> str:
    return f"{more / less:.1f}" if isinstance(more, float) and isinstance(less, float) else ""


def _measure(name: str, count: int, threshold: float, options: argparse.Namespace) -> list[float | str]:
    folder = fresh("shapes")
    with (folder / "texts.jsonl").open("w", encoding="utf-8") as file:
        for number, text in enumerate(islice(SHAPES[name](np.random.default_rng(1)), count)):
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    output, settings = folder / "run", [f"--set=pairs.threshold={threshold}", "--engine=local"]
    made = _try([nddup(), "run", str(folder / "texts.jsonl"), "--output", str(output), *settings], options.limit)
    pairs = pq.read_table(output / "pairs", columns=[]).num_rows if made[0] != "over" else ""
    checked = _try([nddup(), "check", str(output)], options.limit) if made[0] != "over" else ["", ""]
    drop(folder)
    return [*made, str(pairs), *checked]


def _try(command: list[str], limit: float) -> list[float | str]:
    """Return CPU seconds and peak MB of a command, or `over` if it took longer than the limit."""
    try:
        usage: Usage = run_measured(command, limit=limit)
    except ProgramFailedError as error:
        print(str(error).splitlines()[0], file=sys.stderr)
        return ["over", ""]
    return [round(usage.cpu_seconds, 1), f"{usage.memory / 1e6:,.0f}"]


def _words(random: Random, count: int) -> list[str]:
    return [f"w{number}" for number in random.integers(0, 50_000, count)]


def unrelated(random: Random) -> Texts:
    """Yield texts of 100 words drawn from 50,000."""
    while True:
        yield " ".join(_words(random, 100))


def titles(random: Random) -> Texts:
    """Yield one title, numbered: no text has another of the usual threshold."""
    del random
    number = 0
    while True:
        yield f"a b c d e f g {number}"
        number += 1


def logs(random: Random) -> Texts:
    """Yield lines of a log: a date, a worker, a request, its milliseconds."""
    while True:
        day, hour, minute, second, worker = random.integers(1, [29, 24, 60, 60, 50])
        request, spent = random.integers(0, [10**6, 2000])
        yield (
            f"2026-11-{day:02d} {hour:02d}:{minute:02d}:{second:02d} INFO server worker-{worker}"
            f" request {request} completed in {spent} ms status 200"
        )


def _form(words: int, changed: int, by: int) -> Callable[[Random], Texts]:
    """Return a shape: one text, of which some words are replaced by `by` words that hardly another text has."""

    def texts(random: Random) -> Texts:
        base = _words(random, words)
        while True:
            text = list(base)
            for place in random.choice(words, changed, replace=False):
                text[place] = " ".join(f"x{number}" for number in random.integers(0, 10**7, by))
            yield " ".join(text)

    return texts


def boilerplate(random: Random) -> Texts:
    """Yield articles of 60 words below one menu of 500 words."""
    menu = " ".join(_words(random, 500))
    while True:
        yield " ".join([menu, *_words(random, 60)])


SHAPES: dict[str, Callable[[Random], Texts]] = {
    "unrelated": unrelated,
    "titles": titles,
    "logs": logs,
    "records of a form of 30 words": _form(30, 6, 1),
    "loose: 9 names in 200 words": _form(200, 9, 2),
    "close: 5 of 200 words replaced": _form(200, 5, 1),
    "licences: 12 of 400 words replaced": _form(400, 12, 1),
    "pages under one menu": boilerplate,
}
"""Texts by shape, without end."""
