"""The folder that `nddup passages` writes, and the lines that it prints."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.embedded.rewrite import Rewriter
from nddup.embedded.workers import Workers
from nddup.engines.duck import DuckEngine
from nddup.engines.engine import Engine
from nddup.errors import ConfigError
from nddup.ground.shown import counted
from nddup.passages.find_passages import FoundPassages, Source
from nddup.passages.tabulate import Documents, kept_lines, list_verdicts
from nddup.remote.addresses import spell_bare
from nddup.report.frame import read_style
from nddup.report.passages_page import choose_shown, draw_passages
from nddup.rewriting.cut_records import Cutting
from nddup.rewriting.rewrite_file import Rewritten
from nddup.rewriting.verdicts import NAMES, SPANS
from nddup.scanning.collection import Collection
from nddup.settings.plan import processes_of, record_limits, text_rule
from nddup.settings.schema import Config
from nddup.stages.stage import AS_INPUT, settings_of
from nddup.storage.local_folder import write_tables
from nddup.storage.local_storage import LocalStorage, is_local, local_path, writing

HEADER = "_PASSAGES.json"
"""What was read and how; `nddup check` reads it."""

TEXTS = "texts"
"""The folder of the texts of files of which nothing can be cut in place."""

FILE_RECORDS = 1_000_000
"""Consecutive records whose kept documents are lines of one file."""

TOLD = ("in sentences", "second copies", "dropped", "left without", "rejects")
"""How lines of the summary begin that are also on the page."""

SHOWN = 5
"""Maximum number of passages that are printed."""

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


class Told(NamedTuple):
    """The facts of the summary, on either engine.

    Attributes:
        documents, tokens: of the collection.
        passages, occurrences: rows of these tables.
        repeating: documents with repeated windows.
        covered, cut, allowed: tokens under repeated windows, those that are cut, and those that may be: more with
            `passages.whole_sentences`.
        second_copies: windows, none the first, of which no token may be cut.
        dropped: documents that are not written.
        first_reject: the first row of REJECTS.
        shown: the first `SHOWN` rows of PASSAGES.
        of_run: whether the documents are those that a run kept.
        emptied: documents of which every token may be cut, dropped or not.
        shuffled: bytes written to shuffles, on Spark.
    """

    documents: int
    tokens: int
    passages: int
    occurrences: int
    repeating: int
    covered: int
    cut: int
    allowed: int
    second_copies: int
    dropped: int
    rejects: int
    first_reject: Mapping[str, Any] | None
    shown: Sequence[Mapping[str, Any]]
    of_run: bool
    emptied: int = 0
    shuffled: int | None = None

    def counts(self) -> dict[str, int | bool]:
        """Return the numbers, by their names."""
        apart = ("first_reject", "shown", "shuffled")
        return {name: value for name, value in self._asdict().items() if name not in apart}


def write_found(passages: FoundPassages, source: Source, inputs: Sequence[str], folder: Path) -> Iterator[str]:
    """Write each table to a folder of its own, then the requested outputs, last the header.

    Yields:
        A line about each output.

    Raises:
        OutputError: if the folder cannot be written.
        NddupError: if a file changed meanwhile.
    """
    output, whole, summary = source.config.output, 0, tell(passages, source)
    with writing(f"--output {folder}"):
        write_tables(folder, passages.tables)
        if output.kept == "jsonl":
            _write_texts(passages, passages.documents.rows, source.config.passages.replace, folder / "kept")
        is_rewriting = AS_INPUT in (output.kept, output.tagged)
        verdicts = judge_all(passages.documents, passages.tables) if is_rewriting else None
        with Workers(processes_of(source.config)) as workers:
            if output.kept == AS_INPUT:
                written = rewriter_of(source, verdicts, is_tagging=False).write(folder / "kept", workers)
                whole = written.whole
                if uncut := uncut_sources(source.collection):
                    rows = passages.documents.rows
                    rows = rows.filter(pc.is_in(rows["source"], pa.array(uncut, pa.string())))
                    _write_texts(passages, rows, source.config.passages.replace, folder / TEXTS)
                yield from say_kept(written, source.collection)
            if output.tagged == AS_INPUT:
                tagged = rewriter_of(source, verdicts, is_tagging=True).write(folder / "tagged", workers)
                yield say_tagged(tagged)
        if output.report:
            engine = DuckEngine.over(str(folder), **passages.tables)
            put = lambda name, text: LocalStorage().write_text(f"{folder}/{name}", text)  # noqa: E731
            write_report(engine, summary, source.config, partial(_read_texts, passages.documents.rows), put)
        (folder / HEADER).write_text(spell_header(inputs, source.config, summary, whole=whole), encoding="utf-8")


def judge_all(documents: Documents, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the verdicts on all records, sorted by source and record."""
    others = documents.others.append_column(NAMES[0], pa.array([False] * len(documents.others), pa.bool_()))
    rejects = documents.rejects.select(["source", "record", "reason"])
    parts = [list_verdicts(documents, tables), others, rejects]
    whole = pa.concat_tables(parts, promote_options="default")
    return whole.sort_by([("source", "ascending"), ("record", "ascending")])


