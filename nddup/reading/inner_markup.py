"""Markup within a text of which nothing says whether it is a page: each tag is judged alone.

    read_unknown     text  -> its text, and whether it was a page, or only held tags
    may_hold_markup  text  -> whether `read_unknown` may change it
    may_begin_markup bytes -> at which `<` and `&` markup may begin, so that most texts need no closer look

A text that begins as a page is one, and read by a browser's rules. Of any other text the known tags of HTML, comments
and character references go, wherever they stand, by what they are and the characters beside them. So one more word or
tag changes nothing but itself, and near-copies stay near. No word is lost: what stands in a script stays.
"""

import html as html_entities
import re
from collections.abc import Callable
from html.entities import html5
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.reading.markup import BLOCK, strip_markup

VOID: Final = "area base br col embed hr img input link meta source track wbr"
CLOSED: Final = (
    "a abbr acronym address article aside b big blockquote body button caption center cite code colgroup dd del details"
    " div dl dt em fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header html i iframe ins kbd"
    " label li main mark nav nobr noscript ol optgroup option p pre q s samp script section select small span strike"
    " strong style sub summary sup svg table tbody td template textarea tfoot th thead title tr tt u ul var video"
)
NAMES: Final = tuple(f"{VOID} {CLOSED}".split())

_LAYOUT = """
article aside blockquote br center dd div dl dt figure footer h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre table
tbody td tfoot th thead tr ul wbr
"""

LAYOUT: Final = frozenset(_LAYOUT.split())
"""Elements whose tags are markup also between blanks, where those of others are names: `cp <source>`, "the <b> tag"."""

_BLOCK: Final = frozenset(BLOCK)

_BLANKS = re.compile(r"[\s\ufeff]*+")

