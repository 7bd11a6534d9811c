"""Fuzz resuming: a run that is killed at random, damaged and resumed has the same tables, texts and counts.

A kill comes before, amid or after anything that the driver writes or removes. Damage is what a kill, a full disk or a
person leaves: files and folders gone, cut, grown, or overwritten with data of another length. (Of a table only names
and sizes of files are compared, so no resume finds bytes that changed within a file.)
"""

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from nddup.embedded.run import run_locally
from nddup.ground.metrics import ENGINES_OWN
from nddup.settings.load import build_config
from nddup.spark.run import run_job
from nddup.spark.session_files import Storage
from nddup.spark.session_tables import SparkFolder
from nddup.storage.local_folder import LocalFolder
from nddup.storage.local_storage import LocalStorage
from nddup.tables import RESULTS

SETTINGS: dict[str, Any] = {
    "shingle": {"length": 2},
    "sketch": {"size": 20},
    "pairs": {"threshold": 0.5},
    "output": {"kept": "jsonl"},
}
UNMEASURED = ENGINES_OWN | {"settings"}
SPARKS_SHARE = 4
"""One attempt in SPARKS_SHARE uses Spark, the others the embedded engine; each continues what the other left."""

MOST_KILLS = 3
"""Most kills of a run before it may end."""


class KilledError(BaseException):
    """The driver dies here; nothing catches it."""


def write_pages(folder: Path) -> None:
    """Write families of three, two and one, equal pages and a broken line."""
    words = random.Random(1)  # noqa: S311 - pages
    lines = ["{broken\n"]
    for size, changes in [(3, 1), (2, 1), (2, 0), (1, 0), (1, 0)]:
        base = [f"w{words.randrange(1000)}" for _ in range(30)]
        for _ in range(size):
            page = list(base)
            for _ in range(changes):
                page[words.randrange(30)] = f"x{words.randrange(1000)}"
            lines.append(json.dumps({"id": str(len(lines)), "text": " ".join(page)}) + "\n")
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text("".join(lines[:6]))
    (folder / "b.jsonl").write_text("".join(lines[6:]))


def result(output: Path) -> dict[str, Any]:
    """Return the tables as sorted rows, the texts beside them, and the counts."""
    folder = LocalFolder(str(output))
    metrics = folder.open()
    tables: dict[str, Any] = {name: sorted(map(repr, folder.read(name).to_pylist())) for name in RESULTS}
    kept = sorted(line for part in (output / "kept").glob("part-*") for line in part.read_text().splitlines())
    return tables | {"kept": kept, "duplicates": (output / "duplicates.txt").read_text(), "counts": _counts(metrics)}


