"""HTML -> text.

    strip_markup       text nodes of the body joined by one space, hidden elements (HIDDEN) left out
    main_text          the same without navigation and other boilerplate
    looks_like_markup  is this HTML at all? A cheap test for documents of unknown kind

The parser is Lexbor (through selectolax), a browser's algorithm, so broken pages give what a browser would
show. It does not recurse: 10^6 nested <b>, and 10^5 nested <div> on a stack of 256 KB, were parsed. But two
steps of the algorithm take time, or memory, in the product of nesting and tags: 10^5 nested <div> took 31 s,
and 900 <font> left open in one paragraph, opened again in each of 1,100 others, took 450 MB. Two more take time
in the square: 40,000 attributes of one tag took 4 s, 40,000 options of one <select> 11 s. And every element has its
price: 9 MB of <p> took 560 MB. Pages beyond MAX_DEPTH, MAX_REOPENED, MAX_ATTRIBUTES, MAX_OPTIONS or
`bounded_parts.MAX_PARTS` are therefore read by a regular expression that replaces tags by blanks; on 1,000 ordinary
pages it gave the same words as the parser.
"""

import html as html_entities
import io
import re

import numpy as np
from numpy.typing import NDArray
from resiliparse.extract.html2text import extract_plain_text
from selectolax.lexbor import LexborHTMLParser

from nddup.arrays import compiled
from nddup.reading.bounded_parts import has_too_many

HIDDEN = ("script", "style", "noscript", "template")
MAX_DEPTH = 1_000  # nested elements; the deepest of 10,665 real pages has 19
MAX_REOPENED = 300_000  # open formatting elements times tags; an element opened again takes 460 bytes
MAX_ATTRIBUTES = 10_000  # of one tag: each is compared with all before it, .25 s for so many
MAX_OPTIONS = 10_000  # of a page: each is compared with all before it in its <select>, .5 s for so many
MARKUP_WINDOW = 65_536  # characters searched by `looks_like_markup`

