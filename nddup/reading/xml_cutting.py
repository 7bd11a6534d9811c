"""The records of an XML file as XML finds them, from chunks that were cut at one separator.

    cut_records        chunks                 -> chunks that hold one record each
    holds_separators   first bytes of a file  -> whether chunks are joined for that: no division among tasks then
    Pieces             pieces between line ends, as Spark delivers them   -> one stream of bytes

A file is cut at the end of its records as most of them spell it (`FileHead.separator`). That is where XML ends a record
if nothing else in the chunk can start or hide one, and most chunks are passed on after this test.
"""

import io
from collections import deque
from collections.abc import Iterable, Iterator
from xml.parsers import expat

from nddup.reading.formats import FileHead
from nddup.reading.json_pairs import join_pairs
from nddup.reading.outcomes import DIVIDED, Reject
from nddup.reading.sgml_records import divide_sgml
from nddup.reading.streams import Chunk, Part, StoppedError
from nddup.reading.xml_records import Wrapper, hidden_at, wrapper_of

Piece = Chunk | Part | Reject

FIRST_BYTES, MOST_BYTES = 4 << 10, 1 << 20
"""Bytes passed to Expat at a time: few at first, because most records are short, then twice as many each time."""

MOST_IN_VAIN = 4
"""Failed joins in one stream, as multiples of the longest record, after which chunks are no longer joined."""

# Only tags matter here. So that a stray `&`, a control character or an undecodable byte does not stop Expat, each is
# replaced by a harmless byte.
_TAME = bytearray(range(256))
_TAME[0x80:] = b"_" * 0x80
_TAME[:0x20] = b"         \t\n  \r                  "
_TAME[ord("&")] = ord("_")

MARK_BYTES = 3
"""Bytes of a UTF-8 byte order mark. Spark removes it, and nothing depends on it."""


def is_readable_as_ascii(encoding: str) -> bool:
    """Return whether the byte of `<` cannot be part of another character."""
    return not encoding.startswith(("utf-16", "utf-32", "iso2022", "hz"))


def cut_records(pieces: Iterable[Piece], head: FileHead, *, max_record: int, is_part: bool = False) -> Iterator[Piece]:
    """Divide or join the chunks of an XML file, so that each holds at most one record.

    In a chunk that fails that test Expat follows the elements: records may end in other ways (`<doc/>`, `</doc >`,
    another prefix of the same namespace), lie inside others of the same name, or hold the separator in a comment, a
    CDATA section or an attribute. Such a chunk is divided, or joined with those that follow it. A record that never
    ends, or breaks the rules of XML, is cut at its first end tag, or before the next start tag if that comes first, and
    what follows is tried again: one missing end tag costs no record whose content is closed.

    Records that hold the separator may come late in a file that has been divided. A part that then ends inside a record
    says so with its last reject, `DIVIDED`, and the engine reads the file again, from its start.

    Args:
        pieces: chunks, parts of chunks that are too long, and rejects, in file order, as from `streams.cut_pieces`.
        head: the head of the file; the chunks of any other kind of format are passed on.
        max_record: the most bytes of chunks that are joined for one record.
        is_part: whether the file may go on after the last chunk: then the last item is a reject `DIVIDED` if something
            that began was still open there.

    Yields:
        The same bytes in the same order. A chunk that ends as XML ends its record, but not with the separator, is
        `is_whole`. A chunk that is too long stays in parts, except for the whole records at its start.

    Cost: linear; a search of each chunk, some 1 ns a byte; of other chunks Expat's, 4 ns a byte and 1 us an element.
    Memory: twice `max_record`.

    Example:
        >>> from nddup.reading.detect import read_head
        >>> head = read_head(b"<r><doc><text>a</text></doc></r>")
        >>> [one.value for one in cut_records([Chunk(b"<r><doc/><doc><text>a</text>", False)], head, max_record=99)]
        [b'<r><doc/>', b'<doc><text>a</text>']
    """
    if head.format.kind == "sgml" and is_readable_as_ascii(head.encoding):
        for one in pieces:
            yield from divide_sgml(one, head) if isinstance(one, Chunk) else (one,)
        return
    if head.format.kind != "xml":
        yield from join_pairs(pieces) if head.is_paired else pieces
        return
    cutter = _Cutter(iter(pieces), head, max_record)
    while (piece := cutter.next()) is not None:
        seen = cutter.readable(piece)
        if seen is None or cutter.is_regular(seen):
            yield piece
        else:
            yield from cutter.divide(seen)
    if is_part and cutter.is_open:
        yield Reject(DIVIDED, "a part of the file ends inside a record", "")


