"""The rows of a CSV file as records. A bad row is one reject; an unclosed quote loses no other rows.

    find_dialect   the first characters of a table  -> Dialect: what separates fields, quotes them, escapes a quote
    separator_of   the first characters of a table  -> its delimiter, with a blank or without
    read_csv       stream, head                     -> Record | Reject for each row after the header line
    read_rows      Lines, Dialect                   -> the rows, including the header
    dialect_of     head                             -> the Dialect of a table whose head was read before

How a stray quote is bounded is described at `read_rows`, the ways to write a quote at `find_dialect`.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from nddup.reading.decoding import EACH_BYTE, take_marks
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import EXCERPT_LENGTH, Record, Reject, make_record, unread_of
from nddup.reading.page_limits import MAX_PARTS
from nddup.reading.streams import PIECE, Expanded, StoppedError

QUOTE = '"'
ESCAPE = "\\"
UNQUOTED = "\t|"
"""Delimiters of tables that mostly have no quoting: the first rows must show quotes."""

NULL = "\\N"
"""A missing value, as databases write it."""

_MEANT = {"\\n": "\\\n", "\\r": "\\\r", "\\t": "\\\t", NULL: "\\\\N"}
"""What databases write after a backslash in tables without quoting, and how Python's `csv` reads the same."""

_ESCAPED = re.compile(r"\\.", re.DOTALL)
_AS_OF_DATABASES = re.compile(r"(?:[^\\]|\\[\\bfnrtv0NZ'\"\t\r\n])*+\\?")
_HOLDS_NULL = re.compile(r"[\t|]\\N(?=[\t|\r\n])|^\\N(?=[\t|])", re.MULTILINE)

NAMED = re.compile('\ufeff?"?sep=(.)"?[ ,;\t]*(?:\r\n?|\n)')
"""A first line that names the delimiter; spreadsheets may put delimiters after it."""

_QUOTED = re.compile('"[^"]*(?:""[^"]*)*"')

REMARK = "#"
"""Begins a line before the header that is no row."""

HEADER = "header"
"""The reason of a reject that names the columns again, where tables were joined: no document is lost with it."""

MOST_PARSED_AGAIN = 4
"""Maximum number of times that the lines are reread after a bad row: a bound for hostile files."""


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
            lines = map(_as_python, lines) if escape else lines
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
        if not any(sign in cell for sign in (self.delimiter, self.quote, "\r", "\n")):
            return cell
        if self.escape:
            cell = cell.replace(self.escape, self.escape * 2)
        return self.quote + cell.replace(self.quote, (self.escape or self.quote) + self.quote) + self.quote

    def describe(self) -> str:
        """Return the dialect in words."""
        names = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
        between = names.get(self.delimiter, self.delimiter) + " and blanks" * (len(self.separator) > 1)
        inside = f"after {self.escape}" if self.escape else "doubled"
        if self.quote:
            return f"fields between {between}, quoted by {self.quote}; a quote inside is {inside}"
        return f"fields between {between}, without quoting" + (f"; escapes by {self.escape}" if self.escape else "")


MOST_AGAIN = 8
"""Maximum number of times that the characters of a file are reread after bad quotes: a bound for hostile files."""


def _as_python(line: str) -> str:
    return _ESCAPED.sub(lambda sign: _MEANT.get(sign[0], sign[0]), line)


