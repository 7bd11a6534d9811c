"""The options a Java machine is started with: ours for a short life, and those of the user, which win."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from nddup.scanning.local_paths import local_path
from nddup.storage.machine import is_local

SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", "-XX:+UseSerialGC")
"""For a machine that ends before it would gain from compiling twice, or from collecting garbage in parallel."""

SMALL_BYTES = 32 << 20
"""Stored bytes of an input up to which a session is short-lived (docs/operations.md, Spark's own start)."""

DEFAULTS, EXTRA = "spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"
"""Where an installation and a user say their options; on Java's command line the second comes later, so it wins."""

VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Where a user may say options besides; they come before ours, or win anyway."""

_FLAG = re.compile(r"-XX:[+-]?(\w+)|-X(share|int|comp|mixed)\b")
_COLLECTOR = re.compile(r"Use\w+GC")


def users_options(settings: Mapping[str, str]) -> str:
    """All options for Java that come from the user, as one text.

    Args:
        settings: of Spark, as the user gave them.
    """
    said = [os.environ.get(name, "") for name in VARIABLES] + [settings.get(name, "") for name in (DEFAULTS, EXTRA)]
    return " ".join(text for text in said if text)


def give_way(ours: Iterable[str], users: str) -> list[str]:
    """Our options without those that the user's speak of; any garbage collector speaks of all of them.

    Example:
        >>> give_way(SHORT_LIVED, "-XX:+UseG1GC -XX:ReservedCodeCacheSize=1g -Da=b")
        ['-XX:TieredStopAtLevel=1']
    """
    named = flags_of(users)
    return [option for option in ours if not flags_of(option) & named]


def flags_of(options: str) -> set[str]:
    """The names of Java's own flags in a text of options.

    Example:
        >>> sorted(flags_of("-Xshare:off -Xss4m -XX:-UseSerialGC -XX:TieredStopAtLevel=1"))
        ['GC', 'TieredStopAtLevel', 'share']
    """
    names = {first or second for first, second in _FLAG.findall(options)}
    return {"GC" if _COLLECTOR.fullmatch(name) else name for name in names}


def join_options(options: Iterable[str]) -> str:
    """Options as one text that Spark takes apart again: each in quotes, as a path may have blanks."""
    quoted = (option.replace("\\", "\\\\").replace('"', '\\"') for option in options)
    return " ".join(f'"{option}"' if re.search(r"[\s\"'\\]", option) else option for option in quoted)


def is_small(paths: Iterable[str]) -> bool:
    """Whether these files and folders are on this machine and hold at most `SMALL_BYTES`; one that is missing is empty.

    Cost: a look at each file, until they are too large.
    """
    left, waiting = SMALL_BYTES, [_place(path) for path in paths]
    while waiting:
        path = waiting.pop()
        if path is None:
            return False
        if path.is_dir():
            waiting += path.iterdir()
        elif path.exists():
            left -= path.stat().st_size
        if left < 0:
            return False
    return True


def _place(path: str) -> Path | None:
    """The path of this machine that a text names; None where it names another file system."""
    return Path(local_path(path)) if is_local(path) else None
