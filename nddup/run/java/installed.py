"""The Java that Spark will take, as its installation describes it; nothing is started."""

import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

OLDEST, MODULE = 17, "jdk.incubator.vector"
"""What Spark needs of a Java."""


class Java(NamedTuple):
    """An installed Java: its folder, its file `release`, and the first number of its version, 0 where it is unsaid."""

    home: Path
    release: str
    major: int

    @property
    def lacks_module(self) -> bool:
        """Whether it says which modules it has, and the one that Spark asks for is missing."""
        listed = re.search(r'^MODULES="(.*)"', self.release, re.MULTILINE)
        return listed is not None and MODULE not in listed[1].split()


def find_java() -> Java | None:
    """The Java that Spark's scripts would start: of JAVA_HOME, else of PATH; None where there is none."""
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
    r"""The first number of the version that a file `release` names; 8 of `1.8.0_402`; 0 where it names none.

    Example:
        >>> major_of('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"')
        17
    """
    found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release, re.MULTILINE)
    return int(found[1]) if found else 0
