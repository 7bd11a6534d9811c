"""Load the configuration from YAML files and assignments, and check it against `nddup.settings.schema`.

A YAML file holds only the values that differ from the defaults; `--set section.key=value` overrides it. Unknown keys
and wrong values are refused here with a line that says what was expected. The section `spark` is passed to the session
unchanged, under Spark's own names. A profile is such a file that comes with nddup, given by its name, `short`.
Variables `NDDUP_SECTION_KEY` of the environment, such as `NDDUP_LOCAL_MEMORY=8GB`, replace defaults, and a file
overrides them. Nothing is read from a folder that nobody named.

A Python program passes sections as dictionaries, or as the classes of `nddup.settings.schema`, whose keys an editor
completes and checks: `pairs={"threshold": 0.9}` or `pairs=PairsConfig(threshold=0.9)`.
"""

import difflib
import re
import reprlib
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from nddup.errors import ConfigError
from nddup.ground.shown import follow, hide_setting
from nddup.settings import profiles
from nddup.settings.plan import find_conflicts
from nddup.settings.schema import Config
from nddup.settings.sections import Section
from nddup.settings.stored import CALLERS, take_deciding

PREFIX = "NDDUP_"
"""How the names of variables that are settings begin."""

EMPTY = "expected a value, got an empty text; is a variable of the shell not set? null stands for none, '' for no text"
"""What is said of an empty value: YAML reads it as null, so that a rule such as `keep.force` would have no effect."""

LONGEST = 1_000
"""Maximum number of characters of a message about one key: a value may have any length."""

MOST_TOLD = 20
"""Maximum number of wrong keys in a message."""

_VALUES = reprlib.Repr()
_VALUES.maxstring = _VALUES.maxother = _VALUES.maxlong = 100
_VALUES.maxlist = _VALUES.maxdict = 10

_NAME = re.compile(r"[\w-]+")
"""A name without a folder and an ending."""

_QUOTED = re.compile(r"(['\"])([^'\"]*)\1")
"""What a message of PyYAML quotes."""

_PLAIN = re.compile(r"<[a-z ]+>|\\?.|")
"""What of that is no part of a text: a name such as <scalar>; or but one character, such as a tab."""

LONGEST_FILE = 1 << 20
"""Maximum number of characters of a file."""

MOST_VALUES = 100_000
"""Maximum number of values in a file, each alias counted as all that it names; a long text is several."""

VALUE = 100
"""Characters of a text that count as one value."""

LONGEST_NUMBER = 10_000
"""Maximum number of characters of a number: YAML reads `1:30` to the base of 60, in time quadratic in its length."""

NULL = "tag:yaml.org,2002:null"
ODD = re.compile(r"[-+]?(0[0-9_]+$|[^:]*:)")
NUMBERS = frozenset(["tag:yaml.org,2002:int", "tag:yaml.org,2002:float"])

UNREADABLE = (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)
"""The errors of `read_yaml`: also Python's own for values that look like, or are tagged as, dates and numbers."""


class YamlBoundError(ValueError):
    """A text that is too long, or means too much; the message says which bound it passes."""


class RepeatedKeyError(yaml.YAMLError):
    """A mapping has a key twice: of two values one would be lost without a word."""


class EmptyValueError(yaml.YAMLError):
    """A key of a section has nothing after it: it would be null without a word."""


class OddNumberError(yaml.YAMLError):
    """A number that YAML reads to the base of 8 or 60: `0100` would be 64 without a word."""


