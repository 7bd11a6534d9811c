"""Bodies of HTTP in archives of the web, without their encodings, and what of them is text.

    decode_body      a body as stored, and the names of its encodings -> the body as it was meant; BodyError
    text_of_payload  a body, its media type -> its text, and whether it is markup: of pages, text, JSON, XML and feeds
    looks_like_text  whether bytes may be text

Archives hold bodies that are not encoded as their headers say: proxies remove chunks or decompress a body and leave the
header. So each encoding is tried in its turn. A body that does not have it must look like text, or is refused:
compressed bytes and the lengths of chunks never become text. A body that begins as gzip or zstd is that, whatever its
header says, as is one that is chunks up to the last. A body that ends inside an encoding gives all that decodes, as in
a browser.
"""

import io
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fastwarc.stream_io import BrotliReader
from lxml import etree

from nddup.reading.markup import INLINE, read_unknown
from nddup.reading.outcomes import Value
from nddup.reading.page_limits import has_too_many
from nddup.reading.streams import Expanded, NoMemberError, StoppedError, compression_of

TEXT_BYTES = 4096
"""First bytes of a body that are examined by `looks_like_text`."""

SHORT_BYTES = 256
"""A body shorter than this must also be UTF-8 to look like text: few compressed bytes may hold no control character."""

MOST_UNNAMED = 2
"""Compressions of a body that no header names, as servers send files that they have compressed."""

_UNNAMED = ("gzip", "zstd")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
_CHUNK = re.compile(rb"[ \t]*+([0-9a-fA-F]{1,15})[ \t]*+(?:;[^\r\n]*+)?\r?\n")
_CHUNK_END = re.compile(rb"\r?\n|\r\Z")
_CUT_CHUNK = re.compile(rb"[ \t]*+[0-9a-fA-F]{0,15}[ \t]*+(?:;[^\r\n]*+)?\r?\Z")

_PLAIN: Final = re.compile(r"text/plain\b|[\w.-]+/([\w.-]+\+)*(json|x-ndjson)\s*(;|$)", re.IGNORECASE)
_MARKUP: Final = re.compile(r"[^;]*?(html|xml|wml)", re.IGNORECASE)
_XML: Final = re.compile(r"[\w.-]+/([\w.-]+\+)*xml\s*(;|$)", re.IGNORECASE)
_XML_START: Final = re.compile(rb"(\xef\xbb\xbf)?\s*+<(\?xml\s|rss[\s>]|feed[\s>]|rdf:RDF[\s>])", re.IGNORECASE)
_PAGE: Final = re.compile(rb"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_START = 4096
_XHTML: Final = "{http://www.w3.org/1999/xhtml}"


class BodyError(ValueError):
    """A body cannot be decoded; the message names the encoding."""


def decode_body(body: bytes, encodings: Sequence[str], limit: int) -> bytes:
    r"""Return a body without its encodings.

    Args:
        encodings: their names in any case, in the order in which they were applied; unknown ones too.
        limit: bytes after which decoding stops; a result with more bytes is not whole.

    Raises:
        BodyError: if the body is not encoded as named, and does not look like text either; or if it is damaged.

    Cost: linear in the bytes read and made.

    Example:
        >>> decode_body(b"3\r\nabc\r\n0\r\n\r\n", ["gzip", "chunked"], 100)
        b'abc'
    """
    doubt, is_over = "", False
    for name in reversed(encodings):
        try:
            body = _DECODERS.get(name.lower().removeprefix("x-"), _refuse)(body, limit)
        except BodyError:
            raise
        except (ValueError, EOFError, OSError, zlib.error) as error:
            doubt = doubt or f"its body cannot be decoded ({name}: {error})"
        if is_over := len(body) > limit:
            break
    if not is_over and "chunked" not in map(str.lower, encodings):
        body = _unnamed_chunks(body) or body
    for _ in range(MOST_UNNAMED):
        if is_over or compression_of(body) not in _UNNAMED:
            break
        body, doubt = _expand(body, compression_of(body), limit), ""
        is_over = len(body) > limit
    if doubt and not looks_like_text(body):
        raise BodyError(doubt)
    if kind := compression_of(body):
        raise BodyError(f"its body is {kind}")
    return body


def looks_like_text(data: bytes) -> bool:
    r"""Return whether bytes may be text: no control characters that text does not have, and UTF-8 if they are few.

    Source: https://mimesniff.spec.whatwg.org/#binary-data-byte.

    Example:
        >>> looks_like_text("страница".encode("cp1251") * 40), looks_like_text(b"\x0b\x02\x80abc\x03")
        (True, False)
    """
    start = data[:TEXT_BYTES]
    if start.startswith(_MARKS):
        return True
    if _BINARY.search(start):
        return False
    if len(data) >= SHORT_BYTES or start.lstrip().startswith(b"<"):
        return True
    try:
        start.decode()
    except UnicodeDecodeError:
        return False
    return True


def _join_chunks(body: bytes, limit: int) -> bytes:
    """Join the chunks of a body; a body that does not begin with the length of a chunk is no error: it has none."""
    at, size, parts = 0, 0, list[bytes]()
    while at < len(body) and size <= limit:
        match = _CHUNK.match(body, at)
        if match is None:
            if _CUT_CHUNK.match(body, at):
                break
            if not at:
                return body
            raise BodyError(f"its body cannot be decoded (chunked: no length of a chunk at byte {at:,})")
        length = int(match[1], 16)
        if not length:
            break
        parts.append(body[match.end() : match.end() + length])
        size += len(parts[-1])
        at = match.end() + length
        if at < len(body):
            end = _CHUNK_END.match(body, at)
            if end is None:
                raise BodyError(f"its body cannot be decoded (chunked: no end of a chunk at byte {at:,})")
            at = end.end()
    return b"".join(parts)


def _unnamed_chunks(body: bytes) -> bytes | None:
    """Join the chunks of a body whose header does not name them; None unless all of it is chunks, up to the last."""
    at, parts = 0, list[bytes]()
    while match := _CHUNK.match(body, at):
        begin, length = match.end(), int(match[1], 16)
        if not length:
            return b"".join(parts) if parts and not body[begin:].strip() else None
        end = _CHUNK_END.match(body, begin + length)
        if end is None:
            return None
        parts.append(body[begin : begin + length])
        at = end.end()
    return None


def _gunzip(body: bytes, limit: int) -> bytes:
    """Decompress all members; bytes after the last one are ignored, as by browsers."""
    if _has_zlib(body):
        return _inflate(body, limit)
    if compression_of(body) != "gzip":
        raise ValueError("it does not begin as gzip")
    return _expand(body, "gzip", limit)


def _unzstd(body: bytes, limit: int) -> bytes:
    if compression_of(body) != "zstd":
        raise ValueError("it does not begin as zstd")
    return _expand(body, "zstd", limit)


def _expand(body: bytes, compression: str, limit: int) -> bytes:
    stream, found, size = Expanded(io.BytesIO(body), compression), list[bytes](), 0
    try:
        while size <= limit and (piece := stream.read()):
            found.append(piece)
            size += len(piece)
    except StoppedError as error:
        is_cut = isinstance(error.__cause__, EOFError | NoMemberError)
        if not (is_cut and found):
            raise BodyError(f"its body cannot be decoded ({compression}: {error})") from error
    return b"".join(found)


def _has_zlib(body: bytes) -> bool:
    return len(body) > 1 and body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2]) % 31 == 0


