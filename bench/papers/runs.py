"""Runs of the experiments, on the embedded engine: single runs, and the combinations of a grid."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import yaml

from bench.papers.cells import Values
from nddup.cli import main
from nddup.embedded.run import run_locally
from nddup.evaluating.evaluate import evaluate_run
from nddup.evaluating.sweep import Engines, Point, read_grid, run_sweep
from nddup.ground.metrics import RunMetrics
from nddup.results.opening import open_here
from nddup.settings.load import load_config

UNSEEN = ("output.texts=0", "output.report=false")
"""Settings that leave out what nobody looks at in these runs."""


def make_run(
    folder: Path, inputs: Sequence[str], profile: str | None, *settings: str, reuse: bool = False
) -> RunMetrics:
    """Make a run, from nothing or, with `reuse`, from tables of an earlier run in the folder that would be the same."""
    config = load_config(profile, [*UNSEEN, *settings])
    overwrite = folder.exists() and not reuse
    return RunMetrics.read(run_locally(list(inputs), str(folder), config, overwrite=overwrite, resume=reuse))


def compare(folder: Path, truth: Path) -> Values:
    """Compare a finished run with a list: the numbers of its pairs, and of the pairs that share a cluster."""
    evaluation = evaluate_run(open_here(str(folder)), str(truth))
    return {"pairs": evaluation["pairs"], "clusters": evaluation["clusters"]}


def sweep(
    folder: Path, inputs: Sequence[str], profile: str | None, grid: Mapping[str, Sequence[Any]], truth: Path | None
) -> list[Point]:
    """Run the combinations of a grid, compared with a list if given; their shared steps are made once."""
    shutil.rmtree(folder, ignore_errors=True)
    base = load_config(profile, list(UNSEEN))
    listed = {key: list(values) for key, values in grid.items()}
    points = read_grid(yaml.safe_dump(listed, sort_keys=False), origin="grid", base=base)
    engines = Engines(list(inputs), str(folder), base, master=None, truth=str(truth) if truth else None)
    run_sweep(engines, points)
    return points


def values_of(point: Point) -> Values:
    """Return a row of a table: the varied settings, the results, and the seconds of sketches, pairs and clusters."""
    assert point.metrics is not None, point.refused  # noqa: S101 - the grids of the experiments are all allowed
    stages = point.metrics.stages
    seconds = {"sketch_s": stages.sketch.seconds, "pairs_s": stages.pairs.seconds, "mine_s": stages.clusters.seconds}
    covered = stages.clusters.covered_components
    return {**point.settings, **point.results, **seconds, "covered_components": covered}


def nddup(*arguments: str) -> str:
    """Run a command in this process; return what it printed.

    Raises:
        RuntimeError: if it fails.
    """
    printed = StringIO()
    with redirect_stdout(printed):
        status = main(list(arguments))
    if status:
        raise RuntimeError(f"nddup {' '.join(arguments)}: exit status {status}")
    return printed.getvalue()
