"""Every byte of a WARC file, record by record, for `nddup.rewriting` to write again.

    walk_warc   stream -> pieces; `is_record` marks what `warc.cut_warc` returns as a record or as a reject

The blank lines after a record belong to it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from nddup.reading.cut_chunks import PIECE, StoppedError
from nddup.reading.outcomes import Reject
from nddup.reading.streams import Expanded
from nddup.reading.warc import Window, is_document, length_of, read_header

START = b"WARC/"


class WarcPiece(NamedTuple):
    """Bytes of a record.

    Attributes:
        header: the WARC header with its blank line, in the first piece only; empty for bytes that begin no record.
        data: the bytes of this piece, without the header.
        begins: whether it is the first piece of the record.
        ends: whether it is the last piece of the record.
        is_record: whether the record counts, as a document or as a reject; False for warcinfo, request and the like.
    """

    header: bytes
    data: bytes
    begins: bool
    ends: bool
    is_record: bool


def walk_warc(stream: Expanded, *, max_record: int) -> Iterator[WarcPiece | Reject]:
    """Yield the pieces of a file in order; if the stream stops, a reject with the reason, as in `warc.cut_warc`.

    Cost: linear. Memory: `max_record` and a piece; of a longer record, one piece at a time.
    """
    window = Window(stream)
    try:
        _take_blanks(window)
        while window.fill(1):
            header = read_header(window)
            if length_of(header) is None:
                yield from _pass_over(window)
            else:
                yield from _walk_record(window, header, max_record)
    except StoppedError as error:
        yield Reject(error.reason, str(error), "")


def _walk_record(window: Window, header: bytes, max_record: int) -> Iterator[WarcPiece]:
    """Yield the record at the start of the window: whole, or in pieces if it is longer than `max_record`."""
    left, is_record = length_of(header) or 0, is_document(header)
    if len(header) + left <= max_record:
        window.fill(len(header) + left)  # if the stream stops inside the record, none of it is yielded
        window.take(len(header))
        data = window.take(left)
        yield WarcPiece(header, data + _take_blanks(window), begins=True, ends=True, is_record=is_record)
        return

    window.take(len(header))
    begins = True
    while left and window.fill(1):
        data = window.take(min(left, PIECE))
        left -= len(data)
        yield WarcPiece(header if begins else b"", data, begins=begins, ends=False, is_record=is_record)
        begins = False
    yield WarcPiece(header if begins else b"", _take_blanks(window), begins=begins, ends=True, is_record=is_record)


def _pass_over(window: Window) -> Iterator[WarcPiece]:
    """Yield the bytes up to the next start of a record, in pieces; together they are one reject."""
    begins = True
    while True:
        at = window.held.find(b"\n" + START, 1)
        if at >= 0 or window.is_ended:
            data = window.take(at + 1 if at >= 0 else len(window.held))
            yield WarcPiece(b"", data, begins=begins, ends=True, is_record=True)
            return
        step = max(len(window.held) - len(START), 0)
        if step:
            yield WarcPiece(b"", window.take(step), begins=begins, ends=False, is_record=True)
            begins = False
        window.fill(len(window.held) + 1)


def _take_blanks(window: Window) -> bytes:
    """Take the line ends and other blanks at the start of the window; return the last PIECE bytes of them at most."""
    found = b""
    while window.fill(1):
        held = bytes(window.held)
        rest = len(held.lstrip(b"\r\n\0 "))
        found = (found + window.take(len(held) - rest))[-PIECE:]
        if rest:
            break
    return found
