"""What `tokens.ignore` leaves out of the comparison: which characters count as others, and which do not count.

    IGNORED    name -> what is ignored
    respelt    names -> the character that each of these becomes, None where it is dropped

One map makes both the table that the kernels read (`tokens.word_table`) and the texts that `check` reads
(`tokens.list_tokens`). The code points are those of Unicode 18.0, as the word table's: a newer Python changes none.

Hyphens at the ends of lines are not here: a character is respelt whatever stands around it, and `well-` before a line
break is the first half of a word or a word of its own.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

IGNORED: Final = {
    "numbers": "all tokens of digits alone are one",
    "digits": "digits of any script are those of ASCII",
    "width": "full and half width forms are ordinary ones",
    "tatweel": "the stroke that lengthens Arabic words",
    "points": "vowel marks of Hebrew and Arabic, not hamza and madda",
}
"""The values of `tokens.ignore`. With `numbers` go the digits of every script, so that it does not matter whose digits
a number is written in."""

NUMBER: Final = "0"
"""What every number becomes: a place in the sequence stays, so that `3 of 4` is not `of`."""

_ZEROS: Final = (
    "660 6F0 7C0 966 9E6 A66 AE6 B66 BE6 C66 CE6 D66 DE6 E50 ED0 F20 1040 1090 17E0 1810 1946 19D0 1A80 1A90 1B50 1BB0"
    " 1C40 1C50 A620 A8D0 A900 A9D0 A9F0 AA50 ABF0 FF10 104A0 10D30 10D40 11066 110F0 11136 111D0 112F0 11450 114D0"
    " 11650 116C0 116D0 116DA 11730 118E0 11950 11BF0 11C50 11D50 11DA0 11DE0 11F50 16130 16A60 16AC0 16B50 16D70 1CCF0"
    " 1D7CE 1D7D8 1D7E2 1D7EC 1D7F6 1E140 1E2F0 1E4F0 1E5F1 1E950 1FBF0"
)
"""The zeros of all scripts but ASCII's; the other nine digits follow each (General_Category Decimal_Number)."""

_FORMS: Final = range(0xFF01, 0xFFEF)
"""Halfwidth and Fullwidth Forms; a decomposition never changes in a later Unicode."""

_TATWEEL: Final = 0x640

_POINTS: Final = (
    (0x591, 0x5BD), (0x5BF, 0x5BF), (0x5C1, 0x5C2), (0x5C4, 0x5C5), (0x5C7, 0x5C9),
    (0x610, 0x61A), (0x64B, 0x652), (0x656, 0x65E), (0x670, 0x670), (0x6D6, 0x6DC), (0x6DF, 0x6E4), (0x6E7, 0x6E8),
    (0x6EA, 0x6ED), (0x897, 0x89F), (0x8CA, 0x8E1), (0x8E3, 0x8FF), (0xFB1E, 0xFB1E),
)  # fmt: skip
"""Marks of Hebrew and of Arabic. Madda and hamza, U+0653 to U+0655 and U+065F, are not among them: they make letters.
"""

_POINTED: Final = range(0xFB1D, 0xFB4F)
"""Hebrew letters with a point, each one character."""


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of IGNORED in its order, each once.

    Example:
        >>> in_order(["width", "numbers", "width"])
        ('numbers', 'width')
    """
    chosen = frozenset(names)
    return tuple(name for name in IGNORED if name in chosen)


@cache
def respelt(ignore: Sequence[str]) -> dict[int, int | None]:
    """Return what becomes of characters, by their code points, as `str.translate` takes it; None drops one.

    No character becomes one that becomes another. Cost: some 0.3 ms, once a process; do not write to the result.

    Example:
        >>> "Ｎｏ ٤ّ".translate(respelt(("digits", "width", "points")))
        'No 4'
    """
    others: dict[int, int | None] = {}
    if "digits" in ignore or "numbers" in ignore:
        others |= {int(zero, 16) + n: ord("0") + n for zero in _ZEROS.split() for n in range(10)}
    if "width" in ignore:
        forms = {code: unicodedata.decomposition(chr(code)).split() for code in _FORMS}
        others |= {code: int(form[1], 16) for code, form in forms.items() if form}
    if "tatweel" in ignore:
        others[_TATWEEL] = None
    if "points" in ignore:
        points = {code for first, last in _POINTS for code in range(first, last + 1)}
        for code in _POINTED:
            letter, *marks = map(ord, unicodedata.normalize("NFD", chr(code)))
            if marks and points.issuperset(marks):
                others[code] = letter
        others |= dict.fromkeys(points)
    return others
