"""Write `nddup/sketching/word_table.txt`: what is dropped, folded, composed, and which characters form tokens.

    pip install unicodedata2==18.0.0 regex==2026.11.19
    python scripts/make_word_table.py

Run it once for each version of Unicode. `unicodedata2` has the characters, `regex` their case folding and properties
that the other lacks; both must be of one version. Nothing else here needs them. Another version makes other
tokens, so other sketches: raise `SKETCH_FORMAT` in `nddup/sketching/tokens.py` with it.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import regex
import unicodedata2 as unicodedata
from regex import _regex

TABLE = Path(__file__).parents[1] / "nddup" / "sketching" / "word_table.txt"

HEADER = """\
# Normalising and tokens, by scripts/make_word_table.py. Code points in hexadecimal, ends included.
#   word FIRST LAST               letters, digits and the underscore: a run of them is a token
#   alone FIRST LAST              characters of scripts written without spaces: each is a token
#   mark FIRST LAST               combining marks: each belongs to the token before it
#   order FIRST LAST CLASS        the canonical combining class (decimal) of marks, if not 0
#   drop FIRST LAST               default-ignorable code points: dropped before all else
#   fold FIRST LAST STEP SHIFT    every STEP-th from FIRST becomes the one SHIFT (decimal) further on
#   spell CODE CODE...            what a character becomes if that is several
#   join CODE FIRST SECOND        the canonical composition of two folded characters
#   none FIRST LAST               code points that this Unicode assigns to no character: perhaps letters of a later one
"""

# Scripts written without spaces between words: the ideographic ones and those which line breaking (UAX 14)
# calls "complex context", by the beginning of their characters' names. Hangul is written with spaces.
ALONE = (
    *("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "HANGZHOU", "KHITAN", "NUSHU", "TANGUT", "YI"),
    *("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HENTAIGANA", "BOPOMOFO"),
    *("THAI", "LAO", "KHMER", "MYANMAR", "TAI LE", "NEW TAI LUE", "TAI THAM", "TAI VIET", "AHOM"),
)
# Those without such a name, such as Tangut ideographs, and the letters of scripts that are new.
PROPERTIES = regex.compile(r"[\p{Ideographic}\p{Line_Break=Complex_Context}]")
IDEOGRAPHIC = (
    "IDEOGRAPH",
    "VERTICAL IDEOGRAPH",
    "VERTICAL KANA",
    "MASU MARK",
    "OLD CHINESE",
    "CIRCLED IDEOGRAPH",
    "PARENTHESIZED IDEOGRAPH",
)
RESERVED = (range(0x20000, 0x2FFFE), range(0x30000, 0x3FFFE))
"""Planes of ideographs: also of those that a later Unicode assigns."""

UNASSIGNED = regex.compile(r"\p{Cn}")
IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}")
FOLDING = regex.IGNORECASE | regex.FULLCASE | regex.UNICODE
TURKIC = {"I": "i", "\u0130": "i\u0307"}  # `regex` folds these for Turkish as well, so leaves them

# Malayalam chillu letters: each was written as its consonant, virama and a joiner before Unicode 5.1.
CHILLU = {0xD7A: 0xD23, 0xD7B: 0xD28, 0xD7C: 0xD30, 0xD7D: 0xD32, 0xD7E: 0xD33, 0xD7F: 0xD15}
VIRAMA = "\u0d4d"
DOTLESS, IOTA_BELOW = "\u0131", "\u0345"
HANGUL = range(0xAC00, 0xD7A4)
SURROGATES = range(0xD800, 0xE000)
NO_CHARACTERS = range(0xFDD0, 0xFDF0)
LAST_TWO = 0xFFFE
"""Noncharacters: these, and those of each plane that have these bits."""


def is_reserved(code: int) -> bool:
    """Return whether the code point will be an ideograph, if it is ever assigned."""
    return any(code in plane for plane in RESERVED) and unicodedata.category(chr(code)) == "Cn"


def is_unknown(code: int) -> bool:
    """Return whether the code point has no character yet, and may get one; dropped ones get none that is read."""
    is_free = unicodedata.category(chr(code)) == "Cn" and not is_reserved(code) and not is_dropped(code)
    return is_free and code & LAST_TWO != LAST_TWO and code not in NO_CHARACTERS


def is_word(code: int) -> bool:
    r"""Return whether the character is in `\w`, as Python's `re` defines it, or reserved for an ideograph."""
    char = chr(code)
    is_letter = unicodedata.category(char)[0] == "L" or unicodedata.numeric(char, None) is not None
    return is_letter or char == "_" or is_reserved(code)


def is_alone(code: int) -> bool:
    """Return whether the character is a token by itself, with its marks."""
    if not is_word(code):
        return False
    name = unicodedata.name(chr(code), "")
    return name.startswith(ALONE + IDEOGRAPHIC) or is_reserved(code) or PROPERTIES.match(chr(code)) is not None


