"""The record in one chunk of a collection file, and the text of a record.

    parse_record         chunk   -> Record | Reject | None (`outcomes`)
    read_text            Record  -> plain text, and how much of it cannot be decoded; `record_text`: the text alone
    read_encoded         Record  -> the same in UTF-8
    read_fields          Record  -> the text of each field
    spell_page           Record  -> its content as HTML, for a format whose readers take it for a page
    content_fingerprint  Record  -> 16 bytes, equal for equal content
    parse_json, find_literals    a line of JSON -> Record | Reject | None; where its content stands in the line

A chunk is the part of a file between two separators (`formats.FileHead`), without the separators: blanks and comments,
then the record without its end tag. The first chunk also has the prolog; the last one has what follows the last record.
"""

import html
import json
import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from nddup.ground.shown import JsonValue
from nddup.reading.charsets import find_encoding
from nddup.reading.chats import left_of, said_in, texts_of, unread_parts
from nddup.reading.decoding import decode_anyway
from nddup.reading.formats import FieldKind, FileHead, split_field
from nddup.reading.json_pairs import split_pair
from nddup.reading.markup import main_text, read_unknown, strip_markup
from nddup.reading.outcomes import (
    Record,
    Reject,
    Value,
    declared_value,
    decode_base64,
    excerpt,
    make_record,
    plain_text,
    unread_of,
    untyped,
)
from nddup.reading.sgml_records import parse_sgml
from nddup.reading.xml_cutting import is_readable_as_ascii
from nddup.reading.xml_records import parse_xml, wrapper_of

__all__ = [
    "Record", "Reject", "content_fingerprint", "decode_base64", "fingerprint_bytes", "parse_record", "read_encoded",
    "read_text", "record_text", "spell_page",
]  # fmt: skip

