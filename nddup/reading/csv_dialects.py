r"""How the rows of a table are written: what separates fields, what quotes them, and what a quote inside is.

    Dialect        a way to write rows, and a reader of it
    find_dialect   the first characters of a table -> its dialect
    separator_of   the first characters of a table -> its delimiter, with a blank or without

There are four ways to write a quote inside a value: doubled in a quoted value (RFC 4180), after a backslash in a
quoted value (Spark, MySQL), as it is in a table without quoting (most tab-separated corpora, as in
text/tab-separated-values), and likewise, with line ends and delimiters after a backslash (Hive). The first rows of a
table are read in each of these ways; the one in which most of them have the number of fields of the header is taken.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

QUOTE = '"'
ESCAPE = "\\"
UNQUOTED = "\t|"
"""Delimiters of tables that mostly have no quoting: quotes must be told by the first rows."""

_QUOTED = re.compile('"[^"]*(?:""[^"]*)*"')

MOST_AGAIN = 4
"""Most times that the lines are reread after a bad row: a bound for hostile files."""


class Dialect(NamedTuple):
    r"""A way to write rows.

    Attributes:
        separator: the delimiter, one character; with a blank after it, blanks before values are skipped.
        quote: the character around values; empty if no value is quoted.
        escape: the character before a quote inside a quoted value; empty if such a quote is doubled, which is read in
            any case. Without quoting, it stands before a delimiter or a line end inside a value.
    """

    separator: str
    quote: str = QUOTE
    escape: str = ""

    @property
    def delimiter(self) -> str:
        """The character between two fields."""
        return self.separator[0]

    def read(self, lines: Iterable[str], *, strict: bool = False) -> Iterator[list[str]]:
        r"""Return an iterator of rows, as of `csv.reader`. With an escape, take one row only: the next is not aligned.

        Raises:
            csv.Error: from the iterator, for a row that cannot be read; with `strict`, also for a quote that is closed
                inside a field.

        Example:
            >>> next(Dialect(",", escape="\\").read(['1,"a \\"b\\", \\\\ \\c","d ""e"" f"\n']))
            ['1', 'a "b", \\ \\c', 'd "e" f']
        """
        if not self.quote:
            escape = self.escape or None
            return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE, escapechar=escape, strict=strict)
        return csv.reader(
            _doubled(lines, self) if self.escape else lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            skipinitialspace=len(self.separator) > 1,
            strict=strict,
        )

    def write(self, cells: Iterable[str]) -> str:
        r"""Return a row, without a line end. Without quoting, delimiters and line ends in a cell become blanks.

        Example:
            >>> Dialect(",").write(["a", 'b "c" d']), Dialect(",", escape="\\").write(["a", 'b "c" d'])
            ('a,"b ""c"" d"', 'a,"b \\"c\\" d"')
        """
        if not self.quote:
            blanks = str.maketrans(dict.fromkeys(f"{self.delimiter}{self.escape}\r\n", " "))
            return self.delimiter.join(cell.translate(blanks) for cell in cells)
        return self.delimiter.join(map(self._quoted, cells))

    def _quoted(self, cell: str) -> str:
        """Return a cell, quoted if it must be."""
        if not any(sign in cell for sign in (self.delimiter, self.quote, "\r", "\n")):
            return cell
        if self.escape:
            cell = cell.replace(self.escape, self.escape * 2)
        return self.quote + cell.replace(self.quote, (self.escape or self.quote) + self.quote) + self.quote

    def told(self) -> str:
        """Return the dialect in words."""
        names = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
        between = names.get(self.delimiter, self.delimiter) + " and blanks" * (len(self.separator) > 1)
        inside = f"after {self.escape}" if self.escape else "doubled"
        if self.quote:
            return f"fields between {between}, quoted by {self.quote}; a quote inside is {inside}"
        return f"fields between {between}, without quoting" + (f"; escapes by {self.escape}" if self.escape else "")


def _doubled(lines: Iterable[str], dialect: Dialect) -> Iterator[str]:
    """Yield the lines of one row with doubled quotes instead of escaped ones."""
    opening, special = _patterns(dialect)
    quote, escape = dialect.quote, dialect.escape
    is_inside = False
    for line in lines:
        at, parts = 0, list[str]()
        while found := (special if is_inside else opening).search(line, at):
            parts.append(line[at : found.start()])
            at, sign = found.end(), found[0]
            if not is_inside or sign == quote:
                is_inside = not is_inside
            elif sign == escape + quote:
                sign = quote * 2
            elif sign == escape * 2:
                sign = escape
            parts.append(sign)
        yield "".join((*parts, line[at:]))


@lru_cache
def _patterns(dialect: Dialect) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a quote that opens a value, and of all that means something inside one."""
    mark, quote, escape = map(re.escape, (dialect.delimiter, dialect.quote, dialect.escape))
    blanks = " *+" if len(dialect.separator) > 1 else ""
    return re.compile(f"(?:^|{mark}){blanks}{quote}"), re.compile(f"{quote}{quote}|{quote}|{escape}.?", re.DOTALL)


