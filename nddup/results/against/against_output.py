"""The printed report of `nddup against`, and the folder that it writes."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from nddup.against.join_parts import number_items
from nddup.against.judge import CLEAN, COMMON, FOUND, PART, SHORT, UNREAD
from nddup.errors import OutputError
from nddup.results.against.against_page import spell_page
from nddup.results.against.compare_collections import Compared
from nddup.settings.sizes import counted
from nddup.storage.apart import require_apart
from nddup.storage.local_storage import LocalStorage, local_path

CODES = UNREAD + 1
"""Number of codes of verdicts."""

SHOWN_PARTS, SHOWN_ITEMS = 20, 10
"""Most parts of B with a line of their own, and most found items that are printed."""


def require_new(output: str, inputs: Sequence[str]) -> Path:
    """Return the folder of the output.

    Raises:
        OutputError: if it exists, or overlaps an input.
    """
    folder = Path(local_path(output))
    if folder.exists():
        raise OutputError(f"--output {output}: exists already; give another folder")
    require_apart(LocalStorage(), inputs, output)
    return folder


def summarise_verdicts(compared: Compared) -> list[str]:
    """Return a line for each part of B, then lines on what was read and what was left out."""
    judged, parts = compared.judged, compared.b.parts
    places = {label: place for place, label in enumerate(parts)}
    of_item = np.array([places[compared.b.labels[source]] for source in compared.items.sources], np.int64)
    counts = np.bincount(CODES * of_item + judged.verdicts, minlength=CODES * len(parts)).reshape(-1, CODES)
    order = np.argsort(-counts[:, FOUND], kind="stable").tolist() if len(parts) > SHOWN_PARTS else range(len(parts))
    lines = [_line(parts[place], counts[place]) for place in list(order)[:SHOWN_PARTS]]
    if len(parts) > SHOWN_PARTS:
        lines.append(f"… and {len(parts) - SHOWN_PARTS:,} more parts")
    if len(parts) > 1:
        lines.append(_line("all", counts.sum(axis=0)))
    return [*lines, *_about(compared)]


def _line(name: str, counts: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> str:
    """Return the number of items of a part with each verdict, as a line."""
    said = [counted(int(counts.sum()), "item"), f"{counts[FOUND]:,} found"]
    said += [f"{counts[PART]:,} part"] if counts[PART] else []
    said.append(f"{counts[CLEAN]:,} clean")
    untested = [(counts[SHORT], "short"), (counts[COMMON], "common"), (counts[UNREAD], "unread")]
    told = ", ".join(f"{count:,} {reason}" for count, reason in untested if count)
    return f"{name}: {', '.join(said)}" + (f"; not testable: {told}" if told else "")


def _about(compared: Compared) -> Iterator[str]:
    """Yield lines on what was read and what does not count."""
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
    found = np.flatnonzero(compared.judged.verdicts == FOUND)
    for row in compared.tables["items"].take(found[:SHOWN_ITEMS]).to_pylist():
        where = f"{row['document']} ({row['document_source']})"
        yield f"found: {row['item']} in {where}, containment {row['containment']:.3f}"
    if len(found) > SHOWN_ITEMS:
        more = f"found: {len(found) - SHOWN_ITEMS:,} more"
        yield more if is_written else f"{more}; --output DIR writes all of them"


def write_compared(compared: Compared, folder: Path) -> None:
    """Write each table to a folder of its own, then `index.html`.

    Raises:
        OutputError: if the folder cannot be written.
    """
    try:
        for name, table in compared.tables.items():
            (folder / name).mkdir(parents=True)
            pq.write_table(table, folder / name / "part-00000.zstd.parquet", compression="zstd")
        with (folder / "index.html").open("w", encoding="utf-8", errors="replace") as page:
            page.writelines(spell_page(compared, summarise_verdicts(compared)))
    except OSError as error:
        raise OutputError(f"--output {folder}: cannot be written ({error.strerror or error})") from error
