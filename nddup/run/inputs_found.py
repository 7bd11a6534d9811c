"""The files that a run reads: those of its inputs, up to `input.limit`, with the columns of the keep policy."""

from dataclasses import replace

from nddup.errors import NddupError
from nddup.metrics import SketchMetrics
from nddup.scanning.collection import Collection, Files, Group, find_files
from nddup.scanning.first_of_collection import limit_collection
from nddup.scanning.first_records import require_policy
from nddup.settings.scan_rules import limits_of
from nddup.settings.schema import Config

MOST_NAMED = 100
"""Most names in `changed_names`."""


def find_inputs(files: Files, inputs: list[str], config: Config) -> Collection:
    """Return the collection of `find_files`; with `input.limit` = n only the files that hold the first n records.

    Raises:
        ConfigError: as `find_files`; for a column of `keep.policy` that no record has.
        NddupError: if `input.limit` is set and a file cannot be read.
    """
    found, most = find_files(files, inputs, config.input), config.input.limit
    paths = tuple(column.path for column in config.keep.order.columns if not column.is_derived)
    if paths:
        found = replace(found, groups=tuple(_with_policy(group, paths) for group in found.groups))
        require_policy(files, found.files, paths)
    return found if most is None else limit_collection(files, found, most, limits_of(config))


def note_changes(sketch: SketchMetrics, files: Files, inputs: list[str], source: Collection) -> SketchMetrics:
    """Return the metrics of reading with the files that have another size or time now than when the run began.

    Args:
        sketch: the metrics.
        files: the storage.
        inputs: INPUT paths.
        source: the collection that was found in them.

    Cost: one listing of the inputs.
    """
    try:
        now = {file.path: (file.size, file.modified) for file in files.list_inputs(inputs).files}
    except NddupError:  # an input is gone
        now = {}
    changed = [file.source for file in source.listing.files if now.get(file.path) != (file.size, file.modified)]
    return sketch.model_copy(update={"changed_files": len(changed), "changed_names": changed[:MOST_NAMED]})


def _with_policy(group: Group, paths: tuple[str, ...]) -> Group:
    """Return the group, to be read with these columns; in XML and TREC a plain name is an element or an attribute."""
    form = group.head.format
    if form.kind in ("xml", "sgml"):
        paths = tuple(path if set(path) & set("@/|.") else f"{path}|@{path}" for path in paths)
    return replace(group, head=replace(group.head, format=replace(form, policy=paths)))
