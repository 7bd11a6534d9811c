"""Small lists of ids: what `show --removed --csv` and other files of this program hold, or what a person wrote.

    list_lines   bytes -> the lines that say something, numbered, without what editors and spreadsheets add
    read_rows    bytes -> Rows: their cells, with the names of the columns if there are any
    read_ids     bytes -> the ids, in each way in which the list can be read
    require_known, require_one   refuse a list whose ids are no documents, or that says two things of one

A list is lines of cells between tabs, semicolons or commas, quoted as in CSV; objects of JSON, in lines or an array,
which may hold the ids alone; or a Parquet file. The columns have names in JSON and Parquet, and where a cell of the
first line is `doc_id`, or `id` beside others.
An id may stand in angle brackets, as in mail, or have escapes, as printed, where a document has that id without them.
The apostrophe that `csv_line` puts before a cell, for spreadsheets, is taken off again.
"""

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from nddup.errors import ConfigError
from nddup.ground.shown import SPELLINGS, clean_id, counted, name_some, read_cell

LOOKED_AT = 100
"""Rows from which the delimiter is found."""

DELIMITERS = "\t;,"

Key = TypeVar("Key", str, tuple[str, str])
"""An id, or a pair of ids."""

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_LINE_END = re.compile("\r\n|\r|\n")


class Row(NamedTuple):
    """The number of the first line of a row, from 1, and its cells."""

    number: int
    cells: list[str]


class Rows(NamedTuple):
    """The rows of a list; `names` of its columns in small letters, empty where it has none."""

    names: tuple[str, ...]
    rows: list[Row]

    @property
    def id_column(self) -> int | None:
        """The place of the column of ids; None without names, or where none is `doc_id` or `id`."""
        return next((self.names.index(name) for name in ("doc_id", "id") if name in self.names), None)


JUDGEMENTS = ("better", "equal", "worse", "not a duplicate")
"""What a person may say of the document that stays."""

NAMES = ("doc_id", "duplicate_of", "judgement")


class Judged(NamedTuple):
    """A removal: the number of its line, both documents, and the judgement; empty if there is none."""

    number: int
    doc_id: str
    kept: str
    judgement: str


def list_lines(data: bytes) -> list[tuple[int, str]]:
    r"""Return the number, from 1, and the text of each line that is not blank.

    A byte order mark, the characters that end a line and blanks at its ends are left out. Without a mark the bytes are
    UTF-8; with one, what it says.

    Raises:
        UnicodeDecodeError: if the bytes are not of that encoding.

    Example:
        >>> list_lines("\ufeff a\t\r\n\r\nb c\r".encode())
        [(1, 'a'), (3, 'b c')]
    """
    mark, encoding = next((known for known in _MARKS if data.startswith(known[0])), (b"", "utf-8"))
    text = data[len(mark) :].decode(encoding)
    lines = enumerate((line.strip("\ufeff \t") for line in _LINE_END.split(text)), 1)
    return [(number, line) for number, line in lines if line.strip()]


def read_rows(data: bytes, is_entry: Callable[[Sequence[str]], bool]) -> Rows:
    r"""Return the rows of a list.

    Args:
        is_entry: whether cells hold what the caller looks for; the delimiter with most such rows is taken.

    Raises:
        ValueError: if the bytes are not UTF-8, a line of JSON is no object, or a quoted cell is endless.

    Example:
        >>> read_rows(b"doc_id,what\n'@a,kept\n", lambda cells: cells[-1] == "kept")
        Rows(names=('doc_id', 'what'), rows=[Row(number=2, cells=['@a', 'kept'])])
    """
    if data.startswith(b"PAR1"):
        import pyarrow.parquet as pq  # noqa: PLC0415 - most lists are text

        return _of_table(pq.read_table(io.BytesIO(data)))
    lines = list_lines(data)
    if lines and lines[0][1].startswith("{"):
        values = [(number, _value_of(line)) for number, line in lines]
        if any(isinstance(value, dict) for _, value in values):  # else ids in braces, such as {6b29fc40-…}
            return _of_objects(values)
    if (
        lines
        and lines[0][1].startswith("[")
        and isinstance(array := _value_of("\n".join(line for _, line in lines)), list)
    ):
        return _of_objects(
            [(number, {"doc_id": one} if isinstance(one, str | int) else one) for number, one in enumerate(array, 1)]
        )
    for delimiter in DELIMITERS:
        first = next(iter(_split(lines[:1], delimiter)), Row(0, []))
        names = [cell.lower() for cell in first.cells]
        if "doc_id" in names or ("id" in names and len(names) > 1):
            return Rows(tuple(names), _split(lines, delimiter)[1:])
    few = lines[:LOOKED_AT]
    best = max(DELIMITERS, key=lambda one: sum(is_entry(row.cells) for row in _split(few, one, is_part=True)))
    return Rows((), _split(lines, best))


def read_ids(data: bytes) -> list[list[str]]:
    r"""Return the ids of a list, in each way in which it can be read; where columns have no names, a line may be an id.

    Raises:
        ValueError: as `read_rows`.

    Example:
        >>> read_ids(b"a, b\n'@c,kept\n"), read_ids(b"<1@a.org>\n")
        ([['a, b', '@c,kept'], ['a', '@c']], [['<1@a.org>'], ['1@a.org']])
    """
    table = read_rows(data, lambda cells: len(cells) > 1)
    if table.names:
        at = table.id_column
        if at is None:
            raise ValueError(f"expected a column doc_id, got {', '.join(table.names)}")
        return _with_bare([[row.cells[at] for row in table.rows if len(row.cells) > at and row.cells[at]]])
    whole = [clean_id(read_cell(line)) for _, line in list_lines(data)]
    first = [row.cells[0] for row in table.rows]
    return _with_bare([whole, first] if first != whole else [whole])


