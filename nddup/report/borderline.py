"""The pairs closest to the threshold, for a person who wants to set it: a list, and a page with both texts of each.

    find_closest   tables      -> Close pairs; one stands for all pairs of two groups of equal sketches
    draw_borderline    a run       -> the page of these pairs
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
from nddup.report.frame import Link, draw_page

MOST_WORDS = 1_000
"""Maximum number of words of each text that are shown and compared, in a millisecond: nobody would read more."""

_BOX = "flex:1;min-width:16em;max-height:24em;overflow:auto;border:1px solid;padding:6px;white-space:normal"

SHOWN = 20
"""Number of pairs on the page, whose texts a run stores."""

EACH = 100
"""Rows read for each pair wanted: many are of the same two groups, or of one document and many others."""

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

BODY = """<div class="hero"><h1>{heading}</h1>
<p class="lead">The run asks for {name} of at least {threshold:g}; the values here are {how}.</p></div>
<p class="muted">Would you call the texts of a pair the same? If not, raise the threshold; if all of them are, make a
run with a lower one, and look again. No document stands here twice, as far as there are others.</p>
{pairs}"""

LINKS = (Link("index.html", "Overview"),)


def side_by_side(names: tuple[str, str], texts: tuple[str, str]) -> str:
    """Return both texts beside each other as HTML that needs no style sheet, as in a notebook."""
    columns = [
        f'<div style="{_BOX}"><strong>{escape(name)}</strong><br>{text}</div>'
        for name, text in zip(names, mark_both(texts), strict=True)
    ]
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{"".join(columns)}</div>'


def mark_both(texts: tuple[str, str]) -> tuple[str, str]:
    """Return both texts as HTML, with the words outside their longest common subsequence marked; case is ignored.

    A text longer than `MOST_WORDS` words is cut there, with a note.
    """
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - most commands show no two texts

    words = [text.split() for text in texts]
    cut = [row[:MOST_WORDS] for row in words]
    first, second = ([word.casefold() for word in row] for row in cut)
    blocks = LCSseq.opcodes(first, second).as_matching_blocks()
    marked = []
    for side in range(2):
        common = [(block[side], block[side] + block.size) for block in blocks]
        more = len(words[side]) - len(cut[side])
        rest = f" <em>… and {more:,} more words, not compared</em>" if more else ""
        marked.append(f"{_marked(cut[side], common)}{rest}")
    return marked[0], marked[1]


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
    """Return the pairs that reach the threshold by the smallest margin, spread over documents.

    One stands for all pairs of two groups of equal sketches. A group that stands in an earlier pair comes again only
    where there are too few others among the rows read.

    Args:
        engine: with the tables `pairs` and `documents`, of a finished run or of one that is being made.
        decisive: the value that is compared with the threshold.
        number: most pairs.

    Cost: a pass over `pairs`; another where the first `EACH * number` rows are of fewer pairs of groups.
    """
    rows = EACH * number
    while True:
        nearest = engine.sql(CLOSEST.format(value=decisive.value, pairs=decisive.pairs, rows=rows)).to_pylist()
        of_groups: dict[frozenset[str], Close] = {}
        for row in nearest:
            groups = frozenset((row.pop("group_a"), row.pop("group_b")))
            if len(groups) > 1:
                of_groups.setdefault(groups, Close(**row))
        if len(of_groups) >= number or len(nearest) < rows:
            return spread(of_groups, number)
        rows *= EACH


def spread(of_groups: Mapping[frozenset[str], Close], number: int) -> list[Close]:
    """Choose pairs, nearest first, that share no group; then, if these are too few, the nearest others."""
    seen: set[str] = set()
    apart, others = list[Close](), list[Close]()
    for groups, close in of_groups.items():
        if groups & seen:
            others.append(close)
        else:
            apart.append(close)
            seen |= groups
    return sorted([*apart, *others][:number], key=lambda one: (one.measured, one.doc_a, one.doc_b))


def is_resemblance_exact(settings: Mapping[str, Any]) -> bool:
    """Return whether the resemblances of a run are of all shingles of both texts; else sketches estimate them."""
    return bool(settings["pairs"].get("confirm", "none") == "resemblance" or settings["sketch"]["kind"] == "whole")


def draw_borderline(run: FinishedRun) -> str | None:
    """Return the page as HTML; None if `pairs` does not hold the run's measure."""
    decisive = decisive_of(run.metrics.settings)
    if decisive is None:
        return None
    closest = find_closest(run, decisive, SHOWN)
    names = sorted({name for one in closest for name in (one.doc_a, one.doc_b)})
    wanted = pa.table({"doc_id": pa.array(names, pa.string())})
    rows = run.sql(TEXTS, wanted=wanted).to_pylist() if run.holds("texts") else []
    texts = {row["doc_id"]: row["text"] for row in rows}
    pairs = "".join(_draw(one, texts) for one in closest)
    is_estimate = decisive.name == "containment" or (
        decisive.name == "resemblance" and not is_resemblance_exact(run.metrics.settings)
    )
    body = BODY.format(
        heading="The pairs nearest to the threshold",
        name=decisive.name,
        threshold=decisive.threshold,
        how="estimated from the sketches" if is_estimate else "exact",
        pairs=pairs or '<p class="empty">The run has no pair of different sketches.</p>',
    )
    return draw_page("Nearest to the threshold", body, LINKS, label="nearest pairs", sheet="assets/report.css")


def spell_measured(value: float) -> str:
    """Return a share with three decimals, a count without."""
    return f"{value:.3f}" if value <= 1 else f"{value:,.0f}"


def _draw(close: Close, texts: Mapping[str, str]) -> str:
    names = close.doc_a, close.doc_b
    heading = f'<h2 class="measured">{spell_measured(close.measured)}</h2>'
    if not texts.keys() >= set(names):
        named = " and ".join(f"<bdi>{escape(name)}</bdi>" for name in names)
        return f'<section class="card">{heading}<p>The texts of {named} were not stored.</p></section>\n'
    cells = [
        f'<div class="cell"><b><bdi>{escape(name)}</bdi></b><div class="beside-text" tabindex="0" role="region"'
        f' aria-label="Text of {escape(name)}">{text}</div></div>'
        for name, text in zip(names, mark_both((texts[names[0]], texts[names[1]])), strict=True)
    ]
    return f'<section class="card compare">{heading}<div class="pair-row">{"".join(cells)}</div></section>\n'
