"""The folder that `nddup passages` writes, and the lines that it prints."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nddup.errors import ConfigError, OutputError
from nddup.local.reading.workers import Workers
from nddup.local.rewritten_files import Rewriter, Rewritten
from nddup.passages.tabulate import Documents, kept_lines, list_verdicts
from nddup.report.passages_page import choose_shown, draw_passages
from nddup.results.passages.find_passages import Found, Source
from nddup.rewriting.cut_records import Cutting
from nddup.rewriting.rewrite_file import UNCUT
from nddup.rewriting.verdicts import SPANS
from nddup.scanning.collection import Collection
from nddup.settings.plan import processes_of, record_limits, text_rule
from nddup.settings.schema import Config
from nddup.spelling import counted
from nddup.stages.stage import AS_INPUT, settings_of

HEADER = "_PASSAGES.json"
"""What was read and how; `nddup check` reads it."""

TEXTS = "texts"
"""The folder of the texts of files of which nothing can be cut in place."""

TOLD = ("second copies", "dropped", "rejects")
"""How lines of the summary begin that are also on the page."""

SHOWN = 5
"""Most passages that are printed."""

SHOWN_CHARACTERS = 70
"""Characters of a printed passage."""


def require_writable(config: Config) -> None:
    """Refuse settings of output that passages does not have.

    Raises:
        ConfigError: naming the setting.
    """
    if config.output.kept not in {"none", "jsonl", AS_INPUT}:
        raise ConfigError(
            f"output.kept: passages writes the cut texts as-input or as jsonl, not as {config.output.kept}"
        )


def write_found(found: Found, source: Source, inputs: Sequence[str], folder: Path) -> Iterator[str]:
    """Write each table to a folder of its own, then the outputs that are asked for, last the header.

    Yields:
        A line about each output.

    Raises:
        OutputError: if the folder cannot be written.
        NddupError: if a file changed meanwhile.
    """
    settings = settings_of(source.config) | {"passages": source.config.passages.model_dump()}
    output, mark, whole = source.config.output, source.config.passages.replace, 0
    try:
        for name, table in found.tables.items():
            (folder / name).mkdir(parents=True)
            pq.write_table(table, folder / name / "part-00000.zstd.parquet", compression="zstd")
        if output.kept == "jsonl":
            (folder / "kept").mkdir()
            _write_texts(found.documents, found, mark, folder / "kept" / "part-00000.jsonl")
        verdicts = list_verdicts(found.documents, found.tables) if AS_INPUT in (output.kept, output.tagged) else None
        with Workers(processes_of(source.config)) as workers:
            if output.kept == AS_INPUT:
                written = _rewriter(source, verdicts, is_tagging=False).write(folder / "kept", workers)
                whole = written.whole
                yield f"kept/: {counted(written.records, 'record')} in files of the same names"
                yield from _say_exceptions(written)
                yield from _write_uncut(found, source, folder)
            if output.tagged == AS_INPUT:
                tagged = _rewriter(source, verdicts, is_tagging=True).write(folder / "tagged", workers)
                yield f"tagged/: {counted(tagged.records, 'record')} with {' and '.join(SPANS.names)}"
        if output.report:
            _write_report(found, source, folder / "report")
        header = {"inputs": [str(Path(path).absolute()) for path in inputs], "settings": settings, "whole": whole}
        (folder / HEADER).write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"--output {folder}: cannot be written ({error.strerror or error})") from error


def _write_report(found: Found, source: Source, folder: Path) -> None:
    """Write the page of passages and documents, with its style."""
    shown = choose_shown(found.tables)
    rows, cuts = found.documents.rows, found.repeats.cuts
    wanted = pa.array([row["doc_id"] for row in shown.documents], pa.string())
    some = rows.filter(pc.is_in(rows["doc_id"], wanted))
    texts = dict(zip(some["doc_id"].to_pylist(), some["text"].to_pylist(), strict=True))
    tokens, covered, cut = len(found.documents.hashes.values), int(cuts.covered.sum()), int(cuts.cut.sum())
    numbers = [
        ("Documents", f"{len(rows):,}", f"{tokens:,} tokens"),
        ("Passages", f"{shown.of:,}", f"of {source.config.passages.min_tokens:,} tokens or more"),
        ("Repeated", _share(covered, tokens), f"{covered:,} tokens"),
        ("Can go", _share(cut, tokens), f"{cut:,} tokens, first copies kept"),
    ]
    told = [line for line in summarise(found, source) if line.startswith(TOLD)]
    folder.mkdir()
    style = files("nddup.report").joinpath("assets", "report.css").read_text(encoding="utf-8")
    (folder / "report.css").write_text(style, encoding="utf-8")
    page = draw_passages(shown, texts, numbers, told)
    (folder / "index.html").write_text(page, encoding="utf-8", errors="replace")


def _rewriter(source: Source, verdicts: pa.Table | None, *, is_tagging: bool) -> Rewriter:
    """Return what writes the files again: without what is cut, and files of which nothing can be cut; or with tags."""
    config, collection = source.config, source.collection
    if not is_tagging:
        groups = tuple(group for group in collection.groups if group.head.format.kind not in UNCUT)
        collection = replace(collection, groups=groups)
    rule = text_rule(config)
    cutting = Cutting(config.passages.replace, rule.charset, rule.markup, rule.part)
    is_first = config.input.limit is not None
    return Rewriter(collection, verdicts, is_tagging, is_first, record_limits(config), cutting)


def _say_exceptions(written: Rewritten) -> Iterator[str]:
    if written.plain:
        yield f"kept/: {counted(written.plain, 'record')} of markup are now their text without it"
    if written.whole:
        yield f"kept/: {counted(written.whole, 'record')} stay whole: cut, they would be read as another text"


def _write_uncut(found: Found, source: Source, folder: Path) -> Iterator[str]:
    """Write the texts of the documents in files that cannot be cut in place."""
    named = uncut_sources(source.collection)
    if not named:
        return
    rows = found.documents.rows
    rows = rows.filter(pc.is_in(rows["source"], pa.array(named, pa.string())))
    (folder / TEXTS).mkdir()
    documents = replace(found.documents, rows=rows)
    _write_texts(documents, found, source.config.passages.replace, folder / TEXTS / "part-00000.jsonl")
    kinds = {group.head.format.kind for group in source.collection.groups}
    told = sorted(UNCUT[kind] for kind in kinds if kind in UNCUT)
    yield f"{TEXTS}/: the texts of {', '.join(told)}, as lines of JSON: nothing can be cut in such files in place"


def uncut_sources(collection: Collection) -> list[str]:
    """Return the files of which nothing can be cut in place."""
    groups = [group for group in collection.groups if group.head.format.kind in UNCUT]
    return [entry.file.source for group in groups for entry in group.files]


def _write_texts(documents: Documents, found: Found, mark: str, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in kept_lines(documents, found.tables, mark))


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
