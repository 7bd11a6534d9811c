"""Tokens: text -> normalised words, by a table that the compiled sketching kernels share.

    read_word_table    lines of `word_table.txt`  -> version of Unicode, table
    word_table         names of what is ignored   -> the table for the kernels
    tokenise           text                       -> its tokens, in order
    normalise          text                       -> the text as tokens see it
    character_class    a normalised character     -> OF_WORD, OF_ALONE, OF_MARK, or 0 for a separator
    SKETCH_FORMAT, FULL_FORMAT, TOKEN_TABLE_VERSION    stored sketches compare only if made under the same ones

`tokenise` is the definition in plain Python, which `check` and the tests use; the kernels of `folding` do the same.
Tokens end where UAX #29 ends words, except that its rules for punctuation inside words are not used, and that
characters of scripts written without spaces stand alone.
"""

import re
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nddup.sketching.respelling import NUMBER, respelt

N_CODES: Final = 0x110000

# The first part of the table has an entry for each code point: 0 for a separator, else a kind and a value. For these
# kinds the value is what the character becomes, and nothing before it changes it:
CODE: Final = (1 << 24) - 1  # the bits of an entry that hold the value
WORD: Final = 0 << 24  # belongs to a word
ALONE: Final = 1 << 24  # is a token by itself
MARK: Final = 2 << 24  # belongs to the token before it
# The others:
DROPPED: Final = 3 << 24  # has no effect
JOINING: Final = 4 << 24  # becomes the value, but may compose with what is before it
SPELT: Final = 5 << 24  # becomes several; the value is where they are in the fourth part

# The second part has facts of each code point: its canonical combining class, its class, whether the table knows it,
# and which join makes it.
FACTS: Final = N_CODES
ORDER: Final = 0xFF
CLASS_SHIFT: Final = 8
CLASS: Final = 3
OF_WORD, OF_ALONE, OF_MARK = 1, 2, 3
IS_FIRST: Final = 1 << 10  # set if some join begins with this character
UNKNOWN: Final = 1 << 11  # set if this Unicode has no such character, but a later one may
JOIN_SHIFT: Final = 16  # the number of the join that makes this character, from 1

# The third part has the joins, ascending: a column of firsts, one of seconds, one of compositions.
JOINS: Final = 2 * N_CODES
JOIN_BITS: Final = 9
JOIN_ROOM: Final = 1 << JOIN_BITS
SECONDS: Final = JOINS + JOIN_ROOM
COMPOSED: Final = SECONDS + JOIN_ROOM

# The fourth part has the characters of each spelling, after their number.
SPELLINGS: Final = COMPOSED + JOIN_ROOM
SPELLING_ROOM: Final = 1024

NUMBERS: Final = SPELLINGS + SPELLING_ROOM
"""The last entry: 1 if every token of digits alone is one and the same (`tokens.ignore`)."""

LETTER_I: Final = 0x69
DOT_ABOVE: Final = 0x307
IOTA_BELOW: Final = 0x345
IOTA: Final = 0x3B9
ABOVE: Final = 230  # the combining class of marks above a letter

# Hangul syllables compose by arithmetic.
LEAD, VOWEL, TAIL, SYLLABLE = 0x1100, 0x1161, 0x11A7, 0xAC00
LEADS, VOWELS, TAILS = 19, 21, 28


_KINDS: Final = ("#", "unicode", "word", "alone", "mark", "order", "drop", "fold", "spell", "join", "none")

_ASCII_WORD: Final = re.compile("[0-9_a-z]+")

_PIECE: Final = re.compile("[0-9A-Z_a-z\x80-\U0010ffff]+")
"""What lies between the separators of ASCII: nothing in it depends on what is outside."""

REMEMBERED: Final = 32
"""Maximum number of characters of a piece whose tokens are remembered."""

