"""One chunk of a collection file -> one record, or the reason why there is none.

    parse_record         chunk -> Record | Reject | None
    record_text          Record -> plain text
    content_fingerprint  Record -> 16 bytes, equal for equal content

A chunk is what stands between two separators (see `formats.FileHead`), the separator itself removed: blanks
and comments, then the record without its end tag. The first chunk of a file begins with the whole prolog, the
last one holds what follows the last record. The record is wrapped in one element that carries the namespaces
in force, closed, and parsed strictly. The DOCTYPE is never passed on, so no entity can be declared, expanded
or fetched. The parser's own recovery is never used: it turns `?x=1&b=2` into `?x=1=2` and passes cut records.
Only stray `&` are repaired.

Known limits of cutting by end tag: an end tag of the record inside a CDATA section or a comment cuts there
too, and the record is a reject `malformed`; a record inside another of the same name likewise; whole records
inside a comment are read as records.

Reasons of rejects: `malformed`, `truncated`, `no content`, `bad base64`.
"""

import binascii
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

from lxml import etree

from nddup.algorithms.charsets import decode_content
from nddup.algorithms.formats import FileHead, Format, Path, parse_path
from nddup.algorithms.markup import looks_like_markup, strip_markup
from nddup.algorithms.wrapping import Wrapper, escape_ampersands, wrapper_of

EXCERPT_LENGTH = 200
Markup = Literal["auto", "html", "text"]


@dataclass(frozen=True, slots=True)
class Record:
    """A document as found: id and URL stripped (None when absent or empty), the content fields as they came.

    A field is bytes when it was base64 (its charset is not known yet), text when the file's encoding gave it.
    `charset` is what a header outside the document says of its bytes, as HTTP's does.
    """

    doc_id: str | None
    url: str | None
    fields: tuple[bytes | str, ...]
    is_markup: bool | None
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that could not be read: why, the parser's words, and how it begins."""

    reason: str
    detail: str
    excerpt: str
    doc_id: str | None = None


def parse_record(chunk: bytes, head: FileHead, *, is_last: bool) -> Record | Reject | None:
    """Read the record in one chunk of a file.

    Args:
        chunk: bytes between two separators, both removed.
        head: of the file the chunk is from.
        is_last: the chunk is the last of its file. Where a root stands around the records its end tag is in
            that chunk, so a record that starts there has lost its end: it is `truncated` even if it would
            parse (a file cut exactly after an end tag loses its last record so). Not asked of rows by line.

    Returns:
        The record; a reject; None when no record starts in the chunk (the prolog, the end of the file, a
        blank line). Never raises, whatever the bytes.

    Cost: linear; 150 MB/s of base64 XML on one core, most of it in decoding base64.
    """
    if head.format.kind == "jsonl":
        return _parse_json(chunk, head)
    wrapper, encoding, body = wrapper_of(head.tag, head.namespaces), head.encoding, chunk
    try:
        if encoding.startswith(("utf-16", "iso2022")):  # not readable as ASCII: `<` may be half a character
            chunk, encoding = chunk.decode(encoding).encode(), "utf-8"
        start = wrapper.find_start(chunk)
        if start is None:
            return None
        body = chunk[start:] if encoding == "utf-8" else _as_utf8(chunk[start:], encoding)
    except UnicodeDecodeError as error:
        return Reject("malformed", str(error), _excerpt(body, encoding))
    is_complete = head.is_root_record
    closing = wrapper.end_tag
    if head.is_by_line:
        closing = b""
        row = wrapper.row.match(body)
        is_complete = row is not None or body.rstrip().endswith(wrapper.end_tag)
        if row is not None:
            if wrapper.find_start(body[row.end() :]) is not None:
                return Reject("malformed", "several records on one line", _excerpt(body, "utf-8"))
            body = row[0]
    if is_last and not is_complete:
        return Reject("truncated", "the file ends inside this record", _excerpt(body, "utf-8"))
    return _parse_xml(body, wrapper, closing, head.format)


