"""`nddup evaluate RUN --judged FILE`: rates over all removals of a run, from judgements of those drawn for a person.

FILE is what the report saves or `show --risky --csv` prints, with the column `judgement` filled in. Removals were drawn
by strata, so a rate is the mean of the strata's rates, weighted by their removals. Its interval joins the strata's
Wilson intervals: the distances from the rate to its ends are the roots of the weighted sums of squares of theirs (Zou
and Donner's method), each shortened by the share of the stratum that was judged. With one stratum it is Wilson's.

It writes `evaluation/judged.json` into the run's folder.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import pyarrow as pa

from nddup.errors import ConfigError
from nddup.ground.shown import counted, drop_login
from nddup.reading.id_lists import JUDGEMENTS, is_judged, list_judged
from nddup.report.risky import OF_JUDGED, ask_strata, place_removals
from nddup.results.list_questions import Files
from nddup.results.opening import Opened
from nddup.stages.inputs_found import read_list_of

Z = 1.959964
"""Standard deviations from the mean of a normal distribution within which 95 % lie."""


def wilson(count: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate, of which `count` of `of` draws are.

    Example:
        >>> [tuple(round(end, 4) for end in wilson(count, 10)) for count in (0, 5, 10)]
        [(0.0, 0.2775), (0.2366, 0.7634), (0.7225, 1.0)]
    """
    middle = (count + Z * Z / 2) / (of + Z * Z)
    half = Z * sqrt(count * (of - count) / of + Z * Z / 4) / (of + Z * Z)
    return max(0.0, middle - half) if count else 0.0, min(1.0, middle + half) if count < of else 1.0


def rate_of(strata: Sequence[tuple[int, int, int]]) -> tuple[float, float, float]:
    """Return a rate over all strata and its 95 % interval.

    Args:
        strata: of each, the number of its removals, of those judged (one at least), and of those that count.

    Example:
        >>> tuple(round(value, 3) for value in rate_of([(1_000_000, 10, 5)]))
        (0.5, 0.237, 0.763)
        >>> rate_of([(10, 10, 1), (30, 30, 3)])
        (0.1, 0.1, 0.1)
    """
    whole = sum(size for size, _, _ in strata)
    rate = below = above = 0.0
    for size, judged, count in strata:
        low, high = wilson(count, judged)
        weight, left, own = size / whole, 1 - judged / size, count / judged
        rate += weight * own
        below += weight**2 * left * (own - low) ** 2
        above += weight**2 * left * (high - own) ** 2
    return rate, max(0.0, rate - sqrt(below)), min(1.0, rate + sqrt(above))


def evaluate_judged(opened: Opened, path: str) -> dict[str, Any]:
    """Compute the rates, and write `evaluation/judged.json`.

    Returns:
        `judged`, `left` (rows without a judgement), `unknown` (rows that are no removal of the run); `removals`, and
        `outside`: those in strata of which none was judged; `rates` by judgement, and of `worse or no duplicate`:
        `rate`, `low`, `high`; `strata`: removals, judged, and each judgement by stratum.

    Raises:
        ConfigError: if the file is missing, malformed, or judges no removal of the run.
    """
    judged, left = _read(opened.files, path)
    wanted = pa.table(
        {
            "doc_id": pa.array([doc for doc, _ in judged], pa.string()),
            "duplicate_of": pa.array([of for _, of in judged], pa.string()),
        }
    )
    of_doc = {doc: said for (doc, _), said in judged.items()}
    rows = opened.run.sql(OF_JUDGED.format(placed=place_removals(opened.run)), wanted=wanted).to_pylist()
    if not rows:
        raise ConfigError(f"--judged {drop_login(path)}: judges no removal of {opened.run.path}")
    told = Counter((row["stratum"], of_doc[row["doc_id"]]) for row in rows)
    sizes = ask_strata(opened.run)
    seen = [name for name in sizes if any((name, said) in told for said in JUDGEMENTS)]
    counts = {name: {said: told[name, said] for said in JUDGEMENTS} for name in seen}
    classes = {said: (said,) for said in JUDGEMENTS} | {"worse or not a duplicate": ("worse", "not a duplicate")}
    rates = {}
    for name, said in classes.items():
        parts = [(sizes[at], sum(row.values()), sum(row[one] for one in said)) for at, row in counts.items()]
        rates[name] = dict(zip(("rate", "low", "high"), rate_of(parts), strict=True))
    evaluation = {
        "path": drop_login(path), "judged": len(rows), "left": left, "unknown": len(judged) - len(rows),
        "removals": sum(sizes.values()), "outside": sum(size for name, size in sizes.items() if name not in seen),
        "rates": rates,
        "strata": [{"stratum": name, "removals": sizes[name], "judged": sum(row.values()), **row}
                   for name, row in counts.items()],
    }  # fmt: skip
    opened.folder.write_text("evaluation/judged.json", json.dumps(evaluation, indent=2, ensure_ascii=False) + "\n")
    return evaluation


def _read(files: Files, path: str) -> tuple[dict[tuple[str, str], str], int]:
    """Return what was said of each removal, and the number of rows that say nothing; of two words the last counts."""
    found = read_list_of(files, path, "--judged", lambda cells: len(cells) > 1)
    if not is_judged(found):
        raise ConfigError(
            f"--judged {drop_login(path)}: expected the columns doc_id, duplicate_of, judgement;"
            " `nddup show RUN --risky 100 --csv` prints such a file"
        )
    try:
        rows = list(list_judged(found))
    except ValueError as error:
        raise ConfigError(f"--judged {drop_login(path)}: {error}") from error
    return {(one.doc_id, one.kept): one.said for one in rows if one.said}, sum(not one.said for one in rows)


def describe_judged(evaluation: Mapping[str, Any]) -> str:
    """Return the rates with their intervals, and the judgements by stratum."""
    counts = {name: counted(evaluation[name], "row") for name in ("left", "unknown")}
    of = f"{evaluation['judged']:,} of {counted(evaluation['removals'], 'removal')}"
    lines = [
        f"judged: {of}; without a judgement {counts['left']}, of no removal of the run {counts['unknown']}",
        "  the kept one is             rate   95 % interval",
    ]
    for name, found in evaluation["rates"].items():
        lines.append(f"  {name:<25} {found['rate']:>6.1%}   {found['low']:.1%} to {found['high']:.1%}")
    if evaluation["outside"]:
        lines.append(f"  not in these rates: {counted(evaluation['outside'], 'removal')} of strata that nobody judged")
    lines += ["", "  stratum    removals  judged  better  equal  worse  no duplicate"]
    for row in evaluation["strata"]:
        told = f"{row['better']:>6,}  {row['equal']:>5,}  {row['worse']:>5,}  {row['not a duplicate']:>12,}"
        lines.append(f"  {row['stratum']:<9} {row['removals']:>9,}  {row['judged']:>6,}  {told}")
    return "\n".join([*lines, ""])
