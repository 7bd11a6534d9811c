"""Papers: the tables of two of the papers, made again over their profiles, as files in build/bench/papers.

time2017.csv    Manaa, Abdulameer 2017, table 6: seconds for 100 to 1,000 documents (rows) and shingles of 4 to 10
                words (columns), from texts to verified pairs: signatures, bands, candidates, comparison.
                conf/kshingle2017.yaml
curve2017.csv   their table 8: the probability to become a candidate, 20 bands of 5 rows
bands2014.csv   Pamulaparty, Rao, Rao 2014, table 3: for each page of a data set the other pages by their SimScore:
                under 60 %, 60 to 70, 70 to 80, and 80 or more. conf/dd2014.yaml, from the commands: `nddup index
                create`, `add`, `query --bands 60,70,80`; compared with the numbers of every two pages

The pages are those of debdocs-dev, not the papers'. A data set of 2014 is ten pages of one family of documentation: two
versions of each of five. SimScore is 100 x common / all numbers of two pages.
"""

import argparse
import csv
import json
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.debdocs import SHORT, load_pages, texts_of
from bench.recording import fresh, record, show
from nddup.arrays import Ragged
from nddup.cli import main
from nddup.settings.derive import bands_of, finder_of, recipe_of
from nddup.settings.load import load_config
from nddup.settings.schema import Config
from nddup.sketching.lsh_bands import candidate_probability
from nddup.sketching.recipe import make_sketches
from nddup.sketching.words.word_sketches import sketcher_of

PROFILE_2017, PROFILE_2014 = "conf/kshingle2017.yaml", "conf/dd2014.yaml"
DOCUMENTS, LENGTHS = range(100, 1001, 100), range(4, 11)
BANDS = ("< 60 %", "60-70 %", "70-80 %", ">= 80 %")
DATA_SETS, PAGES = 4, 10


def run(options: argparse.Namespace) -> None:
    """Write the tables and print them."""
    folder = fresh("papers")
    pages = load_pages(options)
    pages = pages[pages["n_tokens"] >= SHORT].reset_index(drop=True)
    _write_times(options, folder, texts_of(pages.iloc[: max(DOCUMENTS)]))
    _write_curve(folder)
    sets = [(name, texts_of(pages.iloc[chosen])) for name, chosen in _data_sets(pages["page_key"].tolist())]
    _write_bands(options, folder, sets)


def find_pairs(texts: Sequence[str], config: Config) -> tuple[int, list[tuple[int, int]]]:
    """The profile on texts in memory: how many candidates the bands give, and those that reach the threshold."""
    made = make_sketches(*_as_arrow(texts), recipe_of(config))
    finder = finder_of(config)
    sketches = Ragged(made.offsets, made.ids)
    keys = finder.keys(sketches) if finder else sketches
    holders: dict[int, list[int]] = {}
    for document, (low, high) in enumerate(pairwise(keys.offsets.tolist())):
        for key in keys.values[low:high].tolist():
            holders.setdefault(key, []).append(document)
    candidates = {pair for held in holders.values() for pair in combinations(held, 2)}
    rows = np.split(made.ids, made.offsets[1:-1])
    need = config.pairs.share * config.sketch.size
    equal = {(a, b): len(np.intersect1d(rows[a], rows[b], assume_unique=True)) for a, b in candidates}
    return len(candidates), sorted(pair for pair, slots in equal.items() if slots >= need)


def band_of(common: int, either: int) -> int:
    """The band of a SimScore of 100 x common / either, in integers: 0 for less than 60 %.

    >>> [band_of(*counts) for counts in ((59, 100), (60, 100), (7, 10), (4, 5), (0, 0))]
    [0, 1, 2, 3, 0]
    """
    return sum(either > 0 and 10 * common >= tenths * either for tenths in (6, 7, 8))


