"""Order of preference among documents: the columns of a keep policy, and keys that order documents by them.

    parse_column   `-score:number` -> PolicyColumn
    order_key      values of a document -> bytes; the smaller come first, compared byte by byte

A column orders numbers by value, however many digits they have, and other texts by their bytes. In a column without a
type numbers come before texts; of type `number`, any other text is unparsable; of type `text`, a number is a text.
Missing, blank and unparsable values come last in either direction. `source=wiki,news` puts the listed values first.

Of equals, captures of an archive are ordered by their date, the oldest first, so that no random id decides; what has no
date comes last. A `revisit`, which has no text of its own, comes after all documents whatever the policy.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple

DERIVED: Final = ("length", "url_length", "id", "first")
"""Columns that need not be in the input: tokens, characters of the address, the id, the order of the collection."""

NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
DATED: Final = ("newest", "oldest")
"""The words of `keep.policy` that need a date."""

NO_MOMENT: Final = (1 << 32) - 1
"""The moment of a document without a date; of others it is the second of their date since 1970, less than this."""

MOMENTS, TOKENS = 1 << 32, 1 << 31
"""Upper bounds of moments and of numbers of tokens: a policy and a moment, or a date and a length, are one number."""

LAST: Final = (1 << 63) - 1
"""The place of a revisit in the order of a word."""

NO_LENGTH: Final = TOKENS - 1
"""The length that stands for a missing URL, which comes after all others."""

_COLUMN = re.compile(r"(-?)(.+?)(?::(number|text))?")
_EXPONENTS: Final = 1 << 31
_INVERTED: Final = bytes(range(255, -1, -1))
_PRESENT, _MISSING = b"\1", b"\2"
_NUMBER, _TEXT = b"\1", b"\2"


class PolicyColumn(NamedTuple):
    """A column of a policy: its path, whether greater values come first, and the type of its values."""

    path: str
    is_descending: bool
    type: Literal["number", "text"] | None
    listed: tuple[str, ...] = ()
    """Values that come first, in this order; then all others alike, and last a missing one. None: by value."""

    @property
    def is_derived(self) -> bool:
        """Whether it is derived from the document's own columns instead of read from its record."""
        return self.path in DERIVED


NUMBERS: Final = r"^\s*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,6})?\s*$"
"""`NUMBER` for a whole value, blanks around it allowed: for engines that match columns."""


def parse_column(text: str) -> PolicyColumn:
    """Read a column of `keep.policy`.

    Raises:
        ValueError: if it has no name, or lists values in a way that no order follows.

    Example:
        >>> parse_column("-score:number")[:3], parse_column("dc:date")[:3], parse_column("lang=ru, en")
        (('score', True, 'number'), ('dc:date', False, None), PolicyColumn(path='lang', is_descending=False, type=None, listed=('ru', 'en')))
    """  # noqa: E501 - what it shows
    path, _, values = text.partition("=")
    if listed := tuple(value.strip() for value in values.split(",")) if values else ():
        path = path.strip()
        if not path or path.startswith("-") or path in DERIVED or not all(listed) or len(set(listed)) < len(listed):
            raise ValueError(
                f"expected a column of the records and different values, as source=wiki,news; got {text!r}"
            )
        return PolicyColumn(path, is_descending=False, type=None, listed=listed)
    match = _COLUMN.fullmatch(text.strip())
    if match is None or not match[2].strip():
        raise ValueError(f"expected a column such as -score:number or date, got {text!r}")
    return PolicyColumn(match[2].strip(), bool(match[1]), match[3])  # type: ignore[arg-type]


def read_columns(policy: object) -> tuple[PolicyColumn, ...]:
    """Return the columns of `keep.policy`; none if the policy is a single word."""
    return tuple(map(parse_column, policy)) if isinstance(policy, list) else ()


def is_unparsable(value: str | None, column: PolicyColumn) -> bool:
    """Return whether a value is present but not of the column's type."""
    return column.type == "number" and bool(value and value.strip()) and NUMBER.fullmatch((value or "").strip()) is None


def order_key(values: Sequence[str | None], columns: Sequence[PolicyColumn]) -> bytes:
    """Return the key of a document: of two documents the one with the smaller key comes first.

    Args:
        values: one for each column, None where missing.

    Example:
        >>> columns = [parse_column("-score:number")]
        >>> sorted(["2", "10", "x", None, "1e1", "-3"], key=lambda value: order_key([value], columns))
        ['10', '1e1', '2', '-3', 'x', None]
    """
    return b"".join(_key(value, column) for value, column in zip(values, columns, strict=True))


def _key(value: str | None, column: PolicyColumn) -> bytes:
    text = (value or "").strip()
    if not text or is_unparsable(text, column):
        return _MISSING
    if column.listed:
        place = column.listed.index(text) if text in column.listed else len(column.listed)
        return _PRESENT + place.to_bytes(4, "big")
    is_number = column.type != "text" and NUMBER.fullmatch(text) is not None
    key = _number_key(Decimal(text)) if is_number else _text_key(text)
    return _PRESENT + (_NUMBER if is_number else _TEXT) + (key.translate(_INVERTED) if column.is_descending else key)


