"""`nddup truth`: make a reference list by edit similarity."""

import argparse
from typing import Any

from nddup.commands.options import add_finished_run, add_master, add_parser
from nddup.progress import Steps
from nddup.shown import print_out

EPILOG = """the similarity of two texts is 1 - d/n: d characters are inserted, deleted or replaced, and the longer text
has n characters. The texts are read from the inputs of the run, which must not have changed. Only pairs whose sketches
have a resemblance of at least --candidates are compared. To measure what this misses, a sample of the documents is
also compared with all others.

example:
  nddup truth out/run --similarity 0.85 --output truth.csv
  nddup evaluate out/run --truth truth.csv
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "truth", summary="make a reference list by edit similarity", epilog=EPILOG,
        description="List the pairs of a run's documents whose texts have a small edit distance.",
    )  # fmt: skip
    add_finished_run(parser)
    parser.add_argument(
        "--similarity", type=float, default=0.85, metavar="S", help="least similarity, in (0, 1] (default 0.85)"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="write the pairs as CSV to FILE, which must not exist"
    )
    parser.add_argument(
        "--candidates", type=float, default=0.4, metavar="R",
        help="least resemblance of two sketches for their texts to be compared; lower finds more and takes longer"
        " (default 0.4)",
    )  # fmt: skip
    parser.add_argument(
        "--sample", type=int, default=50, metavar="N",
        help="documents compared with all others to measure what is missed (default 50; 0: none)",
    )  # fmt: skip
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Make the list, and print a summary of it."""
    with Steps("truth", 6) as steps:
        from nddup.start_up import prevent_pandas_import  # noqa: PLC0415

        prevent_pandas_import()
        from nddup.results.truth import Asked, make_truth  # noqa: PLC0415
        from nddup.shown import drop_login  # noqa: PLC0415
        from nddup.stages.inputs_found import paths_of  # noqa: PLC0415

        asked = Asked(options.similarity, options.candidates, max(0, options.sample))
        asked.check()
        steps.begin("open the run")
        maker, folder, files = _maker(options, steps)
        made = make_truth(maker, asked, options.output, files, inputs=paths_of(folder))
    print_out("".join(f"  {line}\n" for line in [*made.lines(), f"list in {drop_login(options.output)}"]))
    return 0


def _maker(options: argparse.Namespace, steps: Steps) -> Any:  # noqa: ANN401 - their types are loaded here
    """Return what finds the pairs, here or on Spark, the folder of the run, and the file system of the output."""
    from functools import partial  # noqa: PLC0415

    from nddup.results.opening import is_read_here  # noqa: PLC0415
    from nddup.storage.run_folder import RunFolder  # noqa: PLC0415

    if is_read_here(options.run, options.output, master=options.master):
        from nddup.stages.inputs_found import paths_of  # noqa: PLC0415
        from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415

        folder = RunFolder(LocalStorage(), options.run)
        folder.open()
        if is_read_here(*paths_of(folder), master=None):
            from nddup.results.truth import find_here  # noqa: PLC0415

            return partial(find_here, options.run, steps=steps), folder, LocalStorage()

    from nddup.results.truth_on_spark import find_on_spark  # noqa: PLC0415
    from nddup.run.java import is_small  # noqa: PLC0415
    from nddup.run.session import start_session  # noqa: PLC0415
    from nddup.storage.session_files import files_of  # noqa: PLC0415

    spark = start_session(master=options.master, settings={}, is_small=is_small([options.run]))
    files = files_of(spark)
    return partial(find_on_spark, spark, options.run, steps=steps), RunFolder(files, options.run), files
