"""Parse a record that was cut from its file: find its start, wrap it in an element, parse it strictly.

    wrapper_of            the wrapper of all records of a file, from its head
    Wrapper.find_start    where the record starts in a chunk
    Wrapper.parse         the element of the record, parsed without DOCTYPE, entities or network access
    escape_ampersands     the only repair: a stray `&` becomes `&amp;`

`xml_records` extracts the fields from the element.
"""

import re
from functools import lru_cache
from html.entities import html5
from xml.sax.saxutils import quoteattr

from lxml import etree

# Before Python 3.11.5 a possessive group, `(…)*+`, may end past its last match: at the point where one more repetition
# failed midway. So an alternative here that begins with a quote, `<!--` or `<?` never fails: without its end it extends
# to the end of the text, or to a `<`, where nothing after the group matches.
_QUOTED = r"\"[^\"]*+\"?+|'[^']*+'?+"

# Markup that may stand before a record: a tag inside it does not start one.
SKIPPED = (
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
    rf"|<!DOCTYPE(?:[^\[>\"']|{_QUOTED})*+"
    rf"(?:\[(?:<!--(?:.*?-->|.*+)|<\?(?:.*?\?>|.*+)|{_QUOTED}|[^\]\"'])*+\]\s*+)?>"
)
FEW_NAMESPACES = 16
"""Namespaces that are declared around every record; of more, only those that the record names."""

_PREFIX = re.compile(rb"[^\s<>/=\"'&;:]++(?=:)")
UNFINISHED = r"<!--|<!\[CDATA\[|<\?|<!DOCTYPE"
ATTRIBUTES = r"(?:[^\"'<>]|\"[^\"<]*+\"?+|'[^'<]*+'?+)*+"

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
    """The start of a file's records, and the element that is put around each record for parsing."""

    def __init__(self, tag: str, namespaces: tuple[tuple[str, str], ...]) -> None:
        """Prepare the tags and patterns; `tag` and `namespaces` as in `FileHead`."""
        name = re.escape(tag.encode())
        self.declarations = {
            prefix.encode(): f" xmlns{':' if prefix else ''}{prefix}={quoteattr(_plain(uri))}".encode()
            for prefix, uri in namespaces
        }
        self.end_tag = f"</{tag}>".encode()
        self.root_close = b"</records>"
        self.at_once = re.compile(rb"\s*(<" + name + rb")(?=[\s/>])")
        pattern = rb"%s|(?P<unfinished>%s)|(?P<start><%s)(?=[\s/>])"
        self.anywhere = re.compile(pattern % (SKIPPED.encode(), UNFINISHED.encode(), name), re.DOTALL)
        self.row = re.compile(rb"<" + name + rb"(?=[\s/>])" + ATTRIBUTES.encode() + rb"(?<=/)>")

    def root_open(self, body: bytes) -> bytes:
        """Return the start tag of the wrapping element; of many namespaces it declares those that the record names."""
        declared = self.declarations
        if len(declared) > FEW_NAMESPACES:
            named = {b"", *_PREFIX.findall(body)}
            declared = {prefix: declared[prefix] for prefix in named if prefix in declared}
        return b"".join((b"<records", *declared.values(), b">"))

    def find_start(self, chunk: bytes) -> int | None:
        """Find where the record starts in a chunk, after comments, CDATA, instructions and other tags; else None."""
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
        """Explain why a malformed record was cut at the wrong place, if its tags show it; else return an empty text."""
        for token in self.anywhere.finditer(body, 1):
            if token["start"] is not None:
                return "another record starts before the end tag: one is inside the other, or an end tag is missing"
            if token["unfinished"] is not None:
                return "a comment, CDATA section or instruction holds the end tag, or is not closed"
        return ""

    def parse(self, body: bytes, closing: bytes) -> etree._Element:
        """Parse a record in UTF-8 that begins with its start tag and lacks `closing`.

        The record is the last child of the wrapping element. Empty records before it are dropped: `<tag/>` has no end
        tag to cut at.

        Raises:
            etree.XMLSyntaxError: if the record is not well-formed.
            ValueError: if several records come before one end tag.
        """
        root = etree.fromstring(b"".join((self.root_open(body), body, closing, self.root_close)), _PARSER)
        if any(len(other) or other.attrib or (other.text or "").strip() for other in list(root)[:-1]):
            raise ValueError("several records before one end tag")
        return root[-1]


def wrapper_of(tag: str, namespaces: tuple[tuple[str, str], ...]) -> Wrapper:
    """Return the wrapper of a file, cached per process; the last one is found without a look at its namespaces."""
    last = _last.get("wrapper")
    if last is None or last[0] != tag or last[1] is not namespaces:
        last = (tag, namespaces, _wrapper_of(tag, namespaces))
        _last["wrapper"] = last
    return last[2]


_last: dict[str, tuple[str, tuple[tuple[str, str], ...], Wrapper]] = {}
_wrapper_of = lru_cache(maxsize=256)(Wrapper)


def _plain(uri: str) -> str:
    """Return a namespace URI with XML's five predefined references resolved."""
    for reference, character in (
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", '"'),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ):
        uri = uri.replace(reference, character)
    return uri


# CDATA sections hold no references; elsewhere XML's own references are kept.
_CDATA = re.compile(rb"(<!\[CDATA\[.*?(?:\]\]>|\Z))", re.DOTALL)
_STRAY = re.compile(rb"&(?!(?:[A-Za-z]\w*+|#[0-9]++|#[xX][0-9a-fA-F]++);)")
_NAMED = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z]\w*+);")


def _number(found: re.Match[bytes]) -> bytes:
    """Replace an HTML named reference by numeric ones; unchanged if HTML has no such name."""
    characters = html5.get(found[1].decode("ascii", "replace") + ";")
    return "".join(f"&#{ord(c)};" for c in characters).encode() if characters else found[0]


def escape_ampersands(body: bytes) -> bytes:
    """Escape every `&` that does not begin a reference, outside CDATA sections.

    HTML's named references (`&nbsp;`) become numeric ones. References to other entities are kept; the parser refuses
    them.

    Cost: linear; an unclosed CDATA section reaches to the end.

    Example:
        >>> escape_ampersands(b"?x=1&b=2 &amp; <![CDATA[&]]>")
        b'?x=1&amp;b=2 &amp; <![CDATA[&]]>'
    """
    parts = _CDATA.split(body)
    parts[::2] = [_NAMED.sub(_number, _STRAY.sub(b"&amp;", part)) for part in parts[::2]]
    return b"".join(parts)
