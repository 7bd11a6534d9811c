"""Lines of JSON -> their texts, by Arrow's reader, without an object for each record.

    plain_keys   head -> the keys of the records that can be read here; None if they cannot
    find_blank   lines -> those without a record
    read_lines   lines -> the texts, ids and URLs of those that are plain

A line is plain if `records.parse_json` would read it, and take its values as they are: an object in UTF-8 whose text is
one string, whose id is a string of printable ASCII or a whole number, and whose keys name each of them once. Anything
else, such as a broken line, a lone surrogate, an id with an accent, or a list of texts, is odd, and read by
`parse_json`: what is a record, and what is a reject, is decided there alone.

Arrow reads objects, not lines. So a line goes to it only if it begins with `{` and ends with `}`: two lines of this
form are never one object, because a string holds no line break and no `{` follows a value. If there are as many objects
as lines then, each line is one.
"""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nddup.reading.charsets import canonical_charset
from nddup.reading.formats import FileHead, split_field
from nddup.reading.outcomes import MAX_ID_LENGTH

DEEPEST: Final = 400
"""Brackets in a line, more than which may nest too deeply for `parse_json`; such a line is odd."""

LONGEST: Final = 1 << 28
"""Bytes of a line, more than which is odd: Arrow reads less than 2 GB at once."""

FEW, SHARES = 8, 16
"""Lines that are odd together if Arrow refuses them: at most FEW, or one of SHARES of those given. More are tried again
in halves. So lines that are all refused cost 31 readings, of some 0.1 ms before anything is read."""

PRINTABLE = "^[!-~]([ -~]*[!-~])?$"
"""An id or URL that is taken as it is."""

BLANKS = b" \t\r\n\0"
OPEN, CLOSE, LIST, RETURN = (ord(mark) for mark in "{}[\r")


class PlainRecords(NamedTuple):
    """What was read of n lines, or of n rows of a table.

    Attributes:
        is_plain: (n,).
        texts: of n strings; of a plain record, its text.
        ids: of n strings; of a plain record, its id, null for none.
        urls: likewise.
    """

    is_plain: NDArray[np.bool_]
    texts: pa.StringArray
    ids: pa.StringArray
    urls: pa.StringArray


def plain_keys(head: FileHead) -> tuple[str, str | None, str | None] | None:
    """Return the keys of text, id and URL; None if the records of a file cannot be read here.

    Example:
        >>> from nddup.reading.detect import read_head
        >>> plain_keys(read_head(b'{"id": 1, "text": "a"}'))
        ('text', 'id', None)
    """
    declared = head.format
    is_plain = declared.kind == "jsonl" and canonical_charset(head.encoding) == "utf-8" and head.separator == b"\n"
    if not is_plain or len(declared.content) != 1 or declared.policy or declared.prefixes_ids:
        return None
    keys = (declared.content[0], declared.id or None, declared.url or None)
    given = [key for key in keys if key]
    if any("." in key or split_field(key) != ("auto", (key,)) for key in given) or len(set(given)) < len(given):
        return None
    return keys


