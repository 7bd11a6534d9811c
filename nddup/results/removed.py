"""What a run removed, and for what: families of one kept document and the documents that it stands for.

Families are disjoint: every removed document has one kept one. The clusters, which may overlap, are the view inside.
"""

from collections.abc import Iterator
from typing import Any

from nddup.opened.finished_run import FinishedRun
from nddup.shown import csv_line, one_line
from nddup.spelling import counted

LARGEST, EACH = 10, 20
"""Families in the summary, and removed documents listed of each."""

LEAST = 0.001
"""The least share lost that is spelled as a number."""

COLUMNS = (
    "doc_id", "duplicate_of", "reason", "resemblance", "lost", "family", "source", "record", "url", "kept_source",
    "kept_record", "kept_url",
)  # fmt: skip
"""The columns of the CSV; `family` is the number of documents that `duplicate_of` stands for, itself among them."""

SIZES = """
    SELECT duplicate_of AS kept, count(*) + 1 AS documents, min(resemblance) AS least, max(lost) AS lost
    FROM keep WHERE duplicate_of IS NOT NULL GROUP BY duplicate_of
"""
"""The families: kept document, number of documents, the least resemblance to it, and the most that is lost."""

LARGEST_FAMILIES = f"""
    SELECT f.kept, f.documents, f.least, f.lost, d.url
    FROM ({SIZES}) AS f LEFT JOIN documents AS d ON f.kept = d.doc_id
    ORDER BY f.documents DESC, f.kept LIMIT {LARGEST}
"""  # noqa: S608 - the text above, and a number

COUNT_FAMILIES = f"SELECT count(*) AS n FROM ({SIZES}) AS f"  # noqa: S608 - the text above

REASONS = "SELECT reason, count(*) AS n FROM keep WHERE NOT kept GROUP BY reason ORDER BY reason"

REMOVED = f"""
    SELECT k.doc_id, k.duplicate_of, k.reason, k.resemblance, k.lost, f.documents, d.source, d.record, d.url,
           o.source AS kept_source, o.record AS kept_record, o.url AS kept_url
    FROM keep AS k JOIN documents AS d ON k.doc_id = d.doc_id LEFT JOIN ({SIZES}) AS f ON k.duplicate_of = f.kept
    LEFT JOIN documents AS o ON k.duplicate_of = o.doc_id
    WHERE NOT k.kept ORDER BY coalesce(f.documents, 0) DESC, k.duplicate_of, k.doc_id
"""  # noqa: S608 - the text above
"""Rows of `COLUMNS`: every removed document, those of the largest families first, forced ones without a family last."""

FIRST_REMOVED = f"""
    SELECT k.doc_id, k.duplicate_of, k.reason, k.resemblance, k.lost, k.place
    FROM (SELECT r.*, row_number() OVER (PARTITION BY r.duplicate_of ORDER BY r.doc_id) AS place
          FROM keep AS r JOIN wanted AS w ON r.duplicate_of = w.id) AS k
    WHERE k.place <= {EACH} ORDER BY k.duplicate_of, k.doc_id
"""  # noqa: S608 - a number
"""The first removed documents of each family in wanted(id)."""


def removed_lines(run: FinishedRun) -> Iterator[str]:
    """Yield the removed documents as lines of a CSV file, the header first.

    Cost: sorts the removed documents; `keep` and `documents` are read once, `documents` without their sketches.
    """
    yield csv_line(COLUMNS)
    for row in run.rows(REMOVED):
        yield csv_line(row)


def list_families(run: FinishedRun) -> list[str]:
    """Return the heading and the largest families, a line each; nothing where no document was removed for another."""
    rows = run.sql(LARGEST_FAMILIES).to_pylist()
    if not rows:
        return []
    number = int(run.sql(COUNT_FAMILIES).column(0)[0].as_py())
    more = f", the {LARGEST} largest of {number:,}" if number > LARGEST else ""
    head = f"families: one kept document and those that it stands for{more}"
    return [head, "  documents  least alike    lost  kept", *(_family(row) for row in rows)]


def show_removed(run: FinishedRun) -> str:
    """Return what was removed, by reason and by family: the largest families, with their first documents."""
    reasons = {row["reason"]: row["n"] for row in run.sql(REASONS).to_pylist()}
    removed = sum(reasons.values())
    by_reason = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
    said = f"removed: {removed:,} of {counted(run.metrics.rows['documents'], 'document')}"
    lines = [f"{said} ({by_reason})" if removed else said]
    families = run.sql(LARGEST_FAMILIES)
    first: dict[str, list[dict[str, Any]]] = {}
    for row in run.sql(FIRST_REMOVED, wanted=families.select(["kept"]).rename_columns(["id"])).to_pylist():
        first.setdefault(row["duplicate_of"], []).append(row)
    for family in families.to_pylist():
        lines.append(f"{one_line(family['kept'])}  {one_line(family['url'])}".rstrip())
        lines += [_removed(row) for row in first[family["kept"]]]
        more = family["documents"] - 1 - len(first[family["kept"]])
        lines += [f"    … and {more:,} more"] if more else []
    lines += ["  all of them: --removed --csv"] if removed else []
    return "\n".join([*lines, ""])


def _family(row: dict[str, Any]) -> str:
    named = f"{one_line(row['kept'])}  {one_line(row['url'])}".rstrip()
    return f"  {row['documents']:>9,}  {_share(row['least']):>11}  {lost_share(row['lost']):>6}  {named}"


def _removed(row: dict[str, Any]) -> str:
    values = f"{row['reason']:<6}  {_share(row['resemblance']):>5}  {lost_share(row['lost']):>6}"
    return f"    {values}  {one_line(row['doc_id'])}"


def _share(value: float | None) -> str:
    """Return a resemblance with three decimals; a dash for kinds without one."""
    return "-" if value is None else f"{value:.3f}"


def lost_share(value: float | None) -> str:
    """Return a share as a percentage; a dash where it was not counted. A little is never shown as nothing."""
    return "-" if value is None else "< 0.1%" if 0 < value < LEAST else f"{value:.1%}"
