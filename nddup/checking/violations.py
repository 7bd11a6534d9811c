"""Violations of a promise: a SELECT whose rows are the violations, and a message for each."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Violations(NamedTuple):
    """A SELECT each of whose rows breaks a promise; no row means that the promise holds.

    Attributes:
        text: the SELECT. Its first column is an id, and its rows are ordered by all columns.
        says: the message for a row, with column names in braces; or one for each value of the column `what`.
    """

    text: str
    says: str | Mapping[str, str]

    def describe(self, row: Mapping[str, Any]) -> str:
        """Return the message for a row. A null is written `null`.

        Example:
            >>> Violations("", "{doc_id}: group {said}").describe({"doc_id": "a", "said": None})
            'a: group null'
        """
        form = self.says if isinstance(self.says, str) else self.says[row["what"]]
        return form.format_map({name: "null" if value is None else value for name, value in row.items()})


def is_before(one: str, other: str) -> str:
    """Return the SQL condition that one document comes before another under the keep policy; null counts as false.

    Args:
        one: a row with `weight`, `rank` and `doc_id`.
        other: another.
    """
    return (
        f"({one}.weight < {other}.weight OR ({one}.weight = {other}.weight AND ({one}.rank < {other}.rank"
        f" OR ({one}.rank = {other}.rank AND {one}.doc_id < {other}.doc_id))))"
    )
