"""The files that a run reads: those of its inputs, up to `input.limit`."""

from nddup.scanning.collection import Collection, Files, find_files
from nddup.scanning.first_of_collection import limit_collection
from nddup.settings.scan_rules import limits_of
from nddup.settings.schema import Config


def find_inputs(files: Files, inputs: list[str], config: Config) -> Collection:
    """As `find_files`; with `input.limit` the files that hold the first so many records.

    Raises:
        ConfigError: as `find_files`.
        NddupError: if the first records are to be counted, and a file cannot be read.
    """
    found, most = find_files(files, inputs, config.input), config.input.limit
    return found if most is None else limit_collection(files, found, most, limits_of(config))