SKETCH_FORMAT: Final = 4
"""Raise it whenever the ids of any text change: sketches stored before cannot be compared with those made later.

An id depends on the word table (`tokens.TOKEN_TABLE_VERSION` and the rule of `tokens`), on the hash of tokens and of
shingles (`rolling_hash`), on where shingles start, and on the permutation (`permutations.mix_id`).
"""


def read_word_table(text: str) -> tuple[str, NDArray[np.uint32]]:
    r"""Read the word table from its written form.

    `scripts/make_word_table.py` made the table once from Unicode 18.0, so a newer Python does not change any token. The
    table is part of the sketch format (`SKETCH_FORMAT`). No compiled code is needed to read it.

    Args:
        text: lines in the form that `word_table.txt` explains.

    Returns:
        The version of Unicode it was made from, and the table, one array of four parts as above, read-only.

    Raises:
        ValueError: for a line of an unknown kind.

    Cost: about 10 ms for the table of this package.

    Example:
        >>> version, table = read_word_table("unicode 14.0.0\nword 41 5A\nfold 41 5A 1 32")
        >>> version, chr(table[ord("B")]), int(table[ord("b")])
        ('14.0.0', 'b', 0)
    """
    lines: dict[str, list[list[str]]] = {kind: [] for kind in _KINDS}
    for line in text.splitlines():
        kind, *fields = line.split()
        if kind not in lines:
            raise ValueError(f"a word table has lines of {', '.join(_KINDS[1:])}, not {kind!r}")
        lines[kind].append(fields)

    table = np.zeros(NUMBERS + 1, dtype=np.uint32)
    entries, facts = table[:N_CODES], table[FACTS : FACTS + N_CODES]
    all_codes = np.arange(N_CODES, dtype=np.uint32)
    for kind, entry, fact in (("word", WORD, OF_WORD), ("alone", ALONE, OF_ALONE), ("mark", MARK, OF_MARK)):
        for part in map(_part, lines[kind]):  # ranges of Han are long: by slices, no list of them is made
            entries[part] = all_codes[part] | entry
            facts[part] = fact << CLASS_SHIFT
    for first, last, order in lines["order"]:
        facts[_part([first, last])] |= int(order)
    for part in map(_part, lines["none"]):
        facts[part] |= UNKNOWN
    codes, shifts = _expand(lines["fold"])
    entries[codes] += shifts.astype(np.uint32)

    seconds = _add_joins(table, lines["join"])
    codes = np.concatenate([seconds, codes[np.isin(entries[codes] & CODE, seconds)]])
    entries[codes] = entries[codes] & CODE | JOINING
    _add_spellings(table, lines["spell"])
    for part in map(_part, lines["drop"]):
        entries[part] = DROPPED
    table.flags.writeable = False
    return lines["unicode"][0][0] if lines["unicode"] else "", table


def _part(row: list[str]) -> slice:
    """Return the code points of a line "FIRST LAST [STEP]"."""
    return slice(int(row[0], 16), int(row[1], 16) + 1, int(row[2]) if row[2:] else 1)


