"""Write the pairs of the reference list only, and of the run only, as CSV into the run's folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nddup.opened.finished_run import FinishedRun
from nddup.results import list_questions as questions
from nddup.settings.derive import kind_of
from nddup.settings.schema import Config
from nddup.shown import csv_line
from nddup.storage.run_folder import RunFolder
from nddup.verifying.definitions import Sample
from nddup.verifying.estimates import estimate_pairs

ESTIMATED = "doc_a string, doc_b string, score double, together boolean, why string, url_a string, url_b string, estimate double"  # noqa: E501
"""The columns that `estimate_pairs` makes from MISSED_SKETCHES."""


@dataclass(frozen=True)
class UniquePairs:
    """A writer of both lists of one comparison.

    Attributes:
        run: the run, with the answers that the comparison keeps.
        folder: folder of the run.
        config: settings of the run.
        most: most rows of each list.
    """

    run: FinishedRun
    folder: RunFolder
    config: Config
    most: int

    def write_missed(self, of: int) -> dict[str, Any]:
        """Write `evaluation/unique_to_reference.csv`: pairs of the list that the run lacks, highest score first.

        Args:
            of: total number of such pairs.

        Returns:
            The entry of `lists` in `evaluation.json`: file, rows written, total of pairs.
        """
        sketch = self.config.sketch
        kind = kind_of(sketch)
        sample = Sample(kind.sample(sketch.size), kind.by_slots)
        estimate = partial(estimate_pairs, sample=sample, levelled=sketch.size if kind.estimate == "levels" else 0)

        self.run.keep("missed", questions.missed(self.most))
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
        """Write one CSV file in UTF-8, row by row."""
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
