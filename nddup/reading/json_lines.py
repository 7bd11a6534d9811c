# ruff: noqa: PLR2004 (the numbers are those of UTF-8 and UTF-16)
"""Lines of JSON -> their texts, in one compiled pass, without an object for each record.

    plain_keys   head   -> the Keys of the records that can be read here; None if they cannot
    find_ends    bytes  -> the places of the line ends; `find_blank` gives the lines without a record
    read_lines   lines  -> PlainRecords: the titles, texts, ids, URLs and columns of those that are plain

Any line that is not plain (`read_lines`) is odd, and read by `records.parse_json`: what is a record, and what is a
reject, is decided there alone. Source: RFC 8259.
"""

from codecs import BOM_UTF8
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled
from nddup.reading.charsets import canonical_charset
from nddup.reading.formats import FileHead, split_field
from nddup.reading.outcomes import MAX_ID_LENGTH

DEEPEST: Final = 60
"""Brackets that may be open in one another; a line with more is odd."""

LONGEST: Final = 1 << 28
"""Longest line that this kernel reads, in bytes: the texts of a block are counted in 32 bits."""

STEP: Final = 32
"""Bytes of a string that are looked at together."""

LOOK: Final = 64
"""Bytes in which line ends are looked for together."""

PRINTABLE = "^[!-~]([ -~]*[!-~])?$"
"""An id or URL that is taken as it is."""

BLANKS = b" \t\r\n\0"
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, COLON, COMMA, QUOTE, BACKSLASH = (ord(mark) for mark in '{}[]:,"\\')
SPACE, TAB, RETURN, MINUS, PLUS, POINT, DIGIT_0, DIGIT_9, LETTER_E, LETTER_U = (ord(mark) for mark in " \t\r-+.09eu")
NULL, TRUE, FALSE = (np.frombuffer(word, np.uint8) for word in (b"null", b"true", b"false"))
NONE, ONE, QUOTE_BYTE, BACKSLASH_BYTE = np.uint64(0), np.uint64(1), np.uint8(QUOTE), np.uint8(BACKSLASH)

BAD, CODED = 0, 1
FEED_BYTE: Final = np.uint8(ord("\n"))
ESCAPES: Final = np.full(256, BAD, np.uint8)
"""What a character means after a backslash; CODED: digits follow that write it."""
ESCAPES[LETTER_U] = CODED
ESCAPES[[ord(mark) for mark in '"\\/bfnrt']] = [ord(mark) for mark in '"\\/\b\f\n\r\t']

HEX: Final = np.full(256, -1, np.int64)
"""The number that a hexadecimal digit writes; -1 for any other character."""
HEX[[ord(mark) for mark in "0123456789abcdefABCDEF"]] = [*range(16), *range(10, 16)]

VALUE, FIRST, AFTER = 0, 1, 2
"""What is expected: a value, the first one of a list or an object, or what comes after a value."""

TEXT, ID, COLUMN, OTHER = 0, 1, 3, 63
"""Keys by their number; that of the URL is 2, those of columns follow, and then all alternatives of the title."""


class Keys(NamedTuple):
    """The keys of text, id and URL, those of the title, of which a record has one, and of columns. Empty for none."""

    text: str
    id: str = ""
    url: str = ""
    titles: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


class PlainRecords(NamedTuple):
    """What was read of n lines, or of n rows of a table.

    Attributes:
        is_plain: (n,).
        texts: of n strings; of a plain record, its text, without the title.
        ids: of n strings; of a plain record, its id, null for none.
        urls: likewise.
        titles: likewise.
        columns: likewise, for each column of the policy.
    """

    is_plain: NDArray[np.bool_]
    texts: pa.StringArray
    ids: pa.StringArray
    urls: pa.StringArray
    titles: pa.StringArray
    columns: tuple[pa.StringArray, ...] = ()

    def fields(self, row: int) -> tuple[str, ...]:
        """Return the content of a plain record, as `make_record` does: its title and its text, without an empty one."""
        title, text = self.titles[row].as_py(), self.texts[row].as_py()
        return (title, text) if title and text else (title or text,)

    def join(self, between: str, end: str = "") -> pa.StringArray:
        """Return the content of each record as one string: two fields with these marks, one field as it is."""
        if self.titles.null_count == len(self.titles):
            return self.texts
        marks = np.frombuffer(between.encode(), np.uint8), np.frombuffer(end.encode(), np.uint8)
        titles, texts = utf8_of(self.titles), utf8_of(self.texts)
        sizes = [int(bounds[-1] - bounds[0]) for _, bounds in (titles, texts)]
        room = pa.allocate_buffer(sum(sizes) + (len(between) + len(end)) * len(self.texts))
        bounds = _join(titles, texts, marks, np.frombuffer(room, np.uint8))
        return pa.StringArray.from_buffers(len(self.texts), pa.py_buffer(bounds), room)