def holds_separators(start: bytes, head: FileHead) -> bool:
    """Return whether a record in the first bytes of a file holds the separator that ends others.

    Where such a file is divided among tasks, one could begin inside a record.
    """
    pieces = [Chunk(value, is_last=False) for value in start.split(head.separator)]
    pieces[-1] = pieces[-1]._replace(is_last=True)
    cut = cut_records(pieces, head, max_record=len(start))
    return any(head.separator in one.value for one in cut if isinstance(one, Chunk) and not one.is_last)


class _Cutter:
    """The pieces of a stream that are being divided or joined, as one buffer.

    `is_open` is true once the pieces ended, and not with the file, before the end of what was being followed.
    """

    def __init__(self, pieces: Iterator[Piece], head: FileHead, max_record: int) -> None:
        self._found = pieces
        self._wrapper = wrapper_of(head.tag, head.namespaces)
        self._encoding = "" if is_readable_as_ascii(head.encoding) else head.encoding
        self._separator = head.separator_text.encode() if self._encoding else head.separator
        self._max_record = max_record
        self._spare = MOST_IN_VAIN * max_record
        self.is_open = False
        self._back: Piece | None = None  # a piece that could not be joined
        self._data = bytearray()
        self._passed = 0  # bytes released since the buffer was empty
        self._bounds: deque[int] = deque()  # where separators end, counted from there
        self._is_last = self._is_inside = (
            False  # whether the buffer ends with the file; inside a chunk that is too long
        )
        self._is_passing = False  # whether the rest of a chunk that is too long is passed on
        self._last_end: int | None = None  # where the last end tag of a record stands, counted so; None: not searched

    def next(self) -> Piece | None:
        """Return the next piece; None at the end."""
        piece, self._back = self._back or next(self._found, None), None
        return piece

    def readable(self, piece: Piece) -> Chunk | Part | None:
        """Return a piece in an encoding readable as ASCII; None for one that is passed on as it is."""
        if isinstance(piece, Reject):
            return None
        if isinstance(piece, Part) and (self._is_passing or self._encoding):
            self._is_passing = not piece.ends
            return None
        try:
            return piece._replace(value=piece.value.decode(self._encoding).encode()) if self._encoding else piece
        except UnicodeError:
            return None

    def is_regular(self, piece: Chunk | Part) -> bool:
        """Return whether the separator after a chunk surely ends the only record in it, or there is none."""
        if isinstance(piece, Part):
            return False
        start, hidden = self._wrapper.seek_start(piece.value)
        if start is None:
            return hidden is None
        if piece.is_last:
            return False
        if self._separator == b"/>":
            tag = self._wrapper.open_tag.match(piece.value + b">", start)  # inside quotes, it would go on to the end
            return tag is not None and tag.end() == len(piece.value)
        return not self._wrapper.has_more(piece.value, start)

    def divide(self, piece: Chunk | Part) -> Iterator[Piece]:
        """Yield the records of a piece, one at a time; take more pieces where that may complete one."""
        self._hold(piece)
        at = 0
        while self._data:
            end = self._limit(0)
            start, hidden = self._wrapper.seek_start(self._data, at, end)
            if hidden is not None and self._reaches_end_of(hidden):
                at = hidden
            elif hidden is not None:
                yield self._release(self._bound_after(hidden))
                at = 0
            elif start is None:
                self._spare -= len(self._data) if self._is_inside else 0
                if not (self._is_inside and self._take(0)):
                    yield self._release(end)
                    at = 0
            else:
                yield self._next_record(start)
                at = 0

    def _next_record(self, start: int) -> Piece:
        """Release the record that starts at a place, with all before it."""
        if self._spare <= 0 and (piece := self._before_next(start)):
            return piece
        element = _Element(start, self._wrapper)
        while not (self._has_no_end(start) or element.follow(self._data, self._limit(start))):
            if not self._take(start):
                break
        if element.end:
            return self._release(element.end, is_whole=True)

        self._spare -= element.place - start
        bound = self._bound_after(start)
        after = self._wrapper.seek_start(self._data, start + 1, bound)[0]
        end_tag = (
            self._wrapper.any_end.search(self._data, start, after or bound) if element.is_broken or after else None
        )
        if after is not None and end_tag is None:  # its end tag is missing: it ends where the next record starts
            return self._release(after, is_open=True)
        return self._release(end_tag.end() if end_tag else bound, is_whole=end_tag is not None)

    def _before_next(self, start: int) -> Piece | None:
        """Release a record that surely ends before the next one starts in its chunk, without following it.

        None if no other starts there. Once following was in vain too often, each record that lacks its end tag would
        else take the next one with it.
        """
        after = self._wrapper.seek_start(self._data, start + 1, self._bound_after(start))[0]
        if after is None:
            return None
        tag = self._wrapper.open_tag.match(self._data, start)
        if tag and tag[0].endswith(b"/"):
            return self._release(self._data.index(b">", tag.end()) + 1, is_whole=True)
        end_tag = self._wrapper.any_end.search(self._data, start, after)
        return self._release(end_tag.end() if end_tag else after, is_whole=bool(end_tag), is_open=not end_tag)

    def _has_no_end(self, start: int) -> bool:
        """Return whether the file surely ends before an element does: no end tag follows, and its own is not empty.

        Without this, each record of a file that has no end tags would be followed to the end of the file.
        """
        if not self._is_last:
            return False
        if self._last_end is None:
            ends = [tag.start() for tag in self._wrapper.any_end.finditer(self._data)]
            self._last_end = self._passed + ends[-1] if ends else -1
        tag = self._wrapper.open_tag.match(self._data, start)
        return self._last_end < self._passed + start and tag is not None and not tag[0].endswith(b"/")

    def _reaches_end_of(self, hidden: int) -> bool:
        """Take pieces until a comment, CDATA section or instruction ends; return whether it does."""
        marks = hidden_at(self._data, hidden)
        if marks is None:  # a DOCTYPE
            return False
        begin, end = marks
        first = place = hidden + len(begin)
        while self._data.find(end, place, self._limit(hidden)) < 0:
            place = max(first, len(self._data) - len(end))
            if not self._take(hidden):
                self._spare -= len(self._data) - hidden
                return False
        return True

    def _limit(self, start: int) -> int:
        """Return up to where the buffer is searched for what begins at a place."""
        return len(self._data) if self._spare > 0 else self._bound_after(start)

    def _bound_after(self, start: int) -> int:
        """Return where the first separator after a place ends; else the length of the buffer."""
        return next((at - self._passed for at in self._bounds if at - self._passed > start), len(self._data))

    def _hold(self, piece: Chunk | Part) -> None:
        self._data += piece.value
        self._last_end = None
        self._is_last = piece.is_last
        self._is_inside = isinstance(piece, Part) and not piece.ends
        if not (piece.is_last or self._is_inside):
            self._data += self._separator
            self._bounds.append(self._passed + len(self._data))

    def _take(self, start: int) -> bool:
        """Add the next piece to the buffer, for what begins at `start`; return False if there is none, or no room."""
        if self._is_last or self._spare <= 0 or len(self._data) - start > self._max_record:
            return False
        piece = self.next()
        seen = None if piece is None else self.readable(piece)
        if seen is None:
            self.is_open |= piece is None
            self._back = piece
            return False
        self._hold(seen)
        return True

    def _release(self, end: int, *, is_whole: bool = False, is_open: bool = False) -> Piece:
        """Remove the first bytes of the buffer and return them as a piece; `is_open`: another record starts there."""
        value = bytes(self._data[:end])
        del self._data[:end]
        self._passed += end
        is_bound = False
        while self._bounds and self._bounds[0] <= self._passed:
            is_bound = self._bounds.popleft() == self._passed
        if is_bound:
            value = value[: -len(self._separator)]
        is_end = not is_bound and not is_whole and not self._data
        is_last = (is_end and self._is_last) or is_open
        is_inside = is_end and self._is_inside
        if not self._data:
            self._passed, self._is_passing = 0, is_inside

        value = value.decode().encode(self._encoding) if self._encoding else value
        is_whole = (is_whole and not is_bound) or is_open
        if is_inside or len(value) > self._max_record:
            return Part(value, ends=not is_inside, is_last=is_last, is_whole=is_whole)
        return Chunk(value, is_last=is_last, is_whole=is_whole)