def _write_times(options: argparse.Namespace, folder: Path, texts: list[str]) -> None:
    counts = [count for count in DOCUMENTS if count <= len(texts)] or [len(texts)]
    rows: list[list[object]] = []
    find_pairs(texts[:10], load_config(PROFILE_2017))  # compile
    for count in counts:
        row: list[object] = [count]
        for length in LENGTHS:
            config = load_config(PROFILE_2017, [f"shingle.length={length}"])
            started = time.perf_counter()
            candidates, near = find_pairs(texts[:count], config)
            row.append(round(time.perf_counter() - started, 3))
            record("papers", options, table="time2017", documents=count, length=length, seconds=row[-1],
                   candidates=candidates, pairs=len(near))  # fmt: skip
        rows.append(row)
    headings = ["documents", *(f"k = {length}" for length in LENGTHS)]
    _write(folder / "time2017.csv", headings, rows)
    show("seconds by documents and shingle length (2017, table 6)", headings, rows)


def _write_curve(folder: Path) -> None:
    bands, rows = bands_of(load_config(PROFILE_2017))
    chances = [(tenths / 10, candidate_probability(tenths / 10, bands=bands, rows=rows)) for tenths in range(2, 10)]
    table = [[f"{resemblance:.1f}", f"{chance:.9f}"] for resemblance, chance in chances]
    _write(folder / "curve2017.csv", ["resemblance", f"1-(1-s^{rows})^{bands}"], table)
    show("probability to become a candidate (2017, table 8)", ["resemblance", "probability"], table)


def _write_bands(options: argparse.Namespace, folder: Path, sets: list[tuple[str, list[str]]]) -> None:
    """The bands that `nddup index query` tells of each page; they are those that every two pages give directly."""
    rows: list[list[object]] = []
    for name, texts in sets:
        told = _ask_bands(folder / name.replace("/", "-"), texts)
        due = _count_bands(texts)
        assert told == due, (name, told, due)  # noqa: S101 - a measurement that is wrong must not be printed
        rows += [[name, f"w{a + 1}", *(" ".join(place) or "--" for place in places)] for a, places in enumerate(told)]
        record("papers", options, table="bands2014", set=name, pages=len(texts))
    _write(folder / "bands2014.csv", ["data set", "document", *BANDS], rows)
    show("pages by SimScore (2014, table 3)", ["data set", "document", *BANDS], rows)


def _ask_bands(folder: Path, texts: list[str]) -> list[list[list[str]]]:
    """Of each page the others by band, from the commands: a repository of all pages is asked for each."""
    folder.mkdir()
    names = [f"w{number + 1}" for number in range(len(texts))]
    lines = (json.dumps({"id": name, "text": text}) for name, text in zip(names, texts, strict=True))
    pages = folder / "pages.jsonl"
    pages.write_text("\n".join(lines) + "\n", encoding="utf-8")
    repo = str(folder / "repo")
    with redirect_stdout(StringIO()):
        main(["index", "create", repo, "--config", PROFILE_2014, "--texts", "0", "--set", "input.markup=text"])
        main(["index", "add", repo, str(pages)])
        main(["index", "query", repo, str(pages), "--bands", "60,70,80", "--output", str(folder / "matches")])
    spelled = {"60-70": 1, "70-80": 2, ">=80": 3}
    found = {(row["query_id"], row["doc_id"]): spelled[row["band"]]
             for row in pq.read_table(folder / "matches").to_pylist() if row["doc_id"] is not None}  # fmt: skip
    return [
        [[b for b in names if b != a and found.get((a, b), 0) == band] for band in range(len(BANDS))] for a in names
    ]


def _count_bands(texts: list[str]) -> list[list[list[str]]]:
    """The same from the numbers of every two pages."""
    words = recipe_of(load_config(PROFILE_2014)).words
    assert words is not None  # noqa: S101 - the profile's kind is of words
    made = sketcher_of(words, b"").sketch(*_as_arrow(texts))
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
    """Places of two pages of each of the first keys that have several, ten of each family of documentation."""
    places: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    found: dict[str, list[int]] = {}
    for key, versions in places.items():
        chosen = found.setdefault(key.partition("|")[0], [])
        if len(versions) > 1 and len(chosen) < PAGES:
            chosen += versions[:2]
    return [(family, chosen) for family, chosen in found.items() if chosen][:DATA_SETS]


def _as_arrow(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    data = [text.encode() for text in texts]
    return np.frombuffer(b"".join(data), np.uint8), np.cumsum([0, *map(len, data)], dtype=np.int64)


def _write(path: Path, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([headings, *rows])
