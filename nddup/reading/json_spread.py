"""JSON objects in an array, over several lines, or several a line -> lines of JSON, one object each.

    as_lines      bytes from the start of a file -> lines
    LinedStream   a stream of such a file        -> a stream of lines

Line ends inside an object are blanks, commas and blanks between objects line ends, and the brackets around them blanks;
where nothing stands between two objects a line end is put. The JSON values stay the same. After a missing bracket or
quote all that follows is one object without an end: the stream says that it is damaged there.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled
from nddup.reading.json_lines import BACKSLASH, CLOSE, CLOSE_LIST, COMMA, OPEN, OPEN_LIST, QUOTE, RETURN, SPACE, TAB
from nddup.reading.streams import PIECE, StoppedError, Stream

FEED: Final = ord("\n")

DEPTH, IN_LIST, IN_STRING, IS_ESCAPED, IS_BEHIND, PLACES = range(6)
"""What is known where bytes end: brackets open in an object; whether the place is in an array of objects (`INSIDE`), in
a string, after a backslash, behind an object on its line. After that: how many objects begin there, and where."""

INSIDE, AFTER = 1, 2
"""Whether an array was begun, and ended."""


class LinedStream:
    """A stream of lines of JSON, made of the bytes of another one, in an encoding that spells ASCII as ASCII does.

    Cost: some 2 ns a byte. Memory: that of a piece.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._state = np.zeros(PLACES, np.int64)

    def read(self, size: int = PIECE) -> bytes:
        """Return at most `size` bytes, and the line ends that are put between objects; none at the end.

        Raises:
            StoppedError: as the stream does; `damaged`, at its end, if that is inside an object or an array.
        """
        data = self._stream.read(size)
        if not data and (self._state[DEPTH] or self._state[IN_STRING] or self._state[IN_LIST] == INSIDE):
            raise StoppedError("damaged", "the file ends inside an object or an array: a bracket or quote is missing")
        return _lined(data, self._state)

    @property
    def is_list(self) -> bool:
        """Whether the objects read so far are in an array."""
        return bool(self._state[IN_LIST])


def as_lines(start: bytes) -> bytes:
    r"""Return the start of a file as lines.

    Example:
        >>> as_lines(b'[{"a": 1,\n"b": [2, 3]}, {"a": 4}]')
        b' {"a": 1, "b": [2, 3]}\n {"a": 4} '
    """
    return _lined(start, np.zeros(PLACES, np.int64))


def _lined(data: bytes, state: NDArray[np.int64]) -> bytes:
    """Return bytes as lines; `state`, of PLACES numbers, is that before them, and then after them."""
    lines = np.frombuffer(data, np.uint8).copy()
    room = np.zeros(PLACES + 2 + lines.size // len("{}"), np.int64)
    room[:PLACES] = state
    _line_up(lines, room)
    state[:] = room[:PLACES]
    places = room[PLACES + 1 :][: room[PLACES]]
    return (np.insert(lines, places, FEED) if places.size else lines).tobytes()


@compiled
def _line_up(data: Written[np.uint8], state: Written[np.int64]) -> None:  # noqa: C901 - one choice a byte
    """Replace the bytes that are to be line ends and blanks; `state` is that before them, and then after them."""
    depth, in_list, in_string, is_escaped = state[DEPTH], state[IN_LIST], state[IN_STRING], state[IS_ESCAPED]
    is_behind, count = state[IS_BEHIND], 0
    for at in range(data.size):
        mark = data[at]
        if in_string:
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
            data[at] = SPACE
        elif mark in (FEED, RETURN):
            data[at] = SPACE if depth > 0 or in_list == INSIDE else FEED
            is_behind = is_behind if data[at] == SPACE else 0
        elif depth == 0 and (mark == COMMA or (in_list != INSIDE and mark in (SPACE, TAB))):
            data[at] = FEED
            is_behind = 0
    state[DEPTH], state[IN_LIST], state[IN_STRING], state[IS_ESCAPED] = depth, in_list, in_string, is_escaped
    state[IS_BEHIND], state[PLACES] = is_behind, count
