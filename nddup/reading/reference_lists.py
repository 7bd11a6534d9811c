"""Lists of duplicates made by other tools: the layout of such a file, recognised from its first lines, and its entries.

    first_lines    first bytes          -> first lines
    guess_layout   first lines          -> Layout
    lines_of       a stream of bytes    -> lines
    read_lines     lines, Layout        -> Lists: pairs with their scores, or groups
    entries_of     lines, Layout        -> PAIRS, or GROUP_LINES: one row per line
    read_list      a file, Layout       -> a stream of PAIRS or GROUPS

Small lists of single ids: `nddup.reading.id_lists`. An apostrophe that our own CSV files put before a cell, for
spreadsheets, is taken off.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from nddup.errors import NddupError
from nddup.ground.shown import read_cell, unescaped
from nddup.reading.streams import PIECE, Expanded, StoppedError

Kind = Literal["pairs", "groups"]

DELIMITERS = {"tab": "\t", "semicolon": ";", "comma": ",", "blank": None}
"""Delimiters by name, in the order in which they are tried: a URL may contain a comma, but hardly ever a tab."""

LOOKED_AT = 1_000
"""Number of first lines from which a layout is guessed."""

ENOUGH = 0.9
"""Minimum share of these lines that a delimiter must split into two fields or more: a list may have some bad lines."""

NAME = re.compile(
    r"#?\s*(docs?|documents?|page|url|item|record|ids?|key|left|right|first|second|source|target|query)"
    r"([ _-]?(id|key|url|no))?([ _-]?(a|b|x|y|l|r|1|2|left|right|first|second))?|[abxy]|duplicate_of",
    re.IGNORECASE,
)
"""Usual names of an id column. An id may look like such a name; then the caller passes `header=False`."""

CLUSTER = re.compile(r"(cluster|group|set|component|family)([ _-]?(id|no|number|label))?", re.IGNORECASE)
"""Usual names of a column that numbers the clusters of a table with a document a line."""

MEMBERS = ("members", "ids", "doc_ids", "documents", "docs", "group", "cluster")
ENDS = (("id_a", "id_b"), ("doc_a", "doc_b"), ("a", "b"), ("id1", "id2"), ("left", "right"), ("first", "second"))
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
SCORES = ("score", "similarity", "jaccard", "resemblance", "sim")
PAIR = 2
"""Number of ids in a pair; also the index of the column after them."""


class LayoutError(ValueError):
    """The lines are not a list of pairs or groups."""


@dataclass(frozen=True)
class Layout:
    """How the lines of a list are read.

    A list is UTF-8, with one entry per line, in one of these forms:

        pairs          `id_a,id_b[,score[,…]]`, separated by tabs, semicolons, commas or blanks; quoted as in CSV
        groups         any number of ids per line, separated likewise
        JSON lines     a list of ids is a group; an object with `members`, `ids`, `doc_ids` or `documents` is a group;
                       an object with two ids (`id_a` and `id_b`, `doc_a` and `doc_b`, `a` and `b`, …) and optionally
                       a `score` is a pair

    Empty lines are ignored. A first line that holds names instead of ids is a header. Lines at the start of the file
    that begin with `#` are comments.

    Attributes:
        kind: pairs or groups.
        delimiter: its name in `DELIMITERS`, or `json`.
        header: the names of the columns; empty if there are none.
        skipped: lines without an entry: the header and the comments.
        score: the index of the score column, or its JSON key; None if there is no score.
        is_own: whether it is `duplicates.txt` of a run: its ids are escaped, and a number stands after them.
        spelling: gives the id of a document for one as written, where the list spells them in another way; else None.
    """

    kind: Kind
    delimiter: str
    header: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    score: int | str | None = None
    is_own: bool = False
    spelling: Callable[[str], str] | None = None

    @property
    def score_name(self) -> str | None:
        """The score's name in the header or in JSON, or else `column 3`; None if there is no score."""
        if isinstance(self.score, int):
            return self.header[self.score] if self.score < len(self.header) else f"column {self.score + 1}"
        return self.score


OWN: Final = Layout("groups", "tab", is_own=True)
"""The layout of `duplicates.txt`."""

LINES = 10_000
"""Lines per batch."""

PAIRS = pa.schema([("doc_a", pa.string()), ("doc_b", pa.string()), ("score", pa.float64())])
"""One row per line of pairs: the ids as in the list, and the score or null. Ids are null if the line is unreadable."""

GROUPS = pa.schema([("set_id", pa.int64()), ("doc_id", pa.string())])
"""One row per member of a group, without repetitions. An unreadable line is a group whose only id is null."""

GROUP_LINES = pa.schema([("members", pa.list_(pa.string()))])
"""One row per line of groups: its ids, without repetitions; null if the line is unreadable."""

