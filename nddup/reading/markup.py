"""HTML -> text, and whether a text is HTML at all.

    strip_markup          page   -> the text of its body without hidden elements (HIDDEN)
    main_text             page   -> its main text, without navigation and other boilerplate
    is_page_or_fragment   text   -> whether its markup is to be removed
    may_begin_tags        bytes  -> at which `<` a tag may begin, so that most texts need no closer look
    BLOCK, INLINE                the elements that divide words in pages, and those that do not in other XML

The parser is Lexbor (through selectolax). It follows a browser's algorithm, so broken pages give the text that a
browser would show. If a page would be too costly to parse (`page_limits`), a regular expression removes its tags. On
1,000 ordinary pages that gave the same words as the parser.
"""

import html as html_entities
import io
import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from resiliparse.extract.html2text import extract_plain_text
from selectolax.lexbor import LexborHTMLParser

from nddup.reading.page_limits import is_too_costly

WINDOW: Final = 65_536
"""Characters of a text that are examined."""

WORDS_PER_TAG: Final = 30
"""Maximum number of words per tag of a fragment that neither begins nor ends with a tag."""

SIGNS_PER_WORD: Final = 0.3
"""Maximum number of signs of code per word of such a fragment: prose has hardly any, source files one or more."""

_VOID = "area base br col embed hr img input link meta source track wbr"
_OPTIONAL = "p li dt dd tr td th thead tbody tfoot colgroup option"
_CLOSED = (
    "a abbr acronym address article aside b big blockquote body button caption center cite code del details div dl em"
    " fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header html i iframe ins kbd label main mark"
    " nav nobr noscript ol pre q s samp script section select small span strike strong style sub summary sup svg table"
    " template textarea title tt u ul var video"
)
_HIDDEN: Final = frozenset(("script", "style", "template", "noscript", "head"))
_UNCLOSED: Final = frozenset(f"{_VOID} {_OPTIONAL} html body head".split())

_BLANKS = re.compile(r"[\s\ufeff]*+")

_PAGE = re.compile(r"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)

_SIGNS = re.compile(r"[=(){}\[\];_\\]")

_QUOTES = frozenset("\"'`(\u201c\u201d\u2018\u2019")

_BLOCK = """
address article aside audio blockquote br button caption center col colgroup dd desc details dialog dir div dl dt
fieldset figcaption figure footer foreignobject form frame frameset h1 h2 h3 h4 h5 h6 header hgroup hr iframe input
legend li listing main math menu mi mn mo ms mtd mtext nav noembed noframes object ol optgroup option p plaintext pre
rp rt search section select summary svg table tbody td text textarea textpath tfoot th thead title tr ul video xmp
"""

BLOCK: Final = tuple(_BLOCK.split())
"""Elements before and after which a word ends: blocks, parts of tables and lists, line breaks, fields, media.

Of formulas, each number, name and sign is apart: a fraction of 1 and 2 is not 12.

In pages every element is inline unless it is in BLOCK; in other XML an element divides words unless it is in INLINE:
the names of a title or a paragraph are not known.

Source: https://html.spec.whatwg.org/multipage/rendering.html"""

_INLINE = """
a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q s samp small span strike strong sub
sup tt u var wbr
bold italic monospace overline roman sans-serif sc underline styled-content named-content ext-link xref
hi emph emphasis subscript superscript foreign choice sic corr orig reg expan persname placename
"""

INLINE: Final = frozenset(_INLINE.split())
"""Local names of XML elements, in lower case, inside which a word goes on.

They are those of HTML, and the inline elements of JATS, TEI and DocBook."""

HIDDEN = ("script", "style", "noscript", "template")

_SHADOW = b"shadowroot"

_TEMPLATE = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(script|style|noscript|textarea|title|xmp|iframe)\b.*?(?:</\1\b|\Z)"
    rb"|<(?P<start>template)(?=[\s/>])"
    rb"(?P<inside>(?:[^>\"']|\"[^\"]*+\"?+|'[^']*+'?+)*+)>|</(?P<end>template)(?=[\s/>])",
    re.DOTALL | re.IGNORECASE,
)

_IS_SHADOW = re.compile(rb"[\s\"'/]shadowroot(?:mode)?\s*=\s*[\"']?(?:open|closed)\b", re.IGNORECASE)

_SURROGATE = re.compile("[\ud800-\udfff]")

_LONG_NUMBER = re.compile(r"&#([0-9]{8,}+);?")  # longer than any code point; Python reads at most 4,300 digits

