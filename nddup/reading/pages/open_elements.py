"""The stack of open elements of a plain page: what each tag opens and closes, by the rules of the HTML parser.

    open_element   the stack after a start tag
    close_element  the stack after an end tag

Both return REFUSE for every tag at which the parser would do more than open and close elements: ignore the tag, move
text out of a table, reopen formatting elements, or change its mode permanently.

Source: https://html.spec.whatwg.org/multipage/parsing.html#tree-construction; scopes are as defined there.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.reading.pages.html_elements import (
    ANCHOR,
    BLOCK,
    BUTTON,
    CAPTION,
    CELL,
    COLUMN,
    COLUMNS,
    DIVISION,
    FORM,
    FORMATTING,
    FRAME,
    HEAD_VOID,
    HEADING,
    LIST,
    LIST_ITEM,
    ORDINARY,
    PARAGRAPH,
    PRE,
    ROW,
    RULE,
    SECTION,
    SHAPE,
    SVG,
    TABLE,
    TERM,
    TITLE,
    VOID,
    pack,
)
from nddup.reading.pages.html_tokens import REFUSE, Tag

MAX_OPEN: Final = 64
"""Most elements open at once in a plain page; the deepest of 10,665 real pages has 19."""

_TBODY, _TR, _COLGROUP = (pack(name) for name in ("tbody", "tr", "colgroup"))


Stack = NDArray[np.int64]
"""The open elements in the body, the outermost first: kinds and names, (2, MAX_OPEN + 4) int64."""

KIND, NAME = 0, 1


@compiled
def is_in_table(stack: Stack, depth: int) -> bool:
    """Return whether the parser would move text other than blanks out of a table here."""
    return depth > 0 and stack[KIND, depth - 1] in (TABLE, SECTION, ROW, COLUMNS)


@compiled
def is_in_drawing(stack: Stack, depth: int) -> bool:
    """Return whether the innermost open element is one of SVG, or a frame."""
    return depth > 0 and stack[KIND, depth - 1] in (SVG, SHAPE, TITLE, FRAME)


@compiled
def is_in_frame(stack: Stack, depth: int) -> bool:
    """Return whether the innermost open element is a frame, in which tags and references are text."""
    return depth > 0 and stack[KIND, depth - 1] == FRAME


@compiled
def open_shape(stack: Stack, depth: int, tag: Tag) -> int:
    """Return the number of open elements after a start tag inside SVG; REFUSE in a title or frame: these hold text."""
    if depth >= MAX_OPEN or tag.kind not in (SVG, SHAPE, TITLE) or stack[KIND, depth - 1] in (TITLE, FRAME):
        return REFUSE
    return depth if tag.is_empty else _push(stack, depth, tag.kind, tag.name)


@compiled
def open_element(stack: Stack, depth: int, tag: Tag) -> int:  # noqa: PLR0911 - a rule a line
    """Return the number of open elements after a start tag; REFUSE if the page is not plain.

    Cost: at most MAX_OPEN steps.
    """
    kind, name = tag.kind, tag.name
    if depth >= MAX_OPEN:
        return REFUSE
    if kind in (SECTION, ROW, CELL, CAPTION, COLUMNS, COLUMN):
        return _open_part(stack, depth, kind, name)
    if is_in_table(stack, depth):
        return REFUSE
    if kind in (VOID, HEAD_VOID):
        return depth

    if kind in (ANCHOR, BUTTON) and _find_kind(stack, depth, kind) >= 0:
        return REFUSE
    if kind == SHAPE:
        kind = ORDINARY
    if kind not in (ORDINARY, FORMATTING, ANCHOR, BUTTON, SVG, FRAME):
        depth = _close_before(stack, depth, kind)
        if depth < 0 or kind == RULE:
            return depth
    return depth if kind == SVG and tag.is_empty else _push(stack, depth, kind, name)


@compiled
def close_element(stack: Stack, depth: int, kind: int, name: int) -> int:  # noqa: PLR0911 - a rule a line
    """Return the number of open elements after an end tag; REFUSE if the page is not plain."""
    if is_in_drawing(stack, depth):
        return depth - 1 if stack[NAME, depth - 1] == name else REFUSE
    if kind in (TABLE, SECTION, ROW, CELL, CAPTION):
        return _close_part(stack, depth, kind, name)
    if kind == COLUMNS:
        return depth - 1 if depth > 0 and stack[KIND, depth - 1] == COLUMNS else REFUSE
    if is_in_table(stack, depth):
        return REFUSE

    if kind in (FORMATTING, ANCHOR):
        return depth - 1 if depth > 0 and stack[NAME, depth - 1] == name else REFUSE
    if kind == PARAGRAPH:  # if none is open, the parser makes an empty one
        at = _find_kind(stack, depth, PARAGRAPH)
        return _pop(stack, depth, at) if at >= 0 else depth
    if kind == HEADING:
        return _pop(stack, depth, _find_kind(stack, depth, HEADING))
    if kind in (BLOCK, DIVISION, LIST, PRE, LIST_ITEM, TERM, FORM, BUTTON, SHAPE, ORDINARY):
        return _pop(stack, depth, _find_name(stack, depth, ORDINARY if kind == SHAPE else kind, name))
    return REFUSE


@compiled
def _push(stack: Stack, depth: int, kind: int, name: int) -> int:
    stack[KIND, depth], stack[NAME, depth] = kind, name
    return depth + 1


@compiled
def _pop(stack: Stack, depth: int, at: int) -> int:
    """Close the element at a place and all inside it; REFUSE if there is none, or one inside would be remembered."""
    for inside in range(at + 1, depth):
        if at < 0 or stack[KIND, inside] in (FORMATTING, ANCHOR, FORM):
            return REFUSE
    return at


@compiled
def _find_kind(stack: Stack, depth: int, kind: int) -> int:
    """Find the innermost element of a kind in the parser's scope: not outside a table, cell or caption; -1 for none."""
    for at in range(depth - 1, -1, -1):
        if stack[KIND, at] == kind:
            return at
        if stack[KIND, at] in (TABLE, CELL, CAPTION) or (kind == PARAGRAPH and stack[KIND, at] == BUTTON):
            break
    return -1


