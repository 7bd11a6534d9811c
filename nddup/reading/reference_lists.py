"""Lists of duplicates that others made: how a file is laid out, told from its first lines, and its lines read.

    first_lines    first bytes -> first lines
    guess_layout   first lines -> Layout
    read_lines     lines -> Lists: pairs with their scores, or groups

What is understood, UTF-8, one entry a line:

    pairs          `id_a,id_b[,score[,…]]`, between tabs, semicolons, commas or blanks; quoted as in CSV
    groups         any number of ids a line, between the same
    JSON lines     a list of ids: a group; an object with `members`, `ids`, `doc_ids` or `documents`: a group; an object
                   with two ids (`id_a` and `id_b`, `doc_a` and `doc_b`, `a` and `b`, …) and maybe a `score`: a pair

Lines that are empty are nothing. A first line that holds names instead of ids is a header; lines before it that start
with `#` are comments.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

Kind = Literal["pairs", "groups"]

DELIMITERS = {"tab": "\t", "semicolon": ";", "comma": ",", "blank": None}
"""By name, in the order in which they are tried: an address may hold a comma, but hardly a tab."""

LOOKED_AT = 1_000
"""Lines from which a layout is told."""

ENOUGH = 0.9
"""Share of these lines that must have two fields for a delimiter to be the one: a list may have some bad lines."""

NAME = re.compile(
    r"#?\s*(docs?|documents?|page|url|item|record|ids?|key|left|right|first|second|source|target|query)"
    r"([ _-]?(id|key|url|no))?([ _-]?(a|b|x|y|l|r|1|2|left|right|first|second))?|[abxy]",
    re.IGNORECASE,
)
"""What the column of an id is called. An id may look so too: who knows the ids asks (`header=False`)."""

_SURROGATE = re.compile("[\ud800-\udfff]")

MEMBERS = ("members", "ids", "doc_ids", "documents", "docs", "group", "cluster")
ENDS = (("id_a", "id_b"), ("doc_a", "doc_b"), ("a", "b"), ("id1", "id2"), ("left", "right"), ("first", "second"))
SCORES = ("score", "similarity", "jaccard", "resemblance", "sim")


class LayoutError(ValueError):
    """The lines are no list of pairs or groups."""


@dataclass(frozen=True)
class Layout:
    """How the lines of a list are read.

    Attributes:
        kind: pairs or groups.
        delimiter: its name, or `json`.
        header: the names of the columns; empty where there are none.
        skipped: the lines that hold no entry: the header's text, comments.
        score: the column of the score from 0, or the key of JSON; None where there is none.
    """

    kind: Kind
    delimiter: str
    header: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    score: int | str | None = None

    @property
    def score_name(self) -> str | None:
        """What the score is called: its name in the header, else `column 3`."""
        if isinstance(self.score, int):
            return self.header[self.score] if self.score < len(self.header) else f"column {self.score + 1}"
        return self.score


class Lists(NamedTuple):
    """What lines held: an entry for each line that is not skipped; None where it could not be read."""

    members: list[list[str] | None]
    scores: list[float | None]


def first_lines(text: bytes, *, is_whole: bool) -> list[str]:
    """The lines of the first bytes of a file; the last, which may be cut, only where the file ends with it."""
    lines = re.split(r"\r\n?|\n", text.decode("utf-8", "replace"))
    is_cut = not is_whole and len(lines) > 1  # a single line is better than none
    return lines[:-1] if is_cut or not lines[-1] else lines


def guess_layout(
    lines: Sequence[str],
    *,
    kind: Kind | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    score: str | None = None,
) -> Layout:
    """Tell how a list is laid out from its first lines.

    Args:
        lines: the first lines of the file, as they are.
        kind: pairs or groups; None: pairs, where every line has two fields, or more of which the third is a number or
            has a header; else groups.
        delimiter: a name of `DELIMITERS`; None: the first by which nearly all lines have two fields, preferably the
            same number of fields in all.
        header: whether the first line names the columns; None: where its first two fields look like such names.
        score: the column of the score: its name in the header, its number from 1, the key in JSON, or `none`.

    Raises:
        LayoutError: if the lines are no list, or `score` is not there.

    Example:
        >>> layout = guess_layout(["id_a,id_b,jaccard", "007,x9,0.875"])
        >>> layout.kind, layout.delimiter, layout.header, layout.score_name
        ('pairs', 'comma', ('id_a', 'id_b', 'jaccard'), 'jaccard')
    """
    some = [line.strip("\ufeff\r\n") for line in islice(lines, LOOKED_AT)]
    comments = tuple(line for line in some[: _first_entry(some)] if line.strip())
    body = [line for line in some[_first_entry(some) :] if line.strip()]
    if not body:
        raise LayoutError("it holds no line")
    if body[0].lstrip()[0] in "[{":
        return _json_layout(body[0], comments, kind, score)
    name = delimiter or _find_delimiter(body)
    rows = [_split(line, DELIMITERS[name]) for line in body]
    is_named = _is_header(rows) if header is None else header
    names = tuple(rows[0]) if is_named else ()
    rows = rows[1:] if is_named else rows
    skipped = (*comments, body[0]) if is_named else comments
    if (kind or _guess_kind(rows, names)) == "groups":
        return Layout("groups", name, names, skipped)
    return Layout("pairs", name, names, skipped, _find_score(rows, names, score))


def read_lines(lines: Iterable[str], layout: Layout) -> Lists:
    """Read the lines of a list; the order is kept, empty and skipped lines give no entry.

    Example:
        >>> read_lines(["1 2 0.5", "1", "2 3"], Layout("pairs", "blank", score=2))
        Lists(members=[['1', '2'], None, ['2', '3']], scores=[0.5, None, None])
    """
    skipped = frozenset(layout.skipped)
    read = Lists([], [])
    for line in lines:
        text = line.strip("\ufeff\r\n")
        if not text.strip() or text in skipped:
            continue
        members, score = _read_json(text, layout) if layout.delimiter == "json" else _read_fields(text, layout)
        read.members.append(members)
        read.scores.append(score)
    return read


def _read_fields(line: str, layout: Layout) -> tuple[list[str] | None, float | None]:
    fields = _split(line, DELIMITERS[layout.delimiter])
    if layout.kind == "groups":
        ids = [field for field in fields if field]
        return ids or None, None
    if len(fields) < 2 or not fields[0] or not fields[1]:  # noqa: PLR2004 - a pair
        return None, None
    at = layout.score
    score = _number(fields[at]) if isinstance(at, int) and at < len(fields) else None
    return fields[:2], score


def _read_json(line: str, layout: Layout) -> tuple[list[str] | None, float | None]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None, None
    if layout.kind == "groups":
        ids = value if isinstance(value, list) else value.get(_key(value, MEMBERS)) if isinstance(value, dict) else None
        return (_texts(ids) or None, None) if isinstance(ids, list) else (None, None)
    if not isinstance(value, dict):
        return None, None
    ends = next((_texts([value[a], value[b]]) for a, b in ENDS if a in value and b in value), None)
    score = value.get(layout.score) if layout.score else None
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    return (ends if ends and len(ends) == 2 else None), _number(score) if is_number else None  # type: ignore[arg-type]  # noqa: PLR2004


def _texts(ids: Sequence[Any]) -> list[str]:
    """Ids as text; half a character, which JSON can spell, is U+FFFD as in a record."""
    found = (str(value) for value in ids if isinstance(value, str | int) and not isinstance(value, bool))
    return [_SURROGATE.sub("\ufffd", text) for text in found]


def _key(value: dict[str, Any], names: Iterable[str]) -> str | None:
    return next((name for name in names if name in value), None)


def _json_layout(line: str, comments: tuple[str, ...], kind: Kind | None, score: str | None) -> Layout:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LayoutError(f"its first line looks like JSON and is none: {error}") from error
    is_pair = isinstance(value, dict) and any(a in value and b in value for a, b in ENDS)
    is_group = isinstance(value, list) or (isinstance(value, dict) and _key(value, MEMBERS) is not None)
    if not is_pair and not is_group:
        raise LayoutError(f"its first line has neither two ids ({ENDS[0][0]}, {ENDS[0][1]}) nor {MEMBERS[0]}")
    if (kind or ("pairs" if is_pair else "groups")) == "groups":
        return Layout("groups", "json", (), comments)
    if not is_pair:
        raise LayoutError("its first line is a group, not a pair")
    name = None if score == "none" else score or _key(value, SCORES)
    return Layout("pairs", "json", (), comments, name)


def _first_entry(lines: Sequence[str]) -> int:
    """How many lines at the start are comments or empty."""
    return next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))


def _split(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    fields = line.split(delimiter)
    if '"' in line:
        with suppress(csv.Error):  # a return inside, or a field longer than csv reads: taken as it stands
            fields = next(csv.reader([line], delimiter=delimiter))
    return [field.strip() for field in fields]


def _find_delimiter(lines: Sequence[str]) -> str:
    split: dict[str, list[int]] = {}
    for name, delimiter in DELIMITERS.items():
        counts = [len(_split(line, delimiter)) for line in lines]
        if sum(count > 1 for count in counts) >= ENOUGH * len(counts):
            split[name] = counts
    even = (name for name, counts in split.items() if len(set(counts)) == 1)
    found = next(even, next(iter(split), None))
    if found is None:
        raise LayoutError(f"its lines have no two fields between {'s, '.join(DELIMITERS)}s: {lines[0][:60]!r}")
    return found


def _is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns. Alone it must say more than a letter: `a b` is a pair of ids."""
    first = rows[0]
    if len(first) < 2:  # noqa: PLR2004 - two ids
        return False
    named = all(re.search("[A-Za-z]", field) and NAME.fullmatch(field) for field in first[:2])
    if len(rows) == 1:
        return named and all(len(field) > 1 for field in first[:2])
    is_score = len(first) > 2 and _number(first[2]) is None  # noqa: PLR2004
    over_numbers = is_score and all(len(row) > 2 and _number(row[2]) is not None for row in rows[1:])  # noqa: PLR2004
    return bool(named or over_numbers)


