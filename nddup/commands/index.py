"""`nddup index`: a collection that grows by batches, and look-ups in it; `nddup serve`: look-ups over HTTP."""

import argparse
import csv
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NamedTuple

from nddup.commands.options import (
    add_all_known,
    add_common,
    add_json,
    add_parser,
    add_settings,
    positive,
    read_versions,
)
from nddup.errors import ConfigError, NddupError, OutputError
from nddup.ground.progress import Steps
from nddup.ground.shown import MOST_NAMED, counted, one_line, print_json, print_out, printable
from nddup.ground.start_up import prevent_pandas_import

INDEX_EPILOG = """examples:
  nddup index create pages --set sketch.kind=keywords --lowest 0.6
  nddup index add pages crawl/2026-11-23/
  nddup index add pages corrected.jsonl --replace
  nddup index query pages new.html --bands 60,70,80
        new.html   >=80: w2   70-80: w3 w5   60-70: w4 w6 w7
  nddup index tables pages --output out/pages
"""

FOUND = 3
"""Exit status of `query --exit-code` when something was found."""


SERVE_EPILOG = """addresses:
  GET  /                       a page: paste a text, see what is like it
  GET  /status                 the repository, its version and size
  GET  /health, GET /metrics   for what watches it; metrics for Prometheus
  POST /query?top=5&bands=60
        the body is a text, a page, {"text": …} or a form with `text`, at most
        4 MB, perhaps gzip or deflate; the rows of the table `matches`

environment:
  NDDUP_SERVE_TOKEN
        programs must show it (Authorization: Bearer …); needed where --host is
        not this machine

example:
  nddup serve pages --port 8765 &
  curl -H 'Content-Type: text/html' --data-binary @new.html \\
      http://127.0.0.1:8765/query
"""


def add_index(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "index", summary="add to a growing repository, and query it", epilog=INDEX_EPILOG,
        description="Keep the near-duplicates of a collection that grows by batches.\nAfter any adds, replacements and"
        " removals its tables are those of a fresh run over the\nlive documents.",
    )  # fmt: skip
    actions: argparse._SubParsersAction[Any] = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=type(parser)
    )
    _add_create(actions)
    one = _action(actions, "add", "add one batch as one version; live documents with the same content stay unchanged")
    one.add_argument("inputs", nargs="+", metavar="INPUT", help="file or folder; any path Hadoop knows, on Spark")
    one.add_argument("--replace", action="store_true", help="a live id with other content replaces the stored document")
    one.add_argument("--id-prefix", metavar="P", help="prefix of ids that are made up from file and record")
    one.add_argument("-o", "--output", metavar="DIR",
                     help="also write the batch without duplicates: its files with only the documents that were new"
                     " and are kept; must not exist")  # fmt: skip
    _add_engine(one)
    one = _action(actions, "remove", "remove the documents that a file names, as one version")
    one.add_argument("--ids", required=True, metavar="FILE",
                     help="one id a line, or a table with a column doc_id, as `show --removed --csv` writes; - is"
                     " standard input")  # fmt: skip
    add_all_known(one, "FILE")
    _add_callers(one)
    _add_query(actions)
    one = _action(actions, "tables", "write a version as the folder of a run, for show, report, evaluate and check")
    one.add_argument("-o", "--output", required=True, metavar="DIR", help="folder for the results; must not exist")
    one.add_argument("--version", type=positive, metavar="N", help="an earlier version (default: the newest)")
    _action(actions, "list", "list the versions, and the contents of the newest")
    one = _action(actions, "check", "prove a version: files, digests, a fresh run; exit status 1 if one is broken")
    _add_callers(one)
    one = _action(actions, "compact", "merge all segments and forget removed documents")
    one.add_argument("--days", type=float, metavar="D",
                     help="keep files of versions that were the newest in the last D days (default 7)")  # fmt: skip
    _add_callers(one)


def _action(actions: "argparse._SubParsersAction[Any]", name: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary, description=summary + ".")
    parser.add_argument("repo", metavar="REPO", help="folder of the repository, or s3://bucket/…")
    add_json(parser)
    add_common(parser)
    return parser


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=("auto", "local", "spark"),
                        help="what reads the inputs (default: the setting `engine`); all else is done in"
                        " this process")  # fmt: skip
    _add_callers(parser)


def _add_callers(parser: argparse.ArgumentParser) -> None:
    add_settings(
        parser,
        "YAML file with the sections engine, local and spark only",
        "one setting of engine, local or spark, which a repository does not store",
    )


