"""JSON objects in an array, over several lines, or several a line -> lines of JSON, one object each.

    find_lists    bytes from the start of a file -> the arrays of records in the one object that the file may hold
    as_lines      bytes from the start of a file -> lines
    LinedStream   a stream of such a file        -> a stream of lines

Line ends inside an object are blanks; commas and blanks between objects are line ends, and so is what stands around an
array in an object; where nothing stands between two objects a line end is put. The JSON values stay the same. After a
missing bracket or quote all that follows is one object without an end: the stream says that it is damaged there.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled
from nddup.reading.chats import is_chat
from nddup.reading.json_lines import BACKSLASH, CLOSE, CLOSE_LIST, COMMA, OPEN, OPEN_LIST, QUOTE, RETURN, SPACE, TAB
from nddup.reading.streams import PIECE, StoppedError, Stream
from nddup.reading.xml_structure import text_fields

FEED: Final = ord("\n")

LIST_NAMES: Final = frozenset((
    "articles", "children", "corpus", "data", "dataset", "dev", "docs", "documents", "entries", "entry", "examples",
    "features", "feed", "hits", "instances", "items", "pages", "posts", "query", "records", "response", "result",
    "results", "reviews", "rows", "samples", "statuses", "stories", "test", "train", "tweets", "val", "validation",
    "value",
))  # fmt: skip
"""Keys under which services give their records: an array, or an object that holds it under another of these keys."""

NEXT_LIST: Final = b"\0"
"""A line without a record, where the records of the next array of an object begin."""

MOST_LISTS: Final = 8
"""Maximum number of arrays in one object whose records are read, or that are looked at: each costs a pass."""

MOST_KEYS: Final = 3
"""Maximum number of objects around such an array."""

LONGEST_START: Final = 1 << 20
"""Maximum number of bytes around such an array, before it and after it."""

RECORD_SEPARATOR: Final = 0x1E
"""Stands before each object in a sequence of RFC 7464."""

_KEY = re.compile(r'[\s,]*+"([^"\\]*+)"\s*+:\s*+')
_LIST = re.compile(r"\[\s*+(?:\{|\]|\Z)")
_VALUES = json.JSONDecoder(strict=False)

DEPTH, IN_LIST, IN_STRING, IS_ESCAPED, IS_BEHIND, IS_WRAPPED, PLACES = range(7)
"""What is known where bytes end: brackets open in an object; whether the place is in an array of objects (`INSIDE`), in
a string, after a backslash, behind an object on its line; whether what follows the array is no record. After that: how
many objects begin there, and where."""

INSIDE, AFTER = 1, 2
"""Whether an array was begun, and ended."""


def find_lists(start: bytes, *, of_any_name: bool = False) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the arrays of objects that stand under `LIST_NAMES` in the object at the start of a file.

    Args:
        start: the first bytes, in an encoding that spells ASCII as ASCII does.
        of_any_name: whether also those under other names are meant.

    Returns:
        The keys that lead to each, and the place of its bracket; none if another value follows the object.

    Cost: linear; what precedes an array is parsed at most MOST_KEYS times.

    Example:
        >>> list(find_lists(b'{"status": 0, "response": {"docs": [{"id": 1}]}}'))
        [(('response', 'docs'), 35)]
    """
    text = start.decode("latin-1")
    first = max(text.find("{"), 0)
    with suppress(ValueError, RecursionError):  # the object may end later
        if text[_VALUES.raw_decode(text, first)[1] :].strip():
            return
    yield from _lists_in(text, first + 1, (), of_any_name=of_any_name)


def _lists_in(
    text: str, at: int, above: tuple[str, ...], *, of_any_name: bool
) -> Iterator[tuple[tuple[str, ...], int]]:
    while match := _KEY.match(text, at):
        at, keys = match.end(), (*above, match[1])
        if of_any_name or match[1].lower() in LIST_NAMES:
            if _LIST.match(text, at):
                yield keys, at
            elif text.startswith("{", at) and len(keys) < MOST_KEYS:
                yield from _lists_in(text, at + 1, keys, of_any_name=of_any_name)
        try:
            _, at = _VALUES.raw_decode(text, at)
        except (ValueError, RecursionError):
            return


