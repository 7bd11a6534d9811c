"""What each threshold finds, by collection, and what the profiles for short, scanned and large collections find.

Pairs are known because they are versions of one page (debdocs-dev), because the collection lists them (mccormick), or
because copies are planted: texts of ruweb and licences with words changed, sentences with one word changed, texts with
letters changed as by a scanner. A found pair is right if both texts come from one text, or from two that are
near-duplicates themselves, undamaged and by the same settings.
"""

import argparse
import re
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import nddup
from bench.debdocs import load_pages, texts_of
from bench.quality import read_texts
from bench.recording import record, show
from nddup.settings.load import load_config

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
    """Measure the thresholds, then the profiles."""
    drawn = np.random.default_rng(7)
    rows = []
    for collection in _collections(options, drawn):
        for length in LENGTHS:
            found = _find(collection.texts, pairs={"threshold": THRESHOLDS[0]}, shingle={"length": length})
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
    _profiles(options, drawn)


def _find(texts: Sequence[str], **settings: Any) -> list[tuple[int, int, float]]:  # noqa: ANN401 - settings
    """Return the pairs that a run finds, by the numbers of the texts."""
    table = pa.table({"id": [str(i) for i in range(len(texts))], "text": list(texts)})
    pairs = nddup.find_duplicates(table, id="id", text="text", progress=False, **settings).pairs
    columns = (pairs[name].to_pylist() for name in ("doc_a", "doc_b", "resemblance"))
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
    made.append(_mccormick(options.data / "mccormick"))
    for name, texts in (("ruweb", _ruweb(options.data)), ("licences", _licences(options.data))):
        for share in (0.02, 0.05):
            chosen = texts[:TEXTS]
            copies = [_change_words(text, share, drawn) for text in chosen]
            made.append(Collection(f"{name}, {share:.0%} of words", chosen + copies, [*range(len(chosen))] * 2))
    return made


def _mccormick(folder: Path) -> Collection:
    """Return the articles; listed pairs have one origin."""
    lines = (folder / "articles_1000.train").read_text(encoding="utf-8").splitlines()
    names, texts = zip(*(line.split(" ", 1) for line in lines), strict=True)
    origin = {name: i for i, name in enumerate(names)}
    for line in (folder / "articles_1000.truth").read_text(encoding="utf-8").splitlines():
        one, other = line.split()
        origin[other] = origin[one]
    return Collection("mccormick", list(texts), [origin[name] for name in names])


def _ruweb(data: Path) -> list[str]:
    """Return the texts of the Russian pages of 50 words or more."""
    texts = [text for _, text in read_texts(data / "ruweb" / "ruweb.xml.0.bz2")]
    return [text for text in texts if len(text.split()) >= 50]  # noqa: PLR2004 - as the file of exact pairs


def _licences(data: Path) -> list[str]:
    """Return distinct paragraphs of copyright files of 50 words or more."""
    raw = "\n\n".join(path.read_text(encoding="utf-8") for path in sorted((data / "licences").glob("*.copyright")))
    parts = [" ".join(part.split()) for part in re.split(r"\n[ .]*\n", raw)]
    return list(dict.fromkeys(part for part in parts if len(part.split()) >= 50))  # noqa: PLR2004 - likewise


def _declarations(data: Path) -> list[str]:
    """Return the Universal Declaration of Human Rights in the languages that are in UTF-8."""
    with zipfile.ZipFile(data / "encodings" / "udhr.zip") as archive:
        names = [name for name in sorted(archive.namelist()) if "UTF8" in name]
        return [archive.read(name).decode("utf-8", "ignore") for name in names]


def _change_words(text: str, share: float, drawn: np.random.Generator) -> str:
    """Replace words at random places; at least one."""
    words = text.split()
    for place in drawn.choice(len(words), max(1, round(share * len(words))), replace=False).tolist():
        words[place] = "".join(drawn.choice(list(LETTERS), 7))
    return " ".join(words)


def _misread(text: str, share: float, drawn: np.random.Generator) -> str:
    """Replace letters at random places by others."""
    letters = list(text)
    places = [i for i, letter in enumerate(letters) if letter.isalpha()]
    for place in drawn.choice(places, round(share * len(places)), replace=False).tolist():
        letters[place] = str(drawn.choice(list(LETTERS)))
    return "".join(letters)


def _profiles(options: argparse.Namespace, drawn: np.random.Generator) -> None:
    """Measure each profile on planted copies that were not used to choose it, beside the default."""
    scans = [text[:20_000] for text in texts_of(load_pages(options)) if len(text) >= 2_000][::40][:TEXTS]  # noqa: PLR2004
    scans += _declarations(options.data)
    sentences = [part.strip() for text in _ruweb(options.data) + _licences(options.data) for part in text.split(".")]
    short = list(dict.fromkeys(part for part in sentences if 8 <= len(part.split()) <= 20))  # noqa: PLR2004
    sets: list[tuple[str, str, list[str], Callable[[str], str]]] = [
        ("short", "one word of 8 to 20 changed", short[:: max(1, len(short) // 2000)],
         lambda text: _change_words(text, 0, drawn)),
        *(("ocr", f"{share:.0%} of letters changed", scans, lambda text, share=share: _misread(text, share, drawn))
          for share in (0.01, 0.02, 0.05)),
    ]  # fmt: skip
    rows = []
    for profile, what, texts, damage in sets:
        collection = Collection(profile, texts + [damage(text) for text in texts], [*range(len(texts))] * 2)
        for name in ("recommended", profile):
            config = load_config(name).model_dump(exclude_unset=True)
            spent = time.process_time()
            found = _find(collection.texts, **config)
            spent = time.process_time() - spent
            right, wrong, missed = _judge(collection, found, 0.0)
            said = {
                "profile": name,
                "copies": what,
                "texts": len(texts),
                "recall": right / (right + missed),
                "precision": right / max(right + wrong, 1),
                "further pairs": len(found) - right,
                "CPU s": spent,
            }
            record("profiles", options, **said)
            rows.append(list(said.values()))
    show("profiles", list(said), rows)
