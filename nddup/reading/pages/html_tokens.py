"""The tokens of HTML, one at a time: text, comments (with DOCTYPE and instructions), start tags, end tags.

All kernels take the page and a place in it. They return REFUSE if the page ends inside a token, or if the end of the
token depends on the parser's rules for errors.

Source: https://html.spec.whatwg.org/multipage/parsing.html#tokenization
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.reading.pages.html_elements import BLOCK, NAME_BYTES, REFUSED, kind_of, pack

REFUSE: Final = -1
"""Returned instead of a place or a number: the page is not plain."""

TEXT, COMMENT, START_TAG, END_TAG = range(4)
"""Kinds of tokens."""

Bytes = NDArray[np.uint8]

_LESS, _GREATER, _SLASH, _BANG, _QUESTION, _DASH, _EQUALS = (ord(sign) for sign in "<>/!?-=")
_QUOTE, _APOSTROPHE = (ord(sign) for sign in "\"'")
_LINE, _RETURN = 10, 13
_SCRIPT = pack("script")
_LONG = tuple((pack(name[:8]), pack(name[-8:])) for name in ("blockquote", "figcaption"))
_LONG_LENGTH = 10


def _classes_of(*classes: str) -> NDArray[np.uint8]:
    """Return the classes of each byte, one bit per class, (256,) uint8."""
    bits = np.zeros(256, np.uint8)
    for number, signs in enumerate(classes):
        bits[list(signs.encode())] |= np.uint8(1 << number)
    return bits


_BLANKS = " \t\n\f\r"
BYTE_CLASSES = _classes_of(_BLANKS, _BLANKS + "/>", _BLANKS + "/>=", _BLANKS + ">", _BLANKS + "/")
IS_BLANK, _ENDS_TAG_NAME, _ENDS_NAME, _ENDS_VALUE, _IS_BETWEEN = (np.uint8(1 << bit) for bit in range(5))
"""Classes of bytes: blanks; bytes that end a tag name, an attribute name, or an unquoted value; bytes that may stand
between attributes."""


class Tag(NamedTuple):
    """A tag: its element, whether it ends in `/>`, and where it ends.

    `kind` is REFUSED for most long names; `end` is REFUSE for these, and if the page ends inside the tag.
    """

    kind: int
    name: int
    is_empty: bool
    end: int


@compiled
def token_at(page: Bytes, at: int) -> int:
    """Return the kind of the token that begins at a byte."""
    if page[at] != _LESS or at + 1 == len(page):
        return TEXT
    sign = page[at + 1]
    if sign == _SLASH:
        return END_TAG
    if sign in (_BANG, _QUESTION):
        return COMMENT
    return START_TAG if ord("a") <= sign | 0x20 <= ord("z") else TEXT


@compiled
def read_tag(page: Bytes, at: int) -> Tag:
    """Read the tag whose name begins at a place."""
    name, first, length = 0, 0, 0
    refused = Tag(REFUSED, name, is_empty=False, end=REFUSE)
    if at == len(page) or not ord("a") <= page[at] | 0x20 <= ord("z"):
        return refused
    while at < len(page) and not BYTE_CLASSES[page[at]] & _ENDS_TAG_NAME:
        byte = page[at]
        letter = byte | 0x20 if ord("A") <= byte <= ord("Z") else byte
        name = (name << 8) | letter
        length += 1
        first = name if length == NAME_BYTES else first
        at += 1
    at, is_empty = _after_attributes(page, at)
    if length > NAME_BYTES:  # two long names are common; their numbers differ from all packed names
        for number in range(len(_LONG)):
            if length == _LONG_LENGTH and (first, name) == _LONG[number]:
                return Tag(BLOCK, number, is_empty, at)
        return refused
    return Tag(kind_of(name), name, is_empty, at)


@compiled
def _after_attributes(page: Bytes, at: int) -> tuple[int, bool]:
    """Find the end of a tag whose attributes begin at a place, and whether it ends in `/>`; REFUSE if it has none."""
    slash = -1
    while at < len(page):
        if page[at] == _GREATER:
            return at + 1, slash == at - 1
        if BYTE_CLASSES[page[at]] & _IS_BETWEEN:
            slash = at if page[at] == _SLASH else slash
            at += 1
            continue

        # A name, whose first byte may be anything, then perhaps a value.
        at += 1
        while at < len(page) and not BYTE_CLASSES[page[at]] & _ENDS_NAME:
            at += 1
        at = _after_blanks(page, at)
        if at == len(page) or page[at] != _EQUALS:
            continue
        at = _after_blanks(page, at + 1)
        if at < len(page) and page[at] in (_QUOTE, _APOSTROPHE):
            quote = page[at]
            at += 1
            while at < len(page) and page[at] != quote:
                at += 1
            at += 1
        else:
            while at < len(page) and not BYTE_CLASSES[page[at]] & _ENDS_VALUE:
                at += 1
    return REFUSE, False


@compiled
def _after_blanks(page: Bytes, at: int) -> int:
    while at < len(page) and BYTE_CLASSES[page[at]] & IS_BLANK:
        at += 1
    return at


@compiled
def is_doctype(page: Bytes, at: int) -> bool:
    """Return whether the COMMENT token at a place is a DOCTYPE or other declaration, not a comment or instruction."""
    return page[at + 1] == _BANG and at + 2 < len(page) and page[at + 2] != _DASH


@compiled
def after_comment(page: Bytes, at: int) -> int:
    """Find the end of the comment, instruction or DOCTYPE whose `!` or `?` is at a place; REFUSE in case of doubt."""
    is_comment = page[at] == _BANG and at + 2 < len(page) and page[at + 1] == _DASH and page[at + 2] == _DASH
    if not is_comment:
        is_known = page[at] == _QUESTION or (at + 1 < len(page) and page[at + 1] | 0x20 == ord("d"))
        while at < len(page) and page[at] != _GREATER:
            at += 1
        return at + 1 if is_known and at < len(page) else REFUSE

    # `-->` or `--!>` ends it. `--!>`, and a `>` right after the start, are left to the parser.
    start, at = at + 3, at + 3
    while at < len(page):
        if page[at] == _GREATER:
            if at - start < len("--"):
                return REFUSE
            if page[at - 1] == _DASH and page[at - 2] == _DASH:
                return at + 1
            if page[at - 1] == _BANG:
                return REFUSE
        at += 1
    return REFUSE


@compiled
def after_raw_text(page: Bytes, at: int, name: int) -> int:
    """Find the end of the end tag that closes raw text; REFUSE if there is none, and for a script inside a script."""
    has_comment = False
    while at < len(page):
        if page[at] == _LESS and at + 1 < len(page):
            is_end = page[at + 1] == _SLASH
            has_comment |= page[at + 1] == _BANG
            if is_end or has_comment:
                tag = _name_at(page, at + 1 + is_end)
                if tag == name and is_end:
                    return read_tag(page, at + 2).end
                if tag == name and name == _SCRIPT:
                    return REFUSE
        at += 1
    return REFUSE


@compiled
def _name_at(page: Bytes, at: int) -> int:
    """Return the name of a tag as a number; 0 if it is long, or the page ends inside it."""
    name, length = 0, 0
    while at < len(page) and length <= NAME_BYTES:
        byte = page[at]
        if BYTE_CLASSES[byte] & _ENDS_TAG_NAME:
            return name
        letter = byte | 0x20 if ord("A") <= byte <= ord("Z") else byte
        name = (name << 8) | letter
        length += 1
        at += 1
    return 0


@compiled
def after_line_end(page: Bytes, at: int) -> int:
    """Skip a line end at a place, as the parser does after <pre>; return the place after it."""
    is_return = at < len(page) and page[at] == _RETURN
    at += is_return
    return at + (at < len(page) and page[at] == _LINE)
