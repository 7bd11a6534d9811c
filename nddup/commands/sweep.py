"""`nddup sweep`: run one collection under every combination of some settings."""

import argparse
import os
from pathlib import Path
from typing import Any

from nddup.commands.options import add_inputs, add_master, add_parser
from nddup.errors import ConfigError
from nddup.progress import Steps
from nddup.shown import print_out

EPILOG = """a grid is a YAML file with a list for each setting; every combination is a run:
  shingle.length: [3, 5, 10]
  sketch.size: [100, 200]
  pairs.threshold: [0.7, 0.8, 0.9]

combinations that differ only in later steps share the earlier ones: a collection is read and
sketched once for all thresholds. Runs that are not kept store no texts and make no report.

files written to DIR:
  sweep.csv      one row a combination: pairs, clusters, kept, seconds; with --truth also precision, recall, F1;
                 `reused` names the stages taken from an earlier combination; `seconds` does not include their time
  sweep.md       the same rows as a Markdown table
  sweep.json     the same, and the metrics of each run
  sweep.svg      if matplotlib is installed: a panel for each measure over one setting, a line for each combination of
  sweep.png      the others, with its name beside it

example:
  nddup sweep samples/debdocs --grid grid.yaml --output out/sweep --truth samples/debdocs/truth_w5_j070.tsv
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "sweep", summary="run one collection under many settings", epilog=EPILOG,
        description="Run every combination of some settings and compare the results in a table.",
    )  # fmt: skip
    parser.add_argument("--grid", required=True, metavar="FILE", help="YAML file of lines `section.key: [value, …]`")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for the results; must not exist")
    parser.add_argument(
        "--resume", action="store_true", help="finish the sweep in DIR; rows that it has are not made again"
    )
    parser.add_argument("--truth", metavar="FILE", help="compare each run with this list of known duplicates")
    parser.add_argument(
        "--x",
        metavar="KEY",
        help="setting of the horizontal axis in the figures; by default the first of the grid that varies and is a"
        " number",
    )
    parser.add_argument("--keep-runs", action="store_true", help="keep the run folders in DIR/runs")
    add_inputs(parser)
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Run the combinations, print the table, and plot it if the output is on this machine."""
    with Steps("sweep", 2) as steps:
        from nddup.settings.load import load_config  # noqa: PLC0415

        # Runs that are not kept need no texts and no report.
        unseen = [] if options.keep_runs else ["output.texts=0", "output.report=false"]
        base = load_config(options.config, [*options.assignments, *unseen], os.environ)
        from nddup.start_up import prevent_pandas_import  # noqa: PLC0415

        prevent_pandas_import()
        from nddup.explaining.curves import axis_of, draw_sweep  # noqa: PLC0415
        from nddup.progress import start_logging  # noqa: PLC0415
        from nddup.results.sweep import Engines, read_grid, read_text, run_sweep, spell_table  # noqa: PLC0415

        points = read_grid(read_text(options.grid), origin=options.grid, base=base)
        made = [point.settings for point in points if point.config is not None]
        if options.x is not None:  # refused before the first run, not after the last
            axis_of(made, options.x)
        start_logging()
        steps.begin("open the folders")
        engines = Engines(options.inputs, options.output, base, master=options.master, truth=options.truth)
    run_sweep(engines, points, keeps_runs=options.keep_runs, resume=options.resume)
    print_out("\n".join([*spell_table(points), f"\n  {options.output}/sweep.csv", ""]))
    if Path(options.output).is_dir():
        try:
            done = [(point.settings, point.results) for point in points if point.config is not None]
            draw_sweep(done, axis_of(made, options.x), options.output)
        except ConfigError as error:
            print_out(f"no figure: {error}\n")
    return 0
