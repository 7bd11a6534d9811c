"""The tables of docs/howto/choose-a-threshold.md, in Markdown: what each threshold finds of pairs that are labelled.

Labelled sets are not planted: versions of one page (debdocs-dev), one licence by the judgement of curators
(scancode-licences, at most EACH texts of a licence), pairs that a collection lists (mccormick). Intervals are those of
drawing the labels anew. Short texts are edited as in `profiles`: sentences of ruweb and of copyright files, which chose
no setting, and texts of the kinds by which `short` was chosen: titles of Debian's packages (`apt-cache dumpavail`) and,
with `--summaries`, a table of summaries. With `--versions`, folders that hold versions of one documentation as HTML: a
page's label is its path, and its whole text is beside its main text.
"""

import argparse
import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.debdocs import load_pages, texts_of
from bench.profiles import SENTENCES, SHORT, count_wrong, edit_words, find, replace_word
from bench.recording import record
from bench.thresholds import Collection, find_pairs, read_licences, read_mccormick, read_ruweb
from nddup.reading.records import Record, read_text

SEED: Final = 631
THRESHOLDS: Final = (0.5, 0.6, 0.7, 0.8)
EACH: Final = 20
"""Most texts of one licence: three quarters of all pairs would be of one."""

DRAWS: Final = 300
"""How often labels are drawn anew for an interval of 95 %."""

WRONG: Final = 4
"""Wrong pairs that are shown of a set of short texts."""

GENERIC: Final = re.compile(r"proprietary|other-|public-domain|commercial|unknown|warranty|generic| |free-unknown")
"""Labels that are no licence, or several."""

RULES: Final[dict[str, dict[str, Any]]] = {
    "5 words": {"pairs": {"threshold": THRESHOLDS[0]}},
    "3 words": {"pairs": {"threshold": THRESHOLDS[0]}, "shingle": {"length": 3}},
    "edit": {"pairs": {"threshold": 0.4, "confirm": "edit", "edit_threshold": THRESHOLDS[0]}},
}

Counts = NDArray[np.float64]


def run(options: argparse.Namespace) -> None:
    """Print both tables."""
    _labelled(options, np.random.default_rng(SEED))
    _framed(options, np.random.default_rng(SEED))
    _short(options, np.random.default_rng(SEED))


def _labelled(options: argparse.Namespace, drawn: np.random.Generator) -> None:
    print("| set | shingles | " + " | ".join(map(str, THRESHOLDS)) + " |\n|---|---|" + "---|" * len(THRESHOLDS))
    for collection in _collections(options, drawn):
        for name in RULES:
            _judge(collection, name, options, drawn)


def _framed(options: argparse.Namespace, drawn: np.random.Generator) -> None:
    """Judge versions of one documentation by their whole texts and by their main texts."""
    files = [(str(path.relative_to(folder)), path) for folder in options.versions for path in folder.rglob("*.html")]
    origins = np.unique([name for name, _ in files], return_inverse=True)[1].tolist()
    for part in ("all", "main") if files else ():
        pages = [Record(None, None, (path.read_bytes(),), is_markup=True) for _, path in files]
        texts = [read_text(page, part=part).text for page in pages]
        _judge(Collection(f"versions, text={part}", texts, origins), "5 words", options, drawn)


def _judge(collection: Collection, rule: str, options: argparse.Namespace, drawn: np.random.Generator) -> None:
    """Print a row: precision, recall and F1, with its interval, at each threshold."""
    pairs = find_pairs(collection.texts, **RULES[rule])
    cells = []
    for threshold in THRESHOLDS:
        counts = _count(collection, [(a, b) for a, b, r in pairs if r >= threshold])
        precision, recall, value = _measures(counts.sum(axis=0))
        again = [_measures(counts[drawn.integers(0, len(counts), len(counts))].sum(axis=0))[2] for _ in range(DRAWS)]
        low, high = np.quantile(again, [0.025, 0.975])
        said = {"precision": precision, "recall": recall, "F1": value, "low": low, "high": high}
        record("labels", options, set=collection.name, shingles=rule, threshold=threshold, **said)
        cells.append(f"{_cell(precision, recall, value)} ({low:.2f}–{high:.2f})".replace("0.", "."))
    print(f"| {collection.name}, {len(collection.texts):,} | {rule} | {' | '.join(cells)} |", flush=True)