def _add_create(actions: "argparse._SubParsersAction[Any]") -> None:
    parser = _action(actions, "create", "make an empty repository; recipe, measure, threshold and policy stay fixed")
    parser.add_argument("--mode", choices=("rebuild", "frozen"), default="rebuild",
                        help="rebuild: the tables are those of a fresh run; frozen: a kept document stays kept until"
                        " it is removed")  # fmt: skip
    parser.add_argument("--store", choices=("all", "kept"), default="all",
                        help="kept (frozen only): a document with a stored near-duplicate is reported and"
                        " not stored")  # fmt: skip
    parser.add_argument("--lowest", metavar="T",
                        help="lowest threshold that a query may ask for (default: pairs.threshold)")  # fmt: skip
    parser.add_argument("--texts", type=int, metavar="N",
                        help="characters of each document's text that are kept for reports (default 1000;"
                        " 0: none)")  # fmt: skip
    add_settings(parser)


def _add_query(actions: "argparse._SubParsersAction[Any]") -> None:
    parser = _action(actions, "query", "compare documents with the live ones of a repository")
    parser.add_argument("inputs", nargs="+", metavar="INPUT",
                        help="file or folder; any path Hadoop knows, on Spark; - is standard input, one document or a"
                        " file of them")  # fmt: skip
    _add_engine(parser)
    parser.add_argument("--not-itself", action="store_true",
                        help="leave out the stored document that has the query's own id")  # fmt: skip
    parser.add_argument("--also", action="append", default=[], metavar="REPO",
                        help="another repository; may be repeated")  # fmt: skip
    parser.add_argument("--bands", metavar="60,70,80", help="group by score, 100 x resemblance: lower ends of bands")
    parser.add_argument("--top", type=positive, metavar="N", help="only the N most similar to each document")
    parser.add_argument("--sources", metavar="GLOB", help="only stored documents whose file matches, such as 'news/*'")
    parser.add_argument("--versions", metavar="3..7", help="only stored documents that these versions added")
    parser.add_argument("-o", "--output", metavar="DIR", help="write the table `matches` to DIR, which must not exist")
    parser.add_argument(
        "--exit-code", action="store_true",
        help=f"exit status {FOUND} if anything is found, 1 if nothing is but a record could not be read",
    )  # fmt: skip


class Answer(NamedTuple):
    """The output of an action, its exit status, a line for standard error, and the output as values for --json."""

    text: str
    status: int = 0
    remark: str = ""
    values: Any = None


def execute_index(options: argparse.Namespace) -> int:
    """Carry out the action."""
    acting: dict[str, Callable[[argparse.Namespace, Steps], Answer]] = {
        "create": _create, "add": _grow, "remove": _remove, "query": _query, "tables": _tables, "list": _list,
        "check": _check, "compact": _compact,
    }  # fmt: skip
    with Steps(f"index {options.action}", 3) as steps:
        prevent_pandas_import()
        answer = acting[options.action](options, steps)
    if options.json:
        print_json(answer.values)
    else:
        print_out(answer.text)
    sys.stderr.write(printable(answer.remark))
    return answer.status


def _open(options: argparse.Namespace, steps: Steps, doing: str) -> Any:  # noqa: ANN401 - a Repository, loaded here
    from nddup.compiling.install import compile_once  # noqa: PLC0415
    from nddup.repository.opened_repository import Repository  # noqa: PLC0415

    steps.begin("open the repository")
    repository = Repository(options.repo, caller=_caller(options))
    compile_once(steps)
    repository.progress = lambda name, done, whole: steps.advance(done, whole)  # noqa: ARG005
    steps.begin(doing)
    return repository


def _caller(options: argparse.Namespace) -> Any:  # noqa: ANN401 - a Config, loaded here
    from nddup.settings.load import PREFIX, load_config, require_callers  # noqa: PLC0415
    from nddup.settings.stored import CALLERS  # noqa: PLC0415

    ours = {f"{PREFIX}{name}".upper() for name in CALLERS}
    variables = {name: os.environ[name] for name in os.environ if name.startswith(tuple(ours))}
    config = load_config(options.config, options.assignments, variables)
    return require_callers(config, origin=options.config or "--set")


def _create(options: argparse.Namespace, steps: Steps) -> Answer:
    steps.begin("make the repository")
    from nddup.repository.identity import new_identity  # noqa: PLC0415
    from nddup.repository.opened_repository import Repository  # noqa: PLC0415
    from nddup.settings.load import load_config  # noqa: PLC0415
    from nddup.settings.stored import CALLERS  # noqa: PLC0415

    config = load_config(options.config, options.assignments, os.environ)
    identity = new_identity(
        config, mode=options.mode, store=options.store, lowest=_number(options.lowest), texts=options.texts
    )
    Repository.create(options.repo, identity)
    unstored = sorted(config.model_fields_set & CALLERS)
    note = f"{', '.join(unstored)}: not stored; give each command what it computes with\n" if unstored else ""
    return Answer(f"{options.repo}: version 1, no documents\n", remark=note, values={"version": 1, "documents": 0})