def is_mark(code: int) -> bool:
    """Return whether the character is a combining mark: General_Category M."""
    return str(unicodedata.category(chr(code))).startswith("M")


def is_dropped(code: int) -> bool:
    """Return whether the character is default-ignorable."""
    return IGNORABLE.match(chr(code)) is not None


def casefold(char: str) -> str:
    """Return the full case folding of a character."""
    return TURKIC.get(char) or str(_regex.fold_case(FOLDING, char))


def spelling(code: int) -> str:
    """Return what a character becomes, decomposed. The iota below becomes a letter only after marks are ordered."""
    if code in CHILLU:
        return chr(CHILLU[code]) + VIRAMA
    folded = "".join(c if c == IOTA_BELOW else casefold(c) for c in unicodedata.normalize("NFD", chr(code)))
    spelt = str(unicodedata.normalize("NFD", folded)).replace(DOTLESS, "i")
    return spelt if spelt == "i" else spelt.replace("i\u0307", "i")


def require(is_so: object, code: int, fault: str) -> None:
    """Stop where a character would break what the kernels rely on."""
    if not is_so:
        raise SystemExit(f"U+{code:04X} {fault}: the kernels of nddup.sketching.folding rely on the opposite")


def runs(member: Callable[[int], object]) -> Iterator[tuple[int, int]]:
    """Yield the first and last code point of each maximal run of equal values that are true."""
    values = [None, *(member(code) for code in range(sys.maxunicode + 1)), None]
    edges = [i for i in range(1, len(values)) if values[i] != values[i - 1]]
    for first, end in pairwise(edges):
        if values[first]:
            yield first - 1, end - 2


def fold_runs(folds: dict[int, int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield (first, last, step, shift): progressions of characters at the same distance from what they become."""
    shifts = {code: folded - code for code, folded in folds.items()}
    while shifts:
        first, shift = next(iter(shifts.items()))
        step = 1 if shifts.get(first + 1) == shift else 2
        last = first
        while shifts.get(last) == shift:
            del shifts[last]
            last += step
        yield first, last - step, step, shift


def changed() -> tuple[dict[int, int], dict[int, str]]:
    """Return the characters of tokens that become one other, and those that become several."""
    folds, spelt = {}, {}
    for code in range(sys.maxunicode + 1):
        if code in SURROGATES or code in HANGUL or is_dropped(code) or not (is_word(code) or is_mark(code)):
            continue
        parts = spelling(code)
        whole = unicodedata.normalize("NFC", parts)
        if len(whole) > 1 or (IOTA_BELOW in parts and code != ord(IOTA_BELOW)):
            spelt[code] = parts
        elif whole != chr(code):
            folds[code] = ord(whole)
        require(is_mark(ord(parts[0])) == is_mark(code), code, "turns from a letter into a mark, or back")
        require(all(is_word(ord(c)) or is_mark(ord(c)) for c in parts), code, "becomes a separator")
        require(len({is_alone(ord(c)) for c in (chr(code), *parts) if is_word(ord(c))}) <= 1, code, "changes its class")
    return folds, spelt


def joins(changes: set[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (composition, first, second) of all that can arise from folded characters, Hangul apart."""
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if not parts[1:] or parts[0].startswith("<") or code in changes or code in HANGUL:
            continue
        first, second = (int(part, 16) for part in parts)
        if unicodedata.normalize("NFC", chr(first) + chr(second)) == chr(code) and (is_word(first) or is_mark(first)):
            require((is_word(code), is_alone(code)) == (is_word(first), is_alone(first)), code, "changes its class")
            yield code, first, second


def main() -> None:
    """Write the table."""
    for code in (code for code in range(sys.maxunicode + 1) if code not in SURROGATES):
        is_assigned = unicodedata.category(chr(code)) != "Cn"
        require(is_assigned != bool(UNASSIGNED.match(chr(code))), code, "is not of one version of Unicode")
    folds, spelt = changed()
    lines = [f"unicode {unicodedata.unidata_version}"]
    lines += [f"word {first:X} {last:X}" for first, last in runs(is_word)]
    lines += [f"alone {first:X} {last:X}" for first, last in runs(is_alone)]
    lines += [f"mark {first:X} {last:X}" for first, last in runs(is_mark)]
    for first, last in runs(lambda code: unicodedata.combining(chr(code))):
        lines.append(f"order {first:X} {last:X} {unicodedata.combining(chr(first))}")
    lines += [f"drop {first:X} {last:X}" for first, last in runs(is_dropped)]
    lines += [f"fold {first:X} {last:X} {step} {shift}" for first, last, step, shift in fold_runs(folds)]
    lines += [" ".join(["spell", f"{code:X}", *(f"{ord(c):X}" for c in parts)]) for code, parts in spelt.items()]
    lines += [f"join {code:X} {first:X} {second:X}" for code, first, second in joins({*folds, *spelt})]
    lines += [f"none {first:X} {last:X}" for first, last in runs(is_unknown)]
    TABLE.write_text(HEADER + "\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
