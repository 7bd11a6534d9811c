"""Compute the size of the image from what its layers install: no image is built.

    python -m scripts.image_size

Python packages are those of requirements.lock, at the bytes of their files in this environment; Java is that of the
Debian packages which `apt-get` would add to an image without recommended ones, at the size that Debian states.
"""

import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASE = 130 << 20
"""python:3.11-slim-bookworm, as its layers are stated: not computed."""

DEBIAN = ("openjdk-17-jre-headless", "procps")


def packages_of_lock() -> list[str]:
    """Return the names in requirements.lock."""
    return re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)


def size_of(name: str) -> int | None:
    """Return the bytes of the files of an installed package; None if it is not here."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if "__pycache__" not in file.parts)
    return sum(path.stat().st_size for path in paths if path.is_file())


def debian_sizes() -> Iterator[tuple[str, int]]:
    """Yield the Debian packages that Java and procps need, and their sizes; none where apt does not know them."""
    wanted, seen = list(DEBIAN), set[str]()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        shown = subprocess.run(
            ["/usr/bin/apt-cache", "show", "--no-all-versions", name], capture_output=True, text=True, check=False
        )
        size = re.search(r"^Installed-Size: (\d+)", shown.stdout, re.MULTILINE)
        is_base = re.search(r"^(Priority: required|Essential: yes)", shown.stdout, re.MULTILINE)
        if size is None or is_base:
            continue
        yield name, int(size[1]) << 10
        needed = re.search(r"^Depends: (.*)", shown.stdout, re.MULTILINE)
        wanted += [re.split(r"[ :(|]", one.strip())[0] for one in needed[1].split(",")] if needed else []


def layers() -> dict[str, int]:
    """Return the bytes of each layer of the image `nddup`."""
    python = {name: size_of(name) for name in packages_of_lock()}
    missing = [name for name, size in python.items() if size is None]
    if missing:
        raise SystemExit(f"not installed here, so not counted: {' '.join(missing)}")
    spark = (python.pop("pyspark") or 0) + (python.pop("py4j", 0) or 0)
    own = sum(
        path.stat().st_size
        for path in (ROOT / "nddup").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    kernels = sum(path.stat().st_size for path in (ROOT / "nddup").rglob("*.nb?"))
    return {
        "base (stated)": BASE,
        "Java and procps": sum(size for _, size in debian_sizes()),
        "Spark": spark,
        "other Python packages": sum(size or 0 for size in python.values()),
        "nddup": own,
        "kernels": kernels,
    }


if __name__ == "__main__":
    computed = layers()
    for name, size in {**computed, "together, computed": sum(computed.values())}.items():
        print(f"{name:24}{size / 1e6:8.0f} MB")
