"""`nddup truth`: make a reference list by edit similarity."""

import argparse
import sys
from typing import Any

from nddup.commands.options import add_finished_run, add_master, add_parser

EPILOG = """the similarity of two texts is 1 - d/n: d characters inserted, deleted or replaced, n of the longer text.
Texts are read again from the inputs of the run, which must not have changed. Pairs are compared whose sketches have
a resemblance of at least --candidates; a sample of documents is compared with all, and what was missed is said.

example:
  nddup truth out/run --similarity 0.85 --output truth.csv
  nddup evaluate out/run --truth truth.csv
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Its arguments."""
    parser = add_parser(
        commands, "truth", summary="make a reference list by edit similarity", epilog=EPILOG,
        description="List the pairs of a run's documents whose texts are alike by edit distance.",
    )  # fmt: skip
    add_finished_run(parser)
    parser.add_argument("--similarity", type=float, default=0.85, metavar="S", help="in (0, 1]; default 0.85")
    parser.add_argument("--output", required=True, metavar="FILE", help="CSV of the pairs; must not exist")
    parser.add_argument(
        "--candidates", type=float, default=0.4, metavar="R",
        help="least resemblance of the sketches that are compared; lower: more, slower (default 0.4)",
    )  # fmt: skip
    parser.add_argument(
        "--sample", type=int, default=50, metavar="N",
        help="documents compared with all others, to say what is missed (default 50)",
    )  # fmt: skip
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Make the list, and say what it holds."""
    from nddup.redaction import drop_login  # noqa: PLC0415
    from nddup.results.truth import make_truth  # noqa: PLC0415
    from nddup.run.session import start_session  # noqa: PLC0415

    spark = start_session(master=options.master, settings={})
    made = make_truth(spark, options.run, options.output, similarity=options.similarity, least=options.candidates,
                      sampled=max(0, options.sample))  # fmt: skip
    sys.stdout.write("".join(f"  {line}\n" for line in [*made.lines(), f"list in {drop_login(options.output)}"]))
    return 0
