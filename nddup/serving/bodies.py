"""The body of a request -> the text to look up, or the status with which it is refused.

| Content-Type | body |
|---|---|
| none, `text/…`, `application/xhtml+xml` | a text or a page, as it begins |
| `application/json` | an object whose `text` is one |
| `application/x-www-form-urlencoded` | a form whose field `text` is one |
| others, `multipart/form-data` too | 415 |

`Content-Encoding` is `gzip` or `deflate`, else 415: an end of Brotli that is missing is not noticed, and Zstandard
cannot be expanded within bounds. What is compressed without saying so, and what is no text, is refused with 415 too.
"""

import json
import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qs

from nddup.reading.charsets import canonical_charset, decode_content
from nddup.reading.containers import is_binary
from nddup.reading.records import without_surrogates
from nddup.reading.streams import compression_of

MAX_BYTES = 4 << 20
"""Maximum number of bytes of a body, as sent and expanded."""

ENCODINGS: Mapping[str, int] = {"gzip": 31, "x-gzip": 31, "deflate": zlib.MAX_WBITS}
"""The `wbits` of zlib for each content encoding that is read."""

TEXTS = ("text/", "application/xhtml+xml")
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s\";]+)", re.IGNORECASE)
_NO_FORM = re.compile(rb"[^A-Za-z0-9*\-._+%&=]")


class RefusedError(Exception):
    """A request that is not answered: the status, why, and fields of the answer."""

    def __init__(self, status: int, why: str, **fields: str) -> None:
        super().__init__(why)
        self.status, self.fields = status, {name.replace("_", "-"): value for name, value in fields.items()}


class Text(NamedTuple):
    """A text or a page, and the number of bytes that no encoding decodes."""

    text: str
    unread_bytes: int = 0


FORM = "application/x-www-form-urlencoded"

ACCEPTED_ENCODINGS = "gzip, deflate"

EXPECTED = "say what it is, as in `curl -H 'Content-Type: text/html' --data-binary @new.html`"


def read_body(body: bytes, media_type: str = "", encoding: str = "") -> Text:
    """Return the text in a body of at most `MAX_BYTES`.

    Raises:
        RefusedError: 400 for a body that is not what it says, 413 if it expands past `MAX_BYTES`, 415 for what is not
            read.

    Example:
        >>> read_body(b'{"text": "a b"}', "application/json").text, read_body(b"text=a+b", FORM).text
        ('a b', 'a b')
    """
    for name in reversed([one.strip().lower() for one in encoding.split(",")]):
        body = body if name in ("", "identity") else _expand(body, name)
    kind = media_type.partition(";")[0].strip().lower()
    charset = _CHARSET.search(media_type)
    if charset and canonical_charset(charset[1]) is None:
        raise RefusedError(415, f"charset {charset[1]}: unknown")
    if kind and kind not in _FIELDS and not kind.startswith(TEXTS):
        raise RefusedError(415, f"a body of type {kind} is not read; {EXPECTED}", Accept=ACCEPTED)
    if packed := compression_of(body):
        raise RefusedError(
            415, f"the body is {packed}, and no Content-Encoding says so", Accept_Encoding=ACCEPTED_ENCODINGS
        )
    if is_binary(body):
        raise RefusedError(415, f"the body is no text; {EXPECTED}", Accept=ACCEPTED)
    if kind in _FIELDS:
        return Text(_FIELDS[kind](body))
    found = decode_content(body, charset and charset[1])
    return Text(found.text, len(found.lost))


def _expand(body: bytes, name: str) -> bytes:
    if name not in ENCODINGS:
        raise RefusedError(415, f"Content-Encoding {name} is not read", Accept_Encoding=ACCEPTED_ENCODINGS)
    is_zlib = len(body) > 1 and body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2]) % 31 == 0
    wbits = -zlib.MAX_WBITS if name == "deflate" and not is_zlib else ENCODINGS[name]  # some send it without its header
    parts, room = list[bytes](), MAX_BYTES + 1
    try:
        while body or not parts:
            decoder = zlib.decompressobj(wbits)
            parts.append(decoder.decompress(body, room))
            room -= len(parts[-1])
            if not room:
                raise RefusedError(413, f"the body expands to more than {MAX_BYTES:,} bytes")
            if not decoder.eof:
                raise RefusedError(400, f"the body ends inside its {name}")
            body = decoder.unused_data
    except zlib.error as error:
        raise RefusedError(400, f"the body is no {name} ({error})") from error
    return b"".join(parts)


def _read_json(body: bytes) -> str:
    try:
        found = json.loads(body, parse_int=float)  # an int has at most 4,300 digits
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "the body is no JSON") from error
    text = found.get("text") if isinstance(found, dict) else None
    if not isinstance(text, str):
        raise RefusedError(400, 'expected a JSON object such as {"text": "…"}')
    return str(without_surrogates(text))


def _read_form(body: bytes) -> str:
    if _NO_FORM.search(body):  # programs name this type where nobody said what the body is
        raise RefusedError(415, f"the body is not URL-encoded, as its type says; {EXPECTED}", Accept=ACCEPTED)
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as error:
        raise RefusedError(400, "the body is no form of UTF-8 with at most 100 fields") from error
    if len(fields.get("text", [])) != 1:
        raise RefusedError(400, "expected a form with one field `text`")
    return fields["text"][0]


_FIELDS = {"application/json": _read_json, FORM: _read_form}
ACCEPTED = f"text/*, application/xhtml+xml, {', '.join(_FIELDS)}"
