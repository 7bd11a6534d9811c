"""Two texts side by side as HTML, with the words that only one of them has marked."""

from html import escape
from itertools import pairwise

MOST_WORDS = 1_000
"""Most words of each text that are shown and compared, in a millisecond: nobody would read more."""

_BOX = "flex:1;min-width:16em;max-height:24em;overflow:auto;border:1px solid;padding:6px;white-space:normal"


def side_by_side(names: tuple[str, str], texts: tuple[str, str]) -> str:
    """Return both texts as HTML, with the words outside their longest common subsequence marked; case is ignored.

    A text longer than `MOST_WORDS` words is cut there, with a note.
    """
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - most commands show no two texts

    words = [text.split() for text in texts]
    cut = [row[:MOST_WORDS] for row in words]
    first, second = ([word.casefold() for word in row] for row in cut)
    blocks = LCSseq.opcodes(first, second).as_matching_blocks()
    columns = []
    for side, name in enumerate(names):
        common = [(block[side], block[side] + block.size) for block in blocks]
        more = len(words[side]) - len(cut[side])
        rest = f" <em>… and {more:,} more words, not compared</em>" if more else ""
        columns.append(
            f'<div style="{_BOX}"><strong>{escape(name)}</strong><br>{_marked(cut[side], common)}{rest}</div>'
        )
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{"".join(columns)}</div>'


def _marked(words: list[str], common: list[tuple[int, int]]) -> str:
    """Return words with those outside the common runs (start, end) marked; the last run is empty, at the end."""
    parts = []
    for (_, end), (start, stop) in pairwise([(0, 0), *common]):
        if end < start:
            parts.append(f"<mark>{escape(' '.join(words[end:start]))}</mark>")
        if start < stop:
            parts.append(escape(" ".join(words[start:stop])))
    return " ".join(parts)
