"""Pamulaparty, Rao, Rao 2014: for each page of a data set the other pages by their SimScore (their table 3).

The bands come from `nddup index create`, `add` and `query --bands 60,70,80`, and are compared with the SimScores of
every two pages. A data set is ten pages of one family of documentation in debdocs-dev: two versions of each of five.
SimScore is 100 x common / all numbers of two pages.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from shutil import rmtree

import numpy as np
import pyarrow.parquet as pq

from bench.debdocs import SHORT, load_pages, texts_of
from bench.papers.cells import Cells, Values
from bench.papers.runs import nddup
from bench.papers.y2017 import as_arrow
from nddup.settings.load import load_config
from nddup.settings.plan import recipe_of
from nddup.sketching.word_sketches import sketcher_of

PROFILE = "dd2014"
BANDS = ("< 60 %", "60-70 %", "70-80 %", ">= 80 %")
DATA_SETS, PAGES = 4, 10


def measure(options: argparse.Namespace, cells: Cells, folder: Path) -> None:
    """Measure the table of the paper."""
    cells.get("2014", {}, partial(_bands, options, folder / "2014"))


def band_of(common: int, either: int) -> int:
    """Return the band of a SimScore of 100 x common / either, computed in integers: 0 for less than 60 %.

    >>> [band_of(*counts) for counts in ((59, 100), (60, 100), (7, 10), (4, 5), (0, 0))]
    [0, 1, 2, 3, 0]
    """
    return sum(either > 0 and 10 * common >= tenths * either for tenths in (6, 7, 8))


def _bands(options: argparse.Namespace, folder: Path) -> Values:
    """Return the bands that `nddup index query` gives for each page, after checking them against every two pages."""
    pages = load_pages(options)
    pages = pages[pages["n_tokens"] >= SHORT].reset_index(drop=True)
    rows = []
    for name, chosen in _data_sets(pages["page_key"].tolist()):
        texts = texts_of(pages.iloc[chosen])
        told, due = _ask_bands(folder / name.replace("/", "-"), texts), _count_bands(texts)
        assert told == due, (name, told, due)  # noqa: S101 - a wrong measurement must not be published
        rows += [[name, f"w{a + 1}", *(" ".join(place) for place in places)] for a, places in enumerate(told)]
    return {"headings": ["data set", "document", *BANDS], "rows": rows}


def _ask_bands(folder: Path, texts: list[str]) -> list[list[list[str]]]:
    """Return the other pages of each page by band, from a repository of all pages that is queried with each."""
    rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = [f"w{number + 1}" for number in range(len(texts))]
    lines = (json.dumps({"id": name, "text": text}) for name, text in zip(names, texts, strict=True))
    (folder / "pages.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    repo, pages, matches = (str(folder / name) for name in ("repo", "pages.jsonl", "matches"))
    nddup("index", "create", repo, "--config", PROFILE, "--texts", "0", "--set", "input.markup=text")
    nddup("index", "add", repo, pages)
    nddup("index", "query", repo, pages, "--bands", "60,70,80", "--output", matches)
    spelled = {"60-70": 1, "70-80": 2, ">=80": 3}
    found = {(row["query_id"], row["doc_id"]): spelled[row["band"]]
             for row in pq.read_table(matches).to_pylist() if row["doc_id"] is not None}  # fmt: skip
    return [
        [[b for b in names if b != a and found.get((a, b), 0) == band] for band in range(len(BANDS))] for a in names
    ]


def _count_bands(texts: list[str]) -> list[list[list[str]]]:
    """Return the same, from the numbers of every two pages."""
    words = recipe_of(load_config(PROFILE)).words
    assert words is not None  # noqa: S101 - the profile's kind is of words
    made = sketcher_of(words, b"").sketch(*as_arrow(texts))
    sketches = np.split(made.ids, made.offsets[1:-1])
    table: list[list[list[str]]] = []
    for a, own in enumerate(sketches):
        places: list[list[str]] = [[] for _ in BANDS]
        for b, other in enumerate(sketches):
            common = len(np.intersect1d(own, other, assume_unique=True))
            if a != b:
                places[band_of(common, len(own) + len(other) - common)].append(f"w{b + 1}")
        table.append(places)
    return table


def _data_sets(keys: list[str]) -> list[tuple[str, list[int]]]:
    """Return the positions of two pages for each of the first keys with several, ten for each documentation family."""
    places: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    found: dict[str, list[int]] = {}
    for key, versions in places.items():
        chosen = found.setdefault(key.partition("|")[0], [])
        if len(versions) > 1 and len(chosen) < PAGES:
            chosen += versions[:2]
    return [(family, chosen) for family, chosen in found.items() if chosen][:DATA_SETS]
