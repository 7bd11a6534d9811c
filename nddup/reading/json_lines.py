"""Lines of JSON -> their texts, in one pass over the bytes, without an object for each record.

    plain_keys   head, rule -> the keys of the records that can be read here; None if they cannot
    read_lines   lines -> which of them are plain; the texts of these, and where their ids and URLs stand

A line is plain if `records.parse_json` would read it, and take its values as they are: an object in UTF-8 whose text is
one string, whose id is a string of printable ASCII or a whole number, and whose keys name each of them once. Anything
else, such as a broken line, a lone surrogate, an id with an escape, or a list of texts, is odd, and read by
`parse_json`: what is a record, and what is a reject, is decided there alone.
"""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.reading.charsets import canonical_charset
from nddup.reading.formats import FileHead, split_field
from nddup.reading.outcomes import MAX_ID_LENGTH

BLANK, PLAIN, TAGGED, ODD = 0, 1, 2, 3
"""What a line is: nothing; plain, the text without or with a `<`; or to be read otherwise."""

TEXT, ID, URL = 0, 1, 2
DEEPEST: Final = 60
"""Nested values that are followed; a line with more is odd."""

STEP: Final = 64
"""Bytes of a string that are looked at together."""

NONE: Final = -1
UNUSUAL: Final = -2
ZERO, BIT = np.uint8(0), np.uint8(1)
CLOSED, ONE, LONG = np.uint64(0), np.uint64(1), np.uint64(STEP)
QUOTE, BACKSLASH, COLON, COMMA, TAG = (ord(mark) for mark in '"\\:,<')
OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = (ord(mark) for mark in "{}[]")


class PlainLines(NamedTuple):
    """What was read of n lines.

    Attributes:
        kinds: (n,), of BLANK, PLAIN, TAGGED, ODD.
        data: the texts of the plain lines in UTF-8, one after another.
        bounds: (n + 1,): the text of line i is `data[bounds[i]:bounds[i + 1]]`, empty for a line that is not plain.
        places: (n, 4): the first byte of the id of a plain line, and the one after its last; the same of its URL. -1
            for a value that is absent, null or empty.
    """

    kinds: NDArray[np.uint8]
    data: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    places: NDArray[np.int64]


def plain_keys(head: FileHead) -> tuple[bytes, bytes, bytes] | None:
    """Return the keys of text, id and URL, empty for none; None if the records of a file cannot be read here.

    Example:
        >>> from nddup.reading.detect import read_head
        >>> plain_keys(read_head(b'{"id": 1, "text": "a"}'))
        (b'text', b'id', b'')
    """
    declared = head.format
    paths = (*declared.content, declared.id or "", declared.url or "")
    is_plain = declared.kind == "jsonl" and canonical_charset(head.encoding) == "utf-8" and head.separator == b"\n"
    if not is_plain or len(declared.content) != 1 or declared.policy or declared.prefixes_ids:
        return None
    if any("." in path or split_field(path) != ("auto", (path,)) for path in paths if path):
        return None
    keys = tuple(path.encode() for path in paths)
    return (keys[0], keys[1], keys[2]) if len({key for key in keys if key}) == sum(map(bool, keys)) else None


def read_lines(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    keys: tuple[bytes, bytes, bytes],
    max_record: int,
) -> PlainLines:
    """Read lines.

    Args:
        data: bytes, (b,).
        starts: (n,), the first byte of each line, rising.
        ends: (n,), the byte after it.
        keys: of `plain_keys`.
        max_record: a longer line is odd.

    Cost: some 0.5 ns a byte of English text.
    """
    names = np.frombuffer(b"".join(keys), np.uint8)
    name_ends = np.cumsum([0, *map(len, keys)])
    texts = np.empty(data.size + 2 * STEP, np.uint8)
    kinds, bounds = np.empty(starts.size, np.uint8), np.zeros(starts.size + 1, np.int64)
    places = np.full((starts.size, 4), NONE, np.int64)
    _read_lines(data, starts, ends, names, name_ends, max_record, texts, kinds, bounds, places)
    read = PlainLines(kinds, texts[: bounds[-1]], bounds, places)
    return read if _is_utf8(data) else _without_broken(read, data, starts, ends)


