"""Disagreements: families whose documents have different values in a column that the run stores, printed or as data.

keep, documents  --VALUED-->     each document of a family, with its value
those            --DIFFERING-->  the families with two values or more, a missing one counted
"""

from collections.abc import Iterator
from typing import Any

from nddup.engines.engine import FinishedRun
from nddup.errors import NddupError
from nddup.ground.shown import counted, csv_line, one_line
from nddup.settings.schema import SOURCE_COLUMN

LARGEST = 10
"""Families that are printed."""

EACH = 5
"""Values of a family that are printed."""

COLUMNS = (
    "family", "documents", "doc_id", "value", "kept", "reason", "resemblance", "lost", "source", "record", "url",
)  # fmt: skip
"""The columns of the CSV; `family` is the kept document."""

VALUED = """
    SELECT CASE WHEN k.kept THEN k.doc_id ELSE k.duplicate_of END AS family, {value} AS value, k.doc_id, k.kept,
           k.reason, k.resemblance, k.lost, d.source, d.record, d.url
    FROM keep AS k JOIN documents AS d ON k.doc_id = d.doc_id WHERE k.kept OR k.duplicate_of IS NOT NULL
"""

DIFFERING = """
    SELECT family, count(*) AS documents, count(DISTINCT value) + max(CASE WHEN value IS NULL THEN 1 ELSE 0 END) AS many
    FROM ({valued}) AS v GROUP BY family
    HAVING count(DISTINCT value) + max(CASE WHEN value IS NULL THEN 1 ELSE 0 END) > 1
"""

COUNTS = """
    SELECT count(*) AS families, CAST(coalesce(sum(documents), 0) AS BIGINT) AS documents FROM ({differing}) AS f
"""

FAMILIES = "SELECT count(DISTINCT duplicate_of) AS n FROM keep"

FIRST_VALUES = f"""
    SELECT f.family, f.documents, f.many, v.value, v.n FROM (
        SELECT * FROM ({{differing}}) AS g ORDER BY documents DESC, family LIMIT {LARGEST}
    ) AS f JOIN (
        SELECT family, value, count(*) AS n,
               row_number() OVER (PARTITION BY family ORDER BY count(*) DESC, value) AS turn
        FROM ({{valued}}) AS w GROUP BY family, value
    ) AS v ON f.family = v.family WHERE v.turn <= {EACH} ORDER BY f.documents DESC, f.family, v.turn
"""  # noqa: S608 - numbers

ROWS = """
    SELECT v.family, f.documents, v.doc_id, v.value, v.kept, v.reason, v.resemblance, v.lost, v.source, v.record, v.url
    FROM ({valued}) AS v JOIN ({differing}) AS f ON v.family = f.family
    ORDER BY f.documents DESC, v.family, v.kept DESC, v.doc_id
"""
"""Rows of `COLUMNS`, the largest families first."""


def ask_disagreements(run: FinishedRun) -> list[dict[str, Any]] | None:
    """Return for each column of `keep.ledger` what a report shows; None for a run without any.

    Returns:
        `column`; `families` that differ and their `documents`; the `largest` of these, as `first_disagreements`.
    """
    columns = run.metrics.settings["keep"].get("ledger")
    if not columns:
        return None
    found = []
    for column in columns:
        counts = run.sql(COUNTS.format(**_asked(run, column))).to_pylist()[0]
        found.append({"column": column, **counts, "largest": first_disagreements(run, column)})
    return found


def show_disagreements(run: FinishedRun, column: str) -> str:
    """Return how many families differ in a column, and the largest with their values.

    Raises:
        NddupError: if the run does not store the column.
    """
    asked = _asked(run, column)
    found = run.sql(COUNTS.format(**asked)).to_pylist()[0]
    families = run.sql(FAMILIES).to_pylist()[0]["n"]
    text = f"{found['families']:,} of {families:,} families of more than one document"
    lines = [f"{text} differ in {one_line(column)}, with {counted(found['documents'], 'document')} together"]
    lines += [spell_family(family) for family in first_disagreements(run, column)]
    lines += ["  all of them: --csv"] if found["families"] else []
    return "\n".join([*lines, ""])


def first_disagreements(run: FinishedRun, column: str) -> list[dict[str, Any]]:
    """Return the largest families that differ: `family`, `documents`, `many` values, and the first `values`."""
    found: dict[str, dict[str, Any]] = {}
    for row in run.sql(FIRST_VALUES.format(**_asked(run, column))).to_pylist():
        family = {name: row[name] for name in ("family", "documents", "many")} | {"values": []}
        values: list[Any] = found.setdefault(row["family"], family)["values"]
        values.append({"value": row["value"], "documents": row["n"]})
    return list(found.values())


def spell_family(family: dict[str, Any]) -> str:
    """Return a family in one line."""
    values = [f"{spell_value(one['value'])} {one['documents']:,}" for one in family["values"]]
    more = [f"… {family['many'] - len(values):,} more values"] if family["many"] > len(values) else []
    return f"  {family['documents']:>9,}  {one_line(family['family'])}  {', '.join([*values, *more])}"


def spell_value(value: str | None) -> str:
    """Return a value in one line, a missing one as a dash."""
    return "–" if value is None else one_line(value)


def disagreement_lines(run: FinishedRun, column: str) -> Iterator[str]:
    """Yield the documents of the families that differ as lines of a CSV file, the header first.

    Cost: as `show.removed_lines`.

    Raises:
        NddupError: if the run does not store the column.
    """
    text = ROWS.format(**_asked(run, column))
    yield csv_line(COLUMNS)
    for row in run.rows(text):
        yield csv_line(row)


def _asked(run: FinishedRun, column: str) -> dict[str, str]:
    from nddup.settings.load import read_stored  # noqa: PLC0415 - loads all settings

    keep = read_stored(run.metrics.settings, origin="metrics.json").keep
    if column not in (*keep.read, SOURCE_COLUMN):
        there = f"; it stores {', '.join(keep.read)}" if keep.read else ""
        raise NddupError(
            f"--disagree {column}: {run.path} does not store this column{there}; name it in keep.ledger and run again"
        )
    value = "d.source" if column == SOURCE_COLUMN else f"element_at(d.policy, {keep.read.index(column) + 1})"
    valued = VALUED.format(value=value)
    return {"valued": valued, "differing": DIFFERING.format(valued=valued)}
