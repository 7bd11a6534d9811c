"""The columns that kept records get beside their own: whose copies they stand for, and how often they count.

output.columns, keep.ledger  --read_columns-->  KeptColumn: the name written, and what is counted
KeptColumn                   --spell_value-->   SQL over `c.n`, the copies, and `f`, the row of FAMILIES
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

ITEM: Final = re.compile(
    r"(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)=)?(?P<column>.+?)(?::(?P<part>distinct|least|greatest))?"
)
"""An item of `output.columns`: `equal`, `source`, `date:least`, `first=date:least`."""

COUNTS: Final = {"copies": "long", "equal": "long", "lost_most": "double", "resemblance_least": "double"}
"""What is known of every family, with the types of its columns."""

PARTS: Final = {"values": "array<counts>", "distinct": "long", "least": "string", "greatest": "string"}
"""What is known of a column of the ledger, with its type."""

TAKEN: Final = ("kept", "duplicate_of", "cluster", "weight", "passages", "cuts")
"""Names of other fields of records."""


class KeptColumn(NamedTuple):
    """A column of kept records.

    Attributes:
        name: as written, without `nddup_`.
        place: of the column in `keep.ledger`, from 0; None for one of `COUNTS`.
        what: of `COUNTS` or `PARTS`.
    """

    name: str
    place: int | None
    what: str

    @property
    def type(self) -> str:
        """Its type, of `nddup.tables.declared.TYPES`."""
        return COUNTS[self.what] if self.place is None else PARTS[self.what]


def read_columns(items: Sequence[str], ledger: Sequence[str]) -> list[KeptColumn]:
    """Return the columns of `output.columns`.

    Raises:
        ValueError: naming an item that means nothing, or a name that is taken.

    Example:
        >>> read_columns(["equal", "first=meta.date:least", "source"], ["source", "meta.date"])[1:]
        [KeptColumn(name='first', place=1, what='least'), KeptColumn(name='source', place=0, what='values')]
    """
    found: list[KeptColumn] = []
    for item in items:
        one = _read(item, ledger)
        if one.name in (*TAKEN, *(other.name for other in found)):
            raise ValueError(f"output.columns: {item!r}: nddup_{one.name} is there already; give NAME={item}")
        found.append(one)
    return found


def _read(item: str, ledger: Sequence[str]) -> KeptColumn:
    match = ITEM.fullmatch(item.strip())
    name, column, part = match.group("name", "column", "part") if match else (None, item, None)
    if column in COUNTS and part is None and column not in ledger:
        return KeptColumn(name or column, None, column)
    if column not in ledger:
        known = ", ".join([*COUNTS, *ledger])
        raise ValueError(
            f"output.columns: {item!r} is not counted: expected one of {known}; a column that keep.ledger names may end"
            " in :distinct, :least or :greatest"
        )
    spelled = re.sub(r"\W+", "_", f"{column}_{part}" if part else column, flags=re.ASCII)
    return KeptColumn(name or spelled.removeprefix("nddup_"), ledger.index(column), part or "values")


def spell_value(column: KeptColumn) -> str:
    """Return the value for a kept document in SQL.

    Example:
        >>> spell_value(KeptColumn("first", 1, "least"))
        '(element_at(f.ledger, 2)).least'
    """
    if column.place is not None:
        return f"(element_at(f.ledger, {column.place + 1})).{column.what}"
    return "c.n" if column.what == "copies" else f"f.{column.what}"


def needs_ledger(columns: Sequence[KeptColumn]) -> bool:
    """Return whether any of these is counted in FAMILIES."""
    return any(column.what != "copies" for column in columns)
