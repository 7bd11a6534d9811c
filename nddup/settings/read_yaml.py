"""Read YAML files of bounded cost: an alias stands for all that it names, so a few lines can mean any number of values.

A file is composed first, which costs its length. What its aliases mean is then counted, and only a file with few values
is made into these.
"""

import re
from functools import cache
from typing import Any

import yaml

LONGEST = 1 << 20
"""Maximum number of characters of a file."""

MOST_VALUES = 100_000
"""Maximum number of values in a file, each alias counted as all that it names; a long text is several."""

VALUE = 100
"""Characters of a text that count as one value."""

LONGEST_NUMBER = 10_000
"""Maximum number of characters of a number: YAML reads `1:30` to the base of 60, in time quadratic in its length."""

EMPTY = "tag:yaml.org,2002:null"
ODD = re.compile(r"[-+]?(0[0-9_]+$|[^:]*:)")
NUMBERS = frozenset(["tag:yaml.org,2002:int", "tag:yaml.org,2002:float"])


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


UNREADABLE = (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)
"""The errors of `read_yaml`: also Python's own for values that look like, or are tagged as, dates and numbers."""


def read_yaml(text: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return the value of a YAML text; None if it is empty.

    Raises:
        YAMLError: if it is no YAML of plain values, a key occurs twice, a key of a section has no value, or a number is
            written to the base of 8 or 60.
        YamlBoundError: if it is too long, or holds too many values or too long a number.
        ValueError, ArithmeticError, LookupError, AttributeError: if it holds a number or a date that is none, or that
            Python cannot hold.
        RecursionError: if it is nested too deeply.
    """
    if len(text) > LONGEST:
        raise YamlBoundError(f"more than {LONGEST:,} characters")
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
            if isinstance(value, yaml.ScalarNode) and not value.value and value.tag == EMPTY:
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
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return f"not YAML: {type(error).__name__}"
    text = ", ".join(part for part in (error.context, error.problem) if part)
    place = f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"
    return re.sub(r"(['\"])[^'\"]{2,}\1", "a value", f"not YAML: {text} ({place})")