def _doubled(lines: Iterable[str], dialect: Dialect) -> Iterator[str]:
    """Yield the lines of one row with doubled quotes instead of escaped ones."""
    opening, special = _patterns(dialect)
    quote, escape = dialect.quote, dialect.escape
    is_inside = False
    for line in lines:
        at, parts = 0, list[str]()
        while match := (special if is_inside else opening).search(line, at):
            parts.append(line[at : match.start()])
            at, sign = match.end(), match[0]
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

    There are four ways to write a quote inside a value: doubled in a quoted value (RFC 4180), after a backslash in a
    quoted value (Spark, MySQL), as it is in a table without quoting (most tab-separated corpora, as in
    text/tab-separated-values), and likewise, with line ends and delimiters after a backslash (Hive, PostgreSQL). The
    first rows of a table are read in each of these ways; the one in which most of them have the number of fields of
    the header is taken, and of equal ones the last where a value is NULL and each backslash one of a database.

    Args:
        start: the first characters of the table; they may end anywhere.
        delimiter: one character.
        quote: the quote, if it is known; empty for none.
        escape: the escape, if it is known; empty for doubled quotes.

    Returns:
        The dialect in which fewest lines belong to a row with a wrong number of fields. Else quotes quote (RFC 4180),
        unless the delimiter is a tab or a bar: there they do only if a value with a delimiter or a quote in it, or all
        values of a column, or all names of columns, are quoted; lines that are rows by themselves are no part of a
        quoted value. With another delimiter, quotes are text only if that makes every line a row.

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
    header = lines[0].rstrip("\r\n").split(delimiter) if lines else []
    is_quoted = all(map(_QUOTED.fullmatch, header))  # no name of a column has quotes of its own
    quotes = (quote,) if quote is not None else (QUOTE,) if is_quoted else (QUOTE, "")
    many = [Dialect(delimiter, one, sign) for one in quotes for sign in escapes]
    if quote is None and delimiter in UNQUOTED:
        is_escaped = _HOLDS_NULL.search(start) is not None and _AS_OF_DATABASES.fullmatch(start) is not None
        many.sort(key=lambda one: ((one.escape != "") != is_escaped, one.quote != ""))  # the first of equal costs
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
        if again > MOST_PARSED_AGAIN * len(lines):
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
    more = f"(?:{mark}  *+{value})"  # fails at its first two characters or not at all: see `xml_records`
    cut = f"{value}{more}*+ *+(?:{mark} *+)?(?:{quoted})?\\Z"  # a row that goes on after the first characters
    row = re.compile(f"{value}{more}++ *+(?:\r\n?|\n)|{cut}")

    header = re.match(r"[^\r\n]*+[\r\n]++", start)
    at = header.end() if header else len(start)
    is_quoted = opens_after_blank(start, delimiter)
    while is_quoted and at < len(start):
        match = row.match(start, at)
        is_quoted, at = match is not None, match.end() if match else at
    return f"{delimiter} " if is_quoted else delimiter


def opens_after_blank(text: str, delimiter: str) -> bool:
    """Return whether a quote follows a delimiter and blanks."""
    return re.search(f'{re.escape(delimiter)} ++"', text) is not None


def read_csv(stream: Expanded, head: FileHead, max_record: int) -> Iterator[Record | Reject]:
    """Yield the rows after the header line; a row whose number of fields differs from the header's is a reject.

    Args:
        stream: the bytes of the file.
        head: its columns, encoding and dialect.
        max_record: the most characters of a row.

    Returns:
        Records and rejects. Bytes that cannot be decoded become U+FFFD and are counted. If the stream stops, the last
        item is a reject with the reason.

    Cost: linear; the file is read at most MOST_AGAIN + 1 times in all. Memory: one row, up to 29 bytes per byte if
        its fields are short.
    """
    csv.field_size_limit(max_record)
    text = io.TextIOWrapper(io.BufferedReader(stream, PIECE), head.encoding, errors=EACH_BYTE, newline="")
    lines = Lines(text, max_record)
    dialect = dialect_of(head)
    columns: list[str] | None = None
    for row in read_rows(lines, dialect, head.format.content):
        if isinstance(row, Reject):
            yield row
        elif columns is None:
            columns = column_names(row)
            places = [columns.index(name) for name in head.format.content if name in columns]
            policy_at = [_place(columns, name) for name in head.format.policy]
            id_at, url_at = (_place(columns, name) for name in (head.format.id, head.format.url))
        elif len(row) != len(columns):
            detail = f"{_counted_fields(row)}, expected {len(columns)}{_why_quoted(''.join(lines.row), dialect)}"
            yield Reject("malformed", detail, _excerpt("|".join(row[:99])))
        else:
            taken = [take_marks(field) for field in row]
            row, lost = [meant(text) for text, _ in taken], b"".join(lost for _, lost in taken)  # noqa: PLW2901
            doc_id, url = (row[at] if at is not None else None for at in (id_at, url_at))
            content = [(row[at], head.format.is_markup) for at in places]
            policy = tuple(row[at] if at is not None else None for at in policy_at)
            unread = unread_of(lost)
            yield make_record(doc_id, url, content, replaced=len(lost), policy=policy, unread=unread)

    if lines.stopped:
        yield Reject(lines.stopped.reason, str(lines.stopped), "")


