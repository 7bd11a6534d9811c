"""Write docs/reference.md from the code, and llms.txt from docs/index.md. `--check` only checks that they are right."""

import argparse
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import metadata
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic_core import PydanticUndefined

import nddup
from nddup.api.run_object import Run
from nddup.cli import build_parser
from nddup.commands import COMMANDS
from nddup.evaluating.evaluate import EVALUATION
from nddup.repository.segment_files import MATCHES, SEGMENT
from nddup.settings.schema import Config
from nddup.tables import READABLE, RESULTS, Column, Table
from nddup.tables.features import AGAINST, DIFF_TABLES, PASSAGE_TABLES, SPLIT_TABLES

ROOT = Path(__file__).resolve().parents[1]
TARGET, INDEX = ROOT / "docs" / "reference.md", ROOT / "llms.txt"

HEAD = """# Reference

`make reference` makes this page from the code; a test compares the two. Terms: [glossary](glossary.md). Reasons:
[explanation](explanation.md).

Exit status of every command: [what a scheduler sees](operations.md#what-a-scheduler-sees).
"""


def main() -> int:
    """Write the page, or compare it; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    made = {TARGET: make_reference(), INDEX: make_index()}
    is_check, wrong = parser.parse_args().check, False
    for path, text in made.items():
        if not is_check:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} is out of date: run make reference")
            wrong = True
    return int(wrong)


def make_index() -> str:
    """Return llms.txt: each page of docs in reading order, with its title and how it begins, for programs that read."""
    pages = re.findall(r"\]\(([\w/.-]+\.md)\)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    lines = [f"# nddup\n\n> {metadata('nddup')['Summary']}\n\n## Documentation\n"]
    for page in dict.fromkeys(["../README.md", *pages]):
        text = (ROOT / "docs" / page).resolve().read_text(encoding="utf-8")
        title = re.sub(r"[`*]", "", text.partition("\n")[0].removeprefix("# "))
        paragraphs = [one for one in text.split("\n\n")[1:] if one[:1].isalpha() or re.match(r"`\w|\*\*", one)]
        plain = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", " ".join(paragraphs[0].split())) if paragraphs else ""
        begun = re.split(r"(?<=[.?:]) ", plain)[0].rstrip(":")
        path = page.removeprefix("../") if page.startswith("../") else f"docs/{page}"
        lines.append(f"- [{title}]({path})" + (f": {begun}" if begun else ""))
    return "\n".join(lines) + "\n"


def make_reference() -> str:
    """Return the whole page."""
    parts = [HEAD, "## Commands\n", *_commands(), "## Settings\n", SETTINGS_HEAD, *_settings(), "## Tables\n"]
    parts += [*_tables(), "## Python\n", PYTHON_HEAD, _python()]
    return "\n".join([*parts, "## evaluation.json\n", f"```\n{EVALUATION.rstrip()}\n```\n"])


SETTINGS_HEAD = """In a YAML file (`--config`), give only the settings that differ, as `section:` and `key: value`.
Variables `NDDUP_SECTION_KEY` of the environment, such as `NDDUP_LOCAL_MEMORY=8GB`, come before the file, and
`--set section.key=value` last. A run says in a note which settings had no effect beside others. `spark.…` goes to the
Spark session unchanged. `nddup explain --schema` prints the JSON Schema for editors; `eval "$(nddup --completion
bash)"` completes commands, options and settings (also `zsh`; `nddup --completion fish | source`).
"""


PYTHON_HEAD = """`nddup.find_duplicates` makes a run from a table, `nddup.open` opens the folder of a finished one on
this machine. Both return a `Run`: [what to ask it](howto/ask-a-run.md). Full descriptions: `help(nddup.open)`.
"""


def _python() -> str:
    """Return the list of the package's functions and of the methods and properties of a run."""
    functions = [(f"nddup.{name}", getattr(nddup, name)) for name in nddup.__all__]
    methods = [(f"run.{name}", value) for name, value in vars(Run).items() if not name.startswith("_")]
    called = [f"{name}{_arguments_of(value)}" for name, value in functions + methods if inspect.isfunction(value)]
    read = [name for name, value in methods if isinstance(value, property)]
    return "".join(f"- `{name}`\n" for name in called + read)


def _arguments_of(function: Callable[..., Any]) -> str:
    """Return the names of the arguments, without `self`, in parentheses."""
    return f"({', '.join(name for name in inspect.signature(function).parameters if name != 'self')})"


SHARED = 2
"""An option of so many commands, with the same words, is told once."""


def _commands() -> Iterator[str]:
    [subparsers] = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
    described = [part for name in COMMANDS for part in _parsers(f"nddup {name}", subparsers.choices[name])]
    users: dict[tuple[str, str], list[str]] = {}
    for title, _, rows in described:
        for row in rows:
            users.setdefault(row, []).append(title)
    place = {row: _common_to(titles) for row, titles in users.items() if len(titles) >= SHARED}
    yield "Output paths must not exist yet. Options of several (`nddup COMMAND --help`: those of one):\n"
    yield _list(row for row in place if not place[row])
    for title, description, rows in described:
        yield f"### {title}\n\n{description}\n"
        yield _list([row for row in place if place[row] == title] + [row for row in rows if row not in place])