def record_text(record: Record, charset: str | None = None, markup: Markup = "auto") -> str:
    """Give the plain text of a record.

    Args:
        record: as read by `parse_record`.
        charset: the user's setting for bytes whose charset is not known; None to tell from the bytes.
        markup: "html" strips markup, "text" leaves it; "auto" does as the format says, else strips a field
            that looks like HTML.

    Returns:
        The fields in order, one line break between them. Empty for empty content.

    Raises:
        ValueError: for another value of `markup`.

    Cost: decoding (see `decode_content`) and, for HTML, `strip_markup`.
    """
    if markup not in ("auto", "html", "text"):
        raise ValueError(f"markup: expected auto, html or text, got {markup!r}")
    is_markup = record.is_markup if markup == "auto" else markup == "html"
    charset = charset or record.charset
    if charset is None and len(record.fields) > 1:
        charset = _charset_of_longest(record.fields)
    texts = []
    for field in record.fields:
        if is_markup and charset is None and isinstance(field, bytes) and _is_plain_ascii(field):
            texts.append(strip_markup(field))  # already what the parser wants
            continue
        text = field if isinstance(field, str) else decode_content(field, charset).text
        strip = looks_like_markup(text) if is_markup is None else is_markup
        texts.append(strip_markup(text) if strip else text)
    return texts[0] if len(texts) == 1 else "\n".join(texts)


def _charset_of_longest(fields: tuple[bytes | str, ...]) -> str | None:
    """Of several fields the longest tells the charset for all: a title of one word is too short to tell."""
    longest = max((field for field in fields if isinstance(field, bytes)), key=len, default=b"")
    decoded = decode_content(longest)
    return None if decoded.encoding == "ascii" else decoded.encoding


def content_fingerprint(record: Record) -> bytes:
    """BLAKE2b-128 of the raw content: bytes as they came, text as UTF-8; with several fields, a zero after
    each.

    Example:
        >>> content_fingerprint(Record("1", None, (b"ab",), None)) == blake2b(b"ab", digest_size=16).digest()
        True
    """
    digest = blake2b(digest_size=16)
    for field in record.fields:
        digest.update(field if isinstance(field, bytes) else field.encode("utf-8", "surrogatepass"))
        if len(record.fields) > 1:
            digest.update(b"\0")
    return digest.digest()


def _excerpt(data: bytes, encoding: str) -> str:
    """The first characters of a record, for a person to read."""
    return data[: EXCERPT_LENGTH * 4].decode(encoding, "replace")[:EXCERPT_LENGTH]


def _as_utf8(data: bytes, encoding: str) -> bytes:
    return data if data.isascii() else data.decode(encoding).encode()


def _is_plain_ascii(field: bytes) -> bool:
    return field.isascii() and b"\x1b" not in field and b"\0" not in field


# --- XML ---


def _parse_xml(body: bytes, wrapper: Wrapper, closing: bytes, declared: Format) -> Record | Reject:
    """Parse a record in UTF-8 that begins with its start tag and lacks `closing`."""
    element: etree._Element | None = None
    try:
        element = wrapper.parse(body, closing)
    except (etree.XMLSyntaxError, ValueError) as error:
        detail = str(error)
    if element is None and b"&" in body:
        try:
            element = wrapper.parse(escape_ampersands(body), closing)
        except (etree.XMLSyntaxError, ValueError) as error:
            detail = str(error)
    if element is None:
        return Reject("malformed", detail, _excerpt(body, "utf-8"))
    doc_id = _first_text(element, declared.id)
    fields: list[bytes | str] = []
    for is_title, paths in ((True, declared.title), (False, declared.content)):
        found = [node for path in paths for node in _select(element, parse_path(path))]
        if not found and not is_title:
            return Reject("no content", f"no {' or '.join(declared.content)}", _excerpt(body, "utf-8"), doc_id)
        for node in found:
            field = _field(node)
            if field is None:
                name = node if isinstance(node, str) else etree.QName(node).localname
                return Reject("bad base64", f"in {name}", _excerpt(body, "utf-8"), doc_id)
            fields.append(field)
    url = _first_text(element, declared.url)
    if url and declared.may_encode_url:
        url = _plain_url(url)
    return Record(doc_id, url or None, tuple(fields), declared.is_markup)


def _local(tag: str) -> str:
    return tag.rpartition("}")[2] if tag[0] == "{" else tag


