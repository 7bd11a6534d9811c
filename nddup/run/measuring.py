"""What a run counted: rows, rejects, pruning, cuts, covers, seconds and shuffled bytes, for `metrics.json`."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from nddup.run.session import shuffled_bytes
from nddup.tables import RESULTS

ROWS_OF: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sketch": (("records",), ("documents", "rejects")),
    "pairs": (("documents",), ("pairs",)),
    "clusters": (("pairs",), ("clusters", "members", "false_components")),
    "keep": (("documents",), ("keep",)),
    "texts": (("clusters",), ("texts",)),
}
"""The tables each stage reads and leaves."""

COUNTED = ("rows", "counts", "reasons", "pruning", "read_again", "splitting")
"""What is counted while tables are made."""


@dataclass
class Metrics:
    """Counts of one run, gathered as its stages end."""

    spark: SparkSession
    rows: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    pruning: list[int] = field(default_factory=list)
    read_again: list[str] = field(default_factory=list)
    """Sources of the files that were read again from their start."""
    splitting: dict[str, str] = field(default_factory=dict)
    """The settings under which files were split."""
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    resumed: list[str] = field(default_factory=list)
    """The tables that were taken from an earlier attempt."""

    def snapshot(self) -> dict[str, Any]:
        """All that was counted so far; the clock and the shuffles apart."""
        return {name: copy(getattr(self, name)) for name in COUNTED}

    def since(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """What was counted after a snapshot: of mappings the keys that changed, of lists the whole."""
        changes: dict[str, Any] = {}
        for name, value in self.snapshot().items():
            if isinstance(value, dict):
                changed = {key: n for key, n in value.items() if before[name].get(key) != n}
            else:
                changed = value if value != before[name] else []
            if changed:
                changes[name] = changed
        return changes

    def restore(self, changes: Mapping[str, Any]) -> None:
        """Count again what `since` gave."""
        for name, value in changes.items():
            if isinstance(value, dict):
                getattr(self, name).update(value)
            else:
                setattr(self, name, list(value))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage: seconds of the clock and bytes written to shuffles."""
        started, before, known = time.monotonic(), shuffled_bytes(self.spark), len(self.resumed)
        yield
        self.stages[name] = {
            "seconds": round(time.monotonic() - started, 3),
            "shuffle_bytes": max(0, shuffled_bytes(self.spark) - before),
            "resumed": self.resumed[known:],
        }

    def facts(self, name: str) -> dict[str, Any]:
        """What was measured of a stage that ended, and the rows it read and left."""
        inputs, outputs = ROWS_OF.get(name, ((), ()))
        return {
            "rows_in": {table: self._rows(table) for table in inputs},
            "rows_out": {table: self._rows(table) for table in outputs},
            **self.stages.get(name, {}),
        }

    def report(self, *, bytes_in: int, files: int, skipped: list[dict[str, str]]) -> dict[str, Any]:
        """The counts as `metrics.json` holds them."""
        stages = {name: self.facts(name) for name in self.stages}
        stages["sketch"] |= {
            "bytes": bytes_in,
            "files": files,
            "skipped_files": skipped,
            "rejected": self.reasons,
            "files_read_again": self.counts.get("files_read_again", 0),
            "undecodable_records": self.counts.get("undecodable_records", 0),
            "left_out_shingles": self.counts.get("left_out_shingles", 0),
            "undecodable_places": self.counts.get("undecodable_places", 0),
        }
        if "lexicon" in self.rows:
            stages["sketch"]["lexicon"] = self.lexicon()
        stages["pairs"] |= {"pruned_to": self.pruning} | {
            name: self.counts.get(name, 0)
            for name in ("distinct_sketches", "postings", "candidates", "crowd", "cut_features", "cut_postings")
        }
        stages["clusters"] |= {
            name: self.counts.get(name, 0)
            for name in (
                "components", "largest_component", "fpgrowth_components", "fpgrowth_fits",
                "covered_components", "covered_clusters", "led_components", "led_clusters",
                "invented_pairs", "most_invented", "bounded_components",
                "spread_components", "shares", "pairs_below_support",
            )
        }  # fmt: skip
        stages["keep"] |= {
            "kept": self.counts["kept"],
            "removed": self.rows["documents"] - self.counts["kept"],
        }
        if "texts" in stages:
            stages["texts"] |= {
                "clusters": self.counts["texts_clusters"],
                "beyond_files": self.counts["texts_beyond_files"],
            }
        shorts = {name: self.counts[name] for name in ("empty_sketches", "below_count", "equal_sketches")}
        return {"records": self.counts["records"], "rows": self.tables(), **shorts, "stages": stages}

    def lexicon(self) -> dict[str, int]:
        """What was counted for the lexicon: its terms; of the collection the terms, all their occurrences, the most."""
        counted = {name: self.counts[f"lexicon_{name}"] for name in ("counted", "occurrences", "commonest")}
        return {"terms": self.rows["lexicon"], **counted}

    def tables(self) -> dict[str, int]:
        """Rows of the tables of a run."""
        return {name: self.rows[name] for name in RESULTS if name in self.rows}

    def _rows(self, name: str) -> int:
        return self.counts["records"] if name == "records" else self.rows[name]
