"""The errors that nddup raises on purpose. Each is also a subclass of the built-in error a caller would expect."""

import re

from nddup.ground.shown import clean

_UNREADABLE = re.compile(r"Encountered error while reading file (\S+?)\.?\s")
"""Spark's message about a file that it cannot read."""


FULL = ("No space left on device", "Disk quota exceeded")
"""Messages of Linux for a full disk."""


class NddupError(Exception):
    """Base class: catch it to catch everything nddup raises on purpose. Secrets are removed from its message."""

    def __init__(self, message: object = "") -> None:
        super().__init__(clean(str(message)))


class ConfigError(NddupError, ValueError):
    """A setting, a path or an argument is missing, unknown, out of range or not yet available."""


class SchemaError(NddupError, TypeError):
    """A DataFrame lacks a column, or a column has the wrong type."""


class OutputError(NddupError, OSError):
    """A folder or file of results cannot be used, read or written; the classes below may be handled."""


class OutputExistsError(OutputError, FileExistsError):
    """What is to be written exists already; nothing in it was touched."""


class FolderInUseError(OutputError):
    """Another run that lives writes to the folder."""


class NotARunError(OutputError):
    """There is no folder, or it holds no run or repository of nddup."""


class UnfinishedRunError(OutputError):
    """The run did not finish, so what the folder holds is no result; `--resume` may finish it."""


class IncompatibleSketchError(NddupError, ValueError):
    """The sketches of a run were made in another format and cannot be compared with those of this version."""


class StoppedError(Exception):
    """A file cannot be read further; `reason` is the reason of the reject for the rest of the file."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class UnreachableError(NddupError):
    """A file elsewhere cannot be fetched whole, or is no longer the one that was listed; nothing of it is used."""


class NeedsSparkError(NddupError):
    """The embedded engine has too little memory for a collection; what it finished is in the run's folder."""


class CapacityError(NddupError, RuntimeError):
    """The work exceeds a stated limit of this version. The run stopped; nothing was dropped."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its type if the message is empty."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def reason_of(error: BaseException) -> str:
    """Return the one line of a long error that says what happened.

    It names the file that could not be read, the error of a Python worker, or the innermost cause. Too little memory is
    said as such, with what to do.
    """
    reason = _reason(error)
    if isinstance(error, MemoryError):
        return f"the process may take no more memory ({reason}): free some, or lower local.memory and local.processes"
    if reason.partition(":")[0].rpartition(".")[2].endswith("MemoryError"):
        return (
            f"a task needs more memory than its Python worker may take ({reason.rpartition('Error: ')[2]}):"
            " raise spark.executor.pyspark.memory, or lower spark.executor.cores"
        )
    if "Python worker exited unexpectedly" in reason:
        return f"{reason}: most often for lack of memory; raise it, with spark.executor.memoryOverhead on a cluster"
    return reason


def is_full(error: BaseException) -> bool:
    """Return whether a long error says that a disk is full, and not that a file cannot be read."""
    return any(mark in str(error) for mark in FULL)


def _reason(error: BaseException) -> str:
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]

    full = [line for line in [*causes, *lines] if any(mark in line for mark in FULL)]
    if full:
        return full[0]
    file = _UNREADABLE.search(" ".join(lines))
    if file:
        return f"{file[1]}: cannot be read ({causes[-1] if causes else lines[0]})"

    errors = [line for line in lines if line.partition(":")[0].rpartition(".")[2].endswith(("Error", "Exception"))]
    messages = [line for line in errors if "Traceback (most recent call last)" not in line]

    # The error of a worker contains a traceback; the worker's own message is the first line after that.
    if len(messages) < len(errors):
        return messages[0] if messages else errors[0]
    return (causes[-1:] or messages or lines or [type(error).__name__])[0]
