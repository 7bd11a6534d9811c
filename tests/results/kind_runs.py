"""The runs shared by the tests of every kind: settings and documents."""

import random
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from nddup.ground.metrics import RunMetrics
from nddup.sketching.kinds import KINDS
from tests.counted_rows import once

Pair = tuple[str, str]

RUNS: dict[str, dict[str, Any]] = {
    "min-s": {
        "sketch.kind": "min-s", "sketch.size": 30, "pairs.measure": "overlap", "pairs.threshold": 12,
        "clusters.support": 20, "keep.policy": "first-id", "output.kept": "jsonl",
    },
    "min-s growing": {
        "sketch.kind": "min-s", "sketch.size": 4, "sketch.growth": "logarithmic", "pairs.measure": "overlap",
        "clusters.mode": "cover", "output.texts": 0, "output.report": False,
    },
    "super": {"sketch.kind": "super", "sketch.size": 40, "pairs.threshold": 0.7},
    "min-perm": {
        "sketch.kind": "min-perm", "sketch.size": 20, "sketch.tagged": False, "pairs.measure": "overlap",
        "clusters.mode": "components",
    },
    "minhash": {
        "sketch.kind": "minhash", "sketch.size": 30, "sketch.bands": 10, "sketch.rows": 3, "pairs.max_postings": 3,
        "pairs.max_edges": 3,
    },
    "minhash unseen": {
        "sketch.kind": "minhash", "sketch.size": 60, "sketch.bands": 20, "sketch.rows": 3, "sketch.verify": False,
        "sketch.permutation": "affine", "clusters.mode": "partition",
    },
    "mod-m": {"sketch.kind": "mod-m", "sketch.modulus": 2, "output.context": True},
    "mod-m containment": {
        "sketch.kind": "mod-m", "sketch.modulus": 2, "sketch.permutation": "gf2", "sketch.fingerprint": "rabin",
        "sketch.seed": 3,  # selects a shingle of the shortest texts, without which they are in no pair
        "pairs.measure": "containment", "pairs.threshold": 0.7, "clusters.mode": "components",
    },
    "mod-pow2": {"sketch.kind": "mod-pow2", "sketch.size": 25, "clusters.mode": "partition"},
    "lexicon": {"sketch.kind": "lexicon", "lexicon.high": 1.0, "pairs.measure": "overlap"},
    "i-match": {"sketch.kind": "i-match", "lexicon.high": 1.0, "pairs.measure": "overlap", "pairs.threshold": 1},
    "keywords": {"sketch.kind": "keywords", "lexicon.languages": ["english"], "clusters.mode": "partition"},
}  # fmt: skip
"""Settings that together use every kind, measure and cluster mode."""

CHECKED: dict[str, dict[str, Any]] = {
    "min-perm tagged": {"sketch.kind": "min-perm", "sketch.size": 60, "pairs.threshold": 0.7},
    "mod-pow2 containment": {
        "sketch.kind": "mod-pow2", "sketch.size": 60, "pairs.measure": "containment", "pairs.threshold": 0.7,
        "clusters.mode": "partition",
    },
    "whole": {"sketch.kind": "whole"},
    "pairs only": {"sketch.kind": "min-s", "sketch.size": 30, "clusters.mode": "none"},
}  # fmt: skip
"""Settings that change only the pairs or the clusters; only `nddup sweep` and `nddup check` are tested on them."""

SHARED = {"shingle.length": 2, "pairs.threshold": 0.6}
"""Default settings of all runs; the shingle length is dropped for kinds that have no shingles."""


def settings_of(name: str) -> dict[str, Any]:
    """Return the settings of a run by their keys, such as `sketch.kind`."""
    settings = SHARED | (RUNS | CHECKED)[name]
    if KINDS[settings["sketch.kind"]].is_of_words or settings["sketch.kind"] == "whole":
        del settings["shingle.length"]
    return settings


def nested(settings: dict[str, Any]) -> dict[str, Any]:
    """Turn dotted keys into nested sections."""
    sections: dict[str, Any] = {}
    for key, value in settings.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    return sections


def texts() -> dict[str, str]:
    """Return 28 texts: edited families, a growing one, copies, one with other blanks, short and empty texts, loners."""
    draw = random.Random(5)  # noqa: S311 - texts

    def words(number: int) -> list[str]:
        return ["".join(draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(4)) for _ in range(number)]

    found: dict[str, str] = {}
    for family in range(3):
        base = words(60)
        for version in range(4):
            edited = list(base)
            edited[10 + 5 * version : 12 + 5 * version] = words(2)
            found[f"f{family}v{version}"] = " ".join(edited)
    grown = words(160)
    found |= {f"grown{n}": " ".join(grown[: 40 * n]) for n in (1, 2, 3, 4)}
    found |= {f"copy{n}": found["f0v0"] for n in range(3)} | {"blanks": found["f1v1"].replace(" ", "\n  ")}
    found |= {"short1": "three short words", "short2": "three short words", "empty1": "", "empty2": " "}
    return found | {f"alone{n}": " ".join(words(50)) for n in range(4)}


class Run(NamedTuple):
    """A finished run: its folder, its input, and its settings as `--set` options."""

    folder: Path
    pages: Path
    options: list[str]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table."""
        rows: list[dict[str, Any]] = pq.read_table(self.folder / table).to_pylist()
        return rows

    def metrics(self) -> RunMetrics:
        """Return the content of `metrics.json`."""
        return RunMetrics.read((self.folder / "metrics.json").read_text())

    def pairs(self) -> set[Pair]:
        """Return the rows of `pairs` as pairs of ids."""
        return once((row["doc_a"], row["doc_b"]) for row in self.rows("pairs"))
