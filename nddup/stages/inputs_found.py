"""The files that a run reads: those of its inputs, up to `input.limit`, with the columns of the keep policy.

Those of a finished run are found again to read documents; if a file changed meanwhile, that is refused.

The documents that `keep.force` names: a small file of ids, each kept or removed whatever the policy says.

A line is an id and a word, `kept` or `removed`, separated by a tab, a semicolon or a comma; a first line with another
word is the header, and a line that begins with `#` and holds no such word is a comment.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from nddup.errors import ConfigError, NddupError
from nddup.matching.preference import DATED
from nddup.metrics import SketchMetrics
from nddup.mining.keep_verdicts import Forced
from nddup.reading.outcomes import clean_id
from nddup.reading.reference_lists import list_lines
from nddup.scanning.collection import Collection, Files, Group, find_files, limit_collection
from nddup.scanning.first_records import require_policy
from nddup.settings.load import read_stored
from nddup.settings.plan import record_limits
from nddup.settings.schema import Config
from nddup.shown import MOST_NAMED
from nddup.storage.run_folder import RunFolder

MOST_BYTES = 1 << 30
"""Largest file: some ten million ids."""

LOOKED_AT = 100
"""Lines from which the delimiter is found."""

_FIELDS = 2


def find_inputs(files: Files, inputs: list[str], config: Config) -> Collection:
    """Return the collection of `find_files`; with `input.limit` = n only the files that hold the first n records.

    Raises:
        ConfigError: as `find_files`; for a column of `keep.policy` that no record has, or an order by dates where
            there are none.
        NddupError: if `input.limit` is set and a file cannot be read.
    """
    found, most = find_files(files, inputs, config.input), config.input.limit
    if config.keep.policy in DATED and not any(head.format.kind == "warc" for _, head in found.files):
        raise ConfigError(
            f"keep.policy {config.keep.policy}: needs captures in WARC or ARC files; for another format name the column"
            " of its dates, such as keep.policy=[-date]"
        )
    paths = tuple(column.path for column in config.keep.order.columns if not column.is_derived)
    if paths:
        found = replace(found, groups=tuple(_with_policy(group, paths) for group in found.groups))
        require_policy(files, found.files, paths)
    return found if most is None else limit_collection(files, found, most, record_limits(config))


def note_changes(sketch: SketchMetrics, files: Files, inputs: list[str], source: Collection) -> SketchMetrics:
    """Return the metrics of reading with the files that have another size or time now than when the run began.

    Args:
        sketch: the metrics.
        files: the storage.
        inputs: INPUT paths.
        source: the collection that was found in them.

    Cost: one listing of the inputs.
    """
    try:
        now = {file.path: (file.size, file.modified) for file in files.list_inputs(inputs).files}
    except NddupError:  # an input is gone
        now = {}
    changed = [file.source for file in source.listing.files if now.get(file.path) != (file.size, file.modified)]
    return sketch.model_copy(update={"changed_files": len(changed), "changed_names": changed[:MOST_NAMED]})


def _with_policy(group: Group, paths: tuple[str, ...]) -> Group:
    """Return the group, to be read with these columns; in XML and TREC a plain name is an element or an attribute."""
    form = group.head.format
    if form.kind in ("xml", "sgml"):
        paths = tuple(path if set(path) & set("@/|.") else f"{path}|@{path}" for path in paths)
    return replace(group, head=replace(group.head, format=replace(form, policy=paths)))


class Again(NamedTuple):
    """The files of a run, unchanged, and its settings."""

    collection: Collection
    config: Config


def config_of(folder: RunFolder) -> Config:
    """Return the settings of the run in a folder."""
    header = folder.read_json("_RUN.json")
    return read_stored(header["settings"], origin=f"{folder.path}/_RUN.json")


def find_again(folder: RunFolder, files: Files) -> Again:
    """Find the inputs of the run in a folder again.

    Args:
        folder: of the run.
        files: the file system of the inputs.

    Raises:
        ConfigError: if an input is missing.
        NddupError: if a file was changed, added or removed since the run.
    """
    header = folder.read_json("_RUN.json")
    paths = _named(header, folder)["paths"]
    before = {source: tuple(seen) for source, seen in _named(header, folder)["files"].items()}
    config = config_of(folder)
    now = {file.source: (file.size, file.modified) for file in files.list_inputs(paths).files}
    if config.input.limit is not None:  # files after the last record were not looked at
        now = {source: seen for source, seen in now.items() if source in before}
    changed = sorted(source for source in before.keys() | now.keys() if before.get(source) != now.get(source))
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise NddupError(f"the inputs of {folder.path} changed since the run: {changed[0]}{more}; run the job again")

    return Again(find_inputs(files, paths, config), config)


def paths_of(folder: RunFolder) -> list[str]:
    """Return the INPUT paths of the run in a folder."""
    return list(_named(folder.read_json("_RUN.json"), folder)["paths"])


def _named(header: Mapping[str, Any], folder: RunFolder) -> Mapping[str, Any]:
    """Return what a run notes of its inputs."""
    if "inputs" not in header:
        raise NddupError(f"{folder.path}/_RUN.json: names no inputs")
    found: Mapping[str, Any] = header["inputs"]
    return found


def read_forced(files: Files, path: str | None) -> Forced | None:
    """Read the file of `keep.force`; None for no path.

    Raises:
        ConfigError: naming the file and the line: if it is missing, a folder, too large or not UTF-8, if a line is no
            id with `kept` or `removed`, or an id has both words.

    Cost: the file is read once, into memory.
    """
    if path is None:
        return None
    found = files.list_inputs([path]).files
    if len(found) != 1:
        raise ConfigError(f"keep.force {path}: expected a file, got a folder of {len(found)} files")
    if found[0].size > MOST_BYTES:
        raise ConfigError(f"keep.force {path}: expected at most {MOST_BYTES >> 20:,} MB of ids")
    try:
        lines = list_lines(files.read_part(found[0].path, 0, found[0].size))
    except UnicodeDecodeError as error:
        raise ConfigError(f"keep.force {path}: expected UTF-8 ({error.reason} at byte {error.start})") from error

    told: dict[str, str] = {}
    for number, doc_id, word in _rows(lines, path):
        if told.setdefault(doc_id, word) != word:
            raise ConfigError(f"keep.force {path}: line {number}: {doc_id!r} is both kept and removed")
    return Forced(*(tuple(sorted(one for one, word in told.items() if word == wanted)) for wanted in Forced._fields))


def _rows(lines: Sequence[tuple[int, str]], path: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each line that names a document, the id, and the word."""
    delimiter = max("\t;,", key=lambda one: sum(_word(row) is not None for row in _split(lines[:LOOKED_AT], one)))
    for place, ((number, line), row) in enumerate(zip(lines, _split(lines, delimiter), strict=True)):
        word = _word(row)
        if word is not None:
            yield number, clean_id(row[0]), word
        elif not line.startswith("#") and (place or len(row) != _FIELDS):
            raise ConfigError(
                f"keep.force {path}: line {number}: expected an id and kept or removed, such as `doc-1,kept`,"
                f" got {line[:100]!r}"
            )


def _split(lines: Sequence[tuple[int, str]], delimiter: str) -> Iterator[list[str]]:
    """Yield the fields of each line; an id that holds the delimiter is quoted."""
    for _, line in lines:
        yield next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])


def _word(row: Sequence[str]) -> str | None:
    """Return the word of a line: `kept` or `removed`, case and blanks apart; None if it has none of these."""
    said = row[1].strip().lower() if len(row) == _FIELDS else ""
    return said if said in Forced._fields else None