def _inflate(body: bytes, limit: int) -> bytes:
    """Decompress deflate with the header of zlib, or without, as old servers send it."""
    has_header = _has_zlib(body)
    decoder = zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)
    found = decoder.decompress(body, limit + 1)
    if not decoder.eof and len(found) <= limit and (not found or (not has_header and looks_like_text(body))):
        raise EOFError("it ends early")
    return found


def _unbrotli(body: bytes, limit: int) -> bytes:
    """Decompress Brotli. It has no mark and no checksum: a body that ends early looks like any other."""
    return BrotliReader(io.BytesIO(body)).read(limit + 1) if body else body


def _refuse(body: bytes, limit: int) -> bytes:
    del body, limit
    raise ValueError("an encoding that is not known")


def _keep(body: bytes, limit: int) -> bytes:
    del limit
    return body


_DECODERS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "chunked": _join_chunks,
    "gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
    "identity": _keep,
    "": _keep,
}
"""A decoder of each encoding. It raises BodyError if a body that has the encoding is damaged, else ValueError."""


def text_of_payload(payload: bytes, content_type: str, charset: str | None) -> tuple[Value, bool | None]:
    """Return the content of a payload, and whether it is markup, None if its text must be tested.

    Args:
        payload: without its encodings.
        content_type: empty if it is not known: the first bytes decide then.
        charset: from the HTTP header.

    Returns:
        Of XML that is no page, the text of its elements and CDATA sections, apart except at inline elements of XHTML;
        markup inside them, as in feeds, is removed. Anything else unchanged, as is XML that cannot be parsed, as
        markup; a text of another type, such as Markdown or a program, must be tested.
    """
    is_xml = _XML.match(content_type) or _XML_START.match(payload)
    if is_xml and not _PAGE.search(payload, 0, _START) and (text := _text_of_xml(payload, charset)):
        return text, False
    if not content_type.strip():
        return payload, None
    return payload, True if _MARKUP.match(content_type) else False if _PLAIN.match(content_type) else None


def _text_of_xml(payload: bytes, charset: str | None) -> str:
    """Return the text of an XML document; empty if it cannot be parsed, or has too many parts."""
    if has_too_many(payload, is_xml=True):
        return ""
    try:
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, recover=True, remove_comments=True,
            remove_pis=True, encoding=charset,
        )  # fmt: skip
        root = etree.fromstring(payload, parser)
    except (etree.XMLSyntaxError, LookupError, ValueError):
        return _text_of_xml(payload, None) if charset else ""
    if root is None:
        return ""
    parts: list[str] = []
    for event, node in etree.iterwalk(root, events=("start", "end")):
        is_inline = isinstance(node.tag, str) and node.tag.removeprefix(_XHTML) in INLINE and _XHTML in node.tag
        if not is_inline:
            parts.append("\n")
        text = node.text if event == "start" else node.tail
        if text and isinstance(node.tag, str):
            parts.append(read_unknown(text).text)
        elif event == "end" and text:
            parts.append(text)
    return "".join(parts).strip()
