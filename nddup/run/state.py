"""The state of a run: its session and settings, the tables made so far, and the one way to make another."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from nddup.matching.threshold import Threshold
from nddup.mining.edges import Cost
from nddup.redaction import hide_settings
from nddup.run import memory
from nddup.run.collection import Collection
from nddup.run.measuring import Metrics
from nddup.run.progress import Progress
from nddup.settings import derive
from nddup.settings.schema import Config
from nddup.sketching.kinds import Kind
from nddup.spark import schemas
from nddup.spark.reading import sketch_scan
from nddup.storage.session_tables import Store
from nddup.tables import table_called

Making = Callable[[], Iterator[DataFrame]]
"""Makes a table with actions of its own; see `Job.save`."""


@dataclass
class Job:
    """What the stages of one run share."""

    spark: SparkSession
    config: Config
    store: Store
    progress: Progress
    metrics: Metrics
    tables: dict[str, DataFrame] = field(default_factory=dict)
    collection: Collection | None = None
    """The files as they were read at last: what numbers their records."""

    left_out: bytes = b""
    """Ids of shingles that are too common, ascending uint64."""

    lexicon: bytes = b""
    """Ids of the terms of the lexicon, ascending uint64."""

    @property
    def threshold(self) -> Threshold:
        """The threshold of the run, exact."""
        return derive.threshold_of(self.config)

    @property
    def kind(self) -> Kind:
        """What the sketches are."""
        return derive.kind_of(self.config.sketch)

    @property
    def levels(self) -> int:
        """s, where the modulus of a sketch follows the document's length; else 0."""
        return self.config.sketch.size if self.kind.estimate == "levels" else 0

    @property
    def rule(self) -> sketch_scan.Rule:
        """How records become sketches."""
        config = self.config
        return sketch_scan.Rule(
            derive.recipe_of(config),
            config.input.markup,
            config.input.charset,
            config.input.min_tokens,
            int(config.input.max_record),
            config.input.text,
            self.left_out,
            self.lexicon,
        )

    @property
    def task_memory(self) -> int:
        """Bytes that the Python worker of one task may take."""
        return memory.task_memory(dict(self.spark.sparkContext.getConf().getAll()))

    def most_edges(self, cost: Cost) -> int:
        """The edges between distinct sketches that one task takes."""
        return cost.most_edges(self.task_memory, self.metrics.counts["distinct_sketches"])

    def save(
        self, name: str, table: DataFrame | Making, *sections: str, reads: Sequence[str] = (), **counts: Column
    ) -> DataFrame:
        """Make a table once, under the settings of these sections; its rows and `counts` are taken in passing.

        What an earlier attempt at the run left whole is taken as it is, with all that was counted then.

        Args:
            name: of the table.
            table: lazy; or, where making it takes actions, a function whose tables are written one in place of the
                other, until there are no more. It is not called where nothing is to be made.
            sections: of the settings, all that reach the table beside what it reads.
            reads: the tables it is made of.
            counts: aggregates of its rows, for the metrics.
        """
        schema = schemas.schema_of(table_called(name))
        made_of: dict[str, Any] = {"settings": self._settings(sections), "reads": reads}
        kept = self.store.find(name, schema, **made_of)
        if kept is not None:
            self.metrics.restore(kept.counted)
            self.metrics.resumed.append(name)
            self.tables[name] = kept.table
            return kept.table
        before = self.metrics.snapshot()
        columns = [count.alias(key) for key, count in {"rows": F.count(F.lit(1)), **counts}.items()]
        for made in [table] if isinstance(table, DataFrame) else table():
            self.progress.describe(name)
            seen = Observation(name)
            self.tables[name] = self.store.write(name, made.observe(seen, *columns), schema)
            found = {key: int(value or 0) for key, value in seen.get.items()}
            self.metrics.rows[name] = found.pop("rows", 0)
            self.metrics.counts.update(dict.fromkeys(counts, 0) | found)
        self.store.seal(name, **made_of, counted=self.metrics.since(before))
        return self.tables[name]

    def _settings(self, sections: Sequence[str]) -> dict[str, Any]:
        """The settings that decide what is in a table."""
        chosen = hide_settings({section: getattr(self.config, section).model_dump() for section in sections})
        for limit in ("max_rejects", "max_unreadable"):  # they say when to stop, not what comes out
            chosen.get("input", {}).pop(limit, None)
        return chosen


def settings_of(config: Config) -> dict[str, Any]:
    """The settings of a run as plain values, without secrets."""
    return hide_settings(config.model_dump())
