"""`nddup evaluate RUN --labels FILE`: compare a run, at its threshold and above, with pairs that a person judged.

A line of FILE is two ids and a label, separated by tabs, semicolons or commas, with or without blanks; a first line
without a known label is the header. A pair is measured by the value that the run compares with its threshold: the
resemblance, the edit similarity where texts confirm pairs, a containment, or an overlap as a count. A pair that the run
has not found is below its threshold, and nothing more is known of it, so a run at a low threshold shows most.

It writes `evaluation/labels.json` into the run's folder.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from nddup.engines.engine import FinishedRun
from nddup.errors import ConfigError
from nddup.ground.shown import MOST_NAMED, drop_login, name_some, one_line
from nddup.reading.id_lists import Row, read_rows, require_known
from nddup.report.borderline import decisive_of
from nddup.results.list_questions import Files
from nddup.results.opening import Opened

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
    labels = list(_read_labels(_rows_of(opened.files, path), path))
    judged = _without_doubt(labels)
    decisive = decisive_of(opened.run.metrics.settings)
    if decisive is None:
        raise ConfigError(
            "--labels: `pairs` holds no share of the overlap; make the run with pairs.measure=resemblance"
        )
    name, value, least, _ = decisive
    unknown, ids = _list_unknown(opened.run, judged)
    require_known(f"--labels {drop_login(path)}", unknown, len(unknown), ids, all_known=all_known)
    found = _measure(opened.run, judged, value)

    known = [(judged[pair], measured) for pair, (is_known, measured) in found.items() if is_known]
    evaluation = {
        "path": drop_login(path),
        "labels": {
            "lines": len(labels),
            "pairs": len(judged),
            "contradictory": len({one.pair for one in labels if one.pair[0] != one.pair[1]}) - len(judged),
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
    own = f"{evaluation['measure']} of {evaluation['threshold']:g}"
    lines = [
        f"labels: {labels['pairs']:,} pairs; {labels['contradictory']:,} more have two labels",
        f"left out, because an id is not a document of the run: {labels['unknown']:,}",
        *([f"unknown ids: {name_some(labels['first_unknown'], labels['unknown_ids'])}"] if labels["unknown"] else []),
        f"of the others {labels['same']:,} are the same; {labels['below']:,} are below the run's own {own}",
        "",
        f"  {evaluation['measure']:>11}  found  precision  recall    F1",
    ]
    for point in shown:
        numbers = "  ".join(_spelled(point[name]) for name in ("precision", "recall", "f1"))
        bars = f"p {'█' * round(BAR * (point['precision'] or 0)):<{BAR}} r {'█' * round(BAR * (point['recall'] or 0))}"
        mark = "  best F1" if point is best else ""
        lines.append(f"  {point['at']:>11g}  {point['found']:>5,}      {numbers}  {bars}{mark}")
    return "\n".join(map(one_line, [*lines, ""]))


def _rows_of(files: Files, path: str) -> list[Row]:
    """Read the whole file; return its rows.

    Raises:
        ConfigError: if it is no single file, too large, or no list.
    """
    found = files.list_inputs([path]).files
    if len(found) != 1:
        raise ConfigError(f"--labels {path}: expected a file, got a folder of {len(found)} files")
    file = found[0]
    if file.size > MOST_BYTES:
        raise ConfigError(f"--labels {path}: expected at most {MOST_BYTES >> 20} MB of labelled pairs")
    try:
        return read_rows(files.read_part(file.path, 0, file.size), lambda row: _label_of(row) is not None).rows
    except UnicodeDecodeError as error:
        raise ConfigError(f"--labels {path}: expected UTF-8 ({error.reason} at byte {error.start})") from error
    except (ValueError, csv.Error, pa.ArrowException) as error:
        raise ConfigError(f"--labels {path}: {error}") from error


def _read_labels(rows: list[Row], path: str) -> Iterator[Label]:
    """Yield the labelled pairs. A row that begins with `#` and holds no label is a comment.

    Raises:
        ConfigError: if there is none, or a row is malformed.
    """
    told = [(*row, _label_of(row.cells)) for row in rows]
    told = [(number, row, label) for number, row, label in told if label is not None or not row[0].startswith("#")]
    for place, (number, row, label) in enumerate(told):
        if label is not None:
            first, second = sorted(row[:2], key=str.encode)
            yield Label((first, second), label)
        elif place:
            raise ConfigError(
                f"--labels {path}: line {number}: expected two ids and a label ({', '.join(sorted(SAME | OTHER))}),"
                f" got {','.join(row)!r}"
            )
    if all(label is None for _, _, label in told):
        raise ConfigError(f"--labels {path}: holds no labelled pair: expected lines of id, id, label")


def _label_of(row: Sequence[str]) -> bool | None:
    """Return the label in the third field; None if it is unknown, or there are not three fields."""
    said = row[2].strip().lower() if len(row) == len(Label._fields) + 1 else ""
    return said in SAME if said in SAME | OTHER else None


def _without_doubt(labels: Iterable[Label]) -> dict[tuple[str, str], bool]:
    """Return each pair of two documents once, without those that have two different labels."""
    told: dict[tuple[str, str], set[bool]] = {}
    for pair, is_same in labels:
        if pair[0] != pair[1]:
            told.setdefault(pair, set()).add(is_same)
    return {pair: said.pop() for pair, said in told.items() if len(said) == 1}


def _list_unknown(run: FinishedRun, judged: Iterable[tuple[str, str]]) -> tuple[list[str], int]:
    """Return the ids that are no documents, ascending, and the number of all ids."""
    ids = sorted({name for pair in judged for name in pair})
    named = pa.table({"id": pa.array(ids, pa.string())})
    text = "SELECT n.id FROM named AS n ANTI JOIN documents AS d ON n.id = d.doc_id ORDER BY n.id"
    return run.sql(text, named=named)["id"].to_pylist(), len(ids)


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
    """Return precision and recall of the pairs whose measure reaches the threshold `at`."""
    found = [is_same for is_same, measured in known if measured is not None and measured >= at]
    common, same = sum(found), sum(is_same for is_same, _ in known)
    return {
        "at": at,
        "found": len(found),
        "precision": common / len(found) if found else None,
        "recall": common / same if same else None,
        "f1": 2 * common / (len(found) + same) if found or same else None,
    }


def _spelled(share: float | None) -> str:
    return "    -" if share is None else f"{share:5.3f}"
