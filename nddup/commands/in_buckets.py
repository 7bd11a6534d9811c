"""Results in a bucket for every command: a folder of this machine stands for them while the command works."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from nddup.errors import ConfigError, NddupError, OutputError
from nddup.ground.shown import print_out, spell_size
from nddup.remote.addresses import WEB, is_bucket, is_remote, scheme_of, spell_bare

if TYPE_CHECKING:
    from nddup.storage.bucket_run import BucketRun

READ = ("run", "onto")
"""Arguments that name finished results, to which some commands add a report or a note."""

BOTH = 2
"""Of the runs that `diff` compares; one alone is a repository."""

WRITING = frozenset(["run", "passages", "split"])
"""Commands whose --output is a folder of results."""

REPOSITORIES = ("repo", "also")

FILES = ("truth", "grid", "config", "file", "png")
"""Arguments that name a file which is read or written on this machine alone."""


def execute_with_buckets(execute: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Execute a command; results that it names in a bucket are fetched before, and what it wrote is sent after it.

    On Spark the addresses stay as they are: Hadoop opens them.

    Raises:
        ConfigError: for an argument whose address is of no use to the command.
        OutputError: if --output is the run that another argument names.
        NddupError: as `BucketRun`, and the command itself.
    """
    if not _is_here(options):
        return execute(options)
    _require_places(options)
    sent, fetched = _bring(options)
    try:
        status = execute(options)
    except NddupError as error:
        for run in (*sent, *fetched):
            error.args = tuple(str(part).replace(str(run.path), run.name) for part in error.args)
        raise
    for run in sent:
        files, size = run.send()
        if files and not getattr(options, "json", False):
            print_out(f"  sent to {run.name}: {files:,} files, {spell_size(size)}\n")
    return status


def _bring(options: argparse.Namespace) -> "tuple[list[BucketRun], list[BucketRun]]":
    """Name folders of this machine in the options, instead of results in a bucket; return those to be sent, and others.

    Raises OutputError and ConfigError, as `BucketRun`.
    """
    read = [name for name in READ if _names_bucket(options, name)]
    is_made = options.command in WRITING and _names_bucket(options, "output")
    compared = getattr(options, "runs", [])
    is_compared = len(compared) == BOTH and any(map(is_bucket, compared))
    kept_of = _kept_of(options)
    if not (read or is_made or is_compared or kept_of):
        return [], []
    from nddup.storage.bucket_run import BucketRun  # noqa: PLC0415 - most results are on this machine

    sent, fetched = [BucketRun(getattr(options, name)) for name in read], list[BucketRun]()

    def fetch(path: str) -> str:
        fetched.append(BucketRun(path))
        return fetched[-1].fetch()

    for name, run in zip(read, sent, strict=True):
        setattr(options, name, run.fetch())
    if is_compared:
        options.runs = [fetch(path) if is_bucket(path) else path for path in compared]
    if kept_of:
        options.inputs = [fetch(kept_of)]
    if is_made:
        made = BucketRun(options.output)
        if made.name in {*(run.name for run in sent), (getattr(options, "names_from", None) or "").rstrip("/")}:
            raise OutputError(f"--output {made.name}: is the run that this one follows; give another folder")
        sent.append(made)
        flags = {name: bool(getattr(options, name, False)) for name in ("overwrite", "resume")}
        made.begin(getattr(options, "inputs", []) or [], **flags)
        options.output = str(made.path)
    return sent, fetched


def _require_places(options: argparse.Namespace) -> None:
    """Refuse an address where the command takes a path of this machine, or addresses of other schemes."""
    for name in (*READ, "runs", *REPOSITORIES, "output", "output_kept", *FILES):
        value = getattr(options, name, None)
        is_stored = name in (*READ, "runs", *REPOSITORIES) or (name == "output" and options.command in WRITING)
        for path in filter(is_remote, value if isinstance(value, list) else [value or ""]):
            is_fit = scheme_of(path) not in WEB if name in REPOSITORIES else is_stored and is_bucket(path)
            if not is_fit:
                where = "of this machine, or of a bucket (s3, gs, az)" if is_stored else "of this machine"
                what = "a file" if name in FILES else "a folder"
                raise ConfigError(f"{_spell(name)}{spell_bare(path)}: expected {what} {where}")


def _spell(name: str) -> str:
    return "" if name in ("run", "runs", "repo", "file") else f"--{name.replace('_', '-')} "


def _kept_of(options: argparse.Namespace) -> str:
    """Return the address of the run whose kept documents `nddup passages` reads; empty if it reads other inputs."""
    inputs = getattr(options, "inputs", None) or []
    if options.command != "passages" or len(inputs) != 1 or not is_bucket(inputs[0]):
        return ""
    from nddup.remote.fetch import list_remote  # noqa: PLC0415
    from nddup.scanning.input_files import RUN  # noqa: PLC0415

    return str(inputs[0]) if RUN in list_remote(inputs[0]) else ""


def _names_bucket(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name, None)
    return isinstance(value, str) and is_bucket(value)


def _is_here(options: argparse.Namespace) -> bool:
    """Return whether the command surely does not run on Spark."""
    from nddup.storage.local_storage import is_submitted  # noqa: PLC0415

    asked = any(text.startswith(("spark.", "engine=spark")) for text in getattr(options, "assignments", []))
    is_spark = asked or getattr(options, "engine", None) == "spark" or getattr(options, "master", None) is not None
    return not is_spark and not is_submitted()