def _with_bare(readings: list[list[str]]) -> list[list[str]]:
    """Add the readings without the brackets of a Message-ID, or escapes, last: an id may have these of its own."""
    spelled = [list(map(bare, ids)) for bare in SPELLINGS for ids in readings]
    return readings + [ids for ids in spelled if ids not in readings]


def require_known(origin: str, first: Sequence[str], unknown: int, number: int, *, all_known: bool) -> None:
    """Refuse a list none of whose ids is a document, and with `all_known` one of whose ids any is not.

    Args:
        number: of all ids.
        all_known: whether all must be known.

    Raises:
        ConfigError: naming the first of them.
    """
    if unknown and (all_known or unknown == number):
        fault = (
            f"none of {number:,} ids is a document" if unknown == number else f"{counted(unknown, 'id')} of no document"
        )
        raise ConfigError(f"{origin}: {fault}: {name_some(first, unknown)}")


def require_one(origin: str, words: Mapping[Key, str], named: Mapping[Key, Key]) -> dict[Key, str]:
    """Return what a list says of each document, or pair; refuse two spellings of one of which it says two things.

    Args:
        words: what it says of each id, or pair of ids, as they are spelled.
        named: the document, or pair, that each of them names; what is not named is left out.

    Raises:
        ConfigError: naming both spellings of the first, in ascending order.

    Example:
        >>> require_one("list", {"<a>": "kept", "a": "kept", "b": "removed"}, {"<a>": "a", "a": "a"})
        {'a': 'kept'}
    """
    spellings = dict[Key, Key]()
    for spelled, one in sorted(named.items()):
        first = spellings.setdefault(one, spelled)
        if words[first] != words[spelled]:
            raise ConfigError(
                f"{origin}: {first!r} and {spelled!r} name the same, once as {words[first]}, once as {words[spelled]}"
            )
    return {one: words[first] for one, first in spellings.items()}


def _split(lines: Sequence[tuple[int, str]], delimiter: str, *, is_part: bool = False) -> list[Row]:
    """Return the rows of lines; of a part of a file the last row may be cut within a quoted cell."""
    reader = csv.reader((f"{line}\n" for _, line in lines), delimiter=delimiter, skipinitialspace=True)
    rows, at = list[Row](), 0
    try:
        for fields in reader:
            rows.append(Row(lines[at][0], [clean_id(read_cell(field)) for field in fields]))
            at = reader.line_num  # a quoted cell may span lines
    except csv.Error:
        if not is_part:
            raise
    return rows


def _value_of(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_objects(values: Sequence[tuple[int, object]]) -> Rows:
    objects = list[tuple[int, dict[str, Any]]]()
    for number, value in values:
        if not isinstance(value, dict):
            raise ValueError(f"line {number}: expected a JSON object")  # noqa: TRY004 - of the text
        objects.append((number, value))
    names = list(dict.fromkeys(name for _, value in objects for name in value))
    rows = [Row(number, [_text(value.get(name)) for name in names]) for number, value in objects]
    return Rows(tuple(name.lower() for name in names), rows)


def _of_table(table: pa.Table) -> Rows:
    columns = [[_text(value) for value in column.to_pylist()] for column in table.columns]
    rows = [Row(number, list(cells)) for number, cells in enumerate(zip(*columns, strict=True), 1)]
    return Rows(tuple(name.lower() for name in table.column_names), rows)


def _text(value: object) -> str:
    """Return a value of JSON or Parquet as a cell of text; nothing is an empty one."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else clean_id(str(value))


def is_judged(table: Rows) -> bool:
    """Return whether a list has the columns of judgements."""
    return set(NAMES) <= set(table.names)


def list_judged(table: Rows) -> Iterator[Judged]:
    """Yield the removals of a list.

    Raises:
        ValueError: for a row without both ids, or with another judgement; and for a pair that has two.
    """
    judgements = dict[tuple[str, str], str]()
    places = [table.names.index(name) for name in NAMES]
    for number, cells in table.rows:
        doc_id, kept, judgement = (cells[at].strip() if at < len(cells) else "" for at in places)
        word = judgement.lower()
        if not doc_id or not kept or (word and word not in JUDGEMENTS):
            raise ValueError(
                f"line {number}: expected two ids and a judgement ({', '.join(JUDGEMENTS)}), got {doc_id!r}, {kept!r},"
                f" {judgement!r}"
            )
        if word and (before := judgements.setdefault((doc_id, kept), word)) != word:
            raise ValueError(f"line {number}: {doc_id!r} and {kept!r} are judged twice, {before!r} and {word!r}")
        yield Judged(number, doc_id, kept, word)


def force_judged(table: Rows) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the id and the word for `keep.force`.

    A removed document that is better than the kept one takes its place; one that is no duplicate is kept beside it.

    Raises:
        ValueError: as `list_judged`.

    Example:
        >>> rows = Rows(NAMES, [(2, ["a", "b", "worse"]), (3, ["c", "b", "equal"]), (4, ["d", "b", "Not a duplicate"])])
        >>> list(force_judged(rows))
        [(2, 'a', 'kept'), (2, 'b', 'removed'), (4, 'd', 'kept')]
    """
    judged = list(list_judged(table))
    replaced = {kept for _, _, kept, judgement in judged if judgement == "worse"}
    for number, doc_id, kept, judgement in judged:
        if judgement in ("worse", "not a duplicate"):
            yield number, doc_id, "kept"
        if judgement == "worse":
            yield number, kept, "removed"
        elif judgement == "not a duplicate" and kept not in replaced:  # else it would be removed for the other
            yield number, kept, "kept"
