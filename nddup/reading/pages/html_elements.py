"""The HTML elements that `plain_pages` knows, as tables for its kernels.

A name of at most 8 letters is one number, the last letter in its lowest byte. Names are looked up in hash tables with
open addressing.

Source: https://html.spec.whatwg.org/multipage/parsing.html#parsing-main-inbody
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import HASH_MULTIPLIER, compiled

NAME_BYTES = 8
"""Longest name, in bytes, that fits into a 64-bit number."""


class Lookup(NamedTuple):
    """A hash table with open addressing, at most half full: names as numbers (0 for a free slot), and their values."""

    keys: NDArray[np.int64]
    values: NDArray[np.int64]


KINDS = 32
(
    ORDINARY, REFUSED, HTML, HEAD, BODY, HEAD_VOID, HIDDEN, TITLE, VOID, RULE, BLOCK, DIVISION, LIST, HEADING,
    PARAGRAPH, LIST_ITEM, TERM, PRE, FORM, FORMATTING, ANCHOR, TABLE, SECTION, ROW, CELL, CAPTION, COLUMNS, COLUMN,
    BUTTON, FRAME, SVG, SHAPE,
) = range(KINDS)  # fmt: skip
"""Kinds of elements, by how the parser handles them. Every name that is not listed is ORDINARY."""

_NAMES = {
    REFUSED: "applet dialog embed frame frameset image isindex keygen listing marquee math menuitem nobr "
    "noembed noframes object optgroup option param rb rp rt rtc ruby search select source template "
    "textarea track wbr xmp",
    HTML: "html",
    HEAD: "head",
    BODY: "body",
    HEAD_VOID: "base basefont bgsound link meta",
    HIDDEN: "script style noscript",
    TITLE: "title",
    VOID: "area br img input",
    RULE: "hr",
    BLOCK: "article aside center details dir dl fieldset figure footer header hgroup main menu nav section summary",
    DIVISION: "address div",
    LIST: "ol ul",
    HEADING: "h1 h2 h3 h4 h5 h6",
    PARAGRAPH: "p",
    LIST_ITEM: "li",
    TERM: "dd dt",
    PRE: "pre",
    FORM: "form",
    FORMATTING: "b big code em font i s small strike strong tt u",
    ANCHOR: "a",
    TABLE: "table",
    SECTION: "tbody tfoot thead",
    ROW: "tr",
    CELL: "td th",
    CAPTION: "caption",
    COLUMNS: "colgroup",
    COLUMN: "col",
    BUTTON: "button",
    FRAME: "iframe",
    SVG: "svg",
    SHAPE: "circle defs ellipse g line mask path polygon polyline rect stop symbol use",
}


def pack(name: str) -> int:
    """Return a name of at most 8 letters as a number."""
    return int.from_bytes(name.encode("ascii"), "big")


def table_of(values: Mapping[str, int], bits: int) -> Lookup:
    """Make the table of these values, with 2**bits slots."""
    keys, found = np.zeros(1 << bits, np.int64), np.zeros(1 << bits, np.int64)
    for name, value in values.items():
        at = (pack(name) * int(HASH_MULTIPLIER)) % 2**64 >> (64 - bits)
        while keys[at]:
            at = (at + 1) % len(keys)
        keys[at], found[at] = pack(name), value
    return Lookup(keys, found)


_BITS = 8
_ELEMENTS, _KINDS = table_of({name: kind for kind, names in _NAMES.items() for name in names.split()}, _BITS)
"""The kinds of the listed names."""


@compiled
def kind_of(name: int) -> int:
    """Return the kind of an element by its name; ORDINARY for a name that is not listed."""
    return find(_ELEMENTS, _KINDS, name, 64 - _BITS)


@compiled
def find(keys: NDArray[np.int64], values: NDArray[np.int64], name: int, shift: int) -> int:
    """Look up a name in a table of 2**(64 - shift) slots from `table_of`; 0 if it is not there."""
    at = np.int64((np.uint64(name) * HASH_MULTIPLIER) >> np.uint64(shift))
    while keys[at] != name:
        if keys[at] == 0:
            return 0
        at = (at + 1) & (len(keys) - 1)
    return values[at]  # type: ignore[no-any-return]
