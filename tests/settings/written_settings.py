"""A helper that writes settings to a YAML file."""

from pathlib import Path


def written(folder: Path, text: str) -> str:
    """Write the text to `settings.yaml` in a folder; returns the path."""
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)
