"""The commands over finished runs: `nddup show`, `report`, `check`, `split` and `diff`."""

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nddup.commands.options import (
    add_all_known,
    add_finished_run,
    add_json,
    add_master,
    add_parser,
    positive,
    read_versions,
    share,
)
from nddup.errors import ConfigError
from nddup.ground.progress import Steps
from nddup.ground.shown import one_line, print_data, print_json, print_out, spell_json
from nddup.ground.start_up import prevent_pandas_import

if TYPE_CHECKING:
    from nddup.checking.check_run import CheckReport
    from nddup.diffing.diff_tables import Difference
    from nddup.engines.engine import FinishedRun, TextPlace
    from nddup.results.opening import Opened


LISTED = ("removed", "disagree", "risky", "captures", "review")
"""Options of `show` that print a summary, and with --csv each row."""

OF_RUNS = ("cluster", "borderline", "context", "extents", "copies_of", "compare", *LISTED)
"""Options that ask for what only a run has."""

REPORT_EPILOG = """\
RUN/report/index.html opens from disk in any browser and fetches nothing from
the network. `nddup run` writes it at its end unless output.report=false. Write
it again after `nddup evaluate`, to include the comparison, or to add texts
that were not stored: those of a cluster, or of documents to compare side by
side. They are read from the inputs, which must not have changed.

examples:
  nddup report out/run
  nddup report out/run --cluster 0123456789abcdef
  nddup report out/run --doc a --doc b
"""

UNPROVED = 3
"""The exit status of `check --require-inputs` where a promise could not be proved."""


SPLIT_EPILOG = """\
A unit, all documents that are connected by found pairs, goes to one part as a
whole; sizes come as near to the shares as units allow. DIR/split has the part
of each document, DIR/shares what each part has and should have, DIR/train (as
the part is called) its records. `nddup check DIR` counts again that no pair
crosses.

examples:
  nddup split out/run --parts train=.8,valid=.1,test=.1 --output out/split
  nddup split out/run --parts train=.9,test=.1 --by lang \\
      --fixed published-test.csv --output out/split
  nddup split out/new --parts train=.9,test=.1 --from out/split \\
      --output out/split-2
"""


DIFFERS = 3
"""The exit status of --exit-code where anything differs."""

DIFF_EPILOG = """\
First the settings that differ, then the counts: documents, verdicts with their
causes, pairs, families and sets; last the families and sets that changed most.
DIR/changes has each document with the cause of its new verdict. Families are
called by names that last: those of `nddup run --names-from`, else by their
oldest document.

examples:
  nddup diff out/monday out/tuesday
  nddup diff out/old-version out/new-version --exit-code --output out/diff
  nddup diff crawl-repo --versions 3..7
"""


def add_show(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(commands, "show", summary="print the results of a run",
                        description="Print the summary of a finished run, its largest families (a kept document and"
                        " those that it stands for) and clusters; of what `nddup passages` wrote, the passages that"
                        " save most tokens.")  # fmt: skip
    add_finished_run(parser)
    parser.add_argument("--cluster", metavar="ID",
                        help="print one cluster instead: its members, the text that all share, and what each has"
                        " beside it; reads the inputs again")  # fmt: skip
    parser.add_argument("--doc", metavar="ID",
                        help="print one document instead: whether it is kept, its pairs and clusters; its repeated"
                        " parts")  # fmt: skip
    parser.add_argument("--passage", metavar="ID", help="print one passage instead, with its places")
    parser.add_argument("--borderline", type=positive, metavar="N",
                        help="print the N pairs nearest to the threshold instead; RUN/report/borderline.html shows 20,"
                        " side by side")  # fmt: skip
    parser.add_argument("--context", metavar="DIR",
                        help="write the context and its concepts to DIR instead, for tools of formal"
                        " concept analysis")  # fmt: skip
    add_json(parser)
    parser.add_argument("--removed", action="store_true",
                        help="print what was removed instead, and for which kept document; with --csv all"
                        " of it")  # fmt: skip
    parser.add_argument("--disagree", metavar="COLUMN",
                        help="print the families whose documents differ in a column that keep.ledger, keep.same or"
                        " keep.policy names")  # fmt: skip
    parser.add_argument("--risky", type=positive, metavar="N",
                        help="print N removals instead, drawn by what may be wrong: the kept one is shorter, of"
                        " another file, older, has another label; with --csv a file for judgements, which `nddup"
                        " evaluate --judged` and keep.force read")  # fmt: skip
    add_seed(parser)
    parser.add_argument("--captures", action="store_true",
                        help="print how the pages of a web archive changed instead; with --csv the captures of each"
                        " address by date: same, near or changed")  # fmt: skip
    parser.add_argument("--review", action="store_true",
                        help="print what there is to review instead; with --csv every document with its group, pivot"
                        " and similarity, the thread of a message, parent and batch")  # fmt: skip
    parser.add_argument("--batch", type=positive, metavar="N",
                        help="of --review: batches of at most N documents, no family divided")  # fmt: skip
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"),
                        help="print what differs between the texts of two documents instead; reads the"
                        " inputs again")  # fmt: skip
    parser.add_argument("--csv", action="store_true",
                        help="with --removed, --disagree, --risky, --captures and --review: a CSV file, a line for"
                        " each document; --copies-of prints one always")  # fmt: skip
    parser.add_argument("--copies-of", metavar="ID|FILE",
                        help="print a CSV file instead: what shares a passage with a document, or with texts of a"
                        " file, and where: for keep.force and `index remove`; reads the inputs again")  # fmt: skip
    parser.add_argument("--extents", action="store_true",
                        help="print a CSV file instead: for each cluster the number of shingles that all members have,"
                        " their share of the shortest member, and their places in the representative; reads the inputs"
                        " again")  # fmt: skip
    add_master(parser)