_MARKUP = re.compile(
    r"<(?i:!doctype\s+html|/?(?:html|head|body|title|meta|p|br|hr|div|span|a|b|i|em|strong|font|center|img|ul|ol|li"
    r"|dl|table|tbody|tr|td|th|h[1-6]|pre|code|blockquote|form|input|script|style|section|article|frameset)"
    r"(?:\s+[\w:-]+\s*=[^<>]*|\s*/?)>)",
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NEVER_NEST = "area base br col embed hr img input link meta param source track wbr p li dt dd tr td th option"
_FORMATTING = "a b big code em font i nobr s small strike strong tt u"
_LONG_NUMBER = re.compile(r"&#([0-9]{8,}+);?")  # more digits than a character has; Python reads 4,300 at most


LEAST_ATTRIBUTE = 4
"""Bytes: 10,000 names that differ have three letters, and a blank before each."""

STATES = 8
TAG_NAME, BEFORE_NAME, ATTRIBUTE, AFTER_NAME, BEFORE_VALUE, VALUE, DOUBLE_QUOTED, SINGLE_QUOTED = range(STATES)
"""Where a parser of HTML is inside a tag."""


def _pack(names: str) -> NDArray[np.uint64]:
    """Tag names as numbers, the last letter lowest."""
    return np.array([int.from_bytes(name.encode(), "big") for name in names.split()], np.uint64)


_PACKED_NEVER_NEST, _PACKED_FORMATTING = _pack(_NEVER_NEST), _pack(_FORMATTING)
_OPTION = _pack("option")[0]
_NOT_TEXT = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(script|style|noscript|template|head)\b.*?(?:</\1\s*>|\Z)|</?[A-Za-z!?][^>]*(?:>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_UNESCAPED = 1 << 16
"""Characters in which references are resolved at a time: the pieces between them take up to 15 bytes a character."""


def strip_markup(html: str | bytes) -> str:
    """Take the text of an HTML page.

    Args:
        html: the page, text or UTF-8 bytes (bytes save a copy: some 10 % of the time). Lone surrogates are
            read as U+FFFD, NUL characters are dropped, a fragment is read as the body of a page.

    Returns:
        The text nodes of the body in document order, joined by one space, entities resolved, otherwise as
        written. Empty for an empty page and for a page without body. Never raises on any text.

    Cost: linear; 57-74 MB/s on a core of a busy machine, where lxml.html made 23.

    Example:
        >>> strip_markup("<p>one<b>two</b> &amp; <script>x</script>three")
        'one two  &  three'
    """
    data = html if isinstance(html, bytes) else _utf8(html)
    if _is_too_costly(data):
        return _strip_flat(data)
    parser = LexborHTMLParser(data, scripting=True)  # so that <noscript> is one node, also in <head>
    body = parser.body
    if body is None:
        return ""
    for name in HIDDEN:
        for node in parser.tags(name):
            node.decompose()
    return body.text(separator=" ")


def main_text(html: str | bytes) -> str:
    """Take the main text of an HTML page, without navigation, headers, footers and the like.

    Args:
        html: as of `strip_markup`.

    Returns:
        What Resiliparse's rules take for the content, blanks as they are shown; all text, as `strip_markup` gives it,
        where they find nothing, or where the page is nested too deep to be parsed. Never raises on any text.

    Cost: linear; about half the speed of `strip_markup`.

    Example:
        >>> main_text("<nav>Home</nav><main><p>The article itself.</p></main><footer>Contact</footer>")
        'The article itself.'
    """
    data = html if isinstance(html, bytes) else _utf8(html)
    if _is_too_costly(data):
        return _strip_flat(data)
    found = extract_plain_text(
        data.decode("utf-8", "replace").replace("\0", ""),
        main_content=True,
        preserve_formatting=False,
        list_bullets=False,
        alt_texts=False,
    )
    return str(found) if found.strip() else strip_markup(data)


def looks_like_markup(text: str) -> bool:
    """Tell whether `text` holds an HTML doctype or a tag of a common HTML element in its first 65,536
    characters.

    Returns:
        False for empty text, and for signs that only look like tags ("a < b", "<info@example.org>").

    Example:
        >>> looks_like_markup("one<br>two"), looks_like_markup("if a <b and c> d")
        (True, False)
    """
    return _MARKUP.search(text, 0, MARKUP_WINDOW) is not None


def _utf8(text: str) -> bytes:
    """Encode; a lone surrogate becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def _is_too_costly(data: bytes) -> bool:
    """Bound the parser's tree, its depth, formatting elements opened again, and what it compares, by counting tags."""
    if has_too_many(data, is_xml=False):
        return True

    page = np.frombuffer(data, np.uint8)
    if len(data) > LEAST_ATTRIBUTE * MAX_ATTRIBUTES and _most_attributes(page) > MAX_ATTRIBUTES:
        return True
    if _count_starts(page) <= MAX_DEPTH:
        return False
    deepest, formatting, tags, options = _count_nesting(page, _PACKED_NEVER_NEST, _PACKED_FORMATTING, _OPTION)
    return deepest > MAX_DEPTH or formatting * tags > MAX_REOPENED or options > MAX_OPTIONS


@compiled
def _count_starts(data: NDArray[np.uint8]) -> int:
    """Start tags at most: `<` without `/` after it."""
    starts = 0
    for at in range(len(data) - 1):
        starts += (data[at] == ord("<")) & (data[at + 1] != ord("/"))
    return starts


@compiled
def _most_attributes(data: NDArray[np.uint8]) -> int:
    """The most attributes that any tag of a page can have.

    What is a tag depends on comments, scripts and quotation marks before it. So every `<` with a letter after it is
    taken for one: all tags that may be open at a byte are followed at once, one count for each state of the parser.
    """
    counts, after = np.full(STATES, -1, np.int64), np.empty(STATES, np.int64)
    most, is_inside = 0, False
    for at in range(len(data) - 1):
        byte = data[at]
        if is_inside:
            after[:] = -1
            is_inside = False
            for state in range(STATES):
                then = _next_state(state, byte) if counts[state] >= 0 else -1
                if then >= 0:
                    is_new = then == ATTRIBUTE and state != ATTRIBUTE
                    after[then] = max(after[then], counts[state] + is_new)
                    is_inside = True
            counts[:] = after
            most = max(most, counts[ATTRIBUTE])
        if byte == ord("<") and ord("a") <= data[at + 1] | 0x20 <= ord("z"):
            counts[TAG_NAME] = max(counts[TAG_NAME], 0)
            is_inside = True
    return int(most)


@compiled
def _next_state(state: int, byte: int) -> int:
    """The parser's state inside a tag after one more byte; -1 where the tag ends."""
    is_blank = byte == ord(" ") or 9 <= byte <= 13  # noqa: PLR2004 - from tab to return
    if state in (DOUBLE_QUOTED, SINGLE_QUOTED):
        is_closed = byte == (ord('"') if state == DOUBLE_QUOTED else ord("'"))
        then = BEFORE_NAME if is_closed else state
    elif byte == ord(">"):
        then = -1
    elif state == BEFORE_VALUE and byte in (ord('"'), ord("'")):
        then = DOUBLE_QUOTED if byte == ord('"') else SINGLE_QUOTED
    elif state == BEFORE_VALUE and is_blank:
        then = BEFORE_VALUE
    elif state in (BEFORE_VALUE, VALUE):
        then = BEFORE_NAME if is_blank else VALUE
    elif is_blank and state in (ATTRIBUTE, AFTER_NAME):
        then = AFTER_NAME
    elif is_blank or byte == ord("/"):
        then = BEFORE_NAME
    elif byte == ord("=") and state in (ATTRIBUTE, AFTER_NAME):
        then = BEFORE_VALUE
    else:
        then = TAG_NAME if state == TAG_NAME else ATTRIBUTE
    return then


@compiled
def _count_nesting(
    data: NDArray[np.uint8], never_nest: NDArray[np.uint64], formatting: NDArray[np.uint64], option: np.uint64
) -> tuple[int, int, int, int]:
    """The deepest nesting, the most open formatting elements, the tags and the options of a page.

    A name is packed into 64 bits, its letters in lower case; one longer than eight is none of those asked for.
    """
    depth = deepest = opened = most_opened = tags = options = 0
    at = 0
    while at < len(data) - 1:
        if data[at] != ord("<"):
            at += 1
            continue
        at += 1
        is_closing = data[at] == ord("/")
        at += is_closing
        name, length = np.uint64(0), 0
        while at < len(data):
            letter = data[at] | 0x20
            is_letter = ord("a") <= letter <= ord("z") and data[at] >= ord("A")
            if not is_letter and not (length and ord("0") <= data[at] <= ord("9")):
                break
            name = (name << np.uint64(8)) | np.uint64(letter if is_letter else data[at])
            length += 1
            at += 1
        tags += length > 0
        options += name == option
        if length == 0 or (length <= 8 and np.any(never_nest == name)):  # noqa: PLR2004
            continue
        step = -1 if is_closing else 1
        depth = max(depth + step, 0)
        deepest = max(deepest, depth)
        if length <= 8 and np.any(formatting == name):  # noqa: PLR2004
            opened = max(opened + step, 0)
            most_opened = max(most_opened, opened)
    return deepest, most_opened, tags, options


def _strip_flat(html: bytes) -> str:
    """Replace tags, comments and hidden elements by blanks, then resolve entities.

    Memory: some 8 bytes a byte at most, whatever the page; so no list of its pieces is made.
    """
    kept, at = bytearray(), 0
    for hidden in _NOT_TEXT.finditer(html):
        kept += html[at : hidden.start()]
        kept += b" "
        at = hidden.end()
    kept += html[at:]
    return _unescape(kept.decode("utf-8", "replace")).replace("\0", "")


def _unescape(text: str) -> str:
    """Resolve references, part by part: each part but the first begins with a `&`, so none is cut."""
    if "&" not in text:
        return text
    resolved, at = io.StringIO(), 0
    while at < len(text):
        end = text.find("&", at + _UNESCAPED)
        end = end if end >= 0 else len(text)
        resolved.write(html_entities.unescape(_LONG_NUMBER.sub(_shortened, text[at:end])))
        at = end
    return resolved.getvalue()


def _shortened(reference: re.Match[str]) -> str:
    """A numeric reference without leading zeros; U+FFFD for a number that no character has."""
    digits = reference[1].lstrip("0") or "0"
    return f"&#{digits};" if len(digits) <= 7 else "\ufffd"  # noqa: PLR2004 - 1114111 is the last character
