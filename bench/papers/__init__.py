"""Papers: the experiments of the four papers, repeated.

`python -m bench papers` measures everything (`cells.jsonl`; finished measurements are kept, so a killed run can go on),
draws the figures of docs/papers/, and updates the tables of docs/papers.md. `--parts 2009,2017` selects.

    y1997       Broder and others: sizes of clusters, shingles over documents, containment, super-shingles
    y2009       Ignatov, Kuznetsov and others, 2005 and 2009: images, mining, quality, closure
    miners      maximal sets by nddup, a C miner and MLlib's FP-Growth as k falls
    baseline    repeated bisection (MLlib) beside maximal sets
    y2014       Pamulaparty and others: pages by SimScore
    y2017       Manaa, Abdulameer: seconds, and what the bands miss
    page        the tables and figures
"""

import argparse

from bench.papers import baseline, collections, miners, page, y1997, y2009, y2014, y2017
from bench.papers.cells import Cells
from bench.recording import BUILD

PARTS = ("1997", "2009", "miners", "baseline", "2014", "2017")


def run(options: argparse.Namespace) -> None:
    """Measure what is missing, and write the page."""
    folder = BUILD / ("papers-small" if options.small else "papers")
    folder.mkdir(parents=True, exist_ok=True)
    files = {"debdocs-dev": collections.debdocs(options, folder), "ruweb": collections.ruweb(options, folder)}
    cells = Cells(folder / "cells.jsonl")
    measures = {
        "1997": lambda: y1997.measure(cells, folder, files),
        "2009": lambda: y2009.measure(cells, folder, files),
        "miners": lambda: miners.measure(options, cells, folder),
        "baseline": lambda: baseline.measure(options, cells, folder, files["debdocs-dev"]),
        "2014": lambda: y2014.measure(options, cells, folder),
        "2017": lambda: y2017.measure(options, cells),
    }
    for part in options.parts.split(",") if options.parts else PARTS:
        print(f"\n{part}", flush=True)
        measures[part]()
    page.write(cells, folder, is_small=options.small)
