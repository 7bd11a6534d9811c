"""The printed report of `nddup against`, its page, and the folder that it writes.

    summarise_verdicts, list_found   Compared -> lines for the terminal
    write_compared                   Compared -> the folder: tables, and the page `index.html`; `write_kept` writes A
                                                 without the records in which an item is found
    spell_page                       the page: each item that shares text, beside the document that shares most

The page is one file that needs no scripts and no network, light or dark like the reader's system. All text is escaped.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.against.compare_collections import Compared
from nddup.against.judge import CLEAN, COMMON, FOUND, PART, SHORT, UNREAD
from nddup.against.share_records import cut_regions, number_items
from nddup.embedded.rewrite import Rewriter, verdicts_of, write_apart
from nddup.embedded.workers import Workers
from nddup.ground.shown import counted
from nddup.report.frame import Link, draw_page, join_spans
from nddup.scanning.input_files import refuse_foreign
from nddup.settings.plan import processes_of, record_limits
from nddup.storage.local_folder import write_tables
from nddup.storage.local_storage import LocalStorage, local_path, require_new, writing

MOST_ITEMS = 500
"""Maximum number of items shown with their texts; the tables have all."""

MOST_CHARACTERS = 20_000
"""Maximum number of characters shown of a text."""

MOST_ROWS = 100
"""Maximum number of rows shown of a table."""

LINKS = (Link("#items", "Items"),)


class Piece(NamedTuple):
    """A piece of a text: the place of its first character in the text, and its characters."""

    start: int
    text: str


CODES = UNREAD + 1
"""Number of codes of verdicts."""

SHOWN_PARTS, SHOWN_ITEMS = 20, 10
"""Maximum numbers of parts of B with a line of their own, and of items printed."""


def spell_page(compared: Compared, summary: Sequence[str]) -> str:
    """Return the page: one file without scripts."""
    title = _safe(f"{compared.b.path} against {compared.a.path}")
    tables = (("Parts against parts", "matrix"), ("Suppressed shingles", "suppressed"), ("Rejected records", "rejects"))
    body = [f"<h1>{title}</h1>\n", *(f"<p>{_safe(line)}</p>\n" for line in summary), *_items(compared)]
    body += [part for heading, name in tables for part in _table(heading, compared.tables[name])]
    return draw_page(title, "".join(body), LINKS, label="against")


def _items(compared: Compared) -> Iterator[str]:
    """Yield the items that share text with A, highest containment first."""
    judged = compared.judged
    order = np.lexsort((-judged.covered, -judged.containment))
    items = [item for item in order.tolist() if judged.best[item] >= 0]
    yield '<h2 id="items">Items with something in common with A</h2>\n'
    cut = "" if len(items) <= MOST_ITEMS else f", the first {MOST_ITEMS:,} shown; the tables items and spans have all"
    shown = counted(len(items), "item") + cut
    yield f'<p class="note">{shown}. Marked: what an item and its document have in common.</p>\n'

    spans: dict[str, list[dict[str, Any]]] = {}
    for row in compared.tables["spans"].to_pylist():
        spans.setdefault(row["item"], []).append(row)
    rows = compared.tables["items"].take(pa.array(items[:MOST_ITEMS], pa.int64())).to_pylist()
    for place, (item, row) in enumerate(zip(items[:MOST_ITEMS], rows, strict=True)):
        yield _item(compared, item, row, spans[row["item"]], is_open=place == 0)


def _item(compared: Compared, item: int, row: dict[str, Any], spans: list[dict[str, Any]], *, is_open: bool) -> str:
    shared, document = compared.shared.rows, int(compared.judged.best[item])
    pieces = [
        Piece(start, text)
        for start, text in zip(
            shared["region_starts"][document].as_py(), shared["regions"][document].as_py(), strict=True
        )
    ]
    of_item = join_spans((one["item_char"], one["item_char_end"]) for one in spans)
    of_document = join_spans((one["document_char"], one["document_char_end"]) for one in spans)
    mine = _marked([Piece(0, compared.items.texts[item])], of_item)
    theirs = _marked(list(_around(pieces, of_document)), of_document)
    head = (
        f"<strong>{_safe(row['item'])}</strong> {row['verdict']} in <strong>{_safe(row['document'])}</strong>,"
        f" containment {row['containment']:.3f}, covered {row['covered']:.3f}"
    )
    if row["suppressed"]:
        head += f", {row['suppressed']:,} of {row['shingles']:,} shingles suppressed"
    sides = ((row["item"], row["source"], mine), (row["document"], row["document_source"], theirs))
    texts = "".join(
        f'<div class="cell"><b dir="auto">{_safe(name)}</b> <span class="note">{_safe(source)}</span>'
        f'<div class="beside-text" dir="auto" tabindex="0">{text}</div></div>'
        for name, source, text in sides
    )
    opened = " open" if is_open else ""
    return f'<details{opened}><summary>{head}</summary><div class="pair-row">{texts}</div></details>\n'


def _around(pieces: Iterable[Piece], spans: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    """Yield the parts of pieces near the spans; the rest of the pieces is near spans of other items."""
    for start, text in pieces:
        here = np.array([span for span in spans if start <= span[0] < start + len(text)], np.int32).reshape(-1, 2)
        if len(here):
            starts, parts = cut_regions(text, here[:, 0] - start, here[:, 1] - start)
            yield from (Piece(start + first, part) for first, part in zip(starts, parts, strict=True))


def _marked(pieces: Sequence[Piece], spans: Sequence[tuple[int, int]]) -> str:
    """Return pieces of a text as HTML with the spans marked; spans must be sorted and disjoint."""
    parts, left = [], MOST_CHARACTERS
    for piece in pieces:
        start, text = piece.start, piece.text[: max(left, 0)]
        is_cut, left, at = len(text) < len(piece.text), left - len(piece.text), 0
        parts.append("… " if start else "")
        for begin, end in spans:
            low, high = max(begin - start, at), min(end - start, len(text))
            if low < high:
                parts.append(f"{_safe(text[at:low])}<mark>{_safe(text[low:high])}</mark>")
                at = high
        parts.append(_safe(text[at:]) + (" … (cut here)" if is_cut else ""))
        if is_cut:
            break
    return "".join(parts)


def _table(title: str, table: pa.Table) -> Iterator[str]:
    if not len(table):
        return
    numbers = {name for name in table.column_names if pa.types.is_integer(table.schema.field(name).type)}
    classes = {name: ' class="number"' if name in numbers else "" for name in table.column_names}
    if title.startswith("Parts"):
        table = table.take(pc.sort_indices(table, [("found", "descending"), ("part", "descending")]))
    yield f'<h2>{title}</h2><div class="scroll" tabindex="0"><table><thead><tr>'
    yield "".join(f'<th scope="col"{classes[name]}>{name}</th>' for name in table.column_names)
    yield "</tr></thead><tbody>\n"
    for row in table.slice(0, MOST_ROWS).to_pylist():
        cells = ((name, f"{value:,}" if name in numbers else str(value or "")) for name, value in row.items())
        yield "<tr>" + "".join(f"<td{classes[name]}>{_safe(value)}</td>" for name, value in cells) + "</tr>\n"
    yield "</tbody></table></div>\n"
    if len(table) > MOST_ROWS:
        yield f'<p class="note">{len(table) - MOST_ROWS:,} more rows in the table.</p>\n'


def _safe(text: str) -> str:
    """Escape a text for HTML, without the control characters that HTML does not allow."""
    return escape("".join(one for one in text if one in "\n\t" or one.isprintable() or one.isspace()))


def new_folder(output: str, inputs: Sequence[str], *, name: str = "--output") -> Path:
    """Return the folder of the output, which the option `name` gives.

    Raises:
        ConfigError: if an input is an empty path, or an address that is not opened.
        OutputError: if it exists, or overlaps an input.
    """
    refuse_foreign(inputs)
    require_new(LocalStorage(), inputs, output, name=name)
    return Path(local_path(output))


def write_kept(compared: Compared, output: str) -> int:
    """Write the files of A again without the records in which an item is found, and without those that cannot be read.

    Returns:
        The number of records written.

    Raises:
        OutputError: if the folder cannot be written.
        NddupError: if a file changed meanwhile or cannot be written again.

    Cost: one pass over A. Memory: some 100 bytes for each record of A.
    """
    side, shared = compared.a, compared.shared
    stays = {source: np.ones(count, np.int8) for source, count in shared.counts.items()}
    for place in np.flatnonzero(compared.judged.holds).tolist():
        stays[shared.sources[place]][shared.records[place] - 1] = 0
    rejects = shared.rejects.select(["source", "record", "reason"])
    for source, record in zip(rejects["source"].to_pylist(), rejects["record"].to_pylist(), strict=True):
        if source in stays:
            stays[source][record - 1] = -1
    tables = [
        pa.table({"source": pa.array([source], pa.string()).take(pa.array(np.zeros(int((flags >= 0).sum()), np.int64))),
                  "record": np.flatnonzero(flags >= 0) + 1, "stays": flags[flags >= 0] > 0})
        for source, flags in stays.items()
    ]  # fmt: skip
    verdicts = verdicts_of(pa.concat_tables(tables), rejects)
    rewriter = Rewriter(side.collection, verdicts, is_tagging=False, is_first=False, limits=record_limits(side.config))
    with Workers(processes_of(side.config)) as workers:
        return write_apart(rewriter, output, workers)


def summarise_verdicts(compared: Compared) -> list[str]:
    """Return a line for each part of B, then lines on what was read and what was left out."""
    judged, parts = compared.judged, compared.b.parts
    of_item = compared.b.places_of(compared.items.sources)
    counts = np.bincount(CODES * of_item + judged.verdicts, minlength=CODES * len(parts)).reshape(-1, CODES)
    order = np.argsort(-counts[:, FOUND], kind="stable").tolist() if len(parts) > SHOWN_PARTS else range(len(parts))
    lines = [_line(parts[place], counts[place]) for place in list(order)[:SHOWN_PARTS]]
    if len(parts) > SHOWN_PARTS:
        lines.append(f"… and {len(parts) - SHOWN_PARTS:,} more parts")
    if len(parts) > 1:
        lines.append(_line("all", counts.sum(axis=0)))
    return [*lines, *_about(compared)]


def _line(name: str, counts: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> str:
    parts = [counted(int(counts.sum()), "item"), f"{counts[FOUND]:,} found"]
    parts += [f"{counts[PART]:,} part"] if counts[PART] else []
    parts.append(f"{counts[CLEAN]:,} clean")
    untested = [(counts[SHORT], "short"), (counts[COMMON], "common"), (counts[UNREAD], "unread")]
    text = ", ".join(f"{count:,} {reason}" for count, reason in untested if count)
    return f"{name}: {', '.join(parts)}" + (f"; not testable: {text}" if text else "")


def _about(compared: Compared) -> Iterator[str]:
    shared, items = compared.shared, compared.items
    read = counted(shared.documents, "document")
    yield f"{compared.a.path}: {read} read, {len(shared.ids):,} with a shingle of an item"
    if suppressed := len(compared.tables["suppressed"]):
        distinct = int(np.count_nonzero(~number_items(items.tables).repeated))
        yield f"suppressed: {suppressed:,} of {distinct:,} shingles, in too many documents"
    if len(items.parts) > 1:
        yield f"{compared.b.path}: its shingles were taken in {len(items.parts):,} parts, as local.memory holds no more"
    if not shared.is_all_read:
        yield f"{compared.a.path}: not all of it was read, so no item is clean; the rejects say what and why"
    for path, rejects in ((compared.a.path, shared.rejects), (compared.b.path, items.rejects)):
        if len(rejects):
            first = rejects.slice(0, 1).to_pylist()[0]
            yield (
                f"{path}: rejects, not compared: {len(rejects):,}; the first: record {first['record']} of"
                f" {first['source']}: {first['reason']} ({first['detail']})"
            )
    if items.renamed:
        yield f"{compared.b.path}: {counted(items.renamed, 'id')} repeated; such items are named by file and record"
    if len(compared.a.parts) * len(compared.b.parts) > len(compared.tables["matrix"]):
        yield f"matrix: of {len(compared.a.parts):,} x {len(compared.b.parts):,} parts, those that share something"


def list_found(compared: Compared, *, is_written: bool) -> Iterator[str]:
    """Yield a line for each of the first found items; `is_written` says whether a folder has all of them."""
    places = np.flatnonzero(compared.judged.verdicts == FOUND)
    for row in compared.tables["items"].take(places[:SHOWN_ITEMS]).to_pylist():
        where = f"{row['document']} ({row['document_source']})"
        yield f"found: {row['item']} in {where}, containment {row['containment']:.3f}"
    if len(places) > SHOWN_ITEMS:
        more = f"found: {len(places) - SHOWN_ITEMS:,} more"
        yield more if is_written else f"{more}; --output DIR writes all of them"


def write_compared(compared: Compared, folder: Path) -> None:
    """Write each table to a folder of its own, then `index.html`.

    Raises:
        OutputError: if the folder cannot be written.
    """
    with writing(f"--output {folder}"):
        write_tables(folder, compared.tables)
        with (folder / "index.html").open("w", encoding="utf-8", errors="replace") as page:
            page.write(spell_page(compared, summarise_verdicts(compared)))
