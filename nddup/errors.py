"""The errors that nddup raises on purpose. Each is also a subclass of the built-in error a caller would expect."""

from nddup.redaction import clean


class NddupError(Exception):
    """Base class: catch it to catch everything nddup raises on purpose. Secrets are removed from its message."""

    def __init__(self, message: object = "") -> None:
        super().__init__(clean(str(message)))


class ConfigError(NddupError, ValueError):
    """A setting, a path or an argument is missing, unknown, out of range or not yet available."""


class SchemaError(NddupError, TypeError):
    """A DataFrame lacks a column, or a column has the wrong type."""


class OutputError(NddupError, OSError):
    """The output folder already exists, is not a run, is unfinished, in use, or cannot be written."""


class IncompatibleSketchError(NddupError, ValueError):
    """The sketches of a run were made in another format and cannot be compared with those of this version."""


class NeedsSparkError(NddupError):
    """The embedded engine has too little memory for a collection; what it finished is in the run's folder."""


class CapacityError(NddupError, RuntimeError):
    """The work exceeds a stated limit of this version. The run stopped; nothing was dropped."""