class _Loader(yaml.SafeLoader):
    """Refuses a key that occurs twice in a mapping as it is written; keys that `<<` merges into it are not its own."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401 - of PyYAML
        node = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in lines:
                raise RepeatedKeyError(f"line {line}: the key {key.value} occurs twice, first in line {lines[name]}")
            lines[name] = line
        return node


def load_config(
    path: str | None = None, assignments: Iterable[str] = (), variables: Mapping[str, str] | None = None
) -> Config:
    """Load a YAML file, or the defaults, and apply `section.key=value` assignments; later ones override earlier ones.

    Args:
        path: of the file, or the name of a profile; a file of that name comes first.
        variables: of the environment; the file overrides those that are settings.

    Raises:
        ConfigError: one line that names the variable, the file or `--set`, the key, what was expected and the value.
    """
    values, given_by = dict[str, Any](), read_variables(variables or {})
    for name, (key, value) in given_by.items():
        one: dict[str, Any] = {}
        _assign(one, key, value)
        _check(one, origin=name)
        _assign(values, key, value)
    layers = {", ".join(given_by): _check(values, origin="defaults")}
    for section, content in (_read_yaml(path) if path is not None else {}).items():
        given = values.get(section)
        values[section] = {**given, **content} if isinstance(given, dict) and isinstance(content, dict) else content
    if path is not None:
        layers[path] = _check(values, origin=path)

    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise _refusal(f"--set {assignment}", ["expected section.key=value, without blanks around ="])
        if not text.strip() and not key.startswith("spark."):
            raise _refusal(f"--set {assignment}", [EMPTY])
        _assign(values, key.strip(), text if key.startswith("spark.") else _read_value(text))
    layers["--set"] = _check(values, origin="--set")
    conflicts = find_conflicts(layers["--set"])
    for name, layer in layers.items() if conflicts else ():  # the first that has one of them is named
        if repeated := [conflict for conflict in find_conflicts(layer) if conflict in conflicts]:
            raise _refusal(name, repeated)
    return layers["--set"]


def build_config(values: Mapping[str, Any], *, origin: str) -> Config:
    """Check a nested mapping of settings against the schema.

    Raises:
        ConfigError: one line that names `origin`, each wrong key, what was expected and the value.
    """
    config = _check(values, origin=origin)
    if conflicts := find_conflicts(config):
        raise _refusal(origin, conflicts)
    return config


def _check(values: Mapping[str, Any], *, origin: str) -> Config:
    """Check each setting by itself: what contradicts another may be mended by a later layer."""
    prepared = dict(values)
    if isinstance(prepared.get("spark"), Mapping):
        follow(prepared["spark"].items())
        prepared["spark"] = {str(key): _spark_text(value, key, origin) for key, value in prepared["spark"].items()}

    try:
        return Config.model_validate(prepared)
    except ValidationError as error:
        wrong = {_name(item): item for item in error.errors()}  # the last of several errors of a key
        lines = {name: _explain(item) for name, item in islice(wrong.items(), MOST_TOLD)}
        raise _refusal(origin, lines.values()) from error


def read_variables(variables: Mapping[str, str]) -> dict[str, tuple[str, object]]:
    """Return the settings that variables of the environment give: for the name of each, the key and the value.

    Raises:
        ConfigError: for a variable that begins as one of a section and is no key of it, and for an empty value.

    Example:
        >>> read_variables({"NDDUP_LOCAL_MEMORY": "8GB", "NDDUP_DEBUG": "1", "HOME": "/"})
        {'NDDUP_LOCAL_MEMORY': ('local.memory', '8GB')}
    """
    known = {
        f"{PREFIX}{section}_{key}".upper(): f"{section}.{key}" for section in _sections() for key in _keys_of(section)
    }
    known[f"{PREFIX}ENGINE"] = "engine"
    begins = tuple(f"{PREFIX}{section}_".upper() for section in _sections())
    given_by: dict[str, tuple[str, object]] = {}
    for name in sorted(name for name in variables if name.startswith(PREFIX)):
        if name in known and not variables[name].strip():
            raise _refusal(name, [EMPTY])
        if name in known:
            given_by[name] = known[name], _read_value(variables[name])
        elif name.startswith(begins):
            close = difflib.get_close_matches(name, known, n=1)
            raise _refusal(name, ["no setting" + "".join(f"; did you mean {one}?" for one in close)])
    return given_by


def read_stored(values: object, *, origin: str) -> Config:
    """Read the settings that a run or a repository stores: those that decide what is found, and no others.

    The folder may be anyone's, and settings of Spark start programs. So how and where this process computes is never
    read from it: the sections of `CALLERS` have their defaults, and no hidden secret becomes a value.

    Raises:
        ConfigError: as `build_config`, and for anything but sections of settings.
    """
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise _refusal(origin, ["expected sections of settings"])
    return build_config(take_deciding(values), origin=origin)


def require_callers(config: Config, *, origin: str) -> Config:
    """Return the settings of a caller who opens a repository.

    Raises:
        ConfigError: if they include one that the repository fixes.
    """
    fixed = sorted(config.model_fields_set - CALLERS)
    if fixed:
        raise _refusal(
            origin, [f"{fixed[0]}: is fixed when a repository is made; expected {', '.join(sorted(CALLERS))}"]
        )
    return config


def _read_yaml(path: str) -> dict[str, Any]:
    try:
        profile = None if Path(path).exists() else profiles().get(path)
        with (profile or Path(path)).open(encoding="utf-8") as file:
            values = read_yaml(file.read(LONGEST_FILE + 1)) or {}
    except OSError as error:
        if _NAME.fullmatch(path) and not Path(path).exists():
            raise ConfigError(f"{path}: neither a file nor a profile; profiles: {', '.join(profiles())}") from error
        raise ConfigError(f"{path}: cannot read the configuration ({error.strerror})") from error
    except UNREADABLE as error:
        raise _refusal(path, [yaml_reason(error)]) from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected sections such as `sketch:`, got {type(values).__name__}")
    return {section: {} if content is None else content for section, content in values.items()}


def _read_value(text: str) -> object:
    """Read a value as YAML; return the text itself if it is not YAML, such as the path `@id` or the date 2001-13-45."""
    try:
        return read_yaml(text)
    except RepeatedKeyError as error:
        raise _refusal("--set", [str(error)]) from error
    except UNREADABLE:
        return text


def _assign(values: dict[str, Any], key: str, value: object) -> None:
    section, _, name = key.partition(".")
    if section == "spark":
        name = key
    if section == "engine" and not name:
        values[section] = value
        return
    if not name:
        owners = [owner for owner in _sections() if key in _keys_of(owner)]
        advice = (
            f"{key} is a setting of {owners[0]}: --set {owners[0]}.{key}=…" if owners else "expected section.key=value"
        )
        raise _refusal(
            f"--set {key}", [advice if owners else f"{advice}, a section is one of {', '.join(_sections())}"]
        )
    target = values.get(section)
    values[section] = {**(target if isinstance(target, dict) else {}), name: value}


def _spark_text(value: object, key: object, origin: str) -> str:
    if not isinstance(value, (str, int, float)):
        shown = _shown(hide_setting(str(key), value))
        raise _refusal(origin, [f"{key}: expected a text or a number, got {shown}"])
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refusal(origin: str, faults: Iterable[str]) -> ConfigError:
    """Return the error: one line that names the origin and says what is wrong with each key."""
    return ConfigError(f"{_line(origin)}: " + "; ".join(map(_line, faults)))


def _line(text: str) -> str:
    """Return a text as one line, cut after LONGEST characters."""
    short = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in short)


def _shown(value: object) -> str:
    """Return the repr of a value, shortened in the middle: YAML aliases can make a value of any length."""
    try:
        return _VALUES.repr(value)
    except ValueError:  # a number with more digits than Python writes
        return type(value).__name__


def _sections() -> list[str]:
    return list(Config.model_fields)


def _name(item: ErrorDetails) -> str:
    return ".".join(str(part) for part in item["loc"] if part not in {"int", "float", "str"}) or "configuration"


def _explain(item: ErrorDetails) -> str:
    name = _name(item)
    if item["type"] == "extra_forbidden":
        *section, key = item["loc"]  # a key may have dots of its own
        known = _keys_of(str(section[0])) if section else _sections()
        close = difflib.get_close_matches(str(key), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(known)}"
        above = [] if section else [one for one in _sections() if str(key).removeprefix(f"{one}.") in _keys_of(one)]
        if above and not close:
            hint = f"it belongs below {above[0]}: as {str(key).removeprefix(f'{above[0]}.')}"
        return f"{name}: unknown key; {hint}"
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "value_error":
        return f"{name}: {message}"
    value = item["input"]
    if item["type"] == "model_type":
        return f"{name}: expected keys with their values, such as {_keys_of(name)[0]}, got {_shown(value)}"
    is_one = item["type"] == "list_type" and isinstance(value, str) and len(value) < _VALUES.maxstring
    meant = f"; write {name}=[{value}]" if is_one else _number_meant(value)
    return f"{name}: {message}, got {_shown(value)}{meant}"


def _number_meant(value: object) -> str:
    """Say how to write a number that was given with a per cent sign or a decimal comma; "" for anything else."""
    meant = re.fullmatch(r"\s*(\d{1,9})(?:[.,](\d{1,9}))?\s*(%?)\s*", value) if isinstance(value, str) else None
    if meant is None or not (meant[2] or meant[3]):
        return ""
    number = float(f"{meant[1]}.{meant[2] or 0}") / (100 if meant[3] else 1)
    return f"; write {number:g}"


def _keys_of(section: str) -> list[str]:
    return list(getattr(Config.model_fields[section].annotation, "model_fields", {}))  # `spark` is a plain dictionary


def nest_settings(settings: Mapping[str, Any], *, origin: str) -> dict[str, Any]:
    """Turn dotted keys into sections: `{"pairs.threshold": 0.9}` becomes `{"pairs": {"threshold": 0.9}}`.

    Args:
        settings: sections, as mappings or as classes of `schema`, and dotted keys.
        origin: the function that was called, for messages.

    Raises:
        ConfigError: for a key without its section, and for the section `output`.
    """
    nested: dict[str, Any] = {}
    for key, given in settings.items():
        section, _, name = key.partition(".")
        value = given.model_dump(exclude_unset=True) if isinstance(given, Section) else given
        if not name and not isinstance(value, Mapping):
            sections = [known for known in _sections() if section in _keys_of(known)]
            hint = (
                f"; {section} is a setting of {sections[0]}: {sections[0]}={{{section!r}: {value!r}}}"
                if sections
                else ""
            )
            raise ConfigError(f"{origin}: {section}: expected a section such as pairs={{...}}, got {value!r}{hint}")
        if section == "output":
            raise ConfigError(f"{origin}: output: it writes no folder, the tables are returned; `nddup run` writes one")
        pairs = ({key: value} if section == "spark" else {name: value}) if name else value
        nested[section] = {**nested.get(section, {}), **pairs}
    return nested


def read_yaml(text: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return the value of a YAML text; None if it is empty.

    Cost: linear in its length and in `MOST_VALUES`: an alias stands for all that it names, so a few lines can mean any
    number of values. They are counted before any is made.

    Raises:
        YAMLError: if it is no YAML of plain values, a key occurs twice, a key of a section has no value, or a number is
            written to the base of 8 or 60.
        YamlBoundError: if it is too long, or holds too many values or too long a number.
        ValueError, ArithmeticError, LookupError, AttributeError: if it holds a number or a date that is none, or that
            Python cannot hold.
        RecursionError: if it is nested too deeply.
    """
    if len(text) > LONGEST_FILE:
        raise YamlBoundError(f"more than {LONGEST_FILE:,} characters")
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _count_values(node)
        _refuse_empty(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _refuse_empty(root: yaml.Node) -> None:
    for _, section in root.value if isinstance(root, yaml.MappingNode) else []:
        for key, value in section.value if isinstance(section, yaml.MappingNode) else []:
            if isinstance(value, yaml.ScalarNode) and not value.value and value.tag == NULL:
                line = key.start_mark.line + 1
                raise EmptyValueError(f"line {line}: the key {key.value} has no value; null stands for none")


def _count_values(root: yaml.Node) -> None:
    """Raise YamlBoundError for more values than allowed. Cost: linear in the file, however many its aliases mean."""
    above = set[int]()

    @cache
    def count(node: yaml.Node) -> int:
        if isinstance(node, yaml.ScalarNode):
            if node.tag in NUMBERS and len(node.value) > LONGEST_NUMBER:
                raise YamlBoundError(f"a number of more than {LONGEST_NUMBER:,} characters")
            if node.tag in NUMBERS and ODD.match(node.value):
                line = node.start_mark.line + 1
                raise OddNumberError(
                    f"line {line}: a number that begins with 0 or holds : is read to another base; write its digits"
                    " alone, or a text in quotes"
                )
            return 1 + len(node.value) // VALUE
        if id(node) in above:
            raise YamlBoundError("a value that holds itself")
        above.add(id(node))
        parts = node.value if isinstance(node, yaml.SequenceNode) else [one for pair in node.value for one in pair]
        values = 1 + sum(map(count, parts))
        above.discard(id(node))
        if values > MOST_VALUES:
            raise YamlBoundError(f"more than {MOST_VALUES:,} values of {VALUE} characters, with what its aliases name")
        return values

    count(root)


def yaml_reason(error: Exception) -> str:
    """Say why and where a text is not YAML, without quoting it, because it may hold a secret."""
    if isinstance(error, RepeatedKeyError | EmptyValueError | OddNumberError):
        return str(error)
    if isinstance(error, YamlBoundError):
        return f"not YAML: {error}"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8, in which YAML is read: save it in this encoding"
    if isinstance(error, yaml.reader.ReaderError):
        return f"not YAML: it holds U+{int(error.character):04X}, which is no character of a text"
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return f"not YAML: {type(error).__name__}"
    text = ", ".join(part for part in (error.context, error.problem) if part)
    place = f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"
    return _QUOTED.sub(lambda one: one[0] if _PLAIN.fullmatch(one[2]) else "a value", f"not YAML: {text} ({place})")
