"""Titles: for each text the first words that are its own, without what pages of one site begin with."""

from collections import Counter
from collections.abc import Mapping, Sequence

TITLE = 160
"""Characters of a title."""

LOOKED_AT = 2_000
"""Characters of a text that are looked at."""

COMMON, COMMON_SHARE = 10, 0.02
"""A line is common if more texts hold it than so many, and than this share: a menu, the name of the site."""


def find_titles(texts: Sequence[str]) -> list[str]:
    r"""The lines of each text from the first that is not common, on one line; its first lines if all are common.

    Args:
        texts: of the documents stored.

    Returns:
        As many titles, at most `TITLE` characters each; empty for a text of white space.

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
    """The lines from the first on that is not common."""
    first = next((at for at, line in enumerate(lines) if held[line] <= common), len(lines))
    return lines[first:]
