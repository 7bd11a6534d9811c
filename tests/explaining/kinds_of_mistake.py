"""Pairs of texts on which measures and readers disagree: each is an example of one kind of mistake."""

from collections.abc import Callable
from typing import NamedTuple

from tests.embedded.confirmed_texts import edit

WORDS = 5
"""Tokens of a shingle, the default."""


class Example(NamedTuple):
    """Two texts, and whether readers call them the same."""

    first: str
    second: str
    reader: str


_TEMPLATE = """
Hotel {name} in {town} welcomes guests all year round. Rooms have a bathroom, a television, a telephone and free
wireless internet. Breakfast is served from seven to ten in the dining room on the ground floor. Parking is available in
front of the house. Guests may check in from three in the afternoon and leave their room until eleven on the day of
departure. Pets are welcome on request. The station of {town} is {minutes} minutes away on foot, and {sight} is {far}.
Book a room at Hotel {name} by telephone, or use the form below. Our staff will answer within one working day.
"""

_NEWS = """
The council voted on Tuesday to close the old bridge for repairs. Engineers had found cracks in two of its piers during
an inspection in March. Traffic will be led over the northern ring road until the work is done. The mayor said that the
bridge would open again before winter. Shops near the river fear for their trade. A spokesman for the shopkeepers asked
for a footbridge while the work goes on. The council will decide on that request next week. The repairs will cost about
four million, most of which the state will pay.
"""
_REVISED = """
The council voted on Tuesday to close the old bridge for repairs from the first of May. Engineers had found cracks in
two of its piers during an inspection in March. Traffic will be led over the northern ring road until the work is
finished. The mayor said that she expected the bridge to open again before winter. Shops near the river fear for
their trade, and their spokesman asked for a footbridge while the work goes on. The council will decide on that next
week. The repairs will cost nearly five million, of which the state will pay most.
"""

_ARTICLE = """
Bread dough rises because yeast turns sugar into gas. Gluten, a net of proteins in the flour, holds the gas in small
bubbles. Kneading lines these proteins up and makes the net strong. A warm kitchen makes the yeast work faster, and a
cold one gives the dough more taste, since other processes go on while the yeast is slow. Salt slows the yeast as well.
Bakers therefore weigh it with care, and keep it away from the yeast until the flour is wet. When the loaf goes into the
oven, the gas grows once more, until the heat has set the crumb. Steam keeps the crust soft for the first minutes, so
that the loaf can open. Without it, the crust would set too early and tear at the side. Let the bread cool before it is
cut, for the crumb is still setting while steam leaves it.
"""
_OLD_SIDEBAR = "Read also: Ten soups for autumn. How to keep herbs fresh. Our pick of the best knives this year."
_NEW_SIDEBAR = "Read also: Grilling for beginners. Salads that keep till evening. Which ice machine is worth it?"

_ITEMS = "maple birch rowan hazel willow poplar aspen alder beech hornbeam elm lime chestnut walnut cherry plum"
_MORE = "pear quince medlar hawthorn yew larch spruce fir juniper cypress"
_LIST = "Trees that we have in stock for planting this season, delivered with roots wrapped in cloth: {}."

EXAMPLES = {
    "a template with another subject": Example(
        _TEMPLATE.format(name="Aurora", town="Lindau", minutes="five", sight="the harbour", far="round the corner"),
        _TEMPLATE.format(name="Central", town="Kassel", minutes="ten", sight="the old park", far="half an hour by bus"),
        "no",
    ),
    "a revision": Example(_NEWS, _REVISED, "they disagree"),
    "a sidebar that changes": Example(f"{_OLD_SIDEBAR} {_ARTICLE}", f"{_NEW_SIDEBAR} {_ARTICLE}", "yes"),
    "a list that grew": Example(_LIST.format(_ITEMS), _LIST.format(f"{_ITEMS} {_MORE}"), "yes"),
}


def shingles_of(text: str) -> set[tuple[str, ...]]:
    """Return the distinct shingles of a text."""
    tokens = plain(text).split()
    return {tuple(tokens[at : at + WORDS]) for at in range(len(tokens) - WORDS + 1)}


def plain(text: str) -> str:
    """Return the words of a text in lower case; the examples have only letters and punctuation."""
    return " ".join("".join(letter if letter.isalpha() else " " for letter in text.lower()).split())


def resemblance(first: str, second: str) -> float:
    """Return the share of common shingles among all shingles of both texts."""
    a, b = shingles_of(first), shingles_of(second)
    return len(a & b) / len(a | b)


def containment(first: str, second: str) -> float:
    """Return the share of the shingles of the smaller text that the other has too."""
    a, b = shingles_of(first), shingles_of(second)
    return len(a & b) / min(len(a), len(b))


MEASURES: dict[str, Callable[[str, str], float]] = {
    "resemblance": resemblance,
    "containment of the smaller": containment,
    "edit": lambda first, second: float(edit(plain(first).split(), plain(second).split())),
}
"""Each measure by its definition."""
