"""Every byte of a WARC file, record by record: what `nddup.rewriting` writes again.

    walk_warc   stream -> pieces; `is_record` of those that `warc.cut_warc` gives, as a record or as a reject

The blank lines behind a record belong to it.
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
        header: of its first piece, with the blank line; empty for bytes that begin no record.
        data: what follows.
        begins: whether it is the first piece.
        ends: whether it is the last one.
        is_record: whether the record counts as one, as a document or as a reject.
    """

    header: bytes
    data: bytes
    begins: bool
    ends: bool
    is_record: bool


def walk_warc(stream: Expanded, *, max_record: int) -> Iterator[WarcPiece | Reject]:
    """The pieces of a file in order; where the stream stops, a reject that says why, as of `warc.cut_warc`.

    Cost: linear. Memory: `max_record`, of a longer record a piece.
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
    """The record at the start of the window: whole, or in pieces where it is longer than `max_record`."""
    left, is_record = length_of(header) or 0, is_document(header)
    if len(header) + left <= max_record:
        window.fill(len(header) + left)  # where the stream stops inside it, nothing of it is given
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
    """The bytes up to the next start of a record: together one reject."""
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
    """The line ends and other blanks at the start of the window; of very many, those of the last piece."""
    found = b""
    while window.fill(1):
        held = bytes(window.held)
        rest = len(held.lstrip(b"\r\n\0 "))
        found = (found + window.take(len(held) - rest))[-PIECE:]
        if rest:
            break
    return found
