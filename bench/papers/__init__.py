"""Papers: the experiments of the four papers, repeated.

`python -m bench papers` measures everything (`cells.jsonl`; finished measurements are kept, so a killed run can go on),
draws the figures of docs/papers/, and updates the tables of docs/papers.md and of the pages beside the figures.
`--parts 2009,2017` selects. `--collection DIR` measures the documents of DIR instead, which may be any input of a run,
and writes tables and figures to a folder in build/bench; without debdocs-dev and ruweb it takes samples/debdocs.
`--parts romip --records N` is not in the rest.

    1997        Broder and others: sizes of clusters, shingles over documents, containment, super-shingles
    2009        Ignatov, Kuznetsov and others, 2005 and 2009: images, mining, quality, closure
    miners      maximal sets by nddup, a C miner and MLlib's FP-Growth as k falls
    baseline    repeated bisection (MLlib) beside maximal sets; debdocs-dev only
    2014        Pamulaparty and others: pages by SimScore; debdocs-dev only
    2017        Manaa, Abdulameer: seconds, and what the bands miss
    romip       as many pages as the collection of 2005 and 2009 (530,000, or N), generated; only if asked for
"""

import argparse
import hashlib
import sys
from pathlib import Path

from bench.debdocs import SHORT, load_pages, texts_of
from bench.papers import baseline, collections, miners, page, romip, y1997, y2009, y2014, y2017
from bench.papers.cells import Cells
from bench.recording import BUILD

PARTS = ("1997", "2009", "miners", "baseline", "2014", "2017")
ANYWHERE = ("1997", "2009", "2017")
"""Parts that a collection of the user gets unless it asks for others: they need neither a C miner nor Java."""
LARGE = "romip"
"""A part that is measured only if it is asked for."""
WITH_COLLECTION = (*ANYWHERE, "miners", LARGE)
SAMPLE = Path("samples/debdocs")


def run(options: argparse.Namespace) -> None:
    """Measure what is missing, and write the pages."""
    source = _source(options)
    allowed, usual = (WITH_COLLECTION, ANYWHERE) if source else ((*PARTS, LARGE), PARTS)
    parts = options.parts.split(",") if options.parts else usual
    if unknown := [part for part in parts if part not in allowed]:
        sys.exit(f"papers: expected --parts of {','.join(allowed)}; got {','.join(unknown)}")
    if source:
        _measure_given(options, source, parts)
    else:
        _measure_published(options, parts)


def _source(options: argparse.Namespace) -> Path | None:
    """Return the user's collection, or the sample where the published ones are missing; None where they are here."""
    given: Path | None = options.collection
    if given and not given.exists():
        sys.exit(f"papers: --collection {given}: no such file or folder; expected any input of a run")
    needed = [options.data / "debdocs-dev" / "docs.parquet", options.data / "ruweb"]
    if given or all(path.exists() for path in needed):
        return given
    print(f"papers: {options.data} has no debdocs-dev and ruweb; this takes {SAMPLE} (--collection DIR: your own)")
    return SAMPLE


def _measure_given(options: argparse.Namespace, source: Path, parts: list[str] | tuple[str, ...]) -> None:
    place = hashlib.blake2b(str(source.resolve()).encode(), digest_size=4).hexdigest()
    folder = BUILD / f"papers-{source.resolve().name}-{place}"
    folder.mkdir(parents=True, exist_ok=True)
    files = collections.given(source, folder)
    texts = collections.texts_in(files)
    cells = Cells(folder / "cells.jsonl")
    measures = {
        "1997": lambda: y1997.measure(cells, folder, {collections.GIVEN: files}),
        "2009": lambda: y2009.measure(cells, folder, {collections.GIVEN: files}),
        "miners": lambda: miners.measure(cells, folder, texts),
        "2017": lambda: y2017.measure(cells, [text for text in texts if len(text.split()) >= SHORT]),
        LARGE: lambda: romip.measure(options, cells, folder, texts),
    }
    for part in parts:
        print(f"\n{part}", flush=True)
        measures[part]()
    page.write(cells, folder, is_published=False)


def _measure_published(options: argparse.Namespace, parts: list[str] | tuple[str, ...]) -> None:
    folder = BUILD / ("papers-small" if options.small else "papers")
    folder.mkdir(parents=True, exist_ok=True)
    files = {"debdocs-dev": collections.debdocs(options, folder), "ruweb": collections.ruweb(options, folder)}
    long = {"debdocs-170": collections.debdocs(options, folder, least=collections.LEAST),
            "mix-170": collections.mixed(options, folder)}  # fmt: skip
    cells = Cells(folder / "cells.jsonl")

    def texts(least: int) -> list[str]:
        pages = load_pages(options)
        return texts_of(pages[pages["n_tokens"] >= least].iloc[: y2017.CURVE_DOCUMENTS if least else None])

    measures = {
        "1997": lambda: y1997.measure(cells, folder, files),
        "2009": lambda: y2009.measure(cells, folder, {**files, **long}),
        "miners": lambda: miners.measure(cells, folder, texts(0)),
        "baseline": lambda: baseline.measure(options, cells, folder, files["debdocs-dev"]),
        "2014": lambda: y2014.measure(options, cells, folder),
        "2017": lambda: y2017.measure(cells, texts(SHORT)),
        LARGE: lambda: romip.measure(options, cells, folder, texts(0)),
    }
    for part in parts:
        print(f"\n{part}", flush=True)
        measures[part]()
    page.write(cells, folder, is_published=not options.small)
