"""Parse a record that was cut from its file: find its start, wrap it in an element, parse it strictly.

    wrapper_of            the wrapper of all records of a file, from its head
    Wrapper.find_start    where the record starts in a chunk
    Wrapper.parse         the element of the record, parsed without DOCTYPE, entities or network access
    repair                the only repairs: a stray `&` becomes `&amp;`, a character that XML forbids U+FFFD

`xml_records` extracts the fields from the element.
"""

import re
import sys
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

MOST_UNDECLARED = 100
"""Most prefixes that are declared for a record because no declaration of them is known."""

HIDDEN = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
"""The beginning of what may hide tags, and its end."""

_PREFIX = re.compile(rb"(?<=[<\s/])[^\s<>/=\"'&;:]++(?=:)")
UNFINISHED = r"<!--|<!\[CDATA\[|<\?|<!DOCTYPE"
ATTRIBUTES = r"(?:[^\"'<>]|\"[^\"<]*+\"?+|'[^'<]*+'?+)*+"

_NAME = re.compile(rb"[A-Za-z_][\w.-]*+")
_DECLARATION = rb"\sxmlns%b\s*=\s*(?:\"([^\"]*)\"|'([^']*)')"

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
        prefix, _, local = tag.rpartition(":")
        name = rb"(?:[^\s<>/!?:=\"'&]++:)?" + re.escape(local.encode())
        self.declarations = {
            prefix.encode(): f" xmlns{':' if prefix else ''}{prefix}={quoteattr(_plain(uri))}".encode()
            for prefix, uri in namespaces
        }
        self.root_close = b"</records>"
        self.tag = tag.encode()
        self._uris = {prefix.encode(): uri.encode() for prefix, uri in namespaces}
        self._uri = self._uris.get(prefix.encode(), b"")
        self.at_once = re.compile(rb"\s*+<(" + name + rb")(?=[\s/>])")
        pattern = rb"%s|(?P<unfinished>%s)|<(?P<start>%s)(?=[\s/>])"
        self.anywhere = re.compile(pattern % (SKIPPED.encode(), UNFINISHED.encode(), name), re.DOTALL)
        self.open_tag = re.compile(rb"<[^\s<>/!?=\"'&]++(?=[\s/>])" + ATTRIBUTES.encode())
        self.any_end = re.compile(rb"</" + name + rb"\s*+>")
        self.marks = re.compile(rb"<(?:[!?]|" + re.escape(local.encode()) + rb"(?=[\s/>]))")
        self.prefixed = re.compile(rb":" + re.escape(local.encode()) + rb"[\s/>]")

    def root_open(self, body: bytes, *, declares: bool = False) -> bytes:
        """Return the start tag of the wrapping element; of many namespaces it declares those that the record names.

        With `declares`, it also declares prefixes of the record that an element further out may have declared.
        """
        declared = self.declarations
        if declares or len(declared) > FEW_NAMESPACES:
            named = {b"", *_PREFIX.findall(body)}
            unknown = sorted(named - declared.keys() - {b"", b"xml", b"xmlns"})[: MOST_UNDECLARED if declares else 0]
            declared = {prefix: declared[prefix] for prefix in named if prefix in declared}
            declared |= {
                prefix: b" xmlns:%s='urn:nddup:undeclared'" % prefix for prefix in unknown if _NAME.fullmatch(prefix)
            }
        return b"".join((b"<records", *declared.values(), b">"))

    def find_start(self, chunk: bytes | bytearray, at: int = 0) -> int | None:
        """Find where the record starts in a chunk, after comments, CDATA, instructions and other tags; else None."""
        return self.seek_start(chunk, at)[0]

    def seek_start(self, data: bytes | bytearray, at: int = 0, end: int = sys.maxsize) -> tuple[int | None, int | None]:
        """Find where a record starts from a place on, in the data up to another.

        Returns:
            The start, and None; or None, and the start of a comment, CDATA section, instruction or DOCTYPE that does
            not end; or twice None.
        """
        found = self.at_once.match(data, at, end)
        if found and self._is_record(found[1], data, found.start(1) - 1):
            return found.start(1) - 1, None

        for token in self.anywhere.finditer(data, at, end):
            if token["start"] is not None:
                if self._is_record(token["start"], data, token.start()):
                    return token.start(), None
            elif token["unfinished"] is not None:
                return None, token.start()
        return None, None

    def has_more(self, chunk: bytes | bytearray, start: int) -> bool:
        """Return whether another record may start in a chunk after `start`, or something in it may not end."""
        if self.prefixed.search(chunk, start + 1 + len(self.tag)):  # an expression: `find` takes four times as long
            return True
        at = start + 1
        while found := self.marks.search(chunk, at):
            end = next((end for begin, end in HIDDEN.items() if chunk.startswith(begin, found.start())), None)
            at = chunk.find(end, found.start()) if end else -1
            if at < 0:
                return True
        return False

    def _is_record(self, spelled: bytes, data: bytes | bytearray, start: int) -> bool:
        """Return whether a start tag is a record's: spelled as in the head, or of the same namespace."""
        if spelled == self.tag:
            return True
        prefix = spelled.rpartition(b":")[0]
        tag = self.open_tag.match(data, start)
        own = re.search(_DECLARATION % (b":" + re.escape(prefix) if prefix else b""), tag[0]) if tag else None
        uri = (own[1] or own[2] or b"") if own else self._uris.get(prefix, self._uri if prefix else b"")
        return uri == self._uri and bool(uri or not prefix)

    def explain(self, body: bytes) -> str:
        """Explain why a malformed record was cut at the wrong place, if its tags show it; else return an empty text."""
        for token in self.anywhere.finditer(body, 1):
            if token["start"] is not None:
                return "another record starts before the end tag: one is inside the other, or an end tag is missing"
            if token["unfinished"] is not None:
                return "a comment, CDATA section or instruction holds the end tag, or is not closed"
        return ""

    def parse(self, body: bytes, closing: bytes, *, declares: bool = False) -> etree._Element:
        """Parse a record in UTF-8 that begins with its start tag and lacks `closing`.

        With `declares`, the prefixes in it are declared, in case an element around it did that; names are local.

        Raises:
            etree.XMLSyntaxError: if the record is not well-formed.
            ValueError: if there are several.
        """
        root_open = self.root_open(body, declares=declares)
        root = etree.fromstring(b"".join((root_open, body, closing, self.root_close)), _PARSER)
        if len(root) != 1:
            raise ValueError("several records before one end tag")
        return root[0]


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


