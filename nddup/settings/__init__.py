"""The settings of a run. Reads configuration files and touches nothing else.

May import the ground rooms, and the rules of `matching`, `sketching` and `scanning` that settings choose.
`schema` has every key with its default and refuses a wrong value; `load` reads files and assignments and words the
refusal; `plan` makes what several settings choose together (kind, recipe, threshold) and refuses contradictions.

A new setting is a field in `schema`.
"""

from pathlib import Path

FOLDER, ENDING = Path(__file__).parent / "profiles", ".yaml"
"""The folder of the profiles, files of settings that come with nddup, and how their names end."""


def profiles() -> dict[str, Path]:
    """Return the file of each profile by its name, ascending."""
    return dict(sorted((file.stem, file) for file in FOLDER.glob(f"*{ENDING}")))
