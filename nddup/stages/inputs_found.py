"""The files that a run reads, and the documents that `keep.force` names.

    find_inputs   INPUT paths, settings  -> the files up to `input.limit`
    find_again    a finished run         -> its files, to read documents; a file that has changed is refused
    read_forced   a file of ids          -> each kept or removed whatever the policy says

Files are read with the columns of the keep policy.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from nddup.engines.engine import Engine, find_ids
from nddup.errors import ConfigError, NddupError
from nddup.ground.metrics import SketchMetrics
from nddup.ground.shown import MOST_NAMED
from nddup.matching.preference import DATED
from nddup.mining.keep_verdicts import Forced
from nddup.reading.id_lists import Rows, force_judged, is_judged, read_ids, read_rows, require_known, require_one
from nddup.scanning.collection import Batch, Collection, Files, Group, find_files, limit_collection, list_batches
from nddup.scanning.first_records import require_policy
from nddup.scanning.input_files import list_asked
from nddup.settings.load import read_stored
from nddup.settings.plan import record_limits
from nddup.settings.schema import Config, KeepConfig
from nddup.storage.run_folder import RunFolder

MOST_BYTES = 1 << 30
"""Largest file: some ten million ids."""

_FIELDS = 2

R = TypeVar("R")


def find_inputs(
    files: Files, inputs: list[str], config: Config, *, batches: Sequence[Batch] = (), is_added: bool = False
) -> Collection:
    """Return the collection of `find_files`; with `input.limit` = n only the files that hold the first n records.

    Raises:
        ConfigError: as `find_files`; for a column of `keep.policy` that no record has, or an order by dates where
            there are none.
        NddupError: if `input.limit` is set and a file cannot be read.
    """
    collection, most = find_files(files, inputs, config.input, batches=batches), config.input.limit
    if (
        config.keep.policy in DATED
        and not is_added
        and not any(head.format.kind == "warc" for _, head in collection.files)
    ):
        raise ConfigError(
            f"keep.policy {config.keep.policy}: needs captures in WARC or ARC files; for another format name the column"
            " of its dates, such as keep.policy=[-date]"
        )
    if config.keep.read:
        collection = with_columns(
            files, collection, config.keep.read, asked=name_readers(config.keep), is_added=is_added
        )
    return collection if most is None else limit_collection(files, collection, most, record_limits(config))


def name_readers(keep: KeepConfig) -> str:
    """Return the settings that name columns of the records."""
    named = {"policy": keep.order.read, "same": keep.same, "ledger": keep.ledger}
    return " or ".join(f"keep.{name}" for name, columns in named.items() if columns)


def with_columns(
    files: Files, collection: Collection, paths: tuple[str, ...], *, asked: str = "keep.policy", is_added: bool = False
) -> Collection:
    """Return a collection whose records are read with the values of these columns, in place of any others.

    Args:
        asked: what asks for them, for the message.
        is_added: whether the files are added to others, which may have the columns.

    Raises:
        ConfigError: for a column that no record at the start of any file has.
    """
    collection = replace(collection, groups=tuple(_with_policy(group, paths) for group in collection.groups))
    if not is_added:
        require_policy(files, collection.files, paths, asked=asked)
    return collection


def note_changes(sketch: SketchMetrics, files: Files, inputs: list[str], source: Collection) -> SketchMetrics:
    """Return the metrics of reading with the files that have another size or time now than when the run began.

    Args:
        source: the collection that was found in them.

    Cost: one listing of the inputs.
    """
    try:
        now = {file.path: file.state for file in files.list_inputs(inputs).files}
    except NddupError:  # an input is gone
        now = {}
    changed = [file.source for file in source.listing.files if now.get(file.path) != file.state]
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
    """Return the settings of the run in a folder. ConfigError: if no run can have them."""
    header = folder.read_json("_RUN.json")
    return read_stored(header.get("settings"), origin=f"{folder.path}/_RUN.json")


def find_again(folder: RunFolder, files: Files) -> Again:
    """Find the inputs of the run in a folder again.

    Raises:
        ConfigError: if an input is missing.
        NddupError: if a file was changed, added or removed since the run.
    """
    noted, config = noted_inputs(folder), config_of(folder)
    before = {source: list(seen) for source, seen in noted["files"].items()}
    batches = batches_of(noted)
    now = {file.source: file.state for file in list_batches(files, batches).files}
    if config.input.limit is not None:  # files after the last record were not looked at
        now = {source: seen for source, seen in now.items() if source in before}
    changed = sorted(source for source in before.keys() | now.keys() if before.get(source) != now.get(source))
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise NddupError(f"the inputs of {folder.path} changed since the run: {changed[0]}{more}; run the job again")

    return Again(find_inputs(files, noted["paths"], config, batches=batches), config)


def paths_of(folder: RunFolder) -> list[str]:
    """Return the INPUT paths of the run in a folder."""
    return list(noted_inputs(folder)["paths"])


def batches_of(noted: Mapping[str, Any]) -> list[Batch]:
    """Return the batches that a run notes among its inputs: one without a name where it has none."""
    named = noted.get("batches") or [["", noted["paths"]]]
    return [Batch(name, tuple(paths)) for name, paths in named]


def noted_inputs(folder: RunFolder) -> Mapping[str, Any]:
    """Return what the run in a folder notes of its inputs.

    Raises:
        NddupError: if it notes none.
    """
    inputs = folder.read_json("_RUN.json").get("inputs")
    if not isinstance(inputs, Mapping) or not are_texts(inputs.get("paths")) or not _are_files(inputs.get("files")):
        raise NddupError(f"{folder.path}/_RUN.json: names no inputs")
    if not _are_batches(inputs.get("batches")):
        raise NddupError(f"{folder.path}/_RUN.json: names inputs as no run does")
    return inputs


def _are_files(noted: object) -> bool:
    return isinstance(noted, Mapping) and all(isinstance(seen, list) for seen in noted.values())


def _are_batches(noted: object) -> bool:
    if noted is None:
        return True
    return isinstance(noted, list) and all(
        isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) and are_texts(one[1])  # noqa: PLR2004
        for one in noted
    )


def are_texts(values: object) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def read_ids_of(files: Files, path: str, asked: str) -> list[list[str]]:
    """Read a file of ids; return them in each way in which it can be read. All else as of `read_list_of`."""
    return _read(files, path, asked, read_ids)


def read_list_of(
    files: Files,
    path: str,
    asked: str,
    is_entry: Callable[[Sequence[str]], bool],
    *,
    most: tuple[int, str] = (MOST_BYTES, "ids"),
) -> Rows:
    """Read a file of ids.

    Args:
        asked: the setting or option that names it, for messages.
        is_entry: as of `read_rows`.
        most: bytes that it may have, and what it lists.

    Raises:
        ConfigError: if it is missing, a folder, too large or cannot be read.

    Cost: the file is read once, into memory.
    """
    return _read(files, path, asked, partial(read_rows, is_entry=is_entry), most)


def _read(
    files: Files, path: str, asked: str, read: Callable[[bytes], R], most: tuple[int, str] = (MOST_BYTES, "ids")
) -> R:
    listed = list_asked(files.list_inputs, path, asked)
    if len(listed) != 1:
        raise ConfigError(f"{asked} {path}: expected a file, got a folder of {len(listed)} files")
    if listed[0].size > most[0]:
        raise ConfigError(f"{asked} {path}: expected at most {most[0] >> 20:,} MB of {most[1]}")
    try:
        return read(files.read_part(listed[0].path, 0, listed[0].size))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{asked} {path}: expected UTF-8 ({error.reason} at byte {error.start})") from error
    except (ValueError, csv.Error, pa.ArrowException) as error:
        raise ConfigError(f"{asked} {path}: {error}") from error


def read_forced(files: Files, path: str | None) -> Forced | None:
    """Read the file of `keep.force`; None for no path.

    A line is an id and a word, `kept` or `removed`, in the forms that `nddup.reading.id_lists` reads; a first line with
    another word is the header, and a line that begins with `#` and holds no such word is a comment. Where columns have
    names, the id is in `doc_id` and the word in any other, or true or false in `kept`. Judgements of removals are taken
    as `nddup.reading.id_lists` says.

    Raises:
        ConfigError: naming the file and the line: if it is missing, a folder, too large or not UTF-8, if a line is no
            id with `kept` or `removed`, or an id has both words.

    Cost: the file is read once, into memory.
    """
    if path is None:
        return None
    rows = read_list_of(files, path, "keep.force", lambda row: _word(row) is not None)

    words: dict[str, str] = {}
    for number, doc_id, word in _words(rows, path):
        if words.setdefault(doc_id, word) != word:
            raise ConfigError(f"keep.force {path}: line {number}: {doc_id!r} is both kept and removed")
    return Forced.of(words)


def _words(table: Rows, path: str) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each row that names a document, the id, and the word."""
    if is_judged(table):
        try:
            yield from force_judged(table)
        except ValueError as error:
            raise ConfigError(f"keep.force {path}: {error}") from error
        return
    ids, word_at = _columns(table)
    for place, (number, cells) in enumerate(table.rows):
        pair = [cells[at] for at in (ids, word_at) if at < len(cells)]
        word = _word(pair if table.names else cells, is_named=bool(table.names) and table.names[word_at] == "kept")
        if word is not None:
            yield number, pair[0], word
        elif not cells[0].startswith("#") and (place or table.names or len(cells) != _FIELDS):
            raise ConfigError(
                f"keep.force {path}: line {number}: expected an id and kept or removed, such as `doc-1,kept`,"
                f" got {','.join(cells)[:100]!r}"
            )


