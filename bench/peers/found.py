"""Scores of the pairs that a system found, against the exact pairs."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from bench.peers.texts import THRESHOLD

Pair = tuple[str, str]


@dataclass(frozen=True)
class Score:
    """The number of pairs that a system reports, those of them that are true, and all true pairs."""

    pairs: int
    hits: int
    true: int

    @property
    def precision(self) -> float:
        """Share of the reported pairs that are true."""
        return self.hits / max(self.pairs, 1)

    @property
    def recall(self) -> float:
        """Share of the true pairs that are reported."""
        return self.hits / max(self.true, 1)


def score_run(folder: Path, true: set[Pair]) -> Score:
    """Score the table `pairs` of a run of nddup."""
    table = pq.read_table(folder / "pairs", columns=["doc_a", "doc_b"])
    return _score(zip(table["doc_a"].to_pylist(), table["doc_b"].to_pylist(), strict=True), true)


def score_pairs(path: Path, true: set[Pair]) -> Score:
    """Score lines of two ids and an estimate, without pairs below the threshold."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return _score(((a, b) for a, b, estimate in rows if float(estimate) >= THRESHOLD), true)


def score_groups(path: Path, true: set[Pair]) -> Score:
    """Score lines of ids, where every two documents of a group are a pair; the pairs are counted, not listed."""
    groups = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    number = {doc_id: place for place, group in enumerate(groups) for doc_id in group}
    hits = sum(number.get(a, -1) == number.get(b, -2) for a, b in true)
    return Score(sum(len(group) * (len(group) - 1) // 2 for group in groups), hits, len(true))


def write_texts(path: Path, rows: Iterable[Pair]) -> int:
    """Write (id, text) as JSON lines; return how many."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for count, (doc_id, text) in enumerate(rows, 1):  # noqa: B007 - the last is the number
            file.write(json.dumps({"id": doc_id, "text": text}) + "\n")
    return count


def ordered(pairs: Iterable[Pair]) -> set[Pair]:
    """Return each pair once, the smaller id first."""
    return {(min(pair), max(pair)) for pair in pairs}


def _score(pairs: Iterable[Pair], true: set[Pair]) -> Score:
    found = ordered(pairs)
    return Score(len(found), len(found & true), len(true))