class LinedStream:
    """A stream of lines of JSON, made of the bytes of another one, in an encoding that spells ASCII as ASCII does.

    Where an array stands in an object, others in it whose objects have a text, or mostly the same keys, are read too.

    Cost: some 2 ns a byte. Memory: that of a piece, and twice LONGEST_START.
    """

    def __init__(self, stream: Stream, keys: tuple[str, ...] = ()) -> None:
        """
        Take the bytes of a file.

        Args:
            keys: those that lead to the first array of records; none where it stands alone, or there is none.
        """
        self.around: list[bytes] = []
        """What stands in their object before each array of records that was met."""

        self._stream, self._keys, self._after, self._names = stream, keys, bytearray(), frozenset[str]()
        self._state = np.zeros(PLACES, np.int64)
        self._state[IS_WRAPPED] = bool(keys)

    def read(self, size: int = PIECE) -> bytes:
        """Return at most `size` bytes; none at the end.

        Raises:
            StoppedError: as the stream does; `damaged`, if the array is missing, or, at its end, if that is inside an
                object or an array, or if other values follow; `too large`, if too much follows the array; `malformed`,
                if another array in the object holds texts.
        """
        data = self._stream.read(size)
        if self._keys and not self.around:
            return self._begin(data)
        if not data and (self._state[DEPTH] or self._state[IN_STRING] or self._state[IN_LIST] == INSIDE):
            raise StoppedError("damaged", "the file ends inside an object or an array: a bracket or quote is missing")
        if not data and self._keys:
            self._require_end()
        return self._line(data)

    @property
    def is_list(self) -> bool:
        """Whether the objects read so far are in an array."""
        return bool(self._state[IN_LIST])

    @property
    def end(self) -> bytes:
        """What stands behind the last array in its object, at the end; all brackets where that is too much."""
        return bytes(self._after) if len(self._after) <= LONGEST_START else b"}" * len(self._keys) + b"\n"

    def _begin(self, start: bytes) -> bytes:
        """Return the first lines; also the first object is read whole, so that others can be compared with it."""
        while True:
            at = next((at for keys, at in find_lists(start) if keys == self._keys), None)
            self._names = frozenset(_first_object(start.decode("latin-1"), at)) if at is not None else self._names
            piece = self._stream.read(PIECE) if not self._names and len(start) < LONGEST_START else b""
            start += piece
            if not piece:
                break
        if at is None:
            raise StoppedError("damaged", f"no array of objects at {'.'.join(self._keys)}")
        self.around = [start[:at]]
        return b"\n" * at + self._line(start[at:])

    def _require_end(self) -> None:
        if len(self._after) > LONGEST_START:
            raise StoppedError("too large", f"more than {LONGEST_START:,} bytes follow the array of records")
        around = self._before + self._after
        try:
            _VALUES.decode(around.decode("latin-1").removeprefix("\xef\xbb\xbf"))
        except (ValueError, RecursionError) as error:
            raise StoppedError("damaged", f"after the array of records: {error}") from error
        for keys, _ in self._other_lists(around):
            names = ".".join(keys), ".".join(self._keys)
            raise StoppedError("malformed", f"the records at {names[0]} are not read, only those at {names[1]}")

    def _line(self, data: bytes) -> bytes:
        lines, end = _lined(data, self._state)
        pieces, rest = [lines], data[end:]
        while rest and len(self._after) <= LONGEST_START:
            self._after += rest
            at = self._next_list()
            if at is None:
                del self._after[LONGEST_START + 1 :]
                break
            self.around.append(bytes(self._after[:at]))
            data = bytes(self._after[at:])
            self._after.clear()
            self._state[:] = 0
            self._state[IS_WRAPPED] = 1
            lines, end = _lined(data, self._state)
            pieces += [b"\n", NEXT_LIST, b"\n", lines]
            rest = data[end:]
        return b"".join(pieces)

    @property
    def _before(self) -> bytes:
        """What was read of the object, with an empty array for each that was met."""
        return b"[]".join([*self.around, b""])

    def _next_list(self) -> int | None:
        """Return where in what follows the last array another one with records begins; None for nowhere."""
        if len(self.around) == MOST_LISTS:
            return None
        before = self._before
        places = (at - len(before) for _, at in self._other_lists(before + self._after))
        return next((at for at in places if at <= LONGEST_START), None)

    def _other_lists(self, around: bytes) -> Iterator[tuple[tuple[str, ...], int]]:
        """Yield the arrays in an object, behind those that were met, that seem to hold records too."""
        text, behind = around.decode("latin-1"), len(self._before)
        for keys, at in find_lists(around, of_any_name=True):
            row = _first_object(text, at) if at >= behind else {}
            has_text = keys[-1].lower() in LIST_NAMES and text_fields(
                list(row), [*filter(lambda key: is_chat(row[key]), row)]
            )
            if row and (has_text or 2 * len(self._names & row.keys()) >= len(self._names | row.keys())):
                yield keys, at