def plain_keys(head: FileHead) -> Keys | None:
    """Return the keys of what is read of a record; None if the records of a file cannot be read here.

    Example:
        >>> from nddup.reading.detect import read_head
        >>> plain_keys(read_head(b'{"id": 1, "title": "a", "text": "a"}'))
        Keys(text='text', id='id', url='', titles=('title',), columns=())
    """
    declared = head.format
    is_plain = declared.kind == "jsonl" and canonical_charset(head.encoding) == "utf-8" and head.separator == b"\n"
    if not is_plain or len(declared.content) not in (1, 2) or declared.prefixes_ids:
        return None
    *title, text = declared.content
    kinds = [split_field(path) for path in title]
    titles = tuple(name for _, names in kinds for name in names)
    keys = Keys(text, declared.id or "", declared.url or "", titles, declared.policy)
    given = [key for key in (keys.text, keys.id, keys.url, *titles, *keys.columns) if key]
    is_odd = (
        COLUMN + len(keys.columns) >= OTHER
        or any("." in key or split_field(key) != ("auto", (key,)) for key in given)
        or len(set(given)) < len(given)
    )
    return None if is_odd or any(kind != "auto" for kind, _ in kinds) else keys


def read_lines(data: NDArray[np.uint8], ends: NDArray[np.int64], keys: Keys, max_record: int) -> PlainRecords:
    """Read lines.

    A line is plain if `records.parse_json` would read it, and take its values as they are: an object in UTF-8 whose
    text is one string, as is its title, if any, whose id is a string of printable ASCII or a whole number, whose
    columns are no list, object or empty string, and whose keys name each of them once. A broken line, a lone surrogate,
    an id with an accent, or a list of texts is odd.

    Args:
        data: whole lines, each with its line end, (b,).
        ends: (n,), the place of each line end.
        keys: of `plain_keys`.
        max_record: bytes of a line; a longer one is odd.

    Cost: some 0.2 ns a byte of English text. Memory: three times the lines, of which what is written is touched.
    """
    starts = starts_of(ends)
    is_plain = ends - starts <= min(max_record, LONGEST)
    if not is_utf8(data):
        for row in np.flatnonzero(is_plain).tolist():
            is_plain[row] = is_utf8(data[starts[row] : ends[row]])
    named = [key.encode() for key in (keys.text, keys.id, keys.url, *keys.columns, *keys.titles)]
    lengths = np.array([len(name) or -1 for name in named])
    names = np.frombuffer(b"".join(named), np.uint8)
    count = COLUMN + len(keys.columns) + 1
    room = pa.allocate_buffer(count * data.size)  # from Arrow's pool, which gives pages again that it has had
    out, offsets = np.frombuffer(room, np.uint8).reshape(count, -1), np.zeros((count, ends.size + 1), np.int32)
    _read_lines(data, (starts, ends), (names, lengths), is_plain, (out, offsets))
    texts, ids, urls, *columns, titles = (
        pa.StringArray.from_buffers(ends.size, pa.py_buffer(bounds), pa.py_buffer(values[: bounds[-1]]))
        for values, bounds in zip(out, offsets, strict=True)
    )
    is_plain &= are_printable(ids) & are_printable(urls)
    return PlainRecords(
        is_plain, texts, non_empty(ids), non_empty(urls), non_empty(titles), tuple(map(non_empty, columns))
    )


