"""The format of `evaluation.json`: ratios and curves from counts, and the report for the terminal."""

from math import floor, log10
from typing import Any

from nddup.redaction import drop_login
from nddup.shown import one_line
from nddup.verifying.pair_counts import Agreement

Band = tuple[int | None, list[int]]
"""Counts of the rows whose value lies in a band, after the band's number; None for rows without a value."""

FORMAT = 1
"""Version of the format."""

EVALUATION = """evaluation.json, format 1. A ratio that divides by nothing is null.

    format, versions, path              of this file; what made it; the list compared with
    list      kind          pairs | groups
              delimiter     tab | semicolon | comma | blank | json
              header        names of the columns, empty where there are none
              score         name of the score's column, or null
              lines, unreadable, with_itself, repeated
                            entries; lines that cannot be parsed; pairs of a document with itself (groups of one id);
                            pairs that were repeated (null for groups)
              ids, unknown_ids, rejected_ids
                            different ids; ids that are no document of the run; of these, rejects of the run
              unknown_pairs pairs with an unknown id
              counted       true if the pairs of groups were counted without being listed
    pairs, clusters         the rows of `pairs`, and all pairs of documents in a common cluster, against the list:
              reference, found, unique_to_reference, unique_to_run, common        the papers' five numbers
              precision, recall, f1
              recall_of_known   recall without pairs that have an unknown id
    unlisted  pairs of the list that are not in `pairs`, of two removed documents of a component given by leaders: the
              run does not promise these (clusters whose coverage is `documents`)
    curves    score         [{at, reference, common, together, precision, recall}]: the list cut at score >= at;
                            common: in `pairs`; together: in a common cluster; [] without scores
              resemblance   [{at, found, common, precision, recall}]: the run cut at its own estimate >= at; [] without
                            estimates, or if pairs were counted
    lists     unique_to_reference, unique_to_run   {file, rows, of}: rows written, pairs there are; file null if not
              listed
"""
"""Description of `evaluation.json` for users."""


def numbers(agreement: Agreement, known: int) -> dict[str, int | float | None]:
    """Return the papers' five numbers and their ratios.

    Args:
        agreement: numbers of pairs in the list, in the run, and in both.
        known: number of pairs of the list whose ids are both documents of the run.
    """
    reference, found, common = agreement
    return {
        "reference": reference,
        "found": found,
        "unique_to_reference": reference - common,
        "unique_to_run": found - common,
        "common": common,
        "precision": agreement.precision,
        "recall": agreement.recall,
        "f1": agreement.f1,
        "recall_of_known": Agreement(known, found, common).recall,
    }


def score_curve(bands: list[Band], width: float, found: int) -> list[dict[str, Any]]:
    """Return precision and recall of the whole run against the part of the list with at least each score.

    Args:
        bands: counts `reference`, `common` and `together` of each band of the score, highest band first.
        width: width of a band.
        found: number of pairs of the run.

    Returns:
        A point for each band, lowest score first.
    """
    points, sums = [], [0, 0, 0]
    for number, counts in bands:
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        reference, common, together = sums
        both = Agreement(reference, found, common)
        points.append({"at": round((number or 0) * width, 10), "reference": reference, "common": common,
                       "together": together, "precision": both.precision, "recall": both.recall})  # fmt: skip
    return points[::-1]


def resemblance_curve(found: list[Band], common: list[Band], *, steps: int, reference: int) -> list[dict[str, Any]]:
    """Return precision and recall of the part of the run with at least each resemblance against the whole list.

    Args:
        found: number of pairs of the run in each band of its resemblance, highest band first.
        common: number of these that are also in the list.
        steps: number of bands from 0 to 1.
        reference: number of pairs of the list.

    Returns:
        A point for each band, lowest resemblance first; pairs without an estimate are in no band.
    """
    shared = {band: count for band, (count,) in common}
    points, sums = [], [0, 0]
    for band, (count,) in found:
        if band is None:
            continue
        sums = [sums[0] + count, sums[1] + shared.get(band, 0)]
        both = Agreement(reference, *sums)
        points.append({"at": band / steps, "found": sums[0], "common": sums[1], "precision": both.precision,
                       "recall": both.recall})  # fmt: skip
    return points[::-1]


def nice_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least `least`; 1 for 0 or less.

    Example:
        >>> [nice_step(value) for value in (0.006, 0.3, 2.0, 0)]
        [0.01, 0.5, 2.0, 1.0]
    """
    if least <= 0:
        return 1.0
    power = floor(log10(least))
    first = next(step for step in (1, 2, 5, 10) if step >= round(least / 10.0**power, 9))
    return first * 10.0**power if power >= 0 else first / 10.0**-power


def describe(evaluation: dict[str, Any], run: str) -> str:
    """Return the comparison as a table for the terminal."""
    said, pairs, clusters = evaluation["list"], evaluation["pairs"], evaluation["clusters"]
    layout = f"{said['kind']}, {said['delimiter']}"
    layout += f", header {' '.join(said['header'])}" if said["header"] else ", no header"
    layout += f", score {said['score']}" if said["score"] else ""
    lines = [
        f"reference  {evaluation['path']} ({layout}): {said['lines']:,} lines, {said['ids']:,} ids",
        *(f"  note: {note}" for note in _notes(evaluation)),
        "",
        f"  {'':<24}{'pairs':>16}{'in clusters':>16}",
    ]
    counts = ("reference", "found", "unique_to_reference", "unique_to_run", "common")
    lines += [f"  {name.replace('_', ' '):<24}{pairs[name]:>16,}{clusters[name]:>16,}" for name in counts]
    ratios = {"precision": "precision", "recall": "recall", "f1": "F1"}
    lines += [f"  {title:<24}{_ratio(pairs[name]):>16}{_ratio(clusters[name]):>16}" for name, title in ratios.items()]
    if said["unknown_pairs"]:
        known = [_ratio(side["recall_of_known"]) for side in (pairs, clusters)]
        lines.append(f"  {'recall of known ids':<24}{known[0]:>16}{known[1]:>16}")
    lines.append("")
    run = drop_login(run)
    for name, written in evaluation["lists"].items():
        where = f"in {run}/{written['file']}" if written["file"] else "not listed"
        lines.append(f"  {name.replace('_', ' ')}: {written['rows']:,} of {written['of']:,} {where}")
    return "\n".join(map(one_line, [*lines, f"  all numbers: {run}/evaluation.json", ""]))


def _notes(evaluation: dict[str, Any]) -> list[str]:
    """Return a sentence about each kind of pair or line that was left out, unknown or not listed."""
    said = evaluation["list"]
    notes = []
    if said["unreadable"]:
        notes.append(f"{said['unreadable']:,} lines could not be read")
    if said["with_itself"]:
        what = "pairs of a document with itself" if said["kind"] == "pairs" else "groups of one id"
        notes.append(f"{said['with_itself']:,} {what}, left out")
    if said["repeated"]:
        notes.append(f"{said['repeated']:,} repeated pairs, counted once")
    if said["unknown_ids"]:
        rejected = f" ({said['rejected_ids']:,} of them rejects)" if said["rejected_ids"] else ""
        notes.append(
            f"{said['unknown_ids']:,} ids are no documents of the run{rejected}: {said['unknown_pairs']:,} pairs"
            " with them count as not found"
        )
    if said["counted"]:
        notes.append("the pairs of the groups were counted, not listed")
    if evaluation["unlisted"]:
        notes.append(
            f"{evaluation['unlisted']:,} pairs of the list are of two removed documents in components given by leaders:"
            " the run does not list such pairs"
        )
    return notes


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
