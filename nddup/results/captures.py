"""The captures of each address over time: of a run over archives of the web.

    documents, pairs   --CAPTURES-->   a row for each capture, beside the one before it at the same address

An address is compared as it was written. Captures are in the order of their dates, then of the collection.
"""

from collections.abc import Iterator
from typing import Any

from nddup.engines.engine import FinishedRun
from nddup.errors import NddupError
from nddup.ground.shown import counted, csv_line, drop_login, one_line

COLUMNS = (
    "address", "date", "change", "resemblance", "text", "since", "doc_id", "before", "date_before", "kept",
    "record_type", "status", "source", "record", "file_offset",
)  # fmt: skip
"""The columns of the CSV. `text` numbers the different texts of an address; `since` is the first date of this one."""

CHANGES = {
    "first": "the first of their address",
    "same": "the same text as the one before",
    "near": "a near-duplicate of the one before",
    "changed": "another text",
}

PLACED = """
    SELECT d.target_uri AS address, d.date, d.doc_id, d.group AS family, d.record_type, d.status, d.source,
           d.record, d.file_offset, k.kept,
           row_number() OVER (PARTITION BY d.target_uri ORDER BY d.date, d.doc_key) AS place,
           lag(d.doc_id) OVER (PARTITION BY d.target_uri ORDER BY d.date, d.doc_key) AS before,
           lag(d.date) OVER (PARTITION BY d.target_uri ORDER BY d.date, d.doc_key) AS date_before,
           lag(d.group) OVER (PARTITION BY d.target_uri ORDER BY d.date, d.doc_key) AS family_before
    FROM documents AS d JOIN keep AS k ON d.doc_id = k.doc_id WHERE d.target_uri IS NOT NULL
"""

COMPARED = f"""
    SELECT c.*, CASE WHEN c.before IS NULL THEN 'first' WHEN c.family = c.family_before THEN 'same'
                     WHEN p.doc_a IS NOT NULL THEN 'near' ELSE 'changed' END AS change,
           CASE WHEN c.family = c.family_before THEN CAST(1 AS DOUBLE) ELSE p.resemblance END AS resemblance
    FROM ({PLACED}) AS c
    LEFT JOIN pairs AS p ON p.doc_a = least(c.doc_id, c.before) AND p.doc_b = greatest(c.doc_id, c.before)
"""  # noqa: S608 - the text above

NUMBERED = f"""
    SELECT m.*, dense_rank() OVER (PARTITION BY m.address ORDER BY m.met) AS text
    FROM (SELECT c.*, min(c.place) OVER (PARTITION BY c.address, c.family) AS met FROM ({COMPARED}) AS c) AS m
"""  # noqa: S608 - the text above

CAPTURES = f"""
    SELECT t.address, t.date, t.change, t.resemblance, t.text,
           min(t.date) OVER (PARTITION BY t.address, t.text) AS since, t.doc_id, t.before, t.date_before, t.kept,
           t.record_type, t.status, t.source, t.record, t.file_offset
    FROM ({NUMBERED}) AS t ORDER BY t.address, t.place
"""  # noqa: S608 - the text above
"""Rows of `COLUMNS`."""

COUNTS = f"""
    SELECT c.change, count(*) AS captures, min(c.date) AS first, max(c.date) AS last
    FROM ({COMPARED}) AS c GROUP BY c.change
"""  # noqa: S608 - the text above

MOST = 10
"""Addresses that are printed."""

RESTLESS = f"""
    SELECT t.address, count(*) AS captures, max(t.text) AS texts, min(t.date) AS first, max(t.date) AS last
    FROM ({NUMBERED}) AS t GROUP BY t.address ORDER BY texts DESC, captures DESC, t.address LIMIT {MOST}
"""  # noqa: S608 - the text above, and a number


def capture_lines(run: FinishedRun) -> Iterator[str]:
    """Yield the captures as lines of a CSV file, the header first.

    Raises:
        NddupError: if the run has none.

    Cost: sorts the captures; one join with `pairs`.
    """
    _require_captures(run)
    yield csv_line(COLUMNS)
    for row in run.rows(CAPTURES):
        yield csv_line(row)


def show_captures(run: FinishedRun) -> str:
    """Return how many captures changed, and the addresses that changed most; errors as of `capture_lines`."""
    counts = _require_captures(run)
    captures = sum(row["captures"] for row in counts.values())
    first, last = min(row["first"] for row in counts.values()), max(row["last"] for row in counts.values())
    number = counts["first"]["captures"]
    addresses = f"{number:,} {'address' if number == 1 else 'addresses'}"
    lines = [f"{counted(captures, 'capture')} of {addresses}, {_day(first)} to {_day(last)}"]
    lines += [f"  {counts[name]['captures']:>9,}  {text}" for name, text in CHANGES.items() if name in counts]
    lines += ["", "addresses with the most different texts", "  captures  texts  first       last        address"]
    lines += [
        f"  {row['captures']:>8,}  {row['texts']:>5,}  {_day(row['first'])}  {_day(row['last'])}"
        f"  {one_line(row['address'])}"
        for row in run.sql(RESTLESS).to_pylist()
    ]
    path = one_line(drop_login(run.path))
    return "\n".join([
        *lines, "", f"each capture: nddup show {path} --captures --csv",
        f"what changed between two: nddup show {path} --compare ID ID", "",
    ])  # fmt: skip


def _require_captures(run: FinishedRun) -> dict[str, dict[str, Any]]:
    counts = {row["change"]: row for row in run.sql(COUNTS).to_pylist()}
    if not counts:
        raise NddupError(f"--captures: {run.path} has no captures; only archives of the web (WARC, ARC, WACZ) do")
    return counts


def _day(date: str | None) -> str:
    return "-" if date is None else date[:10]