class _Element:
    """An element that Expat follows from its start tag to its end.

    Attributes:
        end: where it ends in the data; 0 as long as it does not.
        is_broken: whether it breaks the rules of XML.
        place: up to where the data was followed.
    """

    def __init__(self, start: int, wrapper: Wrapper) -> None:
        self.end, self.is_broken, self.place = 0, False, start
        self._start, self._wrapper, self._depth, self._size = start, wrapper, 0, FIRST_BYTES
        self._end_tag = start
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._open
        self._parser.EndElementHandler = self._close
        if hasattr(self._parser, "SetReparseDeferralEnabled"):  # else a tag is reported only when more bytes come
            self._parser.SetReparseDeferralEnabled(False)  # noqa: FBT003 - the library's signature

    def follow(self, data: bytearray, limit: int) -> bool:
        """Follow the element in data that may have grown; return False if more is needed, True if it ends or breaks."""
        while self.place < limit:
            end = min(self.place + self._size, limit)
            self._size = min(2 * self._size, MOST_BYTES)
            try:
                self._parser.Parse(data[self.place : end].translate(_TAME), False)  # noqa: FBT003
            except _Ended:
                self.end = self._end_in(data)
                return True
            except expat.ExpatError:
                self.is_broken = True
                return True
            self.place = end
        return False

    def _open(self, name: str, attributes: dict[str, str]) -> None:
        del name, attributes
        self._depth += 1

    def _close(self, name: str) -> None:
        del name
        self._depth -= 1
        if not self._depth:
            self._end_tag = self._start + self._parser.CurrentByteIndex
            raise _Ended

    def _end_in(self, data: bytearray) -> int:
        """Return where the element ends: with its only tag if it is empty, else with the end tag just met."""
        tag = self._wrapper.open_tag.match(data, self._start)
        is_empty = tag is not None and tag[0].endswith(b"/")
        return data.index(b">", tag.end() if tag and is_empty else self._end_tag) + 1


