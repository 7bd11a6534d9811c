"""Kinds: each kind of sketch in a whole job: its pairs against the exact ones, its check, size and CPU time.

precision, recall   pairs of the job at resemblance 0.7 against pairs of exact 5-word resemblance 0.7 or more
not found           near-duplicate sketches that the kind's finder (bands, super-shingles) did not bring together
bytes               mean size of the sketch, with the signature if the kind has one
CPU                 seconds of one core to sketch 10,000 documents from their texts: the median of interleaved
                    rounds, so that a busy machine affects all kinds alike
times min-s         CPU with the decoding and stripping of the pages, relative to min-s: the cost of reading a
                    collection
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from bench.debdocs import SHORT, Pair, load_pages, load_truth, texts_of, write_romip
from bench.quality import Compared
from bench.recording import drop, fresh, record, show
from nddup.checking.check_run import check_run
from nddup.engines.duck import DuckRun
from nddup.settings.load import build_config
from nddup.settings.plan import recipe_of
from nddup.sketching.recipe import Recipe, make_sketches
from nddup.sketching.vocabulary import TermCounts
from nddup.sketching.word_sketches import WordSketcher
from nddup.spark.run import run_job
from nddup.spark.session import start_session

THRESHOLD = 0.7
ROUNDS = 3
MINED_BY_STARS = {"clusters": {"mode": "partition"}}

KINDS: dict[str, dict[str, Any]] = {
    "min-s 200": {},
    "min-s 200, gf2, Rabin 40": {"sketch": {"permutation": "gf2", "fingerprint": "rabin"}},
    "super 200 x 8": {"sketch": {"kind": "super"}},
    "min-perm 100": {"sketch": {"kind": "min-perm", "size": 100}},
    "minhash 100, datasketch": {"sketch": {"kind": "minhash", "size": 100}},
    "minhash 100, affine, 20 x 5": {
        "sketch": {"kind": "minhash", "size": 100, "permutation": "affine", "bands": 20, "rows": 5}
    },
    "mod-m 25": {"sketch": {"kind": "mod-m", "modulus": 25}},
    "mod-pow2 200": {"sketch": {"kind": "mod-pow2"}, **MINED_BY_STARS},
    "lexicon": {"sketch": {"kind": "lexicon"}, **MINED_BY_STARS},
    "i-match 10": {
        "sketch": {"kind": "i-match"},
        "lexicon": {"low": 0.001},
        "pairs": {"measure": "overlap", "threshold": 1},
        **MINED_BY_STARS,
    },
    "keywords 3": {"sketch": {"kind": "keywords"}, **MINED_BY_STARS},
}
"""Settings of each kind, in addition to the threshold."""


class _Collection(NamedTuple):
    """A collection and its exact pairs."""

    name: str
    inputs: list[str]
    truth: set[Pair]


def run(options: argparse.Namespace) -> None:
    """Run every kind on debdocs-dev and ruweb, and measure sketching."""
    folder = fresh("kinds")
    pages = load_pages(options)
    started = time.process_time()
    texts = texts_of(pages)
    reading = (time.process_time() - started) * 10_000 / max(len(texts), 1)
    seconds = _measure_sketching(texts)
    _show_cpu(options, seconds, reading)
    spark = start_session(master=f"local[{options.cores}]", settings={"spark.ui.enabled": "false"})
    for part in (0, 1):
        write_romip(folder / f"debdocs.{part}.xml", pages.iloc[part::2])
    truth = {pair for pair, resemblance in load_truth(options, pages).items() if resemblance >= THRESHOLD}
    inputs = [str(path) for path in sorted(folder.glob("debdocs.*.xml"))]
    _compare(options, spark, _Collection("debdocs", inputs, truth), folder)
    if not options.small:
        pairs = pd.read_csv(options.data / "ruweb" / "pairs_w5_j050.tsv", sep="\t")
        pairs = pairs[pairs["jaccard"] >= THRESHOLD]
        near = {(a + 1, b + 1) for a, b in zip(pairs["id_a"].tolist(), pairs["id_b"].tolist(), strict=True)}
        inputs = [str(options.data / "ruweb" / f"ruweb.xml.{part}.bz2") for part in (0, 1)]
        _compare(options, spark, _Collection("ruweb", inputs, near), folder)
    spark.stop()
    drop(folder)


def _compare(options: argparse.Namespace, spark: SparkSession, collection: _Collection, folder: Path) -> None:
    rows = []
    for name, settings in KINDS.items():
        values = _run_kind(spark, collection, folder / "run", settings)
        rows.append([name, *values.values()])
        record("kinds", options, collection=collection.name, kind=name, **values)
    headings = ["kind", "pairs", "precision", "recall", "not found", "broken", "bytes"]
    show(f"kinds: {collection.name}, resemblance {THRESHOLD}, {len(collection.truth):,} exact pairs", headings, rows)


def _run_kind(spark: SparkSession, collection: _Collection, output: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Run and check one kind; pairs with a short document are left out on both sides, as in the exact pairs."""
    pairs = {"threshold": THRESHOLD, "confirm": "none"} | settings.get("pairs", {})
    config = build_config(settings | {"pairs": pairs}, origin="bench")
    run_job(spark, collection.inputs, str(output), config, overwrite=True)
    report = check_run(DuckRun(str(output)))
    documents = pq.read_table(output / "documents", columns=["doc_id", "n_tokens", "sketch", "signature"]).to_pandas()
    short = {int(doc_id) for doc_id in documents.loc[documents["n_tokens"] < SHORT, "doc_id"]}
    pairs = pq.read_table(output / "pairs", columns=["doc_a", "doc_b"])
    ids = zip(map(int, pairs["doc_a"].to_pylist()), map(int, pairs["doc_b"].to_pylist()), strict=True)
    found = {(min(pair), max(pair)) for pair in ids if not short & set(pair)}
    compared = Compared(found, collection.truth, 0)
    held = documents["sketch"].map(len) + documents["signature"].map(
        lambda values: 0 if values is None else len(values)
    )
    missed = [finding.note for finding in report.findings if "not found" in finding.note]
    return {
        "found_pairs": len(found),
        "precision": round(compared.precision, 5),
        "recall": round(compared.recall, 5),
        "not_found": missed[0].split(": ")[1].split()[0] if missed else 0,
        "broken": sum(1 for finding in report.findings if finding.broken),
        "bytes": round(8 * float(held.mean())),
    }