def execute_show(options: argparse.Namespace) -> int:
    """Print the run, a cluster or a document."""
    with Steps("show", 2) as steps:
        steps.begin("open the run")
        from nddup.results.opening import open_run  # noqa: PLC0415

        if options.csv and not any(getattr(options, name) for name in (*LISTED, "copies_of")):
            raise ConfigError(
                "--csv: needs --removed, --disagree, --risky, --captures, --review or --copies-of;"
                " `nddup show RUN --removed --csv` lists removals"
            )
        if options.batch and not options.review:
            raise ConfigError("--batch: needs --review")
        if _may_be_passages(options) and (description := _tell_passages(options)) is not None:
            (print_data if options.json else print_out)(description)
            return 0
        if options.passage is not None:
            raise ConfigError(f"--passage: {options.run} is not a folder of `nddup passages`")
        opened = open_run(options.run, master=options.master)
        steps.begin("read its tables")
        lines = _lines(opened, options, steps)
        first = next(lines, "")  # an unreadable table fails before anything is printed
    is_data = options.csv or options.json or options.copies_of or options.extents
    write = print_data if is_data else print_out
    for line in chain([first], lines):
        write(line)
    return 0


def _may_be_passages(options: argparse.Namespace) -> bool:
    """Return whether the folder may be one of `nddup passages`; for a remote folder, only Spark knows."""
    from nddup.results.opening import is_read_here  # noqa: PLC0415
    from nddup.storage.local_storage import local_path  # noqa: PLC0415

    if not is_read_here(options.run, master=options.master):
        return True
    return os.access(Path(local_path(options.run), "_PASSAGES.json"), os.F_OK)  # False where it may not be looked at


def _tell_passages(options: argparse.Namespace) -> str | None:
    """Return the requested view of a folder of passages; None if the folder is not one."""
    from nddup.passages.show_passages import open_passages, rows_of, show_passages  # noqa: PLC0415

    with open_passages(options.run, master=options.master) as opened:
        if opened is None:
            return None
        for name in OF_RUNS:
            if getattr(options, name):
                raise ConfigError(
                    f"--{name.replace('_', '-')}: {options.run} was written by `nddup passages`, and is no run"
                )
        asked = {"passage": options.passage, "doc": options.doc}
        return spell_json(rows_of(opened, **asked)) if options.json else show_passages(opened, **asked)


def _lines(opened: "Opened", options: argparse.Namespace, steps: Steps) -> Iterator[str]:
    run = opened.run
    if any(getattr(options, name) for name in LISTED):
        yield from _listed(opened, options)
    elif options.compare:
        from nddup.results.show import compare_texts  # noqa: PLC0415

        yield compare_texts(run, *options.compare, master=options.master)
    elif options.copies_of:
        from nddup.against.copies_of import copy_lines, find_copies  # noqa: PLC0415

        copies = find_copies(run, options.copies_of, master=options.master, steps=steps)
        yield from [spell_json([one._asdict() for one in copies])] if options.json else copy_lines(copies)
    elif options.context:
        from nddup.results.formal_context import write_context  # noqa: PLC0415

        context = write_context(run, options.context)
        text = f"{len(context.features):,} features of {len(context.documents):,} documents in {options.context}"
        yield f"{text}: context.cxt, context.csv, concepts.csv\n"
    elif options.extents:
        from nddup.results.formal_context import extent_lines  # noqa: PLC0415

        yield from extent_lines(run, master=options.master)
    else:
        yield _text(run, options)


