"""The command line: `nddup`, also called by the scripts in `jobs/` with the same arguments.

Exit status: 0 done; 2 wrong usage or configuration; 1 a failure during the work, or a promise that `check` found
broken; 130 interrupted by Ctrl-C, 143 by SIGTERM, 129 by a terminal that was closed; 141 standard output is no longer
read. An error is one line on standard error.
"""

import argparse
import atexit
import difflib
import errno
import os
import re
import select
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from nddup import __version__
from nddup.commands import COMMANDS
from nddup.commands.in_buckets import execute_with_buckets
from nddup.commands.options import HelpFormatter
from nddup.errors import ConfigError, NddupError, OutputError, reason_of
from nddup.ground import progress
from nddup.ground.shown import clean, one_line, print_error, print_in_any_encoding, print_json
from nddup.ground.signals import SignalledError, end_by_signals, signals_that_came
from nddup.ground.start_up import LIGHT, collect_rarely, open_streams

BY_SIGNAL = 128
"""Added to the number of a signal that ended a command, as in shells: 130 for Ctrl-C."""

CLOSED = 141
"""The exit status if standard output was closed early, by the shells' convention for SIGPIPE."""

LONGEST_SHOWN = 80
"""Characters of a path that are shown where the system takes none so long."""

AFTERWARDS = {
    "run": "; `--resume` finishes it", "sweep": "; `--resume` finishes it",
    "index": "; the repository is at its last version (`nddup index list`)",
} | dict.fromkeys(
    ("report", "evaluate", "truth", "against", "mine", "passages"), "; any output is incomplete"
)  # fmt: skip
"""What Ctrl-C leaves behind, for each command that writes something."""

SPARK = {"pyspark", "py4j"}
"""The modules that an image without Spark lacks."""

NO_SPARK = "this needs Spark, which is not installed here: pip install pyspark pandas"

MEANT = {
    "text": "input.content", "column": "input.content", "field": "input.content", "similarity": "pairs.threshold",
    "jaccard": "pairs.threshold", "threads": "local.processes", "workers": "local.processes",
    "jobs": "local.processes", "ngram": "shingle.length", "num-perm": "sketch.size",
}  # fmt: skip
"""Option names of other programs, and the setting that does the same here."""

EPILOG = """examples:
  nddup run pages/ --output out/run
  nddup run a.jsonl b.jsonl --output out/run --set pairs.threshold=0.9
  nddup run hdfs:///romip --output hdfs:///out --config romip2005 --master yarn
  nddup show out/run --doc 007
  nddup check out/run
  nddup against train.jsonl test.jsonl

nddup COMMAND --help has all options and more examples
"""


class _Parser(argparse.ArgumentParser):
    """Reports wrong usage in one line, with exit status 2."""

    def error(self, message: str) -> NoReturn:
        command = (
            f"{self.prog} {sys.argv[1]}"
            if self.prog == "nddup" and sys.argv[1:2] and sys.argv[1] in COMMANDS
            else self.prog
        )
        wrong = re.match(r"argument COMMAND: invalid choice: '([^']*)'", message)
        text = f"no command {wrong[1]}" if wrong else message
        print_error(f"nddup: {one_line(clean(text))}{_hint(message)} (see {command} --help)\n")
        sys.exit(2)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - as argparse
        """Parse; what begins with one hyphen and is no option, such as an id, is the value of the option before it."""
        given = list(sys.argv[1:] if args is None else args)
        joined = list[str]()
        while given:
            option = self._option_string_actions.get(given[0]) if given[0].startswith("--") else None
            is_value = (
                option is not None and option.nargs is None and given[1:]
                and re.match("-[^-]", given[1]) and given[1] not in self._option_string_actions
            )  # fmt: skip
            joined.append("=".join(given[:2]) if is_value else given[0])
            del given[: 1 + bool(is_value)]
            if joined[-1] == "--":
                break
        return super().parse_known_args(joined + given, namespace)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:  # noqa: ANN401 - as argparse
        """Convert the arguments of an option; an empty one, as of `--config "$UNSET"`, would have no effect."""
        if action.option_strings and "" in arg_strings:
            text = "expected a value, got an empty text; is a variable of the shell not set?"
            raise argparse.ArgumentError(action, text)
        return super()._get_values(action, arg_strings)


SHELLS = ("bash", "zsh", "fish")

NO_BLANK = """
_nddup() { _shtab_nddup; [[ ${COMPREPLY-} == *= ]] && compopt -o nospace 2>/dev/null; return 0; }
complete -o bashdefault -o default -F _nddup nddup
"""
"""In bash, no blank after `--set NAME=`."""


def _hint(message: str) -> str:
    command = re.match(r"argument COMMAND: invalid choice: '([^']*)'", message)
    if command is not None:
        return "".join(f"; did you mean {near}?" for near in difflib.get_close_matches(command[1], COMMANDS, n=1))
    name = re.match(r"unrecognized arguments: --([\w-]+)[ =]?(\S*)", message)
    if name is None:
        return ""
    if name[1] in MEANT:
        return f"; a setting is given as --set {MEANT[name[1]]}={name[2] or '…'}"
    from nddup.settings.schema import Config  # noqa: PLC0415 - only an unknown option pays for loading the settings

    key, value = name[1].replace("-", "_"), name[2]
    sections = {section: field.annotation for section, field in Config.model_fields.items()}
    owners = [section for section, kind in sections.items() if key in getattr(kind, "model_fields", {})]
    return "".join(f"; a setting is given as --set {section}.{key}={value or '…'}" for section in owners[:1])