@compiled
def find_ends(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the places of the line ends, (n,). Cost: some 0.03 ns a byte of long lines."""
    ends = np.empty(data.size, np.int64)
    count = 0
    for start in range(0, data.size, LOOK):
        if start + LOOK <= data.size:
            nearest = np.uint8(255)  # without a branch, as in `_read_string`
            for k in range(LOOK):
                nearest = min(nearest, np.uint8(data[np.uint64(start) + np.uint64(k)] ^ FEED_BYTE))
            if nearest:
                continue
        for at in range(start, min(start + LOOK, data.size)):
            ends[count] = at
            count += 1 if data[at] == FEED_BYTE else 0
    return ends[:count].copy()


def find_blank(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which lines hold nothing, (n,); arguments as of `read_lines`."""
    starts = starts_of(ends)
    is_blank: NDArray[np.bool_] = data[starts] != OPEN
    for row in np.flatnonzero(is_blank).tolist():
        is_blank[row] = not data[starts[row] : ends[row]].tobytes().removeprefix(BOM_UTF8).strip(BLANKS)
    return is_blank


def starts_of(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each of some lines that follow one another begins, (n,), by the places of their line ends."""
    return np.concatenate([[0], ends[:-1] + 1]) if ends.size else ends


def utf8_of(strings: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of strings or binary values one after another, and where each begins and ends, (n + 1,)."""
    _, offsets, data = strings.buffers()
    bounds = np.frombuffer(offsets or bytes(4), np.int32)[strings.offset : strings.offset + len(strings) + 1]
    return np.frombuffer(data or b"", np.uint8), bounds.astype(np.int64)


def is_utf8(data: NDArray[np.uint8]) -> bool:
    """Return whether bytes are UTF-8, surrogates excluded.

    Example:
        >>> is_utf8(np.frombuffer("é".encode("latin-1"), np.uint8))
        False
    """
    if not data.size:
        return True
    ends = pa.py_buffer(np.array([0, data.size], np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


@compiled
def _join(
    titles: tuple[NDArray[np.uint8], NDArray[np.int64]],
    texts: tuple[NDArray[np.uint8], NDArray[np.int64]],
    marks: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    out: Written[np.uint8],
) -> NDArray[np.int32]:
    """Write titles and texts in turn, with the marks where neither is empty; return where each begins, (n + 1,)."""
    (title, title_at), (text, text_at), (between, end) = titles, texts, marks
    bounds = np.zeros(title_at.size, np.int32)
    to = 0
    for row in range(title_at.size - 1):
        size, length = title_at[row + 1] - title_at[row], text_at[row + 1] - text_at[row]
        out[to : to + size] = title[title_at[row] : title_at[row + 1]]
        to += size
        if size and length:
            out[to : to + between.size] = between
            to += between.size
        out[to : to + length] = text[text_at[row] : text_at[row + 1]]
        to += length
        if size and length:
            out[to : to + end.size] = end
            to += end.size
        bounds[row + 1] = to
    return bounds


@compiled
def _read_lines(
    data: NDArray[np.uint8],
    lines: tuple[NDArray[np.int64], NDArray[np.int64]],
    keys: tuple[NDArray[np.uint8], NDArray[np.int64]],
    is_plain: Written[np.bool_],
    columns: tuple[NDArray[np.uint8], NDArray[np.int32]],
) -> None:
    """Read the lines of which `is_plain` is set, and clear it for those that are odd.

    Args:
        data: lines.
        lines: where each begins and ends.
        keys: the names of text, id, URL, columns and titles one after another, and the length of each; -1 for none.
        is_plain: written.
        columns: written: the values of text, id, URL, c columns and title one after another, (c + 4, b), and where each
            line's begin, (c + 4, n + 1).
    """
    starts, ends = lines
    out, offsets = columns
    tops = np.zeros(len(out), np.int64)
    for row in range(ends.size):
        if is_plain[row]:
            is_plain[row] = _read_object(data, starts[row], ends[row], keys, out, tops)
        for which in range(len(out)):
            if is_plain[row]:
                offsets[which, row + 1] = tops[which]
            else:
                offsets[which, row + 1] = tops[which] = offsets[which, row]


@compiled
def _read_object(  # noqa: C901, PLR0911, PLR0912 - a state machine
    data: NDArray[np.uint8],
    at: int,
    end: int,
    keys: tuple[NDArray[np.uint8], NDArray[np.int64]],
    out: Written[np.uint8],
    tops: Written[np.int64],
) -> bool:
    """Read `data[at:end]`; return whether it is a plain object. Its values are written to `out`, and `tops` moved."""
    title = len(out) - 1
    kinds, depth, state, seen = NONE, 0, VALUE, 0  # of each open bracket a bit, the last one lowest: 1 for an object
    while True:
        at = _after_blanks(data, at, end)
        if at == end:
            return state == AFTER and depth == 0 and seen & 1 == 1
        mark = data[at]
        if state == AFTER and depth == 0:
            return False
        if state != VALUE and mark == (CLOSE if kinds & ONE else CLOSE_LIST):
            depth, kinds, state = depth - 1, kinds >> ONE, AFTER
            at += 1
            continue
        if state == AFTER:
            if mark != COMMA:
                return False
            state = VALUE
            at += 1
            continue

        # A member of an object has a key.
        which = OTHER
        if kinds & ONE:
            after, top = _read_string(data, at, end, out, TEXT, tops[TEXT])
            if after < 0:
                return False
            if depth == 1:
                which = _find_key(out, tops[TEXT], top, keys)
                if seen >> which & 1 == 1:
                    return False
                seen |= 1 << which if which != OTHER else 0
            at = _after_blanks(data, after, end)
            if at == end or data[at] != COLON:
                return False
            at = _after_blanks(data, at + 1, end)
            if at == end:
                return False
            mark = data[at]
        elif depth == 0 and mark != OPEN:
            return False

        state = AFTER
        if mark == QUOTE:
            target = TEXT if which == OTHER else which
            at, top = _read_string(data, at, end, out, target, tops[target])
            if at < 0 or (COLUMN <= which < title and top == tops[which]):
                return False
            if which != OTHER:
                tops[which] = top
        elif mark in (OPEN, OPEN_LIST):
            if which != OTHER or depth == DEEPEST:
                return False
            depth, kinds, state = depth + 1, kinds << ONE | (ONE if mark == OPEN else NONE), FIRST
            at += 1
        else:
            after, is_whole = _after_scalar(data, at, end)
            is_taken = mark != NULL[0] and ((which == ID and is_whole) or COLUMN <= which < title)
            if after < 0 or which == TEXT or (which != OTHER and mark != NULL[0] and not is_taken):
                return False
            if is_taken:
                for k in range(after - at):
                    out[which, tops[which] + k] = data[at + k]
                tops[which] += after - at
            at = after


@compiled
def _after_blanks(data: NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and (data[at] == SPACE or data[at] == TAB or data[at] == RETURN):
        at += 1
    return at


@compiled
def _find_key(out: NDArray[np.uint8], at: int, end: int, keys: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> int:
    """Return which key `out[TEXT, at:end]` is; OTHER if it is none of them."""
    names, lengths = keys
    first = 0
    for which in range(lengths.size):
        if lengths[which] == end - at:
            k = 0
            while k < end - at and names[first + k] == out[TEXT, at + k]:
                k += 1
            if k == end - at:
                return min(which, len(out) - 1)
        first += max(lengths[which], 0)
    return OTHER


@compiled
def _read_string(  # noqa: C901, PLR0912 - one pass over the bytes
    data: NDArray[np.uint8], at: int, end: int, out: Written[np.uint8], target: int, to: int
) -> tuple[int, int]:
    """Read the string that begins at `at`, and write it to row `target` of `out` from `to` on.

    Returns:
        The place after its closing quote, and that after what was written; (-1, -1) if no good string is there, or one
        with half of a surrogate pair.
    """
    if data[at] != QUOTE:
        return -1, -1
    at += 1
    while at < end:
        mark = data[at]
        if mark == QUOTE:
            return at + 1, to
        if mark == BACKSLASH:
            meant = ESCAPES[data[at + 1]] if at + 1 < end else BAD
            if meant == BAD:
                return -1, -1
            if meant != CODED:
                out[target, to] = meant
                at += 2
                to += 1
                continue
            code, at = _read_code(data, at + 2, end)
            if code < 0:
                return -1, -1
            to = _write_utf8(code, out, target, to)
            continue
        if mark < SPACE:
            return -1, -1

        if at + STEP <= end:  # what is written never overtakes what is read
            source, sink = np.uint64(at), np.uint64(to)
            lowest = nearest = np.uint8(255)  # without a branch, so that LLVM makes vector instructions
            for k in range(STEP):
                c = data[source + np.uint64(k)]
                lowest = min(lowest, c)
                nearest = min(nearest, np.uint8(c ^ QUOTE_BYTE), np.uint8(c ^ BACKSLASH_BYTE))
            if lowest >= SPACE and nearest > 0:
                for k in range(STEP):
                    out[target, sink + np.uint64(k)] = data[source + np.uint64(k)]
                at += STEP
                to += STEP
                continue
        while at < end and data[at] >= SPACE and data[at] != QUOTE and data[at] != BACKSLASH:
            out[target, to] = data[at]
            at += 1
            to += 1
    return -1, -1


@compiled
def _read_code(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return the character that the digits from `at` on write, with those of its other half, and the place after them.

    The character is -1 for bad digits and for one half alone.
    """
    code, at = _read_hex(data, at, end), at + 4
    if 0xD800 <= code < 0xDC00 and at + 2 <= end and data[at] == BACKSLASH and data[at + 1] == LETTER_U:
        low = _read_hex(data, at + 2, end)
        return 0x10000 + ((code & 0x3FF) << 10 | low & 0x3FF) if 0xDC00 <= low < 0xE000 else -1, at + 6
    return -1 if 0xD800 <= code < 0xE000 else code, at


@compiled
def _read_hex(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the number that four hexadecimal digits write; -1 if they are not there."""
    if at + 4 > end:
        return -1
    number = 0
    for k in range(4):
        digit = HEX[data[at + k]]
        if digit < 0:
            return -1
        number = number << 4 | digit
    return number


@compiled
def _write_utf8(code: int, out: Written[np.uint8], target: int, to: int) -> int:
    """Write a character to row `target` of `out`; return the place after it."""
    if code < 0x80:
        out[target, to] = code
        return to + 1
    more = 1 if code < 0x800 else 2 if code < 0x10000 else 3  # bytes after the first, of six bits each
    out[target, to] = (0xF0 << 3 - more & 0xFF) | code >> 6 * more
    for k in range(more):
        out[target, to + 1 + k] = 0x80 | code >> 6 * (more - 1 - k) & 0x3F
    return to + 1 + more


@compiled
def _after_scalar(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, bool]:
    """Return the place after a number, `true`, `false` or `null`, -1 if none is there; and if it is a whole number."""
    for word in (NULL, TRUE, FALSE):
        if data[at] == word[0]:
            for k in range(word.size):
                if at + k == end or data[at + k] != word[k]:
                    return -1, False
            return at + word.size, False

    at += 1 if data[at] == MINUS else 0
    first, at = at, _after_digits(data, at, end)
    if at == first or (data[first] == DIGIT_0 and at > first + 1):
        return -1, False
    is_whole = True
    if at < end and data[at] == POINT:
        first, at, is_whole = at + 1, _after_digits(data, at + 1, end), False
        if at == first:
            return -1, False
    if at < end and (data[at] | 0x20) == LETTER_E:
        at += 1
        at += 1 if at < end and (data[at] == MINUS or data[at] == PLUS) else 0
        first, at, is_whole = at, _after_digits(data, at, end), False
        if at == first:
            return -1, False
    return at, is_whole


@compiled
def _after_digits(data: NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and DIGIT_0 <= data[at] <= DIGIT_9:
        at += 1
    return at


def are_printable(values: pa.StringArray) -> NDArray[np.bool_]:
    """Return which ids or URLs are absent, empty, or taken as they are."""
    is_short = pc.less_equal(pc.binary_length(values), MAX_ID_LENGTH)
    is_known = pc.and_(pc.match_substring_regex(values, PRINTABLE), is_short)
    return np.asarray(pc.fill_null(pc.or_(is_known, pc.equal(values, "")), fill_value=True))


def non_empty(values: pa.StringArray) -> pa.StringArray:
    """Return values with null for an empty one."""
    return pc.if_else(pc.equal(values, ""), None, values)
