"""Finished runs for the tests that compare a run with a list."""

import json
import random
from pathlib import Path

from nddup.embedded.run import run_locally
from nddup.settings.load import build_config

SIZE = 50
THRESHOLD = 0.7


def documents() -> dict[str, str]:
    """Return 48 texts: four families of edited texts, a drifting chain, copies, short and empty texts, one alone."""
    draw = random.Random(7)  # noqa: S311 - texts
    texts: dict[str, str] = {}
    for family in range(4):
        base = [f"w{draw.randrange(10**6)}" for _ in range(60)]
        for version in range(6):
            edited = list(base)
            edited[draw.randrange(60)] = f"e{version}"
            texts[f"f{family} v{version}"] = " ".join(edited)
    drift = [f"d{draw.randrange(10**6)}" for _ in range(60)]
    for step in range(10):
        drift[step * 5 : step * 5 + 3] = [f"s{step}{i}" for i in range(3)]
        texts[f"drift{step}"] = " ".join(drift)
    texts |= {f"copy{i}": texts["f0 v0"] for i in range(5)} | {f"same{i}": texts["f1 v0"] for i in range(4)}
    texts |= {"tiny1": "two words", "tiny2": "two words", "empty1": "", "empty2": ""}
    return texts | {"alone": "nothing like any other text here"}


def start(folder: Path, texts: dict[str, str], **pairs: object) -> Path:
    """Make a finished run over texts and one malformed record, `torn`, whose sketches decide; return its folder."""
    lines = [json.dumps({"id": name, "text": text, "url": f"http://x/{name}"}) for name, text in texts.items()]
    (folder / "pages.jsonl").write_text("\n".join([*lines, '{"id": "torn", "text": 5, "text', ""]))
    settings = {
        "pairs": {"threshold": THRESHOLD, "confirm": "none", **pairs},
        "sketch": {"size": SIZE},
        "output": {"texts": 0},
    }
    run_locally([str(folder / "pages.jsonl")], str(folder / "run"), build_config(settings, origin="test"))
    return folder / "run"