def _select(element: etree._Element, path: Path) -> list[etree._Element | str]:
    """All elements, or attribute values, at `path` under `element`, in document order."""
    nodes: list[Any] = [element]
    for step in path:
        if step.is_attribute:
            return [value for node in nodes for key, value in node.attrib.items() if _local(key) == step.name]
        nodes = [
            child
            for node in nodes
            for child in node
            if isinstance(child.tag, str)
            and _local(child.tag) == step.name
            and (step.where is None or any(_local(k) == step.where[0] and v == step.where[1] for k, v in child.items()))
        ]
    return nodes


def _text(element: etree._Element, joint: str) -> str:
    return (element.text or "") if len(element) == 0 else joint.join(_strings(element))


def _strings(element: etree._Element) -> Iterator[str]:
    return (str(text) for text in element.itertext())


def _first_text(element: etree._Element, path: str | None) -> str | None:
    """The text at a path, stripped; None when there is none."""
    found = _select(element, parse_path(path)) if path else []
    if not found:
        return None
    text = found[0] if isinstance(found[0], str) else _text(found[0], "")
    return text.strip() or None


def _field(node: etree._Element | str) -> bytes | str | None:
    """A content field: bytes from base64, else text (of an element with children: its text nodes, one space
    between).

    None when the base64 cannot be decoded.
    """
    if isinstance(node, str):
        return node
    if (node.get("encoding") or "").strip().lower() == "base64":
        return decode_base64(_text(node, ""))
    return _text(node, " ")


def decode_base64(text: str) -> bytes | None:
    r"""Decode base64 that may be wrapped, indented, and without its closing `=`.

    Returns:
        The bytes; None for anything that is not base64: foreign characters, data after the padding, a cut
        group.

    Cost: 160 MB/s.

    Example:
        >>> decode_base64(" YWJj\n ZA"), decode_base64("YW*j")
        (b'abcd', None)
    """
    try:
        data = text.encode("ascii").translate(None, b" \t\r\n")
        return binascii.a2b_base64(data + b"=" * (-len(data) % 4), strict_mode=True) if data else b""
    except (UnicodeEncodeError, binascii.Error):
        return None


def _plain_url(url: str) -> str:
    """The URL itself, whether it stands as it is or in base64 (then it decodes to something printable)."""
    raw = decode_base64(url) if len("".join(url.split())) % 4 == 0 else None
    if not raw:
        return url
    try:
        decoded = raw.decode()
    except UnicodeDecodeError:
        decoded = raw.decode("cp1251", "replace") if raw.startswith((b"http://", b"https://")) else ""
    decoded = decoded.strip()
    return decoded if decoded and decoded.isprintable() else url


# --- JSON lines ---

_SURROGATE = re.compile("[\ud800-\udfff]")


def _parse_json(chunk: bytes, head: FileHead) -> Record | Reject | None:
    """Read one line; numbers stay as written, so that an id 007.50 or 10^400 survives."""
    if not chunk.strip(b" \t\r\n\0"):
        return None
    try:
        row = json.loads(
            chunk.decode(head.encoding).lstrip("\ufeff"), parse_int=str, parse_float=str, parse_constant=str
        )
    except (ValueError, RecursionError) as error:  # a UnicodeDecodeError is a ValueError
        return Reject("malformed", str(error), _excerpt(chunk, head.encoding))
    if not isinstance(row, dict):
        return Reject("malformed", f"expected an object, got {type(row).__name__}", _excerpt(chunk, head.encoding))
    declared = head.format
    ids, urls = (_json_texts(row, path) if path else [] for path in (declared.id, declared.url))
    doc_id = (ids[0].strip() or None) if ids else None
    fields = [text for path in declared.content for text in _json_texts(row, path)]
    if not fields:
        wanted = " or ".join(declared.content)
        return Reject("no content", f"no text at {wanted}", _excerpt(chunk, head.encoding), doc_id)
    titles = [text for path in declared.title for text in _json_texts(row, path)]
    return Record(doc_id, (urls[0].strip() or None) if urls else None, (*titles, *fields), declared.is_markup)


def _json_texts(row: dict[str, Any], path: str) -> list[str]:
    """The strings (numbers as written) at a key or a dotted path; empty when there are none."""
    value: Any = row
    for key in [path] if path in row else path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    values = value if isinstance(value, list) else [value]
    return [_SURROGATE.sub("\ufffd", text) for text in values if isinstance(text, str)]
