"""A stage of a run, on either engine: shown while it runs, measured, and kept with its counts."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from nddup.metrics import StageMetrics
from nddup.redaction import hide_settings
from nddup.run.progress import Progress
from nddup.settings.schema import Config

M = TypeVar("M", bound=StageMetrics)


class Stage(Generic[M]):
    """A running stage. Its caller reports its counts with `done`; its time and shuffled bytes are added at its end."""

    def __init__(self, metrics: M) -> None:
        self.metrics = metrics
        self.notes: list[str] = []

    def done(self, metrics: M, *notes: str) -> None:
        """Record the counts of the stage; `notes` are shown to the user."""
        self.metrics = metrics
        self.notes += notes


@contextmanager
def measured(
    progress: Progress,
    name: str,
    counts: type[M],
    *,
    resumed: dict[str, None],
    shuffled: Callable[[], int] = lambda: 0,
) -> Iterator[Stage[M]]:
    """Run a stage: show it, and add its time, shuffled bytes and reused tables to its counts.

    Args:
        progress: where it is shown.
        name: of the stage.
        counts: the class of its counts.
        resumed: the tables taken from an earlier attempt; the stage adds its own.
        shuffled: returns the bytes written to shuffles so far.
    """
    stage, started, before, known = Stage(counts()), time.monotonic(), shuffled(), len(resumed)
    with progress.stage(name) as shown:
        yield stage

        reused = list(resumed)[known:]
        took = {
            "seconds": round(time.monotonic() - started, 3),
            "shuffle_bytes": max(0, shuffled() - before),
            "resumed": reused,
        }
        stage.metrics = stage.metrics.model_copy(update=took)
        shown.notes += stage.notes
        if reused:
            shown.notes.append(f"reused: {', '.join(reused)}")
        shown.facts = stage.metrics.model_dump(include=set(StageMetrics.model_fields))


def settings_of(config: Config) -> dict[str, Any]:
    """Return the settings that decide what a run finds, as plain values, without secrets and without the engine."""
    return hide_settings(config.model_dump(exclude={"engine", "local", "against"}))
