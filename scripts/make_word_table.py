"""Write `nddup/sketching/word_table.txt`: which characters form words, which are tokens alone, and lower case.

    python scripts/make_word_table.py

Run it once for each version of Unicode; it uses that of the Python that runs it. Another version makes other
tokens, so other sketches: raise `SKETCH_FORMAT` in `nddup/sketching/sketch_format.py` with it.
"""

import sys
import unicodedata
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

TABLE = Path(__file__).parents[1] / "nddup" / "sketching" / "word_table.txt"

HEADER = """\
# The characters of tokens, by scripts/make_word_table.py. Code points in hexadecimal, ends included.
#   word FIRST LAST               letters, digits and the underscore: a run of them is a token
#   alone FIRST LAST              characters of scripts written without spaces: each is a token
#   lower FIRST LAST STEP SHIFT   every STEP-th from FIRST has its lower case SHIFT (decimal) further on
"""

# Scripts written without spaces between words: the ideographic ones and those which line breaking (UAX 14)
# calls "complex context", by the beginning of their characters' names. Hangul is written with spaces.
ALONE = (
    *("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "HANGZHOU", "KHITAN", "NUSHU", "TANGUT", "YI"),
    *("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HENTAIGANA", "BOPOMOFO"),
    *("THAI", "LAO", "KHMER", "MYANMAR", "TAI LE", "NEW TAI LUE", "TAI THAM", "TAI VIET", "AHOM"),
)
IDEOGRAPHIC = (
    "IDEOGRAPH",
    "VERTICAL IDEOGRAPH",
    "VERTICAL KANA",
    "MASU MARK",
    "OLD CHINESE",
    "CIRCLED IDEOGRAPH",
    "PARENTHESIZED IDEOGRAPH",
)
NAMELESS = (range(0x17000, 0x18800), range(0x18D00, 0x18D80))  # Tangut ideographs: `unicodedata` has no names
FINAL_SIGMA, SIGMA = 0x3C2, 0x3C3


def is_word(code: int) -> bool:
    r"""Return whether the character is in `\w`, as Python's `re` defines it."""
    return chr(code).isalnum() or chr(code) == "_"


def is_alone(code: int) -> bool:
    """Return whether the character is a token by itself."""
    if not is_word(code):
        return False
    name = unicodedata.name(chr(code), "")
    return name.startswith(ALONE + IDEOGRAPHIC) or any(code in block for block in NAMELESS)


def lower(code: int) -> int:
    """Return the lower case of a character if that is one character, else itself; final sigma becomes sigma."""
    small = chr(code).lower()
    if code == FINAL_SIGMA:
        return SIGMA
    return ord(small) if len(small) == 1 else code


def runs(member: Callable[[int], bool]) -> Iterator[tuple[int, int]]:
    """Yield the first and last code point of each maximal run of members."""
    edges = [code for code in range(sys.maxunicode + 2) if wanted(member, code) != wanted(member, code - 1)]
    for first, end in list(pairwise(edges))[::2]:
        yield first, end - 1


def wanted(member: Callable[[int], bool], code: int) -> bool:
    """Return whether `member` holds; False outside Unicode."""
    return 0 <= code <= sys.maxunicode and member(code)


def lower_runs() -> Iterator[tuple[int, int, int, int]]:
    """Yield (first, last, step, shift): progressions of capitals at the same distance from their lower case."""
    shifts = {code: lower(code) - code for code in range(sys.maxunicode + 1) if is_word(code) and lower(code) != code}
    while shifts:
        first, shift = next(iter(shifts.items()))
        step = 1 if shifts.get(first + 1) == shift else 2
        last = first
        while shifts.get(last) == shift:
            del shifts[last]
            last += step
        yield first, last - step, step, shift


def main() -> None:
    """Write the table."""
    lines = [f"unicode {unicodedata.unidata_version}"]
    lines += [f"word {first:X} {last:X}" for first, last in runs(is_word)]
    lines += [f"alone {first:X} {last:X}" for first, last in runs(is_alone)]
    lines += [f"lower {first:X} {last:X} {step} {shift}" for first, last, step, shift in lower_runs()]
    TABLE.write_text(HEADER + "\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