class _Completion(argparse.Action):
    """Prints the script that completes the commands, their options and the settings in a shell."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        sys.stdout.write(spell_completion(parser, str(given[1])))
        parser.exit()


def spell_completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script that completes the command line in one of `SHELLS`: its commands, options and settings."""
    import shtab  # noqa: PLC0415 - only a script pays for loading these

    from nddup.settings.schema import Config  # noqa: PLC0415

    settings = [
        f"{section}.{key}=" for section, field in Config.model_fields.items()
        for key in getattr(field.annotation, "model_fields", {})
    ]  # fmt: skip
    for action in _actions_of(parser):
        if "--set" in action.option_strings:
            action.choices = settings
        elif action.nargs != 0 and not action.choices:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell)) + (NO_BLANK if shell == "bash" else "\n")


def _actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of them
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for inner in action.choices.values():
                yield from _actions_of(inner)


def console() -> int:
    """Run one command, and end this process without freeing its objects: the console script.

    To free the many objects of numba, one by one, would take a fifth of the time of a short run.
    """
    end_by_signals()
    ended: list[int] = []
    atexit.register(_leave, ended)  # the first that is registered is called last
    ended.append(main())
    return ended[0]


def _leave(ended: Sequence[int]) -> None:
    """End the process with the status of the command; do nothing if the command did not return one."""
    if not ended:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        os._exit(CLOSED)
    os._exit(ended[0])


def _is_unread() -> bool:
    """Return whether standard output is a pipe whose reader, `head` for example, has stopped."""
    output = select.poll()
    output.register(1, 0)  # 0: errors alone
    return any(event & select.POLLERR for _, event in output.poll(0))


def build_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands."""
    parser = _Parser(
        prog="nddup",
        description="Find clusters of near-duplicate documents: sets in which every pair is alike.",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"nddup {__version__}",
                        help="print the version; with --json what it is made of, for a question")  # fmt: skip
    parser.add_argument(
        "--completion", choices=SHELLS, action=_Completion, metavar="SHELL",
        help="print the script that completes commands, options and settings in bash, zsh or fish, such as"
        ' eval "$(nddup --completion bash)"',
    )  # fmt: skip
    commands: argparse._SubParsersAction[Any] = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=_Parser
    )
    for command in COMMANDS.values():
        command.add(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:  # noqa: C901, PLR0911, PLR0912 - an exit status each
    """Run one command and return its exit status.

    Args:
        arguments: of the command line, without the program's name; None: those of this process.
    """
    open_streams()
    if set(sys.argv[1:] if arguments is None else arguments) == {"--version", "--json"}:
        from nddup.commands.begin import describe_installation  # noqa: PLC0415

        print_json(describe_installation())
        return 0
    parser = build_parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        return 2
    options = parser.parse_args(arguments)
    if getattr(options, "quiet", False):
        progress.be_quiet()
    if getattr(options, "verbose", False):
        os.environ["NDDUP_DEBUG"] = "1"
    collect_rarely()
    print_in_any_encoding()
    for name, value in LIGHT.items():
        os.environ.setdefault(name, value)
    try:
        return execute_with_buckets(COMMANDS[options.command].execute, options)
    except KeyboardInterrupt as error:
        return _end_interrupted(error.number if isinstance(error, SignalledError) else int(signal.SIGINT), options)
    except Exception as error:  # noqa: BLE001 - any other error is also one line
        if signals_that_came:
            return _end_interrupted(signals_that_came[0], options)
        if isinstance(error, NddupError):
            return _fail(str(error), 2 if isinstance(error, (ConfigError, OutputError)) else 1)
        if isinstance(error, BrokenPipeError) and _is_unread():
            return CLOSED
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            return _fail(f"{str(error.filename)[:LONGEST_SHOWN]}…: {error.strerror}", 2)
        if os.environ.get("NDDUP_DEBUG"):
            sys.stderr.write(clean(traceback.format_exc()))
            return 1
        needs_spark = isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] in SPARK
        if not needs_spark and (fault := _find_unsound(options)):
            return _fail(str(fault), 2)
        message = NO_SPARK if needs_spark else f"{reason_of(error)} (NDDUP_DEBUG=1 shows the trace)"
        return _fail(message, 2 if needs_spark else 1)


def _end_interrupted(number: int, options: argparse.Namespace) -> int:
    return _fail(f"interrupted{AFTERWARDS.get(options.command, '')}", BY_SIGNAL + number)


def _find_unsound(options: argparse.Namespace) -> NddupError | None:
    """Return the first fault in the tables of the runs that a failed command read: values that no run writes.

    Tables are not read for this before a command: a pass over all would cost more than most questions.
    """
    from nddup.commands.in_buckets import READ  # noqa: PLC0415 - only after a failure
    from nddup.scanning.input_files import RUN  # noqa: PLC0415
    from nddup.storage.local_folder import LocalFolder  # noqa: PLC0415
    from nddup.storage.local_storage import LocalStorage  # noqa: PLC0415
    from nddup.tables import RESULTS  # noqa: PLC0415

    storage = LocalStorage()
    named = [getattr(options, name, None) or [] for name in READ]
    try:
        for path in (path for value in named for path in ([value] if isinstance(value, str) else value)):
            if storage.exists(f"{path}/{RUN}"):
                folder = LocalFolder(path)
                for name in RESULTS:
                    if storage.exists(folder.place(name)):
                        folder.read_sound(name)
    except OutputError as fault:
        return fault
    except Exception:  # noqa: BLE001 - then the error itself is reported
        return None
    return None


def _fail(message: str, status: int) -> int:
    print_error("nddup: " + " ".join(clean(message).split()) + "\n")
    return status
