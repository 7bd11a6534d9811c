"""Tokens by their definition, from `unicodedata2` and `regex`, which have the Unicode of the table."""

from functools import cache

import regex
import unicodedata2 as unicodedata
from regex import _regex

from nddup.sketching.tokens import OF_ALONE, character_class

MASK = 2**64 - 1
CHILLU = {0xD7A: 0xD23, 0xD7B: 0xD28, 0xD7C: 0xD30, 0xD7D: 0xD32, 0xD7E: 0xD33, 0xD7F: 0xD15}
CHILLU_LETTERS = {code: chr(base) + "\u0d4d" for code, base in CHILLU.items()}
# Default_Ignorable_Code_Point of DerivedCoreProperties.txt.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

FOLDING = regex.IGNORECASE | regex.FULLCASE | regex.UNICODE


@cache
def is_letter(character: str) -> bool:
    r"""Return whether a character is in `\w`, or has its place in the planes of ideographs."""
    is_ideograph = 0x20000 <= ord(character) < 0x40000 and ord(character) & 0xFFFF < 0xFFFE
    is_numeric = unicodedata.numeric(character, None) is not None
    return unicodedata.category(character)[0] == "L" or is_numeric or is_ideograph or character == "_"


@cache
def casefold(character: str) -> str:
    """Return the full case folding. `regex` leaves out the two letters that Turkish folds in another way."""
    return {"I": "i", "\u0130": "i\u0307"}.get(character) or str(_regex.fold_case(FOLDING, character))


@cache
def ignorable() -> frozenset[str]:
    """Return the default-ignorable characters."""
    found: set[str] = set()
    for i, character in enumerate(IGNORABLE):
        if character == "-":
            found |= {chr(code) for code in range(ord(IGNORABLE[i - 1]), ord(IGNORABLE[i + 1]))}
        else:
            found.add(character)
    return frozenset(found)


def defined_normal_form(text: str) -> str:
    """Drop, decompose, fold, drop the dots of i, compose."""
    text = "".join(character for character in text if character not in ignorable())
    folded = "".join(map(casefold, unicodedata.normalize("NFD", text.translate(CHILLU_LETTERS))))
    folded = unicodedata.normalize("NFD", folded).replace("\u0131", "i")
    kept, is_i = [], False
    for character in folded:
        if character == "\u0307" and is_i:
            continue
        is_i = character == "i" or (is_i and unicodedata.combining(character) not in {0, 230})
        kept.append(character)
    return str(unicodedata.normalize("NFC", "".join(kept)))


def defined_tokens(text: str) -> list[str]:
    """Split the normal form."""
    tokens, word, is_alone = [], "", False
    for character in defined_normal_form(text):
        if unicodedata.category(character)[0] == "M":
            word += character if word else ""
            continue
        stands = character_class(character) == OF_ALONE
        if word and (not is_letter(character) or stands or is_alone):
            tokens.append(word)
            word = ""
        word += character if is_letter(character) else ""
        is_alone = stands
    return [*tokens, word] if word else tokens


def defined_characters(text: str) -> list[str]:
    """Return the characters of a text with their marks, and one blank for everything between two words."""
    characters: list[str] = []
    is_gap = True
    for character in defined_normal_form(text):
        if unicodedata.category(character)[0] == "M":
            if not is_gap:
                characters[-1] += character
        elif is_letter(character):
            characters += [" ", character] if is_gap and characters else [character]
            is_gap = False
        else:
            is_gap = True
    return characters


def defined_hash(token: str) -> int:
    """Hash the UTF-8 of a token eight bytes at a time: in exact integers."""
    data = token.encode()
    padded = data + bytes(8 - len(data) % 8)
    state = 0xCBF29CE484222325
    for at in range(0, len(padded), 8):
        state = (state ^ int.from_bytes(padded[at : at + 8], "little")) * 0xD6E8FEB86659FD93 & MASK
        state ^= state >> 32
    state = (state ^ len(data)) * 0xFF51AFD7ED558CCD & MASK
    return state ^ state >> 29
