"""The pairs closest to the threshold, for a person who wants to set it: a list, and a page with both texts of each.

    find_closest   tables      -> Close pairs; one stands for all pairs of two groups of equal sketches
    draw_page      a run       -> the page of these pairs
    side_by_side   two texts   -> HTML, with the words that only one of them has marked

The texts are those that the run stored (`output.texts`).
"""

from collections.abc import Mapping
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from nddup.engines.engine import Engine, FinishedRun
from nddup.matching.measures import MEASURES

MOST_WORDS = 1_000
"""Maximum number of words of each text that are shown and compared, in a millisecond: nobody would read more."""

_BOX = "flex:1;min-width:16em;max-height:24em;overflow:auto;border:1px solid;padding:6px;white-space:normal"

SHOWN = 20
"""Number of pairs on the page, whose texts a run stores."""

EACH = 20
"""Rows read for each pair wanted: all rows of one pair of groups have the same measure."""

CLOSEST = """
    SELECT n.doc_a, n.doc_b, n.measured, a.group AS group_a, b.group AS group_b, a.source AS source_a,
           b.source AS source_b, a.content_fingerprint AS content_a, b.content_fingerprint AS content_b,
           a.record_type AS type_a, b.record_type AS type_b
    FROM (SELECT p.doc_a, p.doc_b, CAST({value} AS DOUBLE) AS measured FROM {pairs} AS p WHERE {value} IS NOT NULL
          ORDER BY measured, p.doc_a, p.doc_b LIMIT {rows:d}) AS n
    JOIN documents AS a ON n.doc_a = a.doc_id JOIN documents AS b ON n.doc_b = b.doc_id
    ORDER BY n.measured, n.doc_a, n.doc_b
"""