_DECODER = json.JSONDecoder(  # `json.loads` would make one per call; NaN stands for null where a column has no other
    parse_int=str, parse_float=str, parse_constant=lambda word: None if word == "NaN" else word, strict=False
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAY_BE_HALF = re.compile(r"\\u[dD]")  # a lone surrogate can only come from an escape

_OPEN = "another record starts before the end tag: one is inside the other, or an end tag is missing"

Markup = Literal["auto", "html", "text"]

Part = Literal["all", "main"]


def parse_json(chunk: bytes, head: FileHead, added: dict[str, Any] | None = None) -> Record | Reject | None:
    """Read one line. Numbers are kept as written, so that an id such as 7.50 or 10^400 is not changed.

    Args:
        added: fields of the object that stand elsewhere.

    Returns:
        The record; a reject `malformed`, `no content`, `bad base64` or `id too long`; None for a blank line. Never
        raises.
    """
    if not chunk.removeprefix(BOM_UTF8).strip(b" \t\r\n\0"):
        return None

    start = excerpt(chunk, head.encoding)
    try:
        written, row = _decode(chunk, head.encoding, added or {})
    except (ValueError, RecursionError) as error:  # a UnicodeDecodeError is a ValueError
        return Reject("malformed", str(error), start)
    if not isinstance(row, dict):
        return Reject("malformed", f"expected an object, got {type(row).__name__}", start)

    declared = head.format
    doc_id, url = (_first(row, path) for path in (declared.id, declared.url))
    fields: list[tuple[Value, bool | None]] = []
    halves, left = "", list[object]()
    for path in declared.content:
        kind, keys = _choose(row, path)
        value = _reach(row, keys)
        texts = texts_of(value)
        left += left_of(value)
        if written is not row:
            halves += "\0".join("".join(_SURROGATE.findall(text)) for text in _texts(written, path)[1])
        for text in texts:
            field = declared_value(text, kind, declared.is_markup)
            if field is None:
                return Reject("bad base64", f"in {path}", start, doc_id)
            fields.append(field)
    if not fields:
        return Reject("no content", f"no text at {' or '.join(declared.content)}", start, doc_id)
    policy = tuple(_scalar(_reach(row, path)) for path in declared.policy)
    unread = unread_parts(left, halves.strip("\0").encode("utf-16-le", "surrogatepass"))
    replaced = len(halves.replace("\0", ""))
    return make_record(doc_id, url, fields, start=start, replaced=replaced, policy=policy, unread=unread)


def _parse_pair(chunk: bytes, head: FileHead) -> Record | Reject | None:
    action, line = split_pair(chunk)
    if not action.name or line.strip():
        return parse_json(line, head, action.fields)
    reason, doc_id = "deleted" if action.name == "delete" else "no content", _first(action.fields, head.format.id)
    return Reject(reason, f"no document follows this {action.name}", excerpt(chunk), doc_id)


def _decode(chunk: bytes, encoding: str, added: dict[str, Any]) -> tuple[Any, Any]:
    """Decode the JSON value in a line, with more fields: as written, and with each lone surrogate replaced."""
    line = chunk.decode(encoding).lstrip("\ufeff")
    row = _DECODER.decode(line)
    row = row | added if added and isinstance(row, dict) else row
    return row, without_surrogates(row) if _MAY_BE_HALF.search(line) else row


def _first(row: dict[str, Any], path: str | None) -> str | None:
    kind, texts = _texts(row, path) if path else ("auto", [])
    texts = texts or (_typed(row, path) if path else [])
    value = declared_value(texts[0], kind, None) if texts else None
    return (plain_text(value[0]).strip() or None) if value else None


def _typed(row: dict[str, Any], path: str) -> list[str]:
    """Return a value that MongoDB writes with its type in some records, and alone in others."""
    value = untyped(_reach(row, path.removesuffix(".$oid")))
    return [value] if isinstance(value, str) else []


def _texts(row: dict[str, Any], path: str) -> tuple[FieldKind, list[str]]:
    """Return the kind of a field, and its strings (numbers as written) at the first alternative that is not empty."""
    kind, keys = _choose(row, path)
    return kind, texts_of(_reach(row, keys))


def _choose(row: dict[str, Any], path: str) -> tuple[FieldKind, str]:
    """Return the kind of a field, and its first alternative that is not empty, else the first with strings."""
    if path in row:  # an existing key is taken literally, even if it looks like a path
        return "auto", path
    kind, alternatives = split_field(path)
    reached = [keys for keys in alternatives if texts_of(_reach(row, keys))]
    full = (keys for keys in reached if any(text.strip() for text in texts_of(_reach(row, keys))))
    return kind, next(full, (reached or alternatives)[0])


def find_literals(line: str, paths: Sequence[str]) -> list[tuple[int, int]]:
    """Return where in a line of JSON the strings stand, quotes included, that `parse_json` takes as its content.

    Args:
        line: a line that `parse_json` reads.
        paths: those of the content.
    """
    row = _DECODER.decode(line)
    places: list[tuple[int, int]] = []
    for path in paths:
        keys = _choose(row, path)[1]
        reached = [(_after_blanks(line, 0), len(line))]
        for key in [keys] if keys in row else keys.split("."):
            objects = [
                one for low, high in reached for one in (_items(line, low) if line[low] == "[" else [(low, high)])
            ]
            places_of = [_find_value(line, low, key) for low, _ in objects if line[low] == "{"]
            reached = [place for place in places_of if place is not None]
        for place in reached:
            places += _literals(line, *place)
    return [place for place in places if place[1] - place[0] > len('""')] or places[:1]  # as `make_record`


def _literals(line: str, low: int, high: int, *, in_turn: bool = False) -> list[tuple[int, int]]:
    """Return where the strings of `texts_of` stand, in the value between two places, or in what a turn says."""
    value = _DECODER.raw_decode(line, low)[0]
    if isinstance(value, list):
        return [place for item in _items(line, low) for place in _literals(line, *item, in_turn=in_turn)]
    if isinstance(value, dict):
        key = "text" if in_turn else said_in(value)
        inner = _find_value(line, low, key) if key else None
        return _literals(line, *inner, in_turn=True) if inner else []
    return [(low, high)] if isinstance(value, str) else []


def _after_blanks(line: str, at: int) -> int:
    while line[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at


def _items(line: str, at: int) -> list[tuple[int, int]]:
    """Return the places of the values of the array that begins at a place; of an object, those of keys and values."""
    places = list[tuple[int, int]]()
    at = _after_blanks(line, at + 1)
    while line[at] not in "]}":
        at = _after_blanks(line, at + 1) if places else at  # after a comma, or the colon of an object
        end = _DECODER.raw_decode(line, at)[1]
        places.append((at, end))
        at = _after_blanks(line, end)
    return places


def _find_value(line: str, at: int, key: str) -> tuple[int, int] | None:
    """Return the place of the last value of a key, which is the one that counts, in the object that begins at `at`."""
    items = _items(line, at)
    named = [value for name, value in zip(items[::2], items[1::2], strict=True)
             if without_surrogates(_DECODER.raw_decode(line, name[0])[0]) == key]  # fmt: skip
    return named[-1] if named else None


def _reach(row: dict[str, Any], path: str) -> object:
    value: Any = row
    for key in [path] if path in row else path.split("."):
        if isinstance(value, list):  # the values of all objects in an array, one after another
            values = [one[key] for one in value if isinstance(one, dict) and key in one]
            value = [inner for one in values for inner in (one if isinstance(one, list) else [one])]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _scalar(value: object) -> str | None:
    """Return a string, a number as written, `true` or `false`; None for anything else."""
    return str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else None


def without_surrogates(value: JsonValue) -> JsonValue:
    """Return the value with each lone surrogate in it replaced by U+FFFD."""
    if isinstance(value, list):
        return [without_surrogates(one) for one in value]
    if isinstance(value, dict):
        return {key: without_surrogates(one) for key, one in value.items()}
    if not isinstance(value, str) or value.isascii():  # `isascii` costs nothing
        return value
    try:
        value.encode()  # a fifth of the time of a regex search that finds nothing
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", value)
    return value


class PlainText(NamedTuple):
    """The text of a record.

    Attributes:
        replaced: the number of bytes that could not be decoded, each of which is one U+FFFD in the text.
        stripped: the number of fields of unknown kind of which markup was removed.
        guessed: the number of fields whose encoding is a guess (`charsets.Encoded`): their text may be garbage.
        inside: the number of fields of unknown kind in which a page begins after other text.
    """

    text: str
    replaced: int
    stripped: int
    guessed: int
    inside: int


class EncodedText(NamedTuple):
    """As `PlainText`, with the text in UTF-8; `is_content` says whether the text is the unchanged content."""

    text: bytes
    replaced: int
    is_content: bool
    stripped: int
    guessed: int
    inside: int


def parse_record(chunk: bytes, head: FileHead, *, is_last: bool, is_whole: bool = False) -> Record | Reject | None:
    """Read the record in one chunk of a file.

    `xml_records`, `sgml_records` and, for JSON, `parse_json` parse the record. An XML record is wrapped in an element
    with the namespaces in force, closed, and parsed strictly. The DOCTYPE is never passed to the parser, so no entity
    can be declared, expanded or fetched. The parser's own recovery is never used: it turns `?x=1&b=2` into `?x=1=2` and
    accepts cut records. Only stray `&` are repaired. `xml_cutting` has made sure that a chunk of XML holds one record,
    wherever XML ends it.

    Args:
        chunk: bytes between two separators, both removed.
        is_last: whether the chunk ended with the file and not with a separator, so that the record's end tag is
            missing. The record is then read if it can be parsed and has all the content of its format (in `trec`, if
            the last element is closed); else it is `truncated`.
        is_whole: whether an XML chunk ends with the record's own end, so that nothing is missing. With `is_last`:
            whether another record starts where the chunk ends; what is then incomplete is `malformed`.

    Returns:
        The record; a reject; None if no record starts in the chunk (the prolog, the end of the file, a blank line).
        Bytes that the file's encoding cannot decode become U+FFFD and are counted in the record. Never raises, whatever
        the bytes.

    Cost: linear; 150 MB/s of base64 XML on one core, most of it for decoding base64.
    """
    record = _parse(chunk, head, is_last=is_last, is_whole=is_whole)

    if is_last and is_whole and isinstance(record, Reject) and record.reason == "truncated":
        return replace(record, reason="malformed", detail=_OPEN)

    # Undecodable bytes may be the cause: try again with U+FFFD in their place.
    if isinstance(record, Reject) and record.reason == "malformed":
        decoded = decode_anyway(chunk, head.encoding)
        if decoded.replaced:
            as_utf8 = replace(head, encoding="utf-8", separator=head.separator_text.encode())
            again = _parse(decoded.text.encode(), as_utf8, is_last=is_last, is_whole=is_whole)
            unread = unread_of(decoded.lost)
            return replace(again, replaced=len(decoded.lost), unread=unread) if isinstance(again, Record) else again
    return record


def _parse(chunk: bytes, head: FileHead, *, is_last: bool, is_whole: bool) -> Record | Reject | None:
    encoding = head.encoding
    if head.format.kind == "jsonl":
        return _parse_pair(chunk, head) if head.is_paired else parse_json(chunk, head)

    body = chunk
    try:
        if not is_readable_as_ascii(encoding):
            chunk, encoding = chunk.decode(encoding).encode(), "utf-8"
        if head.format.kind == "sgml":
            return parse_sgml(chunk, head, is_last=is_last)
        wrapper = wrapper_of(head.tag, head.namespaces)
        start = wrapper.find_start(chunk)
        if start is None:
            return None
        body = chunk[start:] if encoding == "utf-8" else _as_utf8(chunk[start:], encoding)
    except UnicodeDecodeError as error:
        return Reject("malformed", str(error), excerpt(body, encoding))

    closing = b"" if is_whole and not is_last else head.separator_text.encode()
    return parse_xml(body, wrapper, closing, head.format, is_last=is_last and not head.is_root_record)


def record_text(record: Record, charset: str | None = None, markup: Markup = "auto") -> str:
    """Return the plain text of a record, as `read_text` does, without the count."""
    return read_text(record, charset, markup).text


def read_text(record: Record, charset: str | None = None, markup: Markup = "auto", part: Part = "all") -> PlainText:
    """Return the plain text of a record, and the number of U+FFFD in it that stand for undecodable bytes.

    Args:
        record: as read by `parse_record`.
        charset: the user's setting for bytes of unknown charset; None uses the charset of the HTTP header, or else the
            detected one.
        markup: "html" removes markup, "text" keeps it; "auto" follows the format or, if that does not say, removes
            markup tag by tag, or as of a page from fields that begin as one (`read_unknown`).
        part: "main" drops the boilerplate of a page (`main_text`); fields that are not pages are kept whole.

    Returns:
        The fields in order, separated by line breaks; empty for empty content.

    Raises:
        ValueError: for another value of `markup`.

    Cost: decoding (see `decode_content`) and, for HTML, `strip_markup`.
    """
    fields = _read_fields(record, charset, markup, part)
    return PlainText(_join(fields.texts), *fields[1:])


def read_encoded(
    record: Record, charset: str | None = None, markup: Markup = "auto", part: Part = "all"
) -> EncodedText:
    """Return the plain text of a record as `read_text` does, in UTF-8.

    A page in ASCII or UTF-8, without undecodable bytes, is given to the parser as stored.

    Raises:
        ValueError: for another value of `markup`; `UnicodeEncodeError`, for a text with a lone surrogate.

    Cost: that of `read_text`, without decoding.
    """
    fields = _read_fields(record, charset, markup, part)
    one = fields.texts[0] if len(fields.texts) == 1 else None
    text = one if isinstance(one, bytes) else _join(fields.texts).encode()
    is_content = one is not None and one is record.fields[0]
    return EncodedText(text, fields.replaced, is_content, *fields[2:])


def read_fields(record: Record, charset: str | None, markup: Markup, part: Part) -> list[str]:
    """Return the text of each field, whose join by line breaks is that of `read_text`."""
    return [_join([text]) for text in _read_fields(record, charset, markup, part).texts]


def spell_page(record: Record, charset: str | None = None, markup: Markup = "auto") -> str:
    """Return the content of a record such that its words as a page are those of `read_text`.

    Its own markup stays where a reader of pages sees the same words in it; else the text is given without markup.

    Cost: that of `read_text` and, unless the content is a page, of `strip_markup`.

    Example:
        >>> spell_page(Record("1", None, ("a <script>b</script>",), None))
        'a b'
        >>> spell_page(Record("1", None, ("a <b>, c & <p>",), is_markup=False))
        'a &lt;b&gt;, c &amp; &lt;p&gt;'
    """
    content = record_text(record, charset, "text")
    if len(record.fields) == 1 and (markup == "html" or (markup == "auto" and record.is_markup is True)):
        return content
    text = record_text(record, charset, markup)
    is_same = strip_markup(content).split() == text.split()
    return content if is_same else html.escape(text, quote=False).replace("\0", " ")


def _join(texts: list[Value]) -> str:
    """Join the texts of a record's fields with line breaks. A record may have a million fields: `str` is not copied."""
    if len(texts) == 1 and isinstance(texts[0], str):
        return texts[0]
    return "\n".join([text if isinstance(text, str) else text.decode() for text in texts])


class _Fields(NamedTuple):
    """The text of each field, as `str` or UTF-8 bytes, whichever was at hand; `replaced` as in `PlainText`."""

    texts: list[Value]
    replaced: int
    stripped: int
    guessed: int
    inside: int


def _read_fields(record: Record, charset: str | None, markup: Markup, part: Part) -> _Fields:
    """Return the text of each field, by the rules of `read_text`."""
    if markup not in ("auto", "html", "text"):
        raise ValueError(f"markup: expected auto, html or text, got {markup!r}")

    kinds = record.is_markup if markup == "auto" else markup == "html"
    if not isinstance(kinds, tuple):
        kinds = (kinds,) * len(record.fields)
    charset = charset or record.charset
    guessed = 0
    if charset is None and len(record.fields) > 1:
        charset, is_guess = _charset_of_longest(record.fields)
        guessed = int(is_guess)

    strip = main_text if part == "main" else strip_markup
    texts: list[Value] = []
    replaced, stripped, inside = record.replaced, 0, 0
    for field, is_markup in zip(record.fields, kinds, strict=True):
        text = field
        if isinstance(field, bytes):
            encoding = find_encoding(field, charset)
            replaced += encoding.replaced
            guessed += encoding.is_guess
            text = encoding.data if is_markup and encoding.is_utf8 else encoding.decode().text
        if is_markup is None and isinstance(text, str):
            read = read_unknown(text, strip)
            stripped += read.text is not text
            inside += read.has_page_inside
            texts.append(read.text)
        else:
            texts.append(strip(text) if is_markup else text)
    return _Fields(texts, replaced, stripped, guessed, inside)


def _charset_of_longest(fields: tuple[Value, ...]) -> tuple[str | None, bool]:
    """Detect the charset of the longest field, for use in all: a title of one word is too short for detection.

    Returns:
        The codec, None for ASCII; and whether it is a guess.
    """
    longest = max((field for field in fields if isinstance(field, bytes)), key=len, default=b"")
    encoding = find_encoding(longest)
    return None if encoding.encoding == "ascii" else encoding.encoding, encoding.is_guess


def content_fingerprint(record: Record) -> bytes:
    """Return the BLAKE2b-128 of the content: bytes unchanged, text as UTF-8, a zero byte after each of several fields.

    What the reader left unread is part of it, by its digest: records of equal text that differ in an attachment, or in
    bytes that the encoding of their file does not decode, have different fingerprints.

    Example:
        >>> content_fingerprint(Record("1", None, (b"ab",), None)) == blake2b(b"ab", digest_size=16).digest()
        True
    """
    digest = blake2b(digest_size=16)
    for field in record.fields:  # one at a time: a record may have a million
        digest.update(field if isinstance(field, bytes) else field.encode("utf-8", "surrogatepass"))
        if len(record.fields) > 1:
            digest.update(b"\0")
    if record.unread.digest:
        digest.update(b"\0unread\0" + record.unread.digest)
    return digest.digest()


def fingerprint_bytes(content: bytes | memoryview) -> bytes:
    """Return the `content_fingerprint` of a record with one field, given as bytes (text as UTF-8)."""
    return blake2b(content, digest_size=16).digest()


def _as_utf8(data: bytes, encoding: str) -> bytes:
    return data if data.isascii() else data.decode(encoding).encode()
