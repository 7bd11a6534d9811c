"""What each table of a run depends on: the settings that reach it, and the tables it reads.

A resumed run reuses a table of an earlier attempt if all of this is unchanged (`nddup.storage.run_folder`). The tables
of a finished run read only each other, never a working table, so each engine can reuse what the other finished.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from nddup.redaction import hide_settings
from nddup.settings.derive import kind_of
from nddup.settings.schema import Config


class MadeOf(NamedTuple):
    """The sections of the settings that a table depends on directly, and the tables it reads."""

    sections: tuple[str, ...]
    reads: tuple[str, ...]


_READING = MadeOf(("input", "shingle", "sketch"), ("input",))
_PAIRING = ("pairs", "sketch", "keep")
_CLUSTERING = ("clusters", *_PAIRING)

_MADE_OF: dict[str, MadeOf] = {
    # Reading and sketching.
    "terms": MadeOf(("input", "lexicon"), ("input",)),
    "lexicon": MadeOf(("input", "lexicon"), ("input",)),
    "records": _READING,
    "offsets": _READING,
    "parts": _READING,
    "documents": _READING,
    "rejects": _READING,
    "nodes": MadeOf(_PAIRING, ("documents",)),
    # Pairs.
    "compared": MadeOf(("pairs", "sketch"), ("documents",)),
    "family_stars": MadeOf(("pairs", "sketch"), ("documents",)),
    "families": MadeOf(("pairs", "sketch"), ("documents",)),
    "settled": MadeOf(_PAIRING, ("documents",)),
    "matches": MadeOf(_PAIRING, ("documents",)),
    "confirmed": MadeOf(_PAIRING, ("documents",)),
    "pairs": MadeOf(_PAIRING, ("documents",)),
    # Clusters and keep-list.
    "ordered": MadeOf(_PAIRING, ("documents",)),
    "edges": MadeOf(_PAIRING, ("documents",)),
    "solved": MadeOf(_CLUSTERING, ("documents",)),
    "stars": MadeOf(_PAIRING, ("documents",)),
    "removed": MadeOf(_PAIRING, ("documents",)),
    "undecided": MadeOf(_PAIRING, ("documents",)),
    "graph": MadeOf(_CLUSTERING, ("documents",)),
    "listed": MadeOf(_CLUSTERING, ("documents",)),
    "covered": MadeOf(_CLUSTERING, ("documents",)),
    "sets": MadeOf(_CLUSTERING, ("documents",)),
    "named": MadeOf(_CLUSTERING, ("documents",)),
    "clusters": MadeOf(_CLUSTERING, ("documents",)),
    "members": MadeOf(_CLUSTERING, ("documents",)),
    "false_components": MadeOf(_CLUSTERING, ("documents",)),
    "keep": MadeOf(_PAIRING, ("documents",)),
    # What is written for people.
    "texts": MadeOf(("output",), ("documents", "pairs", "clusters", "members")),
    "kept": MadeOf(("output",), ("documents", "rejects", "keep")),
    "tagged": MadeOf(("output",), ("documents", "rejects", "keep", "members")),
}

_NOT_IN_TABLES = {"input": ("max_rejects", "max_unreadable"), "pairs": ("max_comparisons",)}
"""Settings that decide when a run stops, not what is in its tables."""

_ONLY = {"kept": ("kept",), "tagged": ("tagged",), "texts": ("texts", "texts_read")}
"""The settings of `output` that each of these tables depends on."""


def made_of(name: str, config: Config) -> dict[str, Any]:
    """Return what a table depends on, as in its note: `settings`, without secrets, and `reads`.

    Args:
        name: of the table; the name of a round's table ends with a hyphen and a number.
        config: of the run.
    """
    sections, reads = _MADE_OF[name.partition("-")[0]]
    if sections == _READING.sections:
        sections = (*sections, *_options_of_reading(config))

    chosen = {section: _settings_in(name, section, config) for section in sections}
    return {"settings": hide_settings(chosen), "reads": reads}


def _options_of_reading(config: Config) -> list[str]:
    """Return the sections that the sketches depend on under these settings only."""
    is_paired = config.pairs.max_document_frequency is not None or config.pairs.confirm != "none"
    found = ["pairs"] if is_paired else []
    found += ["keep"] if config.keep.order.columns else []
    return [*found, "lexicon"] if kind_of(config.sketch).is_of_words else found


def _settings_in(name: str, section: str, config: Config) -> Mapping[str, Any]:
    values: dict[str, Any] = getattr(config, section).model_dump()
    if name in _ONLY:
        return {key: values[key] for key in _ONLY[name]}
    return {key: value for key, value in values.items() if key not in _NOT_IN_TABLES.get(section, ())}
