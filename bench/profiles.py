"""What the profiles for scanned and for short texts find, on planted copies that were not used to choose them.

Scanned texts: two copies of each text with a share of its characters misread as a scanner does it: letters taken for
those that look alike, lost and doubled letters, lost blanks, hyphens at the ends of lines; in some lines more than in
others. Short texts: a copy of each sentence with one edit. A found pair is right if both texts come from one text;
of different texts it is wrong, unless their originals are a pair too, which then is the one that is counted.
"""

import argparse
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

import nddup
from bench.debdocs import load_pages, texts_of
from bench.recording import record, show
from bench.thresholds import read_licences, read_ruweb
from nddup.settings.load import load_config

SEED: Final = 63
TEXTS: Final = 200
"""Most texts of a set of scanned texts."""

SENTENCES: Final = 2000
"""Most sentences of a set."""

CONFUSED: Final = str.maketrans("lIO0ecbhunrta" + "сеинпшьо", "1l0Ocedbnutlo" + "ескпишъс")
"""Letters that scanners take for one another."""

LINE: Final = 70
"""Characters of a line of a scanned page."""

SHORT: Final[dict[str, dict[str, Any]]] = {
    "words at .5": {"shingle": {"length": 1}, "pairs": {"threshold": 0.5}},
    "words at .65": {"shingle": {"length": 1}, "pairs": {"threshold": 0.65}},
    "4 characters at .5": {"shingle": {"unit": "char", "length": 4}, "pairs": {"threshold": 0.5}},
    "4 characters at .65": {"shingle": {"unit": "char", "length": 4}, "pairs": {"threshold": 0.65}},
}


class Found(NamedTuple):
    """The pairs of a run by the numbers of their texts, and the CPU seconds that it took."""

    ends: Any
    seconds: float


def run(options: argparse.Namespace) -> None:
    """Measure short texts, then scanned ones."""
    drawn = np.random.default_rng(SEED)
    _short(options, drawn)
    _scanned(options, drawn)


def find(texts: Sequence[str], settings: dict[str, Any]) -> Found:
    """Return the pairs that a run in one process finds."""
    table = pa.table({"id": [str(i) for i in range(len(texts))], "text": list(texts)})
    started = time.process_time()
    settings = settings | {"clusters": {"mode": "none"}, "local": {"processes": 1}}
    pairs = nddup.find_duplicates(table, id="id", text="text", progress=False, **settings).pairs
    seconds = time.process_time() - started
    ends = np.array([pairs[name].to_pylist() for name in ("doc_a", "doc_b")], np.int64).reshape(2, -1)
    return Found(ends, seconds)


def count_wrong(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any], texts: int) -> int:
    """Count pairs of different texts; those of copies whose originals are a pair are not counted."""
    a, b = np.minimum(first % texts, second % texts), np.maximum(first % texts, second % texts)
    is_other = a != b
    is_original = (first < texts) & (second < texts)
    known = set((a * texts + b)[is_other & is_original].tolist())
    return len(known) + sum(key not in known for key in (a * texts + b)[is_other & ~is_original].tolist())