def _listed(opened: "Opened", options: argparse.Namespace) -> Iterator[str]:
    run = opened.run
    if options.removed:
        from nddup.results.show import removed_lines, show_removed  # noqa: PLC0415

        yield from removed_lines(run) if options.csv else [show_removed(run)]
    elif options.disagree:
        from nddup.report.for_review import disagreement_lines, show_disagreements  # noqa: PLC0415

        asked = run, options.disagree
        yield from disagreement_lines(*asked) if options.csv else [show_disagreements(*asked)]
    elif options.captures:
        from nddup.results.captures import capture_lines, show_captures  # noqa: PLC0415

        yield from capture_lines(run) if options.csv else [show_captures(run)]
    elif options.review:
        from nddup.results.review import arrange, review_lines, show_review  # noqa: PLC0415

        review = arrange(opened, options.batch, master=options.master)
        yield from review_lines(review) if options.csv else [show_review(run.path, review, options.batch)]
    else:
        from nddup.report.for_review import draw_risky, risky_lines, show_risky  # noqa: PLC0415

        drawn = run, options.risky, options.seed
        if options.json:
            yield spell_json(draw_risky(*drawn))
        else:
            yield from risky_lines(*drawn) if options.csv else [show_risky(*drawn)]


def _text(run: "FinishedRun", options: argparse.Namespace) -> str:
    from nddup.results.show import rows_of, show_borderline, show_run  # noqa: PLC0415

    if options.json:
        return spell_json(rows_of(run, cluster=options.cluster, doc=options.doc, borderline=options.borderline))
    if options.borderline:
        return show_borderline(run, options.borderline)
    return show_run(run, cluster=options.cluster, doc=options.doc, master=options.master)


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Declare --seed."""
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of --risky: another seed, another draw")


def add_report(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(commands, "report", summary="write the report of a run again", epilog=REPORT_EPILOG,
                        description="Write RUN/report/index.html again from the tables in RUN.")  # fmt: skip
    add_finished_run(parser)
    parser.add_argument("--cluster", metavar="ID", action="append", default=[],
                        help="add the texts of this cluster, read from the inputs; may be repeated")  # fmt: skip
    parser.add_argument("--doc", metavar="ID", action="append", default=[], dest="documents",
                        help="add the text of this document, read from the inputs; may be repeated")  # fmt: skip
    parser.add_argument("--risky", type=positive, metavar="N", default=0,
                        help="add N removals to be judged, as `show --risky` draws them, with both texts")  # fmt: skip
    add_seed(parser)
    add_master(parser)


def execute_report(options: argparse.Namespace) -> int:
    """Write the report, and print where it is."""
    with Steps("report", 2) as steps:
        steps.begin("open the run")
        prevent_pandas_import()
        from nddup.report.gather import Asked, report_run  # noqa: PLC0415
        from nddup.results.opening import open_run  # noqa: PLC0415

        run, folder, *_ = open_run(options.run, master=options.master)
        steps.begin("write the report")
        risky = options.risky, options.seed
        is_asked = options.cluster or options.documents or options.risky
        read = partial(_read_again, options)
        asked = Asked(options.cluster, read, options.documents, *risky) if is_asked else None
        where = report_run(run, folder, asked)
    print_out(f"report in {where}\n")
    return 0


def _read_again(options: argparse.Namespace, documents: "Mapping[str, TextPlace]") -> Any:  # noqa: ANN401 - Arrow
    """Read the texts of documents again from the inputs of the run: without Spark if they are on this machine."""
    from nddup.results.opening import read_texts  # noqa: PLC0415

    return read_texts(options.run, documents, master=options.master)


def add_check(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(commands, "check", summary="verify the promises of a run",
                        description="Recount a finished run, or what `nddup passages` or `nddup split` wrote, by a"
                        " plain, independent method. Exit status 1 if a promise is broken; the last line says what"
                        " could not be proved. With -v every promise has a line.")  # fmt: skip
    add_finished_run(parser)
    parser.add_argument("--max-rejects", type=share, metavar="SHARE",
                        help="also fail if a larger share of the records was rejected, such as 0.05")  # fmt: skip
    parser.add_argument("--require-inputs", action="store_true",
                        help="exit status 3 if a promise was not proved because the inputs are gone")  # fmt: skip
    add_json(parser)
    add_master(parser)


def execute_check(options: argparse.Namespace) -> int:
    """Print a line for each topic of promises once it is proved; return 1 if one is broken."""
    for header, count, check in (("_PASSAGES.json", 3, _check_passages), ("_SPLIT.json", 2, _check_split)):
        if os.access(Path(options.run, header), os.F_OK):  # False where it may not be looked at
            with Steps("check", count) as steps:
                report = check(options.run, steps)
            if not options.json:
                print_out("".join(f"{finding.line()}\n" for finding in report.findings))
            return _tell(report, options)
    with Steps("check", 1) as steps:
        prevent_pandas_import()
        from nddup.checking.check_run import Screen, check_run  # noqa: PLC0415
        from nddup.compiling.install import CHECK, compile_once  # noqa: PLC0415
        from nddup.report.gather import note_check  # noqa: PLC0415
        from nddup.results.opening import open_run  # noqa: PLC0415

        compile_once(steps, CHECK)
        steps.begin("open the run")
        run, folder, *_ = open_run(options.run, master=options.master)
        screen = Screen(
            lambda lines: None if options.json else steps.print_above(lines), is_full=getattr(options, "verbose", False)
        )
        report = check_run(
            run, max_rejects=options.max_rejects, begin=lambda step, *at: steps.begin_at(f"check {step}", *at),
            tell=screen.tell,
        )  # fmt: skip
        screen.end()
        note_check(folder, report.verdict())
    return _tell(report, options)


def _tell(report: "CheckReport", options: argparse.Namespace) -> int:
    if options.json:
        print_json({"is_sound": report.is_sound, "findings": [asdict(finding) for finding in report.findings]})
    else:
        print_out(f"{report.summary()}\n")
    is_short = options.require_inputs and any(not finding.is_far for finding in report.unproved)
    return 1 if not report.is_sound else UNPROVED if is_short else 0


def _check_passages(path: str, steps: Steps) -> "CheckReport":
    from nddup.passages.prove_passages import check_passages  # noqa: PLC0415

    return check_passages(path, steps)


def _check_split(path: str, steps: Steps) -> "CheckReport":
    prevent_pandas_import()
    from nddup.splitting.prove_split import check_split  # noqa: PLC0415

    return check_split(path, steps)


def add_split(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(commands, "split", summary="divide a run into parts that share no near-duplicates",
                        epilog=SPLIT_EPILOG,
                        description="Divide the documents of a finished run into parts, such as training and test, so"
                        " that no found near-duplicates are in two of them.")  # fmt: skip
    add_finished_run(parser)
    parser.add_argument("--parts", required=True, metavar="NAME=SHARE,…",
                        help="the parts and their shares of the documents, of sum 1:"
                        " train=.8,valid=.1,test=.1")  # fmt: skip
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to write, which must not exist")
    parser.add_argument("--by", metavar="COLUMN,…", default="",
                        help="keep the shares also among the documents of each value of these columns: source, url,"
                        " those of archives, or fields of the records, which are read again unless keep.policy names"
                        " them")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which of many such splits (default 1)")
    parser.add_argument("--fixed", metavar="FILE",
                        help="ids with the part that they must be in, such as `doc-1,test`; all near-duplicates come"
                        " with them")  # fmt: skip
    add_all_known(parser, "FILE")
    parser.add_argument("--from", dest="earlier", metavar="SPLIT",
                        help="folder of an earlier split: documents stay in its parts, as far as no new pair joins two"
                        " of them")  # fmt: skip
    parser.add_argument("--no-records", action="store_true", help="write the tables alone, not the records")
    add_json(parser)
    add_master(parser)


def execute_split(options: argparse.Namespace) -> int:
    """Split the run, write the output and print the summary."""
    with Steps("split", 2) as steps:
        prevent_pandas_import()
        from nddup.results.opening import is_read_here  # noqa: PLC0415
        from nddup.splitting.assign_units import read_parts  # noqa: PLC0415
        from nddup.splitting.write_split import SplitCall, say_split, split_here  # noqa: PLC0415

        call = SplitCall(
            parts=read_parts(options.parts),
            seed=options.seed,
            by=tuple(dict.fromkeys(name.strip() for name in options.by.split(",") if name.strip())),
            output=options.output,
            fixed=options.fixed,
            earlier=options.earlier,
            all_known=options.all_known,
            is_writing=not options.no_records,
        )
        steps.begin("open the run")
        beside = [path for path in (options.output, options.fixed, options.earlier) if path is not None]
        if is_read_here(options.run, *beside, master=options.master):
            steps.begin("split it")
            run, summary = split_here(options.run, call)
        else:
            from nddup.spark.runs_given import split_on_spark  # noqa: PLC0415
            from nddup.spark.session import start_session  # noqa: PLC0415

            spark = start_session(master=options.master, settings={})
            steps.begin("split it")
            run, summary = split_on_spark(spark, options.run, call)
    if options.json:
        by_json = {"by": summary.furthest, "listed": summary.listed, "unknown": summary.unknown}
        print_json({"counts": summary.counts, "shares": summary.shares, **by_json})
    else:
        lines = [*say_split(summary, run), f"tables{' and records' if call.is_writing else ''} in {options.output}"]
        print_out("".join(f"{one_line(line)}\n" for line in lines))
    return 0


def add_diff(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(commands, "diff", summary="say what changed between two runs", epilog=DIFF_EPILOG,
                        description="Compare two finished runs, or two versions of a repository: documents, verdicts"
                        " and why they changed, pairs, families and sets.")  # fmt: skip
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the earlier run and the later one; or a repository")
    parser.add_argument("--versions", metavar="3..7", help="of a repository: the earlier version and the later one")
    parser.add_argument("-o", "--output", metavar="DIR",
                        help="write the tables and index.html to DIR, which must not exist")  # fmt: skip
    parser.add_argument("--exit-code", action="store_true", help=f"exit status {DIFFERS} if anything differs")
    add_json(parser)
    add_master(parser)


def execute_diff(options: argparse.Namespace) -> int:
    """Compare the runs, write the output and print the summary."""
    expected = 2 if options.versions is None else 1
    if len(options.runs) != expected:
        raise ConfigError("diff: expected two runs, RUN RUN, or REPO --versions 3..7")
    with Steps("diff", 1) as steps:
        prevent_pandas_import()
        from nddup.diffing.diff_tables import say_diff, tell  # noqa: PLC0415

        steps.begin("compare the tables")
        before, after, difference = _diff_versions(options) if options.versions else _diff_runs(options)
    if options.json:
        print_json(tell(before, after, difference))
    else:
        lines = [*say_diff(difference), *([f"tables and index.html in {options.output}"] if options.output else [])]
        print_out("".join(f"{one_line(line)}\n" for line in lines))
    return DIFFERS if options.exit_code and not difference.is_empty else 0


def _diff_runs(options: argparse.Namespace) -> "tuple[str, str, Difference]":
    from nddup.results.opening import is_read_here  # noqa: PLC0415

    before, after = options.runs
    beside = [] if options.output is None else [options.output]
    if is_read_here(before, after, *beside, master=options.master):
        from nddup.diffing.diff_tables import diff_here  # noqa: PLC0415

        return before, after, diff_here(before, after, options.output)
    from nddup.spark.runs_given import diff_on_spark  # noqa: PLC0415
    from nddup.spark.session import start_session  # noqa: PLC0415

    spark = start_session(master=options.master, settings={})
    return before, after, diff_on_spark(spark, before, after, options.output)


def _diff_versions(options: argparse.Namespace) -> "tuple[str, str, Difference]":
    import nddup.repository  # noqa: PLC0415
    from nddup.diffing.diff_tables import diff_finished, write_diff  # noqa: PLC0415
    from nddup.scanning.input_files import is_of_this_machine  # noqa: PLC0415
    from nddup.storage.local_storage import LocalStorage, require_new  # noqa: PLC0415

    [repo] = options.runs
    first, last = read_versions(options.versions)
    if options.output is not None:
        require_new(LocalStorage(), filter(is_of_this_machine, [repo]), options.output)
    before, after = (nddup.repository.open(repo, version).open_run() for version in (first, last))
    difference = diff_finished(before, after)
    names = f"{repo} version {first}", f"{repo} version {last}"
    if options.output is not None:
        write_diff(after, difference, *names, options.output)
    return *names, difference
