"""`nddup evaluate`, `truth` and `sweep`: runs compared with known duplicates, and with each other.

evaluate   a run against a list of known duplicates
truth      such a list, made by edit similarity
sweep      one collection under every combination of some settings
"""

import argparse
import os
from pathlib import Path
from typing import Any

from nddup.commands.options import (
    add_all_known,
    add_finished_run,
    add_inputs,
    add_json,
    add_master,
    add_parser,
    natural,
    positive,
)
from nddup.errors import ConfigError
from nddup.ground.progress import Steps
from nddup.ground.shown import drop_login, print_json, print_out
from nddup.ground.start_up import prevent_pandas_import

EVALUATE_EPILOG = """formats of FILE, detected from its first lines (UTF-8; plain or compressed):
  pairs         id_a,id_b[,score[,...]], separated by tabs, semicolons, commas
                or blanks; header optional
  groups        id id id ..., one group a line
  JSON lines    {"id_a": 1, "id_b": 2, "score": 0.9}, or ["a", "b", "c"], or
                {"members": ["a", "b"]}

files written to RUN:
  evaluation.json                                all numbers
  evaluation/unique_to_reference.csv
        pairs found only in the list: score, estimated resemblance, urls
  evaluation/unique_to_run.csv                   pairs found only in the run

examples:
  nddup evaluate out/demo --truth samples/debdocs_truth_w5_j070.tsv
  nddup evaluate out/run --truth groups.txt --as groups --delimiter blank
  nddup evaluate out/run --truth pairs.csv --header yes --score similarity
  nddup evaluate out/run --labels labels.csv
  nddup evaluate out/run --judged judgements.csv
"""

TRUTH_EPILOG = """\
the similarity of two texts is 1 - d/n: d characters are inserted, deleted or
replaced, and the longer text has n characters. The texts are read from the
inputs of the run, which must not have changed. Only pairs whose sketches have
a resemblance of at least --candidates are compared. To measure what this
misses, a sample of the documents is also compared with all others.

example:
  nddup truth out/run --similarity 0.85 --output truth.csv
  nddup evaluate out/run --truth truth.csv
"""

SWEEP_EPILOG = """a grid is a YAML file with a list for each setting; every combination is a run:
  shingle.length: [3, 5, 10]
  sketch.size: [100, 200]
  pairs.threshold: [0.7, 0.8, 0.9]

combinations that differ only in later steps share the earlier ones: a
collection is read and sketched once for all thresholds. Runs that are not kept
store no texts and make no report.

files written to DIR:
  sweep.csv      one row a combination: pairs, clusters, kept, seconds; with
                 --truth also precision, recall, F1; `reused` names the stages
                 taken from an earlier combination; `seconds` does not include
                 their time
  sweep.md       the same rows as a Markdown table
  sweep.json     the same, and the metrics of each run
  sweep.svg      if matplotlib is installed: a panel for each measure over one
  sweep.png      setting, a line for each combination of the others

example:
  nddup sweep samples/debdocs --grid grid.yaml --output out/sweep \\
      --truth samples/debdocs_truth_w5_j070.tsv
"""


