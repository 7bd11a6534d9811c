"""What breaks a promise: a SELECT whose rows are the violations, and what is said of each."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Violations(NamedTuple):
    """A question whose every row breaks a promise; no row means that the promise holds.

    Attributes:
        text: a SELECT. Its first column is an id, and all its columns together order its rows.
        says: of a row, with the names of columns in braces; by the value of the column `what`, where there is one.
    """

    text: str
    says: str | Mapping[str, str]

    def describe(self, row: Mapping[str, Any]) -> str:
        """What is said of a row. A null is written `null`.

        Example:
            >>> Violations("", "{doc_id}: group {said}").describe({"doc_id": "a", "said": None})
            'a: group null'
        """
        form = self.says if isinstance(self.says, str) else self.says[row["what"]]
        return form.format_map({name: "null" if value is None else value for name, value in row.items()})


def is_before(one: str, other: str) -> str:
    """The condition that a document comes before another under the keep policy; null counts as not.

    Args:
        one: a row with `weight`, `rank` and `doc_id`.
        other: another.
    """
    return (
        f"({one}.weight < {other}.weight OR ({one}.weight = {other}.weight AND ({one}.rank < {other}.rank"
        f" OR ({one}.rank = {other}.rank AND {one}.doc_id < {other}.doc_id))))"
    )
