"""The inputs of a finished run, to read documents again: refused if a file changed meanwhile."""

from typing import NamedTuple

from nddup.errors import NddupError
from nddup.run.inputs_found import find_inputs
from nddup.scanning.collection import Collection, Files
from nddup.settings.load import read_stored
from nddup.settings.schema import Config
from nddup.storage.run_folder import RunFolder


class Again(NamedTuple):
    """The files of a run, unchanged, and its settings."""

    collection: Collection
    config: Config


def config_of(folder: RunFolder) -> Config:
    """Return the settings of the run in a folder."""
    header = folder.read_json("_RUN.json")
    return read_stored(header["settings"], origin=f"{folder.path}/_RUN.json")


def find_again(folder: RunFolder, files: Files) -> Again:
    """Find the inputs of the run in a folder again.

    Args:
        folder: of the run.
        files: the file system of the inputs.

    Raises:
        ConfigError: if an input is missing.
        NddupError: if a file was changed, added or removed since the run.
    """
    header = folder.read_json("_RUN.json")
    paths = header["inputs"]["paths"]
    before = {source: tuple(seen) for source, seen in header["inputs"]["files"].items()}
    config = config_of(folder)
    now = {file.source: (file.size, file.modified) for file in files.list_inputs(paths).files}
    if config.input.limit is not None:  # files after the last record were not looked at
        now = {source: seen for source, seen in now.items() if source in before}
    changed = sorted(source for source in before.keys() | now.keys() if before.get(source) != now.get(source))
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise NddupError(f"the inputs of {folder.path} changed since the run: {changed[0]}{more}; run the job again")

    return Again(find_inputs(files, paths, config), config)


def paths_of(folder: RunFolder) -> list[str]:
    """Return the INPUT paths of the run in a folder."""
    return list(folder.read_json("_RUN.json")["inputs"]["paths"])
