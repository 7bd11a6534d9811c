"""`nddup show RUN --copies-of`: where a text stands among the inputs of a run, whole or in part.

    find_copies    run, an id or a file -> a row for each document that shares a passage with the text
    copy_lines     these rows           -> a CSV file that `keep.force` and `index remove` read

The inputs are compared with the text as `nddup against` compares A with B.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from nddup.against.against_inputs import Items, Side, find_side, make_parts, read_items
from nddup.against.compare_collections import Shared, SharedSpans, read_shared, start_here
from nddup.against.share_records import number_items
from nddup.embedded.workers import Workers
from nddup.engines.engine import find_ids, text_places
from nddup.errors import ConfigError, NddupError
from nddup.ground.progress import Steps
from nddup.ground.shown import csv_line
from nddup.results.opening import is_read_here, read_texts
from nddup.settings.schema import Config
from nddup.sketching.tokens import tokenise
from nddup.stages.inputs_found import find_again, paths_of
from nddup.storage.local_storage import LocalStorage, is_local, local_path
from nddup.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from nddup.engines.engine import FinishedRun

LENGTH = 8
"""Minimum number of tokens of a passage; a document that has fewer is looked for whole."""

WHOLE = 0.8
"""Minimum share of the shingles of a text that makes it contained."""

PLACED = "SELECT p.place, d.doc_id FROM documents AS d JOIN placed AS p ON d.source = p.source AND d.record = p.record"
"""The ids by which the run knows the documents."""


class Copy(NamedTuple):
    """A document that shares a passage with a text.

    Attributes:
        doc_id: of the document.
        verdict: `removed`, for lists that say what becomes of documents.
        what: `contains`: the text stands in the document; `contained`: the document in the text; `copy`: both; else
            `passage`.
        of: the id of the text.
        of_text: the share of the text's shingles that the document has.
        of_document: the share of the document's shingles that the text has.
        source: the file of the document.
        record: its place there.
        places: the shared characters of the document, `begin-end`, separated by blanks.
    """

    doc_id: str
    verdict: str
    what: str
    of: str
    of_text: float
    of_document: float
    source: str
    record: int
    places: str


def copy_lines(copies: Iterable[Copy]) -> Iterator[str]:
    """Yield the lines of a CSV file, the header first."""
    yield csv_line(Copy._fields)
    for row in copies:
        yield csv_line(row)


def find_copies(run: "FinishedRun", asked: str, *, master: str | None, steps: Steps) -> list[Copy]:
    """Find all documents of a run that share a passage with a text; the most alike first.

    Args:
        run: the run, whose inputs are read again.
        asked: the id of a document, or a file of texts. A Message-ID may stand in angle brackets, as in the mail.

    Raises:
        ConfigError: if there is no such document or file, or the run or an input is not on this machine.
        NddupError: if an input is gone or was changed.

    Cost: that of `nddup against INPUTS TEXT`: one pass over the inputs.
    """
    folder = RunFolder(LocalStorage(), run.path)
    if not is_read_here(run.path, master=master) or not is_read_here(*paths_of(folder), master=None):
        raise ConfigError("--copies-of: reads inputs of this machine; `nddup against` compares others, on Spark")
    texts = [(row["doc_id"], row["text"]) for row in _text_of(run, asked, master)]
    if not texts and not (is_local(asked) and Path(local_path(asked)).exists()):
        raise ConfigError(f"--copies-of {asked}: neither a document of the run nor a file")
    try:
        again = find_again(folder, LocalStorage())
    except ConfigError as error:  # an input that is gone is no mistake of the command line here
        raise NddupError(str(error)) from error
    with TemporaryDirectory(prefix="nddup-", ignore_cleanup_errors=True) as name:
        spool = Path(name)
        with start_here(again.config, spool, steps) as engine:
            steps.begin("read the text")
            items = _items_of(texts or asked, again.config, engine.workers, spool)
            steps.begin("compare with the inputs")
            side = Side(run.path, *again, {file.source: "" for file in again.collection.listing.files})
            shared = read_shared(side, items, engine.workers, engine.share, counts=True)
        return sorted(_list_copies(run, items, shared), key=lambda row: (-row.of_text, -row.of_document, row.doc_id))


def _text_of(run: "FinishedRun", asked: str, master: str | None) -> list[dict[str, str]]:
    places = text_places(run, find_ids(run, [asked]).values())
    try:
        return read_texts(run.path, places, master=master, is_whole=True).to_pylist() if places else []
    except ConfigError as error:
        raise NddupError(str(error)) from error


def _items_of(texts: list[tuple[str, str]] | str, config: Config, workers: Workers, spool: Path) -> Items:
    if isinstance(texts, str):
        return read_items(find_side(texts, config, "source", LocalStorage()), LENGTH, workers, spool)
    ids, whole = [doc_id for doc_id, _ in texts], [text for _, text in texts]
    ignored = config.tokens.ignored
    length = max(1, min(LENGTH, *(len(tokenise(text, ignored)) for text in whole)))
    return Items(ids, ids, whole, tuple(make_parts(whole, length, workers.memory, spool, ignored)), pa.table({}), 0)


def _list_copies(run: "FinishedRun", items: Items, shared: Shared) -> Iterator[Copy]:
    offsets, numbers, *_ = shared.holders
    numbered, count = number_items(items.tables), len(offsets) - 1
    known = len(numbered.repeated)
    documents, shingles = np.divmod(np.unique(np.repeat(np.arange(count), np.diff(offsets)) * known + numbers), known)
    names = _names_of(run, shared)
    spans = SharedSpans(items, shared, np.zeros(known, np.bool_))
    for item, doc_id in enumerate(items.ids):
        of_item = np.unique(numbered.numbers[numbered.firsts[item] : numbered.firsts[item + 1]])
        is_own = np.zeros(known, np.bool_)
        is_own[of_item[of_item >= 0]] = True
        common = np.bincount(documents[is_own[shingles]], minlength=count)
        for place in np.flatnonzero(common).tolist():
            if place in names:
                of_text, of_document = common[place] / is_own.sum(), common[place] / shared.holders.sizes[place]
                rows = spans.of(item, place)
                yield Copy(
                    names[place], "removed", _kind(of_text, of_document), doc_id, round(float(of_text), 4),
                    round(float(of_document), 4), shared.sources[place], int(shared.records[place]),
                    " ".join(f"{row['document_char']}-{row['document_char_end']}" for row in rows),
                )  # fmt: skip


def _names_of(run: "FinishedRun", shared: Shared) -> dict[int, str]:
    """Return the id of each document by its place in `shared`: few, as they share something with the text."""
    places = pa.table({"place": range(len(shared.ids)), "source": shared.sources, "record": shared.records})
    run.see("placed", places)
    return {int(place): str(doc_id) for place, doc_id in run.rows(PLACED)}


def _kind(of_text: float, of_document: float) -> str:
    if of_text >= WHOLE:
        return "copy" if of_document >= WHOLE else "contains"
    return "contained" if of_document >= WHOLE else "passage"
