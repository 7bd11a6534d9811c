"""The documents that `keep.force` names: a small file of ids, each kept or removed whatever the policy says.

A line is an id and a word, `kept` or `removed`, separated by a tab, a semicolon or a comma; a first line with another
word is the header, and a line that begins with `#` and holds no such word is a comment.
"""

import csv
from collections.abc import Iterator, Sequence

from nddup.errors import ConfigError
from nddup.mining.keep_verdicts import Forced
from nddup.reading.list_lines import list_lines
from nddup.reading.outcomes import clean_id
from nddup.scanning.collection import Files

MOST_BYTES = 1 << 30
"""Largest file: some ten million ids."""

LOOKED_AT = 100
"""Lines from which the delimiter is found."""

_FIELDS = 2


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
