"""Spark: nddup and other programs on local Spark over the same texts: CPU, bytes, jobs, precision and recall."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.debdocs import SHORT, load_pages, load_truth, reworded, texts_of
from bench.peers import describe_machine
from bench.peers.environments import PEERS, bare_environment, interpreter_of
from bench.peers.found import Pair, ordered, score_groups, score_run, write_texts
from bench.peers.texts import THRESHOLD
from bench.processes import ProgramFailedError, nddup, run_measured
from bench.recording import BUILD, drop, fresh, record, show, write_table

SIZE = 200
CURATOR = "distributed-curator"
SYSTEMS = ("nddup", "embedded", "sql", "mllib", CURATOR)
COUNTS, FAMILIES = (5_000, 20_000, 41_460), (5_000, 9_999, 10_001, 20_000)
HEADINGS = ("texts, system", "seconds", "CPU s", "jobs", "shuffled MB", "peak MB", "longest task s",
            "pairs", "precision", "recall", "says")  # fmt: skip
FAMILY_WORDS, CHANGED = 400, 3
"""Words of a page of a family, and how many of them are its own: any two pages have a resemblance of some 0.86."""


class _Collection(NamedTuple):
    """Texts in a folder, and their exact pairs; None: not known."""

    what: str
    folder: Path
    true: set[Pair] | None


def run(options: argparse.Namespace) -> None:
    """Run each system over each collection; print and keep the table."""
    systems = options.systems.split(",") if options.systems else list(SYSTEMS)
    rows, values = [], []
    for collection in _collections(options):
        for system in systems:
            if collection.true is not None or system in ("nddup", "embedded"):
                row, value = _measure(system, collection, options)
                rows.append(row)
                values.append({"what": collection.what, "system": system, **value})
    title = f"spark: texts of debdocs-dev and families, local[{options.cores}], at {THRESHOLD}"
    show(title, HEADINGS, rows)
    write_table(BUILD / "spark-table", [title, f"{describe_machine()}, {time.strftime('%Y-%m-%d')}"], HEADINGS, rows)
    record("spark", options, runs=values)
    drop(BUILD / "spark")


def _collections(options: argparse.Namespace) -> Iterator[_Collection]:
    """Write the collections one after another; each replaces the one before."""
    parts = (options.parts or "texts,families").split(",")
    small = [800] if options.small else []
    asked = small or [int(count) for count in (options.records or "").split(",") if count]
    for count in asked or COUNTS if "texts" in parts else ():
        folder = fresh("spark")
        yield _Collection(f"{count:,} texts", folder, _write_pages(folder / "texts.jsonl", count, options))
    for count in asked or FAMILIES if "families" in parts else ():
        folder = fresh("spark")
        write_texts(folder / "texts.jsonl", _family(count))
        yield _Collection(f"family of {count:,}", folder, None)


def _measure(system: str, collection: _Collection, options: argparse.Namespace) -> tuple[list[object], dict[str, Any]]:
    """Return the row of a system in the table, and all that is kept of its run."""
    what, folder, true = collection
    texts, output, said = folder / "texts.jsonl", folder / system, folder / f"{system}.json"
    settings = [f"pairs.threshold={THRESHOLD}", f"sketch.size={SIZE}", "input.markup=text", "output.texts=0",
                "output.report=false"]  # fmt: skip
    command = [sys.executable, "-m", "bench.spark_run", system, texts, output, options.cores, said]
    if system == "nddup":
        command += settings
    elif system == "embedded":
        command = [nddup(), "run", texts, "--output", output, "--engine", "local",
                   *(f"--set={setting}" for setting in settings)]  # fmt: skip
    elif system == CURATOR:
        program = Path(__file__).parent / "peers" / PEERS[CURATOR].program
        command = [interpreter_of(CURATOR), program, texts, output, options.cores]
    environment = bare_environment() if system == CURATOR else None
    try:
        usage = run_measured([str(part) for part in command], environment=environment, limit=options.limit)
    except ProgramFailedError as error:
        reason = str(error).strip().splitlines()[-1]
        return [f"{what}, {system}", *["–"] * (len(HEADINGS) - 2), reason], {"failed": reason}
    told = json.loads(said.read_text(encoding="utf-8")) if said.exists() else {}
    if options.profile and told:
        _show_steps(f"{what}, {system}", told["stages"])
    scores: list[object] = ["–"] * 3
    if true is not None:
        score = (score_groups if system == CURATOR else score_run)(output, true)
        scores = [score.pairs, round(score.precision, 4), round(score.recall, 4)]
    drop(output)
    row = [f"{what}, {system}", round(usage.seconds, 1), round(usage.cpu_seconds, 1), told.get("jobs", "–"),
           round(told["shuffled"] / 1e6, 1) if told else "–", round(usage.memory / 1e6),
           round(told["largest_task"], 1) if told else "–", *scores, ""]  # fmt: skip
    print(row, flush=True)
    return row, {
        "seconds": usage.seconds,
        "cpu_seconds": usage.cpu_seconds,
        "memory": usage.memory,
        "scores": scores,
        **told,
    }


def _show_steps(title: str, groups: dict[str, list[float]]) -> None:
    """Print what the stages of each description took together, in seconds of their tasks and in bytes."""
    rows = [
        [name, int(count), int(tasks), seconds, shuffled / 1e6]
        for name, (count, tasks, seconds, shuffled) in groups.items()
    ]
    show(title, ["step", "stages", "tasks", "task s", "MB"], rows)


def _write_pages(path: Path, count: int, options: argparse.Namespace) -> set[Pair]:
    """Write the first `count` texts of the pages and of copies in other words; return their exact pairs."""
    pages = load_pages(options)
    pages = pages[pages["n_tokens"] >= SHORT].reset_index(drop=True)
    ids, texts = pages["doc_id"].tolist(), texts_of(pages)
    place = {doc_id: at for at, doc_id in enumerate(ids)}
    n = len(ids)

    def rows() -> Iterator[Pair]:
        for number in range(count):
            copy, at = divmod(number, n)
            yield f"{ids[at]}.{copy}", reworded(texts[at], copy)

    write_texts(path, rows())
    return ordered(
        (f"{a}.{copy}", f"{b}.{copy}")
        for a, b in load_truth(options, pages)
        for copy in range(-(-count // n))
        if copy * n + max(place[a], place[b]) < count
    )


def _family(count: int) -> Iterator[Pair]:
    """Yield pages of one family: a text, with CHANGED of its words replaced in each."""
    random = np.random.default_rng(1)
    words = [f"word{number}" for number in range(FAMILY_WORDS)]
    for number in range(count):
        own = list(words)
        for at in random.choice(FAMILY_WORDS, CHANGED, replace=False).tolist():
            own[at] = f"own{number}x{at}"
        yield f"d{number:06}", " ".join(own)