def _read_texts(rows: pa.Table, documents: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    wanted = pa.array([row["doc_id"] for row in documents], pa.string())
    chosen = rows.filter(pc.is_in(rows["doc_id"], wanted))
    return dict(zip(chosen["doc_id"].to_pylist(), chosen["text"].to_pylist(), strict=True))


def write_report(
    engine: Engine,
    summary: Told,
    config: Config,
    read_texts: Callable[[Sequence[Mapping[str, Any]]], Mapping[str, str]],
    put: Callable[[str, str], None],
) -> None:
    """Write the page of passages and documents, with its style.

    Args:
        summary: the facts of the summary.
        read_texts: returns the texts of some rows of REPEATING, by `doc_id`.
        put: writes a text file, given its path in the folder and its text.
    """
    shown, tokens = choose_shown(engine), summary.tokens
    numbers = [
        ("Documents", f"{summary.documents:,}", counted(tokens, "token")),
        ("Passages", f"{summary.passages:,}", f"of {counted(config.passages.min_tokens, 'token')} or more"),
        ("Repeated", _share(summary.covered, tokens), counted(summary.covered, "token")),
        ("Can go", _share(summary.cut, tokens), f"{counted(summary.cut, 'token')}, first copies kept"),
    ]
    more = [line for line in summarise(summary, config) if line.startswith(TOLD)]
    page = draw_passages(shown, summary.passages, read_texts(shown.documents), numbers, more)
    put("report/report.css", read_style())
    put("report/index.html", page.encode(errors="replace").decode())


def rewriter_of(source: Source, verdicts: pa.Table | None, *, is_tagging: bool) -> Rewriter:
    """Return what writes the files again: without what is cut, and files of which nothing can be cut; or with tags."""
    config = source.config
    collection = source.collection if is_tagging else only_cut(source.collection)
    is_first = config.input.limit is not None
    return Rewriter(collection, verdicts, is_tagging, is_first, record_limits(config), cutting_of(config))


def cutting_of(config: Config) -> Cutting:
    """Return how the texts were read of which something is cut."""
    rule = text_rule(config)
    return Cutting(config.passages.replace, rule.charset, rule.markup, rule.part)


def only_cut(collection: Collection) -> Collection:
    """Return a collection without the files of which nothing can be cut in place."""
    groups = tuple(group for group in collection.groups if not group.head.format.files.uncut)
    return replace(collection, groups=groups)


def say_kept(written: Rewritten, collection: Collection) -> Iterator[str]:
    """Yield lines about the collection that was written again, and its texts."""
    yield f"kept/: {counted(written.records, 'record')} in files of the same names"
    if written.plain:
        yield f"kept/: {counted(written.plain, 'record')} of markup are now their text without it"
    if written.whole:
        yield f"kept/: {counted(written.whole, 'record')} stay whole: cut, they would be read as another text"
    if uncut_sources(collection):
        forms = sorted({group.head.format.files.uncut for group in collection.groups} - {""})
        yield f"{TEXTS}/: the texts of {', '.join(forms)}, as lines of JSON: nothing can be cut in such files in place"


def say_tagged(written: Rewritten) -> str:
    """Return a line about the collection with tags."""
    return f"tagged/: {counted(written.records, 'record')} with {' and '.join(SPANS.names)}"


def uncut_sources(collection: Collection) -> list[str]:
    """Return the files of which nothing can be cut in place."""
    groups = [group for group in collection.groups if group.head.format.files.uncut]
    return [entry.file.source for group in groups for entry in group.files]


def _write_texts(passages: FoundPassages, rows: pa.Table, mark: str, folder: Path) -> None:
    folder.mkdir()
    documents = replace(passages.documents, rows=rows)
    lines = ((key // FILE_RECORDS, f"{line}\n") for key, line in kept_lines(documents, passages.tables, mark))
    for number, its_lines in groupby(chain([(0, "")], lines), key=itemgetter(0)):
        with (folder / name_texts(number)).open("w", encoding="utf-8") as file:
            file.writelines(line for _, line in its_lines)


def name_texts(number: int) -> str:
    """Return the name of a file of lines; the first is there even if it has none, of others there is none then."""
    return f"part-{number:05}.jsonl"


def spell_header(inputs: Sequence[str], config: Config, summary: Told, *, whole: int) -> str:
    """Return the header: the inputs, the settings, what was found, how many records stay `whole`, bytes shuffled."""
    settings = settings_of(config) | {"passages": config.passages.model_dump()}
    paths = [str(Path(local_path(path)).absolute()) if is_local(path) else spell_bare(path) for path in inputs]
    noted = {"found": summary.counts(), "whole": whole, "shuffled_bytes": summary.shuffled}
    return json.dumps({"inputs": paths, "settings": settings, **noted}, indent=1) + "\n"


def tell(passages: FoundPassages, source: Source) -> Told:
    """Return the facts of the summary from the embedded engine's result."""
    tables, cuts = passages.tables, passages.repeats.cuts
    rejects = tables["rejects"]
    return Told(
        documents=len(passages.documents.rows),
        tokens=len(passages.documents.hashes.values),
        passages=len(tables["passages"]),
        occurrences=len(tables["occurrences"]),
        repeating=len(tables["repeating"]),
        covered=int(cuts.covered.sum()),
        cut=pc.sum(tables["repeating"]["cut"]).as_py() or 0,
        allowed=int(cuts.cut.sum()),
        second_copies=cuts.second_copies,
        dropped=int(np.count_nonzero(tables["repeating"]["dropped"])),
        rejects=len(rejects),
        first_reject=next(iter(rejects.slice(0, 1).to_pylist()), None),
        shown=tables["passages"].slice(0, SHOWN).to_pylist(),
        of_run=source.kept is not None,
        emptied=int(np.count_nonzero(pc.equal(tables["repeating"]["tokens"], tables["repeating"]["cut"]))),
    )


def summarise(summary: Told, config: Config) -> Iterator[str]:
    """Yield the lines of the summary."""
    settings, tokens = config.passages, summary.tokens
    of = "kept documents of the run" if summary.of_run else "documents"
    yield f"{of}: {summary.documents:,}, {counted(tokens, 'token')}"
    where = "a document or more" if settings.within else "two documents or more"
    yield (
        f"passages: {summary.passages:,} of {counted(settings.min_tokens, 'token')} or more in {where},"
        f" {counted(summary.occurrences, 'occurrence')}"
    )
    yield (
        f"repeated: {counted(summary.covered, 'token')}, {_share(summary.covered, tokens)},"
        f" in {counted(summary.repeating, 'document')};"
        f" {summary.cut:,}, {_share(summary.cut, tokens)}, can go with the first copy of each kept"
    )
    if summary.allowed > summary.cut:
        yield f"in sentences with a token that stays: {counted(summary.allowed - summary.cut, 'token')}, not cut"
    if summary.second_copies:
        yield f"second copies that stay: {counted(summary.second_copies, 'window')}, of which no token may be cut"
    if summary.dropped:
        few = "without any token" if settings.min_left == 1 else f"with fewer than {settings.min_left:,} tokens"
        yield f"dropped: {counted(summary.dropped, 'document')} left {few}"
    elif summary.emptied:
        yield f"left without any token, and written: {counted(summary.emptied, 'document')} (passages.min_left: 0)"
    if first := summary.first_reject:
        yield (
            f"rejects, not read: {summary.rejects:,}; the first: record {first['record']} of {first['source']}:"
            f" {first['reason']} ({first['detail']})"
        )
    if summary.shuffled is not None:
        yield f"shuffled: {counted(summary.shuffled, 'byte')}, {summary.shuffled / max(tokens, 1):.1f} a token"
    for row in summary.shown:
        text = " ".join(row["text"].split())
        text = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
        yield f"  {row['occurrences']:,} times, {row['tokens']:,} tokens: {text}"
    if summary.passages > len(summary.shown) > 0:
        yield f"  and {counted(summary.passages - len(summary.shown), 'more passage')}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"
