"""Titles of texts: the first words of each, without lines that many texts share, such as the menu of a site."""

from collections import Counter
from collections.abc import Mapping, Sequence

TITLE = 160
"""Most characters of a title."""

LOOKED_AT = 2_000
"""Characters at the start of a text that are searched for a title."""

COMMON, COMMON_SHARE = 10, 0.02
"""A line is common if more than this number and more than this share of texts have it: a menu, the name of a site."""


def find_titles(texts: Sequence[str]) -> list[str]:
    r"""Return for each text its lines from the first uncommon one on, joined; from its first line if all are common.

    Args:
        texts: the stored texts.

    Returns:
        A title for each text, at most `TITLE` characters long; empty for a text of white space.

    Example:
        >>> texts = [f"Home Search\nPage {number}" for number in range(20)]
        >>> find_titles([*texts, "Home  Search"])[19:]
        ['Page 19', 'Home Search']
    """
    lines = [[" ".join(line.split()) for line in text[:LOOKED_AT].split("\n") if not line.isspace()] for text in texts]
    held = Counter(line for of_one in lines for line in set(of_one))
    common = max(COMMON, COMMON_SHARE * len(texts))
    return [" ".join(_own(of_one, held, common) or of_one)[:TITLE] for of_one in lines]


def _own(lines: Sequence[str], held: Mapping[str, int], common: float) -> Sequence[str]:
    """Return the lines from the first uncommon one on."""
    first = next((at for at, line in enumerate(lines) if held[line] <= common), len(lines))
    return lines[first:]