def _is_utf8(data: NDArray[np.uint8]) -> bool:
    """Return whether bytes are UTF-8, surrogates excluded."""
    if not data.size:
        return True
    ends = pa.py_buffer(np.array([0, data.size], np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _without_broken(
    read: PlainLines, data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> PlainLines:
    """Make the lines odd that are not UTF-8. Their texts are left where they are."""
    lines = zip(starts.tolist(), ends.tolist(), strict=True)
    is_broken = np.array([not _is_utf8(data[start:end]) for start, end in lines], np.bool_)
    return read._replace(kinds=np.where(is_broken, ODD, read.kinds).astype(np.uint8))


@compiled
def _read_lines(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    names: NDArray[np.uint8],
    name_ends: NDArray[np.int64],
    max_record: int,
    texts: NDArray[np.uint8],
    kinds: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    places: NDArray[np.int64],
) -> None:
    """Read each line into the arrays of `PlainLines`."""
    found = np.empty(6, np.int64)  # of each key: the first byte of its value, and the one after its last
    for i in range(starts.size):
        at, end = _past_blanks(data, starts[i], ends[i]), ends[i]
        bounds[i + 1], kinds[i] = bounds[i], ODD
        if ends[i] - starts[i] > max_record:
            continue
        if at == end or data[at] != OPEN:
            while at < end and (data[at] == 0 or _is_blank(data[at])):
                at += 1
            kinds[i] = BLANK if at == end else ODD
            continue

        found[:] = NONE
        if not _find_values(data, at, end, names, name_ends, found):
            continue
        if found[0] == NONE or data[found[0]] != QUOTE:
            continue
        id_low, id_high = _inside(data, found[2], found[3])
        url_low, url_high = _inside(data, found[4], found[5])
        if id_low > UNUSUAL and url_low > UNUSUAL:
            kinds[i], bounds[i + 1] = _write_text(data, found[0] + 1, found[1] - 1, texts, bounds[i])
            places[i, 0], places[i, 1], places[i, 2], places[i, 3] = id_low, id_high, url_low, url_high


@compiled
def _is_blank(byte: int) -> bool:
    return byte == 0x20 or byte == 0x09 or byte == 0x0D or byte == 0x0A  # noqa: PLR1714, PLR2004 - as machine code


@compiled
def _past_blanks(data: NDArray[np.uint8], at: int, end: int) -> int:
    while at < end and _is_blank(data[at]):
        at += 1
    return at


@compiled
def _find_values(  # noqa: C901, PLR0911, PLR0912 - one pass over the line
    data: NDArray[np.uint8],
    at: int,
    end: int,
    names: NDArray[np.uint8],
    name_ends: NDArray[np.int64],
    found: NDArray[np.int64],
) -> bool:
    """Find the values of the keys in the object that begins at `at`; return whether the line is this object alone.

    False also for what `parse_json` reads otherwise, or may: a key of the three that stands twice or has a nested
    value, a key with an escape, NaN, and values nested deeply.
    """
    depth, wanted = 0, NONE
    objects = CLOSED  # the lowest bit: what is open is an object; the next: so is what it stands in
    while True:
        # A value begins here.
        at = _past_blanks(data, at, end)
        if at >= end:
            return False
        first, byte = at, data[at]
        if byte == OPEN or byte == OPEN_LIST:  # noqa: PLR1714, SIM109 - as machine code
            if depth == DEEPEST or wanted >= 0:
                return False
            depth += 1
            objects = objects << ONE | (ONE if byte == OPEN else CLOSED)
            at = _past_blanks(data, at + 1, end)
            if at >= end:
                return False
            if data[at] != (CLOSE if byte == OPEN else CLOSE_LIST):
                if byte == OPEN:
                    at, wanted = _read_key(data, at, end, names, name_ends, depth)
                    if at < 0 or (wanted >= 0 and found[2 * wanted] != NONE):
                        return False
                continue
        else:
            at = _past_string(data, at + 1, end) if byte == QUOTE else _past_word(data, at, end)
            if at < 0:
                return False
            if wanted >= 0:
                found[2 * wanted], found[2 * wanted + 1] = first, at
                wanted = NONE

        # What ends with the value, and the key of the next one.
        while True:
            at = _past_blanks(data, at, end)
            if depth == 0:
                return at == end
            if at >= end:
                return False
            is_object = objects & ONE != CLOSED
            if data[at] == (CLOSE if is_object else CLOSE_LIST):
                depth -= 1
                objects >>= ONE
                at += 1
                continue
            if data[at] != COMMA:
                return False
            at += 1
            if is_object:
                at, wanted = _read_key(data, _past_blanks(data, at, end), end, names, name_ends, depth)
                if at < 0 or (wanted >= 0 and found[2 * wanted] != NONE):
                    return False
            break


@compiled
def _read_key(
    data: NDArray[np.uint8], at: int, end: int, names: NDArray[np.uint8], name_ends: NDArray[np.int64], depth: int
) -> tuple[int, int]:
    """Return the place after the colon of the key at `at`, -1 if there is none; and which of the keys it is, or -1."""
    if at >= end or data[at] != QUOTE:
        return NONE, NONE
    after = _past_string(data, at + 1, end)
    colon = _past_blanks(data, after, end)
    if after < 0 or colon >= end or data[colon] != COLON:
        return NONE, NONE
    if depth > 1:
        return colon + 1, NONE

    begin, length = at + 1, after - at - 2
    for place in range(begin, begin + length):
        if data[place] == BACKSLASH:
            return NONE, NONE
    for key in range(name_ends.size - 1):
        low = name_ends[key]
        if length == 0 or length != name_ends[key + 1] - low:
            continue
        k = 0
        while k < length and data[begin + k] == names[low + k]:
            k += 1
        if k == length:
            return colon + 1, key
    return colon + 1, NONE


@compiled
def _past_plain(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the place of the first quote, backslash or control character at or after `at`; `end` if there is none."""
    source, stop = np.uint64(at), np.uint64(end)
    while source + LONG <= stop:
        seen = ZERO
        for k in range(STEP):
            c = data[source + np.uint64(k)]
            seen |= BIT if (c == QUOTE) | (c == BACKSLASH) | (c < 0x20) else ZERO  # noqa: PLR2004 - a blank
        if seen:
            break
        source += LONG
    while source < stop:
        c = data[source]
        if (c == QUOTE) | (c == BACKSLASH) | (c < 0x20):  # noqa: PLR2004
            break
        source += ONE
    return np.int64(source)  # type: ignore[return-value]


@compiled
def _past_string(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the place after the quote that ends the string with the first byte `at`; -1 if it is broken."""
    while True:
        at = _past_plain(data, at, end)
        if at + 1 > end or data[at] < 0x20:  # noqa: PLR2004
            return NONE
        if data[at] == QUOTE:
            return at + 1
        if at + 1 >= end:
            return NONE
        if data[at + 1] == 0x75:  # noqa: PLR2004 - u
            if at + 6 > end or _read_hex(data, at + 2) < 0:
                return NONE
            at += 6
        elif _meaning(data[at + 1]):
            at += 2
        else:
            return NONE


@compiled
def _meaning(byte: int) -> int:
    """Return the character that stands for a byte after a backslash; 0 if none does."""
    if byte == QUOTE or byte == BACKSLASH or byte == 0x2F:  # noqa: PLR1714, PLR2004, SIM109
        return np.int64(byte)  # type: ignore[return-value]
    if byte == 0x6E:  # noqa: PLR2004 - n
        return 0x0A
    if byte == 0x74:  # noqa: PLR2004 - t
        return 0x09
    if byte == 0x72:  # noqa: PLR2004 - r
        return 0x0D
    if byte == 0x62:  # noqa: PLR2004 - b
        return 0x08
    return 0x0C if byte == 0x66 else 0  # noqa: PLR2004 - f


@compiled
def _read_hex(data: NDArray[np.uint8], at: int) -> int:
    """Return the number in four hexadecimal digits; -1 if they are none."""
    number = 0
    for place in range(at, at + 4):
        c = int(data[place])
        if 0x30 <= c <= 0x39:  # noqa: PLR2004
            digit = c - 0x30
        elif 0x41 <= c <= 0x46 or 0x61 <= c <= 0x66:  # noqa: PLR2004
            digit = (c | 0x20) - 0x57
        else:
            return NONE
        number = number << 4 | digit
    return number


@compiled
def _past_digits(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the place after one digit or more; -1 if there is none."""
    first = at
    while at < end and 0x30 <= data[at] <= 0x39:  # noqa: PLR2004
        at += 1
    return at if at > first else NONE


@compiled
def _past_word(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the place after the number, `true`, `false` or `null` at `at`; -1 if there is none."""
    byte = data[at]
    if byte == 0x74:  # noqa: PLR2004 - true
        return at + 4 if _holds(data, at + 1, end, 0x72, 0x75, 0x65) else NONE
    if byte == 0x66:  # noqa: PLR2004 - false
        is_next = at + 1 < end and data[at + 1] == 0x61  # noqa: PLR2004
        return at + 5 if is_next and _holds(data, at + 2, end, 0x6C, 0x73, 0x65) else NONE
    if byte == 0x6E:  # noqa: PLR2004 - null
        return at + 4 if _holds(data, at + 1, end, 0x75, 0x6C, 0x6C) else NONE

    at += 1 if byte == 0x2D else 0  # noqa: PLR2004 - minus
    begins = at
    at = _past_digits(data, at, end)
    if at < 0 or (data[begins] == 0x30 and at > begins + 1):  # noqa: PLR2004 - 0 before other digits
        return NONE
    if at < end and data[at] == 0x2E:  # noqa: PLR2004 - point
        at = _past_digits(data, at + 1, end)
        if at < 0:
            return NONE
    if at < end and data[at] | 0x20 == 0x65:  # noqa: PLR2004 - e
        at += 1
        at += 1 if at < end and (data[at] == 0x2B or data[at] == 0x2D) else 0  # noqa: PLR2004 - a sign
        at = _past_digits(data, at, end)
    return at


@compiled
def _holds(data: NDArray[np.uint8], at: int, end: int, first: int, second: int, third: int) -> bool:
    """Return whether three bytes stand at `at`."""
    return at + 3 <= end and data[at] == first and data[at + 1] == second and data[at + 2] == third


@compiled
def _inside(data: NDArray[np.uint8], low: int, high: int) -> tuple[int, int]:
    """Return where the text of an id or URL stands, which is taken as it is; -1 for none, -2 for an unusual one."""
    if low == NONE or data[low] == 0x74 or data[low] == 0x66 or data[low] == 0x6E:  # noqa: PLR2004
        return NONE, NONE  # absent, true, false or null
    if data[low] == QUOTE:
        low, high = low + 1, high - 1
        if low == high:
            return NONE, NONE
        if high - low > MAX_ID_LENGTH or data[low] == 0x20 or data[high - 1] == 0x20:  # noqa: PLR2004
            return UNUSUAL, UNUSUAL
    for place in range(low, high):
        if data[place] == BACKSLASH or data[place] >= 0x7F:  # noqa: PLR2004
            return UNUSUAL, UNUSUAL
    return low, high


@compiled
def _write_text(data: NDArray[np.uint8], at: int, end: int, texts: NDArray[np.uint8], begin: int) -> tuple[int, int]:
    """Write a string without its escapes; return PLAIN, TAGGED or, for half of a surrogate pair, ODD; and its end."""
    tag, to = ZERO, begin
    while at < end:
        # Blocks without an escape, then what is before the next one.
        source, stop, target = np.uint64(at), np.uint64(end), np.uint64(to)
        while source + LONG <= stop:
            seen = ZERO
            for k in range(STEP):
                c = data[source + np.uint64(k)]
                texts[target + np.uint64(k)] = c
                seen |= BIT if c == BACKSLASH else ZERO
                tag |= BIT if c == TAG else ZERO
            if seen:
                break
            source += LONG
            target += LONG
        while source < stop and data[source] != BACKSLASH:
            texts[target] = data[source]
            tag |= BIT if data[source] == TAG else ZERO
            source += ONE
            target += ONE

        at, to = np.int64(source), np.int64(target)  # type: ignore[assignment]
        while at < end and data[at] == BACKSLASH:
            if data[at + 1] != 0x75:  # noqa: PLR2004 - u
                texts[to] = _meaning(data[at + 1])
                at += 2
                to += 1
                continue
            code = _read_hex(data, at + 2)
            at += 6
            if 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004
                is_pair = code < 0xDC00 and at + 6 <= end and data[at] == BACKSLASH and data[at + 1] == 0x75  # noqa: PLR2004
                low = _read_hex(data, at + 2) if is_pair else NONE
                if not 0xDC00 <= low <= 0xDFFF:  # noqa: PLR2004
                    return ODD, begin
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                at += 6
            tag |= BIT if code == TAG else ZERO
            to = _write_character(code, texts, to)
    return TAGGED if tag else PLAIN, to


@compiled
def _write_character(code: int, texts: NDArray[np.uint8], to: int) -> int:
    """Write a character as UTF-8; return the place after it."""
    if code < 0x80:  # noqa: PLR2004
        texts[to] = code
        return to + 1
    width = 2 if code < 0x800 else 3 if code < 0x10000 else 4  # noqa: PLR2004
    for k in range(width - 1, 0, -1):
        texts[to + k] = 0x80 | code & 0x3F
        code >>= 6
    texts[to] = (0xF00 >> width) & 0xFF | code
    return to + width
