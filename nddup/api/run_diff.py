"""What `Run.diff` returns: the counts and the tables of a diff, in memory."""

from dataclasses import dataclass

import pyarrow as pa

from nddup.api.views import RunTable, table_of
from nddup.diffing.diff_tables import Difference, diff_finished, say_diff
from nddup.engines.engine import FinishedRun
from nddup.ground.shown import one_line
from nddup.tables.features import DIFF_TABLES


@dataclass(frozen=True, repr=False)
class RunDiff:
    """What changed between two runs.

    Attributes:
        found: settings and versions that differ, counts, causes, and the families and sets that changed most.
        changes, pair_changes, family_changes, set_changes: the tables, as `docs/reference.md` declares them.
    """

    found: Difference
    changes: RunTable
    pair_changes: RunTable
    family_changes: RunTable
    set_changes: RunTable

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return not self.found.is_empty

    def __repr__(self) -> str:
        """Show the summary, as `nddup diff` prints it."""
        return "\n".join(one_line(line) for line in say_diff(self.found))


def compare_runs(before: FinishedRun, after: FinishedRun) -> RunDiff:
    """Compare two runs of one engine; errors and cost as of `diff_finished`."""
    difference = diff_finished(before, after)
    tables: dict[str, pa.Table] = {}
    for name, table in DIFF_TABLES.items():
        rows = after.sql(f"SELECT * FROM {name} ORDER BY {', '.join(table.names[:2])}")  # noqa: S608 - our names
        tables[name] = rows.select(table.names).cast(table.arrow)
    after.forget()
    return RunDiff(difference, **{name: table_of(name, rows) for name, rows in tables.items()})
