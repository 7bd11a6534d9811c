"""`nddup evaluate RUN --truth FILE`: a finished run against a list of duplicates, in the numbers of the papers.

What it leaves in the run's folder:

    evaluation.json                         every number, see `nddup.results.evaluation`
    evaluation/unique_to_reference.csv      pairs of the list that the run has not, with urls and estimated resemblance
    evaluation/unique_to_run.csv            pairs of the run that the list has not

Both lists are sets of pairs of different documents; the order within a pair does not matter. A star stands for all
pairs of its groups of equal sketches. Pairs with an id that is no document of the run are part of the reference: they
count as not found, and their number is stated, with the recall without them.

The pairs of groups are listed one by one while there are at most `LISTED`. More of them are counted exactly without
being listed; then there is no list of those unique to the reference.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nddup.opened.finished_run import FinishedRun
from nddup.reading.reference_lists.layouts import Layout
from nddup.redaction import drop_login
from nddup.results import list_questions as questions
from nddup.results.evaluation import FORMAT, Band, nice_step, numbers, resemblance_curve, score_curve
from nddup.results.opening import Opened
from nddup.results.reference_file import Reading, open_reference
from nddup.results.unique_pairs import UniquePairs
from nddup.settings.schema import Config
from nddup.steps import Steps
from nddup.storage.versions import versions
from nddup.verifying.pair_counts import Agreement, count_pairs_of_kinds

LISTED = 20_000_000
"""Pairs of groups that are listed one by one; more are counted without."""

WRITTEN = 1_000_000
"""Rows of each list of unique pairs."""

POINTS = 50
"""Points of the curve over the score, at most about twice as many."""

STEPS = 6
"""Of a comparison."""


@dataclass(frozen=True)
class Options(Reading):
    """How the list is read, and how much of the lists is made.

    Attributes:
        written: rows of each list of unique pairs.
        listed: pairs of groups that are listed one by one.
    """

    written: int = WRITTEN
    listed: int = LISTED


DEFAULTS = Options()


class _Found(NamedTuple):
    """What the run has: pairs of documents, pairs in a common cluster, pairs by band of their resemblance."""

    pairs: int
    together: int
    bands: list[Band]


class _Entries(NamedTuple):
    """What was counted of the lines of the list: as `evaluation.json` says it; pairs that groups would give."""

    counts: dict[str, int]
    possible: int


def evaluate_run(
    opened: Opened, truth: str, options: Options = DEFAULTS, *, steps: Steps | None = None
) -> dict[str, Any]:
    """Compare a finished run with a reference list; leave `evaluation.json` and the lists of unique pairs in the run.

    Args:
        opened: the run.
        truth: the list's file, plain or compressed.
        options: how to read it.
        steps: is told what is done.

    Returns:
        What `evaluation.json` holds.

    Raises:
        OutputError: if the folder cannot be written.
        ConfigError: if the list is not there, or is none.
        NddupError: if the list is damaged.

    Cost: some fifteen questions, each a join or a count of the pairs and of the list; what does not fit the memory is
    on the disk.
    """
    comparison = _Comparison(opened, options, steps or Steps("evaluate", STEPS, is_quiet=True))
    try:
        evaluation = comparison.compare(truth)
    finally:
        opened.run.forget()
    opened.folder.write_text("evaluation.json", json.dumps(evaluation, indent=2, ensure_ascii=False) + "\n")
    return evaluation


class _Comparison:
    """One comparison: its questions, one after another. Answers that are used again are kept by the run."""

    def __init__(self, opened: Opened, options: Options, steps: Steps) -> None:
        self._opened, self._run, self._options, self._steps = opened, opened.run, options, steps
        config = Config.model_validate(opened.run.metrics.settings)
        self._unique = UniquePairs(opened.run, opened.folder, config, options.written)

    def compare(self, truth: str) -> dict[str, Any]:
        """Everything `nddup.results.evaluation.EVALUATION` names."""
        self._steps.begin("read the list")
        self._run.keep("docs", questions.DOCS)
        file = open_reference(self._opened.files, truth, self._options, self._are_documents)
        layout = file.layout
        self._run.see("lines", self._opened.read_list(file))
        self._run.keep("entries", "SELECT * FROM lines")
        entries = self._count_entries(is_groups=layout.kind == "groups")

        self._steps.begin("count the pairs of the run")
        self._run.keep("edges", questions.EDGES)
        self._run.keep("unlisted", questions.UNLISTED)
        found = self._count_found()

        is_counted = layout.kind == "groups" and entries.possible > self._options.listed
        self._steps.begin("compare the pairs")
        compared = self._compare_groups(found) if is_counted else self._compare_pairs(layout, found)

        said = {**_describe(layout), **entries.counts, **compared.pop("list"), "counted": is_counted}
        if layout.kind == "groups":
            said["repeated"] = None
        return {"format": FORMAT, "versions": versions(), "path": drop_login(truth), "list": said, **compared}

    def _are_documents(self, ids: Sequence[str]) -> bool:
        wanted = pa.table({"id": pa.array(list(ids), pa.string())})
        return bool(_only(self._run.sql(questions.DOCUMENTS_AMONG, wanted=wanted))["n"] == len(ids))

    def _count_found(self) -> _Found:
        bands = self._by_band("resemblance", 1 / questions.STEP, "edges WHERE pairs > 0", "CAST(sum(pairs) AS BIGINT)")
        return _Found(_only(self._run.sql(questions.FOUND))["found"], self._count_together(questions.TOGETHER), bands)

    def _count_entries(self, *, is_groups: bool) -> _Entries:
        """Count lines, and the different ids in them by what the run knows of them."""
        lines = self._run.sql(questions.GROUP_LINES if is_groups else questions.PAIR_LINES)
        ids = self._run.sql(questions.known_ids(questions.GROUP_IDS if is_groups else questions.PAIR_IDS))
        counts = _only(lines) | _only(ids)
        possible = counts.pop("possible")
        return _Entries(counts, possible)

    def _compare_pairs(self, layout: Layout, found: _Found) -> dict[str, Any]:
        """The numbers, curves and lists, from each pair of the list."""
        self._run.keep("reference", questions.PAIRS_ONCE if layout.kind == "pairs" else questions.GROUPS_AS_PAIRS)
        self._run.keep("judged", questions.JUDGED)
        row = _only(self._run.sql(questions.COUNTED))
        total, known, common = row["reference"], row["known"], row["found"]

        self._steps.begin("draw the curves")
        bands = self._by_band("resemblance", 1 / questions.STEP, "judged WHERE found", "count(*)")
        curves = {
            "score": self._curve_over_score(row["low"], row["high"], found.pairs),
            "resemblance": resemblance_curve(found.bands, bands, steps=questions.STEP, reference=total),
        }

        self._steps.begin("write the pairs that only the list has")
        missed = self._unique.write_missed(total - common)
        self._steps.begin("write the pairs that only the run has")
        unasked = self._unique.write_unasked(found.pairs - common)
        return {
            "list": {"repeated": row["times"] - total, "unknown_pairs": total - known},
            "pairs": numbers(Agreement(total, found.pairs, common), known),
            "clusters": numbers(Agreement(total, found.together, row["together"]), known),
            "unlisted": row["unlisted"],
            "curves": curves,
            "lists": {"unique_to_reference": missed, "unique_to_run": unasked},
        }

    def _compare_groups(self, found: _Found) -> dict[str, Any]:
        """The numbers of `_compare_pairs`, where the pairs are too many to be listed."""
        total, known = self._count_together(questions.GROUPED), self._count_together(questions.GROUPED_KNOWN)
        counts = _only(self._run.sql(questions.COMMON))
        common = counts["common"]
        together = self._count_together(questions.GROUPED_TOGETHER)
        return {
            "list": {"unknown_pairs": total - known},
            "pairs": numbers(Agreement(total, found.pairs, common), known),
            "clusters": numbers(Agreement(total, found.together, together), known),
            "unlisted": self._count_together(questions.GROUPED_UNLISTED) - counts["removed"],
            "curves": {"score": [], "resemblance": []},
            "lists": {
                "unique_to_reference": {"file": None, "rows": 0, "of": total - common},
                "unique_to_run": {"file": None, "rows": 0, "of": found.pairs - common},
            },
        }

    def _count_together(self, memberships: str) -> int:
        """Pairs of items in a common set. The kinds of items are in memory: some 60 bytes for each of their sets."""
        return count_together(self._run, memberships)

    def _by_band(self, value: str, width: float, rows: str, *counts: str) -> list[Band]:
        """Counts by band of a value, the highest band first; rows without a value come last, under None."""
        named = ", ".join(f"{count} AS c{i}" for i, count in enumerate(counts))
        found = self._run.sql(questions.by_band(value, width, named, rows)).to_pylist()
        kept = [(row["band"], [int(row[f"c{i}"] or 0) for i in range(len(counts))]) for row in found]
        return sorted(kept, key=lambda entry: (entry[0] is None, -(entry[0] or 0)))

    def _curve_over_score(self, low: float | None, high: float | None, found: int) -> list[dict[str, Any]]:
        """The list cut at some of its scores; empty where it has none."""
        if low is None or high is None:
            return []
        width = nice_step((high - low) / POINTS)
        counts = ("count(*)", "count(CASE WHEN found THEN 1 END)", "count(CASE WHEN together THEN 1 END)")
        return score_curve(self._by_band("score", width, "judged WHERE score IS NOT NULL", *counts), width, found)


def count_together(run: FinishedRun, memberships: str) -> int:
    """Pairs of items that lie in a common set, each once.

    Args:
        run: what is asked.
        memberships: a question for (name of a set, item), each once.
    """
    found = run.sql(questions.kinds(memberships)).combine_chunks()
    sets = pa.concat_arrays(found["sets"].chunks) if len(found) else pa.array([], pa.list_(pa.string()))
    offsets = np.concatenate([[0], np.cumsum(pc.list_value_length(sets).to_numpy(zero_copy_only=False))])
    held = sets.flatten().dictionary_encode().indices.to_numpy()
    weights = found["n"].to_numpy().astype(np.int64)
    return count_pairs_of_kinds(offsets.astype(np.int64), held.astype(np.int64), weights)


def _describe(layout: Layout) -> dict[str, Any]:
    """The layout as `evaluation.json` says it."""
    return {"kind": layout.kind, "delimiter": layout.delimiter, "header": list(layout.header),
            "score": layout.score_name}  # fmt: skip


def _only(answer: pa.Table) -> dict[str, Any]:
    """The one row of an answer."""
    (row,) = answer.to_pylist()
    return dict(row)
