"""Names that say nothing, and types that are none: lists that only shrink."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.places import ROOT

PACKAGE = sorted((ROOT / "nddup").rglob("*.py"))

STILL_USED = {"found": 1, "held": 0, "told": 0, "said": 0, "some": 0, "own": 0, "how": 2}
"""How often each of these words is still the name of a value: a noun says what the value is, such as `matches`.

Lower a number as soon as fewer are left; none may grow."""

UNTYPED = 40
"""How many signatures may still have a value of any type."""


def names_in(path: Path) -> Iterator[str]:
    """Yield each name that a module gives: to a value, an argument, a function or a class."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def test_names_are_nouns() -> None:
    """No participle or pronoun is a name more often than `STILL_USED` says."""
    names = Counter(name for path in PACKAGE for name in names_in(path))

    assert {name: names[name] for name, limit in STILL_USED.items() if names[name] > limit} == {}


def test_few_values_have_no_type() -> None:
    """Values of any type are counted, and become fewer."""
    untyped = sum(path.read_text(encoding="utf-8").count("noqa: ANN401") for path in PACKAGE)

    assert untyped <= UNTYPED
