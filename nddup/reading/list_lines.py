"""The lines of a small list that a person made: ids to remove, labelled pairs.

list_lines   bytes -> the lines that say something, numbered, without what editors and spreadsheets add
"""

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_END = re.compile("\r\n|\r|\n")


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
    mark, encoding = next((found for found in _MARKS if data.startswith(found[0])), (b"", "utf-8"))
    text = data[len(mark) :].decode(encoding)
    lines = enumerate((line.strip("\ufeff \t") for line in _END.split(text)), 1)
    return [(number, line) for number, line in lines if line.strip()]
