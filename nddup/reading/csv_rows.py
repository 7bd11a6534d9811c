"""Read the rows of a CSV file as records. A bad row is one reject; an unclosed quote loses no other rows.

A quoted field may hold line ends, so a stray quote extends to the next quote, or to the end of the file. Rows are read
by RFC 4180, or else as Python's `csv` reads them. But if a quote is still open at the end of the file or after
`max_record` characters, or if it is closed inside a field and the second line is a row by itself, the first line is a
reject and reading continues with the second line.
"""

import codecs
import csv
import io
from collections.abc import Callable, Iterator

from nddup.reading.bounded_parts import MAX_PARTS
from nddup.reading.csv_dialects import QUOTE, Dialect, opens_after_blank
from nddup.reading.formats import FileHead
from nddup.reading.outcomes import EXCERPT_LENGTH, Record, Reject, make_record
from nddup.reading.streams import PIECE, Expanded, StoppedError

MARK = "\udcff"
"""Stands for an undecodable byte sequence until it is counted; no encoding decodes to it."""

MOST_AGAIN = 8
"""Most times that the characters of a file are reread after bad quotes: a bound for hostile files."""


def _mark(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return MARK, error.end


codecs.register_error("nddup.mark", _mark)


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
    text = io.TextIOWrapper(io.BufferedReader(stream, PIECE), head.encoding, errors="nddup.mark", newline="")
    lines = Lines(text, max_record)
    dialect = dialect_of(head)
    columns: list[str] | None = None
    for row in read_rows(lines, dialect):
        if isinstance(row, Reject):
            yield row
        elif columns is None:
            columns = [column.strip() for column in row]
            places = [columns.index(name) for name in head.format.content if name in columns]
            policy_at = [_place(columns, name) for name in head.format.policy]
            id_at, url_at = (_place(columns, name) for name in (head.format.id, head.format.url))
        elif len(row) != len(columns):
            told = f"{_counted_fields(row)}, expected {len(columns)}{_why_quoted(''.join(lines.row), dialect)}"
            yield Reject("malformed", told, _excerpt("|".join(row[:99])))
        else:
            replaced = sum(field.count(MARK) for field in row)
            row = [field.replace(MARK, "\ufffd") for field in row] if replaced else row  # noqa: PLW2901
            doc_id, url = (row[at] if at is not None else None for at in (id_at, url_at))
            content = [(row[at], head.format.is_markup) for at in places]
            policy = tuple(row[at] if at is not None else None for at in policy_at)
            yield make_record(doc_id, url, content, replaced=replaced, policy=policy)

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


def read_rows(lines: Lines, dialect: Dialect, *, with_blank: bool = False) -> Iterator[list[str] | Reject]:
    """Yield the rows, including the header. `lines.row` holds the lines of the current row.

    Args:
        lines: lines of the table.
        dialect: how they are written.
        with_blank: whether a blank line is an empty row; if not, blank lines are skipped.
    """
    rows = dialect.read(lines, strict=True)
    width = 0
    while True:
        lines.begin()
        try:
            rows = dialect.read(lines, strict=True) if dialect.escape and dialect.quote else rows
            row: list[str] | Reject | None = next(rows, None)
        except (csv.Error, _LongRowError) as error:
            row = _read_sloppy(lines, dialect, width, is_long=isinstance(error, _LongRowError))
        if row is None:
            return
        if row or with_blank:
            width = width or (0 if isinstance(row, Reject) else len(row))
            yield row


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
    told = f"a quote is not closed, or closed inside a field{_why_quoted(first, dialect)}{passed}"
    return Reject("malformed", told, _excerpt(first))


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
    return text[:EXCERPT_LENGTH].replace(MARK, "\ufffd")
