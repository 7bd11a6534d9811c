"""Exact decisions (`pairs.confirm: resemblance`): the pairs of a run against all pairs of all shingles, and their CPU.

The true pairs come from a count of common shingles of every two texts that share one, by the code of `nddup check`.
"""

import argparse
import json
from fractions import Fraction
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow.parquet as pq

from bench.debdocs import load_pages, shingles_of, texts_of
from bench.processes import nddup, run_measured
from bench.quality import read_texts
from bench.recording import drop, fresh, record, show
from nddup.sketching.accuracy import least_equal, pass_probability
from nddup.verifying.definitions import Definition, Sample, gather
from nddup.verifying.near_pairs import Probes, find_near

THRESHOLDS = ("0.5", "0.7", "0.8", "0.9")
SIZE = 200
UNSPACED = {"chinese": "Chinese_Mandarin", "japanese": "Japanese_Nihongo", "lao": "Lao"}
"""Languages written without spaces, and their names in the archive of the Universal Declaration of Human Rights."""

PLAIN = ("--set=clusters.mode=none", "--set=output.report=false", "--overwrite")
HEADINGS = ("run", "true pairs", "long", "found", "precision", "false", "missed", "expected", "CPU s", "none: CPU s")

Pairs = dict[tuple[str, str], float]


def run(options: argparse.Namespace) -> None:
    """Run each collection at each threshold on both engines; the first also without confirmation, for its CPU."""
    folder = fresh("exact")
    for name, texts in _collections(options).items():
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in texts.items()))
        sets = dict(zip(texts, shingles_of(list(texts.values())), strict=True))
        rows = []
        for threshold in THRESHOLDS:
            true = find_true(sets, Fraction(threshold))
            for engine in ("local", "spark")[: 1 if options.small else 2]:
                found, cpu = _run(path, folder / "run", threshold, engine)
                values = _compare(found, true, sets, threshold) | cpu
                rows.append([f"{threshold} {engine}", *values.values()])
                record("exact", options, collection=name, threshold=threshold, engine=engine, **values)
        show(f"exact: {name}, {len(texts):,} texts", HEADINGS, rows)
    drop(folder)


def find_true(sets: dict[str, np.ndarray], share: Fraction) -> Pairs:
    """Return the exact resemblance of every pair of texts that reaches `share`, the smaller id first."""
    names = list(sets)
    rows = gather([sets[name] for name in names])
    whole = Sample(1 << 30)
    rule = Definition(share.numerator, share.denominator, is_count=False, is_resemblance=True, sample=whole)
    near = find_near(rows, Probes(rows), rule, np.arange(len(names)))
    ends = zip(near.rows.tolist(), near.probes.tolist(), near.resemblance.tolist(), strict=True)
    return {(min(names[a], names[b]), max(names[a], names[b])): resemblance for a, b, resemblance in ends}


def _run(path: Path, output: Path, threshold: str, engine: str) -> tuple[set[tuple[str, str]], dict[str, float]]:
    """Return the pairs of a run, and its CPU seconds with and without exact decisions."""
    command = [nddup(), "run", str(path), "--output", str(output), *PLAIN, f"--set=pairs.threshold={threshold}"]
    command += [f"--set=engine={engine}"]
    usages = [run_measured([*command, f"--set=pairs.confirm={how}"]) for how in ("none", "resemblance")]
    pairs = pq.read_table(output / "pairs", columns=["doc_a", "doc_b"])
    found = set(zip(pairs["doc_a"].to_pylist(), pairs["doc_b"].to_pylist(), strict=True))
    return found, {"cpu": round(usages[1].cpu_seconds, 1), "cpu_none": round(usages[0].cpu_seconds, 1)}


def _compare(found: set[tuple[str, str]], true: Pairs, sets: dict[str, np.ndarray], threshold: str) -> dict[str, float]:
    """Compare with the true pairs. Expected to be missed: of those with more shingles than a sketch holds, a few."""
    long = {pair: r for pair, r in true.items() if max(len(sets[name]) for name in pair) > SIZE}
    need = least_equal(SIZE, Fraction(threshold))
    expected = sum(1 - float(pass_probability(r, size=SIZE, need=need)) for r in long.values())
    return {
        "true": len(true),
        "long": len(long),
        "found": len(found),
        "precision": len(found & true.keys()) / max(len(found), 1),
        "false": len(found - true.keys()),
        "missed": len(true.keys() - found),
        "expected": round(expected, 3),
    }


def _collections(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Return the texts by id of each collection; several texts of debdocs, ruweb and mccormick are equal."""
    pages = load_pages(options)
    found = {"debdocs": dict(zip(map(str, pages["doc_id"]), texts_of(pages), strict=True))}
    parts = [options.data / "ruweb" / f"ruweb.xml.{part}.bz2" for part in (0, 1)]
    found["ruweb"] = {str(number): text for path in parts for number, text in read_texts(path)}
    lines = (options.data / "mccormick" / "articles_1000.train").read_text().splitlines()
    found["mccormick"] = dict(line.split(" ", 1) for line in lines)
    found["long"] = draw_long(60 if options.small else 400)
    with ZipFile(options.data / "encodings" / "udhr.zip") as archive:
        for name, member in UNSPACED.items():
            text = archive.read(f"udhr/{member}-UTF8").decode("utf-8", "ignore")
            found[name] = draw_unspaced(text, 60 if options.small else 400)
    return found


def draw_long(families: int) -> dict[str, str]:
    """Draw pairs of texts of 600 to 3,000 words; of 5-word shingles they share from .45 to .95."""
    random = np.random.default_rng(1)
    texts: dict[str, str] = {}
    for family in range(families):
        words = [f"w{family}x{number}" for number in range(random.integers(600, 3_000))]
        share = random.uniform(0.45, 0.95)
        changed = round(len(words) * (1 - share) / (1 + share))  # a changed word in a block changes one shingle
        start = int(random.integers(0, len(words) - changed))
        other = [f"{word}y" if start <= place < start + changed else word for place, word in enumerate(words)]
        texts |= {f"{family}a": " ".join(words), f"{family}b": " ".join(other)}
    return texts


def draw_unspaced(text: str, families: int) -> dict[str, str]:
    """Draw pairs of texts of 300 to 1,500 characters, pieces of the given one; single characters of one are changed."""
    random, alphabet = np.random.default_rng(1), sorted(set(text) - set(" \n\r"))
    texts: dict[str, str] = {}
    for family in range(families):
        starts = random.integers(0, len(text) - 30, int(random.integers(300, 1_500)) // 30).tolist()
        whole = [character for start in starts for character in text[start : start + 30]]
        changed = random.choice(len(whole), int(random.uniform(0, 0.08) * len(whole)), replace=False)
        other = list(whole)
        for place, letter in zip(changed.tolist(), random.choice(alphabet, len(changed)).tolist(), strict=True):
            other[place] = letter
        texts |= {f"{family}a": "".join(whole), f"{family}b": "".join(other)}
    return texts
