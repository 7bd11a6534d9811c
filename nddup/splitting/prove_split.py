"""`nddup check` of a folder that `nddup split` wrote: its table is compared with the run that was split.

Only stored tables are read: `split`, and `documents`, `pairs` and `keep` of the run. Units are not made again: that no
unit, no pair and no group of equal texts is in two parts is counted row by row.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nddup.checking.check_run import CheckReport, Finding
from nddup.engines.duck import DuckRun
from nddup.errors import OutputError
from nddup.ground.json_text import load_object
from nddup.ground.progress import Steps
from nddup.splitting.write_split import HEADER
from nddup.tables.features import SHARES, SPLIT

ENDS = """
    SELECT p.doc_a, p.doc_b, a.part AS part_a, b.part AS part_b
    FROM pairs AS p JOIN split AS a ON p.doc_a = a.doc_id JOIN split AS b ON p.doc_b = b.doc_id
"""

EQUAL = """
    SELECT d.doc_id AS doc_a, d.group AS doc_b, a.part AS part_a, b.part AS part_b
    FROM documents AS d JOIN split AS a ON d.doc_id = a.doc_id JOIN split AS b ON d.group = b.doc_id
    WHERE d.doc_id <> d.group
"""

CROSSING = """
    WITH ends AS ({ends}),
    units AS (SELECT doc_id, unit FROM split)
    SELECT concat(e.doc_a, ' in ', coalesce(e.part_a, 'no part'), ', ', e.doc_b, ' in ', coalesce(e.part_b, 'no part'))
           AS said
    FROM ends AS e JOIN units AS a ON e.doc_a = a.doc_id JOIN units AS b ON e.doc_b = b.doc_id
    WHERE e.part_a <> e.part_b OR a.unit <> b.unit ORDER BY said
"""
"""Pairs in two parts, or in two units, which a document that is left out could join."""

TWICE = """
    SELECT coalesce(d.doc_id, s.doc_id) AS said
    FROM (SELECT doc_id FROM documents) AS d
    FULL OUTER JOIN (SELECT doc_id, count(*) AS n FROM split GROUP BY doc_id) AS s ON d.doc_id = s.doc_id
    WHERE d.doc_id IS NULL OR s.n IS NULL OR s.n > 1 ORDER BY said
"""

DIVIDED = """
    SELECT concat(unit, ': ', string_agg(DISTINCT part, ', ' ORDER BY part)) AS said
    FROM split WHERE part IS NOT NULL GROUP BY unit HAVING count(DISTINCT part) > 1 ORDER BY said
"""

LEFT = "SELECT doc_id AS said FROM split WHERE part IS NULL AND (decided_by <> 'fixed' OR given IS NULL) ORDER BY said"

COUNTED = """
    SELECT unit AS said FROM split GROUP BY unit HAVING min(documents) <> count(*) OR max(documents) <> count(*)
    ORDER BY said
"""

SHARED = """
    WITH own AS (SELECT part, count(*) AS n FROM split WHERE part IS NOT NULL GROUP BY part),
    valued AS (
        SELECT name, value, sum(documents) AS n, count(*) AS rows, count(DISTINCT part) AS parts FROM shares
        GROUP BY name, value
    ),
    parted AS (SELECT name, part, sum(documents) AS n FROM shares GROUP BY name, part)
    SELECT concat_ws(' ', s.name, s.value, s.part) AS said
    FROM shares AS s JOIN valued AS t ON s.name IS NOT DISTINCT FROM t.name AND s.value IS NOT DISTINCT FROM t.value
    LEFT JOIN asked AS a ON s.part = a.part
    WHERE a.part IS NULL OR t.rows <> {parts} OR t.parts <> {parts} OR abs(s.asked - a.share * t.n) > 1e-6 * (1 + t.n)
    UNION ALL
    SELECT concat_ws(' ', p.name, p.part) AS said FROM parted AS p FULL OUTER JOIN own AS o ON p.part = o.part
    WHERE coalesce(p.n, 0) <> coalesce(o.n, 0)
    UNION ALL
    SELECT 'no shares' AS said WHERE NOT EXISTS (SELECT 1 FROM shares WHERE name IS NULL) AND EXISTS (SELECT 1 FROM own)
    ORDER BY said
"""
"""Rows of SHARES that do not follow from the split, or from one another: the values of --by are not read again."""

LEADERS = "SELECT count(*) AS n FROM keep WHERE leader"


def check_split(path: str, steps: Steps) -> CheckReport:
    """Prove what a folder of `nddup split` promises.

    Raises:
        OutputError: if a table cannot be read, or the run is gone or unfinished.

    Cost: joins of `pairs` and `documents` with the table; on this machine.
    """
    steps.begin("open the run")
    try:
        header = load_object((Path(path) / HEADER).read_text(encoding="utf-8"))
        split = pq.read_table(Path(path) / "split").select(SPLIT.names)
        shares = pq.read_table(Path(path) / "shares").select(SHARES.names)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise OutputError(f"{path}: a table cannot be read ({error})") from error
    run = DuckRun(header["run"])
    run.see("split", split)
    run.see("shares", shares)
    parts = {name: float(Fraction(share)) for name, share in header["parts"].items()}
    run.see("asked", pa.table({"part": list(parts), "share": pa.array(parts.values(), pa.float64())}))
    steps.begin("count the pairs between parts")
    names = list(header["parts"])
    documents, left = f"{len(split):,} documents", split["part"].null_count
    units = run.count("split", {"n": "count(DISTINCT unit)"})["n"]
    unknown = sorted(set(split["part"].drop_null().to_pylist()) - set(names))
    led = run.sql(LEADERS).to_pylist()[0]["n"]
    note = "of components given by leaders the pairs of leaders alone are stored" if led else ""
    return CheckReport((
        Finding.of("every document of the run is in the split once", documents, _said(run, TWICE)),
        Finding.of("every part is one of the split's", ", ".join(names), unknown),
        Finding.of("no unit is in two parts", f"{units:,} units", _said(run, DIVIDED)),
        Finding.of("no found pair is in two parts", *_crossing(run, ENDS), note),
        Finding.of("no equal texts are in two parts", *_crossing(run, EQUAL)),
        Finding.of("only documents fixed elsewhere are left out", f"{left:,} documents", _said(run, LEFT)),
        Finding.of("the sizes of units and the shares are right", f"{len(shares):,} shares",
                   [*_said(run, COUNTED), *_said(run, SHARED.format(parts=len(names)))]),
        *_written(header["written"], split),
    ))  # fmt: skip


def _said(run: DuckRun, text: str) -> list[str]:
    return [str(sentence) for sentence in run.sql(text)["said"].to_pylist()]


def _crossing(run: DuckRun, ends: str) -> tuple[str, list[str]]:
    """Return how many pairs were looked at, and those that cross."""
    number = run.sql(f"SELECT count(*) AS n FROM ({ends}) AS ends").to_pylist()[0]["n"]  # noqa: S608 - our queries
    return f"{number:,} pairs", _said(run, CROSSING.format(ends=ends))


def _written(written: dict[str, int] | None, split: pa.Table) -> list[Finding]:
    if written is None:
        return []
    counts: dict[Any, int] = {
        row["values"]: row["counts"] for row in split["part"].drop_null().value_counts().to_pylist()
    }
    wrong = [
        f"{name}: {n:,} records of {counts.get(name, 0):,}" for name, n in written.items() if n != counts.get(name, 0)
    ]
    return [Finding.of("every document of a part was written there", f"{sum(written.values()):,} records", wrong)]
