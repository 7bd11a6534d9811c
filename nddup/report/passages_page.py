"""The page of `nddup passages`: the passages that save most tokens with their places, and documents with theirs marked.

    choose_shown    tables       -> the passages and documents that are shown
    draw_passages   these, texts -> the page, without scripts

Documents may be hostile: ids and texts are escaped, and the page may load nothing but its style.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

PASSAGES, PLACES, DOCUMENTS = 50, 20, 20
"""Most passages, places of each, and documents that are shown."""

FEW = 4
"""Places that are shown at once; more are folded."""

MOST_CHARACTERS = 6_000
"""Most characters of a document that are shown."""

AROUND = 200
"""Characters shown before and after a repeated part; of what lies between, only their number."""

_BLANK_LINES = re.compile(r"\s*\n\s*")

Row = dict[str, Any]
Span = tuple[int, int]

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Passages · nddup</title>
<link rel="stylesheet" href="report.css">
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="site"><div class="bar"><p class="brand">nddup <span class="run">passages</span></p>
<nav aria-label="Page"><a href="#passages">Passages</a><a href="#documents">Documents</a></nav></div></header>
<main id="main">
<h1>What is repeated below the document</h1>
<dl class="numbers">{numbers}</dl>
{told}
<h2 id="passages">Passages by tokens saved</h2>
<p class="note">{about_passages}</p>
{passages}
<h2 id="documents">Documents with most to cut</h2>
<p class="legend"><span><mark class="only">can be cut</mark></span>
<span><mark class="first">repeated, stays</mark></span>
<span class="left-out">… left out of this page …</span></p>
{documents}
</main>
<footer class="site"><p>Made by nddup. Everything shown lies in this folder; nothing is fetched.</p></footer>
</body>
</html>
"""


class Shown(NamedTuple):
    """What is shown, in order.

    Attributes:
        passages: rows of `passages`, each with `saved` (tokens of its places that can be cut), and `places`: the first
            rows of its occurrences, each with `cut`, how many of its tokens can be cut.
        documents: rows of `repeating`, each with `spans` and `cuts`: runs of characters, repeated and cut.
        of: how many passages there are in all.
    """

    passages: list[Row]
    documents: list[Row]
    of: int


def choose_shown(tables: Mapping[str, pa.Table]) -> Shown:
    """Choose what is shown: passages by tokens saved, then places; documents by tokens that can be cut.

    Args:
        tables: `passages`, `occurrences`, `cuts`, `repeating`.

    Cost: linear in occurrences, but for sorts.
    """
    passages, occurrences, cuts, repeating = (tables[name] for name in ("passages", "occurrences", "cuts", "repeating"))
    cut = _count_cut(occurrences, cuts, repeating["doc_id"])
    of = np.asarray(pc.index_in(_one(occurrences["passage_id"]), value_set=_one(passages["passage_id"])))
    saved = np.bincount(of, weights=cut, minlength=len(passages)).astype(np.int64)
    best = np.argsort(-saved, kind="stable")[:PASSAGES]
    rows = passages.take(pa.array(best)).to_pylist()
    for row, number in zip(rows, best.tolist(), strict=True):
        at = np.flatnonzero(of == number)
        at = at[np.argsort(~np.asarray(occurrences["first"].take(pa.array(at))), kind="stable")][:PLACES]
        places = occurrences.take(pa.array(at)).to_pylist()
        row["saved"] = int(saved[number])
        row["places"] = [place | {"cut": int(count)} for place, count in zip(places, cut[at], strict=True)]
    documents = repeating.sort_by([("cut", "descending"), ("repeated", "descending")]).slice(0, DOCUMENTS).to_pylist()
    for row in documents:
        row["spans"], row["cuts"] = (_spans(table, row["doc_id"]) for table in (occurrences, cuts))
    return Shown(rows, documents, len(passages))


