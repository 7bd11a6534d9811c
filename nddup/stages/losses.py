"""How much a run may lose before it fails: rejects, files that gave no document, and files that cannot be opened."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from nddup.engines.engine import Engine, EngineTable
from nddup.errors import NddupError
from nddup.ground.shown import counted, spell_size
from nddup.reading.containers import KNOWN_BINARY
from nddup.reading.csv_rows import HEADER
from nddup.reading.outcomes import EMPTY
from nddup.scanning.collection import Collection
from nddup.settings.schema import InputConfig
from nddup.tables import REPEATED, TAKEN_OUT

UNREADABLE = "unreadable"
"""The reject reason of a file that could not be opened; a cut or damaged file gives what can be read of it."""

READ = (REPEATED, "short", TAKEN_OUT)
"""The reject reasons of records that were read: a file of nothing else is no file without a document."""

NO_DOCUMENTS = ("not text", "revisit", "status", "deleted", HEADER, TAKEN_OUT)
"""The reject reasons of records that hold no document: the images, scripts, redirects and error pages of a crawl,
repeated fetches of what was never found, what a source has deleted, headers of joined tables, and what the user takes
out."""

NAMED_FILES = 3
"""Maximum number of files that a message names."""

_COMPRESSED = re.compile(r"\.(gz|bz2|xz|zst)$")


class SilentFile(NamedTuple):
    """A file without a document: its first reject, in the order of reasons, and the number of its rejects."""

    source: str
    reason: str
    detail: str
    rejects: int


UNREAD_FILES = "SELECT source, reason, detail FROM rejects WHERE reason = 'unreadable'"

SILENT_FILES = """
    SELECT r.source, min(r.reason) AS reason, min(r.detail) AS detail, count(*) AS rejects
    FROM rejects AS r LEFT JOIN (SELECT DISTINCT source FROM documents) AS d ON r.source = d.source
    WHERE d.source IS NULL AND r.reason NOT IN {read}
    GROUP BY r.source
