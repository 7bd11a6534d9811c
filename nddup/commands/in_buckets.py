"""Results in a bucket for every command: a folder of this machine stands for them while the command works."""

import argparse
from collections.abc import Callable

from nddup.ground.shown import print_out, spell_size
from nddup.remote.addresses import is_bucket

READ = ("run", "onto")
"""Arguments that name finished results, to which some commands add a report or a note."""

BOTH = 2
"""Of the runs that `diff` compares; one alone is a repository."""

WRITING = frozenset(["run", "passages", "split"])
"""Commands whose --output is a folder of results."""


def execute_with_buckets(execute: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Execute a command; results that it names in a bucket are fetched before, and what it wrote is sent after it.

    On Spark the addresses stay as they are: Hadoop opens them.

    Raises:
        NddupError: as `BucketRun`, and the command itself.
    """
    if not _is_here(options):
        return execute(options)
    read = [name for name in READ if _names_bucket(options, name)]
    is_made = options.command in WRITING and _names_bucket(options, "output")
    compared = getattr(options, "runs", [])
    is_compared = len(compared) == BOTH and any(map(is_bucket, compared))
    if not (read or is_made or is_compared):
        return execute(options)
    from nddup.storage.bucket_run import BucketRun  # noqa: PLC0415 - most results are on this machine

    runs: list[BucketRun] = []
    for name in read:
        runs.append(BucketRun(getattr(options, name)))
        setattr(options, name, runs[-1].fetch())
    if is_compared:
        options.runs = [BucketRun(path).fetch() if is_bucket(path) else path for path in compared]
    if is_made:
        runs.append(BucketRun(options.output))
        flags = {name: bool(getattr(options, name, False)) for name in ("overwrite", "resume")}
        runs[-1].begin(getattr(options, "inputs", []) or [], **flags)
        options.output = str(runs[-1].path)
    status = execute(options)
    for run in runs:
        files, size = run.send()
        if files and not getattr(options, "json", False):
            print_out(f"  sent to {run.name}: {files:,} files, {spell_size(size)}\n")
    return status


def _names_bucket(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name, None)
    return isinstance(value, str) and is_bucket(value)


def _is_here(options: argparse.Namespace) -> bool:
    """Return whether the command surely does not run on Spark."""
    from nddup.storage.local_storage import is_submitted  # noqa: PLC0415

    asked = any(text.startswith(("spark.", "engine=spark")) for text in getattr(options, "assignments", []))
    is_spark = asked or getattr(options, "engine", None) == "spark" or getattr(options, "master", None) is not None
    return not is_spark and not is_submitted()