def _number(text: str | None) -> int | float | None:
    if text is None:
        return None
    try:
        return int(text) if text.isascii() and text.isdigit() else float(text)
    except ValueError:
        raise ConfigError(f"--lowest {text}: expected a number such as 0.6") from None


def _grow(options: argparse.Namespace, steps: Steps) -> Answer:
    from nddup.repository.print_commits import describe_commit, values_of  # noqa: PLC0415

    repository = _open(options, steps, "read the batch and compare it")
    written = repository.add(
        options.inputs, replace=options.replace, id_prefix=options.id_prefix, engine=options.engine,
        output=options.output,
    )  # fmt: skip
    output_line = f"new documents in {one_line(options.output)}\n" if options.output else ""
    return Answer(describe_commit(options.repo, written) + output_line, values=values_of(written))


def _remove(options: argparse.Namespace, steps: Steps) -> Answer:
    from nddup.reading.id_lists import read_ids, require_known  # noqa: PLC0415
    from nddup.repository.print_commits import describe_commit, values_of  # noqa: PLC0415

    try:
        data = sys.stdin.buffer.read() if options.ids == "-" else Path(options.ids).read_bytes()
        readings = read_ids(data)
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"--ids {options.ids}: cannot be read ({reason})") from error
    repository = _open(options, steps, "remove the documents")
    choices = []
    for ids in readings:
        absent = repository.unknown(ids)
        gone = repository.removed_before(absent)
        choices.append(([doc_id for doc_id in absent if doc_id not in gone], gone, ids))
    unknown, gone, ids = min(choices, key=lambda one: len(one[0]))  # of several readings, the one with most known ids
    number = len(set(ids))
    require_known(f"--ids {options.ids}", unknown, len(unknown), number, all_known=options.all_known)
    written, _ = repository.remove(ids)
    lines = [f"unknown: {doc_id}" for doc_id in unknown[:MOST_NAMED]]
    lines += [f"unknown: {len(unknown) - MOST_NAMED:,} more"] if len(unknown) > MOST_NAMED else []
    lines += [f"removed before: {len(gone):,}"] if gone else []
    values = values_of(written) | {"unknown": unknown, "removed_before": sorted(gone)}
    return Answer(
        describe_commit(options.repo, written) + "".join(f"{one_line(one)}\n" for one in lines), values=values
    )


def _query(options: argparse.Namespace, steps: Steps) -> Answer:
    from nddup.repository.list_matches import Ask  # noqa: PLC0415
    from nddup.repository.opened_repository import Repository  # noqa: PLC0415
    from nddup.repository.print_commits import write_matches  # noqa: PLC0415
    from nddup.repository.query_stored import is_found, spell_matches  # noqa: PLC0415
    from nddup.storage.local_storage import LocalStorage, require_new  # noqa: PLC0415

    if options.output:
        require_new(LocalStorage(), [*options.inputs, options.repo, *options.also], options.output)
    bands = _bands(options.bands)
    versions = None if options.versions is None else read_versions(options.versions)
    ask = Ask(bands, options.top, options.sources, versions, others=options.not_itself)
    first = _open(options, steps, "read the documents and look for them")
    others = [Repository(also, caller=_caller(options)) for also in options.also]
    repositories = list({one.place: one for one in (first, *others)}.values())  # one that is named twice counts once
    with _stored(options.inputs) as inputs:
        answers = [repository.match_files(inputs, ask, engine=options.engine) for repository in repositories]
    matches = write_matches([table for table, _ in answers], ask, options.output)
    text = spell_matches(matches, bands=bool(bands), several=len(repositories) > 1)
    queries = answers[0][1]
    status = (FOUND if is_found(matches) else int(queries.rejects > 0)) if options.exit_code else 0
    text += "".join(f"{one_line(line)}\n" for line in queries.unread)
    more = f"; the first {len(queries.unread)} are named" if queries.rejects > len(queries.unread) else ""
    remark = f"{counted(queries.rejects, 'record')} could not be read{more}\n" if queries.rejects else ""
    rows = matches.to_pylist() if options.json else []
    values = {"matches": rows, "rejects": queries.rejects, "unread": list(queries.unread)}
    return Answer(text, status, remark, values)


