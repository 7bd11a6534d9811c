"""Functions shared by the programs of the peers: reading texts as shingles, and writing pairs and groups.

They run in environments without nddup, so only the standard library is imported here.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

LENGTH, BANDS, ROWS = 5, 14, 8
SLOTS = BANDS * ROWS
THRESHOLD = 0.7
WORD = re.compile(r"\w+")


def read_shingles(path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the id and the distinct shingles of `LENGTH` words of each line `{"id", "text"}`."""
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            words = WORD.findall(row["text"].lower())
            ends = range(max(len(words) - LENGTH + 1, 1))
            yield row["id"], list({" ".join(words[i : i + LENGTH]) for i in ends})


def write_pairs(path: str, pairs: Iterable[tuple[str, str, float]]) -> None:
    """Write a line for each pair: both ids and the estimate, separated by tabs."""
    with Path(path).open("w", encoding="utf-8") as file:
        file.writelines(f"{a}\t{b}\t{estimate}\n" for a, b, estimate in pairs)


def write_groups(path: str, groups: Iterable[Sequence[str]]) -> None:
    """Write a line for each group: its ids, separated by tabs."""
    with Path(path).open("w", encoding="utf-8") as file:
        file.writelines("\t".join(group) + "\n" for group in groups)