def read_lines(
    data: NDArray[np.uint8], ends: NDArray[np.int64], keys: tuple[str, str | None, str | None], max_record: int
) -> PlainRecords:
    """Read lines.

    Args:
        data: whole lines, each with its line end, (b,).
        ends: (n,), the place of each line end.
        keys: of `plain_keys`.
        max_record: bytes of a line; a longer one is odd.

    Cost: some 1.2 ns a byte of English text.
    """
    starts = starts_of(ends)
    is_usual = _are_usual(data, starts, ends) & (ends - starts <= min(max_record, LONGEST))
    usual, usual_ends = data, ends
    if not is_usual.all():  # they are put together, since each reading of Arrow has its price
        lines = zip(starts[is_usual].tolist(), (ends[is_usual] + 1).tolist(), strict=True)
        usual = np.frombuffer(b"".join([data[low:high].tobytes() for low, high in lines]), np.uint8)
        usual_ends = np.cumsum(ends[is_usual] + 1 - starts[is_usual]) - 1
    few = max(FEW, -(-usual_ends.size // SHARES))
    read = pa.concat_tables(_read_all(usual, usual_ends, keys, few))
    if not is_usual.all():
        read = read.take(pa.array(np.cumsum(is_usual) - 1, mask=~is_usual))
    texts, ids, urls = (column.combine_chunks() for column in read.columns)

    is_plain = np.asarray(pc.is_valid(texts)) & are_printable(ids) & are_printable(urls)
    return PlainRecords(is_plain, texts, non_empty(ids), non_empty(urls))


def find_blank(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which lines hold nothing, (n,); arguments as of `read_lines`."""
    starts = starts_of(ends)
    is_blank: NDArray[np.bool_] = data[starts] != OPEN
    for row in np.flatnonzero(is_blank).tolist():
        is_blank[row] = not data[starts[row] : ends[row]].tobytes().strip(BLANKS)
    return is_blank


def starts_of(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each of some lines that follow one another begins, (n,), by the places of their line ends."""
    return np.concatenate([[0], ends[:-1] + 1]) if ends.size else ends


def utf8_of(strings: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of strings or binary values one after another, and where each begins and ends, (n + 1,)."""
    _, offsets, data = strings.buffers()
    bounds = np.frombuffer(offsets or bytes(4), np.int32)[strings.offset : strings.offset + len(strings) + 1]
    return np.frombuffer(data or b"", np.uint8), bounds.astype(np.int64)


def _are_usual(data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which lines begin and end as an object, have few brackets, and are UTF-8."""
    lasts = ends - 1 - (data[ends - 1] == RETURN)
    is_usual: NDArray[np.bool_] = (data[starts] == OPEN) & (data[lasts] == CLOSE) & (lasts > starts)
    # Where all brackets but the first of each line are few, no line has many.
    count = sum(int(np.count_nonzero(data == bracket)) for bracket in (OPEN, LIST))
    if count - np.count_nonzero(is_usual) >= DEEPEST:
        brackets, limits = np.flatnonzero((data == OPEN) | (data == LIST)), np.append(starts, data.size)
        is_usual &= np.diff(np.searchsorted(brackets, limits)) <= DEEPEST
    if not is_utf8(data):
        for row in np.flatnonzero(is_usual).tolist():
            is_usual[row] = is_utf8(data[starts[row] : ends[row]])
    return is_usual


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


def _nothing(rows: int) -> pa.Table:
    """Return rows without text, id and URL."""
    return pa.table([pa.nulls(rows, pa.string())] * 3, ["text", "id", "url"])


def _read_all(
    data: NDArray[np.uint8], ends: NDArray[np.int64], keys: tuple[str, str | None, str | None], few: int
) -> list[pa.Table]:
    """Return the texts, ids and URLs of lines that begin and end as objects, halved where Arrow refuses them."""
    found = _read(data, ends.size, keys) if ends.size else _nothing(0)
    if found is not None:
        return [found]
    if ends.size <= few:
        return [_nothing(ends.size)]
    half = ends.size // 2
    cut = ends[half - 1] + 1
    return _read_all(data[:cut], ends[:half], keys, few) + _read_all(data[cut:], ends[half:] - cut, keys, few)


def _read(data: NDArray[np.uint8], rows: int, keys: tuple[str, str | None, str | None]) -> pa.Table | None:
    """Return the texts, ids and URLs of some objects; None if they are not so many, or one holds something else."""
    from pyarrow import json  # noqa: PLC0415 - only lines of JSON pay for loading it

    text, doc_id, url = keys
    named = [key for key in keys if key]
    options = json.ReadOptions(use_threads=False, block_size=data.size + 1)
    for kind in (pa.string(), pa.int64()):
        schema = pa.schema([(key, kind if key == doc_id else pa.string()) for key in named])
        parsing = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        try:
            table = json.read_json(pa.BufferReader(pa.py_buffer(data)), read_options=options, parse_options=parsing)
        except pa.ArrowInvalid:
            continue
        if table.num_rows != rows:
            return None
        nulls = pa.nulls(rows, pa.string())
        columns = [table[key] if key else nulls for key in (text, doc_id, url)]
        if kind == pa.int64():
            if pc.any(pc.equal(columns[1], 0)).as_py():  # it may be written -0
                return None
            columns[1] = columns[1].cast(pa.string())
        return pa.table(columns, ["text", "id", "url"])
    return None


def are_printable(values: pa.StringArray) -> NDArray[np.bool_]:
    """Return which ids or URLs are absent, empty, or taken as they are."""
    is_short = pc.less_equal(pc.binary_length(values), MAX_ID_LENGTH)
    is_known = pc.and_(pc.match_substring_regex(values, PRINTABLE), is_short)
    return np.asarray(pc.fill_null(pc.or_(is_known, pc.equal(values, "")), fill_value=True))


def non_empty(values: pa.StringArray) -> pa.StringArray:
    """Return values with null for an empty one."""
    return pc.if_else(pc.equal(values, ""), None, values)
