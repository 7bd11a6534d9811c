"""`nddup evaluate RUN --truth FILE`: compare a finished run with a list of duplicates, in the numbers of the papers.

    evaluate_run     a run, a list -> written into the run's folder:
        evaluation.json                         every number: counts, ratios and curves
        evaluation/unique_to_reference.csv      pairs of the list only, with urls and estimated resemblance
        evaluation/unique_to_run.csv            pairs of the run only
    numbers, score_curve, resemblance_curve     counts -> the papers' five numbers, and the curves
    describe         the comparison -> a table for the terminal

List and run are both sets of pairs of different documents; the order within a pair does not matter. A star stands for
all pairs of its groups of equal sketches.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import floor, log10
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.engines.engine import FinishedRun
from nddup.ground.progress import Steps
from nddup.ground.shown import MOST_NAMED, counted, csv_line, drop_login, name_some, one_line
from nddup.reading.id_lists import require_known
from nddup.reading.reference_lists import Layout
from nddup.results import list_questions as questions
from nddup.results.list_questions import Reading, open_reference
from nddup.results.opening import Opened
from nddup.settings.load import read_stored
from nddup.settings.plan import kind_of
from nddup.settings.schema import Config
from nddup.storage.run_folder import RunFolder, versions
from nddup.verifying.definitions import Sample, estimate_pairs
from nddup.verifying.pair_counts import Agreement, count_pairs_of_kinds

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
              unknown       the first of the unknown ids
              unknown_pairs pairs with an unknown id
              counted       true if the pairs of groups were counted without being listed
    pairs, clusters         the rows of `pairs`, and all pairs of documents in a common cluster, against the list:
              reference, found, unique_to_reference, unique_to_run, common        the papers' five numbers
              precision, recall, f1
              recall_of_known   recall without pairs that have an unknown id
    unlisted  pairs of the list that are not in `pairs`, of two followers in a component given by leaders: the
              run does not promise these (clusters whose coverage is `documents`)
    curves    score         [{at, reference, common, together, precision, recall}]: the list cut at score >= at;
                            common: in `pairs`; together: in a common cluster; [] without scores
              resemblance   [{at, found, common, precision, recall}]: the run cut at its own estimate >= at; [] without
                            estimates, or if pairs were counted
    lists     unique_to_reference, unique_to_run   {file, rows, of}: rows written, pairs there are; file null if not
              listed
"""
"""Description of `evaluation.json` for users."""

ESTIMATED = "doc_a string, doc_b string, score double, together boolean, why string, url_a string, url_b string, estimate double"  # noqa: E501
"""The columns that `estimate_pairs` makes from MISSED_SKETCHES."""

LISTED = 20_000_000
"""Maximum number of pairs of groups that are listed one by one; more are counted without listing them."""

WRITTEN = 1_000_000
"""Maximum number of rows in each list of unique pairs."""

POINTS = 50
"""Largest number of points of the curve over the score, give or take one."""

STEPS = 6
"""Number of steps of a comparison, for progress."""


def numbers(agreement: Agreement, known: int) -> dict[str, int | float | None]:
    """Return the papers' five numbers and their ratios.

    Args:
        agreement: numbers of pairs in the list, in the run, and in both.
        known: number of pairs of the list whose ids are both documents of the run.
    """
    reference, reported, common = agreement
    return {
        "reference": reference,
        "found": reported,
        "unique_to_reference": reference - common,
        "unique_to_run": reported - common,
        "common": common,
        "precision": agreement.precision,
        "recall": agreement.recall,
        "f1": agreement.f1,
        "recall_of_known": Agreement(known, reported, common).recall,
    }


def score_curve(bands: list[Band], width: float, n_pairs: int) -> list[dict[str, Any]]:
    """Return precision and recall of the whole run against the part of the list with at least each score.

    Args:
        bands: counts `reference`, `common` and `together` of each band of the score, highest band first.
        n_pairs: number of pairs of the run.

    Returns:
        A point for each band, lowest score first.
    """
    points, sums = [], [0, 0, 0]
    for number, counts in bands:
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        reference, common, together = sums
        both = Agreement(reference, n_pairs, common)
        points.append({"at": round((number or 0) * width, 10), "reference": reference, "common": common,
                       "together": together, "precision": both.precision, "recall": both.recall})  # fmt: skip
    return points[::-1]