def _columns(table: Rows) -> tuple[int, int]:
    """Return the places of the id and of the word: by their names, or the first that holds words, or the first two."""
    ids = table.id_column or 0
    if not table.names:
        return 0, 1
    others = [at for at in range(len(table.names)) if at != ids]
    words = [at for at in others if any(_word(["", row.cells[at]]) for row in table.rows if at < len(row.cells))]
    named = [at for at in others if table.names[at] == "kept"]
    return ids, next(iter([*words, *named, *others]), ids)


def _word(row: Sequence[str], *, is_named: bool = False) -> str | None:
    """Return the word of an id and a word, case and blanks apart; None if it has none.

    Args:
        row: of two cells.
        is_named: whether the word stands in the column `kept`, where it may be true or false, as in the table `keep`.
    """
    word = row[1].strip().lower() if len(row) == _FIELDS else ""
    word = {"true": "kept", "false": "removed"}.get(word, word) if is_named else word
    return word if word in Forced._fields else None


def know_forced(
    ask: Callable[[], Engine], forced: Forced | None, *, all_known: bool
) -> tuple[Forced | None, list[str]]:
    """Return the documents that `keep.force` names, as `find_ids` does, and the ids that are no document, ascending.

    Args:
        ask: returns an engine with `documents`; called only if there is a file.
        all_known: `keep.all_known`.

    Raises:
        ConfigError: if all are unknown, or one is that must not be; or if one document is both kept and removed.

    Cost: a question over the ids of the documents, if there is a file.
    """
    named = [] if forced is None else [*forced.kept, *forced.removed]
    if forced is None or not named:
        return forced, []
    stored = find_ids(ask(), named)
    unknown = sorted(one for one in named if one not in stored)
    require_known("keep.force", unknown, len(unknown), len(named), all_known=all_known)
    words = {one: word for word, ids in forced._asdict().items() for one in ids}
    return Forced.of(require_one("keep.force", words, {one: stored.get(one, one) for one in named})), unknown
