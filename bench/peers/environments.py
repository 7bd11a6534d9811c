"""An environment for each peer, below build/, made at its first use from the versions pinned here."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.recording import BUILD

HERE = Path(__file__).parent
ENVIRONMENTS = BUILD.parent / "peers"


@dataclass(frozen=True)
class Peer:
    """A system that nddup is compared with.

    Attributes:
        program: file of this folder, run with the interpreter of the peer's environment.
        says: what its pairs are.
        lacks: what nddup does and the peer does not.
    """

    program: str
    says: str
    lacks: str


SHARED_BAND = "pairs that share one of 14 bands of 8, and have its own estimate ≥ 0.7"
COMPONENTS = "components of pairs that share one of 14 bands of 8"
ALONE = "no check of candidates, clusters, keep-list, rejects, resume; one process, all in memory"
PEERS = {
    "rensa": Peer("rensa_pairs.py", SHARED_BAND, ALONE),
    "datasketch": Peer("datasketch_pairs.py", SHARED_BAND, ALONE),
    "Daft": Peer("daft_pairs.py", SHARED_BAND, "no check of candidates, clusters, keep-list, rejects, resume"),
    "text-dedup": Peer("text_dedup_groups.py", COMPONENTS, "no check of candidates, pairs, rejects, resume"),
    "datatrove": Peer("datatrove_groups.py", COMPONENTS, "no check of candidates, pairs; resumes by tasks"),
    "distributed-curator": Peer(
        "distributed_curator_groups.py", "components of pairs with its own estimate ≥ 0.7", "no pairs, rejects, resume"
    ),
}
"""Peers by the name in the tables, which in small letters names the file of pinned versions."""


class NoEnvironmentError(RuntimeError):
    """A peer cannot be installed; the message is the last error line of the installer."""


def interpreter_of(name: str) -> Path:
    """Return the interpreter of a peer's environment, which is rebuilt if it is missing or has other versions.

    Raises:
        NoEnvironmentError: if it cannot be installed.
    """
    pins = HERE / "pins" / f"{name.lower()}.txt"
    folder = ENVIRONMENTS / name.lower()
    python, stamp = folder.absolute() / "bin" / "python", folder / "pins.txt"
    if stamp.exists() and stamp.read_text() == pins.read_text():
        return python

    shutil.rmtree(folder, ignore_errors=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--no-deps", "--requirement", str(pins)]
    for command in ([sys.executable, "-m", "venv", str(folder)], install):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=bare_environment())
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise NoEnvironmentError((errors or done.stderr.splitlines() or ["pip failed"])[-1])
    shutil.copyfile(pins, stamp)
    return python


def bare_environment() -> dict[str, str]:
    """Return the environment variables of a peer: without nddup on its path, and without access to a model hub."""
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return own | {"HF_HUB_OFFLINE": "1", "HF_HOME": str((ENVIRONMENTS / "hub").absolute())}
