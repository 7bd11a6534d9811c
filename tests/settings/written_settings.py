"""Settings as files and assignments, and the line of a refusal."""

from pathlib import Path


def written(folder: Path, text: str) -> str:
    """A YAML file with this text."""
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)