class _LongRowError(Exception):
    """A row is longer than `max_record`, or has more than MAX_PARTS lines."""


class Lines:
    """The lines of a table. The lines of the current row are kept, so that they can be read again.

    Attributes:
        row: the lines taken since `begin`, without those given back.
        pass_over: called for each skipped part of a line that is too long, with the row's lines and that part; or None.
        is_ended: whether a line was requested after the last one.
        stopped: why the stream ended early.
    """

    def __init__(self, text: io.TextIOWrapper, max_record: int) -> None:
        self._text, self._max_record = text, max_record
        self._waiting: list[str] = []  # the next one last
        self._read = self._read_again = self._size = 0
        self.row: list[str] = []
        self.pass_over: Callable[[list[str], str], None] | None = None
        self.is_ended = False
        self.stopped: StoppedError | None = None

    def __iter__(self) -> "Lines":
        """Return this iterator of lines."""
        return self

    def __next__(self) -> str:
        """Take the next line into the current row."""
        line = self._waiting.pop() if self._waiting else self._next_line()
        if not line:
            self.is_ended = True
            raise StopIteration
        self.row.append(line)
        self._size += len(line)
        if self._size > self._max_record or len(self.row) > MAX_PARTS:
            raise _LongRowError
        return line

    def begin(self) -> None:
        """Start a row with the next line."""
        self.row, self._size, self.is_ended = [], 0, False

    def give_back(self, first: int) -> bool:
        """Mark the row's lines from `first` on as unread; return False if too much has been reread already."""
        lines = self.row[first:]
        self._read_again += sum(map(len, lines))
        if self._read_again > MOST_AGAIN * self._read:
            return False
        self._waiting.extend(reversed(lines))
        del self.row[first:]
        return True

    def _next_line(self) -> str:
        """Return the next line of the file; of a line longer than `max_record`, the first part: the rest is skipped."""
        if self.stopped:
            return ""

        try:
            line = rest = self._text.readline(self._max_record + 1)
            while len(rest) > self._max_record and not rest.endswith(("\n", "\r")):
                rest = self._text.readline(self._max_record + 1)
                if self.pass_over is not None:
                    self.pass_over([*self.row, line], rest)
        except StoppedError as error:
            self.stopped = error
            return ""
        self._read += len(line)
        return line


def read_rows(
    lines: Lines, dialect: Dialect, content: Sequence[str] = (), *, with_blank: bool = False
) -> Iterator[list[str] | Reject]:
    """Yield the rows, including the header. `lines.row` holds the lines of the current row.

    A quoted field may hold line ends, so a stray quote extends to the next quote, or to the end of the file. Rows are
    read by RFC 4180, or else as Python's `csv` reads them. But if a quote is still open at the end of the file or after
    `max_record` characters, or if it is closed inside a field and the second line is a row by itself, the first line is
    a reject and reading continues with the second line.

    Args:
        content: the columns of the text; where they are given, remarks before the header are as blank lines.
        with_blank: whether a blank line is an empty row; if not, blank lines are skipped. A first line that names the
            delimiter, as for Excel, is as one. A row that names the columns again is a reject (`HEADER`).
    """
    yield from (list[str]() for _ in _take_remarks(lines, dialect, content) if with_blank)
    rows = dialect.read(lines, strict=True)
    width, is_first = 0, True
    header: list[str] = []
    whole = _WholeLines(lines, dialect)
    while True:
        lines.begin()
        try:
            rows = dialect.read(lines, strict=True) if dialect.escape and dialect.quote else rows
            row: list[str] | Reject | None = next(rows, None)
        except (csv.Error, _LongRowError) as error:
            row = _read_sloppy(lines, dialect, width, is_long=isinstance(error, _LongRowError))
        if row is None:
            return
        row = [] if is_first and delimiter_named("".join(lines.row)) == dialect.delimiter else row
        is_first = is_first and row == []
        if row and not isinstance(row, Reject):
            row = whole.join(row) if header else row
        if row and not isinstance(row, Reject):
            if len(header) > 1 and row[-1] == header[-1] and _names_again(row, header, dialect):
                row = Reject(
                    HEADER, "the names of the columns again, as where tables were joined", _excerpt(lines.row[0])
                )
            elif not header:
                header = row
                whole.begin(row)
        if row or with_blank:
            width = width or (0 if isinstance(row, Reject) else len(row))
            yield row


