"""The summary of a report: everything except its clusters and documents, as JSON values."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nddup.metrics import RunMetrics, StageMetrics
from nddup.report.content import LENGTHS, Content
from nddup.report.data_documents import named
from nddup.report.summary import headline, notes
from nddup.settings.schema import Config

SIZES = (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1_000, 10_000, 100_000)
"""Lower ends of the histogram of cluster sizes."""

SHORT = 20
"""Tokens below which a text is very short: such pages share a message or a form rather than content."""

OPEN = 1 << 62
"""Upper end that stands for no limit."""


def summarise(shown: Content, counts: Mapping[str, Mapping[str, int]], *, longest: Sequence[int]) -> dict[str, Any]:
    """Return the chunk `summary`.

    Args:
        shown: the content of the report.
        counts: sizes and numbers of the chunks, by what they hold.
        longest: length of the longest document of each cluster shown, in tokens.
    """
    metrics = shown.metrics
    settings, sketch = metrics.settings, metrics.stages.sketch
    return {
        "run": shown.path,
        "headline": [list(line) for line in headline(metrics)],
        "notes": notes(metrics),
        "funnel": _funnel(metrics),
        "histograms": {
            "sizes": _bucketed(shown.sizes),
            "resemblance": _percents(shown.resemblances),
            "lengths": {
                "labels": [_span(low, high) for low, high in pairwise(_ends(LENGTHS))],
                "counts": [count for _, count in shown.lengths],
            },
        },
        "rejects": {
            "reasons": sorted(sketch.rejected.items(), key=lambda item: (-item[1], item[0])),
            "first": [[row[name] for name in ("source", "record", "doc_id", "reason", "detail", "excerpt")]
                      for row in shown.rejects],
        },
        "skipped": [[file.path, file.why] for file in sketch.skipped_files],
        "settings": list(_settings(settings)),
        "versions": sorted(metrics.versions.items()),
        "stages": [_stage(name, stage) for name, stage in metrics.stages.by_name().items()],
        "evaluation": shown.evaluation,
        "components": shown.components,
        "shingle": _shingle(settings["shingle"]),
        "rule": {name: settings["pairs"][name] for name in ("measure", "threshold")},
        "mode": settings["clusters"]["mode"],
        "policy": settings["keep"]["policy"],
        "short": _short(shown, longest, settings["input"].get("min_tokens", 0)),
        "texts": {"documents": len(shown.texts), **counts["texts"]},
        "families": counts["families"],
        "documents": {
            "shown": len(shown.documents),
            "all": metrics.rows["documents"],
            **counts["documents"],
            **named(shown.documents),
        },
        "clusters": {
            "shown": len(shown.clusters),
            "all": metrics.rows["clusters"],
            "listed_each": shown.listed_each,
            "matrix_each": shown.matrix_each,
            **counts["clusters"],
        },
    }  # fmt: skip


def _funnel(metrics: RunMetrics) -> list[tuple[str, int, str]]:
    """Return the counts from records read to documents kept, each with a note."""
    rows, kept = metrics.rows, metrics.stages.keep.kept
    distinct = rows["documents"] - metrics.equal_sketches
    return [
        ("records read", metrics.records, ""),
        ("documents", rows["documents"], f"{rows['rejects']:,} records rejected"),
        ("distinct sketches", distinct, f"{metrics.equal_sketches:,} share the sketch of another"),
        ("kept", kept, f"{rows['documents'] - kept:,} are near-duplicates of a kept one"),
    ]


def _settings(settings: Mapping[str, Mapping[str, Any]]) -> Iterator[list[Any]]:
    """Yield name and value of each setting, and the default if it has one that differs from the value."""
    defaults = Config().model_dump(mode="json")
    for section, values in settings.items():
        for key, value in values.items():
            name = f"{section}.{key}" if section != "spark" else key
            default = defaults.get(section, {}).get(key, value)
            yield [name, _shown(value)] if value == default else [name, _shown(value), _shown(default)]


def _shown(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Return a value as it is written in a settings file; None if unset."""
    return None if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _short(shown: Content, longest: Sequence[int], least: int) -> dict[str, Any]:
    """Count the clusters shown whose documents are all very short; with the value of `input.min_tokens`."""
    sizes = [size for size, tokens in zip(shown.clusters["size"].to_pylist(), longest, strict=True) if tokens < SHORT]
    return {"tokens": SHORT, "clusters": len(sizes), "largest": max(sizes, default=0), "min_tokens": least}


def _shingle(shingle: Mapping[str, Any]) -> dict[str, int]:
    """Return the shingles for comparing two texts on the page: the run's, or 3 words if the run's are of characters."""
    if shingle["unit"] != "word":
        return {"length": 3, "offset": 1}
    return {"length": shingle["length"], "offset": shingle["offset"]}


def _stage(name: str, stage: StageMetrics) -> dict[str, Any]:
    """Return a row of the table of stages."""
    return {"name": name, "seconds": stage.seconds, "shuffle": stage.shuffle_bytes,
            "rows_in": sorted(stage.rows_in.items()), "rows_out": sorted(stage.rows_out.items())}  # fmt: skip


def _bucketed(sizes: list[tuple[int, int]]) -> dict[str, list[Any]]:
    """Count clusters by the ranges of `SIZES`, up to the largest size that occurs."""
    largest = max((size for size, _ in sizes), default=0)
    edges = [low for low in SIZES if low <= largest]
    counts = [0] * len(edges)
    for size, count in sizes:
        counts[int(np.searchsorted(edges, size, side="right")) - 1] += count
    return {"labels": [_span(low, high) for low, high in pairwise(_ends(edges))], "counts": counts}


def _percents(resemblances: list[tuple[int | None, int]]) -> dict[str, Any]:
    """Count pairs by whole percent of resemblance, from the lowest that occurs; `unknown` counts those without one."""
    known = {percent: count for percent, count in resemblances if percent is not None}
    percents = range(min(known, default=0), 101) if known else range(0)
    unknown = sum(count for percent, count in resemblances if percent is None)
    return {"labels": list(percents), "counts": [known.get(percent, 0) for percent in percents], "unknown": unknown}


def _ends(lows: Sequence[int]) -> list[int]:
    return [*lows, OPEN]


def _span(low: int, high: int) -> str:
    if high == OPEN:
        return f"≥ {low:,}"
    return f"{low:,}" if high == low + 1 else f"{low:,}–{high - 1:,}"
