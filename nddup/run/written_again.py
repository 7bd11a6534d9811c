"""Checks before the inputs are written again, as the value `as-input` of `output.kept` or `output.tagged` asks."""

from nddup.errors import ConfigError
from nddup.rewriting.rewrite_file import UNTAGGED
from nddup.run.lineage import made_of
from nddup.scanning.collection import Collection
from nddup.settings.schema import Config
from nddup.storage.run_folder import RunFolder

AS_INPUT = "as-input"
OUTPUTS = ("kept", "tagged")
"""The folders of files that are written again, named like the settings that ask for them."""


def reads_contents(config: Config) -> bool:
    """Return whether kept documents are written in another form than they came in, so their positions are needed."""
    return config.output.kept not in ("none", AS_INPUT)


def missing_outputs(config: Config, folder: RunFolder) -> list[str]:
    """Return the `OUTPUTS` that are asked for and not yet written; remove an earlier `tagged` that is not asked for."""
    asked = [name for name in OUTPUTS if getattr(config.output, name) == AS_INPUT]
    if "tagged" not in asked:
        folder.clear("tagged")
    return [name for name in asked if not folder.has(name, **made_of(name, config))]


def require_taggable(collection: Collection, config: Config) -> None:
    """Refuse `output.tagged` for files whose format has no place for fields.

    Raises:
        ConfigError: naming the first such file.
    """
    if config.output.tagged != AS_INPUT:
        return
    for group in collection.groups:
        what = UNTAGGED.get(group.head.format.kind)
        if what is not None:
            source = group.files[0].file.source
            raise ConfigError(f"output.tagged: {source} is {what}, which has no place for tags; the table keep tells")