def _common_to(titles: Sequence[str]) -> str:
    """Return the command of which all of these are actions, or "" if there is none."""
    [command, *others] = {" ".join(title.split()[:2]) for title in titles}
    return "" if others else command


def _parsers(title: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield the title, the description and the arguments of a command, then of each of its actions."""
    actions = [action for action in parser._actions if action.dest != "help"]  # noqa: SLF001
    nested = [action for action in actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
    yield title, parser.description or "", [] if nested else _arguments(actions)
    for action, below in ((action, one) for group in nested for action, one in group.choices.items()):
        yield from _parsers(f"{title} {action}", below)


def _arguments(actions: Sequence[argparse.Action]) -> list[tuple[str, str]]:
    return [_argument(action) for action in sorted(actions, key=lambda action: bool(action.option_strings))]


NEW = re.compile("(;|, which) must not exist")
"""What the page says once of all that is written."""


def _argument(action: argparse.Action) -> tuple[str, str]:
    told = NEW.sub("", action.help or "")
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices:
        metavar = "|".join(map(str, action.choices))
    if not action.option_strings:
        return f"{metavar}{'…' if action.nargs in ('+', '*') else ''}", told
    name = action.option_strings[0]
    return f"{name}{'' if action.nargs == 0 else ' ' + metavar}", told


def _settings() -> Iterator[str]:
    for section, field in Config.model_fields.items():
        model = field.annotation
        if get_origin(model) is Literal:
            yield f"### {section}\n"
            yield _list(
                [
                    (
                        f"{section}={_value(field.default)}",
                        f"{_kind(model, field.default, field.description or '')}{field.description}",
                    )
                ]
            )
        if not (isinstance(model, type) and hasattr(model, "model_fields")):
            continue
        yield f"### {section}\n\n{inspect.getdoc(model)}\n"
        yield _list(
            (
                f"{section}.{key}={_value(option.get_default(call_default_factory=True, validated_data={}))}",
                f"{_kind(option.annotation, option.default, option.description or '')}{option.description}",
            )
            for key, option in model.model_fields.items()
        )


def _value(value: object) -> str:
    if value is None or value is PydanticUndefined:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(kind: Any, default: object, description: str) -> str:  # noqa: ANN401 - an annotation
    """Return the choices or the type with a semicolon; nothing where the default or the description tells them."""
    told = _spelled(kind)
    one = get_args(kind)[0] if get_origin(kind) is list else kind
    is_told = get_origin(one) is Literal and all(f"`{choice}`:" in description for choice in get_args(one))
    return "" if is_told or told in (SHOWN.get(type(default)), _spelled(bool)) else f"{told}; "


NAMES = {int: "integer", float: "number", str: "text", bool: "true, false"}
SHOWN = {kind: name for kind, name in NAMES.items() if kind is not str}
"""The types that a default tells: a text may be the name of a choice."""


def _spelled(kind: Any) -> str:  # noqa: ANN401 - an annotation
    if get_origin(kind) is Literal:
        return f"`{'|'.join(get_args(kind))}`"
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_spelled(part) for part in get_args(kind) if part is not type(None))
    return NAMES.get(kind, str(kind))


def _tables() -> Iterator[str]:
    yield "Parquet, a folder each in the run's folder; `kept/`, on request, holds the kept documents themselves.\n"
    told: dict[Column, str] = {}
    yield from (_declared(table, told) for table in READABLE.values())
    yield "## Tables of a repository\n\nA query writes `matches` to its --output.\n"
    yield _declared(MATCHES, told)
    others = ", ".join(f"`{name}`" for name in SEGMENT)
    yield f"The others, {others}, lie in segments; `nddup/repository/segment_files.py` says what they hold.\n"
    yield "## Tables of against\n\nParquet, a folder each in --output.\n"
    yield from (_declared(table, told) for table in AGAINST.values())
    yield "## Tables of passages\n\nParquet, a folder each in --output.\n"
    yield from (_declared(table, told) for table in PASSAGE_TABLES.values() if table.name not in RESULTS)
    yield "## Tables of split\n\nParquet, a folder each in --output.\n"
    yield from (_declared(table, told) for table in SPLIT_TABLES.values())
    yield "## Tables of diff\n\nParquet, a folder each in --output, beside the later rows of `documents` and `keep`.\n"
    yield from (_declared(table, told) for table in DIFF_TABLES.values())


def _declared(table: Table, told: dict[Column, str]) -> str:
    """Return a table with its columns: neighbours that mean the same, or that one earlier table tells, on one line."""
    rows = []
    for earlier, columns in groupby(table.columns, key=told.get):
        run = list(columns)
        if earlier and len(run) > 1:
            rows.append((_typed(run), f"as in `{earlier}`"))
        else:
            rows += [(_typed(alike), meaning) for meaning, alike in groupby(run, key=attrgetter("meaning"))]
    told.update((column, table.name) for column in table.columns if column not in told)
    return f"### {table.name}\n\n{table.meaning}\n\n" + _list(rows)


def _typed(columns: Iterable[Column]) -> str:
    return "`, `".join(f"{column.name}:{column.type}" for column in columns)


def _list(rows: Iterable[tuple[str, str]]) -> str:
    return "".join(f"- `{name}`: {meaning}\n" if meaning else f"- {name}\n" for name, meaning in rows)


if __name__ == "__main__":
    sys.exit(main())