def _text_key(text: str) -> bytes:
    """Encode a text as bytes in the same order; no key is a prefix of another."""
    return text.encode("utf-8", "surrogatepass").replace(b"\0", b"\0\xff") + b"\0\0"


def _number_key(number: Decimal) -> bytes:
    """Encode a number as bytes in the same order: the sign, the place of the first digit, the digits."""
    if not number:
        return b"\x80"
    digits = "".join(map(str, number.as_tuple().digits)).lstrip("0").rstrip("0")
    size = (number.adjusted() + _EXPONENTS).to_bytes(4, "big") + digits.encode() + b"\0"
    return b"\x81" + size if number > 0 else b"\x7f" + size.translate(_INVERTED)


class Order(NamedTuple):
    """The order of documents: by the preferred source, then by the policy, then by the id.

    Attributes:
        policy: a word of `keep.policy`; empty if there are columns.
        prefer: globs of sources, as regular expressions; a document that matches an earlier one comes first.
    """

    policy: str = "longest"
    columns: tuple[PolicyColumn, ...] = ()
    prefer: tuple[str, ...] = ()

    @property
    def read(self) -> tuple[PolicyColumn, ...]:
        """The columns whose values are read from the records."""
        return tuple(column for column in self.columns if not column.is_derived)

    @property
    def is_of_rows(self) -> bool:
        """Whether the order of the collection decides: `first`, as the policy or as one of its columns."""
        return self.policy == "first" or any(column.path == "first" for column in self.columns)


def read_glob(glob: str) -> str:
    """Return a glob as a regular expression that Python, Java and SQL engines read alike; `*` also matches `/`.

    Raises:
        ValueError: for an empty glob, or one with a character, a set or a range that they read differently or not.

    Example:
        >>> read_glob("clean/*.jsonl?")
        '^(?s:clean/.*[.]jsonl.)$'
    """
    parts = re.split(r"(\[!?[^][!&][^][&]*\]|[*?])", glob)
    spelled = {"*": ".*", "?": "."}
    spelled_parts = [
        part.replace("[!", "[^", 1)
        if at % 2 and part[0] == "["
        else spelled.get(part, "")
        if at % 2
        else "".join(f"[{c}]" if c in ".+(){}|$]" else c for c in part)
        for at, part in enumerate(parts)
    ]
    pattern = f"^(?s:{''.join(spelled_parts)})$"
    is_read = bool(glob) and not set("\\^'\n") & set(glob) and "[" not in "".join(parts[::2])
    with suppress(re.error):
        if is_read and re.compile(pattern):
            return pattern
    raise ValueError(
        f"expected a glob of a source such as clean/*, [ only as in [0-9] or [!a], no \\ ^ or quotes, got {glob!r}"
    )


def read_order(policy: str | list[str], prefer: Sequence[str] | None) -> Order:
    """Return the order that the `keep` settings describe."""
    columns = read_columns(policy)
    return Order("" if columns else str(policy), columns, tuple(map(read_glob, prefer or ())))


def word_key(policy: str, value: Callable[[str], Any]) -> Any:  # noqa: ANN401 - numbers of either engine
    """Return the key of documents by a word of `keep.policy`: the smaller come first.

    Args:
        value: returns numbers of the documents by their name: `doc_key`, `length` in tokens, `url_length` (`NO_LENGTH`
            without an address) or `moment`; int64 arrays, or columns of Spark: what takes `+`, `-`, `*` and `%`.
    """
    if policy == "longest":
        return value("moment") - value("length") * MOMENTS
    if policy == "shortest-url":
        return value("url_length") * MOMENTS + value("moment")
    if policy in DATED:
        moment = value("moment")
        turned = (2 * NO_MOMENT - moment) % (NO_MOMENT + 1)  # the newest first, but no date still last
        return (turned if policy == "newest" else moment) * TOKENS - value("length")
    return value("doc_key") * int(policy == "first")


def values_of(
    columns: Sequence[PolicyColumn], derived: Sequence[object], read: Sequence[str | None]
) -> list[str | None]:
    """Return the values of a document, column by column.

    Args:
        derived: the values of the columns `DERIVED`, in that order.
        read: the values of the columns that are read from the record, in order, each once.
    """
    named = zip(DERIVED, derived, strict=True)
    values = {path: None if value is None else str(value) for path, value in named}
    rest = iter(read)
    for one in columns:
        if one.path not in values:
            values[one.path] = next(rest, None)
    return [values[one.path] for one in columns]


def places_of(columns: Sequence[PolicyColumn]) -> list[int]:
    """Return the place of each of the columns that are read, among the values of a document: a path has one.

    Example:
        >>> places_of([parse_column(text) for text in ("lang=ru", "date", "-lang")])
        [0, 1, 0]
    """
    paths = list(dict.fromkeys(one.path for one in columns))
    return [paths.index(one.path) for one in columns]