def _expand(rows: list[list[str]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the code points of lines "FIRST LAST [STEP [NUMBER]]", and the number of each."""
    numbers = np.array(
        [[int(row[0], 16), int(row[1], 16), int(row[2]), int(row[3])] if row[2:] else
         [int(row[0], 16), int(row[1], 16), 1, 0] for row in rows], np.int64
    ).reshape(-1, 4)  # fmt: skip
    counts = (numbers[:, 1] - numbers[:, 0]) // numbers[:, 2] + 1
    first, step, number = (np.repeat(numbers[:, column], counts) for column in (0, 2, 3))
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return first + step * within, number


def _add_joins(table: NDArray[np.uint32], lines: list[list[str]]) -> NDArray[np.int64]:
    """Write the third part; return the characters that may compose with what is before them, or change with it."""
    joins = sorted([int(second, 16), int(third, 16), int(code, 16)] for code, second, third in lines)
    columns = np.array(joins, np.int64).reshape(-1, 3).T
    table[JOINS:SPELLINGS] = 0xFFFFFFFF
    for at, column in zip((JOINS, SECONDS, COMPOSED), columns, strict=True):
        table[at : at + len(joins)] = column
    table[FACTS + columns[0]] |= np.uint32(IS_FIRST)
    table[FACTS + columns[2]] |= np.arange(1, len(joins) + 1, dtype=np.uint32) << np.uint32(JOIN_SHIFT)
    if not joins:
        return np.empty(0, np.int64)
    table[FACTS + LEAD : FACTS + LEAD + LEADS] |= np.uint32(IS_FIRST)
    table[FACTS + SYLLABLE : FACTS + SYLLABLE + LEADS * VOWELS * TAILS : TAILS] |= np.uint32(IS_FIRST)
    jamo = *range(VOWEL, VOWEL + VOWELS), *range(TAIL + 1, TAIL + TAILS)
    return np.unique([*columns[1].tolist(), IOTA_BELOW, DOT_ABOVE, *jamo])


def _add_spellings(table: NDArray[np.uint32], lines: list[list[str]]) -> None:
    """Write the fourth part."""
    part: list[int] = []
    for line in lines:
        code, *codes = (int(field, 16) for field in line)
        table[code] = SPELT | len(part)
        part += [len(codes), *codes]
    table[SPELLINGS : SPELLINGS + len(part)] = part


TOKEN_TABLE_VERSION, WORD_TABLE = read_word_table(
    files("nddup.sketching").joinpath("word_table.txt").read_text(encoding="ascii")
)


@lru_cache(maxsize=2)
def word_table(ignore: tuple[str, ...] = ()) -> NDArray[np.uint32]:
    """Return the table by which the kernels make tokens; without `ignore`, names of `respelling.IGNORED`, WORD_TABLE.

    Cost: a copy of 9 MB for another choice than the last.
    """
    if not ignore:
        return WORD_TABLE
    table = WORD_TABLE.copy()
    for code, other in respelt(ignore).items():
        if other is None:
            table[code] = DROPPED
        else:
            table[[code, FACTS + code]] = WORD_TABLE[[other, FACTS + other]]
    table[NUMBERS] = "numbers" in ignore
    table.flags.writeable = False
    return table


def tokenise(text: str, ignore: tuple[str, ...] = ()) -> list[str]:
    """Return the tokens of a text, in order, normalised; `ignore`: names of `respelling.IGNORED`.

    For display, for lists of words, and for `check`. `rolling_hash.hash_tokens` finds the same without a Python object
    per token.

    Returns:
        The tokens; none if the text has only separators.

    Cost: some 20 ns per character where all are ASCII; 0.5 us per character of every other word that is new.

    Example:
        >>> tokenise("A rose is a ROSE; 薔薇は薔薇")
        ['a', 'rose', 'is', 'a', 'rose', '薔', '薇', 'は', '薔', '薇']
    """
    if ignore:
        tokens = tokenise(text.translate(respelt(ignore)))
        return [NUMBER if _is_number(token) else token for token in tokens] if "numbers" in ignore else tokens
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    tokens = []
    for piece in _PIECE.findall(text):
        if piece.isascii():
            tokens.append(piece.lower())
        else:
            tokens += _remembered(piece) if len(piece) <= REMEMBERED else _tokens_of(piece)
    return tokens


def list_tokens(text: str, unit: str, ignore: tuple[str, ...] = ()) -> list[str]:
    """Return the tokens of a text that shingles are made of, in order: its words, or its characters.

    Args:
        unit: `word`, as `tokenise`; or `char`, each word character with its marks, and one blank for everything between
            two words.
        ignore: names of `respelling.IGNORED`. A number is a word of digits alone in both units.

    Returns:
        The tokens; none if the text has only separators. `rolling_hash.hash_rows` hashes the same.

    Example:
        >>> list_tokens("A rose, is", "char")
        ['a', ' ', 'r', 'o', 's', 'e', ' ', 'i', 's']
    """
    if unit == "word":
        return tokenise(text, ignore)
    if ignore:
        tokens = list_tokens(text.translate(respelt(ignore)), unit)
        return _hide_numbers(tokens) if "numbers" in ignore else tokens
    tokens = []
    is_gap = False
    for character in normalise(text):
        kind = character_class(character)
        if kind == OF_MARK and tokens and not is_gap:
            tokens[-1] += character
        elif kind and kind != OF_MARK:
            tokens += [" "] if is_gap and tokens else []
            tokens.append(character)
        is_gap = not kind or (is_gap and kind == OF_MARK)
    return tokens


def _is_number(token: str) -> bool:
    return token.isascii() and token.isdigit()


def _hide_numbers(characters: list[str]) -> list[str]:
    """Replace the characters between two blanks by `NUMBER` where all are digits."""
    words = [list(group) for is_blank, group in groupby(characters, " ".__eq__) if not is_blank]
    hidden = ([NUMBER] if all(map(_is_number, word)) else word for word in words)
    return [one for word in hidden for one in (" ", *word)][1:]


@lru_cache(maxsize=1 << 17)
def _remembered(piece: str) -> list[str]:
    return _tokens_of(piece)


def _tokens_of(text: str) -> list[str]:
    """Return the tokens of a text, whatever it holds."""
    tokens: list[str] = []
    word, is_alone = "", False
    for character in normalise(text):
        kind = character_class(character)
        if kind == OF_MARK:
            word += character if word else ""
            continue

        # A separator ends the word before it. So does every other character, if one of the two stands alone.
        if word and (kind != OF_WORD or is_alone):
            tokens.append(word)
            word = ""
        word += character if kind else ""
        is_alone = kind == OF_ALONE
    return [*tokens, word] if word else tokens


def character_class(character: str) -> int:
    r"""Return the class of a normalised character: `OF_WORD`, `OF_ALONE`, `OF_MARK`, or 0 for a separator.

        word       letters, digits and `_`: `\w` as Python's `re` defines it. A maximal run of them is one token.
        alone      characters of scripts written without spaces: each is one token. Ideographs (Han, Tangut, Khitan,
                   Nushu, Yi), Hiragana, Katakana, Bopomofo, and Thai, Lao, Khmer, Myanmar, Tai Le, New Tai Lue, Tai
                   Tham, Tai Viet, Ahom. Not Hangul, which is written with spaces.
        mark       combining marks (General_Category M): each belongs to the token before it (UAX #29, rule WB4).
                   After a separator it belongs to that, and to no token.
        separator  all other characters, also apostrophes, full stops and colons between letters.

    Code points unassigned in the table's version are separators, but those of planes 2 and 3 are ideographs, as Unicode
    says of them.
    """
    return int(WORD_TABLE[FACTS + ord(character)]) >> CLASS_SHIFT & CLASS


def normalise(text: str) -> str:
    """Return a text as tokens see it, separators included.

        1. Default-ignorable code points are dropped (Default_Ignorable_Code_Point: soft hyphen, zero-width characters,
           joiners, directional controls, variation selectors, ...), so that e, joiner, acute is `é`.
        2. Canonical decomposition (NFD).
        3. Full case folding: `ß` is `ss`, both small sigmas are one. `İ`, `I`, `ı` and `i` are one letter, in every
           language: a dot above an `i` is dropped. The six Malayalam chillu letters are their consonant and virama.
        4. Canonical composition (NFC). Compatibility forms stay: `½` and `²` are characters of their own.

    Words that differ only in case, in a dot of `i`, or in an invisible character become equal. A few Persian and
    Malayalam words differ only in a joiner.

    Separators are not composed or decomposed: tokens do not depend on it.

    Source: The Unicode Standard, chapter 3 (D107 to D117: canonical ordering and composition), UAX #15.
    """
    codes = [code for character in text for code in _spell(ord(character))]
    return "".join(map(chr, _compose(_fold_marks(_order_marks(codes)))))


def decompose(code: int) -> list[int]:
    """Return the canonical decomposition of a normalised character, Hangul apart."""
    join = int(WORD_TABLE[FACTS + code]) >> JOIN_SHIFT
    if not join:
        return [code]
    return [*decompose(int(WORD_TABLE[JOINS + join - 1])), int(WORD_TABLE[SECONDS + join - 1])]


@lru_cache(maxsize=1 << 16)
def _spell(code: int) -> tuple[int, ...]:
    """Return what one character becomes: dropped, decomposed, folded."""
    entry = int(WORD_TABLE[code])
    value, kind = entry & CODE, entry & ~CODE
    if kind == DROPPED:
        return ()
    if kind == SPELT:
        at = SPELLINGS + value
        return tuple(WORD_TABLE[at + 1 : at + 1 + int(WORD_TABLE[at])].tolist())
    return tuple(decompose(value)) if entry else (code,)


def _order_marks(codes: list[int]) -> list[int]:
    """Put each run of marks into canonical order: by combining class, equal classes as they were."""
    ordered: list[int] = []
    marks: list[int] = []
    for code in [*codes, 0]:
        if _order(code):
            marks.append(code)
            continue
        ordered += sorted(marks, key=_order)
        ordered.append(code)
        marks = []
    return ordered[:-1]


def _fold_marks(codes: list[int]) -> list[int]:
    """Drop the dot above every i, and make the iota below a letter."""
    folded = []
    is_i = False  # the last letter is an i, and no other mark is above it
    for code in codes:
        if code == DOT_ABOVE and is_i:
            continue
        is_i = code == LETTER_I or (is_i and _order(code) not in {0, ABOVE})
        folded.append(IOTA if code == IOTA_BELOW else code)
    return folded


def _compose(codes: list[int]) -> list[int]:
    """Compose each letter with the marks that no other mark keeps from it."""
    composed: list[int] = []
    starter = -1  # where in `composed` the last character of class 0 is
    for code in codes:
        order = _order(code)
        is_next = starter == len(composed) - 1 or 0 < _order(composed[-1]) < order
        whole = _joined(composed[starter], code) if starter >= 0 and is_next else 0
        if whole:
            composed[starter] = whole
            continue
        starter = len(composed) if order == 0 else starter
        composed.append(code)
    return composed


def _joined(first: int, second: int) -> int:
    """Return the composition of two characters, 0 if there is none."""
    if LEAD <= first < LEAD + LEADS and VOWEL <= second < VOWEL + VOWELS:
        return SYLLABLE + ((first - LEAD) * VOWELS + second - VOWEL) * TAILS
    is_open = SYLLABLE <= first < SYLLABLE + LEADS * VOWELS * TAILS and (first - SYLLABLE) % TAILS == 0
    if is_open and TAIL < second < TAIL + TAILS:
        return first + second - TAIL
    return _joins().get((first, second), 0)


@lru_cache(maxsize=1)
def _joins() -> dict[tuple[int, int], int]:
    """Return the composition of each pair of characters that has one."""
    columns = (WORD_TABLE[at : at + JOIN_ROOM].tolist() for at in (JOINS, SECONDS, COMPOSED))
    return {(first, second): code for first, second, code in zip(*columns, strict=True)}


def _order(code: int) -> int:
    """Return the canonical combining class."""
    return int(WORD_TABLE[FACTS + code]) & ORDER


FULL_FORMAT: Final = f"{SKETCH_FORMAT}/unicode-{TOKEN_TABLE_VERSION}"
"""Two stored sketches can be compared only if this is equal: `versions.sketch_format` in the metrics of a run."""
