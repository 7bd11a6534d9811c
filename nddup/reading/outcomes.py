"""The outcome of reading a chunk of a file: a record, or a reject that says why there is none.

    Record, Reject   the two outcomes
    Capture          the facts of one fetch in an archive of the web
    make_record      a record whose id and URL are each on one line, or a reject
    excerpt          the beginning of a record, for display

Reasons of rejects from parsing a chunk: `malformed`, `truncated`, `no content`, `bad base64`, `deleted`, `id too long`,
`too large`; in archives of the web also `status`, `not text` and `revisit`.
"""

import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from nddup.ground.shown import CONTROLS, clean_id
from nddup.reading.charsets import decode_content
from nddup.reading.formats import FieldKind

_BLANKS: Final = b" \t\r\n"

EXCERPT_LENGTH = 200

MAX_ID_LENGTH = 65_536
"""Maximum number of characters of an id: every pair and cluster of a document stores a copy of its id."""

EMPTY = ("no records", "no record was found in the file")
"""Reason and detail of the reject that stands for a file that was read to its end and holds no record, such as a table
of a header alone, or a part of a Parquet table without rows."""

DIVIDED = "divided"
"""Reason of the reject that ends a part of a file whose end lies inside a record. It is in no table: the file is then
read from its start."""

Value = bytes | str


def decode_base64(text: str) -> bytes | None:
    r"""Decode base64 that may be wrapped, indented, or without its closing `=`.

    Returns:
        The bytes, empty for blank text; None for text that is not base64: other characters, data after the padding, or
        a cut group.

    Cost: linear, about 2 ns per character.

    Example:
        >>> decode_base64(" YWJj\n ZA"), decode_base64("YW*j")
        (b'abcd', None)
    """
    try:
        data = text.encode("ascii").translate(None, _BLANKS)
        return binascii.a2b_base64(data + b"=" * (-len(data) % 4), strict_mode=True) if data else b""
    except (UnicodeEncodeError, binascii.Error):
        return None


class Capture(NamedTuple):
    """The facts of one fetch in an archive of the web; None where it has none.

    Attributes:
        date: when, UTC, to the second: `2024-05-01T12:00:00Z`.
        status: of the HTTP response.
        media_type: of the payload, in lower case, without parameters.
        target_uri: the address that was fetched, as written.
        payload_digest: as written, such as `sha1:…`.
        file_offset: where the record begins in the stored file, or the compressed member that begins with it.
        record_type: `response`, `resource`, `conversion` or `revisit`.
        refers_to: of a revisit, the names of what it repeats, the surest first: `id …`, `digest …`, `uri … date`.
    """

    date: str | None = None
    status: int | None = None
    media_type: str | None = None
    target_uri: str | None = None
    payload_digest: str | None = None
    file_offset: int | None = None
    record_type: str | None = None
    refers_to: tuple[str, ...] | None = None


class Unread(NamedTuple):
    """What a reader left unread of a record, besides bytes that could not be decoded (`Record.replaced`).

    Attributes:
        size: bytes of the parts that were not read, decoded from their transfer encoding.
        parts: the number of these: attachments, segments, whatever was cut off.
        digest: of all that was not read, so that the content fingerprint covers it; empty if all was read.
    """

    size: int = 0
    parts: int = 0
    digest: bytes = b""


ALL_READ: Final = Unread()


def unread_of(lost: bytes) -> Unread:
    """Return what is unread of a record whose text was decoded without some bytes, which are counted elsewhere."""
    return Unread(digest=blake2b(lost, digest_size=16).digest()) if lost else ALL_READ


