"""Two texts of a run, word by word, for a terminal: `nddup show RUN --compare A B`.

[-words-] only in A,  {+words+} only in B,  … for common words far from any difference
"""

from collections.abc import Sequence

from nddup.engines.engine import FinishedRun, text_places
from nddup.errors import ConfigError
from nddup.ground.shown import counted, one_line
from nddup.results.opening import read_whole_texts

BESIDE = 8
"""Common words that are printed before and after a difference."""

MOST_WORDS = 20_000
"""Words of each text that are compared."""


def compare_texts(run: FinishedRun, first: str, second: str, *, master: str | None) -> str:
    """Return the differences of two documents, whose texts are read again from the inputs.

    Raises:
        ConfigError: if a document is unknown, or both are the same.
        NddupError: if an input is gone or was changed since the run.

    Cost: one pass over the files of both.
    """
    if first == second:
        raise ConfigError(f"--compare: expected two documents, got {first} twice")
    places = text_places(run, [first, second])
    for name in (first, second):
        if name not in places:
            raise ConfigError(f"--compare {name}: no such document in {run.path}")
    texts = read_whole_texts(run.path, places, master=master)
    words = [texts[name].split() for name in (first, second)]
    head = [
        f"[-only here-] {one_line(first)}, {counted(len(words[0]), 'word')}",
        f"{{+only here+}} {one_line(second)}, {counted(len(words[1]), 'word')}",
    ]
    cut = max(map(len, words)) > MOST_WORDS
    note = [f"only the first {MOST_WORDS:,} words of each are compared"] if cut else []
    return "\n".join([*head, *note, "", *mark(words[0][:MOST_WORDS], words[1][:MOST_WORDS]), ""])


def mark(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Return a line for each difference, with the words around it.

    Example:
        >>> mark("the old house by the sea".split(), "the new house by the sea".split())
        ['the [-old-] {+new+} house by the sea']
    """
    from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - most commands compare no two texts

    lines: list[str] = []
    line: list[str] = []
    a = b = 0
    is_open = False  # whether the line has a difference
    for block in LCSseq.opcodes(first, second).as_matching_blocks():  # the last is empty, at the end of both
        only_a, only_b = one_line(" ".join(first[a : block.a])), one_line(" ".join(second[b : block.b]))
        line += [text for text, words in ((f"[-{only_a}-]", only_a), (f"{{+{only_b}+}}", only_b)) if words]
        is_open |= bool(only_a or only_b)
        a, b = block.a + block.size, block.b + block.size
        common = [one_line(word) for word in first[block.a : a]]
        is_last = (a, b) == (len(first), len(second))
        if is_open and (is_last or len(common) > 2 * BESIDE):
            lines.append(" ".join([*line, *common[:BESIDE], *(["…"] if len(common) > BESIDE else [])]))
            line, is_open = [], False
        if is_open or len(common) <= BESIDE:
            line += common
        else:
            line = ["…", *common[-BESIDE:]]
    return lines or ["the same words"]