def add_evaluate(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(commands, "evaluate", summary="compare a run with a list of known duplicates",
                        epilog=EVALUATE_EPILOG,
                        description="Compare a finished run with a reference list: five counts, precision, recall, F1,"
                        " and the pairs found on one side only.")  # fmt: skip
    add_finished_run(parser)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--truth", metavar="FILE", help="the reference list; any path Hadoop can open")
    given.add_argument("--labels", metavar="FILE",
                       help="pairs that a person judged instead: id, id, label (yes or no, 1 or 0) a line. Prints"
                       " precision and recall at the run's own threshold and above, and writes"
                       " RUN/evaluation/labels.json")  # fmt: skip
    given.add_argument("--judged", metavar="FILE",
                       help="judgements of removals instead, as the report saves them or `show --risky --csv` prints"
                       " them: how often the kept document is worse or no duplicate, with intervals; writes"
                       " RUN/evaluation/judged.json")  # fmt: skip
    add_all_known(parser, "FILE")
    parser.add_argument("--as", dest="kind", choices=("pairs", "groups"), help="what a line holds (default: detected)")
    parser.add_argument("--delimiter", choices=("tab", "semicolon", "comma", "blank"),
                        help="what separates the fields (default: detected)")  # fmt: skip
    parser.add_argument("--header", choices=("yes", "no"), help="whether line 1 names the columns (default: detected)")
    parser.add_argument("--score", metavar="COLUMN",
                        help="name or number of the score column, or none (default: the third)")  # fmt: skip
    parser.add_argument("--rows", type=positive, metavar="N",
                        help="most rows of each list of unmatched pairs (default 1,000,000)")  # fmt: skip
    add_json(parser)
    add_master(parser)


def execute_evaluate(options: argparse.Namespace) -> int:
    """Compare, and print the numbers as a table."""
    with Steps("evaluate", 7) as steps:
        prevent_pandas_import()
        from nddup.evaluating.evaluate import (  # noqa: PLC0415
            WRITTEN,
            Options,
            describe,
            evaluate_run,
        )
        from nddup.results.opening import open_run  # noqa: PLC0415

        reading = Options(
            kind=options.kind,
            delimiter=options.delimiter,
            header=None if options.header is None else options.header == "yes",
            score=options.score,
            written=options.rows or WRITTEN,
            all_known=options.all_known,
        )
        steps.begin("open the run")
        given = options.truth or options.labels or options.judged
        opened = open_run(options.run, master=options.master, beside=(given,))
        if options.judged:
            from nddup.evaluating.judged import describe_judged, evaluate_judged  # noqa: PLC0415 - it reads

            steps.begin("count the judgements")
            judged = evaluate_judged(opened, options.judged)
            _print(judged, describe_judged(judged), is_json=options.json)
            return 0
        if options.labels:
            from nddup.evaluating.judged import describe_labels, evaluate_labels  # noqa: PLC0415 - likewise

            steps.begin("compare with the labels")
            labelled = evaluate_labels(opened, options.labels, all_known=options.all_known)
            _print(labelled, describe_labels(labelled), is_json=options.json)
            return 0
        evaluation = evaluate_run(opened, options.truth, reading, steps=steps)
    _print(evaluation, describe(evaluation, options.run), is_json=options.json)
    return 0


def _print(values: dict[str, Any], text: str, *, is_json: bool) -> None:
    if is_json:
        print_json(values)
    else:
        print_out(text)


def add_truth(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "truth", summary="make a reference list by edit similarity", epilog=TRUTH_EPILOG,
        description="List the pairs of a run's documents whose texts have a small edit distance.",
    )  # fmt: skip
    add_finished_run(parser)
    parser.add_argument("--similarity", type=float, default=0.85, metavar="S",
                        help="least similarity, in (0, 1] (default 0.85)")  # fmt: skip
    parser.add_argument("-o", "--output", required=True, metavar="FILE",
                        help="write the pairs as CSV to FILE, which must not exist")  # fmt: skip
    parser.add_argument("--candidates", type=float, default=0.4, metavar="R",
                        help="least resemblance of two sketches for their texts to be compared; lower finds more and"
                        " takes longer (default 0.4)")  # fmt: skip
    parser.add_argument("--sample", type=natural, default=50, metavar="N",
                        help="documents compared with all others to measure what is missed (default 50;"
                        " 0: none)")  # fmt: skip


def execute_truth(options: argparse.Namespace) -> int:
    """Make the list, and print a summary of it."""
    with Steps("truth", 6) as steps:
        prevent_pandas_import()
        from nddup.evaluating.truth import Asked, make_truth  # noqa: PLC0415

        asked = Asked(options.similarity, options.candidates, options.sample)
        made = make_truth(options.run, asked, options.output, steps)
    print_out("".join(f"  {line}\n" for line in [*made.lines(), f"list in {drop_login(options.output)}"]))
    return 0


def add_sweep(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "sweep", summary="run one collection under many settings", epilog=SWEEP_EPILOG,
        description="Run every combination of some settings and compare the results in a table.",
    )  # fmt: skip
    parser.add_argument("--grid", required=True, metavar="FILE", help="YAML file of lines `section.key: [value, …]`")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for the results; must not exist")
    parser.add_argument("--resume", action="store_true",
                        help="finish the sweep in DIR; rows that it has are not made again")  # fmt: skip
    parser.add_argument("--truth", metavar="FILE", help="compare each run with this list of known duplicates")
    parser.add_argument("--x", metavar="KEY",
                        help="setting of the horizontal axis in the figures; by default the first of the grid that"
                        " varies and is a number")  # fmt: skip
    parser.add_argument("--keep-runs", action="store_true", help="keep the run folders in DIR/runs")
    add_inputs(parser)
    add_master(parser)


def execute_sweep(options: argparse.Namespace) -> int:
    """Run the combinations, print the table, and plot it if the output is on this machine."""
    with Steps("sweep", 2) as steps:
        from nddup.settings.load import load_config  # noqa: PLC0415

        # Runs that are not kept need no texts and no report.
        unseen = [] if options.keep_runs else ["output.texts=0", "output.report=false"]
        base = load_config(options.config, [*options.assignments, *unseen], os.environ)
        prevent_pandas_import()
        from nddup.evaluating.sweep import Engines, read_grid, read_text, run_sweep, spell_table  # noqa: PLC0415
        from nddup.explaining.curves import axis_of, draw_sweep  # noqa: PLC0415
        from nddup.ground.progress import start_logging  # noqa: PLC0415

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
