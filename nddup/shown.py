"""Text as it is shown: nothing in it acts on a terminal, a log or a spreadsheet.

Names of files, ids, addresses and the details of rejects come from the data, so from anyone. A control character in one
can hide or forge lines on a terminal, one of direction makes a name look like another, and a spreadsheet executes a
cell that begins as a formula. `one_line` is for a value inside a line, `printable` for whole lines, `csv_line` for a
row; `ids` in files for programs have escapes of their own (`nddup.spelling`).
"""

import codecs
import csv
import io
import json
import math
import re
import sys
from collections.abc import Sequence

ACTING = "".join(
    chr(code)
    for first, last in (
        (0x00, 0x1F), (0x7F, 0x9F),  # control characters
        (0x61C, 0x61C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069),  # of direction
        (0x2028, 0x2029),  # line and paragraph separators
    )
    for code in range(first, last + 1)
)  # fmt: skip
"""The characters that are never shown as they are."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a cell that spreadsheets execute."""

IN_ASCII = {
    "─": "-", "█": "#", "·": ".", "…": "...", "×": "x", "—": "-", "–": "-", "≥": ">=", "≤": "<=", "’": "'", "“": '"',
    "”": '"', "→": "->",
}  # fmt: skip
"""What stands for characters of nddup's own output where the terminal lacks them."""

MOST_NAMED = 100
"""Most files in a list of the metrics."""

ERRORS = "nddup.shown"

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_ACTING = re.compile(f"[{re.escape(ACTING)}\ud800-\udfff]")
_ACTING_IN_LINES = re.compile(f"[{re.escape(ACTING.replace(chr(9), '').replace(chr(10), ''))}\ud800-\udfff]")


def escape_character(character: str) -> str:
    r"""Return a character as Python would spell it in a string.

    Example:
        >>> [escape_character(one) for one in ("\n", "\x1b", "\u202e")]
        ['\\n', '\\x1b', '\\u202e']
    """
    return character.encode("unicode_escape").decode("ascii")


def one_line(value: object) -> str:
    r"""Return a value to be shown inside a line, with everything that would act escaped; None is empty.

    Example:
        >>> one_line("a\n\x1b[2J.txt")
        'a\\n\\x1b[2J.txt'
    """
    return "" if value is None else _ACTING.sub(lambda found: escape_character(found[0]), str(value))


def printable(text: str) -> str:
    """Return lines to be shown: as `one_line`, but ends of lines and tabs stay."""
    return _ACTING_IN_LINES.sub(lambda found: escape_character(found[0]), text)


def print_out(text: str) -> None:
    """Write lines to standard output, `printable`."""
    sys.stdout.write(printable(text))


def print_json(value: object) -> None:
    """Write a value to standard output, as `spell_json`."""
    sys.stdout.write(spell_json(value))


def spell_json(value: object) -> str:
    """Return a value as one line of JSON, in ASCII: nothing in it acts on a terminal.

    Numbers that are not finite are null; what JSON does not know is a text.
    """
    return json.dumps(_finite(value), default=str, allow_nan=False) + "\n"


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {str(name): _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def csv_line(values: Sequence[object]) -> str:
    r"""Return a row of a CSV file. None is an empty field; booleans are `true` and `false`.

    A text that a spreadsheet would take for a formula gets an apostrophe in front, and so does one that begins as if it
    had got one: `read_cell` gives the value back. Numbers are unchanged.

    Example:
        >>> csv_line(["=1+1", "-5", -5, True, None, "'@a"])
        "'=1+1,-5,-5,true,,''@a\n"
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(  # it quotes a cell that holds a character of the line end
        ["" if value is None else str(value).lower() if isinstance(value, bool) else _cell(value) for value in values]
    )
    return f"{text.getvalue()[:-2]}\n"


def _cell(value: object) -> object:
    is_formula = isinstance(value, str) and value.lstrip("'").startswith(FORMULA)
    return f"'{value}" if is_formula and not _NUMBER.fullmatch(str(value)) else value


def read_cell(text: str) -> str:
    """Return the value of a text cell that `csv_line` wrote; other cells are unchanged.

    Example:
        >>> [read_cell(text) for text in ("'=1+1", "''@a", "it", "'tis")]
        ['=1+1', "'@a", 'it', "'tis"]
    """
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(FORMULA) else text


def print_in_any_encoding() -> None:
    """Let standard output and error show every text, whatever the encoding: ASCII for our own lines, else escapes."""
    codecs.register_error(ERRORS, _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ERRORS)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(IN_ASCII.get(one) or escape_character(one) for one in missing), error.end
