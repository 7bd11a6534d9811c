"""Judgements of removals, as the report saves them: `doc_id`, `duplicate_of`, `judgement`, and columns that say more.

is_judged       rows of a list   -> whether it holds judgements
list_judged     these            -> each removal with what was said of the document that stays
force_judged    these            -> what `keep.force` is told by them
"""

from collections.abc import Iterator
from typing import NamedTuple

from nddup.reading.id_lists import Rows

JUDGEMENTS = ("better", "equal", "worse", "not a duplicate")
"""What a person may say of the document that stays."""

NAMES = ("doc_id", "duplicate_of", "judgement")


class Judged(NamedTuple):
    """A removal: the number of its line, both documents, and the judgement; empty if there is none."""

    number: int
    doc_id: str
    kept: str
    said: str


def is_judged(found: Rows) -> bool:
    """Return whether a list has the columns of judgements."""
    return set(NAMES) <= set(found.names)


def list_judged(found: Rows) -> Iterator[Judged]:
    """Yield the removals of a list.

    Raises:
        ValueError: for a row without both ids, or with another judgement.
    """
    places = [found.names.index(name) for name in NAMES]
    for number, cells in found.rows:
        doc_id, kept, said = (cells[at].strip() if at < len(cells) else "" for at in places)
        word = said.lower()
        if not doc_id or not kept or (word and word not in JUDGEMENTS):
            raise ValueError(
                f"line {number}: expected two ids and a judgement ({', '.join(JUDGEMENTS)}), got {doc_id!r}, {kept!r},"
                f" {said!r}"
            )
        yield Judged(number, doc_id, kept, word)


def force_judged(found: Rows) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the id and the word for `keep.force`.

    A removed document that is better than the kept one takes its place; one that is no duplicate is kept.

    Raises:
        ValueError: as `list_judged`.

    Example:
        >>> rows = Rows(NAMES, [(2, ["a", "b", "worse"]), (3, ["c", "b", "equal"]), (4, ["d", "b", "Not a duplicate"])])
        >>> list(force_judged(rows))
        [(2, 'a', 'kept'), (2, 'b', 'removed'), (4, 'd', 'kept')]
    """
    for number, doc_id, kept, said in list_judged(found):
        if said in ("worse", "not a duplicate"):
            yield number, doc_id, "kept"
        if said == "worse":
            yield number, kept, "removed"