TEXTS = "SELECT t.doc_id, t.text FROM texts AS t JOIN wanted AS w ON t.doc_id = w.doc_id"

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Pairs nearest to the threshold</title>
<style>body{{font:15px/1.45 sans-serif;margin:2em auto;max-width:75em;padding:0 1em}}h2{{font-size:1em}}</style>
</head><body><h1>Pairs nearest to the threshold</h1>
<p>The run asks for {name} of at least {threshold:g}; the values here are {how}. Words that only one of the texts
has are marked. Would you call the texts of a pair the same? If not, raise the threshold;
if all of them are, make a run with a lower one, and look again.
<a href="index.html">The report</a></p>
{pairs}</body></html>
"""


def side_by_side(names: tuple[str, str], texts: tuple[str, str]) -> str:
    """Return both texts as HTML, with the words outside their longest common subsequence marked; case is ignored.

    A text longer than `MOST_WORDS` words is cut there, with a note.
    """
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - most commands show no two texts

    words = [text.split() for text in texts]
    cut = [row[:MOST_WORDS] for row in words]
    first, second = ([word.casefold() for word in row] for row in cut)
    blocks = LCSseq.opcodes(first, second).as_matching_blocks()
    columns = []
    for side, name in enumerate(names):
        common = [(block[side], block[side] + block.size) for block in blocks]
        more = len(words[side]) - len(cut[side])
        rest = f" <em>… and {more:,} more words, not compared</em>" if more else ""
        columns.append(
            f'<div style="{_BOX}"><strong>{escape(name)}</strong><br>{_marked(cut[side], common)}{rest}</div>'
        )
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{"".join(columns)}</div>'


def _marked(words: list[str], common: list[tuple[int, int]]) -> str:
    """Return words with those outside the common runs (start, end) marked; the last run is empty, at the end."""
    parts = []
    for (_, end), (start, stop) in pairwise([(0, 0), *common]):
        if end < start:
            parts.append(f"<mark>{escape(' '.join(words[end:start]))}</mark>")
        if start < stop:
            parts.append(escape(" ".join(words[start:stop])))
    return " ".join(parts)


class Decisive(NamedTuple):
    """The value that a run compares with its threshold: its name, its SQL over a row `p` of `pairs`, the threshold.

    `pairs` is the table, or a SELECT of its rows with more columns.
    """

    name: str
    value: str
    threshold: float
    pairs: str = "pairs"


class Close(NamedTuple):
    """A pair near the threshold: two documents that stand for their groups of equal sketches, and where they are.

    The types are those of captures: the text of a `revisit` is elsewhere.
    """

    doc_a: str
    doc_b: str
    measured: float
    source_a: str
    source_b: str
    content_a: bytes
    content_b: bytes
    type_a: str | None
    type_b: str | None


def decisive_of(settings: Mapping[str, Any]) -> Decisive | None:
    """Return the value that a run compares with its threshold; None for a share of the overlap, which `pairs` lacks."""
    pairs = settings["pairs"]
    if pairs.get("confirm", "none") == "edit":
        return Decisive("edit", "p.edit", pairs["edit_threshold"])
    measure = MEASURES[pairs["measure"]]
    value = "p.overlap" if measure.takes_count and isinstance(pairs["threshold"], int) else measure.value
    return Decisive(measure.name, value, pairs["threshold"]) if value else None


def find_closest(engine: Engine, decisive: Decisive, number: int) -> list[Close]:
    """Return the pairs that reach the threshold by the smallest margin, one for each two groups of equal sketches.

    Args:
        engine: with the tables `pairs` and `documents`, of a finished run or of one that is being made.
        decisive: the value that is compared with the threshold.
        number: most pairs.

    Cost: a pass over `pairs`; another where the first `EACH * number` rows are of fewer pairs of groups.
    """
    rows = EACH * number
    while True:
        nearest = engine.sql(CLOSEST.format(value=decisive.value, pairs=decisive.pairs, rows=rows)).to_pylist()
        found: dict[frozenset[str], Close] = {}
        for row in nearest:
            groups = frozenset((row.pop("group_a"), row.pop("group_b")))
            if len(groups) > 1 and len(found) < number:
                found.setdefault(groups, Close(**row))
        if len(found) == number or len(nearest) < rows:
            return list(found.values())
        rows *= EACH


def is_resemblance_exact(settings: Mapping[str, Any]) -> bool:
    """Return whether the resemblances of a run are of all shingles of both texts; else sketches estimate them."""
    return bool(settings["pairs"].get("confirm", "none") == "resemblance" or settings["sketch"]["kind"] == "whole")


def draw_page(run: FinishedRun) -> str | None:
    """Return the page as HTML; None if `pairs` does not hold the run's measure."""
    decisive = decisive_of(run.metrics.settings)
    if decisive is None:
        return None
    closest = find_closest(run, decisive, SHOWN)
    names = sorted({name for one in closest for name in (one.doc_a, one.doc_b)})
    wanted = pa.table({"doc_id": pa.array(names, pa.string())})
    rows = run.sql(TEXTS, wanted=wanted).to_pylist() if run.holds("texts") else []
    texts = {row["doc_id"]: row["text"] for row in rows}
    pairs = "".join(_draw(one, texts) for one in closest) or "<p>The run has no pair of different sketches.</p>\n"
    is_estimate = decisive.name == "containment" or (
        decisive.name == "resemblance" and not is_resemblance_exact(run.metrics.settings)
    )
    how = "estimated from the sketches" if is_estimate else "exact"
    return PAGE.format(name=decisive.name, threshold=decisive.threshold, how=how, pairs=pairs)


def _draw(close: Close, texts: Mapping[str, str]) -> str:
    names = close.doc_a, close.doc_b
    heading = f"<h2>{close.measured:.4g}: {' and '.join(map(escape, names))}</h2>\n"
    if not texts.keys() >= set(names):
        return f"{heading}<p>Their texts were not stored.</p>\n"
    return f"{heading}{side_by_side(names, (texts[names[0]], texts[names[1]]))}\n"
