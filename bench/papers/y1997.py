"""Broder, Glassman, Manasse, Zweig 1997: sketches of shingles divisible by 25, pairs at resemblance 0.5, components.

summary       numbers of copies, of documents in clusters, and of kept documents
sizes         number of clusters of each size
shingles      number of kept shingles by the documents that hold them
containment   pairs by containment beside pairs by resemblance
super         super-shingles beside the comparison of whole sketches: pairs found, by resemblance, and seconds
"""

from functools import partial
from pathlib import Path

import nddup as api
from bench.papers.cells import Cells, Values
from bench.papers.collections import first
from bench.papers.runs import make_run

PROFILE = "broder1997"
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)

SHINGLES = """
WITH held AS (SELECT count(*) AS documents FROM (SELECT unnest(sketch) AS shingle FROM documents) GROUP BY shingle)
SELECT CASE WHEN documents <= 3 THEN documents ELSE CAST(power(2, floor(log2(documents))) AS BIGINT) END AS documents,
       count(*) AS shingles
FROM held GROUP BY 1 ORDER BY 1
"""
IDENTICAL = """
SELECT count(*) AS documents, count(*) - count(DISTINCT content_fingerprint) AS same_bytes,
       count(*) - count(DISTINCT "group") AS same_sketch FROM documents
"""
FOUND = """
SELECT floor(resemblance * 10) / 10 AS at, count(*) AS pairs FROM pairs GROUP BY 1 ORDER BY 1
"""
FOUND_BY_BOTH = """
SELECT floor(resemblance * 10) / 10 AS at, count(*) AS pairs FROM pairs JOIN found USING (doc_a, doc_b)
GROUP BY 1 ORDER BY 1
"""


def measure(cells: Cells, folder: Path, files: dict[str, list[Path]]) -> None:
    """Measure all tables of the paper."""
    for name, parts in files.items():
        inputs = first(parts, len(parts))
        key = {"collection": name}
        cells.get("1997", key, partial(_describe, folder, inputs))
        cells.get("containment", key, partial(_containment, folder, inputs))
        cells.get("super", key, partial(_super, folder, inputs))


def _describe(folder: Path, inputs: list[str]) -> Values:
    metrics = make_run(folder / "1997", inputs, PROFILE)
    run = api.open(str(folder / "1997"))
    sizes = run.sql("SELECT size, count(*) AS clusters FROM clusters GROUP BY size ORDER BY size").to_pylist()
    return {
        "rows": metrics.rows,
        "kept": metrics.stages.keep.kept,
        "empty": metrics.empty_sketches,
        "seconds": round(metrics.seconds, 2),
        "identical": run.sql(IDENTICAL).to_pylist()[0],
        "sizes": sizes,
        "shingles": run.sql(SHINGLES).to_pylist(),
    }


def _containment(folder: Path, inputs: list[str]) -> Values:
    """Count the pairs by either measure at each threshold; equal containments both ways are near-duplicates as well."""
    rows = []
    for threshold in THRESHOLDS:
        counts = {}
        for measured in ("resemblance", "containment"):
            settings = (f"pairs.measure={measured}", f"pairs.threshold={threshold}", "clusters.mode=none")
            metrics = make_run(folder / "containment", inputs, PROFILE, *settings, reuse=True)
            counts[measured] = metrics.rows["pairs"]
        rows.append({"at": threshold, **counts})
    return {"rows": rows}


def _super(folder: Path, inputs: list[str]) -> Values:
    """Count, by resemblance, the pairs that whole sketches find, and those of them that share a super-shingle."""
    common = ("shingle.length=10", "pairs.threshold=0.5", "clusters.mode=none")
    whole = make_run(folder / "whole", inputs, None, *common)
    above = make_run(folder / "super", inputs, None, *common, "sketch.kind=super")
    full, few = api.open(str(folder / "whole")), api.open(str(folder / "super"))
    found = few.sql("SELECT doc_a, doc_b FROM pairs").to_table()
    return {
        "whole": full.sql(FOUND).to_pylist(),
        "both": full.sql(FOUND_BY_BOTH, found=found).to_pylist(),
        "super_only": few.sql("SELECT count(*) AS n FROM pairs").to_pylist()[0]["n"],
        "candidates": [whole.stages.pairs.candidates, above.stages.pairs.candidates],
        "seconds": [whole.stages.pairs.seconds, above.stages.pairs.seconds],
    }  # fmt: skip