# Characters that XML 1.0 forbids, as such or as a reference. (Surrogates are no UTF-8.)
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_REFERENCE = re.compile(rb"&#(?:0*+([0-9]*+)|[xX]0*+([0-9a-fA-F]*+));")
_CHARACTERS = ((9, 10), (13, 13), (0x20, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF))
_UNKNOWN = "\ufffd".encode()


def repair(body: bytes) -> bytes:
    r"""Escape stray `&` and replace what XML forbids as a character, raw or as a reference, by U+FFFD.

    Cost: linear.

    Example:
        >>> repair(b"a & b &#x1F; &#65; \x0b <![CDATA[& &#1;]]>").decode()
        'a &amp; b \ufffd &#65; \ufffd <![CDATA[& &#1;]]>'
    """
    parts = _CDATA.split(_FORBIDDEN.sub(_UNKNOWN, body))
    parts[::2] = [_REFERENCE.sub(_allowed, escape_ampersands(part)) if b"&" in part else part for part in parts[::2]]
    return b"".join(parts)


def _allowed(found: re.Match[bytes]) -> bytes:
    """Keep a numeric reference to a character that XML allows; replace any other."""
    digits, base = (found[1], 10) if found[1] is not None else (found[2], 16)
    code = int(digits or b"0", base) if len(digits or b"") < 8 else -1  # noqa: PLR2004 - more digits than any character
    is_allowed = any(low <= code <= high for low, high in _CHARACTERS)
    return found[0] if is_allowed else _UNKNOWN


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
