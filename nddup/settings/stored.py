"""The settings that a folder stores: which of them decide what is found, and those of a run, checked to be shown.

Commands that only show a run load no plan of a computation, so none is made here: `read_stored` in `load` does.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from nddup.errors import ConfigError
from nddup.ground.shown import hide_settings
from nddup.settings.schema import Config

CALLERS = frozenset({"engine", "local", "spark"})
"""The sections that say how and where to compute. They come from the caller of each command, never from a folder."""

NOT_SHOWN = frozenset({"engine", "local", "against", "passages"})
"""The sections that a run does not store."""


def take_deciding(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections of stored settings that decide what is found, with what an earlier version left unsaid."""
    settings = {key: value for key, value in values.items() if key not in CALLERS}
    pairs = settings.get("pairs", {})
    if isinstance(pairs, Mapping):  # in an earlier version the sketches decided unless something else was asked for
        settings["pairs"] = {"confirm": "none", **pairs}
    return settings


def ignored_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return `tokens.ignore` of stored settings; an earlier version ignored nothing."""
    return tuple(values.get("tokens", {}).get("ignore", ()))


def complete_shown(values: Mapping[str, Any], *, origin: str) -> dict[str, Any]:
    """Return the settings of a run to be shown: each section that runs store, with every key of it.

    A key that an earlier version did not have gets its default. Settings of Spark are shown as they are stored.

    Raises:
        ConfigError: if no run can have a section, a key or a value; the line names the first.
    """
    spark = values.get("spark", {})
    try:
        config = Config.model_validate({**take_deciding(values), "spark": spark})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the settings"
        raise ConfigError(f"{origin}: settings.{place}: {first['msg']}") from error
    return hide_settings(config.model_dump(mode="json", exclude=set(NOT_SHOWN)))