def _first_object(text: str, at: int) -> dict[str, object]:
    """Return the first object in the array that begins at a place; empty if it does not end in the text."""
    match = _LIST.match(text, at)
    with suppress(ValueError, RecursionError):
        row, _ = _VALUES.raw_decode(text, match.end() - 1) if match else ({}, 0)
        return row if isinstance(row, dict) else {}
    return {}


def as_lines(start: bytes, keys: tuple[str, ...] = ()) -> bytes:
    r"""Return the start of a file as lines; `keys` as of `LinedStream`.

    Example:
        >>> as_lines(b'[{"a": 1,\n"b": [2, 3]}, {"a": 4}]')
        b' {"a": 1, "b": [2, 3]}\n {"a": 4}\n'
    """
    at = next((at for path, at in find_lists(start) if path == keys), 0) if keys else 0
    state = np.zeros(PLACES, np.int64)
    state[IS_WRAPPED] = at > 0
    return b"\n" * at + _lined(start[at:], state)[0]


def _lined(data: bytes, state: NDArray[np.int64]) -> tuple[bytes, int]:
    """Return bytes as lines, and the place in them behind the array in an object.

    Args:
        state: PLACES numbers, those before them, and then after them.
    """
    lines = np.frombuffer(data, np.uint8).copy()
    room = np.zeros(PLACES + 2 + lines.size // len("{}"), np.int64)
    room[:PLACES] = state
    end = _line_up(lines, room)
    state[:] = room[:PLACES]
    places = room[PLACES + 1 :][: room[PLACES]]
    return (np.insert(lines, places, FEED) if places.size else lines).tobytes(), end


@compiled
def _line_up(data: Written[np.uint8], state: Written[np.int64]) -> int:  # noqa: C901 - one choice a byte
    """Replace the bytes that are to be line ends and blanks; `state` is that before them, and then after them.

    Returns:
        Where what follows the array in its object begins.
    """
    depth, in_list, in_string, is_escaped = state[DEPTH], state[IN_LIST], state[IN_STRING], state[IS_ESCAPED]
    is_behind, count, end = state[IS_BEHIND], 0, data.size
    for at in range(data.size):
        mark = data[at]
        if in_list == AFTER and state[IS_WRAPPED]:
            end = min(end, at)
            data[at] = FEED
        elif in_string:
            if mark in (FEED, RETURN):
                data[at] = SPACE  # JSON forbids it there, but some writers leave it
            in_string = 1 if is_escaped or mark != QUOTE else 0
            is_escaped = 1 if mark == BACKSLASH and not is_escaped else 0
        elif mark == QUOTE:
            in_string = 1
        elif mark == OPEN or (mark == OPEN_LIST and (depth > 0 or in_list == INSIDE)):
            if depth == 0 and is_behind:
                state[PLACES + 1 + count] = at
                count += 1
            is_behind = 0
            depth += 1
        elif mark == OPEN_LIST:
            in_list = INSIDE
            data[at] = SPACE
        elif mark in (CLOSE, CLOSE_LIST) and depth > 0:
            depth -= 1
            is_behind = 1 if depth == 0 else 0
        elif mark == CLOSE_LIST and in_list == INSIDE:
            in_list = AFTER
            data[at] = FEED
            is_behind = 0
        elif mark in (FEED, RETURN):
            data[at] = SPACE if depth > 0 or in_list == INSIDE else FEED
            is_behind = is_behind if data[at] == SPACE else 0
        elif depth == 0 and (mark == COMMA or (in_list != INSIDE and mark in (SPACE, TAB, RECORD_SEPARATOR))):
            data[at] = FEED
            is_behind = 0
    state[DEPTH], state[IN_LIST], state[IN_STRING], state[IS_ESCAPED] = depth, in_list, in_string, is_escaped
    state[IS_BEHIND], state[PLACES] = is_behind, count
    return end
