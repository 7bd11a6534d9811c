"""Records whose parsing would take too much time or memory, recognised from their tags before they are parsed.

    count_parts       HTML or XML  -> an upper bound on its tags and attributes
    has_too_many      HTML or XML  -> whether there are more than MAX_PARTS
    is_too_costly     page         -> whether parsing it would take too many steps, or too much memory
    count_tags, trace_elements, most_attributes    page -> the counts by which that is decided

Nearly all pages have so few tags that no order of them could exceed the bounds. Only for the others `trace_elements`
follows the open elements.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.kernels import Written, compiled

MAX_PARTS = 1 << 20
"""Maximum number of tags and attributes of one record: they take up to 380 MB. A real page of 2.7 MB has 0.27 million.

A parser's tree takes a fixed space for each element, attribute and text node, however short: 9 MB of `<p>` took 560 MB.
Measured (docs/sizing.md): up to 360 bytes per part, including its text and its Python object."""

_LESS, _GREATER, _SLASH, _EQUALS, _BANG, _QUESTION = (ord(sign) for sign in "<>/=!?")
_QUOTE, _APOSTROPHE, _BLANK, _DASH, _OPENING, _CLOSING = (ord(sign) for sign in "\"' -[]")

MAX_STEPS = 100_000_000
"""Maximum of the open elements, summed over all tags of a page: 0.3 to 0.5 s of parsing."""

MAX_REOPENED = 300_000
"""Maximum of the open formatting elements, summed over all tags. An element that is opened again takes 460 bytes, and
200 per attribute: a page of 9 KB, with 1,000 attributes on one such element, took 210 MB."""

MAX_MOVED = 100_000_000
"""Maximum of pieces of text between the rows of tables times their bytes: the parser copies the text before each piece.
"""

MAX_ATTRIBUTES = 10_000
"""Maximum number of attributes of one tag: each is compared with all before it, which takes 0.25 s at this number."""

MAX_OPTIONS = 10_000
"""Maximum number of options of a page: each is compared with all before it in its <select>, which takes 0.5 s at this
number."""

MAX_OPEN = 16_384
"""Maximum number of open elements that are followed: the tags that open more exceed MAX_STEPS."""

NAME_BYTES = 8
"""Longest tag name, in bytes, that fits into a 64-bit number; of a longer one the last 8 bytes count."""

STATES = 8

Bytes = NDArray[np.uint8]

Names = NDArray[np.uint64]
"""Tag names as numbers, the last letter in the lowest byte."""

_REACH = 8
"""Open elements, from the innermost, among which that of an end tag is searched."""

TAG_NAME, BEFORE_NAME, ATTRIBUTE, AFTER_NAME, BEFORE_VALUE, VALUE, DOUBLE_QUOTED, SINGLE_QUOTED = range(STATES)
"""The states of an HTML parser inside a tag."""


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


class Tags(NamedTuple):
    """Counts for a page: its tags; those of formatting elements, of options, of parts of tables, of <html> and <body>.

    The parser adds the attributes of every <html> and <body> to the first.
    """

    tags: int
    formatting: int
    options: int
    cells: int
    roots: int


class Open(NamedTuple):
    """Upper bounds of what the parser does with a page.

    Attributes:
        steps: the elements open at each tag, summed.
        reopened: the formatting elements open at each tag, summed.
        moved: pieces of text between the rows of tables.
        moved_bytes: their bytes.
    """

    steps: int
    reopened: int
    moved: int
    moved_bytes: int


def _pack(names: str) -> Names:
    return np.array([int.from_bytes(name.encode()[-NAME_BYTES:], "big") for name in names.split()], np.uint64)


_VOID = _pack("area base br col embed hr img input link meta param source track wbr")
_CLOSED_BY_NEXT = _pack("p li dt dd tr td th option tbody thead tfoot colgroup caption html head body")
_NEVER_NEST = np.concatenate([_VOID, _CLOSED_BY_NEXT])
"""Elements that open none inside one of the same name unless another element that counts is between them."""

_FORMATTING = _pack("a b big code em font i nobr s small strike strong tt u")
_RAW = _pack("script style xmp iframe noembed noframes noscript title textarea")
"""Elements whose content is no markup."""

_IN_DRAWING = _pack("foreignobject desc title annotation-xml mi mo mn ms mtext")
_SCOPES = np.concatenate([_pack("applet marquee object template table select button"), _IN_DRAWING])
"""Elements through which no end tag reaches."""

_DRAWING = _pack("svg math")
_LEAVES_DRAWING = _pack(
    "b big blockquote body br center code dd div dl dt em embed font h1 h2 h3 h4 h5 h6 head hr i img li listing menu"
    " meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
_BETWEEN_CELLS = _pack("table tr tbody thead tfoot colgroup")
_CELLS = _pack("td th caption")
_PASSED = np.concatenate([_FORMATTING, _pack("span svg")])
"""Open elements that the end tag of an outer one closes as well."""

_PARTS_OF_TABLES = np.concatenate([_BETWEEN_CELLS, _CELLS])
_A, _OPTION, _HTML, _BODY, _TABLE = _pack("a option html body table")
_SELECT, _FRAMESET, _PLAINTEXT, _SCRIPT = _pack("select frameset plaintext script")


def is_too_costly(data: bytes) -> bool:
    """Return whether a page exceeds a bound: on nodes, steps, reopened elements, moved text, attributes, or options.

    The HTML parser does not recurse, but at most tags it searches the open elements: 40,000 `<div></x>` took 2.7 s,
    each `</x>` being a search through all <div> that it does not close. So time is bounded by the sum, over all tags,
    of the elements open there (MAX_STEPS). Memory is bounded too: every element takes some (`has_too_many`); formatting
    elements that stay open are made again in every paragraph (900 <font> in 1,100 paragraphs took 450 MB); and text
    between the rows of a table is moved in front of it piece by piece (80,000 pieces took 600 MB). Two more steps are
    quadratic: 40,000 attributes of one tag took 4 s, 40,000 options of one <select> 11 s.

    Args:
        data: the page, readable as ASCII.

    Cost: 3 to 5 ns per byte; some 10 ns more for a page of 10,000 tags, or of very many formatting elements.
    """
    if has_too_many(data, is_xml=False):
        return True

    page = np.frombuffer(data, np.uint8)
    attributes = most_attributes(page)
    counts = count_tags(page)
    if attributes * max(counts.roots, 1) > MAX_ATTRIBUTES or counts.options > MAX_OPTIONS:
        return True

    # The most that any order of these tags could do.
    most = Open(counts.tags * counts.tags, counts.formatting * counts.tags, counts.cells, len(data))
    return _exceeds(most, attributes) and _exceeds(trace_elements(page), attributes)


def _exceeds(costs: Open, attributes: int) -> bool:
    return (
        costs.steps > MAX_STEPS
        or costs.reopened > MAX_REOPENED
        or costs.reopened * (1 + attributes) > MAX_PARTS
        or costs.moved * costs.moved_bytes > MAX_MOVED
    )


def count_tags(page: Bytes) -> Tags:
    """Count the tags of a page, also those in scripts and comments."""
    return Tags(*_count_tags(page))


def trace_elements(page: Bytes) -> Open:
    """Follow the elements that are open at each tag of a page; stops beyond MAX_STEPS.

    The result is never less than what the parser does: an end tag is believed only if it surely closes an element.
    Where it is not sure how the parser reads the rest of a page, no end tag is believed.
    """
    return Open(*_trace(page, np.zeros(MAX_OPEN, np.uint64)))


@compiled
def most_attributes(data: Bytes) -> int:
    """Return the most attributes that any tag of a page can have.

    What counts as a tag depends on the comments, scripts and quotation marks before it. So every `<` followed by a
    letter is taken as a tag. All tags that may be open at a byte are tracked at once, by one count for each state of
    the parser: of two tags in the same state, the one with fewer attributes never overtakes the other.
    """
    counts, after = np.full(STATES, -1, np.int64), np.empty(STATES, np.int64)
    most = open_states = state = count = 0
    at = -1
    while at < len(data) - 2:
        at += 1
        byte = data[at]
        if open_states == 0 and byte != ord("<"):
            continue

        # In nearly all pages at most one tag is open: then one state and one count are enough.
        if open_states == 1:
            then = _next_state(state, byte)
            count += then == ATTRIBUTE and state != ATTRIBUTE
            most = max(most, count)
            state = then
            open_states = then >= 0
        elif open_states > 1:
            open_states, state = _step_all(counts, after, byte)
            most = max(most, counts[ATTRIBUTE])
            count = counts[state]

        if byte == ord("<") and ord("a") <= data[at + 1] | 0x20 <= ord("z"):
            if open_states == 0:
                open_states, state, count = 1, TAG_NAME, 0
            elif open_states == 1 and state != TAG_NAME:
                counts[:] = -1
                counts[state] = count
                counts[TAG_NAME] = 0
                open_states = 2
            elif open_states > 1 and counts[TAG_NAME] < 0:
                counts[TAG_NAME] = 0
                open_states += 1
    return int(most)


@compiled
def _step_all(counts: Written[np.int64], after: Written[np.int64], byte: int) -> tuple[int, int]:
    """Advance all open tags by one byte; `counts`, updated here, has the most attributes per state, -1 for no tag.

    Returns:
        The number of states that have an open tag, and the last of them; 0, 0 if there is none.
    """
    after[:] = -1
    for state in range(STATES):
        then = _next_state(state, byte) if counts[state] >= 0 else -1
        if then >= 0:
            is_new = then == ATTRIBUTE and state != ATTRIBUTE
            after[then] = max(after[then], counts[state] + is_new)
    counts[:] = after

    n_open = last = 0
    for state in range(STATES):
        if counts[state] >= 0:
            n_open, last = n_open + 1, state
    return n_open, last


@compiled
def _next_state(state: int, byte: int) -> int:
    """Return the parser's state inside a tag after one more byte; -1 if the tag ends."""
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
def _count_tags(data: Bytes) -> tuple[int, int, int, int, int]:
    tags = formatting = options = cells = roots = at = 0
    while at < len(data) - 1:
        if data[at] != ord("<"):
            at += 1
            continue
        is_closing = data[at + 1] == ord("/")
        name, end = _name_at(data, at + 1 + is_closing)
        if end > at + 1 + is_closing:
            tags += 1
            formatting += not is_closing and _is_in(_FORMATTING, name)
            options += name == _OPTION
            cells += _is_in(_PARTS_OF_TABLES, name)
            roots += name == _HTML or name == _BODY  # noqa: PLR1714 - as numba knows it
        at = max(end, at + 1)
    return tags, formatting, options, cells, roots


