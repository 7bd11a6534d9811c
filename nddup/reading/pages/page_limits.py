"""Pages whose parsing would take too much time or memory, recognised by counting tags before the page is parsed.

The HTML parser does not recurse: 10^6 nested <b>, and 10^5 nested <div> on a stack of 256 KB, were parsed. But two
steps of the HTML algorithm take time or memory in proportion to nesting times tags: 10^5 nested <div> took 31 s; 900
<font> left open in one paragraph, and opened again in each of 1,100 others, took 450 MB. Two steps are quadratic:
40,000 attributes of one tag took 4 s, 40,000 options of one <select> 11 s. And every element takes memory: 9 MB of <p>
took 560 MB (`bounded_parts`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.arrays import compiled
from nddup.reading.bounded_parts import MAX_PARTS, has_too_many

MAX_DEPTH = 1_000
"""Most nested elements; the deepest of 10,665 real pages has 19."""

MAX_REOPENED = 300_000
"""Most open formatting elements times tags. An element that is opened again takes 460 bytes, and 200 per attribute: a
page of 9 KB, with 1,000 attributes on one such element, took 210 MB."""

MAX_ATTRIBUTES = 10_000
"""Most attributes of one tag: each is compared with all before it, which takes 0.25 s at this number."""

MAX_OPTIONS = 10_000
"""Most options of a page: each is compared with all before it in its <select>, which takes 0.5 s at this number."""

NAME_BYTES = 8
"""Longest tag name, in bytes, that fits into a 64-bit number."""

STATES = 8
TAG_NAME, BEFORE_NAME, ATTRIBUTE, AFTER_NAME, BEFORE_VALUE, VALUE, DOUBLE_QUOTED, SINGLE_QUOTED = range(STATES)
"""The states of an HTML parser inside a tag."""

Bytes = NDArray[np.uint8]
Names = NDArray[np.uint64]
"""Tag names as numbers, the last letter in the lowest byte."""


class Nesting(NamedTuple):
    """Counts for a page: the deepest nesting, the most formatting elements open at once, the tags, and the options."""

    deepest: int
    formatting: int
    tags: int
    options: int

    @property
    def reopened(self) -> int:
        """An upper bound on the elements that the parser opens again, each with the attributes of the original."""
        return self.formatting * self.tags


def _pack(names: str) -> Names:
    return np.array([int.from_bytes(name.encode(), "big") for name in names.split()], np.uint64)


_NEVER_NEST = _pack("area base br col embed hr img input link meta param source track wbr p li dt dd tr td th option")
_FORMATTING = _pack("a b big code em font i nobr s small strike strong tt u")
_OPTION = _pack("option")[0]


def is_too_costly(data: bytes) -> bool:
    """Return whether a page exceeds a limit: on nodes, depth, reopened elements, attributes of a tag, or options.

    Args:
        data: the page, readable as ASCII.

    Cost: 3 to 5 ns per byte.
    """
    if has_too_many(data, is_xml=False):
        return True

    page = np.frombuffer(data, np.uint8)
    attributes = most_attributes(page)
    found = count_nesting(page)
    return (
        attributes > MAX_ATTRIBUTES
        or found.deepest > MAX_DEPTH
        or found.options > MAX_OPTIONS
        or found.reopened > MAX_REOPENED
        or found.reopened * (1 + attributes) > MAX_PARTS
    )


def count_nesting(page: Bytes) -> Nesting:
    """Count the nesting, open formatting elements, tags and options of a page."""
    return Nesting(*_count_nesting(page, _NEVER_NEST, _FORMATTING, _OPTION))


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
def _step_all(counts: NDArray[np.int64], after: NDArray[np.int64], byte: int) -> tuple[int, int]:
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
def _count_nesting(data: Bytes, never_nest: Names, formatting: Names, option: np.uint64) -> tuple[int, int, int, int]:
    """Count the fields of `Nesting`. Tags in scripts and comments count too: the depth is at least the parser's."""
    depth = deepest = opened = most_opened = tags = options = 0
    at = 0
    while at < len(data) - 1:
        if data[at] != ord("<"):
            at += 1
            continue
        at += 1
        is_closing = data[at] == ord("/")
        at += is_closing

        # Read the name in lower case: digits may follow its first letter.
        name, length = np.uint64(0), 0
        while at < len(data):
            letter = data[at] | 0x20
            is_letter = ord("a") <= letter <= ord("z") and data[at] >= ord("A")
            if not is_letter and not (length and ord("0") <= data[at] <= ord("9")):
                break
            name = (name << np.uint64(8)) | np.uint64(letter if is_letter else data[at])
            length += 1
            at += 1

        # A longer name is not in the lists.
        is_short = length <= NAME_BYTES
        tags += length > 0
        options += name == option
        if length == 0 or (is_short and _is_in(never_nest, name)):
            continue
        step = -1 if is_closing else 1
        depth = max(depth + step, 0)
        deepest = max(deepest, depth)
        if is_short and _is_in(formatting, name):
            opened = max(opened + step, 0)
            most_opened = max(most_opened, opened)
    return deepest, most_opened, tags, options


@compiled
def _is_in(names: Names, name: np.uint64) -> bool:
    """Return whether a name is in a short list, without allocating an array of comparisons."""
    for other in names:  # noqa: SIM110 - numba has no `any` of a generator
        if other == name:
            return True
    return False