def _scanned(options: argparse.Namespace, drawn: np.random.Generator) -> None:
    loaded = load_pages(options)
    of_page = dict(zip(loaded["page_key"], texts_of(loaded), strict=True))  # one version of each page
    pages = [text for text in of_page.values() if 2_000 <= len(text) <= 20_000]  # noqa: PLR2004
    sets = {
        "debdocs-dev": pages[:: max(len(pages) // TEXTS, 1)][:TEXTS],
        "ruweb": [text[:20_000] for text in read_ruweb(options.data) if len(text) >= 800][:TEXTS],  # noqa: PLR2004
        "declarations": _declarations(options.data),
    }
    rows = []
    for name, texts in sets.items():
        n = len(texts)
        for share in (0.01, 0.02, 0.05):
            copies = [scan(text, share, drawn) for _ in range(2) for text in texts]
            for profile in ("recommended", "ocr"):
                found = find([*texts, *copies], load_config(profile).model_dump(exclude_unset=True))
                first, second = found.ends
                is_same = first % n == second % n
                of_original = int((is_same & (np.minimum(first, second) < n)).sum())
                of_copies = int(is_same.sum()) - of_original
                wrong = count_wrong(first, second, n)
                said = {
                    "set": name,
                    "texts": n,
                    "misread": share,
                    "profile": profile,
                    "copy and original": of_original / (2 * n),
                    "two copies": of_copies / n,
                    "precision": (of_original + of_copies) / max(of_original + of_copies + wrong, 1),
                    "CPU s": found.seconds,
                }
                record("profiles", options, **said)
                rows.append(list(said.values()))
    show("profiles", list(said), rows)


def scan(text: str, share: float, drawn: np.random.Generator) -> str:
    """Misread about `share` of the characters of a text; lines differ in how many."""
    kept: list[str] = []
    for start in range(0, len(text), LINE):
        line = text[start : start + LINE]
        rate = share * float(drawn.choice([0.5, 0.75, 2.0], p=[0.4, 0.4, 0.2])) * 10 / 9
        for letter, turn, kind in zip(line, drawn.random(len(line)), drawn.integers(0, 10, len(line)), strict=True):
            if turn >= (rate if letter != " " else 1.5 * rate):
                kept.append(letter)
            elif letter != " " and kind >= 3:  # noqa: PLR2004 - seven of ten
                wrong = letter.translate(CONFUSED)
                kept.append(wrong if wrong != letter else "i")
            elif letter != " " and kind:
                kept.append(letter * 2)
        if drawn.random() < share and start + LINE < len(text):
            kept.append("- ")
    return "".join(kept)


def _declarations(data: Path) -> list[str]:
    """Return the Universal Declaration of Human Rights in the languages that are in UTF-8."""
    with zipfile.ZipFile(data / "encodings" / "udhr.zip") as archive:
        names = [name for name in sorted(archive.namelist()) if "UTF8" in name]
        return [archive.read(name).decode("utf-8", "ignore") for name in names]


def _short(options: argparse.Namespace, drawn: np.random.Generator) -> None:
    sets = {"sentences of ruweb": read_ruweb(options.data), "sentences of licences": read_licences(options.data)}
    rows = []
    for name, texts in sets.items():
        sentences = dict.fromkeys(part.strip() for text in texts for part in text.split("."))
        chosen = [part for part in sentences if 8 <= len(part.split()) <= 20]  # noqa: PLR2004
        chosen = chosen[:: max(1, len(chosen) // SENTENCES)][:SENTENCES]
        n = len(chosen)
        for what, change in {"a word replaced": replace_word, "an edit": edit_words}.items():
            copies = [change(text, drawn) for text in chosen]
            for profile, settings in SHORT.items():
                found = find([*chosen, *copies], settings)
                first, second = found.ends
                right, wrong = int((first % n == second % n).sum()), count_wrong(first, second, n)
                precision, recall = right / max(right + wrong, 1), right / n
                said = {
                    "set": name,
                    "texts": n,
                    "copies with": what,
                    "settings": profile,
                    "precision": precision,
                    "recall": recall,
                    "F1": 2 * precision * recall / max(precision + recall, 1e-9),
                    "CPU s": found.seconds,
                }
                record("profiles", options, **said)
                rows.append(list(said.values()))
    show("short texts", list(said), rows)


def replace_word(text: str, drawn: np.random.Generator) -> str:
    """Replace one word by another of the same text's alphabet."""
    words = text.split()
    place = int(drawn.integers(len(words)))
    words[place] = "".join(drawn.permutation(list("".join(words)))[:7])
    return " ".join(words)


def edit_words(text: str, drawn: np.random.Generator) -> str:
    """Drop a word, put one in, exchange two neighbours, change the ending of two words, or misspell one."""
    words = text.split()
    place = int(drawn.integers(len(words) - 1))
    kind = int(drawn.integers(5))
    if kind == 0:
        del words[place]
    elif kind == 1:
        words.insert(place, "".join(drawn.permutation(list("".join(words)))[:6]))
    elif kind == 2:  # noqa: PLR2004
        words[place], words[place + 1] = words[place + 1], words[place]
    elif kind == 3:  # noqa: PLR2004
        words[place], words[place + 1] = words[place][:-1] + "s", words[place + 1] + "s"
    else:
        at = int(drawn.integers(len(words[place])))
        words[place] = words[place][:at] + words[place][at + 1 :] + "e"
    return " ".join(words)
