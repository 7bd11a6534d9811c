"""The page of `nddup passages`: the passages that save most tokens with their places, and documents with theirs marked.

    choose_shown    the tables   -> the passages and documents that are shown
    draw_passages   these, texts -> the page, without scripts

Documents may be hostile: ids and texts are escaped, and the page may load nothing but its style.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa

from nddup.engines.engine import Engine
from nddup.report.frame import Link, draw_number, draw_page, join_spans

PASSAGES, PLACES, DOCUMENTS = 50, 20, 20
"""Maximum number of passages, places of each, and documents that are shown."""

FEW = 4
"""Places that are shown at once; more are folded."""

MOST_CHARACTERS = 6_000
"""Maximum number of characters of a document that are shown."""

AROUND = 200
"""Characters shown before and after a repeated part; of what lies between, only their number."""

_BLANK_LINES = re.compile(r"\s*\n\s*")

Row = dict[str, Any]
Span = tuple[int, int]

BODY = """<h1>What is repeated below the document</h1>
<dl class="numbers">{numbers}</dl>
{told}
<h2 id="passages">Passages by tokens saved</h2>
<p class="note">{about_passages}</p>
{passages}
<h2 id="documents">Documents with most to cut</h2>
<p class="legend"><span><mark class="only">can be cut</mark></span>
<span><mark class="first">repeated, stays</mark></span>
<span class="left-out">… left out of this page …</span></p>
{documents}"""

LINKS = (Link("#passages", "Passages"), Link("#documents", "Documents"))


class Shown(NamedTuple):
    """What is shown, in order.

    Attributes:
        passages: rows of `passages`, each with `saved` (tokens of its places that can be cut), and `places`: the first
            rows of its occurrences.
        documents: rows of `repeating`, each with `spans` and `cuts`: runs of characters, repeated and cut.
    """

    passages: list[Row]
    documents: list[Row]


MOST_SAVING = """
    SELECT p.passage_id, p.tokens, p.documents, p.occurrences, p.text, s.saved
    FROM passages AS p
    JOIN (SELECT passage_id, CAST(sum(cut) AS BIGINT) AS saved FROM occurrences GROUP BY passage_id) AS s
    ON p.passage_id = s.passage_id
    ORDER BY s.saved DESC, p.occurrences DESC, p.tokens DESC, p.passage_id LIMIT {most}
"""
FIRST_PLACES = """
    SELECT passage_id, doc_id, token, token_end, char, char_end, first, cut
    FROM (SELECT o.*, row_number() OVER (PARTITION BY o.passage_id ORDER BY o.first DESC, o.doc_id, o.token) AS place
          FROM occurrences AS o JOIN wanted AS w ON o.passage_id = w.id) AS placed
    WHERE place <= {most} ORDER BY passage_id, place
"""
MOST_CUT = "SELECT * FROM repeating ORDER BY cut DESC, repeated DESC, doc_id LIMIT {most}"
FIRST_SPANS = """
    SELECT doc_id, char, char_end
    FROM (SELECT t.doc_id, t.char, t.char_end, row_number() OVER (PARTITION BY t.doc_id ORDER BY t.char) AS place
          FROM {table} AS t JOIN wanted AS w ON t.doc_id = w.id) AS placed
    WHERE place <= {most} ORDER BY doc_id, place
"""


def choose_shown(engine: Engine) -> Shown:
    """Choose what is shown: passages by tokens saved, then places; documents by tokens that can be cut.

    Args:
        engine: with the tables `passages`, `occurrences`, `cuts`, `repeating`.

    Cost: reads the occurrences twice.
    """
    passages = engine.sql(MOST_SAVING.format(most=PASSAGES)).to_pylist()
    wanted = wanted_of(row["passage_id"] for row in passages)
    places = engine.sql(FIRST_PLACES.format(most=PLACES), wanted=wanted).to_pylist()
    for row in passages:
        row["places"] = [place for place in places if place["passage_id"] == row["passage_id"]]
    documents = engine.sql(MOST_CUT.format(most=DOCUMENTS)).to_pylist()
    wanted = wanted_of(row["doc_id"] for row in documents)
    for name, table in (("spans", "occurrences"), ("cuts", "cuts")):
        # Each begins at a character of its own, which is shown: of more than these, none would be.
        spans = engine.sql(FIRST_SPANS.format(table=table, most=MOST_CHARACTERS), wanted=wanted).to_pylist()
        for row in documents:
            row[name] = join_spans(
                (span["char"], span["char_end"]) for span in spans if span["doc_id"] == row["doc_id"]
            )
    return Shown(passages, documents)


def wanted_of(ids: Iterable[str]) -> pa.Table:
    """Return ids as the table `wanted` of a query."""
    return pa.table({"id": pa.array(ids, pa.string())})


def draw_passages(
    shown: Shown, of: int, texts: Mapping[str, str], numbers: Sequence[tuple[str, str, str]], paragraphs: Sequence[str]
) -> str:
    """Return the page.

    Args:
        of: how many passages there are in all.
        texts: at least those of the shown documents.
        numbers: name, value and note of the numbers on top.
        paragraphs: further paragraphs at the top.
    """
    about = "Tokens of its places that can be cut with the first copy kept. Passages that overlap share tokens."
    if of > len(shown.passages):
        about += f" The first {len(shown.passages):,} of {of:,}; the tables have all."
    none = '<p class="empty">None.</p>'
    body = BODY.format(
        numbers="".join(draw_number(*number) for number in numbers),
        told="".join(f'<p class="note">{escape(line[:1].upper() + line[1:])}</p>' for line in paragraphs),
        about_passages=about,
        passages="".join(map(_draw_passage, shown.passages)) or none,
        documents="".join(_draw_document(row, texts[row["doc_id"]]) for row in shown.documents) or none,
    )
    return draw_page("Passages", body, LINKS, label="passages", sheet="report.css")


def _draw_passage(row: Row) -> str:
    places = "".join(
        f'<tr><th scope="row">{_name(place["doc_id"])}</th>'
        f'<td class="number">{place["char"]:,} to {place["char_end"]:,}</td><td>{_chip(place)}</td></tr>'
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


def _chip(place: Row) -> str:
    kind = " kept" if place["first"] else " removed" if place["cut"] else ""
    return f'<span class="chip{kind}">{outcome_of(place)}</span>'


def outcome_of(place: Row) -> str:
    """Say what becomes of an occurrence."""
    if place["first"]:
        return "first place"
    size = place["token_end"] - place["token"]
    if not place["cut"]:
        return "stays"
    return "cut" if place["cut"] == size else f"{place['cut']:,} of {size:,} tokens cut"


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
    return escape(_BLANK_LINES.sub("\n", text))


def _holds(spans: Sequence[Span], at: int) -> bool:
    number = bisect_right(spans, at, key=itemgetter(0)) - 1
    return number >= 0 and at < spans[number][1]
