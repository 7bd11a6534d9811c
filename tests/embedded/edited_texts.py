"""Small collections with every kind of text: edited and growing families, copies, short, empty and unrelated texts."""

import json
from pathlib import Path

import numpy as np


def make_texts(seed: int = 0, families: int = 3) -> dict[str, str]:
    """Return the texts by id."""
    texts: dict[str, str] = {}
    for family in range(families):
        random = np.random.default_rng(1000 * seed + family)
        words = [f"w{value}" for value in random.integers(0, 10**6, 600)]
        for version in range(5):
            edited = list(words[:200])
            for place in random.integers(0, 200, version * (1 + family)):
                edited[place] = f"edit{version}x{place}"
            texts[f"f{family}v{version}"] = " ".join(edited)
        texts |= {f"f{family}long{n}": " ".join(words[: 300 + 100 * n]) for n in range(3)}
        texts |= {f"f{family}copy{n}": texts[f"f{family}v{n % 2}"] for n in range(4)}
    texts |= {"shout": texts["f0v0"].upper(), "short": "three short words", "short2": "three short words"}
    return texts | {"empty": "", "blank": " ", "lone": " ".join(f"alone{i}" for i in range(90))}


def write_lines(path: Path, texts: dict[str, str]) -> Path:
    """Write the texts as JSON lines, with a repeated id, a damaged line and a line without an id among them."""
    lines = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    lines[3:3] = [lines[0], "{damaged", json.dumps({"text": "no id"})]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