def resemblance_curve(bands: list[Band], common: list[Band], *, steps: int, reference: int) -> list[dict[str, Any]]:
    """Return precision and recall of the part of the run with at least each resemblance against the whole list.

    Args:
        bands: number of pairs of the run in each band of its resemblance, highest band first.
        common: number of these that are also in the list.
        steps: number of bands from 0 to 1.
        reference: number of pairs of the list.

    Returns:
        A point for each band, lowest resemblance first; pairs without an estimate are in no band.
    """
    shared = {band: count for band, (count,) in common}
    points, sums = [], [0, 0]
    for band, (count,) in bands:
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
    listed, pairs, clusters = evaluation["list"], evaluation["pairs"], evaluation["clusters"]
    layout = f"{listed['kind']}, {listed['delimiter']}"
    layout += f", header {' '.join(listed['header'])}" if listed["header"] else ", no header"
    layout += f", score {listed['score']}" if listed["score"] else ""
    number = f"{counted(listed['lines'], 'line')}, {counted(listed['ids'], 'id')}"
    lines = [
        f"reference  {evaluation['path']} ({layout}): {number}",
        *(f"  note: {note}" for note in _notes(evaluation)),
        "",
        f"  {'':<24}{'pairs':>16}{'in clusters':>16}",
    ]
    counts = ("reference", "found", "unique_to_reference", "unique_to_run", "common")
    lines += [f"  {name.replace('_', ' '):<24}{pairs[name]:>16,}{clusters[name]:>16,}" for name in counts]
    ratios = {"precision": "precision", "recall": "recall", "f1": "F1"}
    lines += [f"  {title:<24}{_ratio(pairs[name]):>16}{_ratio(clusters[name]):>16}" for name, title in ratios.items()]
    if listed["unknown_pairs"]:
        known = [_ratio(side["recall_of_known"]) for side in (pairs, clusters)]
        lines.append(f"  {'recall of known ids':<24}{known[0]:>16}{known[1]:>16}")
    lines.append("")
    run = drop_login(run)
    for name, written in evaluation["lists"].items():
        where = f"in {run}/{written['file']}" if written["file"] else "not listed"
        lines.append(f"  {name.replace('_', ' ')}: {written['rows']:,} of {written['of']:,} {where}")
    return "\n".join(map(one_line, [*lines, f"  all numbers: {run}/evaluation.json", ""]))


def _notes(evaluation: dict[str, Any]) -> list[str]:
    listed = evaluation["list"]
    notes = []
    if listed["unreadable"]:
        notes.append(f"could not be read: {counted(listed['unreadable'], 'line')}")
    if listed["with_itself"]:
        what = "pairs of a document with itself" if listed["kind"] == "pairs" else "groups of one id"
        notes.append(f"{listed['with_itself']:,} {what}, left out")
    if listed["repeated"]:
        notes.append(f"{counted(listed['repeated'], 'repeated pair')}, counted once")
    if listed["unknown_ids"]:
        rejected = f" ({listed['rejected_ids']:,} of them rejects)" if listed["rejected_ids"] else ""
        notes.append(
            f"{counted(listed['unknown_ids'], 'id')} of no document of the run{rejected}:"
            f" {counted(listed['unknown_pairs'], 'pair')} with them count as not found:"
            f" {name_some(listed['unknown'], listed['unknown_ids'])}"
        )
    if listed["counted"]:
        notes.append("the pairs of the groups were counted, not listed")
    if evaluation["unlisted"]:
        notes.append(
            f"{evaluation['unlisted']:,} pairs of the list are of two followers in components given by leaders:"
            " the run does not list such pairs"
        )
    return notes


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


