"""Peers: nddup and other systems in turn on the same texts and machine: seconds, CPU, memory and results."""

import argparse
import os
import platform
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from bench.debdocs import SHORT, load_pages, load_truth, reworded, texts_of
from bench.peers.environments import PEERS, NoEnvironmentError, bare_environment, interpreter_of
from bench.peers.found import Score, ordered, score_groups, score_pairs, score_run, write_texts
from bench.peers.texts import THRESHOLD
from bench.processes import ProgramFailedError, Usage, nddup, run_measured
from bench.recording import BUILD, drop, fresh, record, show, write_table

SIZE = 200
OURS = {
    "nddup": ["output.texts=0", "output.report=false"],
    "nddup, with report": [],
}
"""Settings of nddup, by the name in the tables."""

WARMING = 1_000
"""Texts of a first run, which is not measured."""

EVERY_PAIR = "every pair of resemblance ≥ 0.7 that sketches propose; all shingles decide"
HEADINGS = ("system", "seconds", "CPU s", "peak MB", "pairs", "precision", "recall", "what its pairs are")


@dataclass
class Measured:
    """The runs of one system, one a round; or the reason why there are none."""

    usages: list[Usage] = field(default_factory=list)
    score: Score | None = None
    failure: str = ""

    def row(self, name: str) -> list[object]:
        """Return a row of the table, with medians."""
        if self.failure or self.score is None:
            return [name, *["–"] * 6, self.failure]
        middle = [
            statistics.median(getattr(usage, what) for usage in self.usages)
            for what in ("seconds", "cpu_seconds", "memory")
        ]
        found = (self.score.pairs, round(self.score.precision, 4), round(self.score.recall, 4))
        says = PEERS[name].says if name in PEERS else EVERY_PAIR
        return [name, round(middle[0], 1), round(middle[1], 1), round(middle[2] / 1e6), *found, says]


def run(options: argparse.Namespace) -> None:
    """Write the texts once, run the systems in turn, print and keep the table."""
    names = re.split(r",(?! )", options.systems) if options.systems else [*OURS, *PEERS]  # one has a comma and a blank
    unknown = sorted(set(names) - {*OURS, *PEERS})
    if unknown:
        raise SystemExit(f"peers: no system {', '.join(unknown)}; there are {', '.join([*OURS, *PEERS])}")
    folder = fresh("peers")
    texts = folder / "texts.jsonl"
    documents, true = _write_collection(texts, options)
    _warm_up(texts, options)

    rounds = options.rounds or (1 if options.small else 3)
    measured = {name: Measured() for name in names}
    loads = []
    for _ in range(rounds):
        for name in names:
            loads.append(os.getloadavg()[0])
            _run_once(name, measured[name], texts, true, options)

    rows = [measured[name].row(name) for name in names]
    title = f"peers: {documents:,} texts, {len(true):,} pairs of exact resemblance >= {THRESHOLD}, {rounds} rounds"
    show(title, HEADINGS, rows)
    show("peers: what each does not do", ["system", ""], [(name, peer.lacks) for name, peer in PEERS.items()])
    about = (
        f"{describe_machine()}, {time.strftime('%Y-%m-%d')}, load {min(loads):.1f} to {max(loads):.1f} at the starts"
    )
    write_table(BUILD / f"peers-{documents}", [title, about], HEADINGS, rows)
    record("peers", options, documents=documents, true_pairs=len(true), copies=options.copies, rounds=rounds,
           loads=loads, systems=[dict(zip(HEADINGS, row, strict=True)) for row in rows])  # fmt: skip
    drop(folder)


def _write_collection(path: Path, options: argparse.Namespace) -> tuple[int, set[tuple[str, str]]]:
    """Write the texts of the pages, in other words for each copy; return their number and their exact pairs."""
    pages = load_pages(options)
    pages = pages[pages["n_tokens"] >= SHORT].reset_index(drop=True)
    true = ordered(
        (f"{a}.{copy}", f"{b}.{copy}") for a, b in load_truth(options, pages) for copy in range(options.copies)
    )
    texts = list(zip(pages["doc_id"].tolist(), texts_of(pages), strict=True))

    def rows() -> Iterator[tuple[str, str]]:
        for copy in range(options.copies):
            for doc_id, text in texts:
                yield f"{doc_id}.{copy}", reworded(text, copy)

    return write_texts(path, rows()), true


def _warm_up(texts: Path, options: argparse.Namespace) -> None:
    """Compile the kernels of nddup, once per installation, by a run over the first texts."""
    few = texts.with_name("few.jsonl")
    with texts.open("rb") as lines:
        few.write_bytes(b"".join(islice(lines, WARMING)))
    run_measured(_ours(few, texts.with_name("few"), [], options))


def _ours(texts: Path, output: Path, settings: list[str], options: argparse.Namespace) -> list[str]:
    settings = [f"pairs.threshold={THRESHOLD}", f"sketch.size={SIZE}", "input.markup=text",
                f"local.processes={options.cores}", *settings]  # fmt: skip
    assigned = [f"--set={setting}" for setting in settings]
    return [nddup(), "run", str(texts), "--output", str(output), "--engine", "local", *assigned]


def _run_once(
    name: str, measured: Measured, texts: Path, true: set[tuple[str, str]], options: argparse.Namespace
) -> None:
    """Run a system once more, unless it has failed."""
    if measured.failure:
        return
    output = texts.with_name(name.replace(", ", "-").replace(" ", "-"))
    drop(output, output.with_name(f"{output.name}.folder"))
    try:
        if name in OURS:
            usage = run_measured(_ours(texts, output, OURS[name], options))
            score = score_run(output, true)
        else:
            program = Path(__file__).with_name(PEERS[name].program)
            command = [str(interpreter_of(name)), str(program), str(texts), str(output), str(options.cores)]
            usage = run_measured(command, environment=bare_environment(), limit=options.limit)
            score = (score_groups if program.stem.endswith("groups") else score_pairs)(output, true)
    except (ProgramFailedError, NoEnvironmentError) as error:
        measured.failure = str(error).strip().splitlines()[-1]
        return
    measured.usages.append(usage)
    measured.score = score


def describe_machine() -> str:
    """Return the processor, cores and memory of this machine, and the version of Python."""
    models = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
              if line.startswith("model name")]  # fmt: skip
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    model, version = models[0] if models else platform.machine(), platform.python_version()
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GB, Python {version}"
