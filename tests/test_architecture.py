"""Who may import and call what: the rules that keep the mathematics, the Spark wiring and the actions apart."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = sorted((ROOT / "nddup").rglob("*.py"))
MODULES = [path for path in PACKAGE if path.name != "__init__.py" or path.parent.name == "nddup"]
ALGORITHMS = [path for path in MODULES if path.parent.name == "algorithms"]
STAGES = [path for path in MODULES if path.parent.name == "stages"]
JOBS = sorted((ROOT / "jobs").glob("*.py"))

ACTIONS = {"collect", "first", "head", "take", "toPandas", "toArrow", "toLocalIterator", "isEmpty", "show", "foreach"}
TAKING_ARGUMENTS = {"take", "count"}
"""Arrow and Python have methods of these names too, with an array or a value as argument."""

KEEPING = {"persist", "cache", "unpersist", "checkpoint", "localCheckpoint", "write", "writeTo", "writeStream"}
SESSIONS = {"getOrCreate", "newSession"}

ACTING = {
    "check", "clustering", "evaluate", "evidence", "gather", "job", "lexicons", "pairing", "pipeline", "show", "state",
    "store", "texts", "truth",
}  # fmt: skip
"""The modules that run Spark jobs: the order of the stages, the run, its storage, and who reads a finished run."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> set[str]:
    """List the modules a file imports, anywhere in it, `from a import b` as `a` and `a.b`."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def attributes(path: Path) -> Iterator[tuple[str, int]]:
    """List the attributes a file names, with their lines."""
    return ((node.attr, node.lineno) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute))


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def is_functions(node: ast.expr) -> bool:
    """Tell `F`, under which column functions are imported: `F.first` and `F.count` run nothing."""
    return isinstance(node, ast.Name) and node.id == "F"


def actions(path: Path) -> set[str]:
    """List the Spark actions a file calls: by name; `count()` unless it follows `groupBy`."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or is_functions(node.func.value):
            continue
        of_group = isinstance(node.func.value, ast.Call) and "groupBy" in ast.unparse(node.func.value.func)
        is_action = node.func.attr in ACTIONS or (node.func.attr == "count" and not of_group)
        if is_action and not (node.func.attr in TAKING_ARGUMENTS and node.args):
            found.add(f"{node.func.attr} in line {node.lineno}")
    return found


def public_functions(path: Path) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """List the functions and classes of a module, and the methods of its classes, that others may use."""
    waiting: list[ast.stmt] = list(tree_of(path).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                waiting += node.body


@pytest.mark.parametrize("path", ALGORITHMS, ids=name_of)
def test_the_mathematics_knows_neither_spark_nor_settings(path: Path) -> None:
    """An algorithm imports no pyspark, no config, and nothing of the layers above it."""
    above = (
        "pyspark",
        "py4j",
        "nddup.config",
        "nddup.settings",
        "nddup.schemas",
        "nddup.stages",
        "nddup.pairing",
        "nddup.pipeline",
        "nddup.job",
    )

    assert {module for module in imports(path) if any(is_within(module, package) for package in above)} == set()


@pytest.mark.parametrize("path", STAGES, ids=name_of)
def test_a_stage_is_lazy(path: Path) -> None:
    """A stage runs nothing, keeps nothing, writes nothing and makes no session."""
    named = {f"{name} in line {line}" for name, line in attributes(path) if name in KEEPING | SESSIONS}

    assert named | actions(path) == set()


@pytest.mark.parametrize("path", STAGES, ids=name_of)
def test_a_stage_knows_no_settings(path: Path) -> None:
    """A stage takes plain arguments: it imports neither config nor the layers above it."""
    above = (
        "nddup.config",
        "nddup.settings",
        "nddup.pairing",
        "nddup.pipeline",
        "nddup.job",
        "nddup.store",
        "nddup.storage",
        "nddup.session",
        "nddup.cli",
        "nddup.commands",
    )

    assert {module for module in imports(path) if any(is_within(module, package) for package in above)} == set()


def test_fitting_is_the_one_action_of_a_stage() -> None:
    """MLlib's `fit` is called once, in `clusters`."""
    fitting = [path.name for path in STAGES for name, _ in attributes(path) if name == "fit"]

    assert fitting == ["clusters.py"]


def test_only_these_modules_run_spark_jobs() -> None:
    """Actions are called by the pipeline, the run, its storage, and the readers of a finished run."""
    acting = {path.stem for path in MODULES if actions(path)}

    assert acting <= ACTING


@pytest.mark.parametrize(("name", "owners"), [("_jvm", {"storage.py"}), ("_jsc", {"storage.py", "session.py"})])
def test_the_jvm_is_touched_in_one_place(name: str, owners: set[str]) -> None:
    """Hadoop's FileSystem is reached from `storage`; `session` reads the status of its own context."""
    touching = {path.name for path in MODULES for attribute, _ in attributes(path) if attribute == name}

    assert touching <= owners


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_runs_over_rdds(path: Path) -> None:
    """Tables are DataFrames from end to end."""
    assert {f"{name} in line {line}" for name, line in attributes(path) if name in {"rdd", "parallelize"}} == set()


def test_no_module_is_called_by_what_it_lacks() -> None:
    """A function with no home is missing its concept."""
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "core", "tools"}

    assert {name_of(path) for path in PACKAGE if path.stem in vague or path.parent.name in vague} == set()


@pytest.mark.parametrize("path", JOBS, ids=name_of)
def test_a_job_holds_no_functions(path: Path) -> None:
    """Executors import the package by name; what a job file defined, they would not find."""
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

    assert [node.lineno for node in ast.walk(tree_of(path)) if isinstance(node, defined)] == []


@pytest.mark.parametrize("path", [*MODULES, *JOBS], ids=name_of)
def test_everything_public_says_what_it_is(path: Path) -> None:
    """Every module, and every public class, function and method, has a docstring."""
    silent = [f"{node.name} in line {node.lineno}" for node in public_functions(path) if not ast.get_docstring(node)]

    assert ast.get_docstring(tree_of(path))
    assert silent == []
