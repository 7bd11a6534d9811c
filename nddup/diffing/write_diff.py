"""What `nddup diff` writes: the tables of the diff, the later rows that the earlier run lacks, and a header.

changes/, pair_changes/, family_changes/, set_changes/    the tables
documents/, keep/                                         the later rows: with `changes` they make the later tables
index.html                                                the page
_DIFF.json                                                the runs and the counts, as --json prints them
"""

from pathlib import Path
from typing import Any

import pyarrow as pa

from nddup.diffing.diff_tables import WHY, Difference, diff_finished
from nddup.engines.duck import DuckRun
from nddup.engines.engine import FinishedRun
from nddup.errors import OutputExistsError
from nddup.ground.shown import spell_json
from nddup.report.diff_page import choose_changes, draw_changes
from nddup.storage.local_storage import LocalStorage, require_apart, written_apart
from nddup.tables import DOCUMENTS, KEEP
from nddup.tables.features import DIFF_TABLES

HEADER = "_DIFF.json"
PAGE = "index.html"

ROW_TABLES = {"documents": "later_rows", "keep": "later_keep"}
"""The tables of later rows, and what `diff_runs` calls them."""


def queries() -> dict[str, str]:
    """Return the query for the rows of each table as it is written, sorted by its first columns."""
    columns = {"documents": [name for name in DOCUMENTS.names if name != "doc_key"], "keep": KEEP.names}
    found = {name: f"SELECT * FROM {name} ORDER BY {', '.join(t.names[:2])}" for name, t in DIFF_TABLES.items()}  # noqa: S608
    for name, kept in ROW_TABLES.items():
        listed = ", ".join(f"d.{column}" for column in columns[name])
        found[name] = f"SELECT {listed} FROM {kept} AS d ORDER BY d.doc_id"  # noqa: S608 - our names
    return found


def draw_page(run: FinishedRun, before: str, after: str, found: Difference) -> str:
    """Return the page of a diff that the later run holds."""
    return draw_changes(choose_changes(run), tell(before, after, found), WHY)


def spell_header(before: str, after: str, found: Difference) -> str:
    """Return the header: what --json prints."""
    return spell_json(tell(before, after, found))


def tell(before: str, after: str, found: Difference) -> dict[str, Any]:
    """Return the runs and the counts as JSON values."""
    return {"before": before, "after": after, "differs": not found.is_empty, **found._asdict()}


def require_room(files: Any, runs: tuple[str, ...], output: str) -> None:  # noqa: ANN401 - files of either engine
    """Refuse an output that exists, or lies in or around a run.

    Raises:
        OutputError: naming it.
    """
    if files.exists(output):
        raise OutputExistsError(f"--output {output}: exists already; give another folder")
    require_apart(files, runs, output)


def diff_here(before: str, after: str, output: str | None) -> Difference:
    """Compare two runs of this machine, and write the output, if any.

    Raises:
        OutputError: if a run is not finished, or the output exists or cannot be written.
        NddupError: if a table cannot be read.

    Cost: as `diff_finished`.
    """
    if output is not None:
        require_room(LocalStorage(), (before, after), output)
    later = DuckRun(after)
    difference = diff_finished(DuckRun(before), later)
    if output is not None:
        write_diff(later, difference, before, after, output)
    return difference


def write_diff(run: FinishedRun, found: Difference, before: str, after: str, output: str) -> None:
    """Write the tables of a diff that a run of this machine holds.

    Raises:
        OutputError: if they cannot be written.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - without --output nothing is written

    with written_apart(output) as apart:
        for name, rows in diff_tables(run).items():
            (apart / name).mkdir(parents=True)
            pq.write_table(rows, Path(apart, name, "part-00000.zstd.parquet"), compression="zstd")
        (apart / PAGE).write_text(draw_page(run, before, after, found), encoding="utf-8")
        (apart / HEADER).write_text(spell_header(before, after, found), encoding="utf-8")


def diff_tables(run: FinishedRun) -> dict[str, pa.Table]:
    """Return the tables that a run of this machine holds after `diff_finished`, with their declared types."""
    declared = {name: table.arrow for name, table in DIFF_TABLES.items()} | {
        "documents": pa.schema([field for field in DOCUMENTS.arrow if field.name != "doc_key"]),
        "keep": KEEP.arrow,
    }
    return {name: run.sql(text).cast(declared[name]) for name, text in queries().items()}