def is_remark(line: str, dialect: Dialect, content: Iterable[str]) -> bool:
    """Return whether the first line of a table is a remark: it begins with `#`, and names no column of the text.

    Example:
        >>> is_remark("# of May, 2024", Dialect(","), ["text"]), is_remark("#id,text", Dialect(","), ["text"])
        (True, False)
    """
    if not line.lstrip("\ufeff").startswith(REMARK):
        return False
    with suppress(csv.Error):
        return not set(content).intersection(column_names(next(dialect.read([line]), [])))
    return True


def _take_remarks(lines: Lines, dialect: Dialect, content: Sequence[str]) -> Iterator[None]:
    """Take the lines before the header, if the first is a remark: all that are blank or begin with `#`."""
    is_first = True
    while content:
        lines.begin()
        try:
            line = next(lines, "")
        except _LongRowError:
            line = ""
        is_taken = is_remark(line, dialect, content) if is_first else line.startswith(REMARK) or line.isspace()
        if not is_taken:
            lines.give_back(0)
            return
        is_first = False
        yield


class _WholeLines:
    """Joins a row with what follows it, where it was cut at a line end that is none in this table.

    A lone carriage return in a table whose lines end in line feeds is part of a value, and so is a lone line feed in
    one whose lines end in both, if only that gives the row as many fields as the header has. Linear: a line is tried
    once.
    """

    def __init__(self, lines: Lines, dialect: Dialect) -> None:
        self._lines, self._dialect = lines, dialect
        self._width, self._end, self._is_tried = 0, "", False

    def begin(self, header: list[str]) -> None:
        """Take the number of fields and the line end from the header, which was read last."""
        last = self._lines.row[-1]
        self._width, self._end = len(header), next((end for end in ("\r\n", "\n") if last.endswith(end)), "")

    def join(self, row: list[str]) -> list[str] | Reject:
        """Return the row that was read last, or the one of the whole line that it begins."""
        last, count = self._lines.row[-1], len(self._lines.row)
        if not self._end or self._width == 1 or last.endswith(self._end):  # where each line has one field, all are rows
            self._is_tried = False
            return row
        if self._is_tried or len(row) > self._width or not last.endswith(("\r", "\n")):
            return row
        if (joined := self._read_on(len(row))) is not None:
            return joined
        self._is_tried = True
        lines = len(self._lines.row) - count
        if self._lines.give_back(count):
            return row
        return Reject("malformed", f"a line end inside a line; {lines:,} lines are skipped", _excerpt(last))

    def _read_on(self, fields: int) -> list[str] | None:
        """Return the row of the line that begins with some fields; None if it is no row of this table."""
        quote, is_blank = self._dialect.quote, True
        is_quoted = quote != "" and any(quote in line for line in self._lines.row)
        try:
            for line in self._lines:
                fields += line.count(self._dialect.delimiter)
                is_quoted |= quote != "" and quote in line
                is_blank &= not line.strip()
                if line.endswith(self._end) or (fields > self._width and not is_quoted):
                    break
        except _LongRowError:
            return None
        text = "".join(self._lines.row)
        end = self._end if text.endswith(self._end) else ""
        marks = [mark for code in range(0xFDD0, 0xFDF0) if (mark := chr(code)) not in text]
        if is_blank or len(marks) < 2 or (not end and text.endswith(("\r", "\n"))):  # noqa: PLR2004
            return None
        body = text.removesuffix(end).replace("\r", marks[0]).replace("\n", marks[1])
        joined = _read_line(body + end, self._dialect)
        if joined is None or len(joined) != self._width:
            return None
        return [cell.replace(marks[0], "\r").replace(marks[1], "\n") for cell in joined]