@compiled
def _trace(data: Bytes, stack: Written[np.uint64]) -> tuple[int, int, int, int]:  # noqa: C901, PLR0912, PLR0915 - one pass
    """Count the fields of `Open`; `stack`, written here, holds the names of the open elements."""
    depth = steps = scopes = moved = moved_bytes = 0
    opened = reopened = 0
    by_name = np.zeros(len(_FORMATTING), np.int64)  # formatting elements that may be open again, by name
    drawing = inner = 0  # the depths of the outermost drawing, and of HTML inside it; 0 for none
    is_in_cell, is_sure, had_select = True, True, False
    at = start = 0
    while steps <= MAX_STEPS and depth < len(stack) - 1:
        # The next `<`, and the text before it.
        is_blank = True
        while at < len(data) and data[at] != ord("<"):
            is_blank = is_blank and data[at] <= ord(" ")
            at += 1
        if not is_in_cell and not is_blank:
            moved += 1
            moved_bytes += at - start
        if at >= len(data) - 1:
            break

        sign = data[at + 1]
        is_closing = sign == ord("/")
        name, end = _name_at(data, at + 1 + is_closing)
        if end == at + 1 + is_closing:  # no tag
            if is_sure and (sign in (ord("!"), ord("?")) or is_closing):
                is_sure = not (drawing > 0 and at + 2 < len(data) and data[at + 2] == ord("["))
                end = _after_comment(data, at)
            at = start = max(at + 1, end)
            continue

        is_empty = False
        if is_sure:
            end, is_empty = _after_tag(data, end)
        at = start = end
        steps += depth + opened + 1
        reopened += opened

        if is_closing:
            if not is_sure:
                continue
            if _is_in(_CELLS, name) or _is_in(_BETWEEN_CELLS, name):
                is_in_cell = name == _TABLE and drawing == 0 and not had_select
            to = _find_open(stack, depth, name)
            kind = _place_in(_FORMATTING, name)
            if to >= 0:
                while depth > to:
                    depth -= 1
                    scopes -= _is_in(_SCOPES, stack[depth])
                inner = 0 if depth < inner else inner
                drawing = 0 if depth < drawing else drawing
            elif drawing > 0:
                is_sure = False  # it may end the drawing
            if kind >= 0 and by_name[kind] > 0 and (to >= 0 or scopes == 0):
                by_name[kind] -= 1
                opened -= 1
            continue

        # A start tag.
        if is_sure and drawing > 0 and inner == 0:
            is_sure = not _is_in(_LEAVES_DRAWING, name)
            if is_empty and is_sure:
                continue
        elif is_sure and _is_in(_RAW, name):
            is_sure = inner == 0 and not had_select
            if is_sure:
                at = _after_raw(data, at, name)
                is_sure = at >= 0
                at = start = at if is_sure else start
                continue
        elif name == _PLAINTEXT and is_sure:
            break
        had_select = had_select or name == _SELECT or name == _FRAMESET  # noqa: PLR1714 - as numba knows it

        if is_sure and (drawing == 0 or inner > 0):
            if _is_in(_CELLS, name):
                is_in_cell = True
            elif _is_in(_BETWEEN_CELLS, name):
                is_in_cell = False
            if _is_in(_NEVER_NEST, name):
                continue
            if name == _A and depth > 0 and stack[depth - 1] == _A:
                continue
        is_in_cell = is_in_cell and is_sure

        kind = _place_in(_FORMATTING, name)
        if kind >= 0:
            by_name[kind] += 1
            opened += 1
        stack[depth] = name
        depth += 1
        scopes += _is_in(_SCOPES, name)
        if drawing == 0 and _is_in(_DRAWING, name) and is_sure:
            drawing = depth
            is_sure = not had_select
        elif drawing > 0 and inner == 0 and _is_in(_IN_DRAWING, name):
            inner = depth

    if depth >= len(stack) - 1:
        steps = MAX_STEPS + 1
    return steps, reopened, moved, moved_bytes