_END = re.compile(rb"\r\n?|\n")

_SURROGATE = re.compile("[\ud800-\udfff]")


def first_lines(text: bytes, *, is_whole: bool) -> list[str]:
    """Split a file's first bytes into lines, without the last one if it may be cut (unless it is the only one)."""
    lines = re.split(r"\r\n?|\n", text.decode("utf-8", "replace"))
    is_cut = not is_whole and len(lines) > 1
    return lines[:-1] if is_cut or not lines[-1] else lines


def guess_layout(
    lines: Sequence[str],
    *,
    kind: Kind | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    score: str | None = None,
    has_comments: bool = True,
) -> Layout:
    """Guess the layout of a list from its first lines.

    Args:
        lines: the first lines of the file, unchanged.
        kind: pairs or groups. None: pairs if every line has two fields, or if all have the same larger number of fields
            and there is a header or the third field is always a number; else groups.
        delimiter: a name in `DELIMITERS`. None: the first that gives nearly all lines at least two fields, preferably
            one that gives all lines the same number of fields.
        header: whether the first line names the columns. None: whether its first two fields look like column names, or
            its third is the only one in that column that is not a number.
        score: the column of the score: its name in the header, its number from 1, its JSON key, or `none`.
        has_comments: whether lines at the start that begin with `#` are comments. If all lines do, none is a comment.

    Raises:
        LayoutError: if the lines are not a list, or have no column `score`.

    Example:
        >>> layout = guess_layout(["id_a,id_b,jaccard", "007,x9,0.875"])
        >>> layout.kind, layout.delimiter, layout.header, layout.score_name
        ('pairs', 'comma', ('id_a', 'id_b', 'jaccard'), 'jaccard')
    """
    first = [line.strip("\ufeff\r\n") for line in islice(lines, LOOKED_AT)]
    begin = _first_entry(first) if has_comments else 0
    begin = begin if begin < len(first) else 0
    comments = tuple(line for line in first[:begin] if line.strip())
    body = [line for line in first[begin:] if line.strip()]
    if not body:
        raise LayoutError("it holds no line")
    if body[0].lstrip()[0] in "[{":
        return _json_layout(body[0], comments, kind, score)

    name = delimiter or _find_delimiter(body)
    rows = [split_fields(line, DELIMITERS[name]) for line in body]
    if header is None:
        _refuse_memberships(rows[0])
    has_header = _is_header(rows) if header is None else header
    names = tuple(rows[0]) if has_header else ()
    rows = rows[1:] if has_header else rows
    skipped = (*comments, body[0]) if has_header else comments

    if (kind or _guess_kind(rows, names)) == "groups":
        return Layout("groups", name, names, skipped)
    return Layout("pairs", name, names, skipped, _find_score(rows, names, score))


def _refuse_memberships(names: Sequence[str]) -> None:
    """Raise LayoutError for the header of a table with a document and its cluster a line: it is no list of pairs."""
    numbered = [name for name in names if CLUSTER.fullmatch(name)]
    ids = [name for name in names if NAME.fullmatch(name) and len(name) > 1]
    if len(numbered) == 1 and ids:
        raise LayoutError(
            f"its header names a document ({ids[0]}) and its cluster ({numbered[0]}) a line; expected a cluster a line,"
            f" as of SQL's SELECT string_agg({ids[0]}, chr(9)) … GROUP BY {numbered[0]}, or pairs"
        )


def split_fields(line: str, delimiter: str | None) -> list[str]:
    """Return the fields of a line, stripped; the delimiter None splits at blanks. Quotes are read as in CSV."""
    if delimiter is None:
        return line.split()

    fields = line.split(delimiter)
    if '"' in line:
        with suppress(csv.Error):  # a carriage return inside, or a field too long for `csv`: keep the plain split
            fields = next(csv.reader([line], delimiter=delimiter))
    return [field.strip() for field in fields]


def finite_number(value_or_text: str | float) -> float | None:
    """Return the value as a number, also with a decimal comma; None for anything else, infinities and NaN too."""
    if isinstance(value_or_text, str) and DECIMAL_COMMA.fullmatch(value_or_text):
        value_or_text = value_or_text.replace(",", ".")
    try:
        value = float(value_or_text)
    except (ValueError, OverflowError):
        return None
    return value if value - value == 0 else None


def first_key(value: dict[str, Any], names: Iterable[str]) -> str | None:
    """Return the first of the names that is a key; None if none is."""
    return next((name for name in names if name in value), None)


def _first_entry(lines: Sequence[str]) -> int:
    return next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))


