"""The Java that Spark will use, as its installation describes it; nothing is started."""

import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

OLDEST, MODULE = 17, "jdk.incubator.vector"
"""The oldest version of Java that Spark runs on, and a module that it needs."""


class Java(NamedTuple):
    """An installed Java: its folder, the text of its file `release`, and its major version, 0 if unknown."""

    home: Path
    release: str
    major: int

    @property
    def lacks_module(self) -> bool:
        """Whether it lists its modules, and the one that Spark needs is not among them."""
        listed = re.search(r'^MODULES="(.*)"', self.release, re.MULTILINE)
        return listed is not None and MODULE not in listed[1].split()


def find_java() -> Java | None:
    """Return the Java that Spark's scripts would start: that of JAVA_HOME if set, else of PATH; None if missing."""
    given = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(given) / "bin") if given else None)
    if program is None:
        return None
    home = Path(program).resolve().parents[1]
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        release = ""
    return Java(home, release, major_of(release))


def major_of(release: str) -> int:
    r"""Return the major version in the text of a file `release`; 8 for `1.8.0_402`; 0 if it names none.

    Example:
        >>> major_of('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"')
        17
    """
    found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release, re.MULTILINE)
    return int(found[1]) if found else 0
