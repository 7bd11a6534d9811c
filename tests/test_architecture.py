"""The import and call rules that keep the mathematics, the Spark wiring and the Spark actions apart."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = sorted((ROOT / "nddup").rglob("*.py"))
MODULES = [path for path in PACKAGE if path.name != "__init__.py" or path.parent.name == "nddup"]
JOBS = sorted((ROOT / "jobs").glob("*.py"))

GROUND = {"errors", "ground"}
PURE = {"reading", "rewriting", "sketching", "scanning", "matching", "mining", "verifying"}
LAZY = {"spark", "spark.scan", "spark.hadoop_files", "spark.pairing", "spark.clustering", "spark.passages"}
"""Functions of DataFrames: they run no job."""

MAY_IMPORT: dict[str, set[str]] = {
    "errors": {"ground"},
    "tables": set(),
    "ground": {"errors", "tables"},
    "remote": GROUND,
    "reading": GROUND,
    "rewriting": GROUND | {"reading"},
    "sketching": GROUND,
    "scanning": GROUND | {"reading", "remote", "sketching", "tables"},
    "matching": GROUND,
    "matching.lookups": GROUND | {"matching", "sketching"},
    "mining": GROUND | {"matching", "tables"},
    "verifying": GROUND,
    "settings": GROUND | {"matching", "mining", "sketching", "scanning"},
    "explaining": {"settings"},
    "storage": GROUND | {"sketching", "scanning"},
    "engines": GROUND | {"tables", "storage", "settings"},
    "engines.choose": {"embedded"},
    "stages": {"engines", "settings", "rewriting", "report", "splitting", "diffing"},
    "report": {"engines", "settings"},
    # An engine each: what only it does.
    "embedded": {"settings", "scanning", "rewriting", "mining", "verifying", "engines", "stages", "matching.lookups"},
    "embedded.run": {"embedded", "engines.choose", "compiling"},
    "spark": GROUND | {"tables"},
    "spark.session_access": {"errors"},
    "spark.hadoop_files": {"scanning", "spark"},
    "spark.scan": {"rewriting", "spark.hadoop_files"},
    "spark.pairing": {"sketching", "matching", "mining", "spark"},
    "spark.clustering": {"mining", "spark"},
    "spark.passages": {"passages", "spark", "spark.pairing"},
    "spark.session_files": {"storage", "spark", "spark.session_access"},
    "spark.session_tables": {"spark.session_files"},
    "spark.engine": {"engines", "spark.session_tables"},
    "spark.java": {"storage"},
    "spark.session": {"engines.choose", "spark.java", "spark.session_access"},
    "spark.daemon": {"compiling"},
    "spark.steps": LAZY | PURE | {"embedded", "spark.engine", "spark.session"},
    "spark.run": {"spark.steps"},
    "spark.inputs_given": {"against.compare_collections", "passages.find_passages", "spark.run"},
    "spark.runs_given": {"splitting.write_split", "diffing.diff_tables", "results"},
    # A feature each: first its mathematics, then what joins it to files and engines.
    "against": GROUND | {"reading", "sketching", "scanning", "tables"},
    "passages": {"against", "rewriting"},
    "splitting": GROUND,
    "diffing": GROUND,
    "checking": {"verifying", "tables"},
    "repository": {"embedded.run", "spark.run", "matching.lookups"},
    "compiling": {"against", "embedded", "passages", "matching.lookups", *LAZY},
    "serving": {"repository"},
    "results": {"against", "spark.run", "explaining"},
    "evaluating": {"results", "embedded.run", "verifying"},
    "api": {"results", "splitting.write_split", "diffing.diff_tables", "embedded.run"},
    "commands": {"evaluating", "repository", "serving", "checking.check_run", "spark.inputs_given",
                 "spark.runs_given", "passages.prove_passages",
                 "splitting.prove_split"},
    "cli": {"commands"},
    "__main__": {"cli"},
    "": {"api"},
}  # fmt: skip
"""The rooms that each room may import, together with all that those may import. `checking` and `verifying` reach
neither `matching` nor `mining`, even indirectly: `nddup check` is independent of the code that it checks."""

JOINING = {
    "against": ("against_inputs", "against_output", "compare_collections", "copies_of"),
    "passages": ("find_passages", "passages_output", "prove_passages", "show_passages"),
    "splitting": ("prove_split", "write_split"),
    "diffing": ("diff_tables",),
    "checking": ("check_run", "compared_texts", "evidence"),
}
"""Of each feature, the modules that join its mathematics to files and engines."""
MAY_IMPORT |= {
    f"{room}.{name}": {room, "results", "embedded.run", "checking.check_run", "against.compare_collections"}
    | {f"{room}.{other}" for other in names}
    for room, names in JOINING.items()
    for name in names
}

ACTING = {
    "spark.session_access", "spark.session_files", "spark.session_tables", "spark.engine", "spark.steps", "spark.run",
    "spark.inputs_given", "spark.runs_given", "results", "api",
}  # fmt: skip
"""The rooms that run Spark jobs."""

ACTIONS = {"collect", "first", "head", "take", "toPandas", "toArrow", "toLocalIterator", "isEmpty", "show", "foreach"}
TAKING_ARGUMENTS = {"take", "count", "head"}
"""Names that are also methods of Arrow and Python, which take an array or a value as argument."""

KEEPING = {"persist", "cache", "unpersist", "checkpoint", "localCheckpoint", "write", "writeTo", "writeStream"}
SESSIONS = {"getOrCreate", "newSession"}

LONGEST = 650
"""Maximum number of lines of a file."""

LONGEST_HEADER = 12
"""Maximum number of lines of a module docstring: its one topic, its public names, why. More belongs to a function."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room_of_module(module: str) -> str:
    """Return the room of a dotted module name: the longest prefix that has a rule, or "" for the package itself."""
    parts = module.split(".")[1:]
    return next((".".join(parts[:size]) for size in (2, 1) if ".".join(parts[:size]) in MAY_IMPORT), "")


