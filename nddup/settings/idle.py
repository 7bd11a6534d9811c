"""Settings of a run that have no effect beside others: said in its notes, on every engine and in its report.

A contradiction is refused before the run (`plan.find_conflicts`); what is here does no harm, and a file of settings may
hold it for other runs. It reads settings as a run stores them, also those of an earlier version.
"""

from collections.abc import Mapping
from typing import Any

from nddup.ground.shown import name_some
from nddup.matching.measures import MEASURES
from nddup.mining.modes import MODES
from nddup.settings.schema import Config
from nddup.sketching.kinds import KINDS

OF_MINING = tuple(f"clusters.{key}" for key in ("miner", "fpgrowth_limit", "max_sets", "max_members", "max_nodes"))
"""Keys for modes that mine maximal sets."""

OF_FORMAT = {"csv": ("input.quote", "input.escape"), "warc": ("input.statuses",)}
"""Keys that only files of one format heed."""

Settings = Mapping[str, Mapping[str, Any]]


def say_idle(settings: Settings) -> list[str]:
    """Return a sentence for each reason why settings that differ from their defaults have no effect; empty if none is.

    Args:
        settings: those of a run, by section; a key that is missing has its default.

    Example:
        >>> say_idle({"clusters": {"mode": "none", "max_sets": 9}})
        ['without effect: clusters.max_sets: clusters.mode none mines no sets']
    """
    full = {section: {**_defaults(section), **settings.get(section, {})} for section in Config().model_dump()}
    full["pairs"]["threshold"] = settings.get("pairs", {}).get("threshold", _threshold(full))
    idle = dict[str, list[str]]()
    for why, keys in _reasons(full):
        changed = [key for key in keys if _is_changed(full, key)]
        if changed:
            idle.setdefault(why, []).extend(changed)
    return [f"without effect: {name_some(keys)}: {why}" for why, keys in idle.items()]


def say_unused(config: Config, *, is_on_spark: bool) -> list[str]:
    """Return a sentence for each reason why sections of the settings have no effect on a run: see `say_idle`.

    Args:
        config: of a run; it does not store these sections.
        is_on_spark: the engine that makes it.

    Example:
        >>> say_unused(Config(passages={"within": True}), is_on_spark=False)
        ['without effect: passages.within: nddup passages heeds it, a run does not']
    """
    rules: list[tuple[str, str, tuple[str, ...]]] = [
        (f"nddup {name} heeds it, a run does not", name, ()) for name in ("against", "passages")
    ]
    if is_on_spark:  # where the engine was chosen, it was chosen by the memory
        rules.append(("this run is on Spark", "local", () if config.engine == "spark" else ("memory",)))
    sentences = list[str]()
    for why, section, heeded in rules:
        defaults = _defaults(section)
        values = dict(getattr(config, section))
        changed = [f"{section}.{key}" for key in defaults if key not in heeded and values[key] != defaults[key]]
        sentences += [f"without effect: {name_some(changed)}: {why}"] if changed else []
    return sentences


def _reasons(full: Settings) -> list[tuple[str, tuple[str, ...]]]:
    """Return each reason that holds, and the keys that have no effect then."""
    clusters, sketch, output, given = full["clusters"], full["sketch"], full["output"], full["input"]
    mode, kind = MODES[clusters["mode"]], KINDS[sketch["kind"]]
    has_bands = not sketch["verify"] and (sketch["bands"] is not None or sketch["rows"] is not None)
    why = _leaderless(full)
    rules = [
        (not mode.is_mined, f"clusters.mode {mode.name} mines no sets", OF_MINING),
        (
            mode.is_mined and clusters["miner"] != "auto",
            f"clusters.miner {clusters['miner']} has no such limit",
            ("clusters.fpgrowth_limit",),
        ),
        (not mode.has_clusters, f"clusters.mode {mode.name} lists no clusters", ("clusters.max_listed",)),
        (bool(why), f"{why} has no leaders", ("pairs.max_edges",)),
        (kind.name == "whole", "equal texts reach every threshold, and no others", ("pairs.threshold",)),
        (has_bands, "every candidate of the bands is a pair (sketch.verify false)", ("pairs.threshold",)),
        (kind.name == "mod-m", "sketch.modulus alone decides how many ids a sketch has", ("sketch.size",)),
        (full["keep"]["force"] is None, "there is no keep.force", ("keep.all_known",)),
        (given["markup"] == "text", "input.markup text reads no pages", ("input.text",)),
        (
            not output["report"] and output["texts"] > 0,
            "there is no report (output.report)",
            ("output.texts", "output.texts_read"),
        ),
        (output["report"] and not output["texts"], "output.texts 0 reads none", ("output.texts_read",)),
    ]
    rules += [
        (given["format"] not in (None, form), f"input.format is {given['format']}, not {form}", keys)
        for form, keys in OF_FORMAT.items()
    ]
    return [(why, keys) for holds, why, keys in rules if holds]


def _leaderless(full: Settings) -> str:
    """Return the setting because of which no component has leaders; "" where one may (`plan.comparison_limits`)."""
    measure, sketch = full["pairs"]["measure"], full["sketch"]
    if MEASURES[measure].is_directed:
        return f"pairs.measure {measure}"
    if not sketch["verify"]:
        return "sketch.verify false"
    return "" if KINDS[sketch["kind"]].is_mined else f"sketch.kind {sketch['kind']}"


def _is_changed(full: Settings, key: str) -> bool:
    section, _, name = key.partition(".")
    default = _threshold(full) if key == "pairs.threshold" else _defaults(section)[name]
    return bool(full[section][name] != default)


def _threshold(full: Settings) -> float:
    return MEASURES[full["pairs"]["measure"]].threshold


def _defaults(section: str) -> dict[str, Any]:
    values = getattr(Config(), section)
    return dict(values) if not isinstance(values, str) else {}