def _names_again(row: list[str], header: list[str], dialect: Dialect) -> bool:
    """Return whether a row names the columns. A byte order mark before a quote makes both part of the value."""
    names, columns = ([name.strip(dialect.quote or None) for name in column_names(one)] for one in (row, header))
    return names == columns


def _read_sloppy(lines: Lines, dialect: Dialect, width: int, *, is_long: bool) -> list[str] | Reject:
    """Read a row that is not strict CSV. If that fails, return a reject for its first line and give back the others."""
    first, *others = lines.row[:2]
    if is_long and not others:
        return Reject("too large", "a line of more than input.max_record characters", _excerpt(first))

    # A quote that swallowed whole rows, or is open at the end of the file, is a stray one.
    is_open = is_long or (lines.is_ended and bool(others))
    has_taken_rows = bool(others) and len(_read_line(others[0], dialect) or "") == width
    if not others:
        row = _read_line(first, dialect)
    elif is_open or has_taken_rows or not lines.give_back(0):
        row = None
    else:
        row = _read_loosely(lines, dialect)
    if row is not None:
        return row

    n_lines = len(lines.row)
    passed = "" if lines.give_back(1) else f"; {n_lines:,} lines are skipped"
    text = f"a quote is not closed, or closed inside a field{_why_quoted(first, dialect)}{passed}"
    return Reject("malformed", text, _excerpt(first))


def _read_line(line: str, dialect: Dialect) -> list[str] | None:
    """Read the row on a single line; None if a quote is open at its end."""
    following = iter([line, ""])
    row = next(dialect.read(following), [])
    return None if next(following, None) is None else row


def _read_loosely(lines: Lines, dialect: Dialect) -> list[str] | None:
    """Read the next row as `csv` does; None if a quote is still open at the end of the file or of the longest row."""
    lines.begin()
    try:
        row = next(dialect.read(lines))
    except (csv.Error, _LongRowError):
        return None
    return None if lines.is_ended else row


def delimiter_named(text: str) -> str | None:
    r"""Return the delimiter that the first line of a table names, as Excel reads and writes it; None for another line.

    Example:
        >>> delimiter_named("sep=;\r\nid;text\r\n"), delimiter_named("id;text\r\n")
        (';', None)
    """
    match = NAMED.match(text)
    return match[1] if match else None


def meant(value: str) -> str:
    """Return a value of a table; empty for a missing one."""
    return "" if value == NULL else value


def column_names(row: Iterable[str]) -> list[str]:
    """Return the names of columns that the first row of a table holds, without blanks and byte order marks."""
    return [name.strip("\ufeff").strip() for name in row]


def dialect_of(head: FileHead) -> Dialect:
    """Return the dialect of a table."""
    return Dialect(head.separator.decode(), head.quote, head.escape)


def _counted_fields(row: list[str]) -> str:
    return "1 field" if len(row) == 1 else f"{len(row)} fields"


def _why_quoted(text: str, dialect: Dialect) -> str:
    """Explain a bad row whose cause is easily overlooked: quotes were written in another way than they are read."""
    if len(dialect.separator) == 1 and dialect.quote and opens_after_blank(text, dialect.delimiter):
        return "; a quote after a blank does not open a quoted value"
    if dialect.quote and not dialect.escape and f"\\{dialect.quote}" in text:
        return "; quotes after a backslash need input.escape=\\"
    if not dialect.quote and QUOTE in text:
        return '; quoted values need input.quote="'
    return ""


def _place(columns: list[str], name: str | None) -> int | None:
    return columns.index(name) if name in columns else None


def _excerpt(text: str) -> str:
    return take_marks(text[:EXCERPT_LENGTH])[0]