def room_of(path: Path) -> str:
    return room_of_module(module_of(path))


def engine_of(room: str) -> str:
    """Return the first part of a room's name: an engine's folder, or a feature's."""
    return room.partition(".")[0]


def allowed(room: str) -> set[str]:
    """Return the rooms that a room may import, directly or through other rooms."""
    found: set[str] = set()
    waiting = set(MAY_IMPORT[room])
    while waiting:
        found |= waiting
        waiting = {further for known in waiting for further in MAY_IMPORT[known]} - found
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> set[str]:
    """Return the modules that a file imports, anywhere in it; `from a import b` counts as `a` and `a.b`."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def attributes(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the attributes that a file names, with their line numbers."""
    return ((node.attr, node.lineno) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute))


def offenders(paths: Iterable[Path], found: Callable[[Path], Iterable[str]]) -> dict[str, list[str]]:
    """Return what a rule finds wrong, by the file; a file without fault is left out."""
    told = {name_of(path): sorted(found(path)) for path in paths}
    return {name: faults for name, faults in told.items() if faults}


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def named(path: Path, names: set[str]) -> set[str]:
    """Return where a file names one of these attributes."""
    return {f"{name} in line {line}" for name, line in attributes(path) if name in names}


def is_functions(node: ast.expr) -> bool:
    """Return whether the node is `F`, the module of column functions: `F.first` and `F.count` run no job."""
    return isinstance(node, ast.Name) and node.id == "F"


