"""Peers: the whole job against two MinHash libraries on the same texts: documents per CPU second, and what comes out.

`python -m bench.peers LIBRARY TEXTS OUTPUT` is one of their runs: read JSON lines, find pairs, write them.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

from bench.debdocs import SHORT, load_pages, load_truth, reworded, texts_of
from bench.processes import Usage, nddup, run_measured
from bench.recording import drop, fresh, record, show

LENGTH, BANDS, ROWS = 5, 14, 8
SLOTS = BANDS * ROWS
THRESHOLD = 0.7
WORD = re.compile(r"\w+")
START = "from nddup.run.session import start_session; start_session(master='local[{cores}]', settings={{}}).stop()"
LACKS = {
    "nddup": "nothing of these",
    "datasketch": "no check of candidates, clusters, keep-list, rejects; one process, all in memory",
    "rensa": "no check of candidates, clusters, keep-list, rejects; one process, all in memory",
}


def run(options: argparse.Namespace) -> None:
    """Write the texts once, run every system on them, print speed, precision and recall."""
    folder = fresh("peers")
    pages = load_pages(options)
    pages = pages[pages["n_tokens"] >= SHORT].reset_index(drop=True)
    true = {(f"{a}.{copy}", f"{b}.{copy}") for a, b in load_truth(options, pages) for copy in range(options.copies)}
    texts, none = folder / "texts.jsonl", folder / "none.jsonl"
    documents = _write_texts(texts, pages["doc_id"].tolist(), texts_of(pages), options.copies)
    none.write_text("", encoding="utf-8")
    rows, values = [], {}
    for name in LACKS:
        usage, start, outputs = _measure(name, texts, none, options)
        cpu = usage.cpu_seconds - start.cpu_seconds
        for kind, found in outputs.items():
            hits = len(found & _ordered(true))
            precision, recall = hits / max(len(found), 1), hits / max(len(true), 1)
            label = f"{name}{kind}"
            rows.append([label, usage.seconds, usage.cpu_seconds, start.cpu_seconds, documents / cpu, len(found),
                         precision, recall])  # fmt: skip
            values[label] = {"seconds": usage.seconds, "cpu_seconds": usage.cpu_seconds, "start": start.cpu_seconds,
                             "per_cpu_second": documents / cpu, "pairs": len(found), "precision": precision,
                             "recall": recall}  # fmt: skip
    title = f"peers: {documents:,} texts, {len(true):,} pairs of exact resemblance >= {THRESHOLD}"
    headings = ["system", "seconds", "CPU s", "start", "docs per CPU s", "pairs", "precision", "recall"]
    show(f"{title} (documents per CPU second beyond the start)", headings, rows)
    show("peers: what each does not do", ["system", ""], list(LACKS.items()))
    record("peers", options, documents=documents, true_pairs=len(true), copies=options.copies, systems=values)
    drop(folder)


def _write_texts(path: Path, ids: list[int], texts: list[str], copies: int) -> int:
    with path.open("w", encoding="utf-8") as file:
        for copy in range(copies):
            for doc_id, text in zip(ids, texts, strict=True):
                file.write(json.dumps({"id": f"{doc_id}.{copy}", "text": reworded(text, copy)}) + "\n")
    return len(ids) * copies


def _measure(
    name: str, texts: Path, none: Path, options: argparse.Namespace
) -> tuple[Usage, Usage, dict[str, set[tuple[str, str]]]]:
    """What a system used, what its bare start uses, and its pairs (of a library, before and after its own estimate)."""
    output = texts.with_name(f"{name}.out")
    if name == "nddup":
        settings = [f"--set=pairs.threshold={THRESHOLD}", "--set=input.markup=text", f"--master=local[{options.cores}]"]
        start = run_measured([sys.executable, "-c", START.format(cores=options.cores)])
        usage = run_measured([nddup(), "run", str(texts), "--output", str(output), *settings])
        table = pq.read_table(output / "pairs", columns=["doc_a", "doc_b"])
        return usage, start, {"": _ordered(zip(table["doc_a"].to_pylist(), table["doc_b"].to_pylist(), strict=True))}
    start = run_measured([sys.executable, "-m", "bench.peers", name, str(none), str(output)])
    usage = run_measured([sys.executable, "-m", "bench.peers", name, str(texts), str(output)])
    lines = [line.split("\t") for line in output.read_text(encoding="utf-8").splitlines()]
    return usage, start, {
        ", candidates": _ordered((a, b) for a, b, _ in lines),
        f", estimate >= {THRESHOLD}": _ordered((a, b) for a, b, estimate in lines if float(estimate) >= THRESHOLD),
    }  # fmt: skip


def _ordered(pairs: Iterator[tuple[str, str]] | set[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(min(pair), max(pair)) for pair in pairs}


def _shingles(path: Path) -> Iterator[tuple[str, list[str]]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            words = WORD.findall(row["text"].lower())
            ends = range(max(len(words) - LENGTH + 1, 1))
            yield row["id"], list({" ".join(words[i : i + LENGTH]) for i in ends})


def _by_datasketch(path: Path) -> Iterator[tuple[str, str, float]]:
    from datasketch import MinHash, MinHashLSH  # noqa: PLC0415 - each run loads its own library

    index = MinHashLSH(num_perm=SLOTS, params=(BANDS, ROWS))
    made: dict[str, MinHash] = {}
    for doc_id, shingles in _shingles(path):
        signature = MinHash(num_perm=SLOTS)
        signature.update_batch([shingle.encode() for shingle in shingles])
        for other in index.query(signature):
            yield other, doc_id, signature.jaccard(made[other])
        index.insert(doc_id, signature)
        made[doc_id] = signature


def _by_rensa(path: Path) -> Iterator[tuple[str, str, float]]:
    from rensa import RMinHash, RMinHashLSH  # noqa: PLC0415 - each run loads its own library

    index = RMinHashLSH(THRESHOLD, SLOTS, BANDS)
    ids: list[str] = []
    made: list[RMinHash] = []
    for doc_id, shingles in _shingles(path):
        signature = RMinHash(SLOTS, 1)
        signature.update(shingles)
        for other in index.query(signature):
            yield ids[other], doc_id, signature.jaccard(made[other])
        index.insert(len(ids), signature)
        ids.append(doc_id)
        made.append(signature)


def main() -> None:
    """One run of a library."""
    name, texts, output = sys.argv[1:]
    library: dict[str, Callable[[Path], Iterator[tuple[str, str, float]]]] = {
        "datasketch": _by_datasketch,
        "rensa": _by_rensa,
    }
    with Path(output).open("w", encoding="utf-8") as file:
        file.writelines(f"{a}\t{b}\t{estimate}\n" for a, b, estimate in library[name](Path(texts)))


if __name__ == "__main__":
    main()
