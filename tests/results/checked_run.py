"""The run on which `nddup check` is tested: 41 documents and a reject."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config

Row = dict[str, Any]


def words(seed: int, count: int) -> list[str]:
    """Draw `count` words; each seed has its own."""
    return [f"w{value}" for value in np.random.default_rng(seed).integers(0, 10**6, count)]


def collection() -> list[Row]:
    """Return 41 records: five families of edited texts, copies of two of them, short and empty texts, and loners."""
    texts: dict[str, str] = {}
    for family in range(5):
        base = words(family, 150)
        for version in range(5):
            edited = list(base)
            edited[10 + version * (8 + 12 * (family % 2))] = f"edit{version}"
            texts[f"f{family}v{version}"] = " ".join(edited)
    texts |= {f"copy{i}": texts["f0v0"] for i in range(4)}
    texts |= {f"same{i}": texts["f1v1"].replace(" ", "  " if i else " ") for i in range(2)}
    texts |= {"short1": "three short words", "short2": "three short words", "empty1": "", "empty2": ""}
    texts |= {f"lone{i}": " ".join(words(100 + i, 60)) for i in range(6)}
    return [{"id": name, "text": value, "url": f"http://x/{name}"} for name, value in texts.items()]


def run(folder: Path, **settings: object) -> Path:
    """Make a finished run over the collection, with one reject; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) for row in collection()]
    lines.insert(7, '{"id": "torn", "text"')
    (folder / "pages.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = build_config(settings, origin="test")
    run_locally([str(folder / "pages.jsonl")], str(folder / "run"), config)
    return folder / "run"