@contextmanager
def _stored(inputs: list[str]) -> Iterator[list[str]]:
    """Give the INPUT paths with a file in the place of `-`, which holds what standard input gave."""
    if "-" not in inputs:
        yield inputs
        return
    with TemporaryDirectory(prefix="nddup-") as folder:
        path = Path(folder, "stdin.txt")  # what begins as no format is one plain text
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        if not path.stat().st_size:
            raise ConfigError("INPUT -: standard input is empty")
        try:
            yield [str(path) if one == "-" else one for one in inputs]
        except NddupError as error:
            raise type(error)(str(error).replace(str(path), "standard input")) from error


def _bands(text: str | None) -> list[int | float]:
    try:
        return [int(part) if part.isdigit() else float(part) for part in text.split(",")] if text else []
    except ValueError:
        raise ConfigError(f"--bands {text}: expected lower ends such as 60,70,80") from None


def _tables(options: argparse.Namespace, steps: Steps) -> Answer:
    import nddup.repository  # noqa: PLC0415
    from nddup.ground.metrics import RunMetrics  # noqa: PLC0415
    from nddup.results.show import summarise  # noqa: PLC0415

    steps.begin("write the tables")
    metrics = nddup.repository.open(options.repo, options.version).write_tables(options.output)
    return Answer(summarise(RunMetrics.read(metrics), options.output), values=metrics)


def _list(options: argparse.Namespace, steps: Steps) -> Answer:
    from nddup.repository.print_commits import history_of, list_versions  # noqa: PLC0415

    del steps  # it only reads a few small files
    return Answer(list_versions(options.repo), values=history_of(options.repo))


def _check(options: argparse.Namespace, steps: Steps) -> Answer:
    proofs = _open(options, steps, "prove what it promises").check()
    is_sound = all(proof.holds for proof in proofs)
    values = {"is_sound": is_sound, "proofs": [proof._asdict() for proof in proofs]}
    return Answer("".join(proof.text() for proof in proofs), 0 if is_sound else 1, values=values)


def _compact(options: argparse.Namespace, steps: Steps) -> Answer:
    done = _open(options, steps, "merge").compact(days=options.days)
    made = "nothing to merge" if done.commit is None else f"version {done.commit.version}: one segment"
    values = {"version": done.commit and done.commit.version, "removed": done.removed, "freed": done.freed}
    return Answer(f"{options.repo}: {made}; {done.removed} old folders removed, {done.freed:,} bytes\n", values=values)


def add_serve(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "serve", summary="answer look-ups in a repository over HTTP", epilog=SERVE_EPILOG,
        description="Answer look-ups in the newest version of a repository until Ctrl-C or SIGTERM; what was begun is"
        " still\nanswered. Read-only; only programs of this machine are answered, unless --host says otherwise.",
    )  # fmt: skip
    parser.add_argument("repo", metavar="REPO", help="folder of the repository, or s3://bucket/…")
    parser.add_argument("--port", type=int, default=8765, metavar="N", help="0: any that is free (default 8765)")
    parser.add_argument("--host", default="127.0.0.1", metavar="NAME", help="address to listen at (default 127.0.0.1)")


def execute_serve(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM; a second one ends it at once.

    Raises:
        ConfigError: if other machines could ask without a token.
        OutputError: if the address cannot be used.
    """
    with Steps("serve", 2) as steps:
        steps.begin("open the repository")
        prevent_pandas_import()
        from nddup.compiling.install import compile_once  # noqa: PLC0415
        from nddup.repository.opened_repository import Repository  # noqa: PLC0415
        from nddup.serving.look_ups import TOKEN, LookUps, is_loopback, listen_at  # noqa: PLC0415

        repository = Repository(options.repo)
        try:
            listening = listen_at(options.host, options.port)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            where = f"--host {options.host} --port {options.port}"
            raise OutputError(f"{where}: cannot be used ({reason}); give another, or --port 0") from error
        look_ups = LookUps(repository, options.repo, listening, os.environ.get(TOKEN))
        compile_once(steps)

    if not is_loopback(listening):
        sys.stderr.write("nddup serve: other machines can ask, and the token is sent unencrypted: put a proxy with TLS"
                         " before it\n")  # fmt: skip
    host = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{host}:{look_ups.port}/"

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, signal.SIG_DFL)
        look_ups.server.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    print_out(f"{one_line(options.repo)}: {one_line(address)} answers look-ups; Ctrl-C ends it\n")
    sys.stdout.flush()
    look_ups.server.serve()
    return 0