def _json_layout(line: str, comments: tuple[str, ...], kind: Kind | None, score: str | None) -> Layout:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LayoutError(f"its first line looks like JSON but is not valid: {error}") from error

    if isinstance(value, list) and any(isinstance(one, list | dict) for one in value):
        raise LayoutError("its first line is an array of all entries; expected one a line: jq -c '.[]' FILE")
    is_pair = isinstance(value, dict) and any(a in value and b in value for a, b in ENDS)
    is_group = isinstance(value, list) or (isinstance(value, dict) and first_key(value, MEMBERS) is not None)
    if not is_pair and not is_group:
        raise LayoutError(f"its first line has neither two ids ({ENDS[0][0]}, {ENDS[0][1]}) nor {MEMBERS[0]}")
    if (kind or ("pairs" if is_pair else "groups")) == "groups":
        return Layout("groups", "json", (), comments)
    if not is_pair:
        raise LayoutError("its first line is a group, not a pair")

    name = None if score == "none" else score or first_key(value, SCORES)
    return Layout("pairs", "json", (), comments, name)


def _find_delimiter(lines: Sequence[str]) -> str:
    """Find the delimiter that splits nearly all lines, preferably all into the same number of fields."""
    field_counts: dict[str, list[int]] = {}
    for name, delimiter in DELIMITERS.items():
        counts = [len(split_fields(line, delimiter)) for line in lines]
        if sum(count > 1 for count in counts) >= ENOUGH * len(counts):
            field_counts[name] = counts

    even = (name for name, counts in field_counts.items() if len(set(counts)) == 1)
    delimiter_name = next(even, next(iter(field_counts), None))
    if delimiter_name is None:
        raise LayoutError(f"its lines have no two fields between {'s, '.join(DELIMITERS)}s: {lines[0][:60]!r}")
    return delimiter_name


def _is_header(rows: Sequence[Sequence[str]]) -> bool:
    first = rows[0]
    if len(first) < PAIR:
        return False

    has_names = all(re.search("[A-Za-z]", field) and NAME.fullmatch(field) for field in first[:PAIR])
    if len(rows) == 1:  # `a b` alone is a pair of ids: without further rows, a name has two letters or more
        return has_names and all(len(field) > 1 for field in first[:PAIR])

    is_text = len(first) > PAIR and finite_number(first[PAIR]) is None
    return bool(has_names or (is_text and _have_scores(rows[1:])))


def _have_scores(rows: Sequence[Sequence[str]]) -> bool:
    return all(len(row) > PAIR and finite_number(row[PAIR]) is not None for row in rows)


def _guess_kind(rows: Sequence[Sequence[str]], names: tuple[str, ...]) -> Kind:
    if not rows:  # only a header
        return "pairs"

    rows = [row for row in rows if len(row) > 1] or rows  # a line with one field decides nothing
    widths = {len(row) for row in rows}
    if max(widths) == PAIR:
        return "pairs"
    return "pairs" if len(widths) == 1 and (names or _have_scores(rows)) else "groups"


def _find_score(rows: Sequence[Sequence[str]], names: tuple[str, ...], score: str | None) -> int | None:
    """Return the index of the score column: the one requested, else the third if all its values are numbers."""
    if score == "none":
        return None
    if score is None:
        third = [row[PAIR] for row in rows if len(row) > PAIR]
        return PAIR if third and all(finite_number(value) is not None for value in third) else None

    is_place = score.isdecimal() and len(score) <= 9  # noqa: PLR2004 - no line has a billion columns
    at = names.index(score) if score in names else int(score) - 1 if is_place else -1
    if at < 0 or at >= max(map(len, [names, *rows])):
        raise LayoutError(f"it has no column {score!r}; there are {', '.join(names) or max(map(len, rows))}")
    return at


class Entry(NamedTuple):
    """The ids on a line and the score of a pair; None for a part that could not be read."""

    members: list[str] | None
    score: float | None = None


class Lists(NamedTuple):
    """The entries of many lines, one per line that is not skipped; `members` has None for an unreadable line."""

    members: list[list[str] | None]
    scores: list[float | None]


