"""A record cut out of its file -> a parsed element: find its start, wrap it, parse it strictly.

wrapper_of            what is the same for all records of a file, from its head
Wrapper.find_start    where the record starts in a chunk
Wrapper.parse         the record's element; strict, with no DOCTYPE, no entities, no network
escape_ampersands     the one repair: a stray `&` becomes `&amp;`
"""

import re
from functools import lru_cache
from html.entities import html5
from xml.sax.saxutils import quoteattr

from lxml import etree

# What may stand before a record, so that a tag inside it is not taken for one.
SKIPPED = (
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
    r"|<!DOCTYPE(?:[^\[>\"']|\"[^\"]*\"|'[^']*')*+"
    r"(?:\[(?:<!--.*?-->|<\?.*?\?>|\"[^\"]*\"|'[^']*'|(?!<!--|<\?)[^\]\"'])*+\]\s*+)?>"
)
UNFINISHED = r"<!--|<!\[CDATA\[|<\?|<!DOCTYPE"
ATTRIBUTES = r"(?:[^\"'<>]|\"[^\"<]*\"|'[^'<]*')*+"

_PARSER = etree.XMLParser(
    resolve_entities=False,
    no_network=True,
    load_dtd=False,
    dtd_validation=False,
    recover=False,
    huge_tree=True,
    remove_comments=True,
    remove_pis=True,
)


class Wrapper:
    """What is the same for all records of a file: how one starts, and what is put around it."""

    def __init__(self, tag: str, namespaces: tuple[tuple[str, str], ...]) -> None:
        """Prepare the tags and patterns; `tag` as spelled, `namespaces` as in `FileHead`."""
        name = re.escape(tag.encode())
        declarations = "".join(
            f" xmlns{':' if prefix else ''}{prefix}={quoteattr(_plain(uri))}" for prefix, uri in namespaces
        )
        self.root_open = f"<records{declarations}>".encode()
        self.end_tag = f"</{tag}>".encode()
        self.root_close = b"</records>"
        self.at_once = re.compile(rb"\s*(<" + name + rb")(?=[\s/>])")
        pattern = rb"%s|(?P<unfinished>%s)|(?P<start><%s)(?=[\s/>])"
        self.anywhere = re.compile(pattern % (SKIPPED.encode(), UNFINISHED.encode(), name), re.DOTALL)
        self.row = re.compile(rb"<" + name + rb"(?=[\s/>])" + ATTRIBUTES.encode() + rb"(?<=/)>")

    def find_start(self, chunk: bytes) -> int | None:
        """Where the record starts in the chunk, past comments, CDATA, instructions and other elements."""
        found = self.at_once.match(chunk)
        if found:
            return found.start(1)
        for token in self.anywhere.finditer(chunk):
            if token["start"] is not None:
                return token.start()
            if token["unfinished"] is not None:
                return None
        return None

    def explain(self, body: bytes) -> str:
        """Why a record that cannot be parsed was cut where it was, if its tags tell; else nothing."""
        for token in self.anywhere.finditer(body, 1):
            if token["start"] is not None:
                return "another record starts before the end tag: one is inside the other, or an end tag is missing"
            if token["unfinished"] is not None:
                return "a comment, CDATA section or instruction holds the end tag, or is not closed"
        return ""

    def parse(self, body: bytes, closing: bytes) -> etree._Element:
        """Parse a record in UTF-8 that begins with its start tag and lacks `closing`.

        The record is the last child; empty ones before it (`<tag/>` has no end tag to cut at) are dropped.

        Raises:
            etree.XMLSyntaxError: if it is not well-formed.
            ValueError: if several records stand before one end tag.
        """
        root = etree.fromstring(b"".join((self.root_open, body, closing, self.root_close)), _PARSER)
        if any(len(other) or other.attrib or (other.text or "").strip() for other in list(root)[:-1]):
            raise ValueError("several records before one end tag")
        return root[-1]


@lru_cache(maxsize=256)
def wrapper_of(tag: str, namespaces: tuple[tuple[str, str], ...]) -> Wrapper:
    """The wrapper of a file, made once per process."""
    return Wrapper(tag, namespaces)


def _plain(uri: str) -> str:
    """A namespace name with the five references of XML resolved."""
    for reference, character in (
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", '"'),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ):
        uri = uri.replace(reference, character)
    return uri


# CDATA sections hold no references; elsewhere one that XML knows is left as it is.
_CDATA = re.compile(rb"(<!\[CDATA\[.*?(?:\]\]>|\Z))", re.DOTALL)
_STRAY = re.compile(rb"&(?!(?:[A-Za-z]\w*+|#[0-9]++|#[xX][0-9a-fA-F]++);)")
_NAMED = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z]\w*+);")


def _number(found: re.Match[bytes]) -> bytes:
    """The numbers of the characters that HTML gives this name; the reference itself if it gives it to none."""
    characters = html5.get(found[1].decode("ascii", "replace") + ";")
    return "".join(f"&#{ord(c)};" for c in characters).encode() if characters else found[0]


def escape_ampersands(body: bytes) -> bytes:
    """Escape each `&` that begins no reference of XML, outside CDATA sections.

    HTML's named characters (`&nbsp;`) become numbers. Other entities stay, and the parser refuses them.

    Cost: linear; an unclosed CDATA section reaches to the end.

    Example:
        >>> escape_ampersands(b"?x=1&b=2 &amp; <![CDATA[&]]>")
        b'?x=1&amp;b=2 &amp; <![CDATA[&]]>'
    """
    parts = _CDATA.split(body)
    parts[::2] = [_NAMED.sub(_number, _STRAY.sub(b"&amp;", part)) for part in parts[::2]]
    return b"".join(parts)
