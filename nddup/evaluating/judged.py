"""`nddup evaluate RUN` against what a person judged: pairs with labels (--labels), and drawn removals (--judged).

Of labels, a line is two ids and a label; a pair is measured by the value that the run compares with its threshold. A
pair that the run has not found is below its threshold, and nothing more is known of it, so a run at a low threshold
shows most. Judged removals were drawn by strata (`show --risky`), so a rate is the mean of the strata's rates, weighted
by their removals; its interval joins the strata's Wilson intervals (Zou and Donner's method: the distances from the
rate to its ends are the roots of the weighted sums of squares of theirs), each shortened by the share of the stratum
that was judged. They write `evaluation/labels.json` and `evaluation/judged.json` into the run's folder.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import pyarrow as pa

from nddup.engines.engine import FinishedRun, find_ids
from nddup.errors import ConfigError
from nddup.ground.shown import MOST_NAMED, counted, drop_login, name_some, one_line
from nddup.reading.id_lists import JUDGEMENTS, Row, is_judged, list_judged, require_known, require_one
from nddup.report.for_review import OF_JUDGED, ask_strata, decisive_of, place_removals
from nddup.results.opening import Opened
from nddup.stages.inputs_found import read_list_of

SAME = frozenset({"1", "yes", "y", "true", "same", "duplicate"})
OTHER = frozenset({"0", "no", "n", "false", "other", "different"})
"""Known labels; case does not matter."""

MOST_BYTES = 64 << 20
"""Largest FILE: about a million pairs, more than anyone labels by hand."""

STEPS, SHOWN = 100, 5
"""Points of the curve from 0 to 1; one in SHOWN is printed."""

BAR = 30
"""Length of the bar for a precision or recall of 1, in characters."""

MEASURED = """
    WITH named AS (
        SELECT w.place, a.group AS a, b.group AS b FROM wanted AS w
        LEFT JOIN documents AS a ON w.doc_a = a.doc_id LEFT JOIN documents AS b ON w.doc_b = b.doc_id
    ), found AS (
        SELECT least(x.group, y.group) AS a, greatest(x.group, y.group) AS b, max({value}) AS measured
        FROM pairs AS p JOIN documents AS x ON p.doc_a = x.doc_id JOIN documents AS y ON p.doc_b = y.doc_id
        GROUP BY least(x.group, y.group), greatest(x.group, y.group)
    )
    SELECT n.place, n.a IS NOT NULL AND n.b IS NOT NULL AS is_known, CAST(f.measured AS DOUBLE) AS measured
    FROM named AS n LEFT JOIN found AS f ON least(n.a, n.b) = f.a AND greatest(n.a, n.b) = f.b
