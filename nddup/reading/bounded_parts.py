"""Bound the number of nodes that a parser would make of a record, by a count before the record is parsed.

    count_parts   the number of tags and attributes in HTML or XML
    has_too_many  whether there are more than MAX_PARTS

A parser's tree takes a fixed space for each element, attribute and text node, however short: 9 MB of `<p>` took 560 MB.
Measured (docs/sizing.md): up to 360 bytes per part, including its text and its Python object.
"""

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled

MAX_PARTS = 1 << 20
"""Most tags and attributes of one record: they take up to 380 MB. A real page of 2.7 MB has 0.27 million."""

_LESS, _GREATER, _SLASH, _EQUALS, _BANG, _QUESTION = (ord(sign) for sign in "<>/=!?")
_QUOTE, _APOSTROPHE, _BLANK, _DASH, _OPENING, _CLOSING = (ord(sign) for sign in "\"' -[]")


def has_too_many(data: bytes, *, is_xml: bool) -> bool:
    """Return whether a record has more than MAX_PARTS tags and attributes.

    Each takes at least two bytes, so records of at most 2 MAX_PARTS bytes are not scanned.

    Example:
        >>> has_too_many(b"<p>" * 2_000_000, is_xml=False), has_too_many(b"<p>" * 1_000, is_xml=False)
        (True, False)
    """
    return len(data) > 2 * MAX_PARTS and count_parts(data, is_xml=is_xml) > MAX_PARTS


def count_parts(data: bytes, *, is_xml: bool) -> int:
    """Count the tags of a record and their attributes.

    Args:
        data: in an encoding that is readable as ASCII.
        is_xml: True leaves out end tags, comments, instructions, and tags inside comments, instructions or CDATA
            sections. In HTML all of these count, because they may become nodes; so do tags inside scripts.

    Returns:
        An upper bound on the elements, attributes and comments that a parser would make, not counting the HTML
        formatting elements that it opens again: `page_limits` counts those.

    Cost: one pass, 3 to 6 ns per byte.

    Example:
        >>> count_parts(b"<p class='a b' id=c>x</p>", is_xml=True), count_parts(b"<br/><!-- <p> -->", is_xml=True)
        (3, 1)
    """
    return _count(np.frombuffer(data, np.uint8), is_xml)


@compiled
def _count(data: NDArray[np.uint8], is_xml: bool) -> int:  # noqa: FBT001 - a kernel takes plain arguments
    parts = at = 0
    while at < len(data) - 1:
        if data[at] != _LESS:
            at += 1
            continue
        at += 1
        sign = data[at]

        if sign in (_BANG, _QUESTION):
            parts += not is_xml or (at + 1 < len(data) and data[at + 1] == _OPENING)
            at = _after_hidden(data, at) if is_xml else at
        elif (sign != _SLASH) if is_xml else (sign == _SLASH or ord("a") <= sign | 0x20 <= ord("z")):
            attributes, at = _count_attributes(data, at)
            parts += 1 + attributes
    return parts


@compiled
def _count_attributes(data: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Count the attributes of a tag whose name starts at `at`; return the count and where the tag ends."""
    attributes, is_apart, last = 0, False, 0  # whether a blank came before; the last byte that is not blank
    while at < len(data) and data[at] != _GREATER:
        byte = data[at]
        if last == _EQUALS and byte in (_QUOTE, _APOSTROPHE):  # a quoted value, which may hold anything
            at += 1
            while at < len(data) and data[at] != byte:
                at += 1
            is_apart, last = True, 0
        elif byte <= _BLANK or byte == _SLASH:
            is_apart = True
        else:
            attributes += is_apart and byte != _EQUALS and last != _EQUALS  # noqa: PLR1714 - as numba knows it
            is_apart, last = False, byte
        at += 1
    return attributes, at


@compiled
def _after_hidden(data: NDArray[np.uint8], at: int) -> int:
    """Find the `>` that ends an XML comment, CDATA section or instruction: the first after `--`, `]]` or `?`."""
    is_instruction = data[at] == _QUESTION
    sign = _QUESTION if is_instruction else data[at + 1] if at + 1 < len(data) else _DASH
    sign = _CLOSING if sign == _OPENING else sign
    if sign not in (_QUESTION, _DASH, _CLOSING):  # a declaration, such as DOCTYPE: its inside is scanned for tags
        return at

    run = 0  # consecutive occurrences of the sign just before this byte
    for end in range(at + 1 + 2 * (sign == _DASH), len(data)):
        if data[end] == _GREATER and run >= 2 - is_instruction:
            return end
        run = run + 1 if data[end] == sign else 0
    return len(data)