def find_dialect(start: str, delimiter: str, quote: str | None = None, escape: str | None = None) -> Dialect:
    r"""Determine how the rows of a table are written.

    Args:
        start: the first characters of the table; they may end anywhere.
        delimiter: one character.
        quote: the quote, if it is known; empty for none.
        escape: the escape, if it is known; empty for doubled quotes.

    Returns:
        The dialect in which fewest lines belong to a row with a wrong number of fields. Else quotes quote (RFC 4180),
        unless the delimiter is a tab or a bar: there they do only if a value with a delimiter or a quote in it, or all
        values of a column, are quoted; lines that are rows by themselves are no part of a quoted value. With another
        delimiter, quotes are text only if that makes every line a row.

    Cost: linear; at most four times that of reading the rows.

    Example:
        >>> find_dialect('id\ttext\n1\t"a\n2\tb"\n', "\t").quote, find_dialect('id,text\n1,"a\n2,b"\n', ",").quote
        ('', '"')
    """
    known = QUOTE if quote is None else quote
    separator = separator_of(start, delimiter) if known == QUOTE and delimiter not in UNQUOTED else delimiter
    if len(separator) > 1:
        return Dialect(separator, known, escape or "")

    lines = list(io.StringIO(start, newline=""))
    if len(lines) > 1 and not lines[-1].endswith(("\n", "\r")):
        del lines[-1]
    escapes = (escape,) if escape is not None else ("", ESCAPE) if ESCAPE in start else ("",)
    quotes = (quote,) if quote is not None else (QUOTE, "")
    many = [Dialect(delimiter, one, sign) for one in quotes for sign in escapes]
    if quote is None and delimiter in UNQUOTED:
        many.sort(key=lambda one: (one.escape != "", one.quote != ""))  # the first of equal costs is taken
    costs: list[int] = []
    for one in many:
        costs.append(_cost(lines, one) if len(many) > 1 and lines else 0)
        if not costs[-1]:
            break
    return many[costs.index(min(costs))]


def _cost(lines: list[str], dialect: Dialect) -> int:
    """Count the lines that speak against a dialect."""
    width = len(next(_rows(lines, 0, dialect))[0])
    if width == 1 and not dialect.quote:  # every line has one field
        return len(lines) + 1
    cost = again = at = 0
    rows = list[list[str]]()
    while at < len(lines):
        row, taken = next(_rows(lines, at, dialect))
        again += taken
        if again > MOST_AGAIN * len(lines):
            return len(lines) + 1
        is_row = len(row) == width
        if not is_row and lines[at].strip():
            cost += 1
            taken = 1
        elif is_row and dialect.delimiter in UNQUOTED:
            cost += sum(line.count(dialect.delimiter) == width - 1 for line in lines[at + 1 : at + taken])
        if is_row and taken == 1:
            rows.append(row)
        at += taken
    if dialect.quote:
        return cost
    cost += _count_quoted(rows)
    return cost if dialect.delimiter in UNQUOTED or not cost else len(lines) + 1


def _rows(lines: list[str], at: int, dialect: Dialect) -> Iterator[tuple[list[str], int]]:
    """Yield the row that begins at a line, and its number of lines; an empty row if it is not strict."""
    following = iter(range(at, len(lines)))
    try:
        row = next(dialect.read((lines[place] for place in following), strict=True), [])
    except csv.Error:
        row = []
    yield row, next(following, len(lines)) - at


def _count_quoted(rows: list[list[str]]) -> int:
    """Count the rows, read without quoting, that have doubled quotes; all rows if all values of a column are quoted."""
    is_quoted = [_QUOTED.fullmatch(value) is not None for row in rows for value in row]
    width = len(rows[0]) if rows else 0
    if len(rows) > 1 and any(all(is_quoted[column + width :: width]) for column in range(width)):
        return len(rows)
    return sum(
        any(is_quoted[at * width + column] and QUOTE * 2 in value[1:-1] for column, value in enumerate(row))
        for at, row in enumerate(rows)
    )


def separator_of(start: str, delimiter: str) -> str:
    """Determine what separates the fields of a table: its delimiter, or its delimiter and a blank.

    Args:
        start: the first characters of the table; they may end anywhere.
        delimiter: one character.

    Returns:
        The delimiter and a blank if, in every row after the header, a blank follows each delimiter, and at least one
        quoted value follows such a blank. Else the delimiter alone: the blank and the quotes after it are part of the
        value, as in RFC 4180.

    Cost: linear.
    """
    mark, quoted = re.escape(delimiter), '"(?:[^"]++|"")*+'
    value = f'(?:{quoted}"|[^"\r\n{mark}]*+)'
    more = f"(?:{mark}  *+{value})"  # fails at its first two characters or not at all: see `xml_parsing`
    cut = f"{value}{more}*+ *+(?:{mark} *+)?(?:{quoted})?\\Z"  # a row that goes on after the first characters
    row = re.compile(f"{value}{more}++ *+(?:\r\n?|\n)|{cut}")

    header = re.match(r"[^\r\n]*+[\r\n]++", start)
    at = header.end() if header else len(start)
    is_quoted = opens_after_blank(start, delimiter)
    while is_quoted and at < len(start):
        found = row.match(start, at)
        is_quoted, at = found is not None, found.end() if found else at
    return f"{delimiter} " if is_quoted else delimiter


def opens_after_blank(text: str, delimiter: str) -> bool:
    """Return whether a quote follows a delimiter and blanks."""
    return re.search(f'{re.escape(delimiter)} ++"', text) is not None