_NOT_TEXT = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(script|style|noscript|head)\b.*?(?:</\1\s*>|\Z)"
    rb"|</?(?:(?P<template>template)(?=[\s/>])|[A-Za-z!?])[^>]*(?:>|\Z)",
    re.DOTALL | re.IGNORECASE,
)

_UNESCAPED = 1 << 16
"""Characters whose references are resolved at a time: while this is done, they take up to 15 bytes per character."""

_DELIMITER, _DIGIT, _ANY = 27, 28, 29


def _one_of(names: str) -> str:
    """Return a pattern of names, by their first letters: `re` tries a choice of a hundred names one by one."""
    by_letter = groupby(sorted(names.split()), key=lambda name: name[0])
    return "|".join(f"{letter}(?:{'|'.join(name[1:] for name in some)})" for letter, some in by_letter)


_TAG = (
    rf"(?P<end>/?)(?P<name>{_one_of(f'{_VOID} {_OPTIONAL} {_CLOSED}')})"
    r"(?:\s+[\w:@.-]+\s*=[^<>]*|(?:\s+(?:nowrap|noshade|checked|selected|disabled|compact|multiple|hidden|async|defer))*"
    r"\s*/?)>"
)
# Both begin with a plain character, for which Python searches much faster than for a choice.
_ANY_TAG = re.compile(rf"<{_TAG}", re.IGNORECASE)
_TOKEN = re.compile(rf"<(?:(?P<comment>!--)|{_TAG}|(?=[A-Za-z/!?]))", re.IGNORECASE)


class _Tags(NamedTuple):
    """What the tags of a text are.

    Attributes:
        tags: tags of HTML.
        others: what only looks like a tag.
        unmatched: start tags without an end, and ends without a start, of elements that must be closed.
        pairs: elements that are closed.
        apart: tags with a blank on both sides, as in "the <br> tag".
        quoted: tags beside a quotation mark.
        hidden: words in scripts, styles and the like.
        outside: the pieces of text outside of tags, comments and what is hidden.
        begins: whether the text begins with a start tag.
        ends: whether it ends with a tag, without a blank before it.
    """

    tags: int
    others: int
    unmatched: int
    pairs: int
    apart: int
    quoted: int
    hidden: int
    outside: list[str]
    begins: bool
    ends: bool

    def words(self) -> int:
        """Count the words outside."""
        return sum(len(piece.split()) for piece in self.outside)

    def signs(self) -> int:
        """Count the signs of code outside."""
        return sum(len(_SIGNS.findall(piece)) for piece in self.outside)


def _table_of_beginnings() -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the kind of each byte, and which three kinds, after `<` or `</`, may begin what `may_begin_tags` finds."""
    kinds = np.zeros(256, np.uint8)
    for code in range(128):
        kinds[code] = _DELIMITER if chr(code).isspace() or chr(code) in "/>" else 0
    for letter in range(26):
        kinds[[ord("a") + letter, ord("A") + letter]] = letter + 1
    kinds[[ord(digit) for digit in "123456"]] = _DIGIT
    kinds[[ord(mark) for mark in "!?"]] = kinds[128:] = _ANY
    begins = np.zeros((32, 32, 32), np.bool_)
    begins[_ANY] = begins[:, _ANY] = begins[:, :, _ANY] = True
    for name in f"{_VOID} {_OPTIONAL} {_CLOSED}".split():
        codes = [*kinds[[ord(letter) for letter in name[:3]]].tolist(), _DELIMITER, slice(None)]
        begins[tuple(codes[:3])] = True
    return kinds, begins


_KINDS, _BEGINS = _table_of_beginnings()


def may_begin_tags(data: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return at which places of `<` in UTF-8 a tag, a comment or a declaration may begin, by the next three bytes.

    Where none does, a text is no page and no fragment: `is_page_or_fragment` need not be asked.

    Cost: some 20 ns a place, a tenth of what a regular expression takes.

    Example:
        >>> may_begin_tags(np.frombuffer(b"a < b, Vec<T>, </P>, <h2 id=1>", np.uint8), np.array([2, 10, 15, 21]))
        array([False, False,  True,  True])
    """
    last = data.size - 1
    after = places + 1
    after += data[np.minimum(after, last)] == ord("/")
    first, second, third = (_KINDS[data[np.minimum(after + k, last)]] for k in range(3))
    return np.asarray(_BEGINS[first, second, third])


