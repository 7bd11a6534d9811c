"""The columns that kept records get beside their own: whose copies they stand for, and how often they count.

output.columns, keep.ledger  --read_columns-->  KeptColumn: the name written, and what is counted
KeptColumn                   --spell_value-->   SQL over `c.n`, the copies, and `f`, the row of FAMILIES
output.weights               --spell_times-->   SQL of how many times a kept document counts in training, by its copies
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

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

Schedule = Literal["fineweb2", "log2"]
"""The names of tables."""

SCHEDULES: Mapping[str, Mapping[int, int]] = MappingProxyType({
    "fineweb2": {1: 1, 2: 2, 3: 3, 5: 5, 100: 8, 1000: 1},
    "log2": {2**power: power + 1 for power in range(40)},
})  # fmt: skip
"""Tables by name. `fineweb2` is that by which FineWeb-2 repeats documents (README of huggingface/fineweb-2, 2024): very
large clusters are taken for worse texts. `log2` is 1 + log₂ of the copies, rounded down."""


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
    columns: list[KeptColumn] = []
    for item in items:
        one = _read(item, ledger)
        if one.name in (*TAKEN, *(other.name for other in columns)):
            raise ValueError(f"output.columns: {item!r}: nddup_{one.name} is there already; give NAME={item}")
        columns.append(one)
    return columns


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


def require_table(table: Mapping[int, int]) -> None:
    """Refuse a table that does not say how often each document counts.

    Raises:
        ValueError: with what was expected.
    """
    if min(table, default=0) != 1 or min(table.values()) < 0:
        raise ValueError(
            "expected numbers of copies, from 1 on, and how many times from there on, 0 or more, such as"
            " {1: 1, 2: 2, 100: 1}"
        )


def spell_times(weights: Mapping[int, int] | str, copies: str) -> str:
    """Return the times of so many copies in SQL: those of the largest number in the table that is not above.

    Example:
        >>> spell_times({1: 1, 3: 2}, "n")
        'CASE WHEN n >= 3 THEN 2 WHEN n >= 1 THEN 1 END'
    """
    table = SCHEDULES[weights] if isinstance(weights, str) else weights
    cases = (f"WHEN {copies} >= {least} THEN {table[least]}" for least in sorted(table, reverse=True))
    return f"CASE {' '.join(cases)} END"