@compiled
def _name_at(data: Bytes, at: int) -> tuple[np.uint64, int]:
    """Read a tag name in lower case; return it with its end, which is `at` if no letter is there."""
    name, start = np.uint64(0), at
    while at < len(data):
        byte = data[at]
        letter = byte | 0x20
        is_letter = ord("a") <= letter <= ord("z") and byte >= ord("A")
        if not is_letter and (at == start or byte in (ord(">"), ord("/"), ord(" ")) or 9 <= byte <= 13):  # noqa: PLR2004
            break
        name = (name << np.uint64(8)) | np.uint64(letter if is_letter else byte)
        at += 1
    return name, at


@compiled
def _after_tag(data: Bytes, at: int) -> tuple[int, bool]:
    """Return where a tag ends, from the end of its name, and whether it ends in `/>`; the length for an open tag."""
    state, last = TAG_NAME, 0
    while at < len(data):
        byte = data[at]
        then = _next_state(state, byte)
        if then < 0:
            return at + 1, state == BEFORE_NAME and last == ord("/")
        state, last = then, byte
        at += 1
    return at, False


@compiled
def _after_comment(data: Bytes, at: int) -> int:
    """Return where a comment ends that begins with `<!`, `<?` or `</`; the length for an open one."""
    is_comment = at + 3 < len(data) and data[at + 1] == ord("!") and data[at + 2] == ord("-") == data[at + 3]
    end = at + 2
    if not is_comment:
        while end < len(data) and data[end] != ord(">"):
            end += 1
        return min(end + 1, len(data))

    # The dashes that begin a comment may also end it: `<!-->`, `<!--->`.
    dashes, end = 2, at + 4
    while end < len(data):
        byte = data[end]
        if byte == ord(">") and dashes >= 2:  # noqa: PLR2004 - `-->`
            return end + 1
        is_bang = byte == ord("!") and dashes >= 2 and end > at + 5 and end + 1 < len(data)  # noqa: PLR2004
        if is_bang and data[end + 1] == ord(">"):
            return end + 2
        dashes = dashes + 1 if byte == ord("-") else 0
        end += 1
    return end