def _guess_kind(rows: Sequence[Sequence[str]], names: tuple[str, ...]) -> Kind:
    if not rows:  # nothing but a header
        return "pairs"
    rows = [row for row in rows if len(row) > 1] or rows  # a line with one field is no entry of either kind
    counts = {len(row) for row in rows}
    is_scored = all(len(row) > 2 and _number(row[2]) is not None for row in rows)  # noqa: PLR2004
    return "pairs" if max(counts, default=2) == 2 or (len(counts) == 1 and (names or is_scored)) else "groups"  # noqa: PLR2004


def _find_score(rows: Sequence[Sequence[str]], names: tuple[str, ...], score: str | None) -> int | None:
    if score == "none":
        return None
    if score is not None:
        is_place = score.isdecimal() and len(score) <= 9  # noqa: PLR2004 - no line has a billion columns
        at = names.index(score) if score in names else int(score) - 1 if is_place else -1
        if at < 0 or at >= max(map(len, [names, *rows])):
            raise LayoutError(f"it has no column {score!r}; there are {', '.join(names) or max(map(len, rows))}")
        return at
    third = [row[2] for row in rows if len(row) > 2]  # noqa: PLR2004
    return 2 if third and all(_number(value) is not None for value in third) else None


def _number(value_or_text: str | float) -> float | None:
    try:
        value = float(value_or_text)
    except (ValueError, OverflowError):
        return None
    return value if value - value == 0 else None  # neither infinite nor no number


def lines_of(pieces: Iterable[bytes]) -> Iterator[str]:
    """The lines of a stream of bytes, ends removed; what is no UTF-8 becomes U+FFFD. Linear, however long a line is."""
    begun: list[bytes] = []  # the pieces of a line that has not ended
    for piece in pieces:
        first, *others = piece.split(b"\n")
        begun.append(first)
        if not others:
            continue
        yield _decoded(b"".join(begun))
        *whole, last = others
        yield from map(_decoded, whole)
        begun = [last]
    if any(begun):
        yield _decoded(b"".join(begun))


def _decoded(line: bytes) -> str:
    return line.rstrip(b"\r").decode("utf-8", "replace")