def lines_of(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of a stream of bytes, without line ends; bytes that are not UTF-8 become U+FFFD.

    As in Spark's text source, a line ends with a line feed, a carriage return, or both, wherever the pieces are cut.

    Cost: linear, however long a line is.
    """
    begun: list[bytes] = []  # the pieces of a line that has not ended
    ending = b""  # a carriage return at the end of a piece: the next piece may begin with its line feed
    for piece in pieces:
        there = ending + piece
        ending = b"\r" if there.endswith(b"\r") else b""
        first, *others = _END.split(there[: len(there) - len(ending)])
        begun.append(first)
        if not others:
            continue

        yield _decoded(b"".join(begun))
        *whole, last = others
        yield from map(_decoded, whole)
        begun = [last]

    if ending or any(begun):
        yield _decoded(b"".join(begun))


def read_lines(lines: Iterable[str], layout: Layout) -> Lists:
    """Read the lines of a list in order; empty and skipped lines give no entry.

    Example:
        >>> read_lines(["1 2 0.5", "1", "2 3"], Layout("pairs", "blank", score=2))
        Lists(members=[['1', '2'], None, ['2', '3']], scores=[0.5, None, None])
    """
    read_entry = _read_json if layout.delimiter == "json" else _read_fields
    skipped = frozenset(layout.skipped)
    lists = Lists([], [])
    for line in lines:
        text = line.strip("\ufeff\r\n")
        if not text.strip() or text in skipped:
            continue
        entry = read_entry(text, layout)
        members = entry.members
        if layout.spelling and members:
            members = list(map(layout.spelling, members))
        lists.members.append(members)
        lists.scores.append(entry.score)
    return lists


def entries_of(lines: Iterable[str], layout: Layout) -> Iterator[pa.RecordBatch]:
    """Yield the lines of a list as PAIRS or GROUP_LINES, by its kind, in batches of at most `LINES` lines.

    Empty and skipped lines give no row.
    """
    left = iter(lines)
    while part := list(islice(left, LINES)):
        lists = read_lines(part, layout)
        if layout.kind == "pairs":
            ends = [members or (None, None) for members in lists.members]
            columns = [[first for first, _ in ends], [second for _, second in ends], lists.scores]
            arrays = [pa.array(values, field.type) for values, field in zip(columns, PAIRS, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=PAIRS)
        else:
            members = [None if ids is None else list(dict.fromkeys(ids)) for ids in lists.members]
            yield pa.RecordBatch.from_arrays([pa.array(members, GROUP_LINES.field(0).type)], schema=GROUP_LINES)


def _read_fields(line: str, layout: Layout) -> Entry:
    if layout.is_own:
        return Entry([unescaped(field) for field in line.split("\t")[:-1]] or None)
    fields = split_fields(line, DELIMITERS[layout.delimiter])
    if layout.kind == "groups":
        return Entry([read_cell(field) for field in fields if field] or None)
    if len(fields) < PAIR or not fields[0] or not fields[1]:
        return Entry(None)

    at = layout.score
    score = finite_number(fields[at]) if isinstance(at, int) and at < len(fields) else None
    return Entry([*map(read_cell, fields[:PAIR])], score)


def _read_json(line: str, layout: Layout) -> Entry:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return Entry(None)
    if layout.kind == "groups":
        ids = value.get(first_key(value, MEMBERS)) if isinstance(value, dict) else value
        return Entry(_texts(ids) or None) if isinstance(ids, list) else Entry(None)
    if not isinstance(value, dict):
        return Entry(None)

    ids = next(([value[a], value[b]] for a, b in ENDS if a in value and b in value), [])
    pair = _texts(ids)
    score = value.get(layout.score) if layout.score else None
    number = finite_number(score) if isinstance(score, int | float) and not isinstance(score, bool) else None
    return Entry(pair if len(pair) == PAIR else None, number)


def _texts(ids: Sequence[Any]) -> list[str]:
    """Return strings and integers as text, and drop other values. Lone surrogates become U+FFFD, as in a record."""
    texts = (str(value) for value in ids if isinstance(value, str | int) and not isinstance(value, bool))
    return [_SURROGATE.sub("\ufffd", text) for text in texts]


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def read_list(path: str, layout: Layout, *, compression: str) -> pa.RecordBatchReader:
    """Stream the entries of a list, as PAIRS or GROUPS of `nddup.reading.reference_lists`.

    Args:
        path: the file, as an absolute path.
        compression: as `compression_of` gives it; empty for a plain file.

    Raises:
        NddupError: while the stream is read, if the file is damaged or cannot be opened.

    Cost: a few microseconds a line; a batch of lines is in memory.
    """
    entries = entries_of(_lines(path, compression), layout)
    if layout.kind == "pairs":
        return pa.RecordBatchReader.from_batches(PAIRS, entries)
    return pa.RecordBatchReader.from_batches(GROUPS, _memberships(entries))


def _memberships(entries: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in entries:
        members = batch.column(0).fill_null([None])  # a line without ids keeps one row, whose id is null
        set_ids = np.repeat(np.arange(first, first + len(members)), members.value_lengths().to_numpy())
        yield pa.RecordBatch.from_arrays([pa.array(set_ids), members.flatten()], schema=GROUPS)
        first += len(members)


def _lines(path: str, compression: str) -> Iterator[str]:
    try:
        with Path(path).open("rb", buffering=0) as raw:
            stream = Expanded(raw, compression) if compression else raw
            yield from lines_of(iter(lambda: stream.read(PIECE), b""))
    except StoppedError as error:
        raise NddupError(f"{path}: {error.reason}: {error}") from error
    except OSError as error:
        raise NddupError(f"{path}: cannot be read ({error.strerror})") from error