@compiled
def _after_raw(data: Bytes, at: int, name: np.uint64) -> int:
    """Return where the content of an element ends that is no markup; -1 if a script in a comment makes it unsure."""
    is_hidden = False
    while at < len(data) - 1:
        if data[at] == ord("<"):
            is_end = data[at + 1] == ord("/")
            tag, _ = _name_at(data, at + 1 + is_end)
            if is_end and tag == name:
                return at
            if name == _SCRIPT:
                is_hidden = is_hidden or (at + 3 < len(data) and data[at + 1] == ord("!") and data[at + 2] == ord("-"))
                if is_hidden and not is_end and tag == name:
                    return -1
        at += 1
    return len(data)


@compiled
def _find_open(stack: Names, depth: int, name: np.uint64) -> int:
    """Return the depth of the element that an end tag surely closes; -1 if there is none."""
    for at in range(depth - 1, max(depth - 1 - _REACH, -1), -1):
        if stack[at] == name:
            return at
        if not _is_in(_PASSED, stack[at]):
            return -1
    return -1


@compiled
def _place_in(names: Names, name: np.uint64) -> int:
    """Return the place of a name in a short list; -1 if it is not there."""
    for at in range(len(names)):
        if names[at] == name:
            return at
    return -1


@compiled
def _is_in(names: Names, name: np.uint64) -> bool:
    """Return whether a name is in a short list, without allocating an array of comparisons."""
    return _place_in(names, name) >= 0
