r"""Normalising: text -> tokens. One table decides, here and in the compiled sketches.

The rule, character by character:

    word       letters, digits and `_`: `\w` as Python's `re` defines it. A maximal run of them is one token.
    alone      those of scripts written without spaces: each is one token. Ideographs (Han, Tangut, Khitan,
               Nushu, Yi), Hiragana, Katakana, Bopomofo, and Thai, Lao, Khmer, Myanmar, Tai Le, New Tai Lue,
               Tai Tham, Tai Viet, Ahom. Not Hangul, which has spaces.
    separator  all else, combining marks included: `\w` has none. A mark parts a word of Arabic or Devanagari,
               and vanishes between the single characters of Thai or Khmer.

Lower case is that of the character alone, where it is one character: `İ` stays, and both small sigmas are
one. So neither the rest of the word nor the language matters. Nothing is composed or decomposed: `é` and `e`
with a mark are different texts.

The table was made once from Python's `unicodedata` by `scripts/make_word_table.py`, so a newer Python does
not change a token. It is part of the sketch format (`sketch_format`).
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
        text: lines as `word_table.txt` explains them.

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
    """Give the tokens of a text, in order.

    For showing and for lists of words; sketches are made by `sketching.sketch_texts`, which follows the same
    table without a Python object per token.

    Args:
        text: any string.

    Returns:
        Its tokens, lower-cased. Empty if no character is of a word.

    Cost: some 0.1 us a character.

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
        if word:
            tokens.append("".join(word))
            word = []
        if entry:
            tokens.append(chr(entry & LOWER))
    if word:
        tokens.append("".join(word))
    return tokens