class _Ended(Exception):  # noqa: N818 - no error
    """Stops Expat at the end of the element."""


class Pieces(io.RawIOBase):
    r"""The bytes of a file, from the pieces between line ends.

    Args:
        pieces: in file order, with a line end between any two. A piece may contain line ends itself.
        size: bytes of the file; decides whether the file ends with a line end, and whether pieces are missing.

    Raises:
        StoppedError: on reading, `damaged` if bytes are missing, after all others have been returned.

    Cost: each byte is copied twice; memory: one piece.

    Example:
        >>> Pieces([b"a\nb", b"c"], 6).read(), Pieces([b"a\nb", b"c"], 5).read()
        (b'a\nb\nc\n', b'a\nb\nc')
    """

    def __init__(self, pieces: Iterable[bytes], size: int) -> None:
        super().__init__()
        self._parts = _joined(pieces, size)
        self._held = memoryview(b"")

    def readable(self) -> bool:
        """Return True, as every readable stream does."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Implement `io.RawIOBase`."""
        if not self._held:
            self._held = memoryview(next((part for part in self._parts if part), b""))
        taken = min(len(buffer), len(self._held))
        buffer[:taken] = self._held[:taken]
        self._held = self._held[taken:]
        return taken


def _joined(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield the pieces with their line ends. Raises StoppedError at the end if bytes are missing."""
    came, between = 0, b""
    for piece in pieces:
        part = between + piece
        came += len(part)
        between = b"\n"
        yield part
    missing = size - came
    if missing in (1, 1 + MARK_BYTES):
        yield b"\n"
    elif missing not in (0, MARK_BYTES):
        raise StoppedError("damaged", f"{came:,} of {size:,} bytes came")
