"""Whether a text of unknown kind is a page or a fragment of one, so that its markup is removed.

A text that mentions tags is no page: from a mentioned `<script>` on everything would count as a script, and posts with
different words would become equal. A text is a page if it begins as one, and a fragment if it begins with an element
or has tags throughout, all of them closed. What only looks like a tag (`Vec<T>`, `<info@example.org>`, `<I>` in a
ticker that is never closed), tags in quotation marks, and code around tags speak against it.
"""

import re
from collections import Counter
from itertools import groupby
from typing import Final, NamedTuple

WINDOW: Final = 65_536
"""Characters of a text that are examined."""

WORDS_PER_TAG: Final = 30
"""Most words per tag of a fragment that neither begins nor ends with a tag."""

SIGNS_PER_WORD: Final = 0.3
"""Most signs of code per word of such a fragment: prose has hardly any, source files one or more."""

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


def _any_of(names: str) -> str:
    """Return a pattern of names, by their first letters: `re` tries a choice of a hundred names one by one."""
    by_letter = groupby(sorted(names.split()), key=lambda name: name[0])
    return "|".join(f"{letter}(?:{'|'.join(name[1:] for name in some)})" for letter, some in by_letter)


_BLANKS = re.compile(r"[\s\ufeff]*+")
_PAGE = re.compile(r"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_TAG = (
    rf"(?P<end>/?)(?P<name>{_any_of(f'{_VOID} {_OPTIONAL} {_CLOSED}')})"
    r"(?:\s+[\w:@.-]+\s*=[^<>]*|(?:\s+(?:nowrap|noshade|checked|selected|disabled|compact|multiple|hidden|async|defer))*"
    r"\s*/?)>"
)
# Both begin with a plain character, for which Python searches much faster than for a choice.
_ANY_TAG = re.compile(rf"<{_TAG}", re.IGNORECASE)
_TOKEN = re.compile(rf"<(?:(?P<comment>!--)|{_TAG}|(?=[A-Za-z/!?]))", re.IGNORECASE)
_SIGNS = re.compile(r"[=(){}\[\];_\\]")
_QUOTES = frozenset("\"'`(\u201c\u201d\u2018\u2019")


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


def is_page_or_fragment(text: str) -> bool:
    """Return whether a text is an HTML page or a fragment of one, judged by its first WINDOW characters.

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