"""
"""For each labelled pair, whether both ids are documents, and its measure: null if the run has no such pair."""


class Label(NamedTuple):
    """A pair, the smaller id first, and whether its label says that both are the same."""

    pair: tuple[str, str]
    is_same: bool


Z = 1.959964
"""Standard deviations from the mean of a normal distribution within which 95 % lie."""


def evaluate_labels(opened: Opened, path: str, *, all_known: bool = False) -> dict[str, Any]:
    """Compare a run with labelled pairs; write `evaluation/labels.json`.

    Returns:
        `labels`: counts of the file; `measure` and `threshold` of the run; `curve`: one point per threshold, with `at`,
        `found`, `precision`, `recall` and `f1`, from the run's threshold upwards. A ratio with denominator 0 is None.

    Raises:
        ConfigError: if the file is missing, has no labelled pair, or has a malformed line; or if `pairs` does not hold
            the run's measure.

    Cost: a join of `pairs` with `documents`.
    """
    listed = read_list_of(
        opened.files, path, "--labels", lambda row: _label_of(row) is not None, most=(MOST_BYTES, "labelled pairs")
    )
    labels = list(_read_labels(listed.rows, path))
    ids = {one for label in labels for one in label.pair}
    documents = find_ids(opened.run, ids)
    judged, doubtful = _without_doubt(labels, documents)
    decisive = decisive_of(opened.run.metrics.settings)
    if decisive is None:
        raise ConfigError(
            "--labels: `pairs` holds no share of the overlap; make the run with pairs.measure=resemblance"
        )
    name, value, least, _ = decisive
    unknown = sorted(ids - documents.keys())
    require_known(f"--labels {drop_login(path)}", unknown, len(unknown), len(ids), all_known=all_known)
    measures = _measure(opened.run, judged, value)

    known = [(judged[pair], measured) for pair, (is_known, measured) in measures.items() if is_known]
    evaluation = {
        "path": drop_login(path),
        "labels": {
            "lines": len(labels),
            "pairs": len(judged),
            "contradictory": len(doubtful),
            "first_contradictory": [" and ".join(pair) for pair in doubtful[:MOST_NAMED]],
            "unknown": len(judged) - len(known),
            "unknown_ids": len(unknown),
            "first_unknown": unknown[:MOST_NAMED],
            "same": sum(is_same for is_same, _ in known),
            "below": sum(measured is None for _, measured in known),
        },
        "measure": name,
        "threshold": least,
        "curve": [_point(at, known) for at in _thresholds(least)],
    }
    opened.folder.write_text("evaluation/labels.json", json.dumps(evaluation, indent=2, ensure_ascii=False) + "\n")
    return evaluation


def describe_labels(evaluation: Mapping[str, Any]) -> str:
    """Return the counts, and the curve as a table with bars; the best F1 is marked."""
    labels, curve = evaluation["labels"], evaluation["curve"]
    best = max(curve, key=lambda point: point["f1"] or 0.0)
    shown = [point for place, point in enumerate(curve) if place % SHOWN == 0 or point is best]
    doubtful = name_some(labels["first_contradictory"], labels["contradictory"])
    doubtful = doubtful and f": {doubtful}"
    least = f"{evaluation['measure']} of {evaluation['threshold']:g}"
    lines = [
        f"labels: {labels['pairs']:,} pairs; {labels['contradictory']:,} more have two labels{doubtful}",
        f"left out, because an id is not a document of the run: {labels['unknown']:,}",
        *([f"unknown ids: {name_some(labels['first_unknown'], labels['unknown_ids'])}"] if labels["unknown"] else []),
        f"of the others {labels['same']:,} are the same; {labels['below']:,} are below the run's own {least}",
        "",
        f"  {evaluation['measure']:>11}  found  precision  recall    F1",
    ]
    for point in shown:
        numbers = "  ".join(_spelled(point[name]) for name in ("precision", "recall", "f1"))
        bars = f"p {'█' * round(BAR * (point['precision'] or 0)):<{BAR}} r {'█' * round(BAR * (point['recall'] or 0))}"
        mark = "  best F1" if point is best else ""
        lines.append(f"  {point['at']:>11g}  {point['found']:>5,}      {numbers}  {bars}{mark}")
    return "\n".join(map(one_line, [*lines, ""]))


def _read_labels(rows: list[Row], path: str) -> Iterator[Label]:
    """Yield the labelled pairs. A row that begins with `#` and holds no label is a comment."""
    labelled = [(*row, _label_of(row.cells)) for row in rows]
    labelled = [
        (number, row, label) for number, row, label in labelled if label is not None or not row[0].startswith("#")
    ]
    for place, (number, row, label) in enumerate(labelled):
        if label is not None:
            first, second = sorted(row[:2], key=str.encode)
            yield Label((first, second), label)
        elif place:
            raise ConfigError(
                f"--labels {path}: line {number}: expected two ids and a label ({', '.join(sorted(SAME | OTHER))}),"
                f" got {','.join(row)[:100]!r}"
            )
    if all(label is None for _, _, label in labelled):
        raise ConfigError(f"--labels {path}: holds no labelled pair: expected lines of id, id, label")


def _label_of(row: Sequence[str]) -> bool | None:
    word = row[2].strip().lower() if len(row) == len(Label._fields) + 1 else ""
    return word in SAME if word in SAME | OTHER else None


def _without_doubt(
    labels: Iterable[Label], documents: Mapping[str, str]
) -> tuple[dict[tuple[str, str], bool], list[tuple[str, str]]]:
    """Return each pair of two documents once, without those that have two different labels; and these, ascending."""
    labels_of: dict[tuple[str, str], set[bool]] = {}
    for (a, b), is_same in labels:
        first, second = sorted((documents.get(a, a), documents.get(b, b)), key=str.encode)
        pair = first, second
        if first != second:
            labels_of.setdefault(pair, set()).add(is_same)
    doubtful = sorted(pair for pair in labels_of if len(labels_of[pair]) > 1)
    return {pair: given.pop() for pair, given in labels_of.items() if len(given) == 1}, doubtful


def _measure(
    run: FinishedRun, judged: Mapping[tuple[str, str], bool], value: str
) -> dict[tuple[str, str], tuple[bool, float | None]]:
    """Return for each pair whether both ids are documents of the run, and its measure; None if it was not found."""
    pairs = list(judged)
    wanted = pa.table(
        {
            "place": pa.array(range(len(pairs)), pa.int64()),
            "doc_a": pa.array([pair[0] for pair in pairs], pa.string()),
            "doc_b": pa.array([pair[1] for pair in pairs], pa.string()),
        }
    )
    rows = run.sql(MEASURED.format(value=value), wanted=wanted).to_pylist()
    return {pairs[row["place"]]: (row["is_known"], row["measured"]) for row in rows}


def _thresholds(least: float) -> list[float]:
    """Return the run's own threshold, then every hundredth up to 1; for a count, every count up to its double."""
    if least > 1 or isinstance(least, int):
        return [float(at) for at in range(int(least), 2 * int(least) + 1)]
    return [least, *(step / STEPS for step in range(STEPS + 1) if step / STEPS > least)]