"""


def require_readable(unread: Sequence[tuple[str, str, str]], limit: int) -> None:
    """Stop if more files than the run allows could not be opened: a few rejects may stand for most of the text.

    Args:
        unread: source, reason and detail of rejects; those with other reasons are ignored.
        limit: `input.max_unreadable`.

    Raises:
        NddupError: naming all these files.
    """
    named = [f"{source} ({detail})" for source, reason, detail in unread if reason == UNREADABLE]
    if len(named) > limit:
        raise NddupError(f"files that cannot be read: {len(named)}, input.max_unreadable {limit}: {'; '.join(named)}")


def list_unreadable(engine: Engine) -> list[tuple[str, str, str]]:
    """Return source, reason and detail of the files that could not be opened, from the table `rejects`, in order."""
    return sorted(tuple(row.values()) for row in engine.sql(UNREAD_FILES).to_pylist())


def list_silent_files(engine: Engine) -> list[SilentFile]:
    """Return the files that gave rejects and no document, by name; rejects of `READ` do not count."""
    return sorted(SilentFile(**row) for row in engine.sql(SILENT_FILES.format(read=READ)).to_pylist())


def require_few_losses(
    ask: Callable[[], Engine], documents: int, reasons: Mapping[str, int], limits: InputConfig, source: EngineTable
) -> list[SilentFile]:
    """Stop if more was lost than the settings allow; return the files that gave no document.

    Args:
        ask: returns an engine with the tables `documents` and `rejects`; called only if there are rejects that count.
        reasons: number of rejects that count, by reason.
        limits: `input.max_unreadable` and `input.max_rejects`.
        source: what was read; files without a document are looked for in a Collection only.

    Raises:
        NddupError: as `require_readable` and `require_few_rejects`.

    Cost: a question over the rejects and the sources of the documents; another for files that could not be opened.
    """
    files = source if isinstance(source, Collection) else None
    known = None if files is None else {file.source for file in files.listing.files}  # those of OLD were judged then
    if UNREADABLE in reasons:
        unreadable = [file for file in list_unreadable(ask()) if known is None or file[0] in known]
        require_readable(unreadable, limits.max_unreadable)
    silent = list_silent_files(ask()) if reasons and files is not None else []
    silent = [file for file in silent if known is None or file.source in known]
    require_few_rejects(documents, reasons, limits.max_rejects, silent=silent, source=files)
    return silent


def require_few_rejects(
    documents: int,
    reasons: Mapping[str, int],
    limit: float | None,
    *,
    silent: Sequence[SilentFile] = (),
    source: Collection | None = None,
) -> None:
    """Stop if too many records, or too much of the files, gave no document.

    Records count of files whose names end as those of files that gave documents. So do the bytes of these files, and of
    any other that could have been read. Not those of a file without bytes, of images and archives of any name, or of a
    file that was read to its end and holds no record, such as an empty part of a Parquet table. Nor do the
    records of `NO_DOCUMENTS`: most records of many crawls are images, scripts and redirects.

    Args:
        reasons: number of rejects that count, by reason.
        limit: `input.max_rejects`, the largest share of the records that may be rejects, and of the bytes of files that
            gave no document; None allows any.
        silent: the files without a document.
        source: the files; None for given texts.

    Raises:
        NddupError: naming the reasons, and the first files without a document.
    """
    if limit is None:
        return
    shards, others, foreign = _split(silent, source)
    counts = dict(reasons)
    for file in others + foreign:
        counts[file.reason] = counts.get(file.reason, 0) - file.rejects
    for reason in NO_DOCUMENTS:
        counts.pop(reason, None)
    rejects = sum(counts.values())
    records = documents + rejects
    more = f"; {_name(shards)}" if shards else ""
    if rejects > limit * records:
        text = ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items()) if count > 0)
        allowed = f"input.max_rejects={limit} allows {int(limit * records):,}"
        raise NddupError(f"{rejects:,} of {records:,} records are rejects ({text}); {allowed}{more}")
    if source is not None and (left := sorted(shards + others)):
        names = {file.source for file in left}
        outside = {file.source for file in foreign} | {file.source for file in source.assets}
        lost = sum(file.size for file in source.listing.files if file.source in names)
        whole = sum(file.size for file in source.listing.files if file.source not in outside)
        if lost > limit * whole:
            share = f"{spell_size(lost)} of {spell_size(whole)}"
            raise NddupError(f"{share} gave no document, more than input.max_rejects={limit} allows; {_name(left)}")


def _split(silent: Sequence[SilentFile], source: Collection | None) -> tuple[list[SilentFile], ...]:
    """Divide the files without a document: those named as the collection, others that could be read, and the rest."""
    if source is None:
        return [], [], []
    without = {file.source for file in silent}
    sizes = {file.source: file.size for file in source.listing.files}
    known = {file.source for file, _ in source.files}
    endings = {_ending(name) for name in known - without}
    shards, others, foreign = list[SilentFile](), list[SilentFile](), list[SilentFile]()
    for file in silent:
        is_alike = not endings or file.source in known or _ending(file.source) in endings
        is_other = file.reason == "binary" and file.detail.startswith(KNOWN_BINARY) and bool(known)
        is_other |= file[1:3] == EMPTY or file.reason in NO_DOCUMENTS
        if is_other or not sizes.get(file.source, 0):
            foreign.append(file)
        else:
            (shards if is_alike else foreign if file.reason == "binary" else others).append(file)
    return shards, others, foreign


def _ending(name: str) -> str:
    """Return the ending of a name, without that of a compression, in lower case; empty if it has none."""
    return PurePosixPath(_COMPRESSED.sub("", name.lower())).suffix


def _name(files: Sequence[SilentFile]) -> str:
    text = ", ".join(f"{file.source} ({file.reason})" for file in files[:NAMED_FILES])
    return f"no document came from {counted(len(files), 'file')}: {text}{', …' if len(files) > NAMED_FILES else ''}"