def _count_cut(occurrences: pa.Table, cuts: pa.Table, doc_ids: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return how many tokens of each occurrence can be cut."""

    def place(rows: pa.Table, name: str) -> NDArray[np.int64]:
        document = np.asarray(pc.index_in(_one(rows["doc_id"]), value_set=_one(doc_ids))).astype(np.int64)
        return np.asarray((document << 32) + rows[name].to_numpy())

    starts, ends = place(cuts, "token"), place(cuts, "token_end")
    order = np.argsort(starts)
    starts, ends = np.append(-1, starts[order]), np.append(-1, ends[order])
    before = np.append(0, np.cumsum(ends - starts))

    def count(at: NDArray[np.int64]) -> NDArray[np.int64]:
        run = np.searchsorted(starts, at, "right") - 1
        return np.asarray(before[run] + np.minimum(at, ends[run]) - starts[run])

    return count(place(occurrences, "token_end")) - count(place(occurrences, "token"))


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _spans(table: pa.Table, doc_id: str) -> list[Span]:
    """Return the runs of characters of a document, joined where they overlap."""
    rows = table.filter(pc.equal(table["doc_id"], doc_id)).sort_by("char")
    spans: list[Span] = []
    for low, high in zip(rows["char"].to_pylist(), rows["char_end"].to_pylist(), strict=True):
        if spans and low <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], high)
        else:
            spans.append((low, high))
    return spans


def draw_passages(
    shown: Shown, texts: Mapping[str, str], numbers: Sequence[tuple[str, str, str]], told: Sequence[str]
) -> str:
    """Return the page.

    Args:
        shown: what is shown.
        texts: at least those of the shown documents.
        numbers: name, value and note of the numbers on top.
        told: what else is said on top, a paragraph each.
    """
    about = "Tokens of its places that can be cut with the first copy kept. Passages that overlap share tokens."
    if shown.of > len(shown.passages):
        about += f" The first {len(shown.passages):,} of {shown.of:,}; the tables have all."
    none = '<p class="empty">None.</p>'
    return PAGE.format(
        numbers="".join(
            f'<div><dt>{escape(name)}</dt><dd><span class="big">{escape(value)}</span>'
            f'<span class="note">{escape(note)}</span></dd></div>'
            for name, value, note in numbers
        ),
        told="".join(f'<p class="note">{escape(line[:1].upper() + line[1:])}</p>' for line in told),
        about_passages=about,
        passages="".join(map(_draw_passage, shown.passages)) or none,
        documents="".join(_draw_document(row, texts[row["doc_id"]]) for row in shown.documents) or none,
    )


def _draw_passage(row: Row) -> str:
    places = "".join(
        f'<tr><th scope="row">{_name(place["doc_id"])}</th>'
        f'<td class="number">{place["char"]:,} to {place["char_end"]:,}</td><td>{_outcome(place)}</td></tr>'
        for place in row["places"]
    )
    more = row["occurrences"] - len(row["places"])
    rest = f'<p class="note">and {more:,} more; <code>occurrences</code> lists all</p>' if more > 0 else ""
    return (
        f'<section class="card passage" id="{escape(row["passage_id"])}"><h3>{row["saved"]:,} tokens saved</h3>'
        f'<p class="note">{row["tokens"]:,} tokens, {row["occurrences"]:,} times in {row["documents"]:,} documents ·'
        f' <code>{escape(row["passage_id"])}</code></p><p class="excerpt"><bdi>{escape(row["text"])}</bdi></p>'
        f"<details{' open' if row['occurrences'] <= FEW else ''}><summary>Places</summary>"
        f'<div class="scroll"><table><thead><tr><th scope="col">Document</th>'
        f'<th scope="col" class="number">Characters</th><th scope="col">Outcome</th></tr></thead>'
        f"<tbody>{places}</tbody></table></div>{rest}</details></section>\n"
    )


def _outcome(place: Row) -> str:
    if place["first"]:
        return '<span class="chip kept">first place</span>'
    size = place["token_end"] - place["token"]
    if not place["cut"]:
        return '<span class="chip">stays</span>'
    part = "cut" if place["cut"] == size else f"{place['cut']:,} of {size:,} tokens cut"
    return f'<span class="chip removed">{part}</span>'


def _name(doc_id: str) -> str:
    return f"<bdi>{escape(doc_id)}</bdi>"


def _draw_document(row: Row, text: str) -> str:
    dropped = " It is dropped: too little is left." if row["dropped"] else ""
    return (
        f'<section class="card text"><div class="body"><h3>{_name(row["doc_id"])}</h3><p class="note">'
        f"Of {row['tokens']:,} tokens {row['repeated']:,} are repeated, {row['cut']:,} can be cut.{dropped} Record"
        f" {row['record']:,} of <bdi>{escape(row['source'])}</bdi></p>"
        f"{''.join(_mark(text, row['spans'], row['cuts']))}</div></section>\n"
    )


def _mark(text: str, spans: Sequence[Span], cuts: Sequence[Span]) -> Iterator[str]:
    """Yield a text with its repeated parts marked; long parts between them are left out."""
    bounds = sorted({0, len(text), *(place for span in (*spans, *cuts) for place in span)})
    left = MOST_CHARACTERS
    for low, high in pairwise(bounds):
        if left <= 0:
            yield f'<span class="left-out">… {len(text) - low:,} more characters</span>'
            return
        part = text[low:high]
        kind = "only" if _holds(cuts, low) else "first" if _holds(spans, low) else ""
        if not kind and len(part) > 3 * AROUND:
            head, tail = part[: AROUND if low else 0], part[-AROUND:] if high < len(text) else ""
            between = len(part) - len(head) - len(tail)
            yield f'{_shown(head)} <span class="left-out">… {between:,} characters …</span> {_shown(tail)}'
            left -= len(head) + len(tail)
            continue
        part = part[:left]
        left -= len(part)
        yield f'<mark class="{kind}">{_shown(part)}</mark>' if kind else _shown(part)


def _shown(text: str) -> str:
    """Return a text as HTML, without blank lines."""
    return escape(_BLANK_LINES.sub("\n", text))


def _holds(spans: Sequence[Span], at: int) -> bool:
    """Return whether one of some ascending spans holds a character."""
    number = int(np.searchsorted([low for low, _ in spans], at, "right")) - 1
    return number >= 0 and at < spans[number][1]
