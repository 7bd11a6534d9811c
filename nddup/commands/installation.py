"""`nddup --version --json`: what an installation is made of, as one line to send with a question."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

BESIDE = ("duckdb", "pandas", "pyspark", "s3fs", "gcsfs", "adlfs", "huggingface_hub", "deltalake", "pyiceberg")
"""Libraries that decide no sketch, of the plain installation and of the extras."""


def describe_installation() -> dict[str, Any]:
    """Return versions, the machine, and which kernels are compiled; no path, no name and no setting of the user."""
    from nddup.compiling.install import are_compiled  # noqa: PLC0415 - the other commands start without these
    from nddup.engines.choose import has_java, machine_memory  # noqa: PLC0415
    from nddup.storage.run_folder import versions  # noqa: PLC0415

    return {
        **versions(),
        **{name: _version_of(name) for name in BESIDE},
        "system": platform.platform(),
        "implementation": sys.implementation.name,
        "processors": len(os.sched_getaffinity(0)),
        "memory": machine_memory(),
        "has_java": has_java(),
        "are_kernels_compiled": are_compiled(),
    }


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
