"""The folder that `nddup passages` writes, and the lines that it prints."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TextIO

import numpy as np
import pyarrow.parquet as pq

from nddup.errors import ConfigError, OutputError
from nddup.passages.tabulate import cut_text
from nddup.results.passages.find_passages import Found, Source
from nddup.settings.schema import Config
from nddup.spelling import counted
from nddup.stages.stage import settings_of

HEADER = "_PASSAGES.json"
"""What was read and how; `nddup check` reads it."""

SHOWN = 5
"""Most passages that are printed."""

SHOWN_CHARACTERS = 70
"""Characters of a printed passage."""


def require_writable(config: Config) -> None:
    """Refuse settings of output that passages does not have.

    Raises:
        ConfigError: naming the setting.
    """
    if config.output.kept not in {"none", "jsonl"}:
        raise ConfigError(
            f"output.kept: passages writes the cut texts as jsonl, not {config.output.kept}; the table cuts has the"
            " characters to cut in other formats"
        )
    if config.output.tagged != "none":
        raise ConfigError("output.tagged: passages tags nothing; the table cuts has the spans of every document")


def write_found(found: Found, source: Source, inputs: Sequence[str], folder: Path) -> None:
    """Write each table to a folder of its own, then the cut texts if they are asked for, last the header.

    Raises:
        OutputError: if the folder cannot be written.
    """
    settings = settings_of(source.config) | {"passages": source.config.passages.model_dump()}
    try:
        for name, table in found.tables.items():
            (folder / name).mkdir(parents=True)
            pq.write_table(table, folder / name / "part-00000.zstd.parquet", compression="zstd")
        if source.config.output.kept == "jsonl":
            (folder / "kept").mkdir()
            with (folder / "kept" / "part-00000.jsonl").open("w", encoding="utf-8") as file:
                _write_kept(found, source.config.passages.replace, file)
        header = {"inputs": [str(Path(path).absolute()) for path in inputs], "settings": settings}
        (folder / HEADER).write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"--output {folder}: cannot be written ({error.strerror or error})") from error


def _write_kept(found: Found, mark: str, file: TextIO) -> None:
    """Write a line for each document that is not dropped: its id and its text without what was cut."""
    rows = zip(*(found.tables["cuts"][name].to_pylist() for name in ("doc_id", "char", "char_end")), strict=True)
    cuts = {doc_id: [span[1:] for span in some] for doc_id, some in groupby(rows, key=itemgetter(0))}
    repeating = found.tables["repeating"]
    flags = zip(repeating["doc_id"].to_pylist(), repeating["dropped"].to_pylist(), strict=True)
    dropped = {doc_id for doc_id, is_dropped in flags if is_dropped}
    for batch in found.documents.rows.select(["doc_id", "text"]).to_batches(max_chunksize=1_000):
        for doc_id, text in zip(batch["doc_id"].to_pylist(), batch["text"].to_pylist(), strict=True):
            if doc_id not in dropped:
                kept = cut_text(text, cuts.get(doc_id, ()), mark)
                file.write(json.dumps({"id": doc_id, "text": kept}, ensure_ascii=False) + "\n")


def summarise(found: Found, source: Source) -> Iterator[str]:
    """Yield the lines of the summary."""
    settings, cuts = source.config.passages, found.repeats.cuts
    tokens = len(found.documents.hashes.values)
    of = "kept documents of the run" if source.kept is not None else "documents"
    yield f"{of}: {len(found.documents.rows):,}, {counted(tokens, 'token')}"
    where = "a document or more" if settings.within else "two documents or more"
    listed = found.tables["passages"]
    yield (
        f"passages: {len(listed):,} of {settings.min_tokens:,} tokens or more in {where},"
        f" {len(found.tables['occurrences']):,} occurrences"
    )
    covered, cut = int(cuts.covered.sum()), int(cuts.cut.sum())
    yield (
        f"repeated: {covered:,} tokens, {_share(covered, tokens)},"
        f" in {counted(len(found.tables['repeating']), 'document')};"
        f" {cut:,}, {_share(cut, tokens)}, can go with the first copy of each kept"
    )
    if cuts.second_copies:
        yield f"second copies that stay: {counted(cuts.second_copies, 'window')}, of which no token may be cut"
    if dropped := int(np.count_nonzero(found.tables["repeating"]["dropped"])):
        yield f"dropped: {counted(dropped, 'document')} left with fewer than {settings.min_left:,} tokens"
    if len(rejects := found.tables["rejects"]):
        first = rejects.slice(0, 1).to_pylist()[0]
        yield (
            f"rejects, not read: {len(rejects):,}; the first: record {first['record']} of {first['source']}:"
            f" {first['reason']} ({first['detail']})"
        )
    for row in listed.slice(0, SHOWN).to_pylist():
        text = " ".join(row["text"].split())
        text = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
        yield f"  {row['occurrences']:,} times, {row['tokens']:,} tokens: {text}"
    if len(listed) > SHOWN:
        yield f"  and {counted(len(listed) - SHOWN, 'more passage')}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"
