"""A run onto a finished run: the chain of its inputs, and what is refused.

    open_chain     a finished run                 -> Chain: its batches and files
    settings_onto  settings of the caller, its    -> those of the run that goes on from it
    whole_of       NEW, a chain                   -> the files of both, where texts are read again

A run onto OLD has the tables of one run over the batches of OLD and NEW, in that order, under the names of their
batches.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import BaseModel

from nddup.errors import ConfigError, NddupError, OutputError
from nddup.ground.metrics import RunMetrics
from nddup.ground.shown import JsonValue
from nddup.mining.modes import MODES
from nddup.scanning.collection import Batch, Collection, Files, name_fault
from nddup.settings.load import build_config
from nddup.settings.schema import Config
from nddup.settings.stored import CALLERS, NOT_SHOWN, complete_shown
from nddup.stages.inputs_found import are_texts, batches_of, config_of, find_again, noted_inputs
from nddup.storage.run_folder import RunFolder

OWN = CALLERS | NOT_SHOWN | {
    "keep.force", "keep.all_known", "output.names_from", "output.report", "output.texts", "output.texts_read",
    "output.kept", "output.tagged", "output.context", "output.weights", "output.columns",
    "input.max_rejects", "input.max_unreadable",
}  # fmt: skip
"""Sections and settings that a run has from its caller: they say how to compute, what to write beside the tables, when
to stop, and which documents are forced."""


IN_ROWS = ("doc_id", "group", "parent", "content_fingerprint", "token_fingerprint")
"""Columns of DOCUMENTS that another batch may change in the row of an old record; without one, its row is the same."""

NAMED_BY = {"pairs": "doc_a", "keep": "doc_id", "false_components": "component"}
"""The column of each table that names a document of the component of its row."""

UNTOLD = {"pairs": ("limited",), "clusters": ("largest_component", "led_components")}
"""Counts of a stage that its tables do not tell; where maximal sets are mined, those tell what is given by leaders."""


WITHOUT_REVISITS = "an earlier version made this run, and kept nothing of its revisits for a later one; make it again"
"""Why a run is not gone on from."""


class Chain(NamedTuple):
    """The finished run that a run goes on from: its folder, its batches, and its files as it noted them."""

    folder: RunFolder
    batches: tuple[Batch, ...]
    files: Mapping[str, Any]

    @property
    def noted(self) -> dict[str, str]:
        """What a run onto this one notes of it: another run in the same folder is another input."""
        made = hashlib.sha256(self.folder.read_text("metrics.json").encode()).hexdigest()[:32]
        return {"path": self.folder.path, "made_of": made}

    def require_later(self, name: str | None, source: Collection) -> None:
        """Refuse a batch without a name, or under one that does not come after all others.

        Raises:
            ConfigError: naming the option.
        """
        if not source.listing.files:
            return
        if name is None:
            raise ConfigError("--onto: the new documents need the name of their batch: give --as NAME, such as a date")
        if name in {batch.name for batch in self.batches}:
            raise ConfigError(f"--as {name}: {self.folder.path} has a batch of this name already")
        last = max(self.files, key=os.fsencode, default="")
        if os.fsencode(f"{name}/") <= os.fsencode(last):
            raise ConfigError(
                f"--as {name}: must come after every source of {self.folder.path}, whose last is {last}: names of"
                " batches ascend, as dates do"
            )


class Noted(NamedTuple):
    """What a finished run notes of itself for a later one."""

    metrics: Mapping[str, Any]
    """As in its `metrics.json`, with all counts."""
    documents: Mapping[str, Any]
    """What is noted with its documents: counts, and names of files."""
    reasons: Mapping[str, int]
    """Its rejects by reason."""


def open_noted(folder: RunFolder, tables: Iterable[str]) -> Noted:
    """Read what a finished run notes for a later one, whoever wrote it.

    Args:
        tables: those that it must have kept.

    Raises:
        OutputError: if it is no finished run, or notes what no run does.
        ConfigError: if it kept nothing for a later run.
    """
    origin = f"{folder.path}/metrics.json"
    metrics = RunMetrics.read(folder.open(), origin=origin).model_dump()
    metrics["settings"] = complete_shown(metrics["settings"], origin=origin)
    notes = {name: folder.counted(name) for name in ("documents", "rejects", *tables)}
    if not all(notes.values()):
        raise ConfigError(f"--onto {folder.path}: this run kept nothing for a later one; run it with output.onto=true")
    documents, rejects = (_mapping(_mapping(notes[name]).get("noted")) for name in ("documents", "rejects"))
    reasons = rejects.get("reasons")
    is_noted = all(map(_is_noted, documents.keys(), documents.values()))
    if not is_noted or not isinstance(reasons, Mapping) or not all(map(_is_count, reasons.values())):
        raise OutputError(f"{folder.path}: holds what nddup does not write: a note of documents or rejects")
    return Noted(metrics, documents, reasons)


def _is_noted(name: str, value: object) -> bool:
    if name == "read_again":
        return are_texts(value)
    if name.endswith("_files"):
        return isinstance(value, list) and all(map(_is_counted_file, value))
    return isinstance(value, Mapping) if name == "splitting" else _is_count(value)


def _is_counted_file(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and _is_count(value[1])  # noqa: PLR2004 - a name and a number


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _mapping(value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a note may be anyone's
    return value if isinstance(value, Mapping) else {}


def require_name(name: str | None) -> None:
    """Refuse a name that no batch can have. Raises ConfigError."""
    if name is not None and (fault := name_fault(name)):
        raise ConfigError(f"--as {name}: {fault}")


def open_chain(folder: RunFolder) -> Chain:
    """Read the inputs of a finished run.

    Raises:
        OutputError: if it is none.
        NddupError: if it notes no inputs.
    """
    folder.open()
    noted = noted_inputs(folder)
    return Chain(folder, tuple(batches_of(noted)), noted["files"])


def settings_onto(caller: Config, folder: RunFolder) -> Config:
    """Return the settings of a run onto a finished one: its own, and of the caller those in `OWN`.

    Raises:
        ConfigError: for a setting of the caller that differs from that of the run; the line names all such.
        OutputError: if the folder is no finished run.
    """
    folder.open()
    stored, given = config_of(folder).model_dump(), _given(caller)
    wrong = [
        f"{name} is {_spell(_at(stored, name))} there"
        for name, value in given.items()
        if not _is_own(name) and _at(stored, name) != value
    ]
    if wrong:
        raise ConfigError(f"--onto {folder.path}: its settings hold: {'; '.join(wrong)}")
    if not stored["output"]["onto"]:
        raise ConfigError(f"--onto {folder.path}: this run kept nothing for a later one; it needs output.onto=true")
    stored["output"]["names_from"] = None  # those of the run before: each run says whose names it keeps
    for name, value in given.items():
        if _is_own(name):
            section, _, key = name.partition(".")
            stored[section] = {**stored[section], key: value} if key else value
    return build_config(stored, origin=f"--onto {folder.path}")


def _is_own(name: str) -> bool:
    return name in OWN or name.partition(".")[0] in OWN


def _given(config: Config) -> dict[str, Any]:
    given = dict[str, Any]()
    for section in sorted(config.model_fields_set):
        value = getattr(config, section)
        if isinstance(value, BaseModel):
            dumped = value.model_dump()
            given |= {f"{section}.{key}": dumped[key] for key in sorted(value.model_fields_set)}
        else:
            given[section] = value
    return given


def _at(settings: Mapping[str, Any], name: str) -> JsonValue:
    section, _, key = name.partition(".")
    return settings[section][key] if key else settings[section]


def _spell(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def count_untold(stage: str, old: Mapping[str, Any], made: Mapping[str, int], config: Config) -> dict[str, int]:
    """Return the counts of `UNTOLD`, of two runs the greater: `nddup check` asks whether there are any.

    Args:
        stage: `pairs` or `clusters`.
        old: the metrics of the run that is gone on from.
        made: the counts of what was made anew.
        config: the settings of both.
    """
    before, is_told = old["stages"][stage], MODES[config.clusters.mode].is_mined
    untold = (name for name in UNTOLD[stage] if name != "led_components" or not is_told)
    return {name: max(before[name], made[name]) for name in untold}


def whole_of(source: Collection, chain: Chain, files: Files, why: str) -> Collection:
    """Return the files of a run onto another, and those of the chain behind it, for texts that are read again.

    Args:
        source: NEW.
        chain: of the finished run.
        why: the setting for which they are read.

    Raises:
        ConfigError: if an input is gone, or has changed.
    """
    try:
        old = find_again(chain.folder, files).collection
    except NddupError as error:
        raise ConfigError(f"{why}: reads the inputs of {chain.folder.path} again: {error}") from error
    listed = (*old.listing.files, *source.listing.files)
    return Collection(
        (*old.groups, *source.groups),
        (*old.unread, *source.unread),
        replace(source.listing, files=listed),
        (*old.assets, *source.assets),
    )
