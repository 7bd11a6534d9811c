"""One stage of a run, on either engine: progress, timing and counts.

A resumed run reuses a table of an earlier attempt if all that the table depends on is unchanged: the settings that
reach it, and the tables it reads (`nddup.storage.run_folder`). The tables of a finished run read only each other, never
a working table, so each engine can reuse what the other finished. The metrics of the run are put together from the
counts of its stages.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, NamedTuple, TypeVar

from nddup.engines.engine import EngineTable
from nddup.errors import ConfigError
from nddup.ground.metrics import CountedFile, LexiconMetrics, RunMetrics, SkippedFile, StageMetrics, Stages
from nddup.ground.progress import Progress
from nddup.ground.shown import MOST_NAMED, hide_settings
from nddup.mining.keep_verdicts import Forced
from nddup.rewriting.rewrite_file import can_rewrite
from nddup.scanning.collection import Collection
from nddup.scanning.input_files import ASSET_WHY, is_utf8
from nddup.settings import plan
from nddup.settings.idle import say_unused
from nddup.settings.plan import kind_of
from nddup.settings.schema import Config
from nddup.stages.losses import SilentFile
from nddup.storage.run_folder import FORCE, RunFolder, versions
from nddup.tables import READABLE, REPEATED

M = TypeVar("M", bound=StageMetrics)


class Stage(Generic[M]):
    """A running stage. Its caller reports its counts with `done`; its time and shuffled bytes are added at its end."""

    def __init__(self, metrics: M) -> None:
        self.metrics = metrics
        self.notes: list[str] = []

    def done(self, metrics: M, *notes: str) -> None:
        """Record the counts of the stage; `notes` are shown to the user."""
        self.metrics = metrics
        self.notes += notes


_PAIRING = ("pairs", "sketch", "keep")

_CLUSTERING = ("clusters", *_PAIRING)

_NOT_IN_TABLES = {"input": ("max_rejects", "max_unreadable"), "pairs": ("max_comparisons",)}
"""Settings that decide when a run stops, not what is in its tables."""

_OF_READING = {"pairs": ("confirm", "max_document_frequency")}
"""The settings of `pairs` that the sketches, and the fingerprints beside them, depend on."""

_ONLY = {
    "kept": ("kept", "weights", "columns"), "tagged": ("tagged", "weights", "columns"),
    "texts": ("texts", "texts_read"), "names": ("names_from",),
}  # fmt: skip
"""The settings of `output` that each of these tables depends on."""

NOTE = "lexicon.json"

AS_INPUT = "as-input"

OUTPUTS = ("kept", "tagged")
"""The folders of files that are written again, named like the settings that ask for them."""


@contextmanager
def measured(
    progress: Progress, name: str, counts: type[M], *, resumed: dict[str, None], shuffled: Callable[[], int] = lambda: 0
) -> Iterator[Stage[M]]:
    """Run a stage: show it, and add its time, shuffled bytes and reused tables to its counts.

    Args:
        resumed: the tables taken from an earlier attempt; the stage adds its own.
        shuffled: returns the bytes written to shuffles so far.
    """
    stage, started, before, known = Stage(counts()), time.monotonic(), shuffled(), len(resumed)
    with progress.stage(name) as shown:
        yield stage

        reused = list(resumed)[known:]
        took = {
            "seconds": round(time.monotonic() - started, 3),
            "shuffle_bytes": max(0, shuffled() - before),
            "resumed": reused,
        }
        stage.metrics = stage.metrics.model_copy(update=took)
        shown.notes += stage.notes
        if reused:
            shown.notes.append(f"reused: {', '.join(reused)}")
        shown.facts = stage.metrics.model_dump(include=set(StageMetrics.model_fields))


def settings_of(config: Config) -> dict[str, Any]:
    """Return the settings that decide what a run finds, as plain values, without secrets and without the engine."""
    return hide_settings(config.model_dump(exclude={"engine", "local", "against", "passages"}))


class Dependencies(NamedTuple):
    """The sections of the settings that a table depends on directly, and the tables it reads."""

    sections: tuple[str, ...]
    reads: tuple[str, ...]


_READING = Dependencies(("input", "shingle", "sketch"), ("input",))

_MADE_OF: dict[str, Dependencies] = {
    **dict.fromkeys(("terms", "lexicon"), Dependencies(("input", "lexicon"), ("input",))),
    **dict.fromkeys(("records", "numbered", "offsets", "parts", "documents", "rejects", "given"), _READING),
    **dict.fromkeys(
        ("touched", "changed", "stale", "candidates", "shingles", "compared", "family_stars", "searched"),
        Dependencies(("pairs", "sketch"), ("documents",)),
    ),
    **dict.fromkeys(
        ("nodes", "settled", "matches", "confirmed", "pairs", "ordered", "edges", "stars", "removed", "undecided",
         "keep"),
        Dependencies(_PAIRING, ("documents",)),
    ),
    **dict.fromkeys(
        ("solved", "graph", "listed", "covered", "sets", "starred", "named", "clusters", "members",
         "false_components"),
        Dependencies(_CLUSTERING, ("documents",)),
    ),
    "families": Dependencies(_PAIRING, ("documents", "keep")),
    "texts": Dependencies(("output",), ("documents", "pairs", "clusters", "members")),
    "kept": Dependencies(("output",), ("documents", "rejects", "keep")),
    "tagged": Dependencies(("output",), ("documents", "rejects", "keep", "members")),
    "names": Dependencies(("output",), ("documents", "keep")),
}  # fmt: skip


def dependencies_of(name: str, config: Config) -> dict[str, Any]:
    """Return what a table depends on, as in its note: `settings`, without secrets, and `reads`.

    Args:
        name: of the table; the name of a round's table ends with a hyphen and a number.
    """
    sections, reads = _MADE_OF[name.partition("-")[0]]
    if sections == _READING.sections:
        sections = (*sections, *_options_of_reading(config))
    if config.tokens.ignore and "input" in sections:
        sections = (*sections, "tokens")

    chosen = {section: _settings_in(name, section, config) for section in sections}
    if "keep" in chosen and config.keep.force is not None:
        reads = (*reads, FORCE)
    return {"settings": hide_settings(chosen), "reads": reads}


def name_forced(forced: Forced | None) -> dict[str, str]:
    """Return what a run notes of the file of `keep.force` among its inputs: tables made with another are made again."""
    return {} if forced is None else {FORCE: forced.digest}


def _options_of_reading(config: Config) -> list[str]:
    """Return the sections that the sketches depend on under these settings only."""
    is_paired = config.pairs.max_document_frequency is not None or config.pairs.confirm != "none"
    sections = ["pairs"] if is_paired else []
    sections += ["keep"] if config.keep.order.columns or config.keep.read else []
    return [*sections, "lexicon"] if kind_of(config.sketch).is_of_words else sections


def _settings_in(name: str, section: str, config: Config) -> Mapping[str, Any]:
    values: dict[str, Any] = getattr(config, section).model_dump()
    if name == "texts":
        values["texts"] = plan.stored_texts(config)
    chosen = _ONLY.get(name) or (_OF_READING.get(section) if _MADE_OF[name.partition("-")[0]] is _READING else None)
    if chosen:
        return {key: values[key] for key in chosen}
    return {key: value for key, value in values.items() if key not in _NOT_IN_TABLES.get(section, ())}


class Unpaired(NamedTuple):
    """Counts of the documents that pairing treats apart: those that can be in no pair, and those of equal sketches."""

    empty_sketches: int
    below_count: int
    equal_sketches: int

    @staticmethod
    def counts(least_size: int) -> dict[str, str]:
        """Return them as aggregates of NODES; `least_size` is the fewest features of a document in a pair."""
        return {
            "empty_sketches": "count_if(size = 0)",
            "below_count": f"count_if(size > 0 AND size < {least_size})",
            "equal_sketches": "count_if(doc_key <> node)",
        }


def measure_files(source: EngineTable) -> dict[str, Any]:
    """Return what `SketchMetrics` says about the files of a collection before it is read; {} for a given table."""
    if not isinstance(source, Collection):
        return {}
    listing = source.listing
    skipped = [*listing.skipped, *((path, "given twice") for path in listing.repeated)]
    skipped += [(file.path, ASSET_WHY) for file in source.assets]
    return {
        "bytes": sum(file.size for file in listing.files) - sum(file.size for file in source.assets),
        "files": len(listing.files) - len(source.assets),
        "snapshots": list(listing.tables),
        "respelled_names": sum(not is_utf8(file.path) for file in listing.files),
        "skipped_files": [SkippedFile(path=path, why=why) for path, why in skipped],
    }


def name_unread(silent: Sequence[SilentFile]) -> list[SkippedFile]:
    """Return the first files that gave no document, each with the reason."""
    first = silent[:MOST_NAMED]
    return [SkippedFile(path=file.source, why=file.detail if file.rejects == 1 else file.reason) for file in first]


def name_counted(noted: Mapping[str, Any]) -> dict[str, list[CountedFile]]:
    """Return the lists of files of `SketchMetrics`, from those noted with the documents; an earlier version noted none.

    Example:
        >>> name_counted({"stripped_files": [["a.csv", 2]]})["stripped_files"]
        [CountedFile(path='a.csv', records=2)]
    """
    return {
        name: [CountedFile(path=path, records=records) for path, records in noted.get(name, ())]
        for name in ("stripped_files", "guessed_files", "inside_files")
    }


def count_renamed(counts: Mapping[str, Any], reasons: Mapping[str, int]) -> int:
    """Count the documents whose id an earlier record has: of the later records of an id, those that are no rejects.

    Args:
        counts: as noted with the documents; an earlier version did not note `later_ids`, and rejected all of them.
        reasons: number of rejects by reason.
    """
    rejected = reasons.get(REPEATED, 0)
    return int(counts.get("later_ids", rejected)) - rejected


def metrics_of(config: Config, stages: Stages, unpaired: Unpaired, *, is_on_spark: bool = False) -> RunMetrics:
    """Return the content of `metrics.json`. Only runs that leave a folder, and so have stage `texts`, have a recipe."""
    rows = {name: count for stage in stages.by_name().values() for name, count in stage.rows_out.items()}
    return RunMetrics(
        records=stages.sketch.rows_in["records"],
        rows={name: rows[name] for name in READABLE if name in rows},
        **unpaired._asdict(),
        stages=stages,
        settings=settings_of(config),
        unused=say_unused(config, is_on_spark=is_on_spark) or None,
        recipe=plan.recipe_of(config).key if stages.texts else None,
        versions=versions(),
    )


def note_of(config: Config, counted: LexiconMetrics) -> str:
    """Return its text: the settings and versions that made the lexicon, its counts, and the run it was taken from."""
    words = plan.words_of(config)
    made_by, taken_from = words and words.lexicon.key, settings_of(config)["lexicon"]["saved"]
    note = {"made_by": made_by, **counted.model_dump(), "taken_from": taken_from}
    return json.dumps(note, indent=2, ensure_ascii=False) + "\n"


def reads_contents(config: Config) -> bool:
    """Return whether kept documents are written in another form than they came in, so their positions are needed."""
    return config.output.kept not in ("none", AS_INPUT)


def missing_outputs(config: Config, folder: RunFolder) -> list[str]:
    """Return the requested `OUTPUTS` that are not yet written; remove an earlier `tagged` that is not requested."""
    asked = [name for name in OUTPUTS if getattr(config.output, name) == AS_INPUT]
    if "tagged" not in asked:
        folder.clear("tagged")
    return [name for name in asked if not folder.has(name, **dependencies_of(name, config))]


def require_rewritable(collection: Collection, config: Config) -> None:
    """Refuse to write files again that cannot be, and `output.tagged` for those whose format has no place for fields.

    Raises:
        ConfigError: naming the first such file.
    """
    asked = [name for name in OUTPUTS if getattr(config.output, name) == AS_INPUT]
    for group in collection.groups if asked else ():
        source, form = group.files[0].file.source, group.head.format
        if not can_rewrite(form.kind):
            raise ConfigError(f"output.{asked[0]}: {source}: files of the format {form.name} cannot be written again")
        added = next((name for name in ("weights", "columns") if getattr(config.output, name)), None)
        named = "tagged" if "tagged" in asked else added
        if named and (what := form.files.untagged):
            raise ConfigError(f"output.{named}: {source} is {what}, which has no place for tags; the table keep tells")
