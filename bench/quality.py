"""Quality: the pairs of a whole job against the exact pairs of the same documents, and the causes of differences."""

import argparse
import bz2
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from bench.debdocs import SHORT, Pair, jaccard, load_pages, load_truth, shingles_of, texts_of, write_romip
from bench.processes import nddup, run_measured
from bench.recording import drop, fresh, record, show
from nddup.reading.detect import read_head
from nddup.reading.records import Record, parse_record, record_text

HEAD_BYTES = 1 << 18


@dataclass(frozen=True)
class Compared:
    """Found pairs and true ones; `touching_short` pairs are left out of precision and recall."""

    found: set[Pair]
    true: set[Pair]
    touching_short: int

    @property
    def precision(self) -> float:
        """Share of the found pairs that are true."""
        return len(self.found & self.true) / max(len(self.found), 1)

    @property
    def recall(self) -> float:
        """Share of the true pairs that were found."""
        return len(self.found & self.true) / max(len(self.true), 1)


def run(options: argparse.Namespace) -> None:
    """Run the job on debdocs-dev at 0.7 and 0.8 and on ruweb at 0.7, and explain all differences."""
    folder = fresh("quality")
    _debdocs(options, folder)
    _ruweb(options, folder)
    drop(folder)


def _debdocs(options: argparse.Namespace, folder: Path) -> None:
    pages = load_pages(options)
    truth = load_truth(options, pages)
    for part in (0, 1):
        write_romip(folder / f"debdocs.{part}.xml", pages.iloc[part::2])
    inputs = sorted(str(path) for path in folder.glob("debdocs.*.xml"))
    short = set(pages.loc[pages["n_tokens"] < SHORT, "doc_id"].tolist())
    shingles = dict(zip(pages["doc_id"].tolist(), shingles_of(texts_of(pages)), strict=True))
    rows = []
    for threshold in (0.7, 0.8):
        found, counts = _run_job(inputs, folder / f"run-{threshold}", threshold, options)
        is_short = {pair for pair in found if short & set(pair)}
        compared = Compared(found - is_short, {pair for pair, j in truth.items() if j >= threshold}, len(is_short))
        rows.append(_row(f"debdocs {threshold}", compared, counts))
        differences = _explain(compared, shingles, threshold)
        _show_differences(f"debdocs {threshold}", differences)
        record("quality", options, collection="debdocs", threshold=threshold, **_values(compared), **counts,
               differences=differences)  # fmt: skip
    _show_quality(rows)


def _ruweb(options: argparse.Namespace, folder: Path) -> None:
    inputs = [options.data / "ruweb" / f"ruweb.xml.{part}.bz2" for part in (0, 1)]
    pairs = pd.read_csv(options.data / "ruweb" / "pairs_w5_j050.tsv", sep="\t")
    pairs = pairs[pairs["jaccard"] >= 0.7]  # noqa: PLR2004 - the threshold of this measurement
    true = {(a + 1, b + 1) for a, b in zip(pairs["id_a"].tolist(), pairs["id_b"].tolist(), strict=True)}
    found, counts = _run_job([str(path) for path in inputs], folder / "run-ruweb", 0.7, options)
    texts = {doc_id: text for path in inputs for doc_id, text in read_texts(path)}
    shingles = dict(zip(texts, shingles_of(list(texts.values())), strict=True))
    short = set(pq.read_table(folder / "run-ruweb" / "documents", columns=["doc_id", "n_tokens"],
                              filters=[("n_tokens", "<", SHORT)])["doc_id"].to_pylist())  # fmt: skip
    is_short = {pair for pair in found if short & {str(pair[0]), str(pair[1])}}
    compared = Compared(found - is_short, true, len(is_short))
    differences = _explain(compared, shingles, 0.7)
    _show_differences("ruweb 0.7", differences)
    _show_quality([_row("ruweb 0.7", compared, counts)])
    record("quality", options, collection="ruweb", threshold=0.7, **_values(compared), **counts,
           differences=differences)  # fmt: skip


def _run_job(
    inputs: list[str], output: Path, threshold: float, options: argparse.Namespace
) -> tuple[set[Pair], dict[str, object]]:
    """Run the job; return its pairs as numbers, smaller id first, and the sizes of its tables."""
    settings = [f"--set=pairs.threshold={threshold}", f"--master=local[{options.cores}]"]
    usage = run_measured([nddup(), "run", *inputs, "--output", str(output), *settings])
    pairs = pq.read_table(output / "pairs", columns=["doc_a", "doc_b"])
    ids = zip(map(int, pairs["doc_a"].to_pylist()), map(int, pairs["doc_b"].to_pylist()), strict=True)
    counts: dict[str, object] = {
        name: pq.read_table(output / name, columns=[]).num_rows for name in ("documents", "rejects", "clusters")
    }
    counts["kept"] = sum(pq.read_table(output / "keep", columns=["kept"])["kept"].to_pylist())
    counts["seconds"] = round(usage.seconds, 1)
    return {(min(pair), max(pair)) for pair in ids}, counts


def read_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each record of a collection, by the functions of the job, without Spark."""
    data = bz2.decompress(path.read_bytes())
    head = read_head(data[:HEAD_BYTES])
    for chunk in data.split(head.separator):
        found = parse_record(chunk, head, is_last=False)
        if isinstance(found, Record) and found.doc_id:
            yield int(found.doc_id), record_text(found)


def _explain(compared: Compared, shingles: dict[int, np.ndarray], threshold: float) -> dict[str, int]:
    """Count differences by cause: `estimate` if our text's exact resemblance agrees with the truth, else `text`."""
    causes: Counter[str] = Counter()
    for kind, pairs in (("missed", compared.true - compared.found), ("false", compared.found - compared.true)):
        for a, b in pairs:
            is_near = jaccard(shingles[a], shingles[b]) >= threshold
            causes[f"{kind}, {'estimate' if is_near == (kind == 'missed') else 'text'}"] += 1
    return {f"{kind}, {cause}": causes[f"{kind}, {cause}"] for kind in ("missed", "false")
            for cause in ("estimate", "text")}  # fmt: skip


def _row(name: str, compared: Compared, counts: dict[str, object]) -> list[object]:
    return [
        name, counts["documents"], len(compared.true), len(compared.found), compared.touching_short,
        compared.precision, compared.recall, counts["clusters"], counts["kept"], counts["seconds"],
    ]  # fmt: skip


def _values(compared: Compared) -> dict[str, object]:
    return {
        "true_pairs": len(compared.true),
        "found_pairs": len(compared.found),
        "pairs_with_short": compared.touching_short,
        "precision": round(compared.precision, 5),
        "recall": round(compared.recall, 5),
    }


def _show_quality(rows: list[list[object]]) -> None:
    headings = ["collection", "documents", "true pairs", "found", "with short", "precision", "recall", "clusters"]
    show("quality: pairs of the job against exact pairs", [*headings, "kept", "seconds"], rows)


def _show_differences(name: str, differences: dict[str, int]) -> None:
    show(f"quality: why {name} differs (estimate: exact resemblance of our text agrees with the truth)",
         ["cause", "pairs"], list(differences.items()))  # fmt: skip
