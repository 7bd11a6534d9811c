"""A collection as large as that of 2005 and 2009, mined by both methods at k from 100 to 85.

Only the size of theirs is published: 530,000 pages in 4.04 GB of base64, so 5.7 KB of HTML a page; about half of it is
text. Ours has as many pages of a mean of 450 words, their lengths log-normal: consecutive words of real pages. When all
of these are used up, each word gets a suffix, a new one each time, so that only members of a family are alike. A family
is a page, its exact copies and its edits: nearly half of the pages have none, and few families are large, as in a
crawl. At k = 85 there are two pairs a page; theirs had half a one.
"""

import argparse
import json
import resource
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd

from bench.papers.cells import Cells, Values
from bench.papers.runs import make_run
from bench.papers.y2009 import METHODS, SUPPORTS_100

PAGES, FILES = 530_000, 52
WORDS, SPREAD, LEAST, MOST = 450, 0.9, 10, 20_000
"""Mean, spread (of the logarithm), least and most of the words of a page."""
SIZES, LARGEST = 2.6, 100
"""Exponent of the sizes of families, and the largest."""
COPIES, EDITS = 0.4, 0.01
"""Share of exact copies among the members of a family, and the most edits of another as a share of its words."""


def measure(options: argparse.Namespace, cells: Cells, folder: Path, texts: list[str]) -> None:
    """Write the pages and mine them."""
    pages = int(options.records or (PAGES // 100 if options.small else PAGES))
    target = folder / f"romip-{pages}"
    cells.get("romip pages", {"pages": pages}, partial(_write, target, texts, pages))
    inputs = [str(path) for path in sorted(target.glob("*.jsonl"))]
    for method, profile in METHODS.items():
        cells.get("romip", {"pages": pages, "method": method}, partial(_mine, folder / "romip", inputs, profile))


def _mine(folder: Path, inputs: list[str], profile: str) -> Values:
    """Mine at every k, from the images of the first; the peak is that of this process so far."""
    rows = []
    for place, k in enumerate(SUPPORTS_100[:4]):
        metrics = make_run(folder, inputs, profile, f"pairs.threshold={k}", reuse=place > 0)
        stages = metrics.stages
        rows.append({"k": k, "pairs": metrics.rows["pairs"], "sets": metrics.rows["clusters"], "run_s": metrics.seconds,
                     "image_s": stages.sketch.seconds, "pairs_s": stages.pairs.seconds,
                     "mine_s": stages.clusters.seconds})  # fmt: skip
    return {"rows": rows, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}


def _write(target: Path, texts: list[str], pages: int) -> Values:
    """Write the pages as JSON lines, in 52 files; return how many are alone, and the MB of text."""
    target.mkdir(parents=True, exist_ok=True)
    written = alone = size = 0
    rows = draw_pages(texts, pages)
    for number, part in enumerate(np.array_split(np.arange(pages), FILES), 1):
        with (target / f"pages.{number:02}.jsonl").open("w", encoding="utf-8") as file:
            for _ in part:
                text, is_alone = next(rows)
                file.write(json.dumps({"id": written, "text": text}) + "\n")
                written, alone, size = written + 1, alone + is_alone, size + len(text.encode())
    return {"pages": written, "alone": alone, "megabytes": size // 1_000_000}


def draw_pages(texts: list[str], pages: int) -> Iterator[tuple[str, bool]]:
    """Yield so many texts, families one after another, and whether each is the only one of its family."""
    random = np.random.default_rng(1)
    words, vocabulary = pd.factorize(np.array(" ".join(texts).split(), dtype=object))
    at, rounds, spelled = 0, count(1), list(vocabulary)
    while pages > 0:
        length = int(np.clip(random.lognormal(np.log(WORDS) - SPREAD**2 / 2, SPREAD), LEAST, MOST))
        if at + length > len(words):
            at, suffix = 0, f"x{next(rounds)}"
            spelled = [word + suffix for word in vocabulary]
        page, members = words[at : at + length], min(int(random.zipf(SIZES)), LARGEST, pages)
        at, pages = at + length, pages - members
        for member in range(members):
            own = page
            if member and random.random() > COPIES:
                own = page.copy()
                places = random.integers(0, len(own), random.integers(1, 2 + int(len(own) * EDITS)))
                own[places] = random.integers(0, len(vocabulary), len(places))
            yield " ".join([spelled[word] for word in own.tolist()]), members == 1