_PAGE = re.compile(r"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE)

_PAGE_INSIDE = re.compile(r"<(?:!doctype\s+html[\s>]|html\b[^<>]*+>\s*+<(?:head|body)[\s>])", re.IGNORECASE)

_REFERENCE = re.compile("&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

_QUOTES = frozenset("\"'`\u201c\u201d\u2018\u2019")

_AFTER_NAME = frozenset(",.;:!?)]>")

_DELIMITER, _DIGIT, _ANY = 27, 28, 29


def _one_of(names: tuple[str, ...]) -> str:
    """Return a pattern of names, by their first letters: `re` tries a choice of a hundred names one by one."""
    by_letter = groupby(sorted(names), key=lambda name: name[0])
    return "|".join(f"{letter}(?:{'|'.join(name[1:] for name in some)})" for letter, some in by_letter)


_TAG = re.compile(
    rf"<(?:!--[^<>]*+(?<=--)|!doctype\b[^<>]*+|(?P<end>/?)(?P<name>{_one_of(NAMES)})"
    r"(?:(?P<attributes>\s+[A-Za-z_][\w:.-]*\s*=[^<>{}]*)"
    r"|(?:\s+(?:nowrap|noshade|checked|selected|disabled|compact|multiple|hidden|async|defer))*\s*/?))>",
    re.IGNORECASE,
)


class UnknownText(NamedTuple):
    """The text of a text of unknown kind.

    Attributes:
        text: without markup; the same object if nothing was changed.
        is_page: whether it begins as a page.
        has_page_inside: whether a page begins after other text: its scripts and hidden elements stay.
    """

    text: str
    is_page: bool
    has_page_inside: bool


def read_unknown(text: str, strip: Callable[[str], str] = strip_markup) -> UnknownText:
    r"""Return the text of a text that may be a page, or hold markup.

    Args:
        text: the text.
        strip: what makes the text of a page.

    Cost: linear. A search for `<` and one for `&` where there is no markup; else some 1 us a tag.

    Example:
        >>> read_unknown("<p>one <i>tw</i>o &amp; the <b> tag of List<T>").text
        '\none two & the <b> tag of List<T>'
    """
    if begins_as_page(text):
        return UnknownText(strip(text), is_page=True, has_page_inside=False)
    without = _TAG.sub(_of_tag, text) if "<" in text else text
    has_page_inside = without != text and _PAGE_INSIDE.search(text) is not None
    without = _REFERENCE.sub(_of_reference, without) if "&" in without else without
    return UnknownText(text if without == text else without, is_page=False, has_page_inside=has_page_inside)


def may_hold_markup(text: str) -> bool:
    """Return whether there may be markup in a text; where there is none, `read_unknown` does not change it."""
    return _TAG.search(text) is not None or _REFERENCE.search(text) is not None or begins_as_page(text)


def begins_as_page(text: str) -> bool:
    """Return whether only blanks, an XML declaration and whole comments precede the root of a page. Linear."""
    at = _past_blanks(text, 0)
    if not text.startswith("<", at):
        return False
    if text.startswith("<?xml", at) and (end := text.find(">", at)) > 0:
        at = _past_blanks(text, end + 1)
    while text.startswith("<!--", at) and (end := text.find("-->", at + 4)) > 0:
        at = _past_blanks(text, end + 3)
    return _PAGE.match(text, at) is not None


def _past_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _of_tag(tag: re.Match[str]) -> str:
    """Return what stands in the place of a tag: itself, if it is only named."""
    if not tag["name"]:
        return ""
    name = tag["name"].lower()
    if not tag["attributes"] and _is_named(tag, name):
        return tag[0]
    return "\n" if name in _BLOCK else ""


def _is_named(tag: re.Match[str], name: str) -> bool:
    """Return whether a tag without attributes is a word of the text, by the characters beside it.

    So is a tag in quotation marks, and one that clings to no word: `<b>` before a blank, `</b>` after one, `List<I>`.
    A blank and an end of the text count the same, so that words on either side change nothing.
    """
    text, (start, end) = tag.string, tag.span()
    before, after = text[start - 1 : start] or " ", text[end : end + 1] or " "
    if (before in _QUOTES and after in _QUOTES) or (after if tag["end"] else before) == "`":
        return True
    if name in LAYOUT:
        return False
    is_apart = before.isspace() or (not tag["end"] and before.isalnum())
    return is_apart and (after.isspace() or after in _AFTER_NAME)


def _of_reference(reference: re.Match[str]) -> str:
    """Return the characters that a reference stands for; of an unknown name, the reference."""
    written = reference[0]
    return html_entities.unescape(written) if written[1] == "#" or written[1:] in html5 else written


def _table_of_beginnings() -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the kind of each byte, and which three kinds, after `<` or `</`, may begin what is markup."""
    kinds = np.zeros(256, np.uint8)
    for code in range(128):
        kinds[code] = _DELIMITER if chr(code).isspace() or chr(code) in "/>" else 0
    for letter in range(26):
        kinds[[ord("a") + letter, ord("A") + letter]] = letter + 1
    kinds[[ord(digit) for digit in "123456"]] = _DIGIT
    kinds[[ord(mark) for mark in "!?"]] = kinds[128:] = _ANY
    begins = np.zeros((32, 32, 32), np.bool_)
    begins[_ANY] = begins[:, _ANY] = begins[:, :, _ANY] = True
    for name in NAMES:
        codes = [*kinds[[ord(letter) for letter in name[:3]]].tolist(), _DELIMITER, slice(None)]
        begins[tuple(codes[:3])] = True
    return kinds, begins


_KINDS, _BEGINS = _table_of_beginnings()


def may_begin_markup(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the places of `<` and `&` in UTF-8 at which a tag, a comment or a reference may begin, ascending.

    A tag is judged by the next three bytes, a reference by the next two.

    Cost: two passes over the bytes, and some 20 ns a place, a tenth of what a regular expression takes.

    Example:
        >>> may_begin_markup(np.frombuffer(b"a < b, Vec<T>, </P>, <h2 id=1>, a && b, &amp;", np.uint8))
        array([15, 21, 40])
    """
    last = data.size - 1
    places = np.flatnonzero(data == ord("<"))
    after = places + 1
    after += data[np.minimum(after, last)] == ord("/")
    first, second, third = (_KINDS[data[np.minimum(after + k, last)]] for k in range(3))
    tags = places[_BEGINS[first, second, third]]

    places = np.flatnonzero(data == ord("&"))
    if not places.size:
        return tags
    first, second = (data[np.minimum(places + k, last)] for k in (1, 2))
    is_letter = (_KINDS[first] >= 1) & (_KINDS[first] < _DELIMITER)
    references = places[(is_letter | (first == ord("#"))) & (second > ord("&"))]
    return np.sort(np.concatenate([tags, references]))