def _collections(options: argparse.Namespace, drawn: np.random.Generator) -> Iterator[Collection]:
    yield read_mccormick(options.data / "mccormick")
    with gzip.open(options.data / "scancode-licences" / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    of_label: dict[str, list[str]] = {}
    for row in rows:
        if not GENERIC.search(row["license_expression"]):
            of_label.setdefault(row["license_expression"], []).append(row["text"])
    kept = [[texts[i] for i in drawn.permutation(len(texts))[:EACH]] for texts in of_label.values()]
    yield Collection(
        "licences", list(chain.from_iterable(kept)), [label for label, texts in enumerate(kept) for _ in texts]
    )
    pages = load_pages(options)
    origins = np.unique(pages["page_key"], return_inverse=True)[1].tolist()
    yield Collection("debdocs-dev", texts_of(pages), origins)


def _count(collection: Collection, pairs: Sequence[tuple[int, int]]) -> Counts:
    """Count, for each label, the pairs rightly found, wrongly found (half for each of two labels), and missed."""
    origins = np.unique(collection.origins, return_inverse=True)[1]
    sizes = np.bincount(origins).astype(np.float64)
    first, second = origins[np.array(pairs, np.int64).reshape(-1, 2).T]
    right = np.bincount(first[first == second], minlength=len(sizes)).astype(np.float64)
    wrong = sum(np.bincount(ends[first != second], minlength=len(sizes)) / 2 for ends in (first, second))
    return np.stack([right, wrong, sizes * (sizes - 1) / 2 - right], axis=1)


def _measures(counts: Counts) -> tuple[float, float, float]:
    """Return precision, recall and F1."""
    right, wrong, missed = counts.tolist()
    return right / max(right + wrong, 1), right / max(right + missed, 1), 2 * right / max(2 * right + wrong + missed, 1)


def _cell(precision: float, recall: float, value: float) -> str:
    return f"{precision:.2f}, {recall:.2f}, **{value:.2f}**".replace("0.", ".")


def _short(options: argparse.Namespace, drawn: np.random.Generator) -> None:
    pages, copyrights = (
        [part.strip() for text in texts for part in text.split(".")]
        for texts in (read_ruweb(options.data), read_licences(options.data))
    )
    sets = {
        "sentences of ruweb": (pages, 8, 20),
        "sentences of copyright files": (copyrights, 8, 20),
        "titles of Debian's packages": (_debian(), 4, 12),
        "summaries": (_summaries(options.summaries), 8, 20),
    }
    print(f"\n| short texts | change | {' | '.join(SHORT)} |\n|---|---|" + "---|" * len(SHORT))
    for name, (texts, low, high) in sets.items():
        able = [text for text in dict.fromkeys(texts) if low <= len(text.split()) <= high]
        chosen = [able[i] for i in np.sort(drawn.permutation(len(able))[:SENTENCES]).tolist()]
        n = len(chosen)
        for what, change in {"a word replaced": replace_word, "an edit": edit_words}.items() if n else ():
            copies, cells, ends = [change(text, drawn) for text in chosen], [], np.empty((2, 0), np.int64)
            for profile, settings in SHORT.items():
                ends, seconds = find([*chosen, *copies], settings)
                right = int((ends[0] % n == ends[1] % n).sum())
                precision, recall, value = _measures(
                    np.array([right, count_wrong(ends[0], ends[1], n), n - right], np.float64)
                )
                said = {"precision": precision, "recall": recall, "F1": value, "CPU s": seconds}
                record("labels", options, set=name, texts=n, change=what, settings=profile, **said)
                cells.append(_cell(precision, recall, value))
            print(f"| {name}, {n:,} | {what} | {' | '.join(cells)} |", flush=True)
            _show_wrong([*chosen, *copies], ends, n)


def _show_wrong(texts: Sequence[str], ends: NDArray[np.int64], originals: int) -> None:
    """Print some wrong pairs of the last settings, as a comment."""
    wrong = [(a, b) for a, b in ends.T.tolist() if a % originals != b % originals and max(a, b) < originals]
    for a, b in wrong[:WRONG]:
        print(" ".join(f"<!-- {texts[a]} / {texts[b]} -->".split()))


def _debian() -> list[str]:
    """Return the titles of the packages that apt knows; none where there is no apt."""
    if shutil.which("apt-cache") is None:
        return []
    listed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout  # noqa: S607
    return re.findall(r"^Description(?:-en)?: (.*)$", listed, re.MULTILINE)


def _summaries(path: Path | None) -> list[str]:
    """Return the column `summary` of a table with tabs."""
    if path is None:
        return []
    with path.open(encoding="utf-8") as lines:
        at = next(lines).rstrip("\n").split("\t").index("summary")
        return [line.rstrip("\n").split("\t")[at] for line in lines]