@compiled
def _find_name(stack: Stack, depth: int, kind: int, name: int) -> int:
    """Find the innermost element that an end tag with this name closes; -1 for none."""
    for at in range(depth - 1, -1, -1):
        open_kind = stack[KIND, at]
        if stack[NAME, at] == name:
            return at
        is_item = open_kind in (PARAGRAPH, LIST_ITEM, TERM)
        is_bound = (
            open_kind in (TABLE, CELL, CAPTION)
            or (kind == LIST_ITEM and open_kind == LIST)
            or (kind == FORM and not is_item)
            or (kind == ORDINARY and open_kind not in (ORDINARY, FORMATTING, ANCHOR))
        )
        if is_bound:
            break
    return -1


@compiled
def _close_before(stack: Stack, depth: int, kind: int) -> int:
    """Close what the start tag of a block, heading, item, table, form or rule closes; return the depth, or REFUSE."""
    if kind in (LIST_ITEM, TERM):
        depth = _close_item(stack, depth, kind)
    paragraph = _find_kind(stack, depth, PARAGRAPH)
    if paragraph >= 0:
        depth = REFUSE if kind == TABLE else _pop(stack, depth, paragraph)  # in quirks mode a table does not close it

    if kind == HEADING and depth > 0 and stack[KIND, depth - 1] == HEADING:
        return depth - 1
    if kind == FORM:
        for at in range(depth):
            if stack[KIND, at] == FORM:
                return REFUSE
    return depth


@compiled
def _close_item(stack: Stack, depth: int, kind: int) -> int:
    """Close the open item before the next item of the same list; return the new depth, or REFUSE."""
    for at in range(depth - 1, -1, -1):
        open_kind = stack[KIND, at]
        if open_kind == kind:
            return _pop(stack, depth, at)
        if open_kind not in (ORDINARY, FORMATTING, ANCHOR, DIVISION, PARAGRAPH):
            break
    return depth


@compiled
def innermost_table(stack: Stack, depth: int) -> int:
    """Find the innermost open table; -1 if there is none, or inside a caption."""
    for at in range(depth - 1, -1, -1):
        if stack[KIND, at] == TABLE:
            return at
        if stack[KIND, at] == CAPTION:
            break
    return -1


@compiled
def _open_part(stack: Stack, depth: int, kind: int, name: int) -> int:
    """Open a part of a table, with any section and row that it implies; return the new depth, or REFUSE.

    On the stack, a table is followed by a section, a row and a cell.
    """
    table = innermost_table(stack, depth)
    if table < 0:
        return REFUSE
    if kind == COLUMN and stack[KIND, depth - 1] == COLUMNS:
        return depth

    # Close what cannot hold the part: a row stays in its section, a cell in its section and row.
    has_section = depth > table + 1 and stack[KIND, table + 1] == SECTION
    has_row = has_section and depth > table + 2 and stack[KIND, table + 2] == ROW
    kept = table + 1
    if has_section and kind in (ROW, CELL):
        kept += 2 if has_row and kind == CELL else 1
    if depth > kept:
        depth = _pop(stack, depth, kept)
        if depth < 0:
            return REFUSE

    if kind in (ROW, CELL) and not has_section:
        depth = _push(stack, depth, SECTION, _TBODY)
    if kind == CELL and not has_row:
        depth = _push(stack, depth, ROW, _TR)
    if kind == COLUMN:
        return _push(stack, depth, COLUMNS, _COLGROUP)
    return _push(stack, depth, kind, name)


@compiled
def _close_part(stack: Stack, depth: int, kind: int, name: int) -> int:
    """Close a table or a part of it; return the new depth, or REFUSE."""
    for at in range(depth - 1, -1, -1):
        if stack[NAME, at] == name:
            return _pop(stack, depth, at)
        if stack[KIND, at] == TABLE or (stack[KIND, at] == CAPTION and kind != TABLE):
            break
    return REFUSE
