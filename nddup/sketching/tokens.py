r"""Tokens: text -> words, by a table that the compiled sketching kernels share.

Each character belongs to one of three classes:

    word       letters, digits and `_`: `\w` as Python's `re` defines it. A maximal run of them is one token.
    alone      characters of scripts written without spaces: each is one token. Ideographs (Han, Tangut, Khitan,
               Nushu, Yi), Hiragana, Katakana, Bopomofo, and Thai, Lao, Khmer, Myanmar, Tai Le, New Tai Lue, Tai Tham,
               Tai Viet, Ahom. Not Hangul, which is written with spaces.
    separator  all other characters, including combining marks, which are not in `\w`. A mark splits a word of Arabic or
               Devanagari, and has no effect between the single characters of Thai or Khmer.

A character is lower-cased by itself, if its lower case is one character: `İ` stays as it is, and both small sigmas are
the same. So neither the rest of the word nor the language matters. Nothing is composed or decomposed: `é` and `e` with
a combining mark are different texts.

`scripts/make_word_table.py` made the table once from Python's `unicodedata`, so a newer Python does not change any
token. The table is part of the sketch format (`sketch_format`).
"""

from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

ALONE: Final = 1 << 24  # set in the entry of a character that is a token by itself
LOWER: Final = ALONE - 1  # the bits of an entry that hold the lower case


def read_word_table(text: str) -> tuple[str, NDArray[np.uint32]]:
    r"""Read the word table from its written form.

    Args:
        text: lines in the form that `word_table.txt` explains.

    Returns:
        The version of Unicode it was made from, and one entry per code point, shape (0x110000,), read-only: 0
        for a separator, else the lower case, with the bit `ALONE` where the character is a token by itself.

    Raises:
        ValueError: for a line of an unknown kind.

    Cost: about 5 ms for the table of this package.

    Example:
        >>> version, table = read_word_table("unicode 14.0.0\nword 41 5A\nlower 41 5A 1 32")
        >>> version, chr(table[ord("B")]), int(table[ord("b")])
        ('14.0.0', 'b', 0)
    """
    version = ""
    table = np.zeros(0x110000, dtype=np.uint32)
    for line in text.splitlines():
        kind, *fields = line.split()
        if kind == "#":
            continue
        if kind == "unicode":
            version = fields[0]
            continue

        first, last = int(fields[0], 16), int(fields[1], 16)
        if kind == "word":
            table[first : last + 1] = np.arange(first, last + 1)
        elif kind == "alone":
            table[first : last + 1] |= np.uint32(ALONE)
        elif kind == "lower":
            step, shift = int(fields[2]), int(fields[3])
            table[first : last + 1 : step] = np.arange(first + shift, last + shift + 1, step)
        else:
            raise ValueError(f"a word table has lines of unicode, word, alone and lower, not {kind!r}")

    table.flags.writeable = False
    return version, table


TOKEN_TABLE_VERSION, WORD_TABLE = read_word_table(
    files("nddup.sketching").joinpath("word_table.txt").read_text(encoding="ascii")
)


def tokenise(text: str) -> list[str]:
    """Return the tokens of a text, in order, lower-cased.

    For display and for lists of words. `min_s.sketch_texts` uses the same table without a Python object per token.

    Returns:
        The tokens; none if the text has only separators.

    Cost: some 0.1 us per character.

    Example:
        >>> tokenise("A rose is a ROSE; 薔薇は薔薇")
        ['a', 'rose', 'is', 'a', 'rose', '薔', '薇', 'は', '薔', '薇']
    """
    tokens: list[str] = []
    word: list[str] = []
    for entry in WORD_TABLE[[ord(character) for character in text]].tolist() if text else ():
        if 0 < entry < ALONE:
            word.append(chr(entry))
            continue

        # A separator, or a character that is a token by itself, ends the word before it.
        if word:
            tokens.append("".join(word))
            word = []
        if entry:
            tokens.append(chr(entry & LOWER))
    if word:
        tokens.append("".join(word))
    return tokens
