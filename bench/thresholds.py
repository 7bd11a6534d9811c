"""What each threshold finds, by collection.

Pairs are known because they are versions of one page (debdocs-dev), because the collection lists them (mccormick), or
because copies are planted: texts of ruweb and licences with words changed. A found pair is right if both texts come
from one text, or from two that are near-duplicates themselves, undamaged and by the same settings.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import nddup
from bench.debdocs import load_pages, texts_of
from bench.quality import read_texts
from bench.recording import record, show

THRESHOLDS = (0.5, 0.6, 0.7, 0.8)
LENGTHS = (5, 3)
TEXTS = 300
"""Most texts of a planted set."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Collection(NamedTuple):
    """Texts, and the text that each is a copy or a version of; texts of one origin are to be found."""

    name: str
    texts: list[str]
    origins: list[int]


def run(options: argparse.Namespace) -> None:
    """Measure the thresholds."""
    drawn = np.random.default_rng(7)
    rows = []
    for collection in _collections(options, drawn):
        for length in LENGTHS:
            found = find_pairs(collection.texts, pairs={"threshold": THRESHOLDS[0]}, shingle={"length": length})
            for threshold in THRESHOLDS:
                right, wrong, missed = _judge(collection, found, threshold)
                said = {
                    "collection": collection.name,
                    "texts": len(collection.texts),
                    "words": length,
                    "threshold": threshold,
                    "precision": right / max(right + wrong, 1),
                    "recall": right / max(right + missed, 1),
                }
                record("thresholds", options, **said)
                rows.append(list(said.values()))
    show("thresholds", list(said), rows)


def find_pairs(texts: Sequence[str], **settings: Any) -> list[tuple[int, int, float]]:  # noqa: ANN401 - settings
    """Return the pairs that a run finds, by the numbers of the texts; their edit similarity where that confirms."""
    table = pa.table({"id": [str(i) for i in range(len(texts))], "text": list(texts)})
    pairs = nddup.find_duplicates(table, id="id", text="text", progress=False, **settings).pairs
    value = "edit" if settings.get("pairs", {}).get("confirm") == "edit" else "resemblance"
    columns = (pairs[name].to_pylist() for name in ("doc_a", "doc_b", value))
    return [(int(a), int(b), r) for a, b, r in zip(*columns, strict=True)]


def _judge(collection: Collection, found: list[tuple[int, int, float]], threshold: float) -> tuple[int, int, int]:
    """Return the pairs that are rightly found, those wrongly found, and those missed."""
    origins = collection.origins
    groups: dict[int, int] = {}
    for origin in origins:
        groups[origin] = groups.get(origin, 0) + 1
    due = sum(n * (n - 1) // 2 for n in groups.values())
    kept = {(a, b) for a, b, resemblance in found if resemblance >= threshold}
    right = sum(origins[a] == origins[b] for a, b in kept)
    first = {origin: i for i, origin in reversed(list(enumerate(origins)))}
    excused = sum(
        (min(first[origins[a]], first[origins[b]]), max(first[origins[a]], first[origins[b]])) in kept
        and (a, b) != (first[origins[a]], first[origins[b]])
        and (b, a) != (first[origins[a]], first[origins[b]])
        for a, b in kept
        if origins[a] != origins[b]
    )
    return right, len(kept) - right - excused, due - right


def _collections(options: argparse.Namespace, drawn: np.random.Generator) -> list[Collection]:
    """Return the collections of the table."""
    pages = load_pages(options)
    made = [Collection("debdocs-dev", texts_of(pages), np.unique(pages["page_key"], return_inverse=True)[1].tolist())]
    made.append(read_mccormick(options.data / "mccormick"))
    for name, texts in (("ruweb", read_ruweb(options.data)), ("licences", read_licences(options.data))):
        for share in (0.02, 0.05):
            chosen = texts[:TEXTS]
            copies = [_change_words(text, share, drawn) for text in chosen]
            made.append(Collection(f"{name}, {share:.0%} of words", chosen + copies, [*range(len(chosen))] * 2))
    return made


def read_mccormick(folder: Path) -> Collection:
    """Return the articles; listed pairs have one origin."""
    lines = (folder / "articles_1000.train").read_text(encoding="utf-8").splitlines()
    names, texts = zip(*(line.split(" ", 1) for line in lines), strict=True)
    origin = {name: i for i, name in enumerate(names)}
    for line in (folder / "articles_1000.truth").read_text(encoding="utf-8").splitlines():
        one, other = line.split()
        origin[other] = origin[one]
    return Collection("mccormick", list(texts), [origin[name] for name in names])


def read_ruweb(data: Path) -> list[str]:
    """Return the texts of the Russian pages of 50 words or more."""
    texts = [text for _, text in read_texts(data / "ruweb" / "ruweb.xml.0.bz2")]
    return [text for text in texts if len(text.split()) >= 50]  # noqa: PLR2004 - as the file of exact pairs


def read_licences(data: Path) -> list[str]:
    """Return distinct paragraphs of copyright files of 50 words or more."""
    raw = "\n\n".join(path.read_text(encoding="utf-8") for path in sorted((data / "licences").glob("*.copyright")))
    parts = [" ".join(part.split()) for part in re.split(r"\n[ .]*\n", raw)]
    return list(dict.fromkeys(part for part in parts if len(part.split()) >= 50))  # noqa: PLR2004 - likewise


def _change_words(text: str, share: float, drawn: np.random.Generator) -> str:
    """Replace words at random places; at least one."""
    words = text.split()
    for place in drawn.choice(len(words), max(1, round(share * len(words))), replace=False).tolist():
        words[place] = "".join(drawn.choice(list(LETTERS), 7))
    return " ".join(words)
