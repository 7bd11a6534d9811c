"""What is said of the inputs before they are written again: `output.kept` and `output.tagged` as `as-input`."""

from nddup.errors import ConfigError
from nddup.rewriting.rewrite_file import UNTAGGED
from nddup.run.lineage import made_of
from nddup.scanning.collection import Collection
from nddup.settings.schema import Config
from nddup.storage.run_folder import RunFolder

AS_INPUT = "as-input"
OUTPUTS = ("kept", "tagged")
"""The folders of files that are written again, named as the settings that ask for them."""


def reads_contents(config: Config) -> bool:
    """Whether the kept documents are written in another form than they came in, so that their places are needed."""
    return config.output.kept not in ("none", AS_INPUT)


def missing_outputs(config: Config, folder: RunFolder) -> list[str]:
    """Which of `OUTPUTS` are asked for and were not written by an earlier attempt; what is not asked for is removed."""
    asked = [name for name in OUTPUTS if getattr(config.output, name) == AS_INPUT]
    if "tagged" not in asked:
        folder.clear("tagged")
    return [name for name in asked if not folder.has(name, **made_of(name, config))]


def require_taggable(collection: Collection, config: Config) -> None:
    """Refuse to tag files whose format has no place for fields.

    Raises:
        ConfigError: naming the first of them.
    """
    if config.output.tagged != AS_INPUT:
        return
    for group in collection.groups:
        what = UNTAGGED.get(group.head.format.kind)
        if what is not None:
            source = group.files[0].file.source
            raise ConfigError(f"output.tagged: {source} is {what}, which has no place for tags; the table keep tells")
