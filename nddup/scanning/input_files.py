"""The files below the INPUT paths of a run: which are left out, and what each is called in the tables."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from nddup.errors import ConfigError
from nddup.redaction import drop_login

RUN = "_RUN.json"
"""The file that tells a run's folder: below an INPUT such a folder holds results, not documents."""

BESIDE = re.compile(
    r"(readme|licen[cs]e|notice|copying|changelog)([.-].*)?|(md5|sha\d*)sums?.*|.*\.(md|tsv|dtd|xsd|md5|sha\d+|crc)",
    re.IGNORECASE,
)
"""Names of files that stand beside a collection. Inside a folder they are skipped; named on their own they are read."""

BESIDE_WHY = "named as a readme, licence, notice, checksum or listing; such a file is read if it is itself an INPUT"
"""Why such a file is skipped, for people; up to the semicolon in a summary."""


def is_note(path: str) -> bool:
    """Whether a file that stands beside a collection is a text that may be a document: Markdown, but no README."""
    name = path.rpartition("/")[2].lower()
    return name.endswith(".md") and not name.startswith(
        ("readme", "license", "licence", "notice", "copying", "changelog")
    )


def missing_input(text: str) -> ConfigError:
    """The error for an INPUT that is not there; a wildcard or a `~` that the shell left is named as the reason."""
    quoted = ""
    if set("*?[") & set(text):
        quoted = "; wildcards are taken literally: leave out the quotes, or name the folder"
    elif text.startswith("~"):
        quoted = "; ~ is taken literally: leave out the quotes, or write the path from the root"
    return ConfigError(f"INPUT {text}: no such file or folder{quoted}")


@dataclass(frozen=True)
class InputFile:
    """One collection file.

    `path` is where the engine opens it: a URI for Spark, a path of the machine for the engine without Spark. `source`
    is its name in the tables, `size` its stored bytes, `modified` milliseconds of its file system's clock.
    """

    path: str
    source: str
    size: int
    modified: int


@dataclass(frozen=True)
class Listing:
    """The files of all inputs, sorted by source; the files left out, each with why; the inputs given twice."""

    files: tuple[InputFile, ...]
    skipped: tuple[tuple[str, str], ...]
    repeated: tuple[str, ...]


def distinct_sources(paths: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The name of each file in the tables: its path below its INPUT, lengthened by parent folders where two agree.

    Args:
        paths: file -> (the folder its name is relative to, its full path), both decoded and without a `/` at the end.

    Returns:
        File -> source. Files that no parent folder tells apart, in different file systems, keep their whole address.

    Example:
        >>> distinct_sources({"a": ("/x/2019", "/x/2019/1.xml"), "b": ("/x/2020", "/x/2020/1.xml")})
        {'a': '2019/1.xml', 'b': '2020/1.xml'}
    """
    depth = dict.fromkeys(paths, 0)
    while True:
        names = {file: _lengthened(base, path, depth[file]) for file, (base, path) in paths.items()}
        taken: dict[str, list[str]] = {}
        for file, name in names.items():
            taken.setdefault(name, []).append(file)

        clashing = [file for files in taken.values() if len(files) > 1 for file in files]
        growing = [file for file in clashing if depth[file] < paths[file][0].count("/")]
        if not growing:
            return {file: (drop_login(file) if file in clashing else name) for file, name in names.items()}
        for file in growing:
            depth[file] += 1


def _lengthened(base: str, path: str, parents: int) -> str:
    """A path relative to its base, with so many of the base's last folders before it."""
    folders = base.split("/")
    return "/".join([*folders[len(folders) - parents :], path[len(base) :].lstrip("/")])