@dataclass(frozen=True, slots=True)
class Record:
    """A document as found in a file.

    Attributes:
        doc_id: the id, on one line; None if absent or empty.
        url: the URL, likewise.
        fields: the content, unchanged. A field is bytes if its charset is not yet known (it was base64, or it has its
            own encoding), else text.
        is_markup: True for HTML, False for plain text, None if the text must be tested; one value for all fields, or
            one for each.
        charset: charset of the fields that are bytes, from an HTTP header.
        policy: the values at the paths `policy` of the format, None where missing.
        replaced: number of U+FFFD in the record that stand for bytes that the file's encoding could not decode.
        capture: of a record of an archive of the web.
        unread: what the reader left unread; the content fingerprint covers it.
        parent: the id of the message that holds this one.
    """

    doc_id: str | None
    url: str | None
    fields: tuple[Value, ...]
    is_markup: bool | tuple[bool | None, ...] | None
    charset: str | None = None
    replaced: int = 0
    policy: tuple[str | None, ...] = ()
    capture: Capture | None = field(default=None, repr=False)
    unread: Unread = field(default=ALL_READ, repr=False)
    parent: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that could not be read: the reason, details such as the parser's message, and the record's beginning.

    Of a `revisit`, which may be a copy of a document, also its id, address and capture, and the values of the policy.
    """

    reason: str
    detail: str
    excerpt: str
    doc_id: str | None = None
    capture: Capture | None = field(default=None, repr=False)
    policy: tuple[str | None, ...] = field(default=(), repr=False)


def make_record(
    doc_id: str | None,
    url: str | None,
    fields: Sequence[tuple[Value, bool | None]],
    *,
    charset: str | None = None,
    start: str = "",
    replaced: int = 0,
    policy: tuple[str | None, ...] = (),
    capture: Capture | None = None,
    unread: Unread = ALL_READ,
    parent: str | None = None,
    is_exact: bool = False,
) -> Record | Reject:
    r"""Make a record from its parts.

    Args:
        doc_id: as in the file. Each run of control characters and line ends becomes one blank, because ids are written
            to line-based and tab-separated files.
        is_exact: whether the id stays as it is instead, since its table is joined with the answer.
        url: as in the file; control characters and line ends are removed, as in browsers.
        fields: each part of the content, and whether it is markup; at least one. An empty one beside others is left
            out: a record with an empty title is one without a title.
        charset: label from an HTTP header.

    Returns:
        The record; a reject if the id is longer than MAX_ID_LENGTH.

    Example:
        >>> make_record(" a\n\tb ", "http://x/\n1", [("text", None)])
        Record(doc_id='a b', url='http://x/1', fields=('text',), is_markup=None, charset=None, replaced=0, policy=())
    """
    doc_id = clean_id(doc_id) if doc_id and not is_exact else doc_id
    if doc_id and len(doc_id) > MAX_ID_LENGTH:
        return Reject("id too long", f"{len(doc_id):,} characters, more than {MAX_ID_LENGTH:,}", start)

    url = CONTROLS.sub("", url).strip() if url else None
    fields = [one for one in fields if one[0]] or fields[:1]
    kinds = tuple(is_markup for _, is_markup in fields)
    is_same = len(set(kinds)) == 1
    values, is_markup = tuple(value for value, _ in fields), kinds[0] if is_same else kinds
    return Record(doc_id or None, url or None, values, is_markup, charset, replaced, policy, capture, unread, parent)


def excerpt(data: bytes, encoding: str = "utf-8") -> str:
    """Return the first EXCERPT_LENGTH characters of a record, for display; undecodable bytes become U+FFFD."""
    return data[: EXCERPT_LENGTH * 4].decode(encoding, "replace")[:EXCERPT_LENGTH]


def declared_value(value: str, kind: FieldKind, is_markup: bool | None) -> tuple[Value, bool | None] | None:  # noqa: FBT001
    """Return a field of the kind that its path declares, and whether it is markup; None for invalid base64.

    Example:
        >>> declared_value("YWJj", "base64", None), declared_value("a<b>", "html", None)
        ((b'abc', None), ('a<b>', True))
    """
    if kind == "base64":
        raw = decode_base64(value)
        return None if raw is None else (raw, is_markup)
    return value, {"html": True, "text": False}.get(kind, is_markup)


def plain_text(value: Value) -> str:
    """Return an id or URL as text; bytes are decoded by their detected charset."""
    return value if isinstance(value, str) else decode_content(value).text


def untyped(value: object) -> object:
    """Return the value of JSON that MongoDB wrote with its type; any other as it is.

    Example:
        >>> untyped({"$oid": "5f1"}), untyped("5f1"), untyped({"a": 1})
        ('5f1', '5f1', {'a': 1})
    """
    [key, *others] = value if isinstance(value, dict) and value else [""]
    return value[key] if isinstance(value, dict) and key.startswith("$") and not others else value