def is_page_or_fragment(text: str) -> bool:
    """Return whether a text is an HTML page or a fragment of one, judged by its first WINDOW characters.

    A text that mentions tags is no page: from a mentioned `<script>` on everything would count as a script, and posts
    with different words would become equal. A text is a page if it begins as one, and a fragment if it begins with an
    element or has tags throughout, all of them closed. What only looks like a tag (`Vec<T>`, `<info@example.org>`,
    `<I>` in a ticker that is never closed), tags in quotation marks, and code around tags speak against it.

    Returns:
        The answer; False for empty text, and for text that mentions tags or has what resembles them.

    Cost: linear; a search for `<` or for a tag where there is none.

    Example:
        >>> is_page_or_fragment("<p>one <i>two</i>"), is_page_or_fragment("the <script> tag of Vec<T>")
        (True, False)
    """
    if text.find("<", 0, WINDOW) < 0:
        return False
    if _begins_as_page(text[:WINDOW]):
        return True
    has_tag = _ANY_TAG.search(text, 0, WINDOW) is not None
    found = _count_tags(text[:WINDOW], is_cut=len(text) > WINDOW) if has_tag else None
    if found is None or found.tags == 0:
        return False

    has_other = found.others * 10 > found.tags * found.begins or found.unmatched * 5 > found.tags
    if has_other or (found.hidden and found.hidden > found.words()):
        return False
    is_attached = found.apart < found.tags
    if found.begins:
        return is_attached and (found.pairs > 0 or found.apart * 2 <= found.tags)
    return (
        found.apart * 2 <= found.tags
        and found.quoted * 10 <= found.tags
        and (found.ends or found.words() <= WORDS_PER_TAG * found.tags)
        and found.signs() <= SIGNS_PER_WORD * found.words()
    )


def _begins_as_page(text: str) -> bool:
    """Return whether only blanks, an XML declaration and whole comments precede the root of a page. Linear."""
    at = _past_blanks(text, 0)
    if text.startswith("<?xml", at) and (end := text.find(">", at)) > 0:
        at = _past_blanks(text, end + 1)
    while text.startswith("<!--", at) and (end := text.find("-->", at + 4)) > 0:
        at = _past_blanks(text, end + 3)
    return _PAGE.match(text, at) is not None


def _past_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _count_tags(text: str, *, is_cut: bool) -> _Tags | None:  # noqa: C901 - one pass over the tags
    """Count the tags of a text; None if a comment or a hidden element is never closed: then it is only mentioned."""
    opened: Counter[str] = Counter()
    tags = others = unmatched = pairs = apart = quoted = hidden = at = 0
    begins, before, lowered = None, " ", ""
    outside: list[str] = []
    while (token := _TOKEN.search(text, at)) is not None:
        outside.append(text[at : token.start()])
        start, at = token.start(), token.end()
        if token["comment"] is not None:
            end = text.find("-->", at)
            if end < 0:
                return None
            at = end + 3
            continue
        if token["name"] is None:
            others += 1
            continue

        name, is_end = token["name"].lower(), bool(token["end"])
        if begins is None:
            begins = not is_end and not any(map(str.strip, outside))
        tags += 1
        before, after = text[start - 1 : start] or " ", text[at : at + 1] or " "
        apart += before.isspace() and after in (" ", "\t", ",", ".", "?", "")
        quoted += before in _QUOTES or after in _QUOTES
        if name in _HIDDEN and not is_end:
            lowered = lowered or text.lower()
            end = lowered.find(f"</{name}", at)
            if end < 0 and not is_cut:
                return None
            end = end if end >= 0 else len(text)
            hidden += len(text[at:end].split())
            at = max(text.find(">", end) + 1, end) if end < len(text) else end
        elif name not in _UNCLOSED:
            if not is_end:
                opened[name] += 1
            elif opened[name] > 0:
                opened[name] -= 1
                pairs += 1
            else:
                unmatched += 1
        elif is_end:
            pairs += 1
    rest = text[at:]
    outside.append(rest)
    unmatched += 0 if is_cut else opened.total()
    ends = tags > 0 and not rest.strip() and not before.isspace()
    return _Tags(tags, others, unmatched, pairs, apart, quoted, hidden, outside, begins is True, ends)


def _any_of(names: Sequence[str]) -> str:
    """Return a pattern of names in any case that decides letter by letter, three times as fast as alternatives."""
    by_first = {name[:1]: [other[1:] for other in names if other[:1] == name[:1]] for name in sorted(names)}
    ways = [f"[{first}{first.upper()}]{_any_of(rest)}" for first, rest in by_first.items() if first]
    return f"(?:{'|'.join(ways)}){'?' if '' in by_first else ''}" if ways else ""


