"""`nddup against`: verdicts on items planted among real pages, and the speed at which A is read.

A is debdocs-dev, then ruweb, with a file in which items are planted. The words of an item are drawn one by one from the
collection's pages, by frequency, so that no run of 8 words is shared by accident. There are 1,500 items of 160 words:
verbatim (a document is the item), embedded (within 1,000 other words, in capitals), edited (embedded, with 1 to 30 % of
the words replaced at random places), absent, short (11 words) and common (a passage of 1,200 documents).
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow.parquet as pq

from bench.repository import real_texts
from nddup.against.find_hits import find_hits
from nddup.against.share_records import ReadItems
from nddup.against.shingle_table import make_known, open_known
from nddup.embedded.workers import Workers
from nddup.scanning.found import text_buffers
from nddup.settings.load import load_config
from nddup.settings.plan import record_limits, text_rule
from nddup.sketching.tokens import tokenise
from nddup.stages.inputs_found import find_inputs
from nddup.storage.local_storage import LocalStorage

ITEMS, WORDS, COMMON = 1_500, 160, 1_200
KINDS = ("verbatim", "embedded", "edited", "absent", "short", "common")
CHANGED = (1, 2, 3, 5, 10, 20, 30)
"""Per cent of the words replaced in an edited item, in turn."""


def run(options: argparse.Namespace) -> None:
    """Plant the items in each collection and judge them with the command; measure kernel and command on real texts."""
    for name in ("debdocs-dev", "ruweb"):
        with TemporaryDirectory(prefix="nddup-bench-") as made:
            folder = Path(made)
            (folder / "a").mkdir()
            _fill(folder / "a", name, options)
            pages = _read(folder / "a", most=200 if options.small else 2_000)
            kinds = _plant(folder, _Words(pages))
            print(name)
            _judge(folder, kinds)
            if name == "debdocs-dev":
                _speed(folder, pages, megabytes=5 if options.small else 200)


def _fill(folder: Path, name: str, options: argparse.Namespace) -> None:
    """Put a collection into A: the pages of debdocs-dev as JSON lines, or the files of ruweb."""
    if name == "debdocs-dev":
        rows = list(real_texts(options.data).items())[: 300 if options.small else None]
        lines = (json.dumps({"id": number, "text": page}, ensure_ascii=False) for number, page in rows)
        (folder / "debdocs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
        return
    for file in sorted((options.data / name).glob("ruweb.xml.*.bz2")):
        copyfile(file, folder / file.name)  # a link that leads out of A is not followed


def _read(folder: Path, most: int) -> list[str]:
    """Return the texts of the first records of a collection."""
    config = load_config(None, [f"input.limit={most}"])
    found = find_inputs(LocalStorage(), [str(folder)], config)
    with Workers(1) as workers:
        rows = workers.scan(found, ReadItems(text_rule(config)), record_limits(config))
    return [text for text in rows["text"].to_pylist() if text]


class _Words:
    """Draws words from pages by their frequency."""

    def __init__(self, pages: list[str]) -> None:
        self.pool = [word for page in pages[:200] for word in tokenise(page)]
        self.rng = random.Random(1)  # noqa: S311 - no secret

    def draw(self, count: int) -> list[str]:
        return self.rng.choices(self.pool, k=count)


def _plant(folder: Path, words: _Words) -> dict[str, str]:
    """Write a.jsonl and b.jsonl; return the kind of each item."""
    passages = [words.draw(WORDS) for _ in range(5)]
    items, documents, kinds = [], [words.draw(300) for _ in range(2_000)], {}
    documents += [words.draw(50) + passages[n % 5] for n in range(5 * COMMON)]
    for number in range(ITEMS):
        kind, body = KINDS[number % len(KINDS)], words.draw(WORDS)
        if kind == "short":
            body = body[:11]
        elif kind == "common":
            body = passages[number % 5]
        elif kind == "edited":
            share = CHANGED[number // len(KINDS) % len(CHANGED)]
            kind = f"edited {share:2} %"
        kinds[f"i{number}"] = kind
        items.append((f"i{number}", body))
        if kind == "verbatim":
            documents.append(body)
        elif kind == "embedded":
            documents.append(words.draw(500) + [word.upper() for word in body] + words.draw(500))
        elif kind.startswith("edited"):
            places = set(words.rng.sample(range(WORDS), max(1, WORDS * share // 100)))
            edited = ["replaced" if place in places else word for place, word in enumerate(body)]
            documents.append(words.draw(500) + edited + words.draw(500))
    words.rng.shuffle(documents)
    _write(folder / "b.jsonl", items)
    _write(folder / "a" / "planted.jsonl", [(f"d{n}", body) for n, body in enumerate(documents)])
    return kinds


def _write(path: Path, rows: list[tuple[str, list[str]]]) -> None:
    path.write_text("".join(json.dumps({"id": i, "text": " ".join(t)}) + "\n" for i, t in rows), encoding="utf-8")


def _judge(folder: Path, kinds: dict[str, str]) -> None:
    """Print the verdicts by kind, precision and recall for verbatim and embedded items, and recall for edited ones."""
    _command(folder / "a", folder / "b.jsonl", "--output", str(folder / "out"))
    rows = pq.read_table(folder / "out" / "items").to_pylist()
    told = Counter((kinds[row["item"]], row["reason"] or row["verdict"]) for row in rows)
    verdicts = ("found", "part", "clean", "short", "common")
    print(f"{'planted':<12}" + "".join(f"{verdict:>8}" for verdict in verdicts))
    for kind in sorted(set(kinds.values())):
        print(f"{kind:<12}" + "".join(f"{told[kind, verdict]:>8,}" for verdict in verdicts))
    whole = sum(told[kind, "found"] for kind in ("verbatim", "embedded"))
    clean = sum(told[kind, "clean"] for kind in ("verbatim", "embedded"))
    planted = sum(kind in ("verbatim", "embedded") for kind in kinds.values())
    false = sum(told[kind, "found"] for kind in ("absent", "short", "common"))
    print(
        f"verbatim and embedded: precision {whole / (whole + false):.3f}, recall {whole / planted:.3f}, {clean} clean"
    )
    for share in CHANGED:
        kind = f"edited {share:2} %"
        counts = [told[kind, verdict] for verdict in verdicts]
        recall, seen = counts[0] / sum(counts), (counts[0] + counts[1]) / sum(counts)
        print(f"{kind} of the words: recall {recall:.3f}, with those found in part {seen:.3f}")
    print()


def _speed(folder: Path, pages: list[str], *, megabytes: int) -> None:
    """Print MB of text a second for the kernel, and for the command with one and two processes."""
    texts: list[str] = []
    while sum(len(page) for page in pages) * (len(texts) // len(pages)) < megabytes << 20:
        texts += pages
    data, bounds = text_buffers(texts)
    items = [json.loads(line)["text"] for line in (folder / "b.jsonl").read_text(encoding="utf-8").splitlines()]
    (folder / "known").mkdir()
    make_known(*text_buffers(items), 8).save(folder / "known")
    known = open_known(str(folder / "known"))
    find_hits(*text_buffers(texts[:10]), known)

    start = time.process_time()
    find_hits(data, bounds, known)
    print(f"kernel: {len(data) / 1e6 / (time.process_time() - start):.0f} MB/s of text, one thread, CPU time")

    lines = (json.dumps({"id": str(n), "text": text}, ensure_ascii=False) for n, text in enumerate(texts))
    (folder / "speed.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "one.jsonl").write_text('{"id": "1", "text": "one"}\n', encoding="utf-8")
    for count in (1, 2):
        arguments = ("--set", f"local.processes={count}")
        empty = _command(folder / "one.jsonl", folder / "b.jsonl", *arguments)
        used = _command(folder / "speed.jsonl", folder / "b.jsonl", *arguments)
        size = len(data) / 1e6
        cpu, seconds = size / (used.cpu - empty.cpu), size / (used.seconds - empty.seconds)
        print(
            f"command, {count} of processes: {cpu:.0f} MB of text in JSON lines a CPU second, {seconds:.0f} a second;"
            f" its start {empty.cpu:.1f} s"
        )


class _Used(NamedTuple):
    """CPU and elapsed seconds."""

    cpu: float
    seconds: float


def _command(a: Path, b: Path, *arguments: str) -> _Used:
    """Run `nddup against`; return its time."""
    program = "import sys; from nddup.cli import main; sys.exit(main())"
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-c", program, "against", str(a), str(b), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _Used(cpu, time.monotonic() - start)