@dataclass(frozen=True)
class UniquePairs:
    """A writer of both lists of one comparison.

    Attributes:
        run: the run, with the answers that the comparison keeps.
        most: most rows of each list.
    """

    run: FinishedRun
    folder: RunFolder
    config: Config
    most: int

    def write_missed(self, of: int) -> dict[str, Any]:
        """Write `evaluation/unique_to_reference.csv`: pairs of the list that the run lacks, highest score first.

        Returns:
            The entry of `lists` in `evaluation.json`: file, rows written, total of pairs.
        """
        sketch = self.config.sketch
        kind = kind_of(sketch)
        sample = Sample(kind.sample(sketch.size), kind.by_slots)
        estimate = partial(estimate_pairs, sample=sample, levelled=sketch.size if kind.estimate == "levels" else 0)

        self.run.materialise("missed", questions.missed(self.most))
        rows = self.run.rows(questions.MISSED_SKETCHES, estimate, ESTIMATED)
        columns = ["doc_a", "doc_b", "score", "estimate", "together", "why", "url_a", "url_b"]
        in_order = ((a, b, score, measured, *rest) for a, b, score, *rest, measured in rows)
        return self._write("unique_to_reference", columns, in_order, of)

    def write_unasked(self, of: int) -> dict[str, Any]:
        """Write `evaluation/unique_to_run.csv`: rows of `pairs` that the list lacks, highest resemblance first.

        Args:
            of: total number of such pairs; the row of a star stands for several.

        Returns:
            As `write_missed`.
        """
        columns = ["doc_a", "doc_b", "overlap", "resemblance", "star", "url_a", "url_b"]
        return self._write("unique_to_run", columns, self.run.rows(questions.unasked(self.most)), of)

    def _write(self, name: str, columns: Sequence[str], rows: Iterator[Sequence[Any]], of: int) -> dict[str, Any]:
        written = 0

        def lines() -> Iterator[str]:
            nonlocal written
            yield csv_line(columns)
            for row in rows:
                written += 1
                yield csv_line(row)

        file = f"evaluation/{name}.csv"
        self.folder.write_text(file, lines())
        return {"file": file, "rows": written, "of": of}


@dataclass(frozen=True)
class Options(Reading):
    """How the list is read, and the limits of the lists.

    Attributes:
        written: most rows in each list of unique pairs.
        listed: most pairs of groups that are listed one by one.
        all_known: whether an id that is no document is refused.
    """

    written: int = WRITTEN
    listed: int = LISTED
    all_known: bool = False


DEFAULTS = Options()


class _Found(NamedTuple):
    """Counts of the run: pairs of documents, pairs in a common cluster, pairs by band of their resemblance."""

    pairs: int
    together: int
    bands: list[Band]


class _Entries(NamedTuple):
    """Counts of the lines of the list, as in `evaluation.json`, and the number of pairs that its lines could give."""

    counts: dict[str, int]
    possible: int


def evaluate_run(
    opened: Opened, truth: str, options: Options = DEFAULTS, *, steps: Steps | None = None
) -> dict[str, Any]:
    """Compare a finished run with a reference list; write `evaluation.json` and the lists of unique pairs into the run.

    Pairs with an id that is not a document of the run are part of the reference: they count as not found, and the
    report gives their number and the recall without them. A list of groups is expanded into its pairs if there are at
    most `LISTED` of them. More pairs are counted exactly, but not listed, and neither CSV file is written.

    Args:
        truth: the list's file, plain or compressed.
        options: how to read the list, and the limits of the lists written.

    Returns:
        The content of `evaluation.json`.

    Raises:
        OutputError: if the folder cannot be written.
        ConfigError: if the list is missing, or the file is not a list.
        NddupError: if the list is damaged.

    Cost: some fifteen queries, each a join or a count of the pairs and of the list; data that does not fit in memory
    goes to disk.
    """
    comparison = _Comparison(opened, options, steps or Steps("evaluate", STEPS, is_quiet=True))
    try:
        evaluation = comparison.compare(truth)
    finally:
        opened.run.forget()
    opened.folder.write_text("evaluation.json", json.dumps(evaluation, indent=2, ensure_ascii=False) + "\n")
    return evaluation