_BLOCK_TAG = re.compile(
    rf"<(?=/?{_any_of(BLOCK)}[\s/>]|{_any_of(['tspan'])}(?=[\s/])[^<>]*[\s\"'/](?:[xXyY]|[dD][yY])\s*=)".encode()
)
"""Where a word ends: a tag of a block, and a part of a drawn text that has a place of its own, as a line has."""


def strip_markup(html: str | bytes) -> str:
    r"""Return the text of an HTML page.

    A word goes on through inline elements, comments and `<wbr>`, and ends at blocks, as in a browser's `innerText`:
    before each tag of a block (BLOCK) a line feed is put into the page, and the text nodes are joined as they are.

    Args:
        html: the page, as text or as UTF-8 bytes (bytes save a copy, some 10 % of the time). Lone surrogates are read
            as U+FFFD, NUL characters are dropped, and a fragment is read as the body of a page.

    Returns:
        The text nodes of the body in document order, with references resolved and a line feed before each tag of a
        block, otherwise unchanged. Empty for an empty page and for a page without a body. Never raises, whatever the
        text.

    Cost: linear; 46 MB/s on one core of a busy machine, where the parser alone reaches 81.

    Example:
        >>> strip_markup("one<p>t<b>w</b>o &amp; <script>x</script>three")
        'one\ntwo & three'
    """
    data = _open_shadows(html if isinstance(html, bytes) else _utf8(html))
    if is_too_costly(data):
        return _strip_flat(data)

    parser = LexborHTMLParser(
        _BLOCK_TAG.sub(b"\n<", data), scripting=True
    )  # with scripting, <noscript> is one node, also in <head>
    body = parser.body
    if body is None:
        return ""

    for name in HIDDEN:
        for node in parser.tags(name):
            node.decompose()
    return body.text()


def main_text(html: str | bytes) -> str:
    """Return the main text of an HTML page, without navigation, headers, footers and the like.

    Args:
        html: as for `strip_markup`.

    Returns:
        The text that Resiliparse's rules select as content, with blanks as a browser shows them. If they select
        nothing, or the page is too costly to parse, all text as from `strip_markup`. Never raises, whatever the text.

    Cost: linear; about half the speed of `strip_markup`.

    Example:
        >>> main_text("<nav>Home</nav><main><p>The article itself.</p></main><footer>Contact</footer>")
        'The article itself.'
    """
    data = _open_shadows(html if isinstance(html, bytes) else _utf8(html))
    if is_too_costly(data):
        return _strip_flat(data)

    found = extract_plain_text(
        data.decode("utf-8", "replace").replace("\0", ""),
        main_content=True,
        preserve_formatting=False,
        list_bullets=False,
        alt_texts=False,
    )
    return str(found) if found.strip() else strip_markup(data)


def _open_shadows(html: bytes) -> bytes:
    """Rename templates that are declared as shadow roots, which browsers show, unlike other templates. Linear."""
    if _SHADOW not in html.lower():
        return html
    is_shadow: list[bool] = []

    def rename(found: re.Match[bytes]) -> bytes:
        if found["start"]:
            is_shadow.append(_IS_SHADOW.search(found["inside"]) is not None)
            return b"<shadow-root>" if is_shadow[-1] else found[0]
        return b"</shadow-root" if found["end"] and is_shadow and is_shadow.pop() else found[0]

    return _TEMPLATE.sub(rename, html)


def _utf8(text: str) -> bytes:
    """Encode as UTF-8; a lone surrogate becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def _strip_flat(html: bytes) -> str:
    """Remove tags, comments and hidden elements, then resolve references; a line feed stays for each tag of a block.

    Memory: at most some 8 bytes per byte of the page; a list of its pieces could take far more.
    """
    kept, at, depth = bytearray(), 0, 0  # depth: of templates in templates
    for hidden in _NOT_TEXT.finditer(html):
        kept += b"" if depth else html[at : hidden.start()]
        if hidden["template"]:
            depth = max(depth - 1, 0) if html.startswith(b"/", hidden.start() + 1) else depth + 1
        elif not depth and _BLOCK_TAG.match(html, hidden.start()):
            kept += b"\n"
        at = hidden.end()
    kept += b"" if depth else html[at:]
    return _unescape(kept.decode("utf-8", "replace")).replace("\0", "")


def _unescape(text: str) -> str:
    """Resolve references, part by part. Every part but the first begins with `&`, so no reference is cut."""
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
    """Shorten a numeric reference by its leading zeros; U+FFFD for a number beyond the last character."""
    digits = reference[1].lstrip("0") or "0"
    return f"&#{digits};" if len(digits) <= 7 else "\ufffd"  # noqa: PLR2004 - 1114111 is the last character
