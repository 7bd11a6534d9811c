"""Test files that need the session of Spark, so that two of the test processes run them all, whatever their number.

A session costs some 20 s of CPU time until its JVM has loaded and compiled what plans and tasks call.
"""

import re
from functools import cache

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from tests.places import ROOT

SESSIONS = 2
"""Processes that start a session: one alone would end long after the others."""

_ASKS = re.compile(r"\bspark: |\bsession_or_none\b|\bengine: Engine\b")
"""Parameters of a test, or of a fixture, that is given the session."""


@cache
def asks(file: str) -> bool:
    """Return whether a test file, given by its path below the repository, asks for the session."""
    return file.startswith("tests/") and _ASKS.search((ROOT / file).read_text(encoding="utf-8")) is not None


class FewSessions(LoadFileScheduling):  # type: ignore[misc] # xdist has no types
    """Tests by file, as `--dist loadfile` schedules them, but the files that ask for a session in two units."""

    def _split_scope(self, nodeid: str) -> str:
        """Return the unit of work of a test."""
        file: str = super()._split_scope(nodeid)
        if not asks(file):
            return file
        units: dict[str, str] = self.__dict__.setdefault("_units", {})
        return units.setdefault(file, f"session {len(units) % SESSIONS}")
