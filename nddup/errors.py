"""The errors nddup raises on purpose. Each also derives from the builtin a caller would guess."""

from nddup.redaction import clean


class NddupError(Exception):
    """Base class: catch this to catch everything nddup raises on purpose. Its message holds no secrets."""

    def __init__(self, message: object = "") -> None:
        super().__init__(clean(str(message)))


class ConfigError(NddupError, ValueError):
    """A setting, a path or an argument is missing, unknown, out of range or not available yet."""


class SchemaError(NddupError, TypeError):
    """A DataFrame lacks a column, or has it with the wrong type."""


class OutputError(NddupError, OSError):
    """The output folder exists already, is not a run, is unfinished, in use, or cannot be written."""


class IncompatibleSketchError(NddupError, ValueError):
    """Two sketches were made with different rules and cannot be compared."""


class NeedsSparkError(NddupError):
    """The embedded engine has too little memory for a collection; what it finished is in the run's folder."""


class CapacityError(NddupError, RuntimeError):
    """The work passes a stated limit of this version: nothing was dropped, the run stopped."""