class _Comparison:
    """One comparison as a sequence of queries. The answers that are used again are materialised."""

    def __init__(self, opened: Opened, options: Options, steps: Steps) -> None:
        self._opened, self._run, self._options, self._steps = opened, opened.run, options, steps
        config = read_stored(opened.run.metrics.settings, origin=f"{opened.run.path}/metrics.json")
        self._unique = UniquePairs(opened.run, opened.folder, config, options.written)

    def compare(self, truth: str) -> dict[str, Any]:
        """Return everything that `nddup.evaluating.evaluate.EVALUATION` describes."""
        self._steps.begin("read the list")
        self._run.materialise("docs", questions.DOCS)
        file = open_reference(self._opened.files, truth, self._options, self._are_documents)
        layout = file.layout
        self._run.see("lines", self._opened.read_list(file))
        self._run.materialise("entries", "SELECT * FROM lines")
        entries = self._count_entries(is_groups=layout.kind == "groups")
        unknown = self._name_unknown(entries, is_groups=layout.kind == "groups", truth=truth)

        self._steps.begin("count the pairs of the run")
        self._run.materialise("edges", questions.EDGES)
        self._run.materialise("unlisted", questions.UNLISTED)
        of_run = self._count_found()

        is_counted = layout.kind == "groups" and entries.possible > self._options.listed
        self._steps.begin("compare the pairs")
        compared = self._compare_groups(of_run) if is_counted else self._compare_pairs(layout, of_run)

        listed = {
            **_describe(layout),
            **entries.counts,
            "unknown": unknown,
            **compared.pop("list"),
            "counted": is_counted,
        }
        if layout.kind == "groups":
            listed["repeated"] = None
        return {"format": FORMAT, "versions": versions(), "path": drop_login(truth), "list": listed, **compared}

    def _are_documents(self, ids: Sequence[str]) -> bool:
        wanted = pa.table({"id": pa.array(list(ids), pa.string())})
        return bool(_only(self._run.sql(questions.DOCUMENTS_AMONG, wanted=wanted))["n"] == len(ids))

    def _count_found(self) -> _Found:
        bands = self._by_band("resemblance", 1 / questions.STEP, "edges WHERE pairs > 0", "CAST(sum(pairs) AS BIGINT)")
        return _Found(_only(self._run.sql(questions.FOUND))["found"], self._count_together(questions.TOGETHER), bands)

    def _count_entries(self, *, is_groups: bool) -> _Entries:
        lines = self._run.sql(questions.GROUP_LINES if is_groups else questions.PAIR_LINES)
        ids = self._run.sql(questions.known_ids(questions.GROUP_IDS if is_groups else questions.PAIR_IDS))
        counts = _only(lines) | _only(ids)
        possible = counts.pop("possible")
        return _Entries(counts, possible)

    def _name_unknown(self, entries: _Entries, *, is_groups: bool, truth: str) -> list[str]:
        """Return the first ids that are no documents; refuse a list of nothing else, or any where all must be known."""
        number = entries.counts["unknown_ids"]
        if not number:
            return []
        ids = questions.GROUP_IDS if is_groups else questions.PAIR_IDS
        unknown: list[str] = self._run.sql(questions.unknown_ids(ids, MOST_NAMED))["doc_id"].to_pylist()
        require_known(f"--truth {truth}", unknown, number, entries.counts["ids"], all_known=self._options.all_known)
        return unknown

    def _compare_pairs(self, layout: Layout, of_run: _Found) -> dict[str, Any]:
        self._run.materialise(
            "reference", questions.PAIRS_ONCE if layout.kind == "pairs" else questions.GROUPS_AS_PAIRS
        )
        self._run.materialise("judged", questions.JUDGED)
        row = _only(self._run.sql(questions.COUNTED))
        total, known, common = row["reference"], row["known"], row["found"]

        self._steps.begin("draw the curves")
        bands = self._by_band("resemblance", 1 / questions.STEP, "judged WHERE found", "count(*)")
        curves = {
            "score": self._curve_over_score(row["low"], row["high"], of_run.pairs),
            "resemblance": resemblance_curve(of_run.bands, bands, steps=questions.STEP, reference=total),
        }

        self._steps.begin("write the pairs that only the list has")
        missed = self._unique.write_missed(total - common)
        self._steps.begin("write the pairs that only the run has")
        unasked = self._unique.write_unasked(of_run.pairs - common)
        return {
            "list": {"repeated": row["times"] - total, "unknown_pairs": total - known},
            "pairs": numbers(Agreement(total, of_run.pairs, common), known),
            "clusters": numbers(Agreement(total, of_run.together, row["together"]), known),
            "unlisted": row["unlisted"],
            "curves": curves,
            "lists": {"unique_to_reference": missed, "unique_to_run": unasked},
        }

    def _compare_groups(self, of_run: _Found) -> dict[str, Any]:
        """Compute the numbers of `_compare_pairs` for a list of groups with too many pairs to list."""
        total, known = self._count_together(questions.GROUPED), self._count_together(questions.GROUPED_KNOWN)
        counts = _only(self._run.sql(questions.COMMON))
        common = counts["common"]
        together = self._count_together(questions.GROUPED_TOGETHER)
        return {
            "list": {"unknown_pairs": total - known},
            "pairs": numbers(Agreement(total, of_run.pairs, common), known),
            "clusters": numbers(Agreement(total, of_run.together, together), known),
            "unlisted": self._count_together(questions.GROUPED_UNLISTED) - counts["removed"],
            "curves": {"score": [], "resemblance": []},
            "lists": {
                "unique_to_reference": {"file": None, "rows": 0, "of": total - common},
                "unique_to_run": {"file": None, "rows": 0, "of": of_run.pairs - common},
            },
        }

    def _count_together(self, memberships: str) -> int:
        """Count the pairs of items in a common set. Memory: some 60 bytes for each set of each kind of items."""
        return count_together(self._run, memberships)

    def _by_band(self, value: str, width: float, rows: str, *counts: str) -> list[Band]:
        """Return counts by band of a value, highest band first; rows without a value come last, under None."""
        named = ", ".join(f"{count} AS c{i}" for i, count in enumerate(counts))
        band_rows = self._run.sql(questions.by_band(value, width, named, rows)).to_pylist()
        kept = [(row["band"], [int(row[f"c{i}"] or 0) for i in range(len(counts))]) for row in band_rows]
        return sorted(kept, key=lambda entry: (entry[0] is None, -(entry[0] or 0)))

    def _curve_over_score(self, low: float | None, high: float | None, n_pairs: int) -> list[dict[str, Any]]:
        if low is None or high is None:
            return []
        width = nice_step((high - low) / POINTS)
        counts = ("count(*)", "count(CASE WHEN found THEN 1 END)", "count(CASE WHEN together THEN 1 END)")
        return score_curve(self._by_band("score", width, "judged WHERE score IS NOT NULL", *counts), width, n_pairs)


def count_together(run: FinishedRun, memberships: str) -> int:
    """Count the pairs of items that lie in a common set, each pair once.

    Args:
        run: the run that answers the query.
        memberships: a SELECT of (name of a set, item), each once.
    """
    kinds = run.sql(questions.kinds(memberships)).combine_chunks()
    sets = pa.concat_arrays(kinds["sets"].chunks) if len(kinds) else pa.array([], pa.list_(pa.string()))
    offsets = np.concatenate([[0], np.cumsum(pc.list_value_length(sets).to_numpy(zero_copy_only=False))])
    members = sets.flatten().dictionary_encode().indices.to_numpy()
    weights = kinds["n"].to_numpy().astype(np.int64)
    return count_pairs_of_kinds(offsets.astype(np.int64), members.astype(np.int64), weights)


def _describe(layout: Layout) -> dict[str, Any]:
    return {"kind": layout.kind, "delimiter": layout.delimiter, "header": list(layout.header),
            "score": layout.score_name}  # fmt: skip


def _only(answer: pa.Table) -> dict[str, Any]:
    (row,) = answer.to_pylist()
    return dict(row)