def _show_cpu(options: argparse.Namespace, seconds: dict[str, float], reading: float) -> None:
    rows = []
    for name, taken in seconds.items():
        times, alone = (taken + reading) / (seconds["min-s 200"] + reading), taken / seconds["min-s 200"]
        rows.append([name, round(taken, 2), round(times, 2), round(alone, 2)])
        record("kinds", options, kind=name, cpu_10k=taken, reading_10k=reading, times_min_s=times)
    headings = ["kind", "CPU s/10k", "times min-s", "without reading"]
    show(f"kinds: sketching from texts; reading the pages {reading:.2f} s/10k before it", headings, rows)


def _measure_sketching(texts: list[str]) -> dict[str, float]:
    """Return the CPU seconds to sketch 10,000 documents, by kind."""
    data = [text.encode() for text in texts]
    buffer = np.frombuffer(b"".join(data), np.uint8)
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in data])]).astype(np.int64)
    recipes = {name: recipe_of(build_config(settings, origin="bench")) for name, settings in KINDS.items()}
    taken: dict[str, list[float]] = {name: [] for name in KINDS}
    for recipe in recipes.values():  # compile, and draw cached permutations
        _read_once(buffer, offsets[:3], recipe)
    for _ in range(ROUNDS):
        for name, recipe in recipes.items():
            taken[name].append(max(_read_once(buffer, offsets, recipe)))
    return {name: statistics.median(times) * 10_000 / max(len(texts), 1) for name, times in taken.items()}


def _read_once(buffer: NDArray[np.uint8], offsets: NDArray[np.int64], recipe: Recipe) -> list[float]:
    """Return the CPU seconds of each pass over the texts; kinds with a lexicon count its terms in a first pass."""
    started = time.process_time()
    if recipe.words is None:
        make_sketches(buffer, offsets, recipe)
        return [time.process_time() - started]
    counts = TermCounts(recipe.words.lexicon)
    counts.add(buffer, offsets)
    ids = np.sort(np.concatenate([np.empty(0, np.uint64), *(part.ids for part in counts.drain())]))
    counted = time.process_time()
    WordSketcher(recipe.words, ids).sketch(buffer, offsets)
    return [counted - started, time.process_time() - counted]
