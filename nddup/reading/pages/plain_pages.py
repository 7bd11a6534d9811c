"""The text of plain HTML pages, in one compiled pass over their bytes, without a tree.

    text_of_plain_page   a page -> the text that the parser of `markup` gives, or None if the page is not plain

Nearly all tags of real pages only open and close elements. Then the stack of open elements (`open_elements`) is enough
to extract the text: it shows where each text node ends. A page is not plain as soon as one tag or character needs more;
then the parser reads it.

A page is not plain if it has a tag that the parser ignores, text that it moves out of a table, misnested formatting
elements, an element of `html_elements.REFUSED`, more than MAX_OPEN open elements, or a reference that is not in a
table, or if it ends inside a token because it was cut or damaged.

Source: https://html.spec.whatwg.org/multipage/parsing.html#tokenization
"""

from typing import NamedTuple

import numpy as np

from nddup.arrays import compiled
from nddup.reading.byte_tables import LENGTH_SHIFT, UTF_8, WRITTEN, ByteTable, Characters
from nddup.reading.pages.html_elements import BODY, COLUMNS, HEAD, HEAD_VOID, HIDDEN, HTML, PRE, REFUSED, TITLE, pack
from nddup.reading.pages.html_references import NO_CHARACTER, put, read_reference
from nddup.reading.pages.html_tokens import (
    BYTE_CLASSES,
    COMMENT,
    END_TAG,
    IS_BLANK,
    REFUSE,
    TEXT,
    Bytes,
    Tag,
    after_comment,
    after_line_end,
    after_raw_text,
    is_doctype,
    read_tag,
    token_at,
)
from nddup.reading.pages.open_elements import (
    KIND,
    MAX_OPEN,
    Stack,
    close_element,
    innermost_table,
    is_in_drawing,
    is_in_frame,
    is_in_table,
    open_element,
    open_shape,
)

START, IN_HTML, IN_HEAD, AFTER_HEAD, IN_BODY, AFTER_BODY = range(6)
"""The part of the page reached so far (`State.place`)."""

_AMPERSAND, _BLANK, _LESS, _LINE, _RETURN = (ord(sign) for sign in "& <\n\r")
_NOSCRIPT = pack("noscript")
_LOW_BYTE = np.uint32(255)
_ONE, _TWO = np.uint64(1), np.uint64(2)


class State(NamedTuple):
    """The state between two tokens.

    Attributes:
        place: the part of the page reached so far; REFUSE if the page is not plain.
        depth: the number of open elements.
        size: the bytes of text written so far.
        is_apart: whether a node separates this text from what follows.
    """

    place: int
    depth: int
    size: int
    is_apart: bool


def text_of_plain_page(html: bytes, table: ByteTable = UTF_8) -> bytes | None:
    """Return the text of the body of a plain page as `markup.strip_markup` does, in UTF-8.

    Args:
        html: the page as stored.
        table: table of its charset.

    Returns:
        The text; None if the page is not plain. With the table UTF_8, invalid bytes of the page are copied.

    Cost: linear, 1 to 2 ns per byte; a tag takes at most some 3 MAX_OPEN steps. Memory: twice the page; up to five
        times for a single-byte charset.

    Example:
        >>> text_of_plain_page(b"<p>one<b>two</b> &amp; three"), text_of_plain_page(b"<table>one<tr><td>two")
        (b'one two  & three', None)
    """
    if b"\0" in html:
        return None
    text = np.empty(table.longest * len(html) + WRITTEN, np.uint8)
    stack = np.empty((2, MAX_OPEN + 4), np.int64)
    size = _extract(np.frombuffer(html, np.uint8), text, stack, table.characters)
    return None if size == REFUSE else text[:size].tobytes()


@compiled
def _extract(page: Bytes, text: Bytes, stack: Stack, characters: Characters) -> int:
    """Write the text of the body to the front of `text`; return its length in bytes, or REFUSE."""
    at, state = 0, State(START, 0, 0, is_apart=False)
    while at < len(page) and state.place != REFUSE:
        token = token_at(page, at)
        if token == TEXT:
            at, state = _add_text(page, at, text, stack, state, characters)
            continue
        if token == COMMENT:
            is_misplaced = is_doctype(page, at) and state.place != START
            at = REFUSE if is_misplaced or is_in_frame(stack, state.depth) else after_comment(page, at + 1)
            state = State(state.place, state.depth, state.size, state.is_apart or state.place == IN_BODY)
        else:
            at, state = _follow_tag(page, at, token, stack, state)
        if at == REFUSE:
            return REFUSE
    return REFUSE if state.place == REFUSE else state.size


@compiled
def _follow_tag(page: Bytes, at: int, token: int, stack: Stack, state: State) -> tuple[int, State]:
    """Process a tag and any raw text after it; return where these end, and the new state."""
    tag = read_tag(page, at + 1 + (token == END_TAG))
    at = tag.end
    if tag.kind == REFUSED:
        return REFUSE, state
    if token == END_TAG:
        return at, _close(stack, state, tag)
    if is_in_drawing(stack, state.depth):
        depth = open_shape(stack, state.depth, tag)
        return at, State(state.place if depth != REFUSE else REFUSE, depth, state.size, is_apart=True)

    state = _open(stack, state, tag)
    if tag.kind in (HIDDEN, TITLE):
        at = after_raw_text(page, at, tag.name)
    elif tag.kind == PRE:
        at = after_line_end(page, at)
    return at, state