def actions(path: Path) -> set[str]:
    """Return the Spark actions that a file calls, recognised by name; `count()` is one unless it follows `groupBy`."""
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
    """Yield the public functions and classes of a module, and the public methods of its classes."""
    waiting: list[ast.stmt] = list(tree_of(path).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                waiting += node.body


def test_a_module_imports_only_what_its_room_may() -> None:
    """A module imports only rooms on the allow-list of its own room, also in packages that are added later."""

    def forbidden(path: Path) -> set[str]:
        room = room_of(path)
        reached = {room_of_module(module) for module in imports(path) if is_within(module, "nddup")}
        return reached - {room, ""} - allowed(room)

    assert offenders(PACKAGE, forbidden) == {}


def test_every_package_has_a_rule() -> None:
    """Every package, new ones included, has an entry in `MAY_IMPORT`."""
    assert {room_of(path) for path in PACKAGE} <= set(MAY_IMPORT)


def test_pyspark_is_imported_in_its_own_room_and_the_api_alone() -> None:
    """No other room imports pyspark or py4j, anywhere in a module."""
    others = [path for path in PACKAGE if engine_of(room_of(path)) not in {"spark", "api"}]

    assert offenders(others, lambda path: {m for m in imports(path) if m.split(".")[0] in {"pyspark", "py4j"}}) == {}


def test_importing_the_other_rooms_loads_no_spark() -> None:
    """Importing every module outside `spark` and `api` loads no pyspark; a failure names the module that loaded it.

    `compiling` compiles the kernels of Spark's tasks too.
    """
    rooms = {path: engine_of(room_of(path)) for path in PACKAGE}
    names = [module_of(path) for path, room in rooms.items() if room not in {"spark", "api", "compiling", "__main__"}]
    program = f"""
import importlib, sys
for name in {names}:
    importlib.import_module(name)
    if "pyspark" in sys.modules:
        sys.exit(name)
"""

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_no_two_modules_share_a_name_but_counterparts() -> None:
    """A module name belongs to one room; `commands` and the engines may use the names of their counterparts."""
    places: dict[str, set[str]] = {}
    for path in MODULES:
        places.setdefault(path.stem, set()).add(engine_of(room_of(path)))
    counterparts = {"commands", "embedded", "spark"}

    twice = {stem: rooms for stem, rooms in places.items() if stem != "__init__" and len(rooms - counterparts) > 1}

    assert twice == {}


def test_no_two_modules_of_tests_share_a_name() -> None:
    """A module of the tests has a name of its own: pytest imports each by its name alone."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name not in {"conftest.py", "__init__.py"}]

    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_imports_make_no_circle() -> None:
    """Imports have no cycles, so modules can be read in an order in which each follows those it imports."""
    graph = {module_of(path): {name for name in imports(path) if is_within(name, "nddup")} for path in PACKAGE}
    known = set(graph)
    waiting = {
        name: {needed for needed in needs if needed in known and needed != name} for name, needs in graph.items()
    }
    del waiting["nddup"]  # loads `api` only when `find_duplicates` or `open` is used
    while free := [name for name, needs in waiting.items() if not needs & set(waiting)]:
        for name in free:
            del waiting[name]

    assert waiting == {}


def test_a_stage_is_lazy() -> None:
    """A stage runs no Spark action, caches nothing, writes nothing and creates no session."""
    lazy = [path for path in MODULES if room_of(path) in LAZY]

    assert offenders(lazy, lambda path: actions(path) | named(path, KEEPING | SESSIONS)) == {}


def test_fitting_is_the_one_action_of_a_stage() -> None:
    """Among the stages, MLlib's `fit` is called once, in `mine_components`."""
    fitting = [path.name for path in MODULES if room_of(path) in LAZY for name, _ in attributes(path) if name == "fit"]

    assert fitting == ["mine_components.py"]


def test_only_these_rooms_run_spark_jobs() -> None:
    """Spark actions are called only by a run, by its storage, and by code that reads a finished run."""
    acting = {room_of(path) for path in MODULES if actions(path)}

    assert acting <= ACTING


@pytest.mark.parametrize(
    ("name", "owners"),
    [
        ("_jvm", {"session_files.py", "java.py"}),
        ("_jsc", {"session_files.py", "java.py", "session_access.py"}),
        ("sparkContext", {"java.py", "session_access.py"}),
    ],
)
def test_the_jvm_is_touched_in_one_place(name: str, owners: set[str]) -> None:
    """Only storage (Hadoop's files) and `session_access` (the context) touch the JVM, which Spark Connect lacks."""
    touching = {path.name for path in MODULES for attribute, _ in attributes(path) if attribute == name}

    assert touching <= owners


def test_an_engine_holds_no_mathematics() -> None:
    """No kernel is compiled in a module of an engine: these move rows to the kernels of the pure rooms."""
    engines = [path for path in MODULES if engine_of(room_of(path)) in {"embedded", "spark"}]

    assert offenders(engines, lambda path: imports(path) & {"nddup.ground.kernels.compiled", "numba"}) == {}


def test_nothing_runs_over_rdds() -> None:
    """No module uses RDDs: tables are DataFrames from end to end."""
    assert offenders(MODULES, lambda path: named(path, {"rdd", "parallelize"})) == {}


def test_no_module_is_called_by_what_it_lacks() -> None:
    """No module or package has a vague name such as `utils`: its functions belong to a concept that has a name."""
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "core", "tools"}

    assert {name_of(path) for path in PACKAGE if path.stem in vague or path.parent.name in vague} == set()


def test_a_job_holds_no_functions() -> None:
    """A job file defines no function or class: executors import the package by name and would not find them."""
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

    def found(path: Path) -> Iterator[str]:
        return (f"line {node.lineno}" for node in ast.walk(tree_of(path)) if isinstance(node, defined))

    assert offenders(JOBS, found) == {}


def test_everything_public_says_what_it_is() -> None:
    """Every module and every public class, function and method has a docstring."""

    def silent(path: Path) -> Iterator[str]:
        if not ast.get_docstring(tree_of(path)):
            yield "the module"
        for node in public_functions(path):
            if not ast.get_docstring(node):
                yield f"{node.name} in line {node.lineno}"

    assert offenders([*MODULES, *JOBS], silent) == {}


def test_a_module_docstring_has_one_topic() -> None:
    """No module docstring is longer than `LONGEST_HEADER`; facts about one function or constant stand there."""
    headers = {name_of(path): ast.get_docstring(tree_of(path)) or "" for path in PACKAGE}
    lengths = {name: header.count("\n") + 1 for name, header in headers.items()}

    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_HEADER} == {}


def names_in(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, context)}


def low_constants(path: Path) -> Iterator[str]:
    """Yield the constants below the first function of a module that name nothing defined there."""
    body = tree_of(path).body
    is_function = [isinstance(node, ast.FunctionDef) for node in body]
    below = body[is_function.index(True) :] if any(is_function) else []
    defined = {node.name for node in below if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in below:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and (made := names_in(node, ast.Store)):
            if names_in(node, ast.Load) & defined:
                defined |= made
            else:
                yield from sorted(made)


def test_constants_stand_above_functions() -> None:
    """A constant stands above the first function of its module, unless a function or class below it makes its value."""
    assert offenders(PACKAGE, low_constants) == {}


def test_no_file_is_too_long_to_hold_one_concept() -> None:
    """No module and no test file is longer than `LONGEST`; most have 100 to 600 lines."""
    files = [*PACKAGE, *JOBS, *sorted((ROOT / "scripts").glob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]
    lengths = {name_of(path): path.read_text(encoding="utf-8").count("\n") for path in files}

    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}
