"""The options that a JVM is started with: ours for a short life, and the user's, which take precedence."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from nddup.scanning.local_paths import local_path
from nddup.storage.machine import is_local

SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", "-XX:+UseSerialGC")
"""Options of a JVM that ends before it would gain from the optimising compiler or from a parallel garbage collector."""

SMALL_BYTES = 32 << 20
"""Stored bytes of the inputs up to which a session is short-lived (docs/operations.md, Spark's own start)."""

DEFAULTS, EXTRA = "spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"
"""Settings with the options of an installation and of a user; the user's come later on Java's command line and win."""

VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Environment variables with further options of a user; they come before ours, or win anyway."""

_FLAG = re.compile(r"-XX:[+-]?(\w+)|-X(share|int|comp|mixed)\b")
_COLLECTOR = re.compile(r"Use\w+GC")


def users_options(settings: Mapping[str, str]) -> str:
    """Return all of the user's options for Java, as one text.

    Args:
        settings: Spark's, as the user gave them.
    """
    said = [os.environ.get(name, "") for name in VARIABLES] + [settings.get(name, "") for name in (DEFAULTS, EXTRA)]
    return " ".join(text for text in said if text)


def give_way(ours: Iterable[str], users: str) -> list[str]:
    """Return our options without those that the user's options set; all choices of a garbage collector count as one.

    Example:
        >>> give_way(SHORT_LIVED, "-XX:+UseG1GC -XX:ReservedCodeCacheSize=1g -Da=b")
        ['-XX:TieredStopAtLevel=1']
    """
    named = flags_of(users)
    return [option for option in ours if not flags_of(option) & named]


def flags_of(options: str) -> set[str]:
    """Return the names of Java's own flags in a text of options; `GC` stands for any choice of a garbage collector.

    Example:
        >>> sorted(flags_of("-Xshare:off -Xss4m -XX:-UseSerialGC -XX:TieredStopAtLevel=1"))
        ['GC', 'TieredStopAtLevel', 'share']
    """
    names = {first or second for first, second in _FLAG.findall(options)}
    return {"GC" if _COLLECTOR.fullmatch(name) else name for name in names}


def join_options(options: Iterable[str]) -> str:
    """Join options into one text that Spark can split again: those with blanks, quotes or backslashes are quoted."""
    quoted = (option.replace("\\", "\\\\").replace('"', '\\"') for option in options)
    return " ".join(f'"{option}"' if re.search(r"[\s\"'\\]", option) else option for option in quoted)


def is_small(paths: Iterable[str]) -> bool:
    """Return whether these paths are on this machine and hold at most `SMALL_BYTES` together; a missing one has none.

    Cost: one `stat` a file, until the sum is too large.
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
    """Return the path of this machine that a text names; None if it names another file system."""
    return Path(local_path(path)) if is_local(path) else None