@compiled
def _refused(state: State) -> State:
    return State(REFUSE, state.depth, state.size, state.is_apart)


@compiled
def _open(stack: Stack, state: State, tag: Tag) -> State:
    """Return the state after a start tag."""
    place = _place_after(state.place, tag)
    depth = state.depth
    if tag.kind == HIDDEN:
        is_refused = is_in_table(stack, depth) and (stack[KIND, depth - 1] == COLUMNS or tag.name == _NOSCRIPT)
        depth = REFUSE if is_refused else depth
    elif place == IN_BODY and tag.kind != BODY:
        depth = open_element(stack, depth, tag)
    return _refused(state) if depth == REFUSE else State(place, depth, state.size, is_apart=True)


@compiled
def _place_after(place: int, tag: Tag) -> int:
    """Return the part of the page after a start tag; REFUSE if the parser would ignore the tag or move content."""
    then = IN_BODY
    if tag.kind == HTML:
        then = IN_HTML if place == START else REFUSE
    elif tag.kind == HEAD:
        then = IN_HEAD if place < IN_HEAD else REFUSE
    elif tag.kind == BODY:
        then = IN_BODY if place < IN_BODY else REFUSE
    elif tag.kind in (HEAD_VOID, HIDDEN, TITLE):
        then = max(place, IN_HEAD)
        if place == AFTER_HEAD and tag.name == _NOSCRIPT:
            then = IN_BODY
        if place == IN_BODY and tag.kind == TITLE:
            then = REFUSE
    return REFUSE if place == AFTER_BODY else then


@compiled
def _close(stack: Stack, state: State, tag: Tag) -> State:
    """Return the state after an end tag."""
    place, depth = state.place, state.depth
    if tag.kind in (BODY, HTML) and not is_in_drawing(
        stack, depth
    ):  # closes nothing: what follows belongs to the same text
        is_open = place == IN_BODY or (place == AFTER_BODY and tag.kind == HTML)
        is_refused = not is_open or innermost_table(stack, depth) >= 0
        return _refused(state) if is_refused else State(AFTER_BODY, depth, state.size, state.is_apart)
    if tag.kind == HEAD and place == IN_HEAD:
        return State(AFTER_HEAD, depth, state.size, state.is_apart)

    depth = close_element(stack, depth, tag.kind, tag.name) if place == IN_BODY else REFUSE
    return _refused(state) if depth == REFUSE else State(place, depth, state.size, is_apart=True)


@compiled
def _add_text(
    page: Bytes, at: int, text: Bytes, stack: Stack, state: State, characters: Characters
) -> tuple[int, State]:
    """Add the text from a place to the next tag, with a blank before it if it is a new text node."""
    start = at
    while start < len(page) and BYTE_CLASSES[page[start]] & IS_BLANK:
        start += 1
    is_blank = start == len(page) or (start > at and page[start] == _LESS)
    place, size = state.place, state.size
    if place < IN_BODY:  # blanks before the body are not in it
        at = start
        place = place if is_blank else IN_BODY
    elif not is_blank and (place == AFTER_BODY or is_in_table(stack, state.depth)):
        return at, _refused(state)
    if is_blank and at == start:
        return at, State(place, state.depth, size, state.is_apart)

    if state.is_apart and size > 0:
        text[size] = _BLANK
        size += 1
    at, size = _copy_text(page, at, text, size, is_in_frame(stack, state.depth), characters)
    return at, _refused(state) if size == REFUSE else State(place, state.depth, size, is_apart=False)


@compiled
def _copy_text(
    page: Bytes,
    at: int,
    text: Bytes,
    size: int,
    is_raw: bool,  # noqa: FBT001
    characters: Characters,
) -> tuple[int, int]:
    """Copy text in UTF-8 up to the next `<`, with references resolved and line ends as line feeds.

    A `<` at the start is text. Return where the copied text ends in the page, and the length of all text; or REFUSE.
    """
    first = at
    while at < len(page):
        at, size = _copy_characters(page, at, text, size, characters)
        if at == len(page):
            break
        byte = page[at]
        if byte == _LESS and at > first:
            break
        if byte == _AMPERSAND:
            code, at = read_reference(page, at + 1, len(page))
            if code == NO_CHARACTER or is_raw:
                return at, REFUSE
            size = put(text, size, code)
        else:
            at += byte == _RETURN and at + 1 < len(page) and page[at + 1] == _LINE
            text[size] = _LINE if byte == _RETURN else byte
            size += 1
            at += 1
    return at, size


@compiled
def _copy_characters(page: Bytes, at: int, text: Bytes, size: int, characters: Characters) -> tuple[int, int]:
    """Copy text in UTF-8 up to a byte that needs special treatment; return its place, and the length of all text."""
    place, target, end = np.uint64(at), np.uint64(size), np.uint64(len(page))
    while place < end:
        character = characters[page[place]]
        if character == 0:
            break
        text[target] = character & _LOW_BYTE
        text[target + _ONE] = character >> np.uint32(8) & _LOW_BYTE
        text[target + _TWO] = character >> np.uint32(16) & _LOW_BYTE
        target += np.uint64(character >> LENGTH_SHIFT)
        place += _ONE
    return np.int64(place), np.int64(target)  # type: ignore[return-value]
