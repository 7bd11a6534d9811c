"""The profiles: files of settings that come with nddup, each known by its name without the ending."""

from pathlib import Path

FOLDER, ENDING = Path(__file__).parent / "profiles", ".yaml"
"""The folder of the profiles, and how the names of their files end."""


def profiles() -> dict[str, Path]:
    """Return the file of each profile by its name, ascending."""
    return dict(sorted((file.stem, file) for file in FOLDER.glob(f"*{ENDING}")))