def _counts(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {key: _counts(item) for key, item in value.items() if key not in UNMEASURED}
    return value


@contextmanager
def killed_at(step: int, choose: random.Random) -> Iterator[list[int]]:
    """Kill the driver at its write or removal number `step`; the yielded list holds how many there were."""
    steps = [0]

    def killed(real: Callable[..., Any], amid: Callable[..., None]) -> Callable[..., Any]:
        def act(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            steps[0] += 1
            if steps[0] == step:
                amid(choose, partial(real, *arguments, **named), *arguments)
                raise KilledError
            return real(*arguments, **named)

        return act

    with ExitStack() as patches:
        for owner, name, amid in (
            (Storage, "write_text", _write_some),
            (LocalStorage, "write_text", _write_some),
            (Storage, "remove", _remove_or_not),
            (LocalStorage, "remove", _remove_or_not),
            (SparkFolder, "write", _write_some_files),
            (LocalFolder, "write", _write_some_files),
        ):
            patches.enter_context(patch.object(owner, name, killed(getattr(owner, name), amid)))
        yield steps


def _write_some(choose: random.Random, write: Callable[[], None], _: object, path: str, *__: object) -> None:
    """Write nothing, all, or the beginning of a text."""
    if choose.randrange(4):
        write()
        data = Path(path).read_bytes()
        Path(path).write_bytes(data[: choose.randrange(len(data) + 1)])
        Path(path).with_name(f".{Path(path).name}.crc").unlink(missing_ok=True)


def _remove_or_not(choose: random.Random, remove: Callable[[], None], *_: object) -> None:
    if choose.randrange(2):
        remove()


def _write_some_files(
    choose: random.Random, write: Callable[[], None], folder: SparkFolder, name: str, *_: object
) -> None:
    """Write a table, then remove some of its files."""
    write()
    for part in [*Path(folder._place(name)).iterdir()]:  # noqa: SLF001
        if choose.randrange(2):
            part.unlink()


def damage(output: Path, choose: random.Random) -> str:
    """Damage one file or folder of a run, but not `_RUN.json`; return what was done."""
    there = sorted(path for path in output.rglob("*") if path.name != "_RUN.json" and not path.name.endswith(".crc"))
    if not there:
        return "nothing"
    path = choose.choice(there)
    if path.is_dir():
        shutil.rmtree(path)
        return f"{path.relative_to(output)} removed"
    data = path.read_bytes()
    kind = choose.choice(("removed", "cut", "grown", "overwritten"))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    if kind == "removed" or (kind == "cut" and not data):
        path.unlink()
    elif kind == "cut":
        path.write_bytes(data[: choose.randrange(len(data))])
    elif kind == "grown":
        path.write_bytes(data + b"\0")
    else:
        path.write_bytes(choose.randbytes(len(data) + 1 + choose.randrange(100)))
    return f"{path.relative_to(output)} {kind}"


def disturb(spark: SparkSession, whole: Path, output: Path, choose: random.Random, steps: int) -> Iterator[str]:
    """Leave a run's folder as kills and damage do, from an empty or a finished one; yield what was done each time."""
    shutil.rmtree(output, ignore_errors=True)
    is_finished = choose.randrange(3) == 0
    if is_finished:
        shutil.copytree(whole, output)
    for _ in range(choose.randrange(1, MOST_KILLS + 1)):
        if output.exists() and choose.randrange(2):
            yield damage(output, choose)
        if is_finished and choose.randrange(2):
            continue
        step = choose.randrange(1, steps + 1)
        with killed_at(step, choose), suppress(KilledError):
            _run(spark, whole, output, choose)
        for claim in output.glob("_CLAIM-*"):  # its process, which is this one, is still alive
            claim.unlink()
        yield f"killed at {step}"
    if choose.randrange(2):
        yield damage(output, choose)


def _run(spark: SparkSession, whole: Path, output: Path, choose: random.Random) -> None:
    config, inputs = build_config(SETTINGS, origin="fuzz"), [str(whole.parent / "pages")]
    if choose.randrange(SPARKS_SHARE):
        run_locally(inputs, str(output), config, resume=True)
    else:
        run_job(spark, inputs, str(output), config, resume=True)


def fuzz_resumes(spark: SparkSession, resumes: int, seed: int, folder: Path) -> Counter[str]:
    """Resume `resumes` killed or damaged runs, and compare each with an undisturbed one.

    Raises:
        RuntimeError: naming the run and what was done to it, if it fails or its result differs.
    """
    output, whole = folder / "run", folder / "whole"
    write_pages(folder / "pages")
    with killed_at(0, random.Random(0)) as steps:  # noqa: S311
        _run(spark, whole, whole, random.Random(0))  # noqa: S311
    expected, seen = result(whole), Counter[str]()
    for number in range(resumes):
        choose = random.Random(f"{seed}/{number}")  # noqa: S311 - repeatable from the number
        done: list[str] = []
        try:
            for what in disturb(spark, whole, output, choose, steps[0]):
                done.append(what)  # noqa: PERF402 - complete up to a failure
            _run(spark, whole, output, choose)
            differs = [name for name, value in result(output).items() if value != expected[name]]
        except Exception as error:
            raise RuntimeError(f"resume {number} of seed {seed}: {'; '.join(done)}: {error!r}") from error
        if differs:
            raise RuntimeError(f"resume {number} of seed {seed}: {'; '.join(done)}: {', '.join(differs)} differ")
        seen.update("kills" if what.startswith("killed") else "damages" for what in done)
        seen["resumes"] += 1
    return seen
