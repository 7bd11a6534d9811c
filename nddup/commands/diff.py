"""`nddup diff`: what changed between two finished runs, or two versions of a repository."""

import argparse
from typing import TYPE_CHECKING, Any

from nddup.commands.options import add_json, add_master, add_parser, read_versions
from nddup.errors import ConfigError
from nddup.ground.progress import Steps
from nddup.ground.shown import one_line, print_json, print_out
from nddup.ground.start_up import prevent_pandas_import

if TYPE_CHECKING:  # loads the engine's modules
    from nddup.diffing.diff_tables import Difference

DIFFERS = 3
"""The exit status of --exit-code where anything differs."""

EPILOG = """\
First the settings that differ, then the counts: documents, verdicts with their causes, pairs, families and sets; last
the families and sets that changed most. DIR/changes has each document with the cause of its new verdict. Families are
called by names that last: those of `nddup run --names-from`, else by their oldest document.

examples:
  nddup diff out/monday out/tuesday
  nddup diff out/old-version out/new-version --exit-code --output out/diff
  nddup diff crawl-repo --versions 3..7
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "diff", summary="say what changed between two runs", epilog=EPILOG,
        description="Compare two finished runs, or two versions of a repository: documents, verdicts and why they"
        " changed, pairs, families and sets.",
    )  # fmt: skip
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the earlier run and the later one; or a repository")
    parser.add_argument("--versions", metavar="3..7", help="of a repository: the earlier version and the later one")
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write the tables and index.html to DIR, which must not exist"
    )
    parser.add_argument("--exit-code", action="store_true", help=f"exit status {DIFFERS} if anything differs")
    add_json(parser)
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Compare the runs, write the output and print the summary."""
    expected = 2 if options.versions is None else 1
    if len(options.runs) != expected:
        raise ConfigError("diff: expected two runs, RUN RUN, or REPO --versions 3..7")
    with Steps("diff", 1) as steps:
        prevent_pandas_import()
        from nddup.diffing.diff_tables import say_diff, tell  # noqa: PLC0415

        steps.begin("compare the tables")
        before, after, found = _diff_versions(options) if options.versions else _diff_runs(options)
    if options.json:
        print_json(tell(before, after, found))
    else:
        lines = [*say_diff(found), *([f"tables and index.html in {options.output}"] if options.output else [])]
        print_out("".join(f"{one_line(line)}\n" for line in lines))
    return DIFFERS if options.exit_code and not found.is_empty else 0


def _diff_runs(options: argparse.Namespace) -> "tuple[str, str, Difference]":
    from nddup.results.opening import is_read_here  # noqa: PLC0415

    before, after = options.runs
    beside = [] if options.output is None else [options.output]
    if is_read_here(before, after, *beside, master=options.master):
        from nddup.diffing.diff_tables import diff_here  # noqa: PLC0415

        return before, after, diff_here(before, after, options.output)
    from nddup.spark.diff_given import diff_on_spark  # noqa: PLC0415
    from nddup.spark.session import start_session  # noqa: PLC0415

    spark = start_session(master=options.master, settings={})
    return before, after, diff_on_spark(spark, before, after, options.output)


def _diff_versions(options: argparse.Namespace) -> "tuple[str, str, Difference]":
    import nddup.repository  # noqa: PLC0415
    from nddup.diffing.diff_tables import diff_finished, require_room, write_diff  # noqa: PLC0415
    from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415

    [repo] = options.runs
    first, last = read_versions(options.versions)
    if options.output is not None:
        require_room(LocalStorage(), (), options.output)
    before, after = (nddup.repository.open(repo, version).open_run() for version in (first, last))
    difference = diff_finished(before, after)
    names = f"{repo} version {first}", f"{repo} version {last}"
    if options.output is not None:
        write_diff(after, difference, *names, options.output)
    return *names, difference