def _point(at: float, known: list[tuple[bool, float | None]]) -> dict[str, Any]:
    pairs = [is_same for is_same, measured in known if measured is not None and measured >= at]
    common, same = sum(pairs), sum(is_same for is_same, _ in known)
    return {
        "at": at,
        "found": len(pairs),
        "precision": common / len(pairs) if pairs else None,
        "recall": common / same if same else None,
        "f1": 2 * common / (len(pairs) + same) if pairs or same else None,
    }


def _spelled(share: float | None) -> str:
    return "    -" if share is None else f"{share:5.3f}"


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
        weight, left, share = size / whole, 1 - judged / size, count / judged
        rate += weight * share
        below += weight**2 * left * (share - low) ** 2
        above += weight**2 * left * (high - share) ** 2
    return rate, max(0.0, rate - sqrt(below)), min(1.0, rate + sqrt(above))


def evaluate_judged(opened: Opened, path: str) -> dict[str, Any]:
    """Compute the rates, and write `evaluation/judged.json`.

    Returns:
        `judged`, `left` (rows without a judgement), `unknown` (rows that are no removal of the run); `removals`, and
        `outside`: those in strata of which none was judged; `rates` by judgement, and of `worse or no duplicate`:
        `rate`, `low`, `high`; `strata`: removals, judged, and each judgement by stratum.

    Raises:
        ConfigError: if the file is missing, malformed, judges a removal twice, or no removal of the run.
    """
    judged, left = _read(opened, path)
    wanted = pa.table(
        {
            "doc_id": pa.array([doc for doc, _ in judged], pa.string()),
            "duplicate_of": pa.array([of for _, of in judged], pa.string()),
        }
    )
    of_doc = {doc: judgement for (doc, _), judgement in judged.items()}
    rows = opened.run.sql(OF_JUDGED.format(placed=place_removals(opened.run)), wanted=wanted).to_pylist()
    if not rows:
        raise ConfigError(f"--judged {drop_login(path)}: judges no removal of {opened.run.path}")
    tally = Counter((row["stratum"], of_doc[row["doc_id"]]) for row in rows)
    sizes = ask_strata(opened.run)
    seen = [name for name in sizes if any((name, judgement) in tally for judgement in JUDGEMENTS)]
    counts = {name: {judgement: tally[name, judgement] for judgement in JUDGEMENTS} for name in seen}
    classes = {judgement: (judgement,) for judgement in JUDGEMENTS} | {
        "worse or not a duplicate": ("worse", "not a duplicate")
    }
    rates = {}
    for name, members in classes.items():
        parts = [(sizes[at], sum(row.values()), sum(row[one] for one in members)) for at, row in counts.items()]
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


def _read(opened: Opened, path: str) -> tuple[dict[tuple[str, str], str], int]:
    """Return what was said of each removal, by the ids of its documents, and the number of rows that say nothing."""
    table = read_list_of(opened.files, path, "--judged", lambda cells: len(cells) > 1)
    if not is_judged(table):
        raise ConfigError(
            f"--judged {drop_login(path)}: expected the columns doc_id, duplicate_of, judgement;"
            " `nddup show RUN --risky 100 --csv` prints such a file"
        )
    try:
        rows = list(list_judged(table))
    except ValueError as error:
        raise ConfigError(f"--judged {drop_login(path)}: {error}") from error
    judgements = {(one.doc_id, one.kept): one.judgement for one in rows if one.judgement}
    documents = find_ids(opened.run, (one for pair in judgements for one in pair))
    named = {(a, b): (documents.get(a, a), documents.get(b, b)) for a, b in judgements}
    return require_one(f"--judged {drop_login(path)}", judgements, named), sum(not one.judgement for one in rows)


def describe_judged(evaluation: Mapping[str, Any]) -> str:
    """Return the rates with their intervals, and the judgements by stratum."""
    counts = {name: counted(evaluation[name], "row") for name in ("left", "unknown")}
    of = f"{evaluation['judged']:,} of {counted(evaluation['removals'], 'removal')}"
    lines = [
        f"judged: {of}; without a judgement {counts['left']}, of no removal of the run {counts['unknown']}",
        "  the kept one is             rate   95 % interval",
    ]
    for name, rate in evaluation["rates"].items():
        lines.append(f"  {name:<25} {rate['rate']:>6.1%}   {rate['low']:.1%} to {rate['high']:.1%}")
    if evaluation["outside"]:
        lines.append(f"  not in these rates: {counted(evaluation['outside'], 'removal')} of strata that nobody judged")
    lines += ["", "  stratum    removals  judged  better  equal  worse  no duplicate"]
    for row in evaluation["strata"]:
        cells = f"{row['better']:>6,}  {row['equal']:>5,}  {row['worse']:>5,}  {row['not a duplicate']:>12,}"
        lines.append(f"  {row['stratum']:<9} {row['removals']:>9,}  {row['judged']:>6,}  {cells}")
    return "\n".join([*lines, ""])
