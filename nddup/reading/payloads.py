"""Payloads of archives of the web, by their media type: pages, plain text, JSON, the text of XML and feeds."""

import re
from typing import Final

from lxml import etree

from nddup.reading.markup import INLINE, read_unknown
from nddup.reading.outcomes import Value
from nddup.reading.page_limits import has_too_many

_PLAIN: Final = re.compile(r"text/plain\b|[\w.-]+/([\w.-]+\+)*(json|x-ndjson)\s*(;|$)", re.IGNORECASE)
_XML: Final = re.compile(r"[\w.-]+/([\w.-]+\+)*xml\s*(;|$)", re.IGNORECASE)
_XML_START: Final = re.compile(rb"(\xef\xbb\xbf)?\s*+<(\?xml\s|rss[\s>]|feed[\s>]|rdf:RDF[\s>])", re.IGNORECASE)
_PAGE: Final = re.compile(rb"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_START = 4096
_XHTML: Final = "{http://www.w3.org/1999/xhtml}"


def text_of_payload(payload: bytes, content_type: str, charset: str | None) -> tuple[Value, bool | None]:
    """Return the content of a payload, and whether it is markup, None if its text must be tested.

    Args:
        payload: without its encodings.
        content_type: empty if it is not known: the first bytes decide then.
        charset: from the HTTP header.

    Returns:
        Of XML that is no page, the text of its elements and CDATA sections, apart except at inline elements of XHTML;
        markup inside them, as in feeds, is removed. Anything else unchanged, as is XML that cannot be parsed, as
        markup.
    """
    is_xml = _XML.match(content_type) or _XML_START.match(payload)
    if is_xml and not _PAGE.search(payload, 0, _START) and (text := _text_of_xml(payload, charset)):
        return text, False
    if not content_type.strip():
        return payload, None
    return payload, not _PLAIN.match(content_type)


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
