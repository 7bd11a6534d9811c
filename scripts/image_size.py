"""Compute the sizes of the images from what their layers install: no image is built.

    python -m scripts.image_size

Python packages are those of requirements.lock, at the bytes of their files in this environment, without their tests.
"""

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MB = 1e6
BASE = 136
"""MB of python:3.11-slim-bookworm, as its layers are stated: not computed."""

JAVA = 71
"""MB of the modules of Java that the Dockerfile takes, measured with jlink of Debian's OpenJDK 17, and of procps."""

SPARK = ("pyspark", "py4j")

LARGEST = 8
"""Packages that are named."""


def packages_of_lock() -> list[str]:
    """Return the names in requirements.lock."""
    return re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)


def size_of(name: str) -> float:
    """Return the MB of the files of an installed package, without its tests."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        raise SystemExit(f"{name}: not installed here, so not counted") from None
    paths = [Path(str(file.locate())) for file in files if not {"__pycache__", "tests", "test"} & set(file.parts)]
    return sum(path.stat().st_size for path in paths if path.is_file()) / MB


def own_sizes() -> dict[str, float]:
    """Return the MB of the package itself, and of its compiled kernels."""
    files = [path for path in (ROOT / "nddup").rglob("*") if path.is_file()]
    kernels = [path for path in files if path.suffix in (".nbi", ".nbc")]
    own = [path for path in files if "__pycache__" not in path.parts]
    return {
        name: sum(path.stat().st_size for path in some) / MB for name, some in (("nddup", own), ("kernels", kernels))
    }


def main() -> None:
    """Print the layers of both images."""
    python = {name: size_of(name) for name in packages_of_lock()}
    spark = sum(python.pop(name) for name in SPARK)
    for name, size in sorted(python.items(), key=lambda one: -one[1])[:LARGEST]:
        print(f"  {name:30}{size:6.0f} MB")
    embedded = {"base (stated)": BASE, "Python packages": sum(python.values())} | own_sizes()
    whole = embedded | {"Java (measured) and procps": JAVA, "Spark": spark}
    for name, size in whole.items():
        print(f"{name:32}{size:6.0f} MB")
    print(f"{'ENGINES=embedded, computed':32}{sum(embedded.values()):6.0f} MB")
    print(f"{'ENGINES=spark, computed':32}{sum(whole.values()):6.0f} MB")


if __name__ == "__main__":
    main()
